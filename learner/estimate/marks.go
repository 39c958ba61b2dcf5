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
	Far                    bool    `json:",omitempty"` // the last items lay far from the line
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

const (
	leastDecay, mostDecay = -14., 9. // of ln c
	faintest              = 1e-300   // interest of an item that is still counted
	lasts                 = 40       // of 1/c: an item that is older may not be shown
	leastNoise            = 1e-12    // σ² that is reckoned with at least
	unlikely              = 12       // −ln of the chance below which something is not put down to chance
	noiseItems            = 10       // items that σ² of all sources counts as
	// Squares of errors over their variance, where items have jumped: in the mean, and in all.
	jumpSquare, jumpSum = 9, 100
)

// rss returns the squares that the line leaves, (N − 2)σ² in the mean.
func (s *marks) rss() float64 {
	return max(0, s.LogLog-s.AgeLog*s.AgeLog/max(faintest, s.AgeAge))
}

// variance returns σ² of a source. It leans on that of all.
func (e *Estimates) variance(s *marks) float64 {
	return max(leastNoise, (s.rss()+noiseItems*e.Noise)/(max(0, s.N-2)+noiseItems))
}

// mostLog is the logarithm of what an item is thought to be worth at most, in the mean.
var mostLog = math.Log(1e205)

// meanMark returns ξ̄ = e^(m+σ²/2), where ln ξ is normal. Items of one source that are worth
// 10⁻¹⁰⁰ and 10¹⁰⁰ give a σ² with which that is no number.
func meanMark(m, variance float64) float64 { return math.Exp(min(m+variance/2, mostLog)) }

// decay returns c of a source, 0 where items show their initial interest.
func (e *Estimates) decay(s *marks) float64 {
	switch {
	case e.given == nil:
		return math.Exp(s.LogDecay)
	case e.given.Exponential():
		return e.given.Decay
	}
	return 0
}

// lifetime returns the age up to which items are shown, or count, epochs.
func (e *Estimates) lifetime(s *source) float64 {
	if e.given != nil {
		return min(e.given.Lifetime(), lasts/e.decay(&s.Marks))
	}
	return lasts / e.decay(&s.Marks)
}

// window returns the age beyond which no item is seen, and the share of the epochs
// since the crawls before that is younger. All of n items that were published in
// E + E′ epochs are in the E that are younger than the oldest with the chance
// (E/(E + E′))ⁿ.
func (s *source) window() (age, share float64) {
	if n := s.Rate.Items; n*math.Log1p(s.Beyond/s.Within) > unlikely {
		return s.Oldest * (1 + 1/n), s.Within / (s.Within + s.Beyond)
	}
	return math.Inf(1), 1
}

// addWorth takes in what items are worth of which that is known. Where those of two
// crawls in a row lie far from the line of their source in the mean square, since they
// are of another size or lose interest at another rate than before, it begins anew with
// the second, unless a line is far from those too, which are then from before and after
// a change. The first is left out: it may show such items. Items that differ by far less
// than those before share a mark, and count as one. The first items of all begin the law
// of m.
func (e *Estimates) addWorth(s *source, items []env.Item) {
	v := &s.Marks
	m, doubt, _ := e.level(s)
	c, variance := e.decay(v), e.variance(v)
	before, now := *v, marks{LogDecay: v.LogDecay, DecayVar: v.DecayVar}
	var square, found, foretold float64
	for _, it := range items {
		if it.Interest > faintest {
			log := math.Log(it.Interest)
			off, ofDecay := log+c*it.Age-m, c*(it.Age-before.Age)
			square += off * off / (variance + doubt + ofDecay*ofDecay*v.DecayVar)
			found += it.Interest
			foretold += meanMark(m, variance) * math.Exp(-c*it.Age)
			v.add(it.Age, log)
			now.add(it.Age, log)
		}
	}
	known, n, own := before.N > 10, now.N, now.rss()/max(1, now.N-2)
	if n > 2 && own < variance/jumpSquare {
		square, n = square/n, 1 // they share a mark
	}
	far := known && square > max(jumpSum, jumpSquare*n)
	switch {
	case far && before.Far && own < jumpSquare*max(1, e.Noise):
		*v = now
	case far:
		*v, v.Far = before, true
	case now.N > 0:
		v.Far = false
	}
	if known && !far && doubt < .1 {
		e.Found += found
		e.Foretold += foretold
	}
	for range 8 {
		if e.given == nil {
			e.stepDecay(s)
		}
	}
	if e.LevelLaw.Var == 0 && v.N > 0 {
		m, _ := e.ownLevel(v)
		e.LevelLaw = normal{m, 1}
	}
}

// fitNoise brings σ² of all sources up to date.
func (e *Estimates) fitNoise() {
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
}

// stepDecay takes one Gauss–Newton step towards the mode of ln c of a source given
//
//	ĉ ~ N(c, σ²/Σ(a − ā)²),    ln c ~ N(μ, τ²)
//
// and reports whether its items have shown anything of it.
func (e *Estimates) stepDecay(of *source) (mode, variance float64, shown bool) {
	s := &of.Marks
	c := e.decay(s)
	info := s.AgeAge * c * c / e.variance(s) // of ln c, at c
	target := s.LogDecay + max(-1, min(1, (-s.AgeLog/max(faintest, s.AgeAge)-c)/c))
	precision := info + 1/e.DecayLaw.Var
	s.LogDecay = max(leastDecay, min(mostDecay, (info*target+e.DecayLaw.Mean/e.DecayLaw.Var)/precision))
	s.DecayVar = 1 / precision
	return s.LogDecay, s.DecayVar, info > 0
}

// ownLevel returns what the items of a source say of m and how exact that is:
//
//	m̂ = mean ln y + cā,   variance σ²/N + (cā)² Var ln c
func (e *Estimates) ownLevel(s *marks) (m, variance float64) {
	ca := e.decay(s) * s.Age
	return s.Log + ca, e.variance(s)/s.N + ca*ca*s.DecayVar
}

// level returns m and its variance, and whether its own items say anything of it. It
// leans on the law of the sources, as far as they leave it open.
func (e *Estimates) level(of *source) (m, variance float64, shown bool) {
	s := &of.Marks
	m, variance = e.LevelLaw.Mean, e.LevelLaw.Var
	if s.N > 0 && variance > 0 {
		own, v := e.ownLevel(s)
		w := variance / (variance + v)
		m, variance = m+w*(own-m), w*v
	}
	return m, variance, s.N > 0
}
