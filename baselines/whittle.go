package baselines

import (
	"ephemera/baselines/index"
	"ephemera/env"
)

// byIndex is a policy that crawls by decreasing index.
type byIndex[O env.Knowledge] struct {
	sel *Selector
	key []float64
	// fill writes the index of every source into key.
	fill func(key []float64, o *O)
}

// NewByIndex returns the policy that crawls by decreasing index; fill writes the
// index of every source into key.
func NewByIndex[O env.Knowledge](t env.Terms, fill func(key []float64, o *O)) env.Policy[O] {
	return &byIndex[O]{sel: NewSelector(t.Costs, t.Budget), key: make([]float64, len(t.Costs)), fill: fill}
}

// Select implements env.Policy.
func (p *byIndex[O]) Select(dst []int, o *O) []int {
	p.fill(p.key, o)
	return p.sel.Top(dst, p.key)
}

// whittleAt returns the exact Whittle index of source i at an age, in interest per
// budget unit, or −Inf where it is below 0.
func whittleAt(in env.Instance) ageIndex {
	curves := make([]index.Curve, len(in.Sources))
	for i, s := range in.Sources {
		curves[i] = index.NewCurve(s)
	}
	return func(i, age int) float64 {
		c := &curves[i]
		charge := c.Index(age)
		if charge < 0 && !c.Concave() {
			return negInf
		}
		return charge / c.Cost
	}
}

// NewWhittle returns the exact Whittle index policy on the harvest curves, any
// [index.Curve]: for the exponential law the policy of both papers'
// deterministic experiments. A source whose index is below 0 is not crawled,
// even if budget is left, since it is worth more to wait.
func NewWhittle(in env.Instance) env.Policy[env.Model] {
	return NewByAge(in.Terms(), whittleAt(in))
}

// NewWhittlePacked is NewWhittle with the crawls of an epoch chosen by
// [Selector.Pack], which matters where costs differ.
func NewWhittlePacked(in env.Instance) env.Policy[env.Model] {
	p := newByAge(in.Terms(), whittleAt(in), fewAreCrawled(in.Terms()))
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
	src := in.Sources
	return NewByIndex(in.Terms(), func(key []float64, o *env.Observed) {
		for i, x := range o.State {
			key[i] = f(src[i], x)
		}
	})
}
