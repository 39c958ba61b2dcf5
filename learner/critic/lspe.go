package critic

import (
	"fmt"
)

// problem is LSPE(0) for the average reward (Yu and Bertsekas, 2009), as Allerton,
// section IV, prints it. With step b and ρ = reward − η:
//
//	B ← B + b [φφᵀ − B],          φ = φ(X(n)),
//	A ← A + b [φ(φ′ − φ)ᵀ − A],   φ′ = φ(X(n+1)),
//	b̄ ← b̄ + b [φρ − b̄],
//	r ← r + γB⁻¹(A r + b̄).
//
// A = sÂ and b̄ = sb̂ share the scalar s of B = sB̂; it cancels in the update of r:
//
//	B⁻¹(A r + b̄) = B̂⁻¹(Â r + b̂).
//
// There may be several rewards, each with its own b̄ and r. [Critic] and [Bank] own
// the numbers and say in what order they are worked on.
type problem struct {
	matrix
	gamma float64
	a     []float64 // Â, ℓ×ℓ row by row
	bbar  []float64 // b̂, ℓ for each reward
	r     []float64 // r, likewise
	v, y  []float64 // scratch: Âr + b̂, and B̂⁻¹ of it
}

// newProblem returns a problem without its numbers.
func newProblem(l int, gamma float64, set InverseSettings) problem {
	return problem{matrix: newMatrix(l, set), gamma: gamma, v: make([]float64, l), y: make([]float64, l)}
}

// decay folds the step b, 0 < b < 1, into s and returns w = b/s, the weight with
// which new terms enter B̂, Â and b̂.
func (q *problem) decay(b float64) (w float64) {
	if !(b > 0 && b < 1) {
		panic(fmt.Sprintf("learner: step is %v; allowed is above 0 and below 1", b))
	}
	q.s *= 1 - b
	return b / q.s
}

// scale multiplies B̂, Â and b̂ by a number and divides s by it.
func (q *problem) scale(by float64) {
	q.s /= by
	scale(q.b, by)
	if !q.set.Always { // else B̂⁻¹ is not kept
		scale(q.p, 1/by)
	}
	scale(q.a, by)
	scale(q.bbar, by)
}

func scale(v []float64, by float64) {
	for i := range v {
		v[i] *= by
	}
}
