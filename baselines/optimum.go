package baselines

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ephemera/baselines/index"
	"ephemera/env"
)

// OptimumOptions are the settings of [SolveOptimum]; 0 stands for the default.
type OptimumOptions struct {
	// Truncation bounds what may be lost by not telling ages beyond a cap
	// apart, as a share of the relaxed bound. Default 1e-7.
	Truncation float64
	// Gap ends the iteration once upper and lower bound are as close, as a
	// share of the upper one, the truncation not counted. Default 1e-9.
	Gap float64
	// Memory is the most memory that may be used, bytes. Default 2 GiB.
	Memory float64
	// Work is the most pairs of a state and a set of sources that may be looked
	// at. Some 10 ns each; a sweep takes all pairs, and an instance whose
	// relaxed bound is not reached takes some hundred sweeps. Default 3e9.
	Work float64
}

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
	Cap        []int // age from which the ages of a source are not told apart

	tab   *jointAges
	value []float64
	age   []int
}

var _ env.Policy[env.Model] = (*Optimum)(nil)

// jointAges numbers the joint ages of all sources, mixed radix, and lists the
// sets of sources that are worth crawling together.
type jointAges struct {
	cap  []int       // ages 1 … cap, the last one standing for all beyond
	cell [][]ageCell // of each source, by its age − 1
	sets [][]int     // the largest sets within the budget
}

// SolveOptimum computes the optimal average reward by relative value iteration
// over the joint ages of the sources,
//
//	V(s) + g = max over A within the budget of Σ_{i∈A} xᵢ(sᵢ) + V(s′)
//
// where s′ᵢ = 1 for the crawled sources and sᵢ + 1 for the others. It returns an
// error that says the size when the instance needs more memory or, by an
// estimate, more work than allowed, and with the bounds reached the context's
// when that is done.
//
// Three facts keep it small and its bounds certain:
//
//   - x is concave with x(0) = 0, so a crawl that the budget leaves room for
//     never hurts: only the largest sets within the budget are tried.
//   - Ages stop at a cap. A source is crawled beyond its cap at most once in so
//     many epochs, and what it then earns is underestimated by at most
//     x(∞) − x(cap): the sum of (x(∞) − x(cap))/cap bounds the loss.
//   - For any V, max over s of (TV − V)(s) is an upper bound on the optimum, and
//     following the greedy policy of V until its states repeat gives a reward
//     that is really earned.
func SolveOptimum(ctx context.Context, in env.Instance, opt OptimumOptions) (*Optimum, error) {
	opt.Truncation, opt.Gap = cmp.Or(opt.Truncation, 1e-7), cmp.Or(opt.Gap, 1e-9)
	opt.Memory, opt.Work = cmp.Or(opt.Memory, 2<<30), cmp.Or(opt.Work, 3e9)
	o := &Optimum{Lower: negInf, Upper: math.Inf(1), tab: &jointAges{}}
	if err := o.solve(ctx, in, opt); err != nil {
		return o, fmt.Errorf("exact optimum of instance %q: %w", in.ID, err)
	}
	return o, nil
}

func (o *Optimum) solve(ctx context.Context, in env.Instance, opt OptimumOptions) error {
	relaxed := index.Relax(in, index.MeanDynamics)
	curves := make([]index.Curve, len(in.Sources))
	for i, s := range in.Sources {
		if !env.Fits(s.Cost, in.Budget) {
			s.Rate = 0 // never crawled: its age makes no difference
		}
		curves[i] = index.NewCurve(s, index.MeanDynamics)
	}
	const state = 2 * 8 // bytes, for V and TV
	size, all := o.capAges(curves, opt.Truncation*relaxed.Bound, 1000*opt.Memory/state)
	if need := size * state; need > opt.Memory {
		more := ""
		if !all {
			more = "more than "
		}
		return fmt.Errorf("the joint ages of %d sources make %s%.3g states, which need %s%.3g GiB; allowed are %.3g GiB",
			len(curves), more, size, more, need/(1<<30), opt.Memory/(1<<30))
	}
	sets, err := largestSets(in)
	if err != nil {
		return err
	}
	// A bound that is reached takes few sweeps, another one many.
	const few, many = 10, 300
	work := func(sweeps float64) error {
		if pairs := sweeps * size * float64(len(sets)); pairs > opt.Work {
			return fmt.Errorf("%v sweeps over %.3g states and %d sets of sources make %.3g pairs; allowed are %.3g", sweeps, size, len(sets), pairs, opt.Work)
		}
		return nil
	}
	if err := work(few); err != nil {
		return err
	}
	o.States = o.tab.fill(curves, o.Cap, sets)
	if err := o.start(ctx, relaxed, curves); err != nil {
		return err
	}
	if done, err := o.iterate(ctx, opt.Gap, 1); done || err != nil {
		return err
	}
	if err := work(many); err != nil {
		return err
	}
	const most = 20_000
	if done, err := o.iterate(ctx, opt.Gap, most); done || err != nil {
		return err
	}
	return fmt.Errorf("between %v and %v after %d sweeps over %d states; allowed is a gap of %v of the upper bound", o.Lower, o.Upper, o.Sweeps, o.States, opt.Gap)
}

// capAges finds caps at which Σ (x(∞) − x(cap))/cap is at most slack, by always
// raising the cap that removes most of the sum per factor by which the states
// grow. It returns the number of states, and stops before it is done once that
// exceeds most.
func (o *Optimum) capAges(curves []index.Curve, slack, most float64) (states float64, done bool) {
	loss := func(i, a int) float64 { return (curves[i].Top - curves[i].At(a)) / float64(a) }
	o.Cap = make([]int, len(curves))
	now, gain := make([]float64, len(curves)), make([]float64, len(curves))
	raise := func(i int) {
		o.Cap[i]++
		a := o.Cap[i]
		now[i] = loss(i, a)
		gain[i] = (now[i] - loss(i, a+1)) / math.Log1p(1/float64(a))
	}
	for i := range o.Cap {
		raise(i)
	}
	states = 1
	for {
		if o.Truncation = floats.Sum(now); o.Truncation <= slack {
			return states, true
		}
		if states > most {
			return states, false
		}
		i := floats.MaxIdx(gain)
		a := float64(o.Cap[i])
		raise(i)
		states *= (a + 1) / a
	}
}

// largestSets lists the sets of sources that fit the budget and to which no
// further source can be added.
func largestSets(in env.Instance) ([][]int, error) {
	const most = 1 << 16
	var (
		sets [][]int
		cur  []int
		walk func(i int, left, skipped float64) bool
	)
	// skipped is the least cost of a source that was left out.
	walk = func(i int, left, skipped float64) bool {
		if i == len(in.Sources) {
			if !env.Fits(in.Budget-left+skipped, in.Budget) {
				sets = append(sets, append([]int(nil), cur...))
			}
			return len(sets) <= most
		}
		c := in.Sources[i].Cost
		if env.Fits(in.Budget-left+c, in.Budget) {
			cur = append(cur, i)
			if !walk(i+1, left-c, skipped) {
				return false
			}
			cur = cur[:len(cur)-1]
		}
		return walk(i+1, left, math.Min(skipped, c))
	}
	if !walk(0, in.Budget, math.Inf(1)) {
		return nil, fmt.Errorf("more than %d sets of sources fit the budget; allowed are as many", most)
	}
	return sets, nil
}

// ageCell is what there is to know of one source at one age.
type ageCell struct {
	earn float64 // x, by a crawl
	move int     // its part of the next state's number without a crawl
}

// fill builds the tables and returns the number of states.
func (t *jointAges) fill(curves []index.Curve, caps []int, sets [][]int) int {
	t.cap, t.sets = caps, sets
	t.cell = make([][]ageCell, len(caps))
	step := 1
	for i, m := range caps {
		t.cell[i] = make([]ageCell, m)
		for a := range t.cell[i] {
			t.cell[i][a] = ageCell{curves[i].At(a + 1), min(a+1, m-1) * step}
		}
		step *= m
	}
	return step
}

// best returns the greatest Σx + V(s′) at the joint ages and the set that
// reaches it; of equal ones the first. Ages count from 0 here.
func (t *jointAges) best(age []int, v []float64) (float64, int) {
	base := 0
	for i, a := range age {
		base += t.cell[i][a].move
	}
	most, arg := negInf, 0
	for k, set := range t.sets {
		s, r := base, 0.0
		for _, i := range set {
			c := t.cell[i][age[i]]
			s -= c.move // to age 0, whose part of the number is 0
			r += c.earn
		}
		if r += v[s]; r > most {
			most, arg = r, k
		}
	}
	return most, arg
}

// start sets V to the sum of the value functions of the single sources at the
// price of the relaxed problem, from which the first sweep yields about the
// relaxed bound.
func (o *Optimum) start(ctx context.Context, r index.Relaxed, curves []index.Curve) error {
	single := make([][]float64, len(curves))
	for i := range curves {
		c := &curves[i]
		charge := r.Price * c.Cost
		beta := math.Max(0, math.Max(c.Yield(r.Short[i], charge), c.Yield(r.Long[i], charge)))
		single[i] = make([]float64, o.Cap[i])
		for a := range single[i] {
			// Linear in the age below the threshold, x − λC − β from there.
			single[i][a] = math.Max(float64(a)*beta, c.At(a+1)-charge-beta)
			if a+1 < r.Short[i] {
				single[i][a] = float64(a) * beta
			}
		}
	}
	o.value, o.age = make([]float64, o.States), make([]int, len(curves))
	return o.each(ctx, func(s int) {
		for i, a := range o.age {
			o.value[s] += single[i][a]
		}
	})
}

// checkStates is how many states are gone through between looks at the context.
const checkStates = 1 << 12

// each calls f for every state with its joint ages in o.age.
func (o *Optimum) each(ctx context.Context, f func(s int)) error {
	clear(o.age)
	for s := range o.States {
		if s%checkStates == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		f(s)
		o.tab.increment(o.age)
	}
	return nil
}

// increment goes on to the joint ages of the next state number.
func (t *jointAges) increment(age []int) {
	for i := range age {
		if age[i]++; age[i] < t.cap[i] {
			return
		}
		age[i] = 0
	}
}

// iterate goes on to the given number of sweeps, or until the bounds are close.
func (o *Optimum) iterate(ctx context.Context, gap float64, sweeps int) (done bool, err error) {
	next := make([]float64, o.States)
	for ; o.Sweeps < sweeps; o.Sweeps++ {
		most := negInf
		err := o.each(ctx, func(s int) {
			v, _ := o.tab.best(o.age, o.value)
			most = math.Max(most, v-o.value[s])
			// Half a step: the optimum is a cycle, and full steps would go
			// round in it for ever.
			next[s] = (v + o.value[s]) / 2
		})
		if err != nil {
			return false, err
		}
		o.Upper = math.Min(o.Upper, most+o.Truncation)
		if o.Sweeps%10 == 0 {
			if o.Lower = o.follow(ctx); o.Upper-o.Truncation-o.Lower <= gap*o.Upper {
				o.Sweeps++
				return true, nil
			}
		}
		// Relative to the first state, lest V grow for ever.
		zero := next[0]
		for s := range next {
			next[s] -= zero
		}
		o.value, next = next, o.value
	}
	return false, nil
}

// follow returns the average reward of the greedy policy of V on the cycle that
// it enters from the start, or less if the context is done. Capped ages count
// with x(cap), less than they earn in truth.
func (o *Optimum) follow(ctx context.Context) float64 {
	// Brent's method: the runner goes on from a mark that is moved to it
	// after 1, 2, 4, … steps, and is in the cycle once it meets the mark.
	mark, age := make([]int, len(o.Cap)), make([]int, len(o.Cap))
	for limit := 1; ctx.Err() == nil; limit *= 2 {
		copy(mark, age)
		reward := 0.0
		for cycle := 1; cycle <= limit; cycle++ {
			reward += o.tab.step(age, o.value)
			if slices.Equal(age, mark) {
				return reward / float64(cycle)
			}
			if cycle%checkStates == 0 && ctx.Err() != nil {
				break
			}
		}
	}
	return negInf
}

// step crawls what is best by V, changes the ages and returns what was earned.
func (t *jointAges) step(age []int, v []float64) float64 {
	_, k := t.best(age, v)
	var r float64
	for _, i := range t.sets[k] {
		r += t.cell[i][age[i]].earn
		age[i] = -1
	}
	for i := range age {
		age[i] = min(age[i]+1, t.cap[i]-1)
	}
	return r
}

// Select implements env.Policy: the greedy set of V at the ages of o.
func (o *Optimum) Select(dst []int, m *env.Model) []int {
	for i, c := range o.Cap {
		o.age[i] = min(m.Age(i), c) - 1
	}
	_, k := o.tab.best(o.age, o.value)
	return append(dst, o.tab.sets[k]...)
}
