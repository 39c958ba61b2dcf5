package baselines

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ephemera/baselines/index"
	"ephemera/env"
)

// OptimumOptions are the settings of [SolveOptimum]; 0 stands for the default.
type OptimumOptions struct {
	Dynamics index.Dynamics
	// Truncation bounds what may be lost by not telling ages beyond a cap
	// apart, as a share of the relaxed bound. Default 1e-7.
	Truncation float64
	// Gap ends the iteration once upper and lower bound are as close, as a
	// share of the upper one, the truncation not counted. Default 1e-9.
	Gap float64
	// Sweeps is the most sweeps over the states. Default 20000.
	Sweeps int
	// Memory is the most memory that may be used, bytes. Default 2 GiB.
	Memory float64
	// Work is the most pairs of a state and a set of sources that may be looked
	// at. Some 10 ns each; a sweep takes all pairs, and an instance whose
	// relaxed bound is not reached takes some hundred sweeps. Default 3e9.
	Work float64
}

func (o OptimumOptions) defaults() OptimumOptions {
	if o.Truncation == 0 {
		o.Truncation = 1e-7
	}
	if o.Gap == 0 {
		o.Gap = 1e-9
	}
	if o.Sweeps == 0 {
		o.Sweeps = 20000
	}
	if o.Memory == 0 {
		o.Memory = 2 << 30
	}
	if o.Work == 0 {
		o.Work = 3e9
	}
	return o
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
	Cycle      int   // epochs after which the policy repeats itself

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
// error that says the size when the instance needs more memory than allowed,
// and an error with the bounds reached when the iteration does not end.
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
func SolveOptimum(in env.Instance, opt OptimumOptions) (*Optimum, error) {
	opt = opt.defaults()
	relaxed := index.Relax(in, opt.Dynamics)
	o := &Optimum{tab: &jointAges{}}
	curves := make([]index.Curve, len(in.Sources))
	for i, s := range in.Sources {
		if !env.Fits(s.Cost, in.Budget) {
			s.Rate = 0 // never crawled: its age makes no difference
		}
		curves[i] = index.NewCurve(s, opt.Dynamics)
	}
	const state = 2 * 8 // bytes, for V and TV
	size, all := o.capAges(curves, opt.Truncation*relaxed.Bound, 1000*opt.Memory/state)
	if need := size * state; need > opt.Memory {
		more := ""
		if !all {
			more = "more than "
		}
		return nil, fmt.Errorf("exact optimum of instance %q: the joint ages of %d sources make %s%.3g states, which need %s%.3g GiB; allowed are %.3g GiB",
			in.ID, len(curves), more, size, more, need/(1<<30), opt.Memory/(1<<30))
	}
	sets, err := largestSets(in)
	if err != nil {
		return nil, err
	}
	if pairs := size * float64(len(sets)); few*pairs > opt.Work {
		return nil, tooLong(in.ID, size, len(sets), few, opt.Work)
	}
	o.States = o.tab.fill(curves, o.Cap, sets)
	o.start(relaxed, curves)
	return o, o.iterate(in.ID, opt)
}

// A bound that is reached takes few sweeps, another one many.
const few, many = 10, 300

func tooLong(id string, states float64, sets, sweeps int, work float64) error {
	return fmt.Errorf("exact optimum of instance %q: %d sweeps over %.3g states and %d sets of sources make %.3g pairs; allowed are %.3g",
		id, sweeps, states, sets, float64(sweeps)*states*float64(sets), work)
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
		return nil, fmt.Errorf("exact optimum of instance %q: more than %d sets of sources fit the budget; allowed are as many", in.ID, most)
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
func (o *Optimum) start(r index.Relaxed, curves []index.Curve) {
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
	o.value = make([]float64, o.States)
	age := make([]int, len(curves))
	for s := range o.value {
		for i, a := range age {
			o.value[s] += single[i][a]
		}
		o.tab.increment(age)
	}
	o.age = age
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

func (o *Optimum) iterate(id string, opt OptimumOptions) error {
	next := make([]float64, o.States)
	o.Lower, o.Upper = negInf, math.Inf(1)
	for o.Sweeps < opt.Sweeps {
		o.Sweeps++
		most := negInf
		clear(o.age)
		for s := range next {
			v, _ := o.tab.best(o.age, o.value)
			most = math.Max(most, v-o.value[s])
			// Half a step: the optimum is a cycle, and full steps would go
			// round in it for ever.
			next[s] = (v + o.value[s]) / 2
			o.tab.increment(o.age)
		}
		o.Upper = math.Min(o.Upper, most+o.Truncation)
		if o.Sweeps%10 == 1 {
			if o.Lower, o.Cycle = o.follow(); o.Upper-o.Truncation-o.Lower <= opt.Gap*o.Upper {
				return nil
			}
			if pairs := float64(o.States) * float64(len(o.tab.sets)); o.Sweeps == 1 && many*pairs > opt.Work {
				return tooLong(id, float64(o.States), len(o.tab.sets), many, opt.Work)
			}
		}
		// Relative to the first state, lest V grow for ever.
		zero := next[0]
		for s := range next {
			next[s] -= zero
		}
		o.value, next = next, o.value
	}
	o.Lower, o.Cycle = o.follow()
	return fmt.Errorf("exact optimum: between %v and %v after %d sweeps over %d states; allowed is a gap of %v of the upper bound",
		o.Lower, o.Upper, o.Sweeps, o.States, opt.Gap)
}

// follow returns the average reward of the greedy policy of V on the cycle that
// it enters from the start, and the length of the cycle. Capped ages count with
// x(cap), less than they earn in truth.
func (o *Optimum) follow() (reward float64, cycle int) {
	// Brent's method: the runner goes on from a mark that is moved to it
	// after 1, 2, 4, … steps, and is in the cycle once it meets the mark.
	mark, age := make([]int, len(o.Cap)), make([]int, len(o.Cap))
	for limit := 1; ; limit *= 2 {
		copy(mark, age)
		reward = 0
		for cycle = 1; cycle <= limit; cycle++ {
			reward += o.tab.step(age, o.value)
			if slices.Equal(age, mark) {
				return reward / float64(cycle), cycle
			}
		}
	}
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
