package lspe

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ephemera/learner/critic"
)

// Version is that of [State]. It rises where a State has another form, and where a learner
// with the same State would go on otherwise. Change it with the line in learner/saved_test.go.
const Version = 41

// State is the whole state of a [Learner] as data, between an Update and the
// next Select. It goes with the settings and the terms with which the learner was
// made, which it does not hold.
type State struct {
	Epoch    int               `json:"epoch"`    // of the Select to come
	Epochs   int               `json:"epochs"`   // that the price's step counts
	Cold     bool              `json:"cold"`     // the first pass is going on
	Price    float64           `json:"price"`    // λ, interest per budget unit
	Harvest  float64           `json:"harvest"`  // h̄, interest per budget unit
	Spread   float64           `json:"spread"`   // mean of (X − aH̄)², interest squared
	Square   float64           `json:"square"`   // mean of (aH̄)², interest squared
	Between  between           `json:"between"`  // by how much sources differ
	Plan     float64           `json:"plan"`     // Σ C/θ, budget units per epoch
	Capacity float64           `json:"capacity"` // M̂, budget units per epoch
	Total    float64           `json:"total"`    // ΣC of the sources, budget units
	Round    float64           `json:"round"`    // that the pooled curve is measured in, epochs
	Share    float64           `json:"share"`    // sources that jumped lately
	Changed  int               `json:"changed"`  // epoch
	Pooled   critic.State      `json:"pooled"`
	Mean     float64           `json:"mean"`  // of the first pass, interest
	Count    int               `json:"count"` // crawls that the pooled curve has taken in
	Shifts   [octaves]shift    `json:"shifts"`
	Ages     [gridSize]float64 `json:"ages"`
	Worth    [gridSize]float64 `json:"worth"`
	Unseen   []int32           `json:"unseen"`
	Waiting  []Waiting         `json:"waiting"` // sources that have woken, in their order
	Next     int               `json:"next"`    // first epoch whose sources have not woken
	Wakes    []int32           `json:"wakes"`   // of each source its epoch; −1 where it does not sleep
	Sources  []Source          `json:"sources"`
	Rand     []byte            `json:"rand"` // of the stream of exploration

	Slots     []slot `json:"slots"`     // of each host, from 1 on
	Fallbacks int    `json:"fallbacks"` // inverses that were not trusted
}

// State returns a copy of the learner's whole state. A learner that takes it up
// by SetState goes on as this one, bit for bit.
func (l *Learner) State() State {
	p := &l.pooled
	s := State{
		Epoch: l.epoch, Epochs: l.epochs, Cold: l.cold, Price: l.price, Harvest: l.harvest,
		Spread: l.spread, Square: l.square, Between: l.between, Plan: l.plan,
		Capacity: l.capacity, Total: l.total, Round: p.round, Share: l.share, Changed: l.changed,
		Pooled: p.critic.State(), Mean: p.mean, Count: p.count, Shifts: p.shifts, Ages: p.ages, Worth: p.worth,
		Unseen: append([]int32{}, l.unseen...), Waiting: append([]Waiting{}, l.waiting...),
		Next: l.ring.Next(), Rand: l.rand.State(), Sources: slices.Clone(l.src), Fallbacks: l.fallbacks,
		Slots: slices.Clone(l.slots),
	}
	for i := range l.src {
		wake := -1
		if at, ok := l.ring.Wake(i); ok {
			wake = at
		}
		s.Wakes = append(s.Wakes, int32(wake))
	}
	return s
}

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Learner) SetState(s State) error {
	if len(s.Sources) != len(l.src) || len(s.Wakes) != len(l.src) {
		return fmt.Errorf("sources and wakes have %d and %d entries; allowed are %d",
			len(s.Sources), len(s.Wakes), len(l.src))
	}
	if len(s.Slots) != len(l.slots) {
		return fmt.Errorf("slots have %d entries; allowed are %d", len(s.Slots), len(l.slots))
	}
	for i := range s.Sources {
		if err := checkSource(&s.Sources[i], s.Cold, s.Wakes[i] >= 0); err != nil {
			return fmt.Errorf("source %d: %w", i+1, err)
		}
	}
	ids := slices.Clone(s.Unseen)
	for _, w := range s.Waiting {
		ids = append(ids, w.ID)
	}
	for _, i := range ids {
		if i < 0 || int(i) >= len(l.src) {
			return fmt.Errorf("there is no source %d; allowed are 0 to %d", i, len(l.src)-1)
		}
	}
	for _, n := range []int{s.Epoch, s.Epochs, s.Count, s.Next, s.Fallbacks} {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("epoch, epochs, count, next and fallbacks are %d, %d, %d, %d and %d; "+
				"allowed are 0 to 2^31",
				s.Epoch, s.Epochs, s.Count, s.Next, s.Fallbacks)
		}
	}
	var all float64
	for _, c := range l.costs {
		if !math.IsInf(c, 1) {
			all += c
		}
	}
	if s.Round < 1 || s.Total > all*(1+1e-6) {
		return fmt.Errorf("round is %v and total %v; "+
			"allowed are 1 or more, and at most what a crawl of each source costs, %v",
			s.Round, s.Total, all)
	}
	p := &l.pooled
	if err := p.critic.SetState(s.Pooled); err != nil {
		return err
	}
	if err := l.rand.SetState(s.Rand); err != nil {
		return err
	}
	p.measure(s.Round)
	p.settle()
	p.mean, p.count, p.shifts, p.ages, p.worth = s.Mean, s.Count, s.Shifts, s.Ages, s.Worth
	l.epoch, l.epochs, l.cold, l.price, l.harvest = s.Epoch, s.Epochs, s.Cold, s.Price, s.Harvest
	l.total, l.round = s.Total, max(1, s.Total/l.budget)
	l.plan, l.capacity, l.share, l.changed = s.Plan, s.Capacity, s.Share, s.Changed
	l.fallbacks, l.spread, l.square, l.between = s.Fallbacks, s.Spread, s.Square, s.Between
	copy(l.src, s.Sources)
	for i, v := range s.Slots {
		l.slots[i].Price, l.slots[i].Plan = v.Price, v.Plan
	}
	l.unseen = append(l.unseen[:0], s.Unseen...)
	l.clear(s.Next)
	l.waiting = append(l.waiting, s.Waiting...)
	for i, wake := range s.Wakes {
		if wake >= 0 {
			l.ring.Add(i, int(wake))
		}
	}
	return nil
}

// checkSource reports what no learner holds and would not go on with. Numbers are
// finite, for they come from JSON.
func checkSource(v *Source, cold, sleeps bool) error {
	switch {
	case v.Cycles == 0 && sleeps:
		return errors.New("it sleeps, and has no cycle to tell until when")
	case v.Cycles < 0 || v.Last < -1:
		return fmt.Errorf("cycles and last are %d and %d; allowed are 0 or more, and −1 or more", v.Cycles, v.Last)
	case v.FailedNow < 0 || !(v.Failed >= 0):
		return fmt.Errorf("failed and failed now are %v and %d; allowed are 0 or more", v.Failed, v.FailedNow)
	case v.Cycles > 0 && !cold && !(v.Theta >= 1 && v.Theta <= math.MaxInt32 &&
		float64(v.Unit) >= .5*v.Theta && float64(v.Unit) <= 2*v.Theta && v.LastTheta >= 0):
		return fmt.Errorf("threshold, unit and last threshold are %v, %v and %v; "+
			"allowed are 1 to 2^31, half to twice the threshold, and 0 or more", v.Theta, v.Unit, v.LastTheta)
	}
	return nil
}
