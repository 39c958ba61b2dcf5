package critic

import (
	"cmp"
	"fmt"

	"ephemera/learner/internal/check"
)

// Settings are the settings of the critic.
type Settings struct {
	// Gamma is γ, the step of r; above 0 and below 2.
	Gamma float64
	// Epsilon is ε of B(−1) = εI; above 0.
	Epsilon float64
	// Delta is δ of the Tikhonov form (BᵀB + δI)⁻¹Bᵀ; above 0.
	Delta float64
	// Tolerance is the residual ‖B y − v‖/‖v‖ (greatest entries) up to which
	// a solution y = B⁻¹v is trusted; above 0.
	Tolerance float64
	// Condition is the condition number ‖B‖₁‖B⁻¹‖₁ up to which B is inverted as
	// it is; above 1. Beyond it B counts as rank-deficient.
	Condition float64
	// Overflow is the length of r at which the critic has diverged, which in
	// the beginning, of few transitions, it may. It goes on from r = 0, before
	// the weights reach the thresholds.
	Overflow float64
	// Scaled takes B in units of diag(B)^−½, for features one of which may be
	// large where another is small.
	Scaled bool
	// Always solves by the Tikhonov form at every step, as the paper ran it,
	// and keeps no running inverse.
	Always bool
}

// DefaultSettings returns γ = 0.05, ε = 10⁻³, δ = 10⁻¹⁰, tolerance 10⁻⁶, condition
// 10⁸, and the Tikhonov form as a fallback only. The paper gives no figures for
// ε and δ.
func DefaultSettings() Settings {
	return Settings{Gamma: .05, Epsilon: 1e-3, Delta: 1e-10, Tolerance: 1e-6, Condition: 1e8, Overflow: 1e60}
}

// Validate reports the first of γ, ε and δ that is out of its range.
func (s Settings) Validate() error {
	if !(s.Gamma > 0 && s.Gamma < 2) {
		return fmt.Errorf("gamma is %v; allowed is above 0 and below 2", s.Gamma)
	}
	return cmp.Or(check.Positive("epsilon", s.Epsilon), check.Positive("delta", s.Delta))
}
