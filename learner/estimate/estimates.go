// Package estimate holds what crawls tell about their sources to one who knows
// nothing beforehand: decay rates, windows, and what is published, by hour and
// day where epochs have dates.
//
//  1. The decay rate of a source is the slope of its items' log interest over
//     their age (decay.go).
//  2. A window shows by items that are missing (window.go).
//  3. With both, every item is taken back to its publication, so that every
//     epoch of every source is seen, late. From these epochs come the levels, by
//     memories of different length (level.go), and the profiles of the hours and
//     days (profile.go).
//
// Sources about which little is known lean on what is common to all, by
// empirical Bayes: the law of the sources is estimated along with them.
package estimate

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"ephemera/env"
	"ephemera/learner/internal/check"
)

// Options of what is estimated.
type Options struct {
	// Decay, in 1/epoch, is the decay rate of all sources if it is known, up
	// to some per cent; 0 has the rates estimated.
	Decay float64 `toml:"decay"`
	// Horizon is the age, in epochs, at which what was seen has lost all but
	// 1/e of its weight; 0 forgets nothing.
	Horizon float64 `toml:"horizon"`

	// The rest is for ablations.

	// Profile of the hours and days: "mixed" or "off".
	Profile string `toml:"profile"`
	// Memory is "mixed", or "long" for the horizon alone.
	Memory string `toml:"memory"`
}

// Validate reports the first setting that is out of its range.
func (s *Options) Validate() error {
	switch {
	case !(s.Decay >= 0) || math.IsInf(s.Decay, 0):
		return fmt.Errorf("decay is %v; allowed is a finite rate per epoch, or 0 to have it estimated", s.Decay)
	case !(s.Horizon >= 0) || math.IsInf(s.Horizon, 0):
		return fmt.Errorf("horizon is %v; allowed is a finite number of epochs, or 0 to forget nothing", s.Horizon)
	}
	return check.First(
		check.OneOf("profile", s.Profile, "mixed", "off"),
		check.OneOf("memory", s.Memory, "mixed", "long"),
	)
}

// Estimates are what is known of all sources. Interest is held in a unit, so
// that no scale of it is too large or too small.
type Estimates struct {
	State
	terms env.Terms
	set   Options
	clock clock

	cast  []int // forecasters in use
	profs int   // profiles in use

	ln          []float64 // of a crawl's items' interest
	y, e        []float64 // by epochs back from a crawl: interest, exposure
	perInterest float64   // units, 0 where that is no number

	// Hour and day of the epochs from a given one on.
	from      int
	hour, day [lookAhead]int
}

// State is all that was learned, as data.
type State struct {
	Exponent int  `json:"exponent"` // interest is in units of 2^Exponent
	Scaled   bool `json:"scaled"`   // the exponent has been found
	Fitted   int  `json:"fitted"`   // epoch in which what is common was last brought up to date

	DecayMean float64 `json:"decay_mean"` // of ln c over the sources
	DecayVar  float64 `json:"decay_var"`
	Noise     float64 `json:"noise"` // variance of ln ξ within a source
	Common    common  `json:"common"`
	Most      float64 `json:"most"` // interest of an item as it was found, units

	Sources []source `json:"sources"`
}

// source is what is known of one source.
type source struct {
	Slope  slope
	Bins   []bin   // crawls by age
	Oldest float64 // greatest age of an item, epochs
	Window float64 // M, epochs; 0 for none
	Level  level
	Days   *Calendar `json:",omitempty"` // where epochs have dates
}

// New begins with nothing known of the sources.
func New(t env.Terms, set Options) *Estimates {
	e := &Estimates{terms: t, set: set, clock: clock{float64(t.Start), t.Length}, from: -1}
	e.cast, e.profs = e.inUse()
	e.DecayMean, e.DecayVar = math.Log(firstDecay), firstDoubt*firstDoubt
	e.Noise = 1
	e.Common = common{Profile: evenly(), Tail: 1, Psi: 1, PsiN: psiFirst, Var: 1}
	if set.Decay > 0 {
		e.DecayMean, e.DecayVar = math.Log(set.Decay), givenDoubt*givenDoubt
	}
	for j := range e.Common.Log {
		e.Common.Log[j] = math.Log(prior(j))
	}
	e.Sources = make([]source, len(t.Costs))
	for i := range e.Sources {
		s := &e.Sources[i]
		s.Slope.Theta, s.Slope.Var = e.DecayMean, e.DecayVar
		if e.clock.dated() {
			s.Days = &Calendar{Own: evenly()}
		}
	}
	return e
}

// Known reports whether any crawl has brought back anything.
func (e *Estimates) Known() bool { return e.Common.Rate > 0 }

// Unit returns the unit of interest, a power of two.
func (e *Estimates) Unit() float64 { return math.Ldexp(1, e.Exponent) }

// Decay returns c of source i, 1/epoch, and the standard error of ln c.
func (e *Estimates) Decay(i int) (c, doubt float64) {
	s := &e.Sources[i].Slope
	return math.Exp(s.Theta), math.Sqrt(s.Var)
}

// Window returns M of source i, epochs; 0 for none.
func (e *Estimates) Window(i int) float64 { return e.Sources[i].Window }

// mostInterest is the most interest of an item, in units: its square and the
// sums of such squares stay finite.
const (
	mostInterest  = 1e120
	leastInterest = 1e-290 // of what is more than none
)

// Units returns an interest in units, which the first interest found sets.
func (e *Estimates) Units(interest float64) float64 {
	if interest == 0 {
		return 0
	}
	if e.perInterest > 0 {
		return max(leastInterest, min(interest*e.perInterest, mostInterest))
	}
	if !e.Scaled {
		_, e.Exponent = math.Frexp(interest)
		e.Scaled = true
	}
	if e.Exponent > -1000 {
		e.perInterest = math.Ldexp(1, -e.Exponent)
	}
	return max(leastInterest, min(math.Ldexp(interest, -e.Exponent), mostInterest))
}

// Add takes in a crawl of epoch n.
func (e *Estimates) Add(c env.Crawled, n int) {
	s := &e.Sources[c.Source]
	age := float64(c.Age)
	s = e.grow(c.Interest, s, c.Source)
	keep := 1.0
	if e.set.Horizon > 0 {
		keep = math.Exp(-age / e.set.Horizon)
	}
	s.Slope.forget(keep)
	e.ln = e.ln[:0]
	for _, it := range c.Items {
		ln := math.Log(e.Units(it.Interest))
		e.ln = append(e.ln, ln)
		e.Most = max(e.Most, e.Units(it.Interest))
		if it.Interest > 0 {
			s.Slope.add(it.Age, ln)
		}
		s.Oldest = max(s.Oldest, it.Age)
	}
	for range 8 {
		if e.set.Decay == 0 {
			e.stepDecay(&s.Slope)
		}
	}
	e.addLevel(s, &c, n, keep)
	// A recording has no window, and where there are dates gaps are the night.
	if !e.clock.dated() {
		s.addCrawl(age, float64(len(c.Items)), keep)
		if old := s.reach(); s.findWindow() {
			s.Level.expose(s.visible(s.reach()) / s.visible(old))
		}
	}
}

// mostUnits is the exponent from which an interest is beyond comparison with the
// unit: what was learned of so little is worth nothing beside it.
const mostUnits = 150

// grow begins afresh, in another unit, after a harvest beyond comparison.
func (e *Estimates) grow(harvest float64, s *source, i int) *source {
	_, exponent := math.Frexp(harvest)
	if !e.Scaled || harvest == 0 || exponent-e.Exponent <= mostUnits {
		return s
	}
	*e = *New(e.terms, e.set)
	e.Exponent, e.Scaled = exponent, true
	return &e.Sources[i]
}

// fitEvery is after how many epochs what is common to all sources is brought
// up to date, at first after each.
const fitEvery = 32

// Fit brings the estimates up to date after the crawls of epoch n.
func (e *Estimates) Fit(n int) {
	e.fitDecay()
	if n-e.Fitted >= fitEvery || n < fitEvery || !e.Known() {
		e.Fitted = n
		e.fitCommon()
	}
}

// Export returns a copy of all that was learned.
func (e *Estimates) Export() State {
	s := e.State
	s.Sources = slices.Clone(s.Sources)
	for i := range s.Sources {
		v := &s.Sources[i]
		v.Bins = slices.Clone(v.Bins)
		if v.Days != nil {
			days := *v.Days
			v.Days = &days
		}
	}
	return s
}

// Clone returns a copy that shares nothing.
func (e *Estimates) Clone() *Estimates {
	c := *e
	c.State = e.Export()
	c.ln, c.y, c.e = nil, nil, nil
	return &c
}

// Import takes up a state that Export returned for the same terms and
// settings.
func (e *Estimates) Import(s State) error {
	if len(s.Sources) != len(e.Sources) {
		return fmt.Errorf("estimates of %d sources; the learner has %d", len(s.Sources), len(e.Sources))
	}
	for i := range s.Sources {
		if has := s.Sources[i].Days != nil; has != e.clock.dated() {
			return fmt.Errorf("estimates of source %d know of hours and days: %v; in this world: %v", i+1, has, e.clock.dated())
		}
	}
	if _, err := json.Marshal(s); err != nil { // as no state that was kept
		return fmt.Errorf("estimates: %w", err)
	}
	e.State = (&Estimates{State: s}).Export()
	e.perInterest = 0
	return nil
}
