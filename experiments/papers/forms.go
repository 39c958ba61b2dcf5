package papers

import (
	"math"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
)

// form is a way to evaluate the printed index at the states of the stochastic
// model. On the states of the mean dynamics most forms are one:
//
//	Theorem 1:  γ = (1/C) [η((1−α)x − u) + u(1 − α^η)/(1−α)]
//	Remark:     γ = (1/C) [η((1−α)x − u) + x]
//
// with η = ⌈log_α(1 − x/u*)⌉ in Theorem 1 and no ⌈·⌉ in the Remark. The slides
// print the Remark's form with ⌈·⌉ and for any state: where η jumps, at the
// states of the mean dynamics, that index falls by u − (1−α)x.
type form struct {
	remark bool
	round  func(float64) float64
	above  func(f form, s env.Source, x float64) float64 // where the logarithm has no value, x ≥ u*
}

// index returns γ(x).
func (f form) index(s env.Source, x float64) float64 {
	q := 1 - x/s.Ceiling()
	if !(q > 0) {
		return f.above(f, s, x)
	}
	return f.at(s, x, f.round(-math.Log(q)/s.Decay))
}

// at returns γ(x) for a given η.
func (f form) at(s env.Source, x, eta float64) float64 {
	if f.remark && !math.IsInf(eta, 1) {
		return index.Remark(x, s.Ceiling(), -math.Expm1(-s.Decay), eta) / s.Cost
	}
	return index.Theorem1(s, x, eta)
}

// exact is the logarithm without rounding.
func exact(eta float64) float64 { return eta }

// zero is log⁺ as printed: η = 0.
func zero(f form, s env.Source, x float64) float64 { return f.at(s, x, 0) }

// extended is the limit from below, γ = x/C.
func extended(_ form, s env.Source, x float64) float64 { return x / s.Cost }

// realPart takes the real part of the logarithm, log|1 − x/u*|, as numeric
// software does that compares complex numbers by their real part.
func realPart(f form, s env.Source, x float64) float64 {
	if x == s.Ceiling() {
		return x / s.Cost
	}
	return f.at(s, x, f.round(-math.Log(x/s.Ceiling()-1)/s.Decay))
}

// modulus goes on with the complex logarithm, rounds both of its parts, and
// takes the modulus of the index, as numeric software does that compares
// complex numbers by their modulus.
func modulus(f form, s env.Source, x float64) float64 {
	if x == s.Ceiling() {
		return x / s.Cost
	}
	re, im := f.round(-math.Log(x/s.Ceiling()-1)/s.Decay), f.round(-math.Pi/s.Decay)
	m := -math.Expm1(-s.Decay)*x - s.Gain()
	if f.remark {
		return math.Hypot(re*m+x, im*m) / s.Cost
	}
	// α^η = α^re (cos(im ln α) + i sin(im ln α))
	size, angle := s.Ceiling()*math.Exp(-s.Decay*re), -im*s.Decay
	return math.Hypot(re*m+s.Ceiling()-size*math.Cos(angle), im*m-size*math.Sin(angle)) / s.Cost
}

// clipped takes the logarithm of the least number that a float64 tells from 1.
func clipped(f form, s env.Source, x float64) float64 {
	return f.at(s, x, f.round(-math.Log(0x1p-52)/s.Decay))
}

// first crawls every source above its ceiling before all others.
func first(_ form, _ env.Source, x float64) float64 { return 1e9 + x }

// byForm is the policy that crawls by an index of the true state.
type byForm struct {
	in   env.Instance
	form form
	sel  *baselines.Selector
	key  []float64
}

var _ env.Policy[env.Observed] = (*byForm)(nil)

func newByForm(in env.Instance, f form) *byForm {
	t := in.Terms()
	return &byForm{in: in, form: f, sel: baselines.NewSelector(t.Costs, t.Budget), key: make([]float64, len(t.Costs))}
}

// Select implements env.Policy.
func (p *byForm) Select(dst []int, o *env.Observed) []int {
	for i, x := range o.State {
		p.key[i] = p.form.index(p.in.Sources[i], x)
	}
	return p.sel.Top(dst, p.key)
}
