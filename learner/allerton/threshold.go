package allerton

import "math"

// Logit returns the probability of a crawl f = eˡ/(1+eˡ) at the exponent l, and
// 1 − f, both to full relative precision. Beyond |l| = 40 the smaller one is
// less than 2⁻⁵⁷, below what a uniform draw of 53 bits and the sum 1 − f can
// tell from 0, and is set to 0 without taking an exponential.
func Logit(l float64) (f, g float64) {
	switch {
	case l >= saturated:
		return 1, 0
	case l <= -saturated:
		return 0, 1
	case l >= 0:
		t := math.Exp(-l)
		f = 1 / (1 + t)
		return f, t * f
	default:
		t := math.Exp(l)
		g = 1 / (1 + t)
		return t * g, g
	}
}

const saturated = 40

// Thresholds are the paper's parametrised thresholds of N sources,
//
//	Tᵢ(x₋ᵢ) = q₀ + q₁S + q₂S²,   S = Σ_{k≠i} x_k,
//
// projected on [uᵢ, uᵢ/(1−αᵢ)] (Allerton, section V; the paper prints q₁ for
// the square as well), and the probability of a crawl
//
//	fᵢ = eˡ/(1+eˡ),   l = κ(xᵢ − Tᵢ − shift)
//
// of section III.
type Thresholds struct {
	Kappa, Shift float64
	Lo, Hi       []float64    // u and u*
	Q            [][3]float64 // q, in interest, 1 and 1/interest
}

// Sum returns Σ x_k in the order in which At expects it.
func Sum(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v
	}
	return s
}

// At returns the threshold of source i after projection where the other
// sources' states sum to s, and whether the projection binds.
func (t *Thresholds) At(i int, s float64) (threshold float64, binds bool) {
	q := &t.Q[i]
	raw := q[0] + (q[1]+q[2]*s)*s
	switch lo, hi := t.Lo[i], t.Hi[i]; {
	case raw < lo:
		return lo, true
	case raw <= hi:
		return raw, false
	default: // also where q₁S and q₂S² overflowed against each other
		return hi, true
	}
}

// Exponent returns l of source i in state x, where the states of the other
// sources sum to s, and whether the projection binds.
func (t *Thresholds) Exponent(i int, x, s float64) (l float64, binds bool) {
	threshold, binds := t.At(i, s)
	return t.Kappa * (x - threshold - t.Shift), binds
}

// Score returns ∂ log p/∂Tᵢ, given f and 1 − f as [Logit] returns them. With
// ψ = (1, S, S²) the score (8) of Allerton is
//
//	∂ log p/∂q_j = ψ_j ∂ log p/∂Tᵢ = κ ψ_j (fᵢ − νᵢ)
//
// that is −κψ_j(1 − fᵢ) for a source that was crawled and +κψ_j fᵢ for one that
// was not.
func (t *Thresholds) Score(f, g float64, crawled bool) float64 {
	if crawled {
		return -t.Kappa * g
	}
	return t.Kappa * f
}
