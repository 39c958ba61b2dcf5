package index

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/envtest"
)

func TestRelaxedThresholdIsStationary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := envtest.DrawInstance(t, 1, 1, true, true).Sources[0]
		charge := math.Pow(10, rapid.Float64Range(-14, -0.01).Draw(t, "log")) * s.Ceiling()
		x := RelaxedThreshold(s, charge/s.Cost)
		// α^η(1 − η ln α) = 1 − Cλ/u*, with η from x, both sides taken from 1.
		y := -math.Log1p(-x / s.Ceiling())
		if got := -math.Expm1(subLog1pNegExp(y)); math.Abs(got-charge/s.Ceiling()) > 1e-6*charge/s.Ceiling() {
			t.Fatalf("threshold %v: 1 − α^η(1 − η ln α) is %v, want %v", x, got, charge/s.Ceiling())
		}
		// A cycle a little shorter or longer earns less.
		yield := func(y float64) float64 { return (s.Ceiling()*-math.Expm1(-y) - charge) / y }
		if y > 1e-3 && !(yield(y) >= yield(y*0.99) && yield(y) >= yield(y*1.01)) {
			t.Fatalf("threshold %v is not the best", x)
		}
	})
}

func subLog1pNegExp(y float64) float64 { return -subLog1p(y) }

func TestRelaxedThresholdEnds(t *testing.T) {
	s := env.Paper(1).Sources[0]
	if got := RelaxedThreshold(s, 0); got != 0 {
		t.Errorf("threshold at price 0 is %v, want 0", got)
	}
	for _, p := range []float64{s.Ceiling(), 2 * s.Ceiling(), math.Inf(1)} {
		if got := RelaxedThreshold(s, p); got != s.Ceiling() {
			t.Errorf("threshold at price %v is %v, want the ceiling", p, got)
		}
	}
	// (21) as printed, with W₋₁.
	for _, p := range []float64{20, 105, 300} {
		u := s.Ceiling()
		envtest.Near(t, "threshold", RelaxedThreshold(s, p), u*(1-math.Exp(1+lambertWm1((p/u-1)/math.E))), 1e-12)
	}
}
