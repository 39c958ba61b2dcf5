package observed

import (
	"cmp"
	"fmt"

	"ephemera/learner/critic"
	"ephemera/learner/internal/check"
)

// Settings are the settings of the learner. None has a unit of interest.
type Settings struct {
	// Features is the degree of the critic's polynomials of the state, 1 to 6.
	Features int `toml:"features"`
	// Gamma is γ, the step of r in LSPE(0), above 0 and below 2.
	Gamma float64 `toml:"gamma"`
	// Critic is "lspe", or, to see what it does, "zero" (r = 0), "negative" (−r),
	// or "drift" (one epoch of waiting by the learned drift in place of r).
	Critic string `toml:"critic"`

	// B, A and D are b(n), a(n) and d(n), the steps of critic, actor and price.
	B critic.Steps `toml:"b"`
	A critic.Steps `toml:"a"`
	D critic.Steps `toml:"d"`

	// κ(n) = min(KappaMax, κ(0)·√(1 + n/KappaOver)), the slope of the logit in
	// ln X − ln T. κ(0) is Kappa; where a round, ΣC/M, takes more than ten epochs,
	// 1 + ln(ΣC/10M) times as much: the greatest of N draws of noise grows with ln N.
	Kappa     float64 `toml:"kappa"`
	KappaOver float64 `toml:"kappa_over"` // epochs
	KappaMax  float64 `toml:"kappa_max"`
}

// DefaultSettings returns the settings that nil stands for.
func DefaultSettings() Settings {
	return Settings{
		Features: 2, Gamma: .5, Critic: "lspe",
		B:     critic.Steps{Scale: 1, Block: 1, Power: .7, Shift: 2},
		A:     critic.Steps{Scale: 8, Block: 1, Power: .85, Shift: 200},
		D:     critic.Steps{Scale: 8, Block: 1, Power: .95, Shift: 100},
		Kappa: 6, KappaOver: 100, KappaMax: 40,
	}
}

// Validate reports the first setting that is out of its range.
func (s *Settings) Validate() error {
	if err := cmp.Or(
		check.Positive("kappa", s.Kappa), check.Positive("kappa_over", s.KappaOver), check.Positive("kappa_max", s.KappaMax),
		s.A.Valid("a"), s.B.Valid("b"), s.D.Valid("d"),
	); err != nil {
		return err
	}
	switch {
	case s.Features < 1 || s.Features > 6:
		return fmt.Errorf("features is %d; allowed are the degrees 1 to 6", s.Features)
	case !(s.Gamma > 0 && s.Gamma < 2):
		return fmt.Errorf("gamma is %v; allowed is above 0 and below 2", s.Gamma)
	case !(s.B.At(1) < 1):
		return fmt.Errorf("b begins at %v; allowed is below 1", s.B.At(1))
	}
	return check.OneOf("critic", s.Critic, "lspe", "zero", "negative", "drift")
}
