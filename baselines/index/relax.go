package index

import (
	"math"
	"slices"

	"ephemera/env"
)

// Relaxed is the optimum when the budget has to be kept on average only, by
// crawls each of which is within it. It is an upper bound on every policy that keeps the budget at each epoch, and its
// own certificate: Bound is the dual value at Price, valid at any price, and
// the plan earns Reward; the two agree but for rounding.
type Relaxed struct {
	Bound  float64 // dual value, interest per epoch
	Reward float64 // what the plan earns, interest per epoch
	Price  float64 // λ*, interest per budget unit
	Cost   float64 // what the plan costs, budget units per epoch

	// The plan. Source i spends the share Share[i] of its epochs in cycles of
	// Short[i] epochs that end with a crawl, and the rest in cycles of Long[i]
	// epochs. The two differ only where both are optimal at the price; Never
	// stands for a source that is left alone.
	Short, Long []int
	Share       []float64
	Frequency   []float64 // crawls per epoch that succeed
}

// Bound returns the Lagrangian upper bound on the average reward of any
// policy that keeps the budget, in interest per epoch, and the price at which
// it is reached, in interest per budget unit: min over λ ≥ 0 of
//
//	Σᵢ maxₛ (Hᵢ(s) − λCᵢ)/s + λM
//
// where H is the harvest curve and s = ∞ (never crawl) is allowed. It panics if
// the instance is not valid.
func Bound(in env.Instance) (bound, price float64) {
	r := Relax(in)
	return r.Bound, r.Price
}

// Relax solves the relaxed problem (TCNS, section VII) exactly, for crawls that
// earn what the harvest curves say; for the papers' mean dynamics with windows
// that is [env.Instance.MeanDynamics]. Where a whole interval of prices is
// optimal, Price is its upper end: what the last part of the budget is worth. It
// panics if the instance is not valid.
//
// At a price λ each source is best crawled at the least age whose Whittle index
// reaches λ, so that the cost falls with λ in steps. Bisection goes on until
// two neighbouring floating-point prices enclose the step at which the cost
// crosses the budget; time-sharing between the plans on both sides of the step
// uses the budget up. A source of which a single crawl is above the budget is
// never crawled, so that the bound is one for policies that keep the budget at
// every epoch. A source whose age is the same at both ends of the bracket takes no
// search.
func Relax(in env.Instance) Relaxed {
	if err := in.Validate(); err != nil {
		panic("index: " + err.Error())
	}
	n := len(in.Sources)
	r := Relaxed{Short: make([]int, n), Long: make([]int, n), Share: make([]float64, n), Frequency: make([]float64, n)}
	curves, ages := make([]Curve, n), make([]int, n)
	var full, most float64
	for i, s := range in.Sources {
		c := NewCurve(s)
		curves[i] = c
		r.Short[i], r.Long[i] = c.Age(0, 1, Never), Never
		if !env.Fits(s.Cost, in.Budget) {
			r.Short[i] = Never
			continue
		}
		full += c.Cost * c.frequency(r.Short[i])
		if c.Unbounded() {
			most = math.Max(most, c.Index(1)/c.Cost) // for a start
		} else {
			most = math.Max(most, c.Limit/c.Cost)
		}
	}
	lo, hi := 0.0, math.Nextafter(most, math.Inf(1)) // nothing is crawled at hi
	atLo, atHi := full, 0.0                          // cost at the two prices
	if env.Fits(full, in.Budget) {
		hi, atHi = 0, full
		copy(r.Long, r.Short)
	}
	plan := func(price float64) (cost float64) {
		for i := range curves {
			c := &curves[i]
			ages[i] = c.Age(price*c.Cost, r.Short[i], r.Long[i])
			cost += c.Cost * c.frequency(ages[i])
		}
		return cost
	}
	if hi > 0 && slices.ContainsFunc(in.Sources, env.Source.Unbounded) {
		// No price is so high that nothing is crawled.
		for atHi = plan(hi); atHi >= in.Budget*(1-1e-13); atHi = plan(hi) {
			copy(r.Short, ages)
			lo, atLo, hi = hi, atHi, 2*hi
		}
		copy(r.Long, ages)
	}
	for {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			break
		}
		cost := plan(mid)
		// The rounding of the sum must not decide whether ½ + ½ is 1.
		if cost >= in.Budget*(1-1e-13) {
			copy(r.Short, ages)
			lo, atLo = mid, cost
		} else {
			copy(r.Long, ages)
			hi, atHi = mid, cost
		}
	}
	// Mixing both plans with weight w on the dearer one uses up the budget.
	w := 1.0
	if atLo > atHi {
		w = math.Min(1, (in.Budget-atHi)/(atLo-atHi))
	}
	if lo > 0 { // else no price above 0 uses the budget up
		r.Price = hi
	}
	r.Bound = r.Price * in.Budget
	for i := range curves {
		c := &curves[i]
		charge := r.Price * c.Cost
		// The dual value holds at any price and for the best of both ages.
		r.Bound += math.Max(c.Yield(Never, 0), math.Max(c.Yield(r.Short[i], charge), c.Yield(r.Long[i], charge)))
		r.Share[i] = w
		r.Frequency[i] = w*c.frequency(r.Short[i]) + (1-w)*c.frequency(r.Long[i])
		if r.Short[i] == Never { // and so is Long; the yield may be −Inf
			r.Reward += c.Yield(r.Short[i], 0)
		} else {
			r.Reward += w*c.Yield(r.Short[i], 0) + (1-w)*c.Yield(r.Long[i], 0)
		}
		r.Cost += c.Cost * r.Frequency[i]
	}
	return r
}
