// Package index holds the formulas of a single source, each once: what every
// policy, learner and table of this project uses.
//
//  1. A [Curve] is what one crawl earns by the age of the source, for any law of
//     interest, with Whittle's index at an age and its inverse.
//  2. For the exponential law the index has closed forms, at any state
//     ([Whittle], [WhittleLiteral], [Inverse]) and at an age.
//  3. [Lagrange] is the solution of one source's problem at a price, and gives
//     the Lagrangian index.
//  4. [Relax] is the relaxed problem of all sources in whole epochs, and the
//     upper bound on every policy, [Bound].
//  5. [Foresight] is the same bound where what sources publish is known, as in a
//     recording.
//
// All but the states are of the harvest curve, [env.Source.Harvest]. What holds
// under the papers' mean dynamics with windows is that of
// [env.Instance.MeanDynamics].
//
// Indices and prices are in interest per budget unit, charges (a price times
// the cost of a crawl) in interest.
package index

import (
	"math"

	"ephemera/env"
)

// Never is the age of a source that is never crawled.
const Never = math.MaxInt

// Curve is the harvest curve of a source at whole ages, with what follows from
// it for one source whose crawls are charged. H(0) = 0, and H rises at first ever
// faster, up to an age that may be 0, and then ever more slowly, as for every law
// of interest and window ([env.Source.Harvest]).
//
// Where crawls fail with a chance φ, all is counted by crawls that succeed, of which one takes
// 1/(1 − φ) crawls in the mean. Who crawls from an age on until a crawl succeeds waits for m =
// φ/(1 − φ) epochs more and brings back
//
//	F(s) = (1 − φ) Σₖ φᵏ H(s + k),   k ≥ 0
//
// so that a cycle of age s has s + m epochs. Below, H stands for F, and s + m for the length
// of a cycle.
type Curve struct {
	env.Source         // its Cost is that of a crawl that succeeds: C/(1 − φ)
	Top        float64 // H(∞), interest; −Inf where items cost ever more
	Limit      float64 // what the index tends to as the age grows: H(∞), or +Inf

	missed float64 // m, epochs of a cycle in which crawls fail, in the mean
	ahead  float64 // (1 − φ)/(1 − φα), of the exponential law

	scale float64 // λξ̄/c
	loss  float64 // 1 − α
	bend  float64 // the age from which on H is concave
	plain bool    // the law is exponential
}

// NewCurve returns the curve of a source.
func NewCurve(s env.Source) Curve {
	c := Curve{
		Source: s,
		Top:    s.Harvest(math.Inf(1)),
		scale:  s.Rate * s.Interest / s.Decay,
		loss:   -math.Expm1(-s.Decay),
	}
	c.plain, c.bend, c.Window = s.Exponential(), s.Bend(), s.Lifetime()
	if s.Fails > 0 {
		c.Cost, c.missed = s.Cost/(1-s.Fails), s.Fails/(1-s.Fails)
		c.ahead = (1 - s.Fails) / (1 - s.Fails*s.Factor())
	}
	if c.Limit = c.Top; s.Unbounded() {
		c.Limit = math.Inf(1)
	}
	return c
}

// Concave reports whether H is concave at all ages. Then the index is never
// below 0.
func (c *Curve) Concave() bool { return c.bend == 0 }

// At returns H(s), interest.
func (c *Curve) At(age int) float64 {
	s := float64(age)
	if c.Fails == 0 {
		return c.Harvest(s)
	}
	if c.plain && math.IsInf(c.Window, 1) {
		return c.scale * (1 - c.ahead*math.Exp(-c.Decay*s))
	}
	sum, chance := 0., 1-c.Fails
	for k := 0.; chance > 1e-16; k++ {
		if s+k >= c.Window { // from here on a crawl brings the same
			return sum + chance/(1-c.Fails)*c.Top
		}
		sum += chance * c.Harvest(s+k)
		chance *= c.Fails
	}
	return sum
}

// Index returns Cγ, the Whittle index at age s times the cost: the charge per
// crawl at which crawling now and waiting are worth the same. It is exact for any
// curve.
//
// At a charge p the best cycle earns β(p) = maxₜ (H(t) − p)/t. Crawling at age s
// is right if no later crawl makes up for the epochs that it waits, H(s) ≥ H(s+k)
// − kβ(p) for all k ≥ 1, that is if D ≤ β(p) with the steepest chord from s on,
//
//	D = maxₖ (H(s+k) − H(s))/k
//
// β falls with p, so that every source is indexable, and β(p) ≥ D holds up to
//
//	Cγ(s) = maxₜ [H(t) − tD],   t ≥ 1
//
// With H convex and then concave the chord touches the concave part, where t = s
// is as good as any t; in the convex part the best is t = 1. Where H is concave
// from s on, k = 1 and
//
//	Cγ(s) = H(s) − s(H(s+1) − H(s)) = (s+1)H(s) − sH(s+1)
//
// which for the exponential law is [atAge]. The index is below 0 as long as
// H(s)/s still rises: not even a crawl that is free is worth while then. From
// there on it does not fall as the age grows.
func (c *Curve) Index(age int) float64 {
	s := float64(age)
	if c.plain && c.Fails == 0 && s+1 <= c.Window {
		return atAge(c.scale, c.Decay, c.loss, s)
	}
	d := c.chord(age)
	charge := c.At(age) - (s+c.missed)*d
	if charge < 0 {
		charge = math.Max(charge, c.At(1)-(1+c.missed)*d)
	}
	return charge
}

// chord returns D, the slope of the steepest chord from an age on.
func (c *Curve) chord(age int) float64 {
	if float64(age) >= c.bend {
		return c.rise(age)
	}
	h := c.At(age)
	slope := func(k int) float64 { return (c.At(age+k) - h) / float64(k) }
	// The slope rises with k up to the chord that touches H, and then falls.
	return slope(FirstAge(0, Never, func(k int) bool { return slope(k+1) <= slope(k) }))
}

// rise returns H(s+1) − H(s).
func (c *Curve) rise(age int) float64 {
	s := float64(age)
	if c.Fails > 0 {
		return c.At(age+1) - c.At(age)
	}
	if !c.plain {
		if s < 1<<16 || s < c.Window && s+1 > c.Window {
			return c.At(age+1) - c.At(age)
		}
		// The difference would lose digits, but H′ is smooth: Gauss's three points.
		d := math.Sqrt(.15)
		return (5*c.HarvestRate(s+.5-d) + 8*c.HarvestRate(s+.5) + 5*c.HarvestRate(s+.5+d)) / 18
	}
	left := math.Min(1, math.Max(0, c.Window-s)) // of the window, epochs
	return c.scale * math.Exp(-c.Decay*s) * -math.Expm1(-c.Decay*left)
}

// Age is the inverse of Index for charges of 0 and more, and so the best time
// between crawls at a charge per crawl: the least s between lo and hi whose index
// reaches it. hi may be [Never].
func (c *Curve) Age(charge float64, lo, hi int) int {
	switch {
	case lo == hi || c.Index(lo) >= charge:
		return lo
	case charge > c.Limit:
		return hi
	}
	// Where the index is the ceiling to the last bit it does not rise further.
	const far = min(1<<52, math.MaxInt/2)
	reaches := func(age int) bool { return c.Index(age) >= charge }
	age, near := min(hi, far), c.guess(charge)
	switch {
	case !(near > float64(lo) && near < float64(age)):
		age = FirstAge(lo, age, reaches)
	case reaches(int(near)):
		age = firstAgeBelow(lo, int(near), reaches)
	default:
		age = FirstAge(int(near), age, reaches)
	}
	if age == far {
		return Never
	}
	return age
}

// guess returns an age at or near which the index of the exponential law reaches a
// charge, and NaN for other laws and where crawls fail. With q = charge/(λξ̄/c),
// m = (1 − α)/c and z = 1 + mcs that is where
//
//	1 − α^s(1 + s(1 − α)) = q,   (z/m) e^(−z/m) = e^(−1−u)   with   u = −ln(1 − q) + ln m + 1/m − 1
//
// on the branch W₋₁ of Lambert's function, of which Chatzigeorgiou (IEEE Communications
// Letters 17(8), 2013) has the bounds √(2u) + ⅔u < z/m − 1 < √(2u) + u. Two steps of
// Newton's method follow from the upper one.
func (c *Curve) guess(charge float64) float64 {
	if !c.plain || c.Fails > 0 {
		return math.NaN()
	}
	m, rest := c.loss/c.Decay, -math.Log1p(-charge/c.scale)
	u := rest + math.Log(m) + 1/m - 1
	y := (m*(1+math.Sqrt(2*u)+u) - 1) / m
	for range 2 { // y − ln(1 + my) = −ln(1 − q)
		y -= (y - math.Log1p(m*y) - rest) / (1 - m/(1+m*y))
	}
	return math.Ceil(math.Min(y/c.Decay, c.Window))
}

// firstAgeBelow returns the least age above lo that reaches, from one that does. The
// step from there is doubled, then halved.
func firstAgeBelow(lo, hi int, reaches func(age int) bool) int {
	for step := 1; hi-step > lo; step *= 2 {
		if !reaches(hi - step) {
			lo = hi - step
			break
		}
		hi -= step
	}
	return halve(lo, hi, reaches)
}

// FirstAge returns the least age above lo that reaches, or hi if none below it
// does; ages above one that reaches reach as well. The step from lo is doubled,
// then halved.
func FirstAge(lo, hi int, reaches func(age int) bool) int {
	for step := 1; lo+step < hi; step *= 2 {
		if reaches(lo + step) {
			hi = lo + step
			break
		}
		lo += step
	}
	return halve(lo, hi, reaches)
}

// halve returns the least age that reaches, above one that does not and up to one that
// does.
func halve(lo, hi int, reaches func(age int) bool) int {
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; reaches(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// frequency returns 1/s, crawls per epoch.
func (c *Curve) frequency(age int) float64 {
	if age == Never {
		return 0
	}
	return 1 / (float64(age) + c.missed)
}

// Yield returns (H(s) − charge)/s, interest per epoch. Of a source that is never crawled
// it is 0, or −Inf where items cost ever more.
func (c *Curve) Yield(age int, charge float64) float64 {
	if age == Never {
		return math.Min(0, c.Top)
	}
	return (c.At(age) - charge) / (float64(age) + c.missed)
}
