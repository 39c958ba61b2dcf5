// Package estimate holds what crawls tell about their sources to one who knows
// nothing beforehand. The items of source i are published at the rate λ, and one
// of age a has the interest
//
//		y = ξ e^(−ca),   ln ξ ~ N(m, σ²)
//
//	 1. The line of ln y over the age gives the decay rate c and the level m
//	    (marks.go).
//	 2. The number of items gives λ, and where epochs have dates how λ differs by
//	    the hour of the day and the day of the week (rate.go, profile.go).
//	 3. Items that are missing show a window (window.go).
//
// Each parameter of a source leans on the law of that parameter over all
// sources, and the law is estimated along with them (empirical Bayes). What was
// seen loses weight with its age.
package estimate

import (
	"fmt"
	"math"
	"slices"

	"ephemera/env"
)

// Options of what is estimated.
type Options struct {
	// Horizon is the age, in epochs, at which what was seen has lost all but
	// 1/e of its weight; 0 forgets nothing.
	Horizon float64 `toml:"horizon"`
	// Profile has the hours of the day and the days of the week estimated where
	// epochs have dates.
	Profile bool `toml:"profile"`
}

// Validate reports the first setting that is out of its range.
func (s *Options) Validate() error {
	if !(s.Horizon >= 0) || math.IsInf(s.Horizon, 0) {
		return fmt.Errorf("horizon is %v; allowed is a finite number of epochs, or 0 to forget nothing", s.Horizon)
	}
	return nil
}

// Estimates are the parameters of all sources as they are estimated.
type Estimates struct {
	State
	terms env.Terms
	set   Options
	clock clock
	ahead ahead
	wave  wave
}

// State is all that was learned, as data.
type State struct {
	Crawls int `json:"crawls"` // that were taken in
	Fitted int `json:"fitted"` // of these, when the laws of all sources were last brought up to date

	DecayLaw normal  `json:"decay"` // of ln c over the sources
	LevelLaw normal  `json:"level"` // of m
	RateLaw  normal  `json:"rate"`  // of ln λ
	Noise    float64 `json:"noise"` // σ² of all sources together
	Tail     average `json:"tail"`  // interest of an item over what the normal law of ln ξ says

	Profile profile    `json:"profile"`  // of all sources together
	VaryOwn [2]float64 `json:"vary_own"` // variance of the sources' own profiles around it: hours, days

	Gain float64 `json:"gain"` // ln of the likelihood with the profiles over that without

	Sources []source `json:"sources"`
}

// source is what is known of one source.
type source struct {
	Marks    marks
	Rate     rate
	Crawls   []bin     `json:",omitempty"` // by age, where epochs have no dates
	Oldest   float64   // greatest age of an item, epochs
	Span     float64   // epochs from the first that was seen to the last crawl
	Window   float64   // M, epochs; 0 for none
	Shows    float64   `json:",omitempty"` // items that it shows at most, as far as that is known
	Calendar *Calendar `json:",omitempty"` // where epochs have dates
}

// normal is a law of a parameter over the sources.
type normal struct {
	Mean float64 `json:"mean"`
	Var  float64 `json:"variance"`
}

// average is a mean of so many.
type average struct {
	Mean float64 `json:"mean"`
	N    float64 `json:"n"`
}

func (a *average) add(v float64) {
	a.N++
	a.Mean += (v - a.Mean) / a.N
}

// fitNormal sets the law from the mode and variance of its parameter at each
// source: one step of expectation-maximisation. One more source is thought to lie
// 1 from the mean, so that few that are alike do not make the law too narrow.
func fitNormal(law *normal, sources []source, parameter func(*source) (mode, variance float64, ok bool)) {
	var n, sum, square float64
	for i := range sources {
		if mode, variance, ok := parameter(&sources[i]); ok {
			n++
			sum += mode
			square += mode*mode + variance
		}
	}
	if n > 0 {
		m := sum / n
		law.Mean, law.Var = m, (max(0, square-n*m*m)+1)/(n+1)
	}
}

// New begins with nothing known of the sources.
func New(t env.Terms, set Options) *Estimates {
	e := &Estimates{terms: t, set: set, clock: clock{float64(t.Start), t.Length}, ahead: ahead{from: -1}, wave: wave{at: -1}}
	e.DecayLaw = normal{math.Log(firstDecay), firstDoubt * firstDoubt}
	e.Noise, e.Tail = 1, average{Mean: 1}
	e.Profile = evenly()
	for i := range t.Costs {
		e.Open(i)
	}
	return e
}

// Open begins source i, the first beyond all others or one that is forgotten, with
// nothing known of it.
func (e *Estimates) Open(i int) {
	s := source{Marks: marks{LogDecay: e.DecayLaw.Mean, DecayVar: e.DecayLaw.Var}}
	if e.dated() {
		s.Calendar = &Calendar{}
		e.shapeOwn(s.Calendar)
	}
	if i == len(e.Sources) {
		e.Sources = append(e.Sources, s)
	}
	e.Sources[i] = s
}

// dated reports whether the hours and days are estimated.
func (e *Estimates) dated() bool { return e.set.Profile && e.clock.dated() }

// rememberedItems is how many items of a source are remembered at least: fewer do not
// tell what it is worth, and one that is not known is tried for ever.
const rememberedItems = 300

// Add takes in a crawl.
func (e *Estimates) Add(c env.Crawled, epoch int) {
	s := &e.Sources[c.Source]
	keep := 1.0
	if e.set.Horizon > 0 {
		keep = math.Exp(-float64(c.Age) / max(e.set.Horizon, rememberedItems/e.Rate(c.Source)))
	}
	e.Crawls++
	c.Items = s.plausible(&c)
	n, oldest := e.addMarks(s, c.Items, keep)
	e.addRate(s, &c, n, oldest, epoch, keep)
	// Where there are dates gaps are the night.
	if !e.clock.dated() {
		s.addCrawl(float64(c.Age), float64(len(c.Items)), keep)
		if s.findWindow() {
			s.Rate.Epochs = s.visible(s.reach())
		}
	}
}

// Fit brings the estimates up to date after the crawls of an epoch: the laws of all
// sources after as many crawls as a quarter of the sources or of the crawls so far.
func (e *Estimates) Fit() {
	if e.set.Horizon > 0 {
		e.Gain *= math.Exp(-1 / e.set.Horizon)
	}
	if e.Crawls == e.Fitted || 4*(e.Crawls-e.Fitted) < min(e.Crawls, len(e.Sources)) {
		return
	}
	e.Fitted = e.Crawls
	e.fitDecay()
	if e.found() {
		e.fitLevel()
		e.fitRate()
		e.fitProfiles()
	}
}

// Report takes in what an item was worth that was counted with its interest unknown.
func (e *Estimates) Report(i int, it env.Item) {
	s := &e.Sources[i]
	if !(it.Interest > faintest) {
		s.Rate.Items = max(0, s.Rate.Items-1) // it should not have been counted
	}
	e.addWorth(&s.Marks, []env.Item{it})
}

// found reports whether any crawl has found an item.
func (e *Estimates) found() bool { return e.RateLaw.Var > 0 }

// Crawled reports whether any crawl of source i was taken in.
func (e *Estimates) Crawled(i int) bool { return e.Sources[i].Span > 0 }

// Decay returns c of source i, 1/epoch, and the standard error of ln c.
func (e *Estimates) Decay(i int) (c, doubt float64) {
	s := &e.Sources[i].Marks
	return math.Exp(s.LogDecay), math.Sqrt(s.DecayVar)
}

// Window returns M of source i, epochs; +Inf for none. A source that shows n items at
// most has the window n/λ.
func (e *Estimates) Window(i int) float64 {
	s := &e.Sources[i]
	m := s.reach()
	if s.Shows > 0 {
		m = min(m, s.Shows/e.Rate(i))
	}
	return m
}

// Rate returns λ of source i, items per epoch; 0 until anything was found.
func (e *Estimates) Rate(i int) float64 {
	if !e.found() {
		return 0
	}
	log, _ := e.rate(&e.Sources[i].Rate)
	return math.Exp(log)
}

// Inflow returns B = λξ̄ of source i in the mean over the hours and days,
// interest per epoch, and the standard error of its logarithm. It is 1 until
// anything was found.
func (e *Estimates) Inflow(i int) (b, doubt float64) {
	if !e.found() {
		return 1, 0
	}
	s := &e.Sources[i]
	m, ofLevel := e.level(&s.Marks)
	rate, ofRate := e.rate(&s.Rate)
	return math.Exp(rate+m+e.variance(&s.Marks)/2) * e.Tail.Mean, math.Sqrt(ofRate + ofLevel)
}

// Export returns a copy of all that was learned.
func (e *Estimates) Export() State {
	s := e.State
	s.Sources = slices.Clone(s.Sources)
	for i := range s.Sources {
		v := &s.Sources[i]
		v.Crawls = slices.Clone(v.Crawls)
		if v.Calendar != nil {
			c := *v.Calendar
			v.Calendar = &c
		}
	}
	return s
}

// Clone returns a copy that shares nothing.
func (e *Estimates) Clone() *Estimates {
	c := *e
	c.State = e.Export()
	return &c
}

// Import takes up a state that Export returned for the same terms and
// settings.
func (e *Estimates) Import(s State) error {
	if len(s.Sources) != len(e.Sources) {
		return fmt.Errorf("estimates of %d sources; the learner has %d", len(s.Sources), len(e.Sources))
	}
	for i := range s.Sources {
		if has := s.Sources[i].Calendar != nil; has != e.dated() {
			return fmt.Errorf("estimates of source %d know of hours and days: %v; in this world: %v", i+1, has, e.dated())
		}
	}
	e.State = (&Estimates{State: s}).Export()
	for i := range e.Sources {
		if c := e.Sources[i].Calendar; c != nil {
			e.shapeOwn(c)
		}
	}
	return nil
}
