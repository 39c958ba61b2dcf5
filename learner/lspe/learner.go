package lspe

import (
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/internal/check"
)

// Learner is the actor-critic where the mean state and the parameters of the
// sources are known. It has the parts of Allerton, sections III-IV (a critic by
// LSPE(0), logit thresholds under projection, an expected policy gradient, the
// index policy as the operating policy, one time scale each) and one more on
// the slowest scale, the price λ of a budget unit: the multiplier of the
// budget. Given a price the sources decouple, so each has a critic of its own,
// and an epoch costs O(N).
type Learner struct {
	common
	src    []source
	critic sources
}

// source is what is known and learned of one source.
type source struct {
	ceil float64 // u*, interest
	loss float64 // 1 − α

	lnTheta float64 // ln θ, the threshold T = x(θ) as an age
	Theta   float64 // Θ, the first age at which the threshold is reached
	peak    float64 // x(Θ)
	eta     float64 // η, mean harvest, interest per epoch
	work    float64 // κ̄, mean cost, budget units per epoch

	// The slope of V in the age below the threshold is slope − λ·toll.
	slope, toll float64
}

var _ env.Learner[env.Model] = (*Learner)(nil)

// New returns the learner for an instance; nil settings are [DefaultSettings].
// It explores with draws from r, one for each source and epoch.
func New(in env.Instance, set *Settings, r *stream.Rand) (*Learner, error) {
	s := DefaultSettings()
	if set != nil {
		s = *set
	}
	if err := check.First(in.Validate(), s.Validate()); err != nil {
		return nil, err
	}
	l := &Learner{common: newCommon(in, s, r), src: make([]source, len(in.Sources))}
	for i, s := range in.Sources {
		l.src[i] = source{ceil: s.Ceiling(), loss: -math.Expm1(-s.Decay), lnTheta: math.Log(l.period)}
		l.src[i].reach()
	}
	l.critic = newCritic(l)
	return l, nil
}

// Know replaces what is known of source i: its decay rate, 1/epoch, and its
// ceiling u*. What was learned of its harvests is carried over in proportion to
// x(Θ).
func (l *Learner) Know(i int, decay, ceiling float64) {
	s := &l.src[i]
	old := s.peak
	s.ceil, s.loss = ceiling, -math.Expm1(-decay)
	s.peak = s.mean(s.Theta)
	if old > 0 {
		s.eta *= s.peak / old
		l.critic.bank.Rescale(i, harvests, s.peak/old)
		l.critic.tell(i)
	} else {
		l.critic.begin(i)
	}
}

// Select implements env.Policy. It writes the perturbed keys κk + L with L
// standard logistic, so that P(κk + L > 0) is the logit f = 1/(1 + e^(−κk)), and
// takes the sources with the greatest keys within the budget.
func (l *Learner) Select(dst []int, o *env.Model) []int {
	l.check(len(o.Mean))
	l.begin()
	unit := l.measure()
	for i, x := range o.Mean {
		if !l.can(i) {
			l.never(i)
			continue
		}
		s, age := &l.src[i], float64(o.Age(i))
		l.plan(i, s.margin(age), l.excess(i, x, age)/unit, max(s.Theta, age))
	}
	dst = l.choose(dst, l.at(o))
	copy(l.key, o.Mean) // what crawls are expected to harvest, of whatever source
	return dst
}

// at looks at sources in what is shown.
func (l *Learner) at(o *env.Model) look {
	return func(i int) (x, margin, excess float64) {
		x, age := o.Mean[i], float64(o.Age(i))
		return x, l.src[i].margin(age), l.excess(i, x, age)
	}
}

// Update implements env.Learner: critic, actor and price, from the fastest to
// the slowest.
func (l *Learner) Update(crawls []env.Crawled, next *env.Model) {
	if l.set.Learn == "cycle" {
		for _, c := range crawls {
			l.close(c.Source, float64(c.Age), l.key[c.Source])
		}
	} else {
		l.each(crawls, next)
	}
	for i, step := range l.push {
		if step != 0 {
			l.src[i].move(step, l.most)
		}
	}
	l.settle(crawls)
}

// close takes the cycle that a crawl at that age has closed into the averages
// and the critic of source i.
func (l *Learner) close(i int, age, harvest float64) {
	s := &l.src[i]
	// bᵢ(n) is a step per epoch, and a cycle has S of them.
	w := l.clocks.critic(s.Theta) * age
	w /= 1 + w
	// η ← η + w(X/S − η), κ̄ ← κ̄ + w(C/S − κ̄)
	s.eta += w * (harvest/age - s.eta)
	s.work += w * (l.costs[i]/age - s.work)
	l.critic.cycle(i, int(age), harvest, w)
	l.critic.tell(i)
}

// each takes in the transitions of all sources as they come.
func (l *Learner) each(crawls []env.Crawled, next *env.Model) {
	ages := make([]int, len(l.src)) // of what was crawled
	for _, c := range crawls {
		ages[c.Source] = c.Age
	}
	for i, age := range ages {
		s := &l.src[i]
		b := l.clocks.critic(s.Theta)
		var harvest, cost float64
		if age > 0 {
			harvest, cost = l.key[i], l.costs[i]
		} else {
			age = next.Age(i) - 1
		}
		s.eta += b * (harvest - s.eta)
		s.work += b * (cost - s.work)
		l.critic.transition(i, float64(age), cost > 0, harvest, cost, b)
		l.critic.tell(i)
	}
}

func (l *Learner) check(n int) {
	if n != len(l.src) {
		panic(fmt.Sprintf("lspe: view of %d sources; the learner has %d", n, len(l.src)))
	}
}

// Threshold returns the learned threshold θ of source i as an age, in epochs.
// It is the inverse index γᵢ⁻¹(λ) at the learned price, as an age; +Inf where a
// crawl costs more than the budget.
func (l *Learner) Threshold(i int) float64 {
	if !l.can(i) {
		return math.Inf(1)
	}
	return math.Exp(l.src[i].lnTheta)
}

// InverseIndex returns the threshold as a state: qᵢ = x(Θ), in interest, the
// learned inverse index γᵢ⁻¹(λ). Crawl from there upwards. +Inf where a crawl
// costs more than the budget.
func (l *Learner) InverseIndex(i int) float64 {
	if !l.can(i) {
		return math.Inf(1)
	}
	return l.src[i].peak
}

// Index returns the learned index of source i in state x at that age, in
// interest per budget unit. It is accurate near the price.
func (l *Learner) Index(i int, x float64, age int) float64 {
	return l.price + l.excess(i, x, float64(age))
}

// Fallbacks counts how often a critic's inverse was not trusted and the
// Tikhonov form was taken.
func (l *Learner) Fallbacks() int { return l.critic.bank.Fallbacks() }

// Policy is what a [Learner] has learned, as a policy that learns no more and
// draws nothing: the learned index and the actor's margin, mixed as while
// learning, without exploration.
type Policy struct{ l Learner }

var _ env.Policy[env.Model] = (*Policy)(nil)

// Frozen returns the policy that would be deployed now.
func (l *Learner) Frozen() *Policy {
	f := &Policy{*l}
	f.l.src = append([]source(nil), l.src...)
	f.l.critic = l.critic.frozen(&f.l)
	f.l.key = make([]float64, len(l.key))
	f.l.sel = baselines.NewSelector(l.costs, l.budget)
	f.l.rand, f.l.push = nil, nil
	return f
}

// Select implements env.Policy.
func (f *Policy) Select(dst []int, o *env.Model) []int {
	l := &f.l
	l.check(len(o.Mean))
	unit := l.measure()
	for i, x := range o.Mean {
		l.key[i] = math.Inf(-1)
		if l.can(i) {
			age := float64(o.Age(i))
			l.key[i] = l.mix(l.src[i].margin(age), l.excess(i, x, age)/unit)
		}
	}
	return l.pick(dst, l.at(o))
}

// ByAge returns the same policy for views whose mean states follow from the ages,
// as they do where the model is known. Among many sources of which few are
// crawled it need not look at all.
func (f *Policy) ByAge() env.Policy[env.Model] {
	fall := f.fall
	if f.l.critic.fits() || f.l.set.MarginShare < .5 {
		fall = nil // the key may fall
	}
	return baselines.NewPackedByAge(env.Terms{Costs: f.l.costs, Budget: f.l.budget}, f.key, f.worth, fall)
}

func (f *Policy) at(i, age int) (x, margin, excess float64) {
	s, a := &f.l.src[i], float64(age)
	x = s.mean(a)
	return x, s.margin(a), f.l.excess(i, x, a)
}

// key returns by what source i ranks at an age. Unless values are fitted, it does
// not fall as the age grows, but for fall.
func (f *Policy) key(i, age int) float64 {
	if !f.l.can(i) {
		return math.Inf(-1)
	}
	_, margin, excess := f.at(i, age)
	return f.l.mix(margin, excess/f.l.measure())
}

func (f *Policy) worth(i, age int) float64 {
	x, _, excess := f.at(i, age)
	return f.l.worth(i, x, excess)
}

// fall returns the rounding of key: the excess is Θ times a slope of x.
func (f *Policy) fall(i int) float64 {
	s := &f.l.src[i]
	return 0x1p-46 * (1 + (s.Theta*s.peak+s.ceil)/(f.l.costs[i]*f.l.measure()))
}
