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
