package experiments

import (
	"math"
	"testing"

	"ephemera/env"
)

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
