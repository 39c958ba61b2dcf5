package index

import "math"

// lambert returns the t ≥ 0 with
//
//	t − log(1+t) = l
//
// for l ≥ 0. It is t = −1 − W₋₁(−e^(−1−l)), the lower branch of Lambert's
// function. At its branch point, l = 0, the argument of W loses all digits; l
// and t keep theirs.
func lambert(l float64) float64 {
	q := math.Sqrt(2 * l)
	switch {
	case q < 1e-4:
		return q * (1 + q*(1./3+q/36))
	case !(q < tableEnd):
		return steps(l, l+math.Log1p(l+q)) // t = l + log(1+t), and t ≤ l + q
	}
	return halley(l, nearly(q))
}

// nearly returns t to eight digits, relative to 1 + t, for l = q²/2. In q the
// function is smooth, t = q + q²/3 + …, also at the branch point.
func nearly(q float64) float64 {
	if !(q < tableEnd) {
		return lambert(q * q / 2)
	}
	k := int(q * tableFine)
	a, b := &table[k], &table[k+1]
	// Cubic Hermite interpolation.
	p := q*tableFine - float64(k)
	d := b.t - a.t
	return a.t + p*(a.slope+p*((3*d-2*a.slope-b.slope)+p*(a.slope+b.slope-2*d)))
}

// halley takes a step of Halley's method for f = t − log(1+t) − l, which
// triples the digits: f′ = t/(1+t), f″/f′ = 1/(t(1+t)).
func halley(l, t float64) float64 {
	d := (subLog1p(t) - l) * (1 + t) / t
	return t - d/(1-d/(2*t*(1+t)))
}

// steps takes steps from a t that is right to some per cent.
func steps(l, t float64) float64 {
	if math.IsInf(l, 1) {
		return l
	}
	for range 3 {
		t = halley(l, t)
	}
	return t
}

const (
	tableEnd  = 12
	tableFine = 32 // nodes per unit of q
)

// table holds t(q) and its slope over one step.
var table = func() (v [tableEnd*tableFine + 1]struct{ t, slope float64 }) {
	v[0].slope = 1. / tableFine
	for k := 1; k < len(v); k++ {
		q := float64(k) / tableFine
		t := steps(q*q/2, q+q*q/(3+q))
		// dt/dq = q(1+t)/t
		v[k].t, v[k].slope = t, q*(1+t)/t/tableFine
	}
	return v
}()

// subLog1p returns t − log(1+t) for t ≥ 0 without cancellation.
func subLog1p(t float64) float64 {
	if t > 0.5 {
		return t - math.Log(1+t)
	}
	// log(1+t) = 2 artanh r with r = t/(2+t), and t − 2r = t r.
	r := t / (2 + t)
	r2 := r * r
	sum := 1./3 + r2*(1./5+r2*(1./7+r2*(1./9+r2*(1./11+r2*(1./13+r2*(1./15+r2*(1./17+r2*(1./19+r2*(1./21+r2*(1./23+r2/25))))))))))
	return t*r - 2*r*r2*sum
}
