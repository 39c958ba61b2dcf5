package baselines

import (
	"math"

	"ephemera/baselines/calendar"
	"ephemera/baselines/index"
	"ephemera/env"
)

var negInf = math.Inf(-1)

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

// NewWhittle returns the exact Whittle index policy on the mean state, which
// follows from the age: the policy of both papers' deterministic experiments.
func NewWhittle(in env.Instance) env.Policy[env.Model] {
	var w calendar.Whittle
	return newByAge(in.Terms(), w, func(i int) calendar.Params { return w.Of(in.Sources[i]) })
}

// NewWhittlePacked is NewWhittle with the crawls of an epoch chosen by
// [Selector.Pack], which matters where costs differ.
func NewWhittlePacked(in env.Instance) env.Policy[env.Model] {
	var w calendar.Whittle
	s := newScan(in.Terms(), w, func(i int) calendar.Params { return w.Of(in.Sources[i]) })
	s.packed = true
	return s
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
