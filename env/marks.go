package env

import (
	"fmt"
	"math"
)

// Marks names the law of the items' initial interest ξ around its mean ξ̄.
type Marks string

// The laws of marks.
const (
	MarksConstant Marks = "constant"  // ξ = ξ̄
	MarksPerItem  Marks = "per-item"  // ξ exponential, drawn for each item
	MarksPerEpoch Marks = "per-epoch" // ξ exponential, one draw for all items of a source and epoch
)

// ParseMarks returns the law of that name.
func ParseMarks(name string) (Marks, error) {
	switch m := Marks(name); m {
	case MarksConstant, MarksPerItem, MarksPerEpoch:
		return m, nil
	}
	return "", fmt.Errorf("marks is %q; allowed are %s, %s and %s", name, MarksConstant, MarksPerItem, MarksPerEpoch)
}

// Cumulant returns κₖ of the interest, at the end of d epochs, of the items that
// a source of the exponential law publishes in them one by one, by Campbell's
// theorem, for ξ̄ = 1 and without a window; κ₁ is the mean and κ₂ the variance.
// One draw for the whole epoch is left out:
//
//	κₖ = λ E[ξᵏ] (1 − e^(−kcd)) / (kc)
func (s Source) Cumulant(k int, d float64, m Marks) float64 {
	moment := 1.0 // E[ξᵏ]
	if m == MarksPerItem {
		moment = math.Gamma(float64(k + 1)) // k!
	}
	kc := float64(k) * s.Decay
	return s.Rate * moment * -math.Expm1(-kc*d) / kc
}
