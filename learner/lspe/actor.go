package lspe

import (
	"math"
)

// The actor of a source is its threshold T, a state in [u, u*]. It is held as
// the age θ ≥ 1 in which the source comes there, x(θ) = u*(1 − α^θ) = T: near u*
// states lose their digits and ages do not, and a step in ln θ means as much at
// a slow source as at a fast one.

const (
	maxCycles  = 50   // greatest threshold, in periods
	maxActor   = 0.5  // greatest step of ln θ
	leastActor = 1e-6 // |f − f*| below which the actor stays where it is
	halfEpoch  = 0.5  // the paper's shift of the logit
)

// mean returns x(s) = u*(1 − α^s).
func (s *source) mean(age float64) float64 {
	return -s.ceil * math.Expm1(age*math.Log1p(-s.loss))
}

// after returns the state after an epoch without a crawl, αx + u.
func (s *source) after(x float64) float64 { return x + s.loss*(s.ceil-x) }

// gain returns u.
func (s *source) gain() float64 { return s.loss * s.ceil }

// margin returns how far an age is above the threshold,
//
//	ln(s + ½) − ln θ
//
// times κ it is the exponent of the logit. With the half, the paper's, f is
// almost 1 at s = θ = 1: "always" is a threshold.
func (s *source) margin(age float64) float64 { return lnHalf(age) - s.lnTheta }

// lnHalves holds ln(s + ½) for small ages.
var lnHalves = func() (t [1024]float64) {
	for k := range t {
		t[k] = math.Log(float64(k) + halfEpoch)
	}
	return
}()

// lnHalf returns ln(s + ½).
func lnHalf(age float64) float64 {
	if age < float64(len(lnHalves)) {
		return lnHalves[int(age)]
	}
	return math.Log(age + halfEpoch)
}

// reached reports whether Θ is the first age with a margin of 0 or more.
func (s *source) reached() bool {
	return s.lnTheta <= lnHalf(s.Theta) && (s.Theta <= 1 || s.lnTheta > lnHalf(s.Theta-1))
}

// reach sets Θ, the first age with a margin of 0 or more, and x(Θ).
func (s *source) reach() {
	s.Theta = max(1, math.Ceil(math.Exp(s.lnTheta)-halfEpoch))
	switch { // e^(ln x) may not be x
	case s.lnTheta > lnHalf(s.Theta):
		s.Theta++
	case !s.reached():
		s.Theta--
	}
	s.peak = s.mean(s.Theta)
}

// move takes ln θ ← Π[ln θ − step], with Π onto [1, most]: T is in [u, u*].
func (s *source) move(step, most float64) {
	s.lnTheta = max(0, min(math.Log(most), s.lnTheta-step))
	if !s.reached() {
		s.reach()
	}
}

// push is the actor's step: the gradient of what the next decision is worth,
// both actions weighed and none sampled,
//
//	min(a(n) κ/max(Θ, s), ½) |f − f*| clip(e, 1)
//
// with f the logit of the margin and f* the better action, 1 where e > 0. The
// published weight f(1 − f) vanishes where the actor is sure, also where it is
// sure and wrong; |f − f*| has the same zero and does not. It is a step per
// cycle whatever the length of the cycle.
func (c *clocks) push(margin, e, cycle float64) float64 {
	f := logit(c.kappa * margin)
	if e > 0 {
		f = 1 - f
	}
	if f < leastActor {
		return 0
	}
	return min(c.actor*c.kappa/cycle, maxActor) * f * clip(e, 1)
}

// logit returns 1/(1 + e^(−m)), and 0 or 1 where it is within 10⁻¹¹ of it: most
// sources are sure in most epochs, and exponentials are what an epoch costs.
func logit(m float64) float64 {
	switch {
	case m > 25:
		return 1
	case m < -25:
		return 0
	}
	return 1 / (1 + math.Exp(-m))
}

// clip returns v cut to [−c, c].
func clip(v, c float64) float64 { return max(-c, min(c, v)) }
