package observed

import "math"

// waiting is what is learned of one source: how its state drifts, and what
// waiting brings.
type waiting struct {
	// X′ = û + α̂X after waiting and X′ = û after a crawl, up to noise.
	gain, factor float64
	cov          [3]float64 // P of the least squares: (1, 1), (1, z) and (z, z) with z = X/τ

	unit float64 // τ, in which states are measured; 0 before anything was seen there
	lnT  float64 // ln T, the threshold
	top  float64 // the greatest state of late
}

// priorVariance is where P begins, in units of the noise: next to no prior.
const priorVariance = 1e6

// mostUnits is how many τ a state may be. The first state of a source may be next to
// nothing, as e⁻²⁰⁰ is where items lose their interest within a fraction of an epoch;
// powers of later states would have no place in a number.
const mostUnits = 1000

// see begins with a source, at its first state above 0, which is the first threshold;
// and begins with it again where a state is out of all proportion to τ.
func (l *Learner) see(i int, x float64) {
	if s := &l.src[i]; x > mostUnits*s.unit {
		*s = waiting{
			gain: x, factor: .9, cov: [3]float64{priorVariance, 0, priorVariance},
			unit: x, lnT: math.Log(x), top: x,
		}
		l.critic[i].Restart()
	}
}

// regress takes in a transition from x, 0 after a crawl, to next, by recursive
// least squares on φ = (1, z), z = x/τ, which is the formula of Sherman and Morrison:
//
//	k = Pφ/(1 + φᵀPφ),   (û, τα̂) ← (û, τα̂) + k(X′ − û − α̂x),   P ← P − kφᵀP
func (s *waiting) regress(x, next float64) {
	z := x / s.unit
	p0, p1 := s.cov[0]+s.cov[1]*z, s.cov[1]+s.cov[2]*z // Pφ
	den := 1 + p0 + p1*z
	err := (next - s.gain - s.factor*x) / den
	s.gain += p0 * err
	s.factor += p1 * err / s.unit
	s.cov[0] -= p0 * p0 / den
	s.cov[1] -= p0 * p1 / den
	s.cov[2] -= p1 * p1 / den
}

// reached returns T, or where that is out of reach the greatest state of late.
// Beyond it the critic has seen nothing, and its polynomials may say anything.
func (s *waiting) reached() float64 { return min(math.Exp(s.lnT), s.top) }

// drift returns û − (1 − α̂)x, by how much the state is expected to change in an
// epoch without a crawl, interest.
func (s *waiting) drift(x float64) float64 { return s.gain + (s.factor-1)*x }

// Rewards of the critic: the growth G of the state until the crawl, in units of
// τ, and the epochs D that it takes.
const (
	growth = iota
	epochs
)

// features writes 1, z, z², … with z = X/τ.
func (s *waiting) features(dst []float64, x float64) {
	z, v := x/s.unit, 1.0
	for j := range dst {
		dst[j] = v
		v *= z
	}
}

// wait returns G(X) and D(X), of waiting an epoch at X and then until the state
// has reached T: interest and epochs.
func (l *Learner) wait(i int, x float64) (g, d float64) {
	s := &l.src[i]
	if l.set.Critic == "drift" {
		return s.drift(x), 1
	}
	s.features(l.phi, x)
	rg, rd := l.critic[i].Weights(growth), l.critic[i].Weights(epochs)
	if l.set.Critic == "zero" {
		return 0, 1
	}
	for j, f := range l.phi {
		g += rg[j] * f
		d += rd[j] * f
	}
	g *= s.unit
	if l.set.Critic == "negative" {
		g, d = -g, -d
	}
	return g, max(1, d)
}

// Index returns the learned index of source i in state x, in interest per budget
// unit: the price at which crawling now and waiting earn the same. A cycle that
// begins at 0 earns G(0) − λC in D(0) epochs; waiting at X forgoes D(X) epochs of
// that for G(X), so that
//
//	W(X) = [G(0) − G(X) D(0)/D(X)]/C,
//
// at most X/C: at that price a crawl earns nothing.
func (l *Learner) Index(i int, x float64) float64 {
	g, d := l.wait(i, x)
	g0, d0 := l.wait(i, 0)
	return min(g0-g*d0/d, x) / l.costs[i]
}

// evaluate is a step of LSPE(0) for stopping at X ≥ T. φ = φ(X), and φ′ = φ(X′)
// where X′ < T, 0 where the waiting ends. What comes in is seen whether or not a
// source is crawled, so that the state after waiting at X is known in both
// cases; a crawl shows a second transition, from 0.
//
//	B ← B + b(φφᵀ − B),   A ← A + b(φ(φ′ − φ)ᵀ − A)
//	b̄ ← b̄ + b(φ·drift/τ − b̄) for G,   b̄ ← b̄ + b(φ − b̄) for D
//	r ← r + γB⁻¹(A r + b̄)
//
// The drift stands for X′ − X: what comes in beyond its mean is a martingale and
// adds nothing to G but noise.
func (l *Learner) evaluate(i int, x, next float64, crawled bool, b float64) {
	s := &l.src[i]
	c := l.critic[i]
	c.Begin(b)
	if crawled {
		l.transition(i, 0, next)
		next += s.factor * x
	}
	l.transition(i, x, next)
	c.Solve()
}

// transition adds waiting from x to next to what the critic averages.
func (l *Learner) transition(i int, x, next float64) {
	s := &l.src[i]
	s.features(l.phi, x)
	clear(l.then)
	if next < math.Exp(s.lnT) {
		s.features(l.then, next)
	}
	c := l.critic[i]
	c.Transition(l.phi, l.then)
	c.Reward(growth, s.drift(x)/s.unit, l.phi)
	c.Reward(epochs, 1, l.phi)
}
