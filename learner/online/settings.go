package online

import (
	"fmt"
	"math"

	"ephemera/learner/lspe"
)

// Settings are the settings of the priced actor-critic. All of them are
// free of units: steps are counted in a source's own cycles or as shares, and
// interest in the harvest of the last crawl that the budget pays for, so one
// setting serves instances of any size, share of the budget and scale.
type Settings struct {
	// κ(n) = min(Sharpest, Sharpness·√(1 + n/SharpenOver)), the slope of the
	// logit: exploration at first, almost the index policy in the end.
	Sharpness   float64 `toml:"kappa"`
	SharpenOver float64 `toml:"kappa_over"` // epochs
	Sharpest    float64 `toml:"kappa_max"`

	// A is a(n), the actor's step, in units of ln θ per cycle of the source.
	A lspe.Steps `toml:"a"`

	// D is d(n), the price's step, in harvests of a crawl.
	D lspe.Steps `toml:"d"`

	// B is b(n), the upper bound of all critics' steps bᵢ(n). The clock of a
	// source looks back over the last Cycles of its own cycles, at least:
	// bᵢ(n) = max(1/(n + Θ), min(b(n), 1/(Cycles Θ))), and at most 1/2.
	B      lspe.Steps `toml:"b"`
	Cycles float64    `toml:"cycles"`

	// Gamma is γ, the step of r in LSPE(0), above 0 and below 2.
	Gamma float64 `toml:"gamma"`

	// MarginShare is the weight of the actor's margin, beside the critic's
	// index, in the key that ranks the sources; MarginCap and IndexCap bound
	// the two before they are mixed.
	MarginShare float64 `toml:"margin_share"`
	MarginCap   float64 `toml:"margin_cap"` // of ln(s/θ)
	IndexCap    float64 `toml:"index_cap"`  // of the index over the price, in prices

	// Horizon, in epochs, is how far back the learner looks in a world that
	// changes: no step falls below its value at that count. 0 is no limit.
	Horizon float64 `toml:"horizon"`

	// Workers is how many goroutines share the sources; 0 is one for every
	// core from 10 000 sources on, and one below. It changes no result.
	Workers int `toml:"workers"`

	// The rest is for ablations.

	// Critic is "lspe" for LSPE(0) with the two features in which V is linear
	// under a threshold, anchored at the crawl; "renewal" for no matrix, V
	// from the averages of harvest and cost alone; "behaviour" for the same
	// anchored after the crawl, V(1) = 0; "polynomial" for LSPE(0) on the
	// powers 1 to Degree of z = (x − u)/(u* − u), and "ages" on those of the
	// age, both with V(1) = 0.
	Critic string `toml:"critic"`
	Degree int    `toml:"degree"` // 1 to 4
	// Sampled has the critic average the harvests themselves. By default it
	// averages their means, xν: the same in the mean dynamics, and without the
	// noise of single items elsewhere.
	Sampled bool `toml:"sampled"`
	// NoPrice keeps the price at 0.
	NoPrice bool `toml:"no_price"`
	// Saturating multiplies the actor's step by 4f(1−f), the derivative of the
	// logit over its greatest value, in place of the distance of f from the better action.
	Saturating bool `toml:"saturating"`
	// RankBy is what the frozen policy ranks by: "" both, "margin" or "index".
	RankBy string `toml:"rank_by"`
}

// DefaultSettings returns the settings that nil stands for.
func DefaultSettings() Settings {
	return Settings{
		Sharpness: 6, SharpenOver: 100, Sharpest: 40,
		A: lspe.Steps{Scale: 1, Block: 500, Power: .6},
		D: lspe.Steps{Scale: .3, Block: 30, Power: .7},
		B: lspe.Steps{Scale: 5, Block: 1, Power: 1, Shift: 5}, Cycles: 5,
		Gamma: .5, Critic: "lspe",
		MarginShare: .5, MarginCap: 1, IndexCap: 2, Degree: 2,
	}
}

// Validate reports the first setting that is out of its range.
func (s *Settings) Validate() error {
	for _, f := range []struct {
		name string
		v    float64
		zero bool
	}{
		{"kappa", s.Sharpness, false}, {"kappa_over", s.SharpenOver, false}, {"kappa_max", s.Sharpest, false},
		{"cycles", s.Cycles, false},
		{"margin_cap", s.MarginCap, false}, {"index_cap", s.IndexCap, false},
		{"margin_share", s.MarginShare, true}, {"horizon", s.Horizon, true},
	} {
		if f.zero && f.v == 0 {
			continue
		}
		if !(f.v > 0) || math.IsInf(f.v, 0) {
			return fmt.Errorf("%s is %v; allowed is a finite number above 0", f.name, f.v)
		}
	}
	for _, f := range []struct {
		name string
		v    lspe.Steps
	}{{"a", s.A}, {"b", s.B}, {"d", s.D}} {
		if err := f.v.Validate(); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if !(s.Gamma > 0 && s.Gamma < 2) {
		return fmt.Errorf("gamma is %v; allowed is above 0 and below 2", s.Gamma)
	}
	if s.Workers < 0 {
		return fmt.Errorf("workers is %d; allowed is 0 or more", s.Workers)
	}
	if s.MarginShare > 1 {
		return fmt.Errorf("margin_share is %v; allowed is 0 to 1", s.MarginShare)
	}
	switch s.Critic {
	case "lspe", "renewal", "behaviour":
	case "polynomial", "ages":
		if s.Degree < 1 || s.Degree > maxFeatures {
			return fmt.Errorf("degree is %d; allowed is 1 to %d", s.Degree, maxFeatures)
		}
	default:
		return fmt.Errorf("critic is %q; allowed are lspe, renewal, behaviour, polynomial and ages", s.Critic)
	}
	switch s.RankBy {
	case "", "margin", "index":
	default:
		return fmt.Errorf("rank_by is %q; allowed are \"\", \"margin\" and \"index\"", s.RankBy)
	}
	return nil
}

// clocks are the schedules, evaluated at an epoch.
type clocks struct {
	steps             [3]lspe.Stepper
	s                 *Settings
	kappa, a, d       float64
	cycles, most, all float32 // of bᵢ(n): W, 1/b(n), n
}

func (s *Settings) clocks() clocks {
	c := *s
	return clocks{s: &c, steps: [3]lspe.Stepper{{Steps: s.A}, {Steps: s.B}, {Steps: s.D}}}
}

// set evaluates the schedules after n epochs. With a horizon, none goes on
// beyond its count.
func (c *clocks) set(n int) {
	t := float64(n)
	if h := c.s.Horizon; h > 0 && t > h {
		t, n = h, int(h)
	}
	c.kappa = min(max(c.s.Sharpest, c.s.Sharpness), c.s.Sharpness*math.Sqrt(1+t/c.s.SharpenOver))
	c.a, c.d = c.steps[0].Value(n+1), c.steps[2].Value(n+1)
	c.cycles, c.most, c.all = float32(c.s.Cycles), float32(1/c.steps[1].Value(n+1)), float32(t+1)
}

// critic returns bᵢ(n) for a source whose cycle has about theta epochs.
func (c *clocks) critic(theta float32) float32 {
	return 1 / max(2, min(c.all+theta, max(c.most, c.cycles*theta)))
}
