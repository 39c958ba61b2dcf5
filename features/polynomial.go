// Package features maps a state to the vector φ that a linear value function
// V(x) ≈ Σ r(m) φ_m(x) is built on.
//
//  1. [Settings] say how many coordinates there are, the degree, whether cross
//     terms are wanted, and by what each coordinate is divided.
//  2. [New] returns a [Polynomial].
//  3. [Polynomial.To] writes φ(x) into a buffer of the caller and allocates
//     nothing.
//
// The package knows nothing of sources or of learning.
package features

import (
	"fmt"
	"maps"
	"slices"
)

// Settings describe a polynomial feature map.
type Settings struct {
	Inputs    int  // N, coordinates of the state; 1 or more
	Degree    int  // highest degree; 1 or more
	Separable bool // leave the cross terms out: x₁ … x_N, x₁² … x_N², …

	// Hi is what each coordinate is divided by before the powers are taken,
	// z = x/hi; nil for nothing.
	Hi []float64
}

// Polynomial maps x ∈ ℝᴺ to all monomials of degree 1 to d, without the
// constant: in a value function for the average reward a constant is free. The
// order is by degree, then lexicographic. For d = 2 it is that of Allerton,
// section V:
//
//	φ = [x₁ … x_N  x₁² x₁x₂ … x_{N−1}x_N x_N²]
//
// It has no state and is safe for concurrent use.
type Polynomial struct {
	n int
	// A monomial of degree 2 or more is one of the degree below times a
	// coordinate: dst[N+k] = dst[of[k]]·z[by[k]].
	of, by []int
	scale  []float64 // 1/hi, or nil
}

// New returns the map of the settings. It panics unless there are inputs and a
// degree, and Hi has one entry for each input or none.
func New(s Settings) *Polynomial {
	if s.Inputs < 1 || s.Degree < 1 || s.Hi != nil && len(s.Hi) != s.Inputs {
		panic(fmt.Sprintf("features: %d inputs, degree %d and %d scales; "+
			"allowed are 1 or more inputs and degrees, and a scale for each input or none",
			s.Inputs, s.Degree, len(s.Hi)))
	}
	p := &Polynomial{n: s.Inputs}
	p.build(s.Degree, s.Separable)
	for _, hi := range s.Hi {
		p.scale = append(p.scale, 1/hi)
	}
	return p
}

// build lists the monomials of degree 2 and above. In lexicographic order those of
// degree k that begin with xᵢ are xᵢ times those of degree k−1 that begin with xᵢ
// or later, which are the tail of the block before.
func (p *Polynomial) build(degree int, separable bool) {
	from := make([]int, p.n) // where the monomials that begin with xᵢ or later are
	for i := range from {
		from[i] = i
	}
	end := p.n
	for k := 2; k <= degree; k++ {
		next := make([]int, p.n)
		for i := range next {
			next[i] = p.Len()
			last := end
			if separable {
				last = from[i] + 1
			}
			for m := from[i]; m < last; m++ {
				p.of, p.by = append(p.of, m), append(p.by, i)
			}
		}
		from, end = next, p.Len()
	}
}

// Len returns ℓ, the number of features. The full quadratic has N + N(N+1)/2.
func (p *Polynomial) Len() int { return p.n + len(p.of) }

// To writes φ(x) into dst and returns it. It panics unless dst has ℓ and x has N
// entries. They must not overlap.
func (p *Polynomial) To(dst, x []float64) []float64 {
	if len(dst) != p.Len() || len(x) != p.n {
		panic(fmt.Sprintf("features: dst of %d and state of %d entries; want %d and %d",
			len(dst), len(x), p.Len(), p.n))
	}
	z := dst[:p.n]
	if p.scale == nil {
		copy(z, x)
	} else {
		scale := p.scale[:len(z)]
		for i := range z {
			z[i] = x[i] * scale[i]
		}
	}
	rest, by := dst[p.n:], p.by
	for k, m := range p.of {
		rest[k] = dst[m] * z[by[k]]
	}
	return dst
}

// Map is a feature map φ: ℝᴺ → ℝˡ.
type Map interface {
	Len() int                      // ℓ
	To(dst, x []float64) []float64 // writes φ(x) into dst of length ℓ, and returns it
}

// own are the maps of one's own, by name. They are built for states between 0 and
// the ceilings.
var own = map[string]func(ceilings []float64) Map{}

// Register adds a feature map of one's own under a name that the setting features of
// the printed learner takes in addition to raw and unit. It panics if there is one of that
// name, and is called before anything is run.
func Register(name string, build func(ceilings []float64) Map) {
	if own[name] != nil {
		panic(fmt.Sprintf("features: %q is there already", name))
	}
	own[name] = build
}

// Registered returns the names of the maps of one's own.
func Registered() []string { return slices.Sorted(maps.Keys(own)) }

// Own returns the map of one's own of that name, or nil.
func Own(name string, ceilings []float64) Map {
	if own[name] == nil {
		return nil
	}
	return own[name](ceilings)
}
