// Package stats turns the figures of several seeds into aggregates that carry
// their interval, their sample size and their warnings.
//
// Aggregates are over seeds only: one value per seed goes in, never the epochs
// of one run. Intervals are percentile bootstrap intervals, as Agarwal et al.,
// "Deep reinforcement learning at the edge of the statistical precipice", NeurIPS
// 2021, recommend; resampling draws from streams of env/stream, so that equal input
// gives equal bytes.
package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ephemera/env/stream"
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

// quantile returns the q-quantile of sorted values, linear between neighbours; q is
// below 1.
func quantile(sorted []float64, q float64) float64 {
	p := q * float64(len(sorted)-1)
	i := int(p)
	return sorted[i] + (p-float64(i))*(sorted[i+1]-sorted[i])
}

const resamples = 2000

// Bootstrap makes intervals. Its zero value is not usable; see New.
type Bootstrap struct {
	seed uint64
	// table[n] holds the resamples of n values as sorted positions. Every
	// aggregate of n values uses the same ones: intervals that are compared
	// see the same draws, and large sweeps draw once.
	table map[int][]int32
}

// New returns a bootstrap of 95 % intervals from 2000 resamples.
func New(seed uint64) *Bootstrap { return &Bootstrap{seed: seed, table: map[int][]int32{}} }

// positions returns the resamples of n values, each as n sorted positions. A
// sorted sample read at sorted positions is sorted, which the IQM needs.
func (b *Bootstrap) positions(n int) []int32 {
	if t, ok := b.table[n]; ok {
		return t
	}
	t := make([]int32, resamples*n)
	rng := stream.New(b.seed, stream.Bootstrap, uint64(n))
	for r := range resamples {
		row := t[r*n : (r+1)*n]
		for k := range row {
			row[k] = int32(rng.Intn(n))
		}
		slices.Sort(row)
	}
	b.table[n] = t
	return t
}

// interval fills Lo and Hi from the resampled statistic.
func (e *Estimate) interval(next func() float64) {
	dist := make([]float64, resamples)
	for r := range dist {
		dist[r] = next()
	}
	slices.Sort(dist)
	level := 0.95
	tail := (1 - level) / 2
	e.Lo, e.Hi = quantile(dist, tail), quantile(dist, 1-tail)
}

// estimate resamples one value per seed. What is not finite has no place in an
// order, so that no aggregate of it is honest.
func (b *Bootstrap) estimate(x []float64, stat func(sorted []float64) float64) Estimate {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	e := Estimate{Value: stat(s), Lo: math.NaN(), Hi: math.NaN(), N: n}
	odd := 0
	for _, v := range s {
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
		left, sample := b.positions(n), make([]float64, n)
		e.interval(func() float64 {
			for k, p := range left[:n] {
				sample[k] = s[p]
			}
			left = left[n:]
			return stat(sample)
		})
		e.Same = s[0] == s[n-1]
	}
	return e
}

// Mean estimates the mean of one value per seed.
func (b *Bootstrap) Mean(x []float64) Estimate { return b.estimate(x, Mean) }

// IQM estimates the interquartile mean of one value per seed.
func (b *Bootstrap) IQM(x []float64) Estimate { return b.estimate(x, iqm) }

// Profile returns the performance profile: for each score τ, the share of runs that
// earn more than τ. A run whose value is NaN is above no score.
func (b *Bootstrap) Profile(x, taus []float64) []Estimate {
	shares := make([]Estimate, len(taus))
	for k, tau := range taus {
		above := make([]float64, len(x))
		for i, v := range x {
			if v > tau {
				above[i] = 1
			}
		}
		shares[k] = b.Mean(above)
	}
	return shares
}

// RatioBlocks estimates Σ num / Σ den of two series over the same days, such as
// what a policy earned over what the reference earned. Neighbouring days depend
// on each other, so whole blocks of consecutive days are resampled (the circular
// block bootstrap of Politis and Romano, 1992, in which every day is in as many
// blocks), of both series together. N is the number of days; the interval needs
// at least [MinSeeds] blocks. It panics unless there are as many days in both.
func (b *Bootstrap) RatioBlocks(num, den []float64, length int) Estimate {
	n := len(num)
	if len(den) != n {
		panic(fmt.Sprintf("stats: %d days against %d; pairs need as many", n, len(den)))
	}
	e := Estimate{Value: sum(num) / sum(den), Lo: math.NaN(), Hi: math.NaN(), N: n}
	if blocks := n / length; blocks < MinSeeds {
		e.Warning = fmt.Sprintf("need at least %d blocks for an interval; %d days give %d of %d", MinSeeds, n, blocks, length)
		return e
	}
	rng := stream.New(b.seed, stream.Bootstrap, 3<<32, uint64(n), uint64(length))
	e.interval(func() float64 {
		var sn, sd float64
		for left := n; left > 0; left -= length {
			at := rng.Intn(n)
			for k := range min(length, left) {
				sn += num[(at+k)%n]
				sd += den[(at+k)%n]
			}
		}
		return sn / sd
	})
	return e
}

// Blocks estimates the mean of a series, such as the interest earned on each
// day of a recording, as RatioBlocks does.
func (b *Bootstrap) Blocks(x []float64, length int) Estimate {
	return b.RatioBlocks(x, slices.Repeat([]float64{1}, len(x)), length)
}

// MarshalJSON implements json.Marshaler: null where there is no finite value.
func (e Estimate) MarshalJSON() ([]byte, error) {
	type plain Estimate
	return json.Marshal(struct { // the outer ones hide those of the same name
		Value *float64 `json:"value"`
		Lo    *float64 `json:"lo"`
		Hi    *float64 `json:"hi"`
		plain
	}{result.Ptr(e.Value), result.Ptr(e.Lo), result.Ptr(e.Hi), plain(e)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Estimate) UnmarshalJSON(b []byte) error {
	type plain Estimate
	in := plain{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()} // where there is null
	err := json.Unmarshal(b, &in)
	*e = Estimate(in)
	return err
}

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
