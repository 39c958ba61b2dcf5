package lspe

import "testing"

// TestKept: a step and a feature that are kept are the ones that are computed, up to the last
// that is kept and beyond it.
func TestKept(t *testing.T) {
	s := newSteps(DefaultSettings().A)
	for _, n := range []int{1, 2, keptSteps, keptSteps + 1, 1e6} {
		if got, want := s.at(n), s.At(n); got != want {
			t.Errorf("step %d is %v; want %v", n, got, want)
		}
	}
	p := newPooled(7.5)
	for _, age := range []float64{1, 2, 2.5, keptAges - 1, keptAges - .5, keptAges, 1e12} {
		if got, want := p.features(age), p.compute(age); got != want {
			t.Errorf("features of age %v are %v; want %v", age, got, want)
		}
	}
}
