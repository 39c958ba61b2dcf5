// Package stats turns the figures of several seeds into aggregates that carry
// their interval, their sample size and their warnings.
//
// Aggregates are over seeds only: one value per seed goes in, never the epochs
// of one run. Means, interquartile means, performance profiles and paired
// differences are those that Agarwal et al., "Deep reinforcement learning at the edge
// of the statistical precipice", NeurIPS 2021, recommend. The intervals are
// Student's: of five seeds a percentile bootstrap interval that claims 95 % covers
// the mean in 84 cases of 100, Student's in 95. Equal input gives equal bytes.
package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ephemera/experiments/result"
)

// MinSeeds is how many values an interval needs.
const MinSeeds = 5

// Estimate is an aggregate with its interval.
type Estimate struct {
	Value   float64 `json:"value"`
	Lo      float64 `json:"lo"` // bounds of the interval; NaN without one
	Hi      float64 `json:"hi"`
	N       int     `json:"n"`                 // values behind it
	Same    bool    `json:"same,omitempty"`    // all values are equal: nothing random differs between the seeds
	Warning string  `json:"warning,omitempty"` // why there is no interval, or what is wrong with it
}

// String returns "value [lo, hi]", "value (n = 3)" without an interval, or
// "value (all 20 the same)" where nothing random differs.
func (e Estimate) String() string {
	switch {
	case e.Same:
		return fmt.Sprintf("%s (all %d the same)", Format(e.Value), e.N)
	case math.IsNaN(e.Lo):
		return fmt.Sprintf("%s (n = %d)", Format(e.Value), e.N)
	}
	return e.Within()
}

// Within returns "value [lo, hi]", and the value alone where there is no interval: for a
// table that says elsewhere of how many values its estimates are.
func (e Estimate) Within() string {
	if math.IsNaN(e.Lo) || e.Same {
		return Format(e.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", Format(e.Value), Format(e.Lo), Format(e.Hi))
}

// Format writes a figure with four significant digits and no exponent in the
// usual range.
func Format(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	if math.IsInf(v, 0) || v == 0 {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	// The exponent is that of the rounded number: 0 for 0.99996, which is 1.000.
	text := strconv.FormatFloat(v, 'e', 3, 64)
	_, exponent, _ := strings.Cut(text, "e")
	e, _ := strconv.Atoi(exponent)
	if e >= 6 || e < -4 {
		return text
	}
	return strconv.FormatFloat(v, 'f', max(0, 3-e), 64)
}

// Mean returns the arithmetic mean, NaN of nothing.
func Mean(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	return sum(x) / float64(len(x))
}

func sum(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum
}

// iqm returns the interquartile mean of sorted values: the mean of what is left
// when ⌊n/4⌋ are dropped at each end. Fewer than four values give the mean.
func iqm(sorted []float64) float64 {
	k := len(sorted) / 4
	return Mean(sorted[k : len(sorted)-k])
}

// estimate begins an aggregate of one value per seed, and reports whether there are
// values enough for an interval, all of them finite. What is not finite has no place in
// an order, so that no aggregate of it is honest.
func estimate(x []float64, value float64) (e Estimate, ok bool) {
	n := len(x)
	e = Estimate{Value: value, Lo: math.NaN(), Hi: math.NaN(), N: n}
	odd := 0
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			odd++
		}
	}
	switch {
	case n == 0:
		e.Warning = "no value"
	case odd > 0:
		e.Value = math.NaN()
		e.Warning = fmt.Sprintf("%d of %d values are not finite", odd, n)
	case n < MinSeeds:
		e.Warning = fmt.Sprintf("need at least %d seeds for an interval", MinSeeds)
	default:
		e.Same = slices.Min(x) == slices.Max(x)
		return e, true
	}
	return e, false
}

// within sets the interval: the value ± t times its standard error, with t the
// quantile of Student's distribution.
func (e *Estimate) within(standardError float64, freedom int) {
	half := studentQuantile(freedom) * standardError
	e.Lo, e.Hi = e.Value-half, e.Value+half
}

// Leaves reports whether the interval leaves out a value; where nothing random differs,
// whether the value is another.
func (e Estimate) Leaves(v float64) bool {
	if e.Same {
		return e.Value != v
	}
	return e.Lo > v || e.Hi < v
}

// Around returns the estimate with another value, and an interval as wide on either side of that:
// the days of a recording say how much varies by chance, and leave out the hours after the last.
func (e Estimate) Around(v float64) Estimate {
	e.Lo, e.Hi, e.Value = v+(e.Lo-e.Value), v+(e.Hi-e.Value), v
	return e
}

// EstimateMean estimates the mean of one value per seed:
//
//	m ± t s/√n,   t with n − 1 degrees of freedom.
func EstimateMean(x []float64) Estimate {
	e, ok := estimate(x, Mean(x))
	if ok {
		n := len(x)
		e.within(math.Sqrt(squares(x)/float64(n-1)/float64(n)), n-1)
	}
	return e
}

// squares returns Σ(x − m)².
func squares(x []float64) (sum float64) {
	m := Mean(x)
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return sum
}

// EstimateIQM estimates the interquartile mean of one value per seed. Its interval is
// that of a trimmed mean (Tukey and McLaughlin, 1963): with g = ⌊n/4⌋ values dropped at
// each end, h = n − 2g left, and W the sum of squares of the sample in which the
// dropped values are replaced by the outermost ones that are left,
//
//	m ± t √(W/(h(h − 1))),   t with h − 1 degrees of freedom.
func EstimateIQM(x []float64) Estimate {
	s := slices.Sorted(slices.Values(x))
	e, ok := estimate(s, iqm(s))
	if ok {
		n, g := len(s), len(s)/4
		for k := range g {
			s[k], s[n-1-k] = s[g], s[n-1-g]
		}
		h := n - 2*g
		e.within(math.Sqrt(squares(s)/float64(h*(h-1))), h-1)
	}
	return e
}

// Profile returns the performance profile: for each score τ, the share of runs that
// earn more than τ. A run whose value is NaN is above no score. The interval of a share
// p of n runs is Wilson's (1927), with z = 1.96:
//
//	[p + z²/2n ± z√(p(1 − p)/n + z²/4n²)]/(1 + z²/n).
func Profile(x, taus []float64) []Estimate {
	const z = 1.959963984540054
	shares := make([]Estimate, len(taus))
	for k, tau := range taus {
		above := make([]float64, len(x))
		for i, v := range x {
			if v > tau {
				above[i] = 1
			}
		}
		e, ok := estimate(above, Mean(above))
		if ok {
			n, p := float64(e.N), e.Value
			middle, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
			e.Lo, e.Hi = max(0, (middle-half)/(1+z*z/n)), min(1, (middle+half)/(1+z*z/n))
		}
		shares[k] = e
	}
	return shares
}

// EstimateRatio estimates r = Σ num / Σ den of two series over the same days, such as
// what a policy earned over what the reference earned. Neighbouring days depend on
// each other, so what varies are blocks of so many consecutive days, the last of them
// up to twice as long (batch means: Schmeiser, 1982). With y and x the sums of num and
// den over k blocks (Cochran, 1977, section 6.4):
//
//	r ± t √(Σ(y − rx)² k/(k − 1))/Σx,   t with k − 1 degrees of freedom.
//
// N is the number of days; the interval needs at least [MinSeeds] blocks. It panics
// unless there are as many days in both.
func EstimateRatio(num, den []float64, length int) Estimate {
	n := len(num)
	if len(den) != n {
		panic(fmt.Sprintf("stats: %d days against %d; pairs need as many", n, len(den)))
	}
	e := Estimate{Value: sum(num) / sum(den), Lo: math.NaN(), Hi: math.NaN(), N: n}
	blocks := n / length
	if blocks < MinSeeds {
		e.Warning = fmt.Sprintf("need at least %d blocks for an interval; %d days give %d of %d",
			MinSeeds, n, blocks, length)
		return e
	}
	var off float64
	for k := range blocks {
		from, to := k*length, (k+1)*length
		if k == blocks-1 {
			to = n
		}
		d := sum(num[from:to]) - e.Value*sum(den[from:to])
		off += d * d
	}
	e.within(math.Sqrt(off*float64(blocks)/float64(blocks-1))/math.Abs(sum(den)), blocks-1)
	return e
}

// EstimateBlocks estimates the mean of a series, such as the interest earned on each
// day of a recording, as EstimateRatio does.
func EstimateBlocks(x []float64, length int) Estimate {
	return EstimateRatio(x, slices.Repeat([]float64{1}, len(x)), length)
}

// MarshalJSON implements json.Marshaler: null where there is no finite value.
func (e Estimate) MarshalJSON() ([]byte, error) {
	type plain Estimate
	return json.Marshal(struct { // the outer ones hide those of the same name
		Value result.Ratio `json:"value"`
		Lo    result.Ratio `json:"lo"`
		Hi    result.Ratio `json:"hi"`
		plain
	}{result.RatioOf(e.Value), result.RatioOf(e.Lo), result.RatioOf(e.Hi), plain(e)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Estimate) UnmarshalJSON(b []byte) error {
	type plain Estimate
	in := plain{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()} // where there is null
	err := json.Unmarshal(b, &in)
	*e = Estimate(in)
	return err
}

// studentQuantile returns t with P(|T| ≤ t) = .95 under Student's distribution with ν
// degrees of freedom, to the last digits.
func studentQuantile(nu int) float64 {
	lo, hi := 1.9, 13. // of ν = ∞ and ν = 1
	for hi-lo > 1e-13 {
		if t := (lo + hi) / 2; studentTails(t, nu) > .05 {
			lo = t
		} else {
			hi = t
		}
	}
	return hi
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
