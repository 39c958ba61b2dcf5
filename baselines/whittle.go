package baselines

import (
	"math"

	"ephemera/env"
)

var negInf = math.Inf(-1)

// WhittleIndex returns the exact Whittle index γ(x) of Theorem 1 (TCNS; (4)-(5)
// of Allerton) at any state x ≥ 0, in interest per budget unit:
//
//	η = ⌈log_α⁺((u − (1−α)x)/u)⌉
//	γ = (1/C) [η((1−α)x − u) + u(1 − α^η)/(1−α)]
//
// At x ≥ u* the printed log⁺ makes η = 0 and the index 0. The dynamic
// programming equation gives γ = x/C there, which is also the limit η → ∞, and
// that is what is returned. See [WhittleIndexLiteral] for the printed form.
func WhittleIndex(s env.Source, x float64) float64 {
	if x >= s.Ceiling() {
		return x / s.Cost
	}
	return whittleBelow(s, x)
}

// WhittleIndexLiteral is Theorem 1 as printed: 0 at x ≥ u*. It is there to
// reproduce published figures.
func WhittleIndexLiteral(s env.Source, x float64) float64 {
	if x >= s.Ceiling() {
		return 0
	}
	return whittleBelow(s, x)
}

func whittleBelow(s env.Source, x float64) float64 {
	u, ceil := s.Gain(), s.Ceiling()
	// log_α(1 − x/u*) = −log(1 − x/u*)/c
	eta := math.Ceil(-math.Log1p(-x/ceil) / s.Decay)
	if math.IsInf(eta, 1) {
		return x / s.Cost
	}
	oneMinusAlpha := -math.Expm1(-s.Decay)
	return (eta*(oneMinusAlpha*x-u) - ceil*math.Expm1(-s.Decay*eta)) / s.Cost
}

// WhittleIndexAtAge returns the index on the states that the mean dynamics
// reach, x = u*(1 − α^s) with s the age in epochs. There η = s, and Theorem 1
// becomes the form of the Remark below it:
//
//	γ = (1/C) [s((1−α)x − u) + x]
func WhittleIndexAtAge(s env.Source, age int) float64 {
	x := s.MeanState(age)
	return (x - float64(age)*s.Gain()*math.Exp(-s.Decay*float64(age))) / s.Cost
}

// index is a policy that crawls by decreasing index.
type index[O env.Knowledge] struct {
	sel *Selector
	key []float64
	// fill writes the index of every source into key.
	fill func(key []float64, o *O)
}

func newIndex[O env.Knowledge](t env.Terms, fill func(key []float64, o *O)) env.Policy[O] {
	return &index[O]{sel: NewSelector(t.Costs, t.Budget), key: make([]float64, len(t.Costs)), fill: fill}
}

// Select implements env.Policy.
func (p *index[O]) Select(dst []int, o *O) []int {
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
	return newIndex(in.Terms(), func(key []float64, o *env.Model) {
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
	f := WhittleIndex
	if literal {
		f = WhittleIndexLiteral
	}
	src := in.Sources
	return newIndex(in.Terms(), func(key []float64, o *env.Observed) {
		for i, x := range o.State {
			key[i] = f(src[i], x)
		}
	})
}
