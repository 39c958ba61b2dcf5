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
	t := q + q*q/3 // right to a tenth, as the other one is
	switch {
	case q < 1e-4:
		return q * (1 + q*(1./3+q/36))
	case math.IsInf(l, 1):
		return l
	case q > 1:
		t = l + math.Log1p(l+q)
	}
	for range 3 {
		// A step of Halley's method for f = t − log(1+t) − l, which triples the
		// digits: f′ = t/(1+t), f″/f′ = 1/(t(1+t)).
		d := (subLog1p(t) - l) * (1 + t) / t
		t -= d / (1 - d/(2*t*(1+t)))
	}
	return t
}

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
