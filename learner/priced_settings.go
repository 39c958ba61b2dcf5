package learner

import (
	"fmt"
	"math"
)

// PricedSettings are the settings of the priced actor-critic. All of them are
// free of units: steps are counted in a source's own cycles or as shares, and
// interest in the harvest of the last crawl that the budget pays for, so one
// setting serves instances of any size, share of the budget and scale.
type PricedSettings struct {
	// κ(n) = min(Sharpest, Sharpness·√(1 + n/SharpenOver)), the slope of the
	// logit: exploration at first, almost the index policy in the end.
	Sharpness   float64 `toml:"kappa"`
	SharpenOver float64 `toml:"kappa_over"` // epochs
	Sharpest    float64 `toml:"kappa_max"`

	// a(n) = ActorStep/(1 + n/ActorOver)^ActorPower, in units of ln θ per cycle.
	ActorStep  float64 `toml:"actor_step"`
	ActorOver  float64 `toml:"actor_over"` // epochs
	ActorPower float64 `toml:"actor_power"`

	// d(n) = PriceStep/(1 + n/PriceOver)^PricePower, in harvests of a crawl.
	PriceStep  float64 `toml:"price_step"`
	PriceOver  float64 `toml:"price_over"` // epochs
	PricePower float64 `toml:"price_power"`

	// The critic of a source averages over the last CriticCycles of the
	// source's own cycles, and over at least the last CriticShare-th part of
	// all epochs so far.
	CriticCycles float64 `toml:"critic_cycles"`
	CriticShare  float64 `toml:"critic_share"`

	// MarginShare is the weight of the actor's margin, beside the critic's
	// index, in the key that ranks the sources; MarginCap and IndexCap bound
	// the two before they are mixed.
	MarginShare float64 `toml:"margin_share"`
	MarginCap   float64 `toml:"margin_cap"` // of ln(s/θ)
	IndexCap    float64 `toml:"index_cap"`  // of the index over the price, in prices

	// Horizon, in epochs, is how far back the learner looks in a world that
	// changes: no step falls below its value at that count. 0 is no limit.
	Horizon float64 `toml:"horizon"`

	// The rest is for ablations.

	// Critic is "" for the exact value function at the learned mean harvest,
	// anchored at the crawl; "behaviour" for the same anchored after the
	// crawl, V = (η − λκ̄)(s − 1); "polynomial" for LSPE(0) on the powers 1 to
	// Degree of z = (x − u)/(u* − u), with one clock for all sources.
	Critic string `toml:"critic"`
	Degree int    `toml:"degree"` // 1 to 4
	// NoPrice keeps the price at 0.
	NoPrice bool `toml:"no_price"`
	// Saturating multiplies the actor's step by f(1−f), the derivative of the
	// logit, in place of the distance of f from the better action.
	Saturating bool `toml:"saturating"`
	// RankBy is what the frozen policy ranks by: "" both, "margin" or "index".
	RankBy string `toml:"rank_by"`
}

// DefaultPricedSettings returns the settings that nil stands for.
func DefaultPricedSettings() PricedSettings {
	return PricedSettings{
		Sharpness: 6, SharpenOver: 100, Sharpest: 40,
		ActorStep: 1, ActorOver: 500, ActorPower: .6,
		PriceStep: .3, PriceOver: 30, PricePower: .7,
		CriticCycles: 5, CriticShare: 5,
		MarginShare: .5, MarginCap: 1, IndexCap: 2, Degree: 2,
	}
}

// Validate reports the first setting that is out of its range.
func (s *PricedSettings) Validate() error {
	for _, f := range []struct {
		name string
		v    float64
		zero bool
	}{
		{"kappa", s.Sharpness, false}, {"kappa_over", s.SharpenOver, false}, {"kappa_max", s.Sharpest, false},
		{"actor_step", s.ActorStep, false}, {"actor_over", s.ActorOver, false}, {"actor_power", s.ActorPower, true},
		{"price_step", s.PriceStep, false}, {"price_over", s.PriceOver, false}, {"price_power", s.PricePower, true},
		{"critic_cycles", s.CriticCycles, false}, {"critic_share", s.CriticShare, false},
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
	if s.MarginShare > 1 {
		return fmt.Errorf("margin_share is %v; allowed is 0 to 1", s.MarginShare)
	}
	switch s.Critic {
	case "", "behaviour":
	case "polynomial":
		if s.Degree < 1 || s.Degree > maxDegree {
			return fmt.Errorf("degree is %d; allowed is 1 to %d", s.Degree, maxDegree)
		}
	default:
		return fmt.Errorf("critic is %q; allowed are \"\", \"behaviour\" and \"polynomial\"", s.Critic)
	}
	switch s.RankBy {
	case "", "margin", "index":
	default:
		return fmt.Errorf("rank_by is %q; allowed are \"\", \"margin\" and \"index\"", s.RankBy)
	}
	return nil
}

func (s *PricedSettings) clock(n int) float64 {
	if s.Horizon > 0 {
		return min(float64(n), s.Horizon)
	}
	return float64(n)
}

// sharpness returns κ(n).
func (s *PricedSettings) sharpness(n int) float64 {
	return min(s.Sharpest, s.Sharpness*math.Sqrt(1+s.clock(n)/s.SharpenOver))
}

// actor returns a(n).
func (s *PricedSettings) actor(n int) float64 {
	return s.ActorStep * math.Pow(1+s.clock(n)/s.ActorOver, -s.ActorPower)
}

// price returns d(n).
func (s *PricedSettings) price(n int) float64 {
	return s.PriceStep * math.Pow(1+s.clock(n)/s.PriceOver, -s.PricePower)
}

// critic returns bᵢ(n) for a source whose cycle has about theta epochs.
func (s *PricedSettings) critic(n int, theta float64) float64 {
	t := s.clock(n)
	b := max(1/(t+1+theta), min(1/(s.CriticCycles*theta), s.CriticShare/(t+s.CriticShare)))
	return min(b, .5)
}
