package paper

import (
	"fmt"
	"math"
	"slices"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/features"
	"ephemera/learner/critic"
	"ephemera/learner/internal/check"
)

// Learner is the learner of Allerton: LSPE(0) as the critic and thresholds in
// logit form as the actor. It knows u, u* and α of its sources, and sees the mean
// states.
type Learner struct {
	actor
	set      Settings
	critic   *critic.Critic
	phi      features.Map
	n        int // epochs learned from
	price    price
	costs    []float64
	budget   float64
	ceilings float64 // Σ u*

	a, b, d   func(n int) float64       // steps
	value     func(x []float64) float64 // V, of the critic
	now, then []float64                 // φ(X(n)), φ(X(n+1))
	other     []float64                 // φ of value
	next      []float64                 // X(n+1), that of then
	crawled   []bool                    // ν
}

var _ env.Learner[env.Model] = (*Learner)(nil)

const (
	mostFeatures = 1 << 13 // the critic holds five matrices of ℓ² numbers
	mostCrossed  = 20      // sources up to which all products are features
)

// New returns the learner for the sources of an instance. It draws from r, which
// may be nil if it acts under the budget.
func New(in env.Instance, set Settings, r *stream.Rand) (*Learner, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	if err := set.Validate(); err != nil {
		return nil, err
	}
	n := len(in.Sources)
	t := newThresholds(in, set.Start)
	sum := 0.0
	for _, hi := range t.hi {
		sum += hi
	}
	fs := features.Settings{Inputs: n, Degree: set.Degree, Separable: n > mostCrossed}
	if set.Features == "unit" {
		fs.Hi = slices.Clone(t.hi)
		for i, hi := range fs.Hi {
			if hi == 0 {
				fs.Hi[i] = 1 // a source without content stays at 0
			}
		}
	}
	phi := features.Own(set.Features, t.hi)
	if phi == nil {
		phi = features.New(fs)
	}
	if phi.Len() > mostFeatures {
		return nil, fmt.Errorf("%d sources to degree %d make %d features; "+
			"allowed for this learner are %d, whose matrices take 2.7 GB",
			n, set.Degree, phi.Len(), mostFeatures)
	}
	joint := critic.New(phi.Len(), 1, set.critic())
	terms := in.Terms()
	p := &Learner{
		actor: newActor(t, newCoordinate(in, t, set.Margin), set.Shift),
		set:   set, critic: joint, phi: phi,
		a: set.A.InOrder(), b: set.B.InOrder(), d: set.D.InOrder(),
		costs: terms.Costs, budget: terms.Budget, ceilings: sum,
		now: make([]float64, phi.Len()), then: make([]float64, phi.Len()), other: make([]float64, phi.Len()),
		next: make([]float64, n), crawled: make([]bool, n),
	}
	p.value = func(x []float64) float64 { return joint.Value(phi.To(p.other, x)) }
	phi.To(p.then, p.next)
	p.rand = r
	if set.Act == "budget" {
		p.sel = baselines.NewSelector(terms.Costs, terms.Budget)
	}
	return p, nil
}

// Select implements env.Policy.
func (p *Learner) Select(dst []int, o *env.Model) []int {
	p.kappa = p.set.kappa(p.n)
	return p.actor.Select(dst, o)
}

// Update implements env.Learner.
func (p *Learner) Update(crawls []env.Crawled, o *env.Model) {
	clear(p.crawled)
	reward, least := 0.0, math.Inf(1)
	for _, c := range crawls {
		p.crawled[c.Source] = true
		reward += c.Interest - p.price.lambda*p.costs[c.Source]
		least = min(least, c.Interest/p.costs[c.Source])
	}
	if p.set.Reward == "literal" {
		reward = p.sum
	}
	p.n++
	if slices.Equal(p.x, p.next) {
		p.now, p.then = p.then, p.now
	} else {
		p.phi.To(p.now, p.x)
	}
	copy(p.next, o.Mean)
	p.phi.To(p.then, p.next)
	p.ascend(p.next, p.critic.Value(p.then), p.a(p.n)) // with r(n), as printed
	if p.set.Price == "learned" {
		cost := 0.0
		for i, f := range p.f {
			cost += p.costs[i] * f
		}
		p.price.follow(cost, p.budget, least, p.d(p.n))
	}
	p.critic.Step(p.now, p.then, reward, p.b(p.n))
}

// Threshold returns the threshold of source i, in interest, where the states of
// the other sources sum to others.
func (p *Learner) Threshold(i int, others float64) float64 {
	t, _ := p.thresholds.at(i, others)
	return t
}

// Price returns λ, interest per budget unit; 0 where the learner has none.
func (p *Learner) Price() float64 { return p.price.lambda }

// Critic returns the critic. It is the learner's own.
func (p *Learner) Critic() *critic.Critic { return p.critic }

// Frozen returns the learned policy as it stands, without learning: the index
// policy of section III, which ranks the sources by their margins and keeps the
// budget.
func (p *Learner) Frozen() env.Policy[env.Model] {
	t := *p.thresholds
	t.q = slices.Clone(t.q)
	a := newActor(&t, p.y, p.shift)
	a.sel = baselines.NewSelector(p.costs, p.budget)
	return &a
}

// Version is that of [State]. It rises where a State has another form, and where a learner
// with the same State would go on otherwise. Change it with the line in learner/saved_test.go.
const Version = 28

// State is the whole state of a Learner as data.
type State struct {
	Epochs   int          `json:"epochs"`  // n
	Q        [][3]float64 `json:"q"`       // thresholds, one row per source
	Price    float64      `json:"price"`   // λ
	Harvest  float64      `json:"harvest"` // h of the price
	Harvests int          `json:"harvests"`
	Critic   critic.State `json:"critic"`
	Stream   []byte       `json:"stream,omitempty"` // of the draws
}

// State returns a copy of the state between two epochs.
func (p *Learner) State() State {
	st := State{
		Epochs: p.n, Q: slices.Clone(p.q), Critic: p.critic.State(),
		Price: p.price.lambda, Harvest: p.price.harvest, Harvests: p.price.n,
	}
	if p.rand != nil {
		st.Stream = p.rand.State()
	}
	return st
}

// SetState takes up a state that State returned, under the same settings. On an
// error the learner must not be used further.
func (p *Learner) SetState(st State) error {
	if len(st.Q) != len(p.q) {
		return fmt.Errorf("q has %d rows; allowed is one for each of %d sources", len(st.Q), len(p.q))
	}
	for i, q := range st.Q {
		if err := check.Finite("q of source "+fmt.Sprint(i+1), q[:], 3); err != nil {
			return err
		}
	}
	if err := check.Finite("price, harvest", []float64{st.Price, st.Harvest}, 2); err != nil {
		return err
	}
	if st.Price < 0 || st.Harvests < 0 || st.Epochs < 0 {
		return fmt.Errorf("price is %v after %d harvests and %d epochs; allowed are 0 or more",
			st.Price, st.Harvests, st.Epochs)
	}
	if (st.Stream != nil) != (p.rand != nil) {
		return fmt.Errorf("stream is %d bytes; allowed is the state of the learner's stream", len(st.Stream))
	}
	if st.Stream != nil {
		if err := p.rand.SetState(st.Stream); err != nil {
			return fmt.Errorf("stream: %w", err)
		}
	}
	if err := p.critic.SetState(st.Critic); err != nil {
		return fmt.Errorf("critic: %w", err)
	}
	copy(p.q, st.Q)
	p.n = st.Epochs
	p.price = price{st.Price, st.Harvest, st.Harvests}
	return nil
}
