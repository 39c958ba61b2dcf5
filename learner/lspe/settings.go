package lspe

import (
	"cmp"
	"fmt"
	"math"

	"ephemera/learner/critic"
	"ephemera/learner/internal/check"
)

// Settings are the settings of [Learner]. All of them are free of units, so one
// setting serves instances of any size, budget and scale.
type Settings struct {
	// Features is the degree of the polynomials of the age, 1 to 3.
	Features int `toml:"features"`
	// Gamma is γ, the step of r in LSPE(0), above 0 and below 2.
	Gamma float64 `toml:"gamma"`

	// B is b(k), the critic's step after k cycles of the source; A is a(k), the
	// actor's, in units of ln θ; D is d(m), the price's step per epoch after m
	// rounds of ΣC/M epochs. For the two-time-scale argument to hold,
	// a(n) = o(b(n)) and d(n) = o(a(n)).
	B critic.Steps `toml:"b"`
	A critic.Steps `toml:"a"`
	D critic.Steps `toml:"d"`

	// κ = min(KappaMax, Kappa·√(1 + k/KappaOver)) is the slope of the logit
	// after k cycles: exploration at first, almost the threshold policy later.
	Kappa     float64 `toml:"kappa"`
	KappaOver float64 `toml:"kappa_over"` // cycles
	KappaMax  float64 `toml:"kappa_max"`

	// Critic is "lspe", or takes r out to show what it is worth: "zero" for
	// V = 0, "average" for the averages η and κ̄ without r, "negative" for −r in
	// the wait block and "random" for random numbers there.
	Critic string `toml:"critic"`
	// Actor is "gradient", or "off" for the thresholds of the cold start.
	Actor string `toml:"actor"`
	// Price is "learned", or "off" for a price of 0.
	Price string `toml:"price"`
}

// DefaultSettings returns the settings that nil stands for.
func DefaultSettings() Settings {
	return Settings{
		Features: 3, Gamma: 1,
		B:     critic.Steps{Scale: 1, Block: 1, Power: .8},
		A:     critic.Steps{Scale: 8.5, Block: 1, Power: .9, Shift: 30},
		D:     critic.Steps{Scale: 1.7, Block: 1, Power: .95, Shift: 20},
		Kappa: 6, KappaOver: 20, KappaMax: 60,
		Critic: "lspe", Actor: "gradient", Price: "learned",
	}
}

// Validate reports the first setting that is out of its range.
func (s *Settings) Validate() error {
	if s.Features < 1 || s.Features > degree {
		return fmt.Errorf("features is %d; allowed are the degrees 1 to %d", s.Features, degree)
	}
	if !(s.Gamma > 0 && s.Gamma < 2) {
		return fmt.Errorf("gamma is %v; allowed is above 0 and below 2", s.Gamma)
	}
	if err := cmp.Or(
		steep("kappa", s.Kappa),
		check.Positive("kappa_over", s.KappaOver),
		steep("kappa_max", s.KappaMax),
		s.A.Valid("a"), s.B.Valid("b"), s.D.Valid("d"),
	); err != nil {
		return err
	}
	if v := s.B.At(1); v > 1 {
		return fmt.Errorf("b: step %q is %v at n = 1; allowed is at most 1", s.B, v)
	}
	return cmp.Or(
		check.OneOf("critic", s.Critic, "lspe", "zero", "average", "negative", "random"),
		check.OneOf("actor", s.Actor, "gradient", "off"),
		check.OneOf("price", s.Price, "learned", "off"),
	)
}

// leastSlope is the least κ. Noise varies an age by the factor 999^(1/κ), leastQuantile being .001:
// by 10³⁰ with this κ, and with a fifth of it by more than prices can be computed of.
const leastSlope = .1

// steep reports a κ that is out of its range.
func steep(name string, kappa float64) error {
	if kappa >= leastSlope && !math.IsInf(kappa, 1) {
		return nil
	}
	return fmt.Errorf("%s is %v; allowed is a finite number, %v or more", name, kappa, leastSlope)
}

// slope returns κ after k cycles.
func (s *Settings) slope(k float64) float64 {
	return min(s.KappaMax, s.Kappa*math.Sqrt(1+k/s.KappaOver))
}
