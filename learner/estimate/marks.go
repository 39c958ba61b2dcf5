package estimate

import (
	"math"

	"ephemera/env"
)

// marks are what the items of one source tell of its decay rate and of what they
// are worth when they are new. An item of age a has the present interest
// y = ξ e^(−ca) with ξ independent of a, so ln y over a is a line with the slope
// −c, under any law of ξ, and the intercept m = E ln ξ.
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

const (
	firstDecay            = 1         // 1/epoch, before anything has been seen,
	firstDoubt            = math.Ln10 // give or take a factor of ten
	leastDecay, mostDecay = -14., 9.  // of ln c
	faintest              = 1e-300    // interest of an item that is still counted
	lasts                 = 40        // of 1/c: an item that is older may not be shown
	leastNoise            = 1e-12     // σ² that is reckoned with at least
	jumpSquare            = 50        // of the mean of items over its variance, where they have jumped
)

// addMarks takes in the items of a crawl. It returns how many of them count, and the
// age of the oldest of those: they have some interest, and are within their lifetime or
// from before the first crawl.
func (e *Estimates) addMarks(s *source, c *env.Crawled, keep float64) (n, oldest float64) {
	s.Marks.forget(keep)
	e.addWorth(&s.Marks, c.Items)
	for _, it := range c.Items {
		if !(it.Interest <= faintest) && (it.Age <= s.lifetime() || it.Age > s.Span+float64(c.Age)) {
			n++
			oldest = max(oldest, it.Age)
		}
	}
	return n, oldest
}

// lifetime returns the age up to which items are shown, epochs.
func (s *source) lifetime() float64 { return lasts / math.Exp(s.Marks.LogDecay) }

// window returns the age beyond which no item is seen. All of n items that were
// published in E + E′ epochs are in the E that are younger than the oldest with the
// chance (E/(E + E′))ⁿ.
func (s *source) window() float64 {
	if n := s.Rate.Items; n*math.Log1p(s.Beyond/s.Within) > unlikely {
		return s.Oldest * (1 + 1/n)
	}
	return math.Inf(1)
}

// addWorth takes in what items are worth of which that is known. Where they lie far
// from the line of their source in the mean, since they are of another size or lose
// interest at another rate than before, it begins anew. The first begin the law of m.
func (e *Estimates) addWorth(v *marks, items []env.Item) {
	var now marks
	for _, it := range items {
		if it.Interest > faintest {
			now.add(it.Age, math.Log(it.Interest))
		}
	}
	m, variance := e.level(v)
	c, some := math.Exp(v.LogDecay), v.N > 10
	off, doubt := now.Log+c*now.Age-m, c*(now.Age-v.Age)
	if some && off*off > jumpSquare*(e.Noise/now.N+variance+doubt*doubt*v.DecayVar) {
		v.forget(0)
	}
	for _, it := range items {
		if it.Interest > faintest {
			v.add(it.Age, math.Log(it.Interest))
			if some && variance < .1 {
				e.Found += it.Interest
				e.Foretold += math.Exp(m - c*it.Age)
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

// fitDecay brings the decay rates up to date. With
//
//	ĉ ~ N(c, σ²/Σ(a − ā)²),    ln c ~ N(μ, τ²)
//
// it is one sweep of expectation-maximisation: each source takes one
// Gauss–Newton step towards the mode of ln c given both, and μ and τ² are
// those of the sources that have shown something.
func (e *Estimates) fitDecay() {
	var rss, df float64 // squares that the lines leave, and (N − 2) of them
	for i := range e.Sources {
		if s := &e.Sources[i].Marks; s.N > 2 && s.AgeAge > 0 {
			rss += s.LogLog - s.AgeLog*s.AgeLog/s.AgeAge
			df += s.N - 2
		}
	}
	if df > 0 {
		e.Noise = max(leastNoise, rss/df)
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
		info = s.AgeAge * c * c / e.Noise // of ln c, at c
		target = s.LogDecay + max(-1, min(1, (-s.AgeLog/s.AgeAge-c)/c))
	}
	precision := info + 1/e.DecayLaw.Var
	s.LogDecay = max(leastDecay, min(mostDecay, (info*target+e.DecayLaw.Mean/e.DecayLaw.Var)/precision))
	s.DecayVar = 1 / precision
	return info > 0
}

// ownLevel returns what the items of a source say of m and how exact that is:
//
//	m̂ = mean ln y + cā,   variance σ²/N + (cā)² Var ln c
func (e *Estimates) ownLevel(s *marks) (m, variance float64) {
	ca := math.Exp(s.LogDecay) * s.Age
	return s.Log + ca, e.Noise/s.N + ca*ca*s.DecayVar
}

// level returns m and its variance. It leans on the law of the sources, as far as
// its own items leave it open.
func (e *Estimates) level(s *marks) (m, variance float64) {
	m, variance = e.LevelLaw.Mean, e.LevelLaw.Var
	if s.N > 0 && variance > 0 {
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
