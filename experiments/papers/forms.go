package papers

import (
	"math"
	"math/cmplx"

	"ephemera/baselines"
	"ephemera/env"
)

// form is a way to evaluate the printed index at the states of the stochastic
// model, with η = ⌈log_α(1 − x/u*)⌉:
//
//	Theorem 1:  γ = (1/C) [η((1−α)x − u) + u*(1 − α^η)]
//	Remark:     γ = (1/C) [η((1−α)x − u) + x]          without ⌈·⌉
//
// The slides print the Remark's form with ⌈·⌉ and for any state. On the states
// of the mean dynamics all are one; just above them, where η steps up, the
// slides' form falls by u − (1−α)x.
type form struct {
	remark bool
	round  func(float64) float64
	above  func(decay, q float64) complex128 // log_α q where it has no value, q = 1 − x/u* < 0
	// modulus compares by modulus as soon as one index is complex, as numeric
	// software does; otherwise the real parts are compared, as other software does.
	modulus bool
}

// index returns γ(x).
func (f form) index(s source, x float64) complex128 {
	q := 1 - x/s.ceiling
	eta := complex(-math.Log(q)/s.decay, 0)
	if q < 0 {
		eta = f.above(s.decay, q)
	}
	if cmplx.IsInf(eta) {
		return complex(x/s.cost, 0) // the limit at u*
	}
	eta = complex(f.round(real(eta)), f.round(imag(eta)))
	gamma := eta * complex((1-s.factor)*x-s.gain, 0)
	if f.remark {
		gamma += complex(x, 0)
	} else {
		gamma += complex(s.ceiling, 0) * (1 - cmplx.Exp(complex(-s.decay, 0)*eta))
	}
	return gamma / complex(s.cost, 0)
}

// exact is the logarithm without rounding.
func exact(eta float64) float64 { return eta }

// What stands for log_α q where q < 0: log⁺ as printed, the real part of the
// logarithm, all of it, and the logarithm of the least number that a float64
// tells from 1.
func zero(float64, float64) complex128   { return 0 }
func realLog(c, q float64) complex128    { return complex(-math.Log(-q)/c, 0) }
func complexLog(c, q float64) complex128 { return complex(-math.Log(-q)/c, -math.Pi/c) }
func clipped(c, _ float64) complex128    { return complex(-math.Log(0x1p-52)/c, 0) }

// source is what the index takes of one.
type source struct{ decay, factor, gain, ceiling, cost float64 }

func sourceOf(s env.Source) source {
	return source{s.Decay, s.Factor(), s.Gain(), s.Ceiling(), s.Cost}
}

// byForm is the policy that crawls by an index of the true state.
type byForm struct {
	form    form
	sources []source
	sel     *baselines.Selector
	gamma   []complex128
	key     []float64
}

var _ env.Policy[env.Observed] = (*byForm)(nil)

func newByForm(in env.Instance, f form) env.Agent {
	t := in.Terms()
	n := len(t.Costs)
	of := make([]source, n)
	for i, s := range in.Sources {
		of[i] = sourceOf(s)
	}
	return env.NewAgent[env.Observed](&byForm{form: f, sources: of, sel: baselines.NewSelector(t.Costs, t.Budget), gamma: make([]complex128, n), key: make([]float64, n)})
}

// Select implements env.Policy.
func (p *byForm) Select(dst []int, o *env.Observed) []int {
	isReal := true
	for i, x := range o.State {
		p.gamma[i] = p.form.index(p.sources[i], x)
		isReal = isReal && imag(p.gamma[i]) == 0
	}
	for i, g := range p.gamma {
		p.key[i] = real(g)
		if p.form.modulus && !isReal {
			p.key[i] = cmplx.Abs(g)
		}
	}
	return p.sel.Top(dst, p.key)
}
