package lspe

import (
	"cmp"
	"fmt"
	"slices"

	"ephemera/learner/critic"
)

// State is the whole state of a [Learner] as data, between an Update and the
// next Select. It goes with the settings and the terms with which the learner was
// made, which it does not hold.
type State struct {
	Epoch    int               `json:"epoch"`    // of the Select to come
	Epochs   int               `json:"epochs"`   // that the price's step counts
	Cold     bool              `json:"cold"`     // the first pass is going on
	Price    float64           `json:"price"`    // λ, interest per budget unit
	Harvest  float64           `json:"harvest"`  // h, interest per budget unit
	Plan     float64           `json:"plan"`     // Σ C/θ, budget units per epoch
	Capacity float64           `json:"capacity"` // M̂, budget units per epoch
	Total    float64           `json:"total"`    // ΣC of the sources, budget units
	Round    float64           `json:"round"`    // that the pooled curve is measured in, epochs
	Share    float64           `json:"share"`    // sources that jumped lately
	Changed  int               `json:"changed"`  // epoch
	Pooled   critic.State      `json:"pooled"`
	Mean     float64           `json:"mean"`  // of the first pass, interest
	Count    int               `json:"count"` // crawls that the pooled curve has taken in
	Ages     [gridSize]float64 `json:"ages"`
	Worth    [gridSize]float64 `json:"worth"`
	Unseen   []int32           `json:"unseen"`
	Waiting  []Waiting         `json:"waiting"` // sources that have woken, in their order
	Next     int               `json:"next"`    // first epoch whose sources have not woken
	Wakes    []int32           `json:"wakes"`   // of each source its epoch; −1 where it does not sleep
	Sources  []Source          `json:"sources"`
	Rand     []byte            `json:"rand"` // of the stream of exploration
}

// State returns a copy of the learner's whole state. A learner that takes it up
// by SetState goes on as this one, bit for bit.
func (l *Learner) State() State {
	p := &l.pooled
	s := State{
		Epoch: l.epoch, Epochs: l.epochs, Cold: l.cold, Price: l.price, Harvest: l.harvest, Plan: l.plan,
		Capacity: l.capacity, Total: l.total, Round: p.round, Share: l.share, Changed: l.changed,
		Pooled: p.critic.State(), Mean: p.mean, Count: p.count, Ages: p.ages, Worth: p.worth,
		Unseen: append([]int32{}, l.unseen...), Waiting: append([]Waiting{}, l.waiting...), Next: l.ring.Next(), Rand: l.rand.State(),
		Sources: slices.Clone(l.src),
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
		return fmt.Errorf("sources and wakes have %d and %d entries; allowed are %d", len(s.Sources), len(s.Wakes), len(l.src))
	}
	p := &l.pooled
	if err := cmp.Or(p.critic.SetState(s.Pooled), l.rand.SetState(s.Rand)); err != nil {
		return err
	}
	p.mean, p.count, p.ages, p.worth = s.Mean, s.Count, s.Ages, s.Worth
	l.epoch, l.epochs, l.cold, l.price, l.harvest = s.Epoch, s.Epochs, s.Cold, s.Price, s.Harvest
	l.total, l.round, p.round = s.Total, max(1, s.Total/l.budget), s.Round
	l.plan, l.capacity, l.share, l.changed = s.Plan, s.Capacity, s.Share, s.Changed
	copy(l.src, s.Sources)
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
