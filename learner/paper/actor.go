package paper

import (
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// actor chooses by thresholds, and keeps what the ascent needs.
type actor struct {
	*thresholds
	y     *coordinate
	shift float64
	kappa float64             // κ(n)
	sel   *baselines.Selector // nil: each source by itself
	rand  *stream.Rand

	x         []float64 // X(n)
	sum       float64   // Σ X(n)
	margin    []float64 // y(x) − y(T) − shift
	f, g      []float64 // fᵢ and 1 − fᵢ
	threshold []float64 // Tᵢ
	raw       []float64 // Tᵢ before projection
}

func newActor(t *thresholds, y *coordinate, shift float64) actor {
	v := func() []float64 { return make([]float64, len(t.q)) }
	return actor{thresholds: t, y: y, shift: shift, x: v(), margin: v(), f: v(), g: v(), threshold: v(), raw: v()}
}

// takeState takes in a state.
//
//	fᵢ = eˡ/(1 + eˡ),   l = κ(y(xᵢ) − y(Tᵢ) − shift)     (section III, where y(x) = x)
func (a *actor) takeState(x []float64) {
	if len(x) != len(a.x) {
		panic(fmt.Sprintf("paper: %d states for %d sources", len(x), len(a.x)))
	}
	copy(a.x, x)
	a.sum = 0
	for _, v := range x {
		a.sum += v
	}
	for i, v := range x {
		t, raw := a.thresholds.at(i, a.sum-v)
		margin := a.y.of(i, v) - a.y.of(i, t) - a.shift
		a.threshold[i], a.raw[i], a.margin[i] = t, raw, margin
		a.f[i], a.g[i] = logit(a.kappa * margin)
	}
}

// Select implements env.Policy. Without a selector one number is drawn for each
// source and epoch, whatever the thresholds are.
func (a *actor) Select(dst []int, o *env.Model) []int {
	a.takeState(o.Mean)
	if a.sel != nil {
		return a.sel.Within(&o.Online).Top(dst, a.margin)
	}
	for i, f := range a.f {
		if float64(a.rand.Uint64()>>11)*0x1p-53 < f {
			dst = append(dst, i)
		}
	}
	return dst
}

// logit returns f = eˡ/(1+eˡ) and 1 − f, both to full relative precision. Beyond
// |l| = 40 the smaller one is less than 2⁻⁵⁷, below what a uniform draw of 53
// bits and the sum 1 − f can tell from 0, and is set to 0.
func logit(l float64) (f, g float64) {
	switch {
	case l >= saturated:
		return 1, 0
	case l <= -saturated:
		return 0, 1
	}
	t := math.Exp(-l)
	f = 1 / (1 + t)
	return f, t * f
}

const saturated = 40
