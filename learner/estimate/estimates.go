// Package estimate estimates sources from what crawls bring, without any knowledge
// beforehand. The items of source i are published at the rate λ, and one
// of age a has the interest
//
//		y = ξ e^(−ca),   E ln ξ = m,   Var ln ξ = σ²
//
//	 1. The line of ln y over the age gives the decay rate c and the level m
//	    (marks.go).
//	 2. The number of items gives λ, and where epochs have dates how λ differs by
//	    the hour of the day, the day of the week and the part of the hour (rate.go,
//	    profile.go).
//
// Each parameter of a source leans on the law of that parameter over all
// sources, and the law is estimated along with them (empirical Bayes). What was
// seen loses weight with its age.
package estimate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ephemera/env"
)

// Estimates are the parameters of all sources as they are estimated.
type Estimates struct {
	State
	horizon float64 // epochs
	clock   clock
	given   *env.Source // the law of all items, where an objective gives it
	around
}

// State is all that was learned, as data.
type State struct {
	Crawls int `json:"crawls"` // that were taken in
	Fitted int `json:"fitted"` // of these, when the laws of all sources were last brought up to date

	DecayLaw normal  `json:"decay"` // of ln c over the sources
	LevelLaw normal  `json:"level"` // of m
	RateLaw  normal  `json:"rate"`  // of ln λ
	Noise    float64 `json:"noise"` // σ² of all sources together

	Found    float64 `json:"found"`    // Σ y of items of sources that are known
	Foretold float64 `json:"foretold"` // and Σ e^(m+σ²/2−ca), of which ξ̄ is that share where ln ξ is not normal

	Profile profile   `json:"profile"` // of all sources together
	Vary    variances `json:"vary"`    // of the sources' own profiles around it
	Spread  float64   `json:"spread"`  // φ′ of all sources

	Sources []source `json:"sources"`
}

// source is what is known of one source.
type source struct {
	Marks marks
	Rate  rate
	Span  float64 // epochs from the first that was seen to the last crawl
	Shows float64 `json:",omitempty"` // items that it shows at most, as far as that is known

	Calendar calendar

	// Greatest age of an item; epochs of the crawls that found some, up to that age and
	// beyond; crawls that went beyond.
	Oldest, Within, Beyond, Past float64 `json:",omitempty"`
}

// normal is a law of a parameter over the sources.
type normal struct {
	Mean float64 `json:"mean"`
	Var  float64 `json:"variance"`
}

// fitNormal sets the law of a parameter of the sources.
func (e *Estimates) fitNormal(law *normal, parameter func(*source) (mode, variance float64, shown bool)) {
	law.fit(len(e.Sources), func(i int) (mode, variance float64, shown bool) { return parameter(&e.Sources[i]) })
}

// fit sets the law from the mode and variance of its parameter at each of n
// sources that has shown something of it: one step of expectation-maximisation. One
// more source is thought to lie 1 from the mean, so that few that are alike do not
// make the law too narrow.
func (law *normal) fit(n int, parameter func(i int) (mode, variance float64, shown bool)) {
	var of, sum, square float64
	for i := range n {
		if mode, variance, shown := parameter(i); shown {
			of++
			sum += mode
			square += mode*mode + variance
		}
	}
	if of > 0 {
		m := sum / of
		law.Mean, law.Var = m, (max(0, square-of*m*m)+1)/(of+1)
	}
}

// New begins without any knowledge of the sources. The horizon is the age, in epochs, at
// which what was seen has lost all but 1/e of its weight; 0 forgets nothing. The hours
// of the day and the days of the week are estimated where epochs have dates and profile
// says so. What an objective of the terms gives is not estimated: there c is known, and 0
// where items show their initial interest.
func New(t env.Terms, horizon float64, profile bool) *Estimates {
	anyRate := normal{0, math.Ln10 * math.Ln10} // c and λ are 1 per epoch, give or take a factor of ten
	begin := State{DecayLaw: anyRate, RateLaw: anyRate, Noise: 1, Profile: even, Spread: 1}
	e := &Estimates{
		State:   begin,
		horizon: cmp.Or(horizon, math.Inf(1)),
		clock:   clock{float64(t.Start), t.Length},
		around:  around{epoch: math.MinInt},
	}
	if !profile {
		e.clock.length = 0 // no dates
	}
	if t.Objective.Law != "" {
		law := t.Of(env.NewSource("", 1, 1, 1))
		e.given, e.DecayLaw = &law, normal{}
	}
	for i := range t.Costs {
		e.Open(i)
	}
	return e
}

// Open begins source i, the first beyond all others or one that is forgotten, without
// any knowledge of it.
func (e *Estimates) Open(i int) {
	s := source{
		Marks:    marks{LogDecay: e.DecayLaw.Mean, DecayVar: e.DecayLaw.Var},
		Rate:     rate{Log: e.RateLaw.Mean, Var: e.RateLaw.Var},
		Calendar: calendar{Own: e.Profile},
	}
	if i == len(e.Sources) {
		e.Sources = append(e.Sources, s)
	}
	e.Sources[i] = s
}

// rememberedItems is how many items of a source are remembered at least: fewer do not
// tell what it is worth, and one that is not known is tried for ever.
const rememberedItems = 300

// SetStart moves the Unix time of the first decision.
func (e *Estimates) SetStart(start int64) {
	e.clock.start, e.around.epoch = float64(start), math.MinInt
}

// Add takes in a crawl.
func (e *Estimates) Add(c env.Crawled, epoch int) {
	s := &e.Sources[c.Source]
	keep := math.Exp(-float64(c.Age) / max(e.horizon, rememberedItems/math.Exp(s.Rate.Log)))
	e.Crawls++
	c.Items = s.plausible(&c)
	for _, v := range []*float64{&s.Marks.N, &s.Marks.AgeAge, &s.Marks.AgeLog, &s.Marks.LogLog} {
		*v *= keep
	}
	e.addWorth(s, c.Items)
	e.addRate(s, &c, epoch, keep)
}

// Fit brings the estimates up to date after the crawls of an epoch: the laws of all
// sources after as many crawls as a quarter of the sources or of the crawls so far.
func (e *Estimates) Fit() {
	if e.Crawls == e.Fitted || 4*(e.Crawls-e.Fitted) < min(e.Crawls, len(e.Sources)) {
		return
	}
	e.Fitted = e.Crawls
	e.fitNoise()
	if e.given == nil {
		e.fitNormal(&e.DecayLaw, e.stepDecay)
	}
	e.fitNormal(&e.LevelLaw, e.level)
	e.fitNormal(&e.RateLaw, e.stepRate)
	if e.clock.dated() {
		e.fitProfiles()
	}
}

// Report takes in what an item was worth that was counted with its interest unknown.
func (e *Estimates) Report(i int, it env.Item) {
	s := &e.Sources[i]
	if !(it.Interest > faintest) {
		s.Rate.Items = max(0, s.Rate.Items-1) // it should not have been counted
	}
	e.addWorth(s, []env.Item{it})
}

// Crawled reports whether any crawl of source i was taken in.
func (e *Estimates) Crawled(i int) bool { return e.Sources[i].Span > 0 }

// Shows returns how many items source i shows at most, 0 as long as it has shown all that is
// new.
func (e *Estimates) Shows(i int) float64 { return e.Sources[i].Shows }

// Bursts returns φ of source i, 1 where its items are Poisson.
func (e *Estimates) Bursts(i int) float64 { return max(1, float64(e.Sources[i].Calendar.Phi)) }

// Source returns source i as it is estimated, in the mean over the hours and days, and
// the standard errors of ln B, the inflow B = λξ̄, and of ln c. The window is n/λ where
// the source shows n items at most. Where an objective gives it, the law is that.
func (e *Estimates) Source(i int) (s env.Source, ofInflow, ofDecay float64) {
	of := &e.Sources[i]
	m, ofLevel, _ := e.level(of)
	s = env.NewSource("", math.Exp(of.Rate.Log), e.decay(&of.Marks), meanMark(m, e.variance(&of.Marks)))
	if e.Foretold > 0 {
		s.Interest *= e.Found / e.Foretold
	}
	s.Window, _ = of.window()
	if of.Shows > 0 {
		s.Window = min(s.Window, of.Shows/s.Rate)
	}
	if e.given != nil {
		s.Law, s.Shape, s.Decay = e.given.Law, e.given.Shape, e.given.Decay
		if s.Unbounded() {
			s.Window = math.Inf(1)
		}
	}
	return s, math.Sqrt(of.Rate.Var + ofLevel), math.Sqrt(of.Marks.DecayVar)
}

// Clone returns a copy of all that was learned.
func (e *Estimates) Clone() *Estimates {
	c := *e
	c.Sources, c.around = slices.Clone(e.Sources), around{epoch: math.MinInt}
	return &c
}

// Import takes up the State of estimates of the same sources, whose own it is from then on;
// without Sources, those that are there.
func (e *Estimates) Import(s State) error {
	if s.Sources == nil {
		s.Sources = e.Sources
	}
	if n := len(e.Sources); len(s.Sources) != n {
		return fmt.Errorf("estimates of %d sources; the learner has %d", len(s.Sources), n)
	}
	e.State = s
	e.around.forget()
	for i := range e.Sources {
		c := &e.Sources[i].Calendar
		e.weigh(c)
		c.shape(&e.Profile, e.Vary)
	}
	return nil
}
