package stats

import "math"

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
	return studentTails(mean/math.Sqrt(squares/(n-1)/n), len(d)-1)*pairs < 0.05
}

// studentTails returns the probability that |T| > |t| under Student's distribution
// with ν degrees of freedom. With θ = atan(|t|/√ν) the probability of the middle is
// (Abramowitz and Stegun, 26.7.3 and 26.7.4)
//
//	ν odd:   2/π [θ + sin θ (cos θ + 2/3 cos³θ + … + 2·4⋯(ν−3)/(3·5⋯(ν−2)) cos^(ν−2) θ)]
//	ν even:  sin θ [1 + 1/2 cos²θ + … + 1·3⋯(ν−3)/(2·4⋯(ν−2)) cos^(ν−2) θ]
func studentTails(t float64, nu int) float64 {
	theta := math.Atan(math.Abs(t) / math.Sqrt(float64(nu)))
	sin, cos := math.Sincos(theta)
	first, k := 1.0, 2 // of the series, and the power of cos that comes next
	if nu%2 == 1 {
		first, k = cos, 3
	}
	sum := 0.0
	for term := first; k <= nu; k += 2 {
		sum += term
		term *= cos * cos * float64(k-1) / float64(k)
	}
	if nu%2 == 1 {
		return max(0, 1-2/math.Pi*(theta+sin*sum))
	}
	return max(0, 1-sin*sum)
}
