package baselines

import (
	"math"

	"ephemera/env"
)

// NewGreedy returns the greedy policy of TCNS, section IX: it crawls by the
// mean interest that has gathered since the last crawl, per budget unit,
//
//	(λ ξ̄ / c)(1 − e^(−c t)) / C   with t the age, at most the window.
func NewGreedy(in env.Instance) env.Policy[env.Model] {
	src := in.Sources
	return newIndex(in.Terms(), func(key []float64, o *env.Model) {
		for i := range key {
			key[i] = src[i].ExactMean(o.Age(i)) / src[i].Cost
		}
	})
}

// NewMyopic returns the policy that crawls by the state that it sees, per
// budget unit: by what it would earn now.
func NewMyopic(in env.Instance) env.Policy[env.Model] {
	costs := in.Terms().Costs
	return newIndex(in.Terms(), func(key []float64, o *env.Model) { perCost(key, o.Mean, costs) })
}

// NewMyopicObserved is NewMyopic on the true state.
func NewMyopicObserved(in env.Instance) env.Policy[env.Observed] {
	costs := in.Terms().Costs
	return newIndex(in.Terms(), func(key []float64, o *env.Observed) { perCost(key, o.State, costs) })
}

func perCost(key, x, costs []float64) {
	for i, c := range costs {
		key[i] = x[i] / c
	}
}

// NewRoundRobin returns the policy that crawls whichever source has waited
// longest; at equal costs this is round robin. It needs to know nothing.
func NewRoundRobin(t env.Terms) env.Policy[env.Online] {
	return newIndex(t, func(key []float64, o *env.Online) {
		for i := range key {
			key[i] = float64(o.Age(i))
		}
	})
}

// NewBestSource returns the policy that crawls the sources with the greatest
// gain per budget unit at every epoch, and no others.
func NewBestSource(in env.Instance) env.Policy[env.Model] {
	best := make([]float64, len(in.Sources))
	for i, s := range in.Sources {
		best[i] = s.Gain() / s.Cost
	}
	return newIndex(in.Terms(), func(key []float64, _ *env.Model) { copy(key, best) })
}

// RelaxedBound returns the Lagrangian upper bound on the average reward of any
// policy that keeps the budget, in interest per epoch, and the price at which
// it is reached: min over λ ≥ 0 of
//
//	Σᵢ maxₛ (x(s) − λCᵢ)/s + λM
//
// where x(s) is the mean state at age s and s = ∞ (never crawl) is allowed.
// Each term is what a source can earn by itself when a crawl costs λ per
// budget unit, so that the sum is convex in λ; golden section finds the least.
func RelaxedBound(in env.Instance) (bound, price float64) {
	lo, hi := 0.0, 0.0
	for _, s := range in.Sources {
		hi = math.Max(hi, s.Ceiling()/s.Cost)
	}
	dual := func(lambda float64) float64 {
		v := lambda * in.Budget
		for _, s := range in.Sources {
			v += bestCycle(s, lambda)
		}
		return v
	}
	const invPhi = 0.6180339887498949
	a, b := hi-invPhi*(hi-lo), lo+invPhi*(hi-lo)
	fa, fb := dual(a), dual(b)
	for k := 0; k < 100; k++ {
		if fa < fb {
			hi, b, fb = b, a, fa
			a = hi - invPhi*(hi-lo)
			fa = dual(a)
		} else {
			lo, a, fa = a, b, fb
			b = lo + invPhi*(hi-lo)
			fb = dual(b)
		}
	}
	price = (lo + hi) / 2
	return dual(price), price
}

// bestCycle returns maxₛ (x(s) − λC)/s, at least 0. The maximum is where the
// Whittle index first reaches λ, so the ages are tried upwards until then.
func bestCycle(s env.Source, lambda float64) float64 {
	cost := lambda * s.Cost
	if s.Ceiling() <= cost {
		return 0
	}
	// (x(s) − C λ)/s has one peak in s; find it by doubling and bisection on
	// the sign of its forward difference.
	f := func(n int) float64 { return (s.MeanState(n) - cost) / float64(n) }
	rising := func(n int) bool { return f(n+1) > f(n) }
	if !rising(1) {
		return math.Max(0, f(1))
	}
	lo, hi := 1, 2
	for hi < 1<<40 && rising(hi) {
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; rising(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Max(0, f(hi))
}
