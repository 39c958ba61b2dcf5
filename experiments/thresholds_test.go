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

func TestFirstAge(t *testing.T) {
	for _, s := range append(env.Paper(1).Sources, env.Mixed(5, 3, 1).Sources...) {
		for _, n := range []int{1, 2, 7} {
			x := s.MeanState(n)
			if got := firstAge(s, x); got != float64(n) {
				t.Errorf("%+v: x(%d) is first reached at age %v", s, n, got)
			}
			if got := firstAge(s, x*1.0001); x*1.0001 < s.Ceiling() && got != float64(n+1) {
				t.Errorf("%+v: what lies above x(%d) is first reached at age %v", s, n, got)
			}
		}
		if !math.IsInf(firstAge(s, s.Ceiling()), 1) {
			t.Errorf("%+v: the ceiling is never reached", s)
		}
	}
}
