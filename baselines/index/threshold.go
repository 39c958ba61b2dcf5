package index

import (
	"math"

	"ephemera/env"
)

// RelaxedAge returns the time between crawls that is best at a price when it
// may be any real number of epochs: where a cycle earns the most per epoch,
// (H(t) − Cλ)/t, that is where
//
//	H(t) − tH′(t) = Cλ
//
// but not beyond the window, after which nothing gathers. It is +Inf from the
// price H(∞)/C on. For the exponential law this is the equation before (21) of
// TCNS, (17) in (19) differentiated,
//
//	α^η(1 − η ln α) = 1 − Cλ/u*
//
// With t = −η ln α it reads t − log(1+t) = −log(1 − Cλ/u*), see [lambert]. What
// is harvested there is the threshold (21) of the relaxed control,
//
//	x̄(λ) = u*(1 − exp(1 + W(e⁻¹(Cλ/u* − 1))))
func RelaxedAge(s env.Source, price float64) float64 {
	window, charge := s.Window, price*s.Cost
	top := s.Harvest(math.Inf(1))
	if !(charge < top) { // also a source that earns nothing
		return math.Inf(1)
	}
	s.Window = math.Inf(1)
	switch {
	case charge <= 0 && s.Law != env.LawHump:
		return 0
	case s.Exponential():
		return math.Min(window, lambert(-math.Log1p(-charge/s.Harvest(math.Inf(1))))/s.Decay)
	}
	// In t = e^v; the left side rises where it is above 0.
	excess := func(v float64) float64 {
		t := math.Exp(v)
		return s.Harvest(t) - t*s.HarvestRate(t) - math.Max(charge, 1e-15*top)
	}
	lo := -math.Log(s.Decay)
	for excess(lo) > 0 {
		lo--
	}
	hi := lo + 1
	for excess(hi) < 0 {
		if math.Exp(lo) >= window {
			return window
		}
		lo, hi = hi, hi+1
	}
	return math.Min(window, math.Exp(Crossing(lo, hi, excess)))
}

// Crossing returns where f, which goes from below 0 to above it once between lo
// and hi, crosses 0: by the rule of false position in the form of Illinois.
func Crossing(lo, hi float64, f func(float64) float64) float64 {
	a, b := f(lo), f(hi)
	side := 0
	for range 100 {
		x := (lo*b - hi*a) / (b - a)
		if !(x > lo && x < hi) {
			x = lo + (hi-lo)/2
		}
		y := f(x)
		switch {
		case y == 0 || hi-lo <= 4e-16*math.Max(math.Abs(lo), math.Abs(hi)):
			return x
		case y < 0:
			if lo, a = x, y; side < 0 {
				b /= 2
			}
			side = -1
		default:
			if hi, b = x, y; side > 0 {
				a /= 2
			}
			side = 1
		}
	}
	return (lo + hi) / 2
}
