package lspe

import (
	"fmt"
	"math"
	"strconv"

	"ephemera/learner/critic"
	"ephemera/learner/internal/check"
)

// Settings are the settings of the actor-critic. All of them are free of units:
// steps are counted in a source's own cycles or as shares, and interest in the
// harvest of the last crawl that the budget pays for, so one setting serves
// instances of any size, share of the budget and scale.
type Settings struct {
	// κ(n) = min(KappaMax, Kappa·√(1 + n/KappaOver)), the slope of the logit:
	// exploration at first, almost the index policy in the end.
	Kappa     float64 `toml:"kappa"`
	KappaOver float64 `toml:"kappa_over"` // epochs
	KappaMax  float64 `toml:"kappa_max"`
	// KappaRound, R, is a number of epochs. Where a round, ΣC/M, takes more,
	// Kappa counts 1 + ln(ΣC/RM) times: the greatest of N draws of noise grows
	// with ln N. 0 is for never.
	KappaRound float64 `toml:"kappa_round"`

	// A is a(n), the actor's step, in units of ln θ per cycle of the source.
	A critic.Steps `toml:"a"`

	// D is d(n), the price's step, in harvests of a crawl.
	D critic.Steps `toml:"d"`

	// B is b(n), the upper bound of all critics' steps bᵢ(n). The clock of a
	// source looks back over the last Cycles of its own cycles, at least:
	// bᵢ(n) = max(1/(n + Θ), min(b(n), 1/(Cycles Θ))), and at most 1/2.
	B      critic.Steps `toml:"b"`
	Cycles float64      `toml:"cycles"`

	// Gamma is γ, the step of r in LSPE(0), above 0 and below 2.
	Gamma float64 `toml:"gamma"`

	// Features is "exact" for the two functions in which V is linear under a
	// threshold, or the degree of a polynomial of z = (x − u)/(u* − u), "1" to
	// "8".
	Features string `toml:"features"`
	// Learn is "cycle" for a critic that takes in the transitions from one
	// crawl of a source to the next together, or "epoch" for one that takes
	// each as it comes.
	Learn string `toml:"learn"`
	// Critic is "lspe"; "renewal" for averages of harvest and cost in place of
	// r; or "off" for r = 0.
	Critic string `toml:"critic"`

	// Act is "budget" for the sources with the best keys within the budget, or
	// "probabilistic" for all that the logit says, over the budget or under it.
	Act string `toml:"act"`
	// MarginShare is the weight of the actor's margin, beside the critic's
	// index, in the key that ranks the sources; MarginCap and IndexCap bound
	// the two before they are mixed.
	MarginShare float64 `toml:"margin_share"`
	MarginCap   float64 `toml:"margin_cap"` // of ln(s/θ)
	IndexCap    float64 `toml:"index_cap"`  // of the index over the price, in prices

	// Price is "learned", or "none" for a price of 0.
	Price string `toml:"price"`

	// Horizon, in epochs, is how far back the learner looks in a world that
	// changes: no step falls below its value at that count. 0 is no limit.
	Horizon float64 `toml:"horizon"`
}

// DefaultSettings returns the settings that nil stands for.
func DefaultSettings() Settings {
	return Settings{
		Kappa: 6, KappaOver: 100, KappaMax: 40, KappaRound: 10,
		A: critic.Steps{Scale: 1, Block: 500, Power: .6},
		D: critic.Steps{Scale: .3, Block: 30, Power: .7},
		B: critic.Steps{Scale: 5, Block: 1, Power: 1, Shift: 5}, Cycles: 5,
		Gamma: .2, Features: exactFeatures, Learn: "cycle", Critic: "lspe",
		Act: "budget", MarginShare: .5, MarginCap: 1, IndexCap: 2, Price: "learned",
	}
}

const (
	exactFeatures = "exact"
	mostDegree    = 8
)

// degree returns the degree of the polynomial, 0 for exact features.
func (s *Settings) degree() int {
	d, _ := strconv.Atoi(s.Features)
	return d
}

// Validate reports the first setting that is out of its range.
func (s *Settings) Validate() error {
	for _, f := range []struct {
		name string
		v    float64
		zero bool
	}{
		{"kappa", s.Kappa, false}, {"kappa_over", s.KappaOver, false}, {"kappa_max", s.KappaMax, false},
		{"cycles", s.Cycles, false},
		{"margin_cap", s.MarginCap, false}, {"index_cap", s.IndexCap, false},
		{"margin_share", s.MarginShare, true}, {"horizon", s.Horizon, true}, {"kappa_round", s.KappaRound, true},
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
		v    critic.Steps
	}{{"a", s.A}, {"b", s.B}, {"d", s.D}} {
		if err := f.v.Validate(); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if !(s.Gamma > 0 && s.Gamma < 2) {
		return fmt.Errorf("gamma is %v; allowed is above 0 and below 2", s.Gamma)
	}
	if s.MarginShare > 1 {
		return fmt.Errorf("margin_share is %v; allowed is 0 to 1", s.MarginShare)
	}
	if d := s.degree(); s.Features != exactFeatures && (d < 1 || d > mostDegree || s.Features != strconv.Itoa(d)) {
		return fmt.Errorf("features is %q; allowed are %s and the degrees 1 to %d", s.Features, exactFeatures, mostDegree)
	}
	return check.First(
		check.OneOf("learn", s.Learn, "cycle", "epoch"),
		check.OneOf("critic", s.Critic, "lspe", "renewal", "off"),
		check.OneOf("act", s.Act, "budget", "probabilistic"),
		check.OneOf("price", s.Price, "learned", "none"),
	)
}

// clocks are the schedules, evaluated at an epoch.
type clocks struct {
	set         *Settings
	a, b, d     critic.Stepper
	first       float64 // κ(0)
	kappa       float64 // κ(n)
	actor       float64 // a(n)
	price       float64 // d(n)
	least, most float64 // 1/bᵢ(n) lies between, the latter but for Θ
}

// newClocks returns the schedules where a round takes that many epochs.
func newClocks(s *Settings, round float64) clocks {
	c := clocks{set: s, first: s.Kappa, a: critic.Stepper{Steps: s.A}, b: critic.Stepper{Steps: s.B}, d: critic.Stepper{Steps: s.D}}
	if s.KappaRound > 0 && round > s.KappaRound {
		c.first *= 1 + math.Log(round/s.KappaRound)
	}
	return c
}

// at evaluates the schedules after n epochs. With a horizon, none goes on
// beyond its count.
func (c *clocks) at(n int) {
	if h := c.set.Horizon; h > 0 {
		n = min(n, int(h))
	}
	s, t := c.set, float64(n)
	c.kappa = min(max(s.KappaMax, c.first), c.first*math.Sqrt(1+t/s.KappaOver))
	c.actor, c.price = c.a.Value(n+1), c.d.Value(n+1)
	c.least, c.most = 1/c.b.Value(n+1), t+1
}

// critic returns bᵢ(n) of a source whose cycle has about theta epochs.
func (c *clocks) critic(theta float64) float64 {
	return 1 / max(2, min(c.most+theta, max(c.least, c.set.Cycles*theta)))
}
