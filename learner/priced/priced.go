package priced

import (
	"fmt"
	"math"

	"ephemera/env"
	"ephemera/env/stream"
)

// Learner is the priced LSPE(0) actor-critic with the sources' parameters
// known. It has the parts of Allerton, sections III-IV (a critic that follows
// the average reward, logit thresholds under projection, an expected policy
// gradient, the index policy as the operating policy, one time scale each) and
// one more on the slowest scale, the price λ of a crawl: the multiplier of the
// budget. Given a price the sources decouple, and every epoch costs O(N).
//
// The budget is kept at every epoch, while learning too.
type Learner struct{ p *core }

var _ env.Learner[env.Model] = (*Learner)(nil)

// New returns the learner for an instance; nil settings are
// [DefaultSettings]. It explores with draws from r, one for each source
// and epoch. It panics if the instance or a setting is out of its range.
func New(in env.Instance, set *Settings, r *stream.Rand) *Learner {
	if err := in.Validate(); err != nil {
		panic("learner: priced: " + err.Error())
	}
	p := newCore(in.Terms(), set, r)
	var most float64
	for _, s := range in.Sources {
		most = max(most, s.Ceiling())
	}
	if most > 0 {
		_, e := math.Frexp(most)
		p.unit = math.Ldexp(1, e)
	}
	for i, s := range in.Sources {
		p.know(i, s.Decay, s.Ceiling())
		p.begin(i)
	}
	return &Learner{p}
}

// Select implements env.Policy.
func (l *Learner) Select(dst []int, o *env.Model) []int {
	p := l.p
	p.check(len(o.Mean))
	p.seen = o
	p.plan()
	p.seen = nil
	return p.choose(dst)
}

func (p *core) check(n int) {
	if n != len(p.costs) {
		panic(fmt.Sprintf("learner: priced: view of %d sources; the learner has %d", n, len(p.costs)))
	}
}

// Update implements env.Learner.
func (l *Learner) Update(crawls []env.Crawled, _ *env.Model) { l.p.learn(crawls) }

// Price returns the learned price λ of a budget unit, in interest.
func (l *Learner) Price() float64 { return l.p.price }

// Threshold returns the learned threshold θ of source i as an age, in epochs.
// It is the inverse index γᵢ⁻¹(λ) at the learned price, as an age; +Inf where a
// crawl costs more than the budget.
func (l *Learner) Threshold(i int) float64 { return l.p.threshold(i) }

// InverseIndex returns the learned inverse index γᵢ⁻¹(λ) at the learned price
// as a state, x(⌈θ⌉) in interest: crawl from there upwards.
func (l *Learner) InverseIndex(i int) float64 { return l.p.inverse(i) }

// Index returns the learned index of source i in state x at that age, in
// interest per budget unit. It is accurate near the price.
func (l *Learner) Index(i int, x float64, age int) float64 {
	_, e := l.p.advantage(i, x, float64(age))
	return l.p.price + e
}

// State returns the learner's whole state.
func (l *Learner) State() State { return l.p.state() }

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Learner) SetState(s State) error { return l.p.setState(s) }

// Frozen returns the policy that would be deployed now: the learned index and
// the actor's margin, mixed as while learning, without exploration.
func (l *Learner) Frozen() *Policy {
	return &Policy{l.p.frozen()}
}

// Fallbacks counts how often a critic's inverse was not trusted and the
// Tikhonov form was taken.
func (l *Learner) Fallbacks() int { return l.p.fallbacks() }

// Policy is what a [Learner] learner has learned, as a policy that learns
// no more and draws nothing.
type Policy struct{ p *core }

var _ env.Policy[env.Model] = (*Policy)(nil)

// Select implements env.Policy.
func (f *Policy) Select(dst []int, o *env.Model) []int {
	p := f.p
	p.check(len(o.Mean))
	for i := range p.age {
		p.age[i] = float32(o.Age(i))
	}
	p.rank(p.key, o.Mean, p.age)
	return p.sel.Top(dst, p.key)
}
