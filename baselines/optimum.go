package baselines

import (
	"fmt"
	"math"
	"slices"

	"ephemera/baselines/index"
	"ephemera/env"
)

// limits end the computation of an optimum.
type limits struct {
	truncation float64 // what may be lost by not telling ages beyond a cap apart, share of the relaxed bound
	gap        float64 // between the bounds, share of the upper one, the truncation not counted
	// work is the most pairs of a state and a set of sources that may be looked
	// at. Some 10 ns each; a sweep takes all pairs, and an instance whose
	// relaxed bound is not reached takes some hundred sweeps. Ten sweeps must fit,
	// and a state takes 16 bytes.
	work float64
}

var usualLimits = limits{truncation: 1e-7, gap: 1e-9, work: 3e9}

// Optimum is the optimum of a small instance under its hard budget, enclosed
// between two bounds, and a policy that earns the lower one.
type Optimum struct {
	// No policy earns more than Upper from any start, and the policy earns
	// Lower in the long run from the start x = u; interest per epoch.
	Lower, Upper float64
	// Truncation is the part of Upper that allows for the capped ages.
	Truncation float64
	States     int
	Sweeps     int

	// Joint ages are numbered in a mixed radix; the last age of each source
	// stands for all beyond.
	cell  [][]ageCell // of each source, by its age − 1
	sets  [][]int     // the sets of sources within the budget that are tried
	value []float64   // V
	age   []int       // scratch
}

// ageCell is what there is to know of one source at one age.
type ageCell struct {
	earn float64 // x, by a crawl
	move int     // its part of the next state's number without a crawl
}

// SolveOptimum computes the optimal average reward by relative value iteration
// over the joint ages of the sources,
//
//	V(s) + g = max over A within the budget of Σ_{i∈A} xᵢ(sᵢ) + V(s′)
//
// where s′ᵢ = 1 for the crawled sources and sᵢ + 1 for the others. It returns an
// error that says the size when the instance needs, by an estimate, more work
// than allowed.
//
// Three facts keep it small and its bounds certain:
//
//   - Where x is concave with x(0) = 0, a crawl that the budget leaves room for
//     never hurts: only the largest sets within the budget are tried.
//   - Ages stop at a cap. A source is crawled beyond its cap at most once in so
//     many epochs, and what it then earns is underestimated by at most
//     x(∞) − x(cap): the sum of (x(∞) − x(cap))/cap bounds the loss.
//   - For any V, max over s of (TV − V)(s) is an upper bound on the optimum, and
//     following the greedy policy of V until its states repeat gives a reward
//     that is really earned.
func SolveOptimum(in env.Instance) (*Optimum, error) {
	return solveOptimum(in, usualLimits)
}

func solveOptimum(in env.Instance, most limits) (*Optimum, error) {
	o := &Optimum{Lower: negInf, Upper: math.Inf(1), age: make([]int, len(in.Sources))}
	if n := len(in.Sources); n > 16 {
		return o, fmt.Errorf("exact optimum of instance %q: %d sources; allowed are 16", in.ID, n)
	}
	relaxed := index.Relax(in)
	curves := make([]index.Curve, len(in.Sources))
	for i, s := range in.Sources {
		if !env.Fits(s.Cost, in.Budget) {
			s.Rate = 0 // never crawled: its age makes no difference
		}
		curves[i] = index.NewCurve(s)
	}
	caps, states := o.capAges(curves, most.truncation*relaxed.Bound)
	all := slices.ContainsFunc(curves, func(c index.Curve) bool { return !c.Concave() })
	o.sets = affordableSets(in, all)
	// A bound that is reached takes few sweeps, another one many.
	sweeps := most.work / (states * float64(len(o.sets)))
	if sweeps >= 10 {
		o.buildTables(curves, caps)
		o.startValues(relaxed, curves)
		if o.iterate(most.gap, 1) || sweeps >= 300 && o.iterate(most.gap, 20_000) {
			return o, nil
		}
	}
	return o, fmt.Errorf("exact optimum of instance %q: between %v and %v after %d sweeps "+
		"over %.3g states and %d sets of sources; the work that is allowed is %.0f sweeps",
		in.ID, o.Lower, o.Upper, o.Sweeps, states, len(o.sets), sweeps)
}

// capAges finds caps at which Σ (x(∞) − x(cap))/cap is at most slack, the same
// part of it for each source. It returns them with the number of states.
func (o *Optimum) capAges(curves []index.Curve, slack float64) (caps []int, states float64) {
	caps, states = make([]int, len(curves)), 1
	earning := 0.0 // sources
	for _, c := range curves {
		if c.Top > 0 {
			earning++
		}
	}
	for i := range curves {
		c := &curves[i]
		loss := func(age int) float64 { return (c.Top - c.At(age)) / float64(age) }
		caps[i] = index.FirstAge(0, math.MaxInt32, func(age int) bool { return loss(age)*earning <= slack })
		states *= float64(caps[i])
		o.Truncation += loss(caps[i])
	}
	return caps, states
}

// affordableSets lists the sets of sources that fit the budget: all, or only
// those to which no further source can be added.
func affordableSets(in env.Instance, all bool) (sets [][]int) {
	costs := in.Terms().Costs
	var set []int
	var walk func(i int, cost float64)
	walk = func(i int, cost float64) {
		if i < len(costs) {
			if env.Fits(cost+costs[i], in.Budget) {
				set = append(set, i)
				walk(i+1, cost+costs[i])
				set = set[:len(set)-1]
			}
			walk(i+1, cost)
			return
		}
		for k, c := range costs {
			if !all && !slices.Contains(set, k) && env.Fits(cost+c, in.Budget) {
				return
			}
		}
		sets = append(sets, slices.Clone(set))
	}
	walk(0, 0)
	return sets
}

// buildTables builds the tables.
func (o *Optimum) buildTables(curves []index.Curve, caps []int) {
	o.cell, o.States = make([][]ageCell, len(caps)), 1
	for i, m := range caps {
		o.cell[i] = make([]ageCell, m)
		for a := range o.cell[i] {
			o.cell[i][a] = ageCell{curves[i].At(a + 1), min(a+1, m-1) * o.States}
		}
		o.States *= m
	}
}

// best returns the greatest Σx + V(s′) at the joint ages and the set that
// reaches it; of equal ones the first. Ages count from 0 here.
func (o *Optimum) best(age []int) (float64, []int) {
	base := 0
	for i, a := range age {
		base += o.cell[i][a].move
	}
	most, arg := negInf, 0
	for k, set := range o.sets {
		s, r := base, 0.0
		for _, i := range set {
			c := o.cell[i][age[i]]
			s -= c.move // to age 0, whose part of the number is 0
			r += c.earn
		}
		if r += o.value[s]; r > most {
			most, arg = r, k
		}
	}
	return most, o.sets[arg]
}

// startValues sets V to the sum of the value functions of the single sources at the
// price of the relaxed problem, from which the first sweep yields about the
// relaxed bound.
func (o *Optimum) startValues(r index.Relaxed, curves []index.Curve) {
	single := make([][]float64, len(curves))
	for i := range curves {
		c := &curves[i]
		charge := r.Price * c.Cost
		beta := math.Max(0, math.Max(c.Yield(r.Short[i], charge), c.Yield(r.Long[i], charge)))
		single[i] = make([]float64, len(o.cell[i]))
		for a := range single[i] {
			// Linear in the age below the threshold, x − λC − β from there.
			single[i][a] = math.Max(float64(a)*beta, c.At(a+1)-charge-beta)
			if a+1 < r.Short[i] {
				single[i][a] = float64(a) * beta
			}
		}
	}
	o.value = make([]float64, o.States)
	o.eachState(func(s int) {
		for i, a := range o.age {
			o.value[s] += single[i][a]
		}
	})
}

// eachState calls f for every state with its joint ages in o.age.
func (o *Optimum) eachState(f func(s int)) {
	clear(o.age)
	for s := range o.States {
		f(s)
		for i := range o.age { // on to the next number
			if o.age[i]++; o.age[i] < len(o.cell[i]) {
				break
			}
			o.age[i] = 0
		}
	}
}

// iterate goes on to the given number of sweeps, and reports whether the bounds
// came close before.
func (o *Optimum) iterate(gap float64, sweeps int) bool {
	next := make([]float64, o.States)
	for ; o.Sweeps < sweeps; o.Sweeps++ {
		most := negInf
		o.eachState(func(s int) {
			v, _ := o.best(o.age)
			most = math.Max(most, v-o.value[s])
			// Half a step: the optimum is a cycle, and full steps would go
			// round in it for ever.
			next[s] = (v + o.value[s]) / 2
		})
		o.Upper = math.Min(o.Upper, most+o.Truncation)
		if o.Sweeps%10 == 0 {
			if o.Lower = o.follow(); o.Upper-o.Truncation-o.Lower <= gap*o.Upper {
				o.Sweeps++
				return true
			}
		}
		// Relative to the first state, so that V does not grow without end.
		zero := next[0]
		for s := range next {
			next[s] -= zero
		}
		o.value, next = next, o.value
	}
	return false
}

// follow returns the average reward of the greedy policy of V on the cycle that
// it enters from the start. Capped ages count with x(cap), less than they earn in
// truth.
func (o *Optimum) follow() float64 {
	// Brent's method: the runner goes on from a mark that is moved to it
	// after 1, 2, 4, … steps, and is in the cycle once it meets the mark.
	mark, age := make([]int, len(o.cell)), make([]int, len(o.cell))
	for limit := 1; ; limit *= 2 {
		copy(mark, age)
		reward := 0.0
		for cycle := 1; cycle <= limit; cycle++ {
			reward += o.step(age)
			if slices.Equal(age, mark) {
				return reward / float64(cycle)
			}
		}
	}
}

// step crawls what is best by V, changes the ages and returns what was earned.
func (o *Optimum) step(age []int) (r float64) {
	_, set := o.best(age)
	for _, i := range set {
		r += o.cell[i][age[i]].earn
		age[i] = -1
	}
	for i := range age {
		age[i] = min(age[i]+1, len(o.cell[i])-1)
	}
	return r
}

// Select implements env.Policy: the greedy set of V at the ages of m.
func (o *Optimum) Select(dst []int, m *env.Model) []int {
	for i, c := range o.cell {
		o.age[i] = min(m.Age(i), len(c)) - 1
	}
	_, set := o.best(o.age)
	return append(dst, set...)
}
