package paper

import (
	"math"

	"ephemera/env"
)

// thresholds are the parametrised thresholds of N sources (Allerton, section V,
// which prints q₁ for the square as well),
//
//	Tᵢ(x₋ᵢ) = q₀ + q₁S + q₂S²,   S = Σ_{k≠i} x_k,
//
// projected on [uᵢ, uᵢ*], uᵢ* = uᵢ/(1−αᵢ).
type thresholds struct {
	lo, hi []float64    // u and u*
	factor []float64    // α
	q      [][3]float64 // in interest, 1 and 1/interest
}

// at returns the threshold of source i where the other sources' states sum to
// s, and before its projection.
func (t *thresholds) at(i int, s float64) (threshold, raw float64) {
	q := &t.q[i]
	raw = q[0] + (q[1]+q[2]*s)*s
	switch {
	case raw < t.lo[i]:
		return t.lo[i], raw
	case raw <= t.hi[i]:
		return raw, raw
	}
	return t.hi[i], raw // also where q₁S and q₂S² overflow against each other
}

// coordinate is what a state and a threshold are compared in: y(x) grows with x,
// and the margin of a crawl is y(x) − y(T). It is a line,
//
//	y = (x − from)/width,
//
// x as printed, with 0 and 1, or (x − u)/(u* − u); or y = ln s with the age s at
// which the mean state reaches x,
//
//	x = u*(1 − α^s),   s = ln(1 − x/u*)/ln α,
//
// cut at the age from which a float64 no longer tells x from u*. It is one type, and
// its line is inlined: a step asks for y eight times.
type coordinate struct {
	from, width, per []float64 // per is 1/width, 0 for a source without content
	hi, decay        []float64 // u*, and c = −ln α where y is ln s; else nil
}

const oldest = 36 // e^−36 is 2⁻⁵²

func (c *coordinate) of(i int, x float64) float64 {
	if c.decay == nil {
		return (x - c.from[i]) * c.per[i]
	}
	return c.logAge(i, x)
}

func (c *coordinate) logAge(i int, x float64) float64 {
	s := -math.Log1p(-x/c.hi[i]) / c.decay[i]
	if !(s > 1) { // x ≤ u, or a source without content
		return 0
	}
	return min(math.Log(s), math.Log(max(1, oldest/c.decay[i])))
}

// inverse returns x, cut to [u, u*] where y is not defined beyond.
func (c *coordinate) inverse(i int, y float64) float64 {
	if c.decay == nil {
		return c.from[i] + y*c.width[i]
	}
	return -c.hi[i] * math.Expm1(-c.decay[i]*math.Exp(y))
}

// slope returns dy/dx.
func (c *coordinate) slope(i int, x float64) float64 {
	if c.decay == nil {
		return c.per[i]
	}
	return c.logAgeSlope(i, x)
}

func (c *coordinate) logAgeSlope(i int, x float64) float64 {
	// s = −ln(1 − x/u*)/c: ds/dx = 1/(c(u* − x)), dy = ds/s
	s := math.Exp(c.logAge(i, x))
	d := c.decay[i] * (c.hi[i] - x) * s
	if !(d > 0) {
		return 0
	}
	return 1 / d
}

func newThresholds(in env.Instance, start float64) *thresholds {
	t := &thresholds{}
	for _, s := range in.Sources {
		lo, hi := s.Gain(), s.Ceiling()
		t.lo, t.hi, t.factor = append(t.lo, lo), append(t.hi, hi), append(t.factor, s.Factor())
		t.q = append(t.q, [3]float64{lo + start*(hi-lo)})
	}
	return t
}

func newCoordinate(in env.Instance, t *thresholds, margin string) *coordinate {
	c := &coordinate{hi: t.hi}
	for i, s := range in.Sources {
		from, width, per := 0., 1., 1.
		if margin == "unit" {
			from, width, per = t.lo[i], t.hi[i]-t.lo[i], 0
			if width > 0 {
				per = 1 / width
			}
		}
		c.from, c.width, c.per = append(c.from, from), append(c.width, width), append(c.per, per)
		if margin == "age" {
			c.decay = append(c.decay, s.Decay)
		}
	}
	return c
}
