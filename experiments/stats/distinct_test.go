package stats

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
)

func less(x, y []float64) []float64 { return floats.SubTo(make([]float64, len(x)), x, y) }

// Of ten policies that earn the same the best two are told apart in at most 5 of
// 100 comparisons; one that earns more by as much as the noise is, is told apart.
func TestDistinct(t *testing.T) {
	const trials, rows = 400, 10
	wrong := 0
	for k := range uint64(trials) {
		var best, second []float64
		for r := range uint64(rows) {
			x := normals(8, 0, 1, 40, k, r)
			switch m := Mean(x); {
			case best == nil || m > Mean(best):
				best, second = x, best
			case second == nil || m > Mean(second):
				second = x
			}
		}
		if Distinct(less(best, second), rows) {
			wrong++
		}
	}
	if wrong > trials/20 {
		t.Errorf("%d of %d times a winner is named among equals", wrong, trials)
	}
	x := normals(20, 10, 5)
	better := make([]float64, len(x))
	for i, noise := range normals(20, 1, 1, 41) {
		better[i] = x[i] + noise // the same seeds: their spread of 5 does not matter
	}
	for _, c := range []struct {
		what         string
		best, second []float64
		rows         int
		want         bool
	}{
		{"one pair, apart", better, x, 2, true},
		{"so many rows that chance does it", better, x, 1500, false},
		{"too few seeds", []float64{9, 9.1, 9, 9.1}, []float64{1, 1, 1, 1}, 2, false},
		{"the same", x, x, 2, false},
		{"nothing random differs", []float64{2, 2, 2, 2, 2}, []float64{1, 1, 1, 1, 1}, 1500, true},
		{"not a number", []float64{2, 3, 2, math.NaN(), 2}, []float64{1, 1, 1, 1, 1}, 2, false},
	} {
		if got := Distinct(less(c.best, c.second), c.rows); got != c.want {
			t.Errorf("%s: %v; want %v", c.what, got, c.want)
		}
	}
}
