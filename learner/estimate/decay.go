package estimate

import "math"

// slope is what the items of one source tell of its decay rate. An item of age
// a has the present interest y = ξ e^(−ca) with ξ independent of a, so the
// slope of ln y over a is −c under any law of ξ.
type slope struct {
	N, Age, Log            float64 // items, their mean age and mean ln y
	AgeAge, AgeLog, LogLog float64 // centred sums
	Theta, Var             float64 // ln c and its variance, given all sources
}

// add takes in an item (Welford, 1962).
func (s *slope) add(age, log float64) {
	s.N++
	da, dl := age-s.Age, log-s.Log
	s.Age += da / s.N
	s.Log += dl / s.N
	s.AgeAge += da * (age - s.Age)
	s.AgeLog += da * (log - s.Log)
	s.LogLog += dl * (log - s.Log)
}

func (s *slope) forget(keep float64) {
	for _, v := range []*float64{&s.N, &s.AgeAge, &s.AgeLog, &s.LogLog} {
		*v *= keep
	}
}

// rss returns the squares that the regression leaves, (N − 2)σ² in the mean.
func (s *slope) rss() float64 {
	if !(s.AgeAge > 0) {
		return 0
	}
	return max(0, s.LogLog-s.AgeLog*s.AgeLog/s.AgeAge)
}

const (
	firstDecay            = 1         // 1/epoch, before anything has been seen,
	firstDoubt            = math.Ln10 // give or take a factor of ten
	givenDoubt            = .05       // standard error of ln c where it is given: nobody knows it exactly
	leastTheta, mostTheta = -14., 9.  // of ln c
)

// fitDecay brings the decay rates up to date. With σ² the variance of ln ξ,
//
//	ĉ ~ N(c, σ²/Σ(a − ā)²),    ln c ~ N(m, τ²)
//
// It is one sweep of expectation-maximisation: each source takes one
// Gauss–Newton step towards the mode of ln c given both, and m and τ² are
// those of the sources that have shown something. σ² of a source is shrunk to
// the common one with the weight of one item.
func (e *Estimates) fitDecay() {
	if e.set.Decay > 0 {
		return
	}
	var rss, df float64
	for i := range e.Sources {
		if s := &e.Sources[i].Slope; s.N > 2 {
			rss += s.rss()
			df += s.N - 2
		}
	}
	if df > 0 {
		e.Noise = rss / df
	}
	var law normal
	for i := range e.Sources {
		if s := &e.Sources[i].Slope; e.stepDecay(s) > 0 {
			law.add(s.Theta, s.Var)
		}
	}
	law.fit(&e.DecayMean, &e.DecayVar)
}

// normal gathers the normal law of a parameter over the sources, from its mode
// and variance at each of them.
type normal struct{ n, sum, square float64 }

func (l *normal) add(mode, variance float64) {
	l.n++
	l.sum += mode
	l.square += mode*mode + variance
}

// fit sets the law; one source says nothing of how sources differ.
func (l *normal) fit(mean, variance *float64) {
	if l.n > 1 {
		m := l.sum / l.n
		*mean, *variance = m, max(l.square/l.n-m*m, 1e-6)
	}
}

// stepDecay takes one step of a source and returns the precision of its own
// ln c.
func (e *Estimates) stepDecay(s *slope) (info float64) {
	target := s.Theta
	if s.AgeAge > 0 {
		sigma := e.Noise
		if s.N > 2 {
			sigma = (s.rss() + e.Noise) / (s.N - 1)
		}
		c := math.Exp(s.Theta)
		info = s.AgeAge * c * c / max(sigma, 1e-12) // of ln c, at c
		target = s.Theta + clip((-s.AgeLog/s.AgeAge-c)/c, 1)
	}
	precision := info + 1/e.DecayVar
	s.Theta = max(leastTheta, min(mostTheta, (info*target+e.DecayMean/e.DecayVar)/precision))
	s.Var = 1 / precision
	return info
}

// clip returns v cut to [−c, c].
func clip(v, c float64) float64 { return max(-c, min(c, v)) }
