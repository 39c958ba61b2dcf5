package index

import (
	"math"
)

// Lambert returns the t ≥ 0 with
//
//	t − log(1+t) = l
//
// for l ≥ 0. It is t = −1 − W₋₁(−e^(−1−l)), the lower branch of Lambert's
// function. At its branch point, l = 0, the argument of W loses all digits; l
// and t keep theirs.
//
// Newton's method comes from the right, where the convex left side is above l,
// and so falls monotonically.
func Lambert(l float64) float64 {
	if l == 0 || math.IsInf(l, 1) {
		return l
	}
	// t ≤ √(2l) + l on both ends: t²/2 − t³/3 near 0, t − log(1+t) far out.
	t := math.Sqrt(2*l) + l
	for range 50 {
		// (t − log(1+t))′ = t/(1+t)
		d := (subLog1p(t) - l) * (1 + t) / t
		t -= d
		if math.Abs(d) <= 1e-16*t {
			break
		}
	}
	return t
}

// subLog1p returns t − log(1+t) for t ≥ 0 without cancellation.
func subLog1p(t float64) float64 {
	if t > 0.5 {
		return t - math.Log1p(t)
	}
	// log(1+t) = 2 artanh r with r = t/(2+t), and t − 2r = t r.
	r := t / (2 + t)
	r2 := r * r
	var sum float64
	for k := 25; k >= 3; k -= 2 {
		sum = sum*r2 + 1/float64(k)
	}
	return t*r - 2*r*r2*sum
}
