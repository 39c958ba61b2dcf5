package experiments

import (
	"cmp"
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/learner/online"
)

// tuned is an entry of a policy with settings.
func tuned[S any, O env.Knowledge](e Entry, defaults S, build func(k Known, s S) env.Policy[O]) Entry {
	e.Settings = func(env.Level) any { s := defaults; return &s }
	e.New = func(k Known, s any) (env.Agent, error) { return env.NewAgent(build(k, *s.(*S))), nil }
	return e
}

// within reports the first figure that is not above lo and at most hi.
func within(lo, hi float64, names []string, values ...float64) error {
	most := fmt.Sprintf(" and at most %v", hi)
	if math.IsInf(hi, 1) {
		most = ", and finite"
	}
	for i, v := range values {
		if !(v > lo && v <= hi) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is %v; allowed is above %v%s", names[i], v, lo, most)
		}
	}
	return nil
}

// ages refuses a number of ages that cannot be told apart; 0 is the policy's own.
func ages(n int) error {
	if n == 0 || n >= 2 && n <= 1<<20 {
		return nil
	}
	return fmt.Errorf("ages is %d; allowed is 2 to %d, or 0 for a number by the length of a round", n, 1<<20)
}

type qWhittleSettings struct {
	Ages    int     `toml:"ages"`    // told apart; 0 for four rounds of round robin
	Fast    float64 `toml:"fast"`    // C of the step sizes
	Slow    float64 `toml:"slow"`    // C′
	Explore float64 `toml:"explore"` // ε
}

func (s *qWhittleSettings) Validate() error {
	return cmp.Or(
		within(0, 1, []string{"fast", "explore"}, s.Fast, s.Explore),
		within(0, math.Inf(1), []string{"slow"}, s.Slow),
		ages(s.Ages))
}

type salmutSettings struct {
	Ages   int     `toml:"ages"`   // told apart; 0 for sixteen rounds of round robin
	Kappa  float64 `toml:"kappa"`  // κ, steepness in the logarithm of the age
	Critic float64 `toml:"critic"` // scale of a(ν)
	Actor  float64 `toml:"actor"`  // scale of b(ν)
	Dual   float64 `toml:"dual"`   // scale of d(n)
}

func (s *salmutSettings) Validate() error {
	names := []string{"kappa", "critic", "actor", "dual"}
	return cmp.Or(within(0, math.Inf(1), names, s.Kappa, s.Critic, s.Actor, s.Dual), ages(s.Ages))
}

type certaintySettings struct {
	Decay    float64 `toml:"decay"`    // of all sources, 1/epoch; 0 to have it estimated
	Optimism float64 `toml:"optimism"` // standard errors that ln of an inflow is raised by
}

func (s *certaintySettings) online() *online.Settings {
	o := online.CertaintySettings()
	o.Decay, o.Optimism = s.Decay, s.Optimism
	return &o
}

func (s *certaintySettings) Validate() error { return s.online().Validate() }

type relaxedSettings struct {
	Price float64 `toml:"price"` // λ(0)
	First float64 `toml:"first"` // b(0); 0 for a tenth of the greatest u/C, over the budget
	Hold  float64 `toml:"hold"`  // epochs
	Power float64 `toml:"power"`
	Exact bool    `toml:"exact"` // thresholds in whole epochs
}

func (s *relaxedSettings) Validate() error {
	if !(s.Price >= 0 && s.First >= 0) || math.IsInf(s.Price+s.First, 1) {
		return fmt.Errorf("price and first are %v and %v; allowed are finite numbers of 0 or more", s.Price, s.First)
	}
	return cmp.Or(within(0, math.Inf(1), []string{"hold"}, s.Hold), within(.5, 1, []string{"power"}, s.Power))
}

// intervals bounds the intervals of a scheduler of today, hours.
type intervals struct {
	Min float64 `toml:"min"`
	Max float64 `toml:"max"`
}

func (s intervals) check() error {
	if !(s.Min > 0 && s.Min <= s.Max) || math.IsInf(s.Max, 1) {
		return fmt.Errorf("min and max are %v and %v hours; allowed is 0 < min ≤ max", s.Min, s.Max)
	}
	return nil
}

type minifluxSettings struct {
	Factor float64 `toml:"factor"`
	intervals
}

func (s *minifluxSettings) Validate() error {
	return cmp.Or(within(0, math.Inf(1), []string{"factor"}, s.Factor), s.check())
}

type adaptiveSettings struct {
	Shrink float64 `toml:"shrink"` // rate at which a find shortens the interval
	Grow   float64 `toml:"grow"`   // rate at which a crawl without one lengthens it
	intervals
}

func (s *adaptiveSettings) Validate() error {
	return cmp.Or(
		within(0, 1, []string{"shrink"}, s.Shrink),
		within(0, math.Inf(1), []string{"grow"}, s.Grow),
		s.check())
}

func (s adaptiveSettings) options(relative bool) baselines.Adaptive {
	return baselines.Adaptive{Shrink: s.Shrink, Grow: s.Grow, Min: s.Min, Max: s.Max, Relative: relative}
}
