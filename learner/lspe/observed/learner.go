// Package observed is the actor-critic lspe where the true state of every
// source is seen (TCNS, section VIII) and nothing else is known: neither rates
// nor decays nor the law of what arrives.
//
// Given the price λ of a budget unit each source is a problem of optimal
// stopping: crawl now, or wait for what the noise brings. A learner follows it
// on three time scales, d(n) = o(a(n)) and a(n) = o(b(n)):
//
//  1. critic.go learns by least squares how the state drifts, and by LSPE(0), on
//     polynomials of the state, by how much it grows until the next crawl and how
//     long that takes. The index follows from both.
//  2. learner.go has the logit thresholds, which the actor moves to where the
//     index is the price; the choice within the budget; and the price, on the
//     slowest scale.
//  3. settings.go holds settings and the whole state as data.
package observed

import (
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/critic"
)

// Learner is the actor-critic. What it knows of the world are the costs and the
// budget; what it sees are states and harvests.
type Learner struct {
	set    Settings
	costs  []float64 // C, budget units
	budget float64   // M
	src    []waiting
	critic []*critic.Critic // one a source, of rewards growth and epochs
	rand   *stream.Rand
	sel    *baselines.Selector

	kappa0 float64 // κ(0)
	n      int     // epochs so far
	price  float64 // λ, interest per budget unit
	scale  float64 // h, running geometric mean of the least harvest per budget unit that was crawled

	// Of the present epoch.
	x, key    []float64 // states, and what ranks the sources
	crawled   []bool
	spent     float64 // cost of what was selected
	phi, then []float64
}

var _ env.Learner[env.Observed] = (*Learner)(nil)

// New returns the learner for sources of which it is given these terms. It explores
// with draws from r.
func New(t env.Terms, s Settings, r *stream.Rand) (*Learner, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	n := len(t.Costs)
	l := &Learner{
		set: s, costs: t.Costs, budget: t.Budget, src: make([]waiting, n),
		rand: r, sel: baselines.NewSelector(t.Costs, t.Budget),
		x: make([]float64, n), key: make([]float64, n), crawled: make([]bool, n),
		phi: make([]float64, 1+s.Features), then: make([]float64, 1+s.Features),
	}
	of := critic.DefaultSettings()
	of.Gamma, of.Epsilon, of.Delta, of.Overflow, of.Scaled = s.Gamma, 1e-2, 1e-6, 1e9, true // in units of τ
	for range n {
		l.critic = append(l.critic, critic.New(1+s.Features, 2, of))
	}
	l.kappa0 = s.Kappa * (1 + max(0, math.Log(t.Round()/10)))
	return l, nil
}

// kappa returns κ(n).
func (l *Learner) kappa() float64 {
	return min(l.set.KappaMax, l.kappa0*math.Sqrt(1+float64(l.n)/l.set.KappaOver))
}

// affordable reports whether a crawl of source i fits into the budget at all.
func (l *Learner) affordable(i int) bool { return env.Fits(l.costs[i], l.budget) }

// margin returns ln X − ln T, −∞ where nothing was ever seen.
func (l *Learner) margin(i int, x float64) float64 {
	s := &l.src[i]
	if s.unit == 0 || !l.affordable(i) {
		return math.Inf(-1)
	}
	return math.Log(max(x, 1e-12*s.unit)) - s.lnT
}

// Select implements env.Policy: source i is at its threshold with the logit of
// κ(ln X − ln T), which κ(ln X − ln T) plus a logistic draw says, and the
// greatest sums within the budget are crawled.
func (l *Learner) Select(dst []int, o *env.Observed) []int {
	if len(o.State) != len(l.src) {
		panic("observed: the view does not show the state of every source")
	}
	copy(l.x, o.State)
	kappa := l.kappa()
	for i, x := range l.x {
		l.see(i, x)
		v := l.rand.Float64()
		l.key[i] = kappa*l.margin(i, x) + math.Log(v/(1-v)) // −∞ for v = 0: not chosen before others
	}
	had := len(dst)
	dst = l.sel.Within(&o.Online).Top(dst, l.key)
	l.spent = 0
	for _, i := range dst[had:] {
		l.spent += l.costs[i]
	}
	return dst
}

// Update implements env.Learner. The actor moves each threshold towards the
// state at which the index is the price, by the sign and size of
// e = (W(T) − λ)/max(λ, h/10), of which the gradient of what a source earns at
// that price is a positive multiple:
//
//	ln T ← Π[ln T − a(n) clip(e, ±1)],   Π onto [x̂/100, 2x̂]
//
// with x̂ the greatest state of late: the paper's [u, u*] with room for the noise.
// From 2x̂ on a source is never crawled. The price is on the slowest scale, S
// being what the selector spent:
//
//	ln h ← ln h + (ln min X/C − ln h)/min(n, 100)
//	λ ← max(0, λ + d(n) max(λ, h) clip((Σ C f − S)/M, ±1))
func (l *Learner) Update(crawls []env.Crawled, next *env.Observed) {
	clear(l.crawled)
	least := math.Inf(1)
	for _, c := range crawls {
		l.crawled[c.Source] = true
		least = min(least, c.Interest/l.costs[c.Source])
	}
	l.n++
	if least > 0 && !math.IsInf(least, 1) {
		if l.scale == 0 {
			l.scale = least
		}
		w := max(1/float64(l.n), .01)
		l.scale = math.Pow(l.scale, 1-w) * math.Pow(least, w)
	}
	a, b, kappa := l.set.A.At(l.n), l.set.B.At(l.n), l.kappa()
	unit := max(l.price, .1*l.scale)
	var demand float64
	for i := range l.src {
		s := &l.src[i]
		if s.unit == 0 {
			continue
		}
		x := l.x[i]
		from := x
		if l.crawled[i] {
			from = 0
		}
		s.regress(from, next.State[i])
		l.evaluate(i, x, next.State[i], l.crawled[i], b)
		demand += l.costs[i] / (1 + math.Exp(-kappa*l.margin(i, x)))
		s.top = max(x, s.top+topForgets*(x-s.top))
		if unit > 0 {
			e := (l.Index(i, s.reached()) - l.price) / unit
			s.lnT = min(max(s.lnT-a*min(max(e, -1), 1), math.Log(s.top/widest)), math.Log(beyond*s.top))
		}
	}
	step := l.set.D.At(l.n) * max(l.price, l.scale)
	l.price = max(0, l.price+step*min(max((demand-l.spent)/l.budget, -1), 1))
}

const (
	widest     = 100. // between the least threshold and x̂
	beyond     = 2.   // between x̂ and the greatest threshold
	topForgets = 1e-2 // of x̂, in an epoch
)

// Price returns the learned price λ of a budget unit, in interest.
func (l *Learner) Price() float64 { return l.price }

// Threshold returns the learned threshold of source i as a state, in interest;
// +Inf where a crawl costs more than the budget or nothing was ever seen.
func (l *Learner) Threshold(i int) float64 {
	if l.src[i].unit == 0 || !l.affordable(i) {
		return math.Inf(1)
	}
	return math.Exp(l.src[i].lnT)
}

// Fallbacks counts the times that an inverse was not trusted.
func (l *Learner) Fallbacks() int {
	sum := 0
	for _, c := range l.critic {
		sum += c.Fallbacks()
	}
	return sum
}

// Frozen returns the policy that would be deployed now: crawl the greatest X/T. It
// learns no more and draws nothing.
func (l *Learner) Frozen() env.Policy[env.Observed] {
	thresholds := make([]float64, len(l.src)) // ln T, +Inf for never
	for i := range thresholds {
		thresholds[i] = math.Log(l.Threshold(i))
	}
	return baselines.NewByIndex(env.Terms{Costs: l.costs, Budget: l.budget}, func(key []float64, o *env.Observed) {
		for i, x := range o.State {
			key[i] = math.Log(max(x, math.SmallestNonzeroFloat64)) - thresholds[i]
		}
	})
}
