package features

import "fmt"

// Settings describe a quadratic feature map.
type Settings struct {
	Inputs    int  // N, coordinates of the state; 1 or more
	Separable bool // leave the cross terms out: x₁ … x_N, x₁² … x_N²

	// Hi is what each coordinate is divided by before the products are taken,
	// z = x/hi; nil for nothing.
	Hi []float64
}

// Quadratic maps x ∈ ℝᴺ to all monomials of degree 1 and 2, without the constant: in a
// value function for the average reward a constant is free. The order is that of
// Allerton, section V:
//
//	φ = [x₁ … x_N  x₁² x₁x₂ … x_{N−1}x_N x_N²]
//
// It has no state and is safe for concurrent use.
type Quadratic struct {
	n        int
	of, with []int     // dst[N+k] = z[of[k]]·z[with[k]]
	scale    []float64 // 1/hi, or nil
}

// New returns the map of the settings. It panics unless there are inputs, and Hi has
// one entry for each of them or none.
func New(s Settings) *Quadratic {
	if s.Inputs < 1 || s.Hi != nil && len(s.Hi) != s.Inputs {
		panic(fmt.Sprintf("features: %d inputs and %d scales; allowed are 1 or more inputs, and a scale for each or none", s.Inputs, len(s.Hi)))
	}
	p := &Quadratic{n: s.Inputs}
	for i := range p.n {
		for j := i; j < p.n && !(s.Separable && j > i); j++ {
			p.of, p.with = append(p.of, i), append(p.with, j)
		}
	}
	for _, hi := range s.Hi {
		p.scale = append(p.scale, 1/hi)
	}
	return p
}

// Len returns ℓ, the number of features: N + N(N+1)/2, or 2N without cross terms.
func (p *Quadratic) Len() int { return p.n + len(p.of) }

// To writes φ(x) into dst and returns it. It panics unless dst has ℓ and x has N
// entries. They must not overlap.
func (p *Quadratic) To(dst, x []float64) []float64 {
	if len(dst) != p.Len() || len(x) != p.n {
		panic(fmt.Sprintf("features: dst of %d and state of %d entries; want %d and %d", len(dst), len(x), p.Len(), p.n))
	}
	z := dst[:p.n]
	copy(z, x)
	for i, scale := range p.scale {
		z[i] *= scale
	}
	rest, with := dst[p.n:], p.with
	for k, i := range p.of {
		rest[k] = z[i] * z[with[k]]
	}
	return dst
}
