package lspe

import (
	"math"

	"ephemera/features"
	"ephemera/learner/critic"
)

// critic is a critic by LSPE(0) for each source, with a reward for its harvests
// and one for its costs: V = Vₓ − λV_c, and a new price acts at once. V is 0
// right after a crawl, at s = 1.
type sources struct {
	l    *Learner
	bank *critic.Bank
	poly *features.Polynomial // nil for the exact features
	kind string               // Settings.Critic

	phi, next, d []float64
	z            [1]float64
}

const (
	harvests = iota
	costs
	bothRewards
)

func newCritic(l *Learner) sources {
	c := sources{l: l, kind: l.set.Critic}
	// What the mean squares of the features are taken for at first: ages up to
	// the period, and states that are seldom above the threshold.
	first := []float64{max(1, l.period*l.period/3), 1e-2}
	if d := l.set.degree(); d > 0 {
		c.poly, _ = features.New(features.Settings{Inputs: 1, Degree: d}) // validated
		first = make([]float64, d)
		for j := range first {
			first[j] = 1
		}
	}
	c.bank = critic.NewBank(len(l.src), bothRewards, first, l.set.Gamma)
	c.scratch(len(first))
	for i := range l.src {
		c.begin(i)
	}
	return c
}

func (c *sources) scratch(n int) {
	c.phi, c.next, c.d = make([]float64, n), make([]float64, n), make([]float64, n)
}

// begin sets averages and r of source i to what its first threshold would earn,
// so that before the first crawl rich sources do not pass for poor ones.
func (c *sources) begin(i int) {
	s := &c.l.src[i]
	s.eta, s.work = s.peak/s.Theta, c.l.costs[i]/s.Theta
	if c.poly == nil {
		rx, rc := c.bank.Weights(i, harvests), c.bank.Weights(i, costs)
		rx[0], rx[1], rc[0] = s.eta, s.ceil, s.work
	}
	c.tell(i)
}

// features writes φ of an age s and the state x that goes with it. Under a
// threshold V is linear in the age below it and in the state above it, so that
// the exact features are
//
//	φ(s) = (min(s, Θ) − 1, (x(s) − x(min(s, Θ)))/u*)
//
// and the others the powers of z = (x − u)/(u* − u).
func (c *sources) features(dst []float64, s *source, age, x float64) {
	if c.poly == nil {
		dst[0], dst[1] = min(age, s.Theta)-1, 0
		if age > s.Theta && s.ceil > 0 {
			dst[1] = (x - s.peak) / s.ceil
		}
		return
	}
	c.z[0] = 0
	if u := s.gain(); u < s.ceil {
		c.z[0] = (x - u) / (s.ceil - u)
	}
	c.poly.To(dst, c.z[:])
}

// cycle takes in the transitions φ(1) → φ(2) → … → φ(S) → φ(1) = 0 of source i
// that a crawl at age S has closed, with the weight w. Over a closed cycle A has
// no positive direction; within one, where all transitions lead upwards, it has,
// and r would grow without end.
func (c *sources) cycle(i, age int, harvest, w float64) {
	if c.kind != "lspe" {
		return
	}
	s, k := &c.l.src[i], c.bank
	k.Begin(i, w)
	x, from, share := s.gain(), 1, 1/float64(age)
	if c.poly == nil {
		from = c.climb(min(age, int(s.Theta)), share, s)
		x = s.mean(float64(from))
	}
	c.features(c.phi, s, float64(from), x)
	for a := from; a < age; a++ {
		x = s.after(x)
		c.features(c.next, s, float64(a+1), x)
		c.take(share, -s.eta, -s.work)
	}
	clear(c.next)
	c.take(share, harvest-s.eta, c.l.costs[i]-s.work)
	k.Solve(age)
	c.project(i)
}

// climb takes in the transitions from s = 1 to m ≤ Θ at once: there the exact
// features are (s − 1, 0), and their sums are known. It returns m.
func (c *sources) climb(m int, share float64, s *source) int {
	f := float64(m - 1)
	c.phi[0], c.phi[1], c.d[0], c.d[1] = 1, 0, 1, 0
	sum, squares := f*(f-1)/2, f*(f-1)*(2*f-1)/6 // of 0 … f − 1
	if squares > 0 {
		c.bank.Square(share*squares, c.phi)
		c.bank.Change(share*sum, c.phi, c.d)
		c.bank.Reward(harvests, -share*sum*s.eta, c.phi)
		c.bank.Reward(costs, -share*sum*s.work, c.phi)
	}
	return m
}

// take takes in the transition from phi to next, with both rewards less their
// averages, and goes on to next.
func (c *sources) take(share, harvest, cost float64) {
	for j, v := range c.next {
		c.d[j] = v - c.phi[j]
	}
	c.bank.Square(share, c.phi)
	c.bank.Change(share, c.phi, c.d)
	c.bank.Reward(harvests, share*harvest, c.phi)
	c.bank.Reward(costs, share*cost, c.phi)
	c.phi, c.next = c.next, c.phi
}

// transition takes in one epoch of source i at that age, alone.
func (c *sources) transition(i int, age float64, crawled bool, harvest, cost, b float64) {
	if c.kind != "lspe" {
		return
	}
	s := &c.l.src[i]
	c.features(c.phi, s, age, s.mean(age))
	clear(c.next)
	if !crawled {
		c.features(c.next, s, age+1, s.mean(age+1))
	}
	c.bank.Begin(i, b)
	c.take(1, harvest-s.eta, cost-s.work)
	c.bank.Solve(1)
	c.project(i)
}

// project keeps r within what is possible: an epoch more of waiting adds at most
// u to what is harvested, and at most one crawl. What diverges, with γ near 2,
// begins again.
func (c *sources) project(i int) {
	rx, rc := c.bank.Weights(i, harvests), c.bank.Weights(i, costs)
	if c.poly == nil {
		s := &c.l.src[i]
		rx[0], rc[0] = max(0, min(rx[0], s.gain())), max(0, min(rc[0], c.l.costs[i]))
	}
	for j := range rx {
		if v := rx[j]/c.l.src[i].ceil + rc[j]; math.Abs(v) > overflow || v != v {
			clear(rx)
			clear(rc)
			c.begin(i)
			return
		}
	}
}

const overflow = 1e60

// tell writes what the actor's advantage needs of source i: the slope of V below
// the threshold, which is r of the first feature.
func (c *sources) tell(i int) {
	s := &c.l.src[i]
	s.slope, s.toll = s.eta, s.work
	if c.kind == "lspe" {
		s.slope, s.toll = c.bank.Weights(i, harvests)[0], c.bank.Weights(i, costs)[0]
	}
}

// frozen returns a copy for a frozen learner.
func (c *sources) frozen(l *Learner) sources {
	f := *c
	f.l, f.bank = l, c.bank.Clone()
	f.scratch(len(c.phi))
	return f
}

// excess returns by how much the learned Lagrangian index W of source i exceeds
// the price, in interest per budget unit. With s′ the age at which it would be
// crawled if it is not crawled now, Θ or, if Θ has passed, the next age,
//
//	L(s) = [x(s) − V(s)] − [x(s′) − V(s′)],   V(s) = P (s − 1)
//
// is what crawling now is worth over waiting: between two crawls of the same
// source the rest of V cancels. L is 0 at the price W; its derivative by the
// price is −C (s′ − s)/Θ, and as the price goes from λ to W, Θ goes to s:
//
//	W − λ = L Θ/(C (s′ − s)) below the threshold,  L √(Θs)/C above
//
// W does not fall as the age grows, and neither does the key that mixes this
// with the margin m, for x is concave. So where L < 0 above the threshold the
// factor stays Θ. A source without profit, P = 0, is compared with never crawling
// it, L = x − λC:
//
//	W − λ = max(Θ L, L − λC (1 + m))/C
func (l *Learner) excess(i int, x, age float64) float64 {
	if l.critic.fits() {
		return l.critic.fitted(i, x, age)
	}
	s, cost := &l.src[i], l.costs[i]
	once, grow := x-l.price*cost, s.loss*(s.ceil-x)
	profit, at := l.profit(i)
	var e float64
	switch rest := s.Theta - age; {
	case profit == 0:
		// Below its threshold it ranks with others that wait; past it, this
		// outweighs the margin.
		m := clip(s.margin(age), l.set.MarginCap)
		e = max(s.Theta*once, once-l.price*cost*(1+m))
	case rest > 0:
		// By how much P exceeds what crawling at Θ earns counts in proportion to
		// the age: where Θ is long, a small error of P times Θ would outweigh the
		// price, and W of a source just crawled is 0 whatever P.
		if slope := (s.peak - x) / rest; profit > at {
			e = s.Theta*(at-slope) + age*(profit-at)
		} else {
			e = s.Theta * (profit - slope)
		}
	case profit < grow:
		e = s.Theta * (profit - grow)
	default:
		e = math.Sqrt(s.Theta*age) * (profit - grow)
	}
	if age > l.most && once > 0 {
		// Beyond the greatest threshold, at least what follows from crawling at
		// this age always: P comes from the last cycles, which for a slow source
		// may be far shorter than the best one.
		e = max(e, once-age*grow)
	}
	return e / cost
}

// profit returns P = r₁ₓ − λr₁c, what an epoch of waiting below the threshold
// of source i is worth, and what crawling at Θ earns per epoch. P is within a
// factor of two of it: where others leave room, a source is crawled long before
// its threshold. Then V is not linear, and its slope at the first ages is no
// profit. Where Θ is 1 no age is below it, and r knows no slope.
func (l *Learner) profit(i int) (profit, at float64) {
	s := &l.src[i]
	at = s.peak - l.price*l.costs[i]
	if at <= 0 {
		return 0, 0
	}
	at /= s.Theta
	profit = s.slope - l.price*s.toll
	switch {
	case s.Theta == 1:
		profit = at
	case profit < at/2:
		profit = at / 2
	case profit > 2*at:
		profit = 2 * at
	}
	return profit, at
}

// fits reports whether excess comes from fitted values.
func (c *sources) fits() bool { return c.poly != nil || c.kind == "off" }

// fitted is excess for values fitted by polynomials, and for r = 0: one epoch
// is looked ahead, A = x − λC + V(1) − V(αx + u).
func (c *sources) fitted(i int, x, age float64) float64 {
	s, cost := &c.l.src[i], c.l.costs[i]
	adv := x - c.l.price*cost
	if c.kind == "off" {
		return adv / cost
	}
	c.features(c.phi, s, age+1, s.after(x))
	rx, rc := c.bank.Weights(i, harvests), c.bank.Weights(i, costs)
	for j, f := range c.phi {
		adv -= (rx[j] - c.l.price*rc[j]) * f
	}
	return adv * s.Theta / (cost * max(1, s.Theta-age))
}
