package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Distinct reports whether the mean of the best can be told from that of the second
// at the level of 5 %: whether the interval of their mean difference leaves out 0.
// There is one difference per seed; of days of a recording one per week. They are the
// best two of m rows, a choice among m(m−1)/2 pairs, by which the level is divided
// (Bonferroni).
//
// The interval is Student's, which holds its level at small levels and few seeds,
// where a percentile bootstrap leaves out 0 as soon as all differences have one
// sign. Fewer than [MinSeeds] values are never distinct. Differences that are all
// the same and not 0 always are: nothing random differs.
func Distinct(d []float64, m int) bool {
	n := float64(len(d))
	if n < MinSeeds {
		return false
	}
	mean, squares := Mean(d), 0.0
	for _, v := range d {
		squares += (v - mean) * (v - mean)
	}
	if mean == 0 || math.IsNaN(squares) {
		return false
	}
	pairs := float64(m) * float64(m-1) / 2
	tail := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Survival(math.Abs(mean) / math.Sqrt(squares/(n-1)/n))
	return 2*tail*pairs < 0.05
}
