package critic

import (
	"fmt"
	"math"
)

// Settings are the settings of the critic.
type Settings struct {
	Gamma   float64 // γ, the step of r; above 0 and below 2
	Step    Steps   // b(n) of η, B, A and b; below 1 at n = 1
	Inverse InverseSettings
}

// Validate reports the first field that is out of its range.
func (s Settings) Validate() error {
	if !(s.Gamma > 0 && s.Gamma < 2) {
		return fmt.Errorf("gamma is %v; allowed is above 0 and below 2", s.Gamma)
	}
	if err := s.Step.Validate(); err != nil {
		return fmt.Errorf("b: %w", err)
	}
	if v := s.Step.At(1); v >= 1 {
		return fmt.Errorf("b: step %q is %v at n = 1; allowed is below 1, for a step of 1 wipes out what the recursion began with", s.Step, v)
	}
	return s.Inverse.Validate()
}

// InverseSettings say when a running inverse is trusted and what is done when
// it is not.
type InverseSettings struct {
	// Epsilon is ε of B(−1) = εI, and the ridge, relative to the mean of B's
	// diagonal, with which a fresh factorisation begins; above 0.
	Epsilon float64
	// Delta is δ of the Tikhonov form (BᵀB + δI)⁻¹Bᵀ; above 0.
	Delta float64
	// Tolerance is the residual ‖B y − v‖/‖v‖ (greatest entries) up to which
	// a solution y = B⁻¹v is trusted; above 0.
	Tolerance float64
	// Condition is the condition number ‖B‖₁‖B⁻¹‖₁ up to which B is inverted
	// as it is; above 1. Beyond it B counts as rank-deficient.
	Condition float64
	// Every is the greatest number of updates between two checks; 1 to 256. A
	// check comes earlier once the old content of B has lost a factor e of its
	// weight since the last one.
	Every int
	// Always solves by the Tikhonov form at every step, as the paper ran it,
	// and keeps no incremental inverse.
	Always bool
}

// DefaultInverseSettings returns ε = 10⁻³, δ = 10⁻¹⁰, tolerance 10⁻⁶, condition
// 10⁸, a check at least every 64 updates, and the Tikhonov form as a fallback
// only. The paper gives no figures for ε and δ.
func DefaultInverseSettings() InverseSettings {
	return InverseSettings{Epsilon: 1e-3, Delta: 1e-10, Tolerance: 1e-6, Condition: 1e8, Every: 64}
}

// Validate reports the first field that is out of its range.
func (s InverseSettings) Validate() error {
	switch {
	case !(s.Epsilon > 0) || math.IsInf(s.Epsilon, 0):
		return fmt.Errorf("epsilon is %v; allowed is a finite number above 0", s.Epsilon)
	case !(s.Delta > 0) || math.IsInf(s.Delta, 0):
		return fmt.Errorf("delta is %v; allowed is a finite number above 0", s.Delta)
	case !(s.Tolerance > 0) || s.Tolerance >= 1:
		return fmt.Errorf("tolerance is %v; allowed is above 0 and below 1", s.Tolerance)
	case !(s.Condition > 1) || math.IsInf(s.Condition, 0):
		return fmt.Errorf("condition is %v; allowed is a finite number above 1", s.Condition)
	case s.Every < 1 || s.Every > 256:
		return fmt.Errorf("every is %d; allowed is 1 to 256", s.Every)
	}
	return nil
}
