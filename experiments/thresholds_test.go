package experiments

import (
	"math"
	"testing"

	"ephemera/baselines"
	"ephemera/env"
)

func TestInverseWhittle(t *testing.T) {
	for _, s := range append(env.Paper(1).Sources, env.Mixed(5, 3, 1).Sources...) {
		for _, x := range []float64{.1, .5, .9, .999, 1.5} {
			x *= s.Ceiling()
			if got := InverseWhittle(s, baselines.WhittleIndex(s, x)); math.Abs(got-x) > 1e-6*x && x > s.Gain() {
				t.Errorf("%+v: γ⁻¹(γ(%v)) is %v", s, x, got)
			}
		}
	}
}
