package estimate

import (
	"math"

	"ephemera/env"
)

// marks are what the items of one source tell of its decay rate and of what they
// are worth when they are new. An item of age a has the present interest
// y = ξ e^(−ca) with ξ independent of a, so ln y over a is a line with the slope
// −c, under any law of ξ, and the intercept m.
type marks struct {
	N, Age, Log            float64 // items, their mean age and mean ln y
	AgeAge, AgeLog, LogLog float64 // centred sums
	LogDecay, DecayVar     float64 // ln c and its variance, given all sources
}

// add takes in an item (Welford, 1962).
func (s *marks) add(age, log float64) {
	s.N++
	da, dl := age-s.Age, log-s.Log
	s.Age += da / s.N
	s.Log += dl / s.N
	s.AgeAge += da * (age - s.Age)
	s.AgeLog += da * (log - s.Log)
	s.LogLog += dl * (log - s.Log)
}

func (s *marks) forget(keep float64) {
	for _, v := range []*float64{&s.N, &s.AgeAge, &s.AgeLog, &s.LogLog} {
		*v *= keep
	}
}

// rss returns the squares that the regression leaves, (N − 2)σ² in the mean.
func (s *marks) rss() float64 {
	if !(s.AgeAge > 0) {
		return 0
	}
	return max(0, s.LogLog-s.AgeLog*s.AgeLog/s.AgeAge)
}

const (
	firstDecay            = 1         // 1/epoch, before anything has been seen,
	firstDoubt            = math.Ln10 // give or take a factor of ten
	leastDecay, mostDecay = -14., 9.  // of ln c
	faintest              = 1e-300    // interest of an item that is still counted
	noiseItems            = 10        // items that σ² of all sources counts as
	jumpItems             = 10        // items after which a jump can be told,
	jumpSquare, jumpSum   = 9, 100    // by squares that are so large in the mean and in all
)

// variance returns σ² of a source, shrunk to that of all.
func (e *Estimates) variance(s *marks) float64 {
	return (s.rss() + noiseItems*e.Noise) / (max(0, s.N-2) + noiseItems)
}

// addMarks takes in the items of a crawl. It returns how many of them have any
// interest, and the age of the oldest of those.
func (e *Estimates) addMarks(s *source, items []env.Item, keep float64) (n, oldest float64) {
	if e.jumped(&s.Marks, items) {
		keep = 0
	}
	s.Marks.forget(keep)
	e.addWorth(&s.Marks, items)
	for _, it := range items {
		s.Oldest = max(s.Oldest, it.Age)
		if !(it.Interest <= faintest) {
			n++
			oldest = max(oldest, it.Age)
		}
	}
	return n, oldest
}

// addWorth takes in what items are worth of which that is known. The first begins the
// law of m.
func (e *Estimates) addWorth(v *marks, items []env.Item) {
	c := math.Exp(v.LogDecay)
	m, doubt := e.level(v)
	m += e.variance(v) / 2
	known := v.N > 10 && doubt < .1
	for _, it := range items {
		if it.Interest > faintest {
			log := math.Log(it.Interest)
			v.add(it.Age, log)
			if known && c*it.Age < 1 {
				e.Tail.add(math.Exp(log + c*it.Age - m))
			}
		}
	}
	for range 8 {
		e.stepDecay(v)
	}
	if e.LevelLaw.Var == 0 && v.N > 0 {
		m, _ := e.ownLevel(v)
		e.LevelLaw = normal{m, 1}
	}
}

// jumped reports whether the items of a crawl lie far from the line of their source,
// in the mean square over what they should: interest is lost at another rate than
// before, or is of another size. With a line through both, σ² and so e^(m + σ²/2)
// would be beyond all measure.
func (e *Estimates) jumped(s *marks, items []env.Item) bool {
	m, ofLevel := e.level(s)
	c, variance := math.Exp(s.LogDecay), e.variance(s)
	var n, square float64
	for _, it := range items {
		if it.Interest > faintest {
			off := math.Log(it.Interest) + c*it.Age - m
			doubt := c * (it.Age - s.Age)
			square += off * off / (variance + ofLevel + doubt*doubt*s.DecayVar)
			n++
		}
	}
	return s.N > jumpItems && square > max(jumpSum, jumpSquare*n)
}

// fitDecay brings the decay rates up to date. With
//
//	ĉ ~ N(c, σ²/Σ(a − ā)²),    ln c ~ N(μ, τ²)
//
// it is one sweep of expectation-maximisation: each source takes one
// Gauss–Newton step towards the mode of ln c given both, and μ and τ² are
// those of the sources that have shown something.
func (e *Estimates) fitDecay() {
	var rss, df float64
	for i := range e.Sources {
		if s := &e.Sources[i].Marks; s.N > 2 {
			rss += s.rss()
			df += s.N - 2
		}
	}
	if df > 0 {
		e.Noise = rss / df
	}
	fitNormal(&e.DecayLaw, e.Sources, func(s *source) (mode, variance float64, ok bool) {
		shown := e.stepDecay(&s.Marks)
		return s.Marks.LogDecay, s.Marks.DecayVar, shown
	})
}

// stepDecay takes one step of a source and reports whether its items have shown
// anything of ln c.
func (e *Estimates) stepDecay(s *marks) (shown bool) {
	target, info := s.LogDecay, 0.
	if s.AgeAge > 0 {
		c := math.Exp(s.LogDecay)
		info = s.AgeAge * c * c / max(e.variance(s), 1e-12) // of ln c, at c
		target = s.LogDecay + clip((-s.AgeLog/s.AgeAge-c)/c, 1)
	}
	precision := info + 1/e.DecayLaw.Var
	s.LogDecay = max(leastDecay, min(mostDecay, (info*target+e.DecayLaw.Mean/e.DecayLaw.Var)/precision))
	s.DecayVar = 1 / precision
	return info > 0
}

// ownLevel returns what the items of a source say of m, the intercept, and how
// exact that is:
//
//	m̂ = mean ln y + cā,   variance σ²/N + (cā)² Var ln c
func (e *Estimates) ownLevel(s *marks) (m, variance float64) {
	ca := math.Exp(s.LogDecay) * s.Age
	return s.Log + ca, e.variance(s)/s.N + ca*ca*s.DecayVar
}

// level returns m and its variance. It leans on the law of the sources, as far as
// its own items leave it open.
func (e *Estimates) level(s *marks) (m, variance float64) {
	m, variance = e.LevelLaw.Mean, e.LevelLaw.Var
	if s.N > 0 {
		own, v := e.ownLevel(s)
		w := variance / (variance + v)
		m, variance = m+w*(own-m), w*v
	}
	return m, variance
}

// fitLevel takes a step of the law of m.
func (e *Estimates) fitLevel() {
	fitNormal(&e.LevelLaw, e.Sources, func(s *source) (mode, variance float64, ok bool) {
		mode, variance = e.level(&s.Marks)
		return mode, variance, s.Marks.N > 0
	})
}

// clip returns v cut to [−c, c].
func clip(v, c float64) float64 { return max(-c, min(c, v)) }
