package index

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/envtest"
)

// A cycle a little shorter or longer than the relaxed age earns less.
func TestRelaxedAgeIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t)
		charge := math.Pow(10, rapid.Float64Range(-9, -0.01).Draw(t, "log")) * c.Top
		age := RelaxedAge(c.Source, charge/c.Cost)
		yield := func(t float64) float64 { return (c.Harvest(t) - charge) / t }
		for _, other := range []float64{.5, .99, 1.01, 2} {
			if !(yield(age) >= yield(age*other)*(1-1e-12)) {
				t.Fatalf("%+v, charge %v: a cycle of %v earns %v, one of %v %v", c.Source, charge, age, yield(age), age*other, yield(age*other))
			}
		}
		if c.plain && age < c.Window {
			// α^η(1 − η ln α) = 1 − Cλ/u*, both sides taken from 1.
			envtest.Near(t, "1 − α^η(1 − η ln α)", -math.Expm1(-subLog1p(age*c.Decay)), charge/c.scale, 1e-6)
		}
	})
}

func TestRelaxedThreshold(t *testing.T) {
	s := env.Paper(1).Sources[0]
	threshold := func(price float64) float64 { return s.Harvest(RelaxedAge(s, price)) }
	if got := threshold(0); got != 0 {
		t.Errorf("threshold at price 0 is %v, want 0", got)
	}
	for _, p := range []float64{s.Ceiling(), 2 * s.Ceiling(), math.Inf(1)} {
		if got := threshold(p); got != s.Ceiling() {
			t.Errorf("threshold at price %v is %v, want the ceiling", p, got)
		}
	}
	// (21) as printed: x̄ = u*(1 − e^(1+w)), where w e^w = e⁻¹(Cλ/u* − 1), w ≤ −1.
	for _, p := range []float64{20, 105, 300} {
		u := s.Ceiling()
		w := math.Log1p(-threshold(p)/u) - 1
		envtest.Near(t, "w e^w", w*math.Exp(w), (p/u-1)/math.E, 1e-12)
	}
}
