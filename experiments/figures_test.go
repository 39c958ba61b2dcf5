package experiments

import (
	"math"
	"testing"
)

// Of a regret of n^0.6 the fit finds the exponent, and the total is that of the
// run.
func TestRegret(t *testing.T) {
	const epochs = 100_000
	bound := 7.0
	r := &Record{Bound: &bound}
	r.Learning.Epochs = epochs
	r.Learning.Reward = bound - math.Pow(epochs, .6)/epochs
	last := 0
	for _, n := range Milestones(epochs) {
		lost := math.Pow(float64(n), .6) - math.Pow(float64(last), .6)
		r.Curve = append(r.Curve, CurvePoint{Epoch: n, Reward: bound - lost/float64(n-last)})
		last = n
	}
	if got, want := r.Regret(), math.Pow(epochs, .6); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("regret %v, want %v", got, want)
	}
	if got := r.RegretExponent(); math.Abs(got-.6) > 1e-6 {
		t.Errorf("exponent %v, want 0.6", got)
	}
	r.Bound = nil
	if !math.IsNaN(r.Regret()) || !math.IsNaN(r.RegretExponent()) {
		t.Error("a regret without a bound")
	}
}
