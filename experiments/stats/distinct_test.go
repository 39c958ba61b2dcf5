package stats

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// The finite series is Student's distribution.
func TestStudentTails(t *testing.T) {
	for nu := 1; nu < 60; nu++ {
		s := distuv.StudentsT{Sigma: 1, Nu: float64(nu)}
		for _, x := range []float64{0, .01, .5, 1, 2.3, 5, 12} {
			if got, want := studentTails(-x, nu), 2*s.Survival(x); math.Abs(got-want) > 1e-12 {
				t.Errorf("P(|T| > %v) with %d degrees of freedom is %v; gonum has %v", x, nu, got, want)
			}
		}
	}
	if p := studentTails(math.Inf(1), 9); p != 0 {
		t.Errorf("beyond infinity lies %v", p)
	}
}

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
