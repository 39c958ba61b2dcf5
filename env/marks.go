package env

import (
	"fmt"
	"math"
)

// Marks names the law of the items' initial interest ξ around its mean ξ̄.
type Marks string

// The laws of marks.
const (
	MarksConstant  Marks = "constant"  // ξ = ξ̄
	MarksPerItem   Marks = "per-item"  // ξ exponential, drawn for each item
	MarksPerEpoch  Marks = "per-epoch" // ξ exponential, one draw for all items of a source and epoch
	MarksLogNormal Marks = "lognormal" // ξ = ξ̄ e^(σZ − σ²/2), drawn for each item
)

// ParseMarks returns the law of that name.
func ParseMarks(name string) (Marks, error) {
	switch m := Marks(name); m {
	case MarksConstant, MarksPerItem, MarksPerEpoch, MarksLogNormal:
		return m, nil
	}
	return "", fmt.Errorf("marks is %q; allowed are %s, %s, %s and %s", name,
		MarksConstant, MarksPerItem, MarksPerEpoch, MarksLogNormal)
}

// moment returns E[ξᵏ]/ξ̄ᵏ of the marks that are drawn for each item, k from 1;
// under MarksPerEpoch these are constant, and the epoch's draw comes on top.
// sigma is the σ of log-normal marks.
func (m Marks) moment(k int, sigma float64) float64 {
	switch m {
	case MarksPerItem:
		return math.Gamma(float64(k + 1)) // k!
	case MarksLogNormal:
		return math.Exp(float64(k*(k-1)) / 2 * sigma * sigma)
	}
	return 1
}

// Cumulant returns κₖ of the interest, at the end of d epochs, of the items that
// a source of the exponential law publishes in them one by one, by Campbell's
// theorem, for ξ̄ = 1 and without a window; κ₁ is the mean and κ₂ the variance.
// As in moment, one draw for the whole epoch is left out:
//
//	κₖ = λ E[ξᵏ] (1 − e^(−kcd)) / (kc)
func (s Source) Cumulant(k int, d float64, m Marks, sigma float64) float64 {
	kc := float64(k) * s.Decay
	return s.Rate * m.moment(k, sigma) * -math.Expm1(-kc*d) / kc
}
