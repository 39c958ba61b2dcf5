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
func (f form) index(s env.Source, x float64) complex128 {
	ceiling := s.Ceiling()
	q := 1 - x/ceiling
	eta := complex(-math.Log(q)/s.Decay, 0)
	if q < 0 {
		eta = f.above(s.Decay, q)
	}
	if cmplx.IsInf(eta) {
		return complex(x/s.Cost, 0) // the limit at u*
	}
	eta = complex(f.round(real(eta)), f.round(imag(eta)))
	gamma := eta * complex((1-s.Factor())*x-s.Gain(), 0)
	if f.remark {
		gamma += complex(x, 0)
	} else {
		gamma += complex(ceiling, 0) * (1 - cmplx.Exp(complex(-s.Decay, 0)*eta))
	}
	return gamma / complex(s.Cost, 0)
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

// forms are the readings of the index by their names.
var forms = map[string]form{
	"theorem-eta":     {false, math.Ceil, realLog, false},
	"theorem-real":    {false, math.Ceil, complexLog, false},
	"theorem-modulus": {false, math.Ceil, complexLog, true},
	"theorem-clipped": {false, math.Ceil, clipped, false},
	"slides":          {true, math.Ceil, zero, false},
	"slides-real":     {true, math.Ceil, complexLog, false},
	"slides-modulus":  {true, math.Ceil, complexLog, true},
	"slides-clipped":  {true, math.Ceil, clipped, false},
	"remark":          {true, exact, zero, false},
	// An η that is rounded up although it is whole falls into the next epoch.
	"slides-exceeding": {true, func(eta float64) float64 { return math.Floor(eta+1e-9) + 1 }, zero, false},
}

// byForm is the policy that crawls by an index of the true state.
func byForm(in env.Instance, f form) env.Agent {
	gamma := make([]complex128, len(in.Sources))
	return env.NewAgent(baselines.NewByIndex(in.Terms(), func(key []float64, o *env.Observed) {
		isReal := true
		for i, x := range o.State {
			gamma[i] = f.index(in.Sources[i], x)
			isReal = isReal && imag(gamma[i]) == 0
		}
		for i, g := range gamma {
			key[i] = real(g)
			if f.modulus && !isReal {
				key[i] = cmplx.Abs(g)
			}
		}
	}))
}
