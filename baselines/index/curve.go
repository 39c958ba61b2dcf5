package index

import (
	"fmt"
	"math"

	"ephemera/env"
)

// Dynamics says what a crawl earns by the age of the source.
type Dynamics int

const (
	// MeanDynamics are the papers' (2)-(3): x(s) = u*(1 − α^s).
	MeanDynamics Dynamics = iota
	// ItemDynamics are the exact means of items that are dropped when they
	// are older than the window: x(s) = (λξ̄/c)(1 − α^min(s, M)). Without a
	// window they are the same.
	ItemDynamics
)

// Never is the age of a source that is never crawled.
const Never = math.MaxInt

// Curve is what one crawl earns by age, concave from 0 to the ceiling:
//
//	x(s) = b(1 − α^min(s, M))
type Curve struct {
	Top  float64 // x(∞), interest
	Cost float64 // C, budget units

	scale  float64 // b
	decay  float64 // c
	loss   float64 // 1 − α
	window float64 // M
}

// NewCurve returns the curve of a source.
func NewCurve(s env.Source, d Dynamics) Curve {
	c := Curve{Top: s.Ceiling(), Cost: s.Cost, scale: s.Ceiling(), decay: s.Decay, loss: -math.Expm1(-s.Decay), window: math.Inf(1)}
	switch d {
	case MeanDynamics:
	case ItemDynamics:
		c.scale, c.window = s.Rate*s.Interest/s.Decay, s.Window
	default:
		panic(fmt.Sprintf("index: unknown dynamics %d", d))
	}
	return c
}

// At returns x(s), interest.
func (c *Curve) At(age int) float64 {
	return c.scale * -math.Expm1(-c.decay*math.Min(float64(age), c.window))
}

// Index returns Cγ at age s, the charge per crawl at which crawling every s
// and every s+1 epochs earn the same. It does not fall with s, since x is
// concave:
//
//	Cγ(s) = x(s) − s (x(s+1) − x(s))
//
// Before the window closes this is [AtAge].
func (c *Curve) Index(age int) float64 {
	s := float64(age)
	if s+1 <= c.window {
		return AtAge(c.scale, c.decay, c.loss, s)
	}
	return c.At(age) - s*c.rise(age)
}

// rise returns x(s+1) − x(s).
func (c *Curve) rise(age int) float64 {
	s := float64(age)
	left := math.Min(1, math.Max(0, c.window-s)) // of the window, epochs
	return c.scale * math.Exp(-c.decay*s) * -math.Expm1(-c.decay*left)
}

// Age is the inverse of Index, the best time between crawls at a charge per
// crawl: the least s between lo and hi whose index reaches it. hi may be
// [Never].
func (c *Curve) Age(charge float64, lo, hi int) int {
	switch {
	case lo == hi || c.Index(lo) >= charge:
		return lo
	case charge > c.Top:
		return hi
	}
	// Where the index is the ceiling to the last bit it does not rise further.
	const far = min(1<<52, math.MaxInt/2)
	age := FirstAge(lo, min(hi, far), func(age int) bool { return c.Index(age) >= charge })
	if age == far {
		return Never
	}
	return age
}

// FirstAge returns the first age at which the index reaches a charge, or an
// earlier one, at least 1; [Never] if there is none. Before the window closes it
// takes no search.
func (c *Curve) FirstAge(charge float64) int {
	if !math.IsInf(c.window, 1) {
		return c.Age(charge-1e-12*math.Abs(charge), 1, Never)
	}
	rest := 1 - charge/c.scale
	switch {
	case charge <= 0:
		return 1
	case !(rest >= -1e-12):
		return Never
	case rest < 1e-12:
		// The index is the charge but for rounding; it comes within 1e−12 of its
		// limit no earlier than 1 − e^(−cs) does.
		return wholeAge(27 / c.decay)
	}
	// Rounding of the index moves log(1 − charge/u*) by 2e−15/(1 − charge/u*).
	s := AgeAt(c.scale, c.decay, c.loss, charge)
	return wholeAge(s - 1e-8*s - (1e-8+4e-15/rest)/c.decay)
}

// wholeAge returns the least whole age, from 1 on, that is at or above s.
func wholeAge(s float64) int {
	if s < math.MaxInt32 {
		return max(1, int(math.Ceil(s)))
	}
	return Never
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
func frequency(age int) float64 {
	if age == Never {
		return 0
	}
	return 1 / float64(age)
}

// Yield returns (x(s) − charge)/s, interest per epoch.
func (c *Curve) Yield(age int, charge float64) float64 {
	if age == Never {
		return 0
	}
	return (c.At(age) - charge) / float64(age)
}
