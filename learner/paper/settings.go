package paper

import (
	"cmp"
	"fmt"
	"math"

	"ephemera/features"
	"ephemera/learner/critic"
	"ephemera/learner/internal/check"
)

// Settings are the settings of the learner.
type Settings struct {
	// Reading is where the other settings begin, one of [Settings.Readings].
	Reading string `json:"reading" toml:"reading"`

	Kappa     float64      `json:"kappa" toml:"kappa"`           // κ, steepness of the logit, in 1/unit of margin
	KappaOver float64      `json:"kappa_over" toml:"kappa_over"` // κ(n) = κ√(1 + n/kappa_over), epochs; 0: κ constant
	KappaMax  float64      `json:"kappa_max" toml:"kappa_max"`   // greatest κ(n)
	Shift     float64      `json:"shift" toml:"shift"`           // shift of the logit, in units of margin
	Gamma     float64      `json:"gamma" toml:"gamma"`           // γ, step of the critic's weights
	A         critic.Steps `json:"a" toml:"a"`                   // a(n), step of the thresholds
	B         critic.Steps `json:"b" toml:"b"`                   // b(n), step of the critic's averages
	D         critic.Steps `json:"d" toml:"d"`                   // d(n), step of the price

	// Margin is what a state and a threshold are compared in: "state", interest,
	// as printed; "unit", (x − u)/(u* − u); "age", the logarithm of the age that
	// belongs to x.
	Margin string `json:"margin" toml:"margin"`
	// Gradient is "sampled", (9) as printed; "expected", the gradient of the
	// average reward with both next states of each source; "relative", the same
	// sign and zero with steps that have no unit.
	Gradient string `json:"gradient" toml:"gradient"`
	// Price is "none", or "learned": the learner finds the price λ at which the
	// budget is kept on average. The reward of a crawl is then x − λC.
	Price string `json:"price" toml:"price"`
	// Reward is what the critic takes for the reward of an epoch: "literal", Σ Xᵢ
	// whether crawled or not, as η and b̄ are printed, or "crawled", the interest
	// that the crawls brought back, which is the objective.
	Reward string `json:"reward" toml:"reward"`
	// Act is "probabilistic", each source by itself with probability fᵢ, which
	// may cost more than the budget, as in the paper's experiment; or "budget",
	// the sources with the greatest margins within the budget.
	Act string `json:"act" toml:"act"`
	// Start is where in [u, u*] all thresholds begin: 0 at u, 1 at u*.
	Start float64 `json:"start" toml:"start"`

	// Features are "raw", polynomials of x, or "unit", of x/u*, to the Degree: all
	// products up to 20 sources, as in the paper, and powers only beyond; or those
	// of a map of one's own.
	Features string `json:"features" toml:"features"`
	Degree   int    `json:"degree" toml:"degree"`
	// Tikhonov is "always", as the paper ran it, or "fallback": the running
	// inverse, and the Tikhonov form where it is not trusted.
	Tikhonov string  `json:"tikhonov" toml:"tikhonov"`
	Delta    float64 `json:"delta" toml:"delta"`     // δ of (BᵀB + δI)⁻¹Bᵀ
	Epsilon  float64 `json:"epsilon" toml:"epsilon"` // ε of B(−1) = εI
}

// DefaultSettings are what Allerton prints, sections IV and V: reward Σ Xᵢ, raw
// quadratic features, the Tikhonov form at every step, averages with 1/(n+1),
// a(n) = c/⌈n/500⌉, κ = 2, γ = 0.05, shift 0.5, probabilistic crawls. Of c it says
// that it lies in (0, 1), of δ that it is small: c = 0.5, δ = 10⁴, ε and the start
// in the middle of the interval are ours. The entries of BᵀB reach 10²⁰, so that
// with a δ much below 10⁴ rounding decides.
func DefaultSettings() Settings {
	return Settings{
		Reading: readings[0].name,
		Kappa:   2, KappaMax: 40, Shift: .5, Gamma: .05,
		A:      critic.Steps{Scale: .5, Block: 500, Power: 1},
		B:      critic.Harmonic(),
		D:      critic.Steps{Scale: .1, Block: 30, Power: .7},
		Margin: "state", Gradient: "sampled", Price: "none",
		Reward: "literal", Act: "probabilistic", Start: .5,
		Features: "raw", Degree: 2,
		Tikhonov: "always", Delta: 1e4, Epsilon: critic.DefaultSettings().Epsilon,
	}
}

// readings lead from the learner as printed to one that works; each changes
// something in the one before.
var readings = []struct {
	name   string
	change func(*Settings)
}{
	{"printed", func(*Settings) {}},
	// Sherman–Morrison with the Tikhonov form as its fallback, on features of
	// one size, with the averages' step in blocks.
	{"inverse", func(s *Settings) {
		s.Tikhonov, s.Features, s.Delta = "fallback", "unit", 1e-10
		s.B = critic.Steps{Scale: .5, Block: 1000, Power: 2. / 3}
	}},
	{"crawled", func(s *Settings) { s.Reward = "crawled" }},
	{"gradient", func(s *Settings) { s.Gradient = "expected" }},
	{"scale-free", func(s *Settings) {
		s.Margin, s.Gradient = "unit", "relative"
		s.Kappa, s.KappaOver, s.Shift = 6, 100, 0
		s.A = critic.Steps{Scale: .4, Block: 500, Power: .7}
		s.B = critic.Steps{Scale: .5, Block: 200, Power: 2. / 3}
	}},
	{"price", func(s *Settings) { s.Price = "learned" }},
	// At x = T = u the margin is −shift: above 0, so that f can reach 1.
	{"ages", func(s *Settings) { s.Margin, s.Kappa, s.Shift = "age", 3, -.3 }},
}

// Readings returns the names of the readings, from the learner as printed to the
// one that works.
func (Settings) Readings() []string {
	var names []string
	for _, r := range readings {
		names = append(names, r.name)
	}
	return names
}

// SetReading sets all settings to those of a reading.
func (s *Settings) SetReading(name string) error {
	if err := check.OneOf("reading", name, s.Readings()...); err != nil {
		return err
	}
	*s = DefaultSettings()
	for _, r := range readings {
		r.change(s)
		if r.name == name {
			break
		}
	}
	s.Reading = name
	return nil
}

// Validate reports the first field that is out of its range: the field, what
// was found and what is allowed, in one line.
func (s Settings) Validate() error {
	if err := cmp.Or(
		check.Positive("kappa", s.Kappa), check.Positive("kappa_max", s.KappaMax),
		s.A.Valid("a"), s.B.Valid("b"), s.D.Valid("d"), s.critic().Validate(),
	); err != nil {
		return err
	}
	switch {
	case !(s.KappaOver >= 0) || math.IsInf(s.KappaOver, 0):
		return fmt.Errorf("kappa_over is %v; allowed is a finite number of epochs, or 0", s.KappaOver)
	case math.IsNaN(s.Shift) || math.IsInf(s.Shift, 0):
		return fmt.Errorf("shift is %v; allowed is a finite number", s.Shift)
	case s.Degree < 1 || s.Degree > 6:
		return fmt.Errorf("degree is %d; allowed is 1 to 6", s.Degree)
	case !(s.Start >= 0 && s.Start <= 1):
		return fmt.Errorf("start is %v; allowed is 0 (at u) to 1 (at u*)", s.Start)
	case s.B.At(1) >= 1:
		return fmt.Errorf("b: step %q is %v at n = 1; "+
			"allowed is below 1, for a step of 1 wipes out what the recursion began with", s.B, s.B.At(1))
	case s.Price == "learned" && s.Reward != "crawled":
		return fmt.Errorf("reward is %q; allowed with a price is crawled", s.Reward)
	}
	return cmp.Or(
		check.OneOf("reading", s.Reading, s.Readings()...),
		check.OneOf("margin", s.Margin, "state", "unit", "age"),
		check.OneOf("gradient", s.Gradient, "sampled", "expected", "relative"),
		check.OneOf("price", s.Price, "none", "learned"),
		check.OneOf("reward", s.Reward, "crawled", "literal"),
		check.OneOf("act", s.Act, "probabilistic", "budget"),
		check.OneOf("features", s.Features, append([]string{"unit", "raw"}, features.Registered()...)...),
		check.OneOf("tikhonov", s.Tikhonov, "fallback", "always"),
	)
}

func (s Settings) critic() critic.Settings {
	c := critic.DefaultSettings()
	c.Gamma, c.Epsilon, c.Delta, c.Always = s.Gamma, s.Epsilon, s.Delta, s.Tikhonov == "always"
	return c
}

// kappa returns κ(n) = min(κ√(1 + n/kappa_over), most).
func (s *Settings) kappa(n int) float64 {
	if s.KappaOver == 0 {
		return s.Kappa
	}
	return min(s.Kappa*math.Sqrt(1+float64(n)/s.KappaOver), s.KappaMax)
}
