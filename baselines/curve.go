package baselines

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

// curve is what one crawl earns by age, concave from 0 to the ceiling:
//
//	x(s) = b(1 − α^min(s, M))
type curve struct {
	scale  float64 // b
	decay  float64 // c
	window float64 // M
	top    float64 // x(∞)
	cost   float64 // C
}

func newCurve(s env.Source, d Dynamics) curve {
	switch d {
	case MeanDynamics:
		return curve{scale: s.Ceiling(), decay: s.Decay, window: math.Inf(1), top: s.Ceiling(), cost: s.Cost}
	case ItemDynamics:
		return curve{scale: s.Rate * s.Interest / s.Decay, decay: s.Decay, window: s.Window, top: s.Ceiling(), cost: s.Cost}
	}
	panic(fmt.Sprintf("baselines: unknown dynamics %d", d))
}

// at returns x(s).
func (c *curve) at(age int) float64 {
	return c.scale * -math.Expm1(-c.decay*math.Min(float64(age), c.window))
}

// rise returns x(s+1) − x(s).
func (c *curve) rise(age int) float64 {
	s := float64(age)
	left := math.Min(1, math.Max(0, c.window-s))
	return c.scale * math.Exp(-c.decay*s) * -math.Expm1(-c.decay*left)
}

// index returns Cγ at age s, the charge per crawl at which crawling every s
// and every s+1 epochs earn the same. It does not fall with s, since x is
// concave:
//
//	Cγ(s) = x(s) − s (x(s+1) − x(s))
func (c *curve) index(age int) float64 { return c.at(age) - float64(age)*c.rise(age) }

// age returns the best time between crawls at a charge per crawl, the least s
// between lo and hi whose index reaches it. hi may be Never.
func (c *curve) age(charge float64, lo, hi int) int {
	if lo == hi || c.index(lo) >= charge {
		return lo
	}
	if charge > c.top {
		return hi
	}
	// Double the step from lo, then halve: index(lo) < charge ≤ index(hi).
	const far = 1 << 52
	for step := 1; ; step *= 2 {
		next := lo + step
		if next >= hi || next >= far {
			if hi > far {
				return Never // the index is the ceiling to the last bit
			}
			break
		}
		if c.index(next) >= charge {
			hi = next
			break
		}
		lo = next
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; c.index(mid) >= charge {
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

// yield returns (x(s) − charge)/s, interest per epoch.
func (c *curve) yield(age int, charge float64) float64 {
	if age == Never {
		return 0
	}
	return (c.at(age) - charge) / float64(age)
}
