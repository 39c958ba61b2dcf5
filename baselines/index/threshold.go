package index

import (
	"math"

	"ephemera/env"
)

// RelaxedAge returns the time between crawls that is best at a price when it
// may be any real number of epochs: 0 at price 0, and +Inf from the price u*/C
// on. (17) in (19) of TCNS, differentiated, is the equation before (21),
//
//	α^η(1 − η ln α) = 1 − Cλ/u*
//
// With t = −η ln α it reads t − log(1+t) = −log(1 − Cλ/u*), see [lambert].
func RelaxedAge(s env.Source, price float64) float64 {
	q := s.Cost * price / s.Ceiling()
	switch {
	case q <= 0:
		return 0
	case !(q < 1): // also 0/0, a source that earns nothing
		return math.Inf(1)
	}
	return lambert(-math.Log1p(-q)) / s.Decay
}

// RelaxedThreshold returns the threshold on the state from which a source is
// crawled at a price λ, in interest, the state at [RelaxedAge]; it is the
// ceiling from the price u*/C on, which no state of the mean dynamics reaches.
// (21) of TCNS:
//
//	x̄(λ) = u*(1 − exp(1 + W(e⁻¹(Cλ/u* − 1))))
func RelaxedThreshold(s env.Source, price float64) float64 {
	return s.Ceiling() * -math.Expm1(-s.Decay*RelaxedAge(s, price))
}
