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
	if math.IsNaN(raw) { // q₁S and q₂S² overflowed against each other
		raw = math.Inf(1)
	}
	return min(max(raw, t.lo[i]), t.hi[i]), raw
}

// coordinate is what a state and a threshold are compared in: y(x) grows with x,
// and the margin of a crawl is y(x) − y(T).
type coordinate interface {
	of(i int, x float64) float64
	inverse(i int, y float64) float64 // y(x) ↦ x; cut to [u, u*] where y is not defined beyond
	slope(i int, x float64) float64   // dy/dx
}

// onLine: y = (x − from)/width; x as printed, with 0 and 1, or (x − u)/(u* − u).
type onLine struct{ from, width, per []float64 } // per is 1/width, 0 for a source without content

func (c onLine) of(i int, x float64) float64      { return (x - c.from[i]) * c.per[i] }
func (c onLine) inverse(i int, y float64) float64 { return c.from[i] + y*c.width[i] }
func (c onLine) slope(i int, _ float64) float64   { return c.per[i] }

// inAges: y = ln s with the age s at which the mean state reaches x,
//
//	x = u*(1 − α^s),   s = ln(1 − x/u*)/ln α,
//
// cut at the age from which a float64 no longer tells x from u*.
type inAges struct {
	t     *thresholds
	decay []float64 // c = −ln α
}

const oldest = 36 // e^−36 is 2⁻⁵²

func (c inAges) of(i int, x float64) float64 {
	s := -math.Log1p(-x/c.t.hi[i]) / c.decay[i]
	if !(s > 1) { // x ≤ u, or a source without content
		return 0
	}
	return min(math.Log(s), c.width(i))
}
func (c inAges) inverse(i int, y float64) float64 {
	return -c.t.hi[i] * math.Expm1(-c.decay[i]*math.Exp(y))
}
func (c inAges) slope(i int, x float64) float64 {
	// s = −ln(1 − x/u*)/c: ds/dx = 1/(c(u* − x)), dy = ds/s
	s := math.Exp(c.of(i, x))
	d := c.decay[i] * (c.t.hi[i] - x) * s
	if !(d > 0) {
		return 0
	}
	return 1 / d
}
func (c inAges) width(i int) float64 { return math.Log(max(1, oldest/c.decay[i])) }

func newThresholds(in env.Instance, start float64) *thresholds {
	t := &thresholds{}
	for _, s := range in.Sources {
		lo, hi := s.Gain(), s.Ceiling()
		t.lo, t.hi, t.factor = append(t.lo, lo), append(t.hi, hi), append(t.factor, s.Factor())
		t.q = append(t.q, [3]float64{lo + start*(hi-lo)})
	}
	return t
}

func newCoordinate(in env.Instance, t *thresholds, margin string) coordinate {
	var line onLine
	ages := inAges{t: t}
	for i, s := range in.Sources {
		from, width, per := 0., 1., 1.
		if margin == "unit" {
			from, width, per = t.lo[i], t.hi[i]-t.lo[i], 0
			if width > 0 {
				per = 1 / width
			}
		}
		line.from, line.width, line.per = append(line.from, from), append(line.width, width), append(line.per, per)
		ages.decay = append(ages.decay, s.Decay)
	}
	if margin == "age" {
		return ages
	}
	return line
}
