package baselines

import (
	"ephemera/baselines/index"
	"ephemera/env"
)

// NewLagrangian returns the Lagrangian index policy on the harvest curves, at the
// price that is optimal for the relaxed problem ([index.Relax]). It panics if the
// instance is not valid.
func NewLagrangian(in env.Instance) env.Policy[env.Model] {
	single, price := make([]index.Lagrange, len(in.Sources)), index.Relax(in).Price
	for i, s := range in.Sources {
		single[i] = index.NewLagrange(s, price)
	}
	return NewByAge(in.Terms(), func(i, age int) float64 { return single[i].AtAge(age) })
}

// NewGreedy returns the greedy policy of TCNS, section IX: it crawls by the
// mean interest that has gathered since the last crawl, H(age)/C, per budget
// unit. It uses the whole budget, also on sources that had better wait.
func NewGreedy(in env.Instance) env.Policy[env.Model] {
	src := in.Sources
	return NewByAge(in.Terms(), func(i, age int) float64 { return src[i].Harvest(float64(age)) / src[i].Cost })
}

// NewMyopic returns the policy that crawls by the state that it sees, per
// budget unit: by what it would earn now.
func NewMyopic(in env.Instance) env.Policy[env.Model] {
	costs := in.Terms().Costs
	return NewByIndex(in.Terms(), func(key []float64, o *env.Model) { perCost(key, o.Mean, costs) })
}

// NewMyopicObserved is NewMyopic on the true state.
func NewMyopicObserved(in env.Instance) env.Policy[env.Observed] {
	costs := in.Terms().Costs
	return NewByIndex(in.Terms(), func(key []float64, o *env.Observed) { perCost(key, o.State, costs) })
}

func perCost(key, x, costs []float64) {
	for i, c := range costs {
		key[i] = x[i] / c
	}
}

// NewRoundRobin returns the policy that crawls whichever source has waited
// longest; at equal costs this is round robin. It needs to know nothing.
func NewRoundRobin(t env.Terms) env.Policy[env.Online] {
	return NewByIndex(t, func(key []float64, o *env.Online) {
		for i := range key {
			key[i] = float64(o.Age(i))
		}
	})
}

// NewBestSource returns the policy that crawls the sources with the greatest
// harvest of one epoch per budget unit, H(1)/C, at every epoch, and no others.
func NewBestSource(in env.Instance) env.Policy[env.Model] {
	best := make([]float64, len(in.Sources))
	for i, s := range in.Sources {
		best[i] = s.Harvest(1) / s.Cost
	}
	return NewByIndex(in.Terms(), func(key []float64, _ *env.Model) { copy(key, best) })
}

// NewEvenSchedule returns the schedule that is settled beforehand: it crawls source i
// as evenly as the budget lets it with the frequency f of the relaxed optimum
// ([index.Relax]), after Lefortier et al., CIKM 2013. At each epoch those sources come
// first whose age is the greatest part of their interval 1/f, whether it has passed or
// not. Gaps in whole epochs that do not alternate can move the frequencies. A source of
// frequency 0 is never crawled.
func NewEvenSchedule(in env.Instance) env.Policy[env.Model] {
	frequency := index.Relax(in).Frequency
	return NewByIndex(in.Terms(), func(key []float64, o *env.Model) {
		for i, f := range frequency {
			key[i] = negInf
			if f > 0 {
				key[i] = f * float64(o.Age(i))
			}
		}
	})
}

// online returns the part of what is seen that all levels of knowledge have.
func online[O env.Knowledge](o *O) *env.Online {
	switch o := any(o).(type) {
	case *env.Model:
		return &o.Online
	case *env.Observed:
		return &o.Online
	default:
		return o.(*env.Online)
	}
}

// byIndex is a policy that crawls by decreasing index.
type byIndex[O env.Knowledge] struct {
	sel *Selector
	key []float64
	// fill writes the index of every source into key.
	fill func(key []float64, o *O)
	pack bool // the crawls of an epoch are chosen by the selector's pack
}

// NewByIndex returns the policy that crawls by decreasing index; fill writes the
// index of every source into key.
func NewByIndex[O env.Knowledge](t env.Terms, fill func(key []float64, o *O)) env.Policy[O] {
	return newByIndex(t, fill)
}

func newByIndex[O env.Knowledge](t env.Terms, fill func(key []float64, o *O)) *byIndex[O] {
	return &byIndex[O]{sel: NewSelector(t.Costs, t.Budget), key: make([]float64, len(t.Costs)), fill: fill}
}

// Select implements env.Policy.
func (p *byIndex[O]) Select(dst []int, o *O) []int {
	p.fill(p.key, o)
	all := p.sel.Within(online(o)).candidates(p.key)
	if p.pack {
		return p.sel.pack(dst, all)
	}
	return p.sel.top(dst, all)
}

// WhittleAt returns what [NewWhittle] ranks by: the exact Whittle index of source i at an
// age, in interest per budget unit, or −Inf where it is below 0.
func WhittleAt(in env.Instance) func(i, age int) float64 { return atCurves(curvesOf(in)) }

func curvesOf(in env.Instance) []index.Curve {
	curves := make([]index.Curve, len(in.Sources))
	for i, s := range in.Sources {
		curves[i] = index.NewCurve(s)
	}
	return curves
}

func atCurves(curves []index.Curve) ageIndex {
	return func(i, age int) float64 {
		c := &curves[i]
		charge := c.Index(age)
		if charge < 0 && !c.Concave() {
			return negInf
		}
		return charge / c.Cost
	}
}

// newWhittle ranks by WhittleAt. The first age at which the index reaches a level is
// that of the curve, at a level of 0 or more.
func newWhittle(in env.Instance, sleep bool) *byAge {
	curves := curvesOf(in)
	p := newByAge(in.Terms(), atCurves(curves), sleep)
	search := p.first
	p.first = func(i int, level float64) int {
		if level <= 0 {
			return search(i, level)
		}
		c := &curves[i]
		return c.Age((level-tolerance(level))*c.Cost, 0, index.Never)
	}
	return p
}

// NewWhittle returns the exact Whittle index policy on the harvest curves, any
// [index.Curve]: for the exponential law the policy of both papers'
// deterministic experiments. A source whose index is below 0 is not crawled,
// even if budget is left, since it is worth more to wait.
func NewWhittle(in env.Instance) env.Policy[env.Model] {
	return newWhittle(in, fewAreCrawled(in.Terms()))
}

// NewWhittlePacked is NewWhittle with the crawls of an epoch packed into the budget,
// which matters where costs differ.
func NewWhittlePacked(in env.Instance) env.Policy[env.Model] {
	p := newWhittle(in, fewAreCrawled(in.Terms()))
	p.pack = true
	return p
}

// NewWhittleObserved returns Theorem 1's index policy on the true state, which
// TCNS proposes for the stochastic model. With literal, sources above their
// ceiling have index 0 as printed.
func NewWhittleObserved(in env.Instance, literal bool) env.Policy[env.Observed] {
	f := index.Whittle
	if literal {
		f = index.WhittleLiteral
	}
	return newWhittleObserved(in, f)
}

func newWhittleObserved(in env.Instance, f func(s env.Source, x float64) float64) *byIndex[env.Observed] {
	src := in.Sources
	return newByIndex(in.Terms(), func(key []float64, o *env.Observed) {
		for i, x := range o.State {
			key[i] = f(src[i], x)
		}
	})
}

// NewWhittlePackedObserved is NewWhittleObserved with the crawls of an epoch packed into
// the budget, as NewWhittlePacked does.
func NewWhittlePackedObserved(in env.Instance) env.Policy[env.Observed] {
	p := newWhittleObserved(in, index.Whittle)
	p.pack = true
	return p
}
