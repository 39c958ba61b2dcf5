package baselines

import (
	"math"

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

func newByIndex[O env.Knowledge](t env.Terms, fill func(key []float64, o *O)) env.Policy[O] {
	return &byIndex[O]{sel: NewSelector(t.Costs, t.Budget), key: make([]float64, len(t.Costs)), fill: fill}
}

// Select implements env.Policy.
func (p *byIndex[O]) Select(dst []int, o *O) []int {
	p.fill(p.key, o)
	return p.sel.Top(dst, p.key)
}

// NewWhittle returns the exact Whittle index policy on the mean state: the
// policy of both papers' deterministic experiments. On those states the Remark's
// form holds, which needs no logarithm.
func NewWhittle(in env.Instance) env.Policy[env.Model] {
	n := len(in.Sources)
	loss, gain, inv := make([]float64, n), make([]float64, n), make([]float64, n)
	for i, s := range in.Sources {
		loss[i], gain[i], inv[i] = -math.Expm1(-s.Decay), s.Gain(), 1/s.Cost
	}
	return newByIndex(in.Terms(), func(key []float64, o *env.Model) {
		for i, x := range o.Mean {
			// γ = (1/C) [s((1−α)x − u) + x]
			key[i] = (float64(o.Age(i))*(loss[i]*x-gain[i]) + x) * inv[i]
		}
	})
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
	return newByIndex(in.Terms(), func(key []float64, o *env.Observed) {
		for i, x := range o.State {
			key[i] = f(src[i], x)
		}
	})
}
