// Package stats turns the figures of several seeds into aggregates that carry
// their interval, their sample size and their warnings.
//
// Aggregates are over seeds only: one value per seed goes in, never the epochs
// of one run. Intervals are percentile bootstrap intervals, stratified where
// there are several tasks, as Agarwal et al., "Deep reinforcement learning at
// the edge of the statistical precipice", NeurIPS 2021, recommend; resampling
// draws from streams of env/stream, so that equal input gives equal bytes.
package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"gonum.org/v1/gonum/floats"

	"ephemera/env/stream"
)

// MinSeeds is how many values an interval needs.
const MinSeeds = 5

// Estimate is an aggregate with its interval.
type Estimate struct {
	Value  float64
	Lo, Hi float64 // bounds of the interval; NaN without one
	N      int     // values behind it
	// Warning says why there is no interval, or what is wrong with it.
	Warning string
}

// String returns "value [lo, hi]", or "value (n = 3)" without an interval.
func (e Estimate) String() string {
	if math.IsNaN(e.Lo) {
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
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// IQM returns the interquartile mean: the mean of what is left when ⌊n/4⌋
// values are dropped at each end. Fewer than four values give the mean. It
// leaves x as it is.
func IQM(x []float64) float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	return iqmSorted(s)
}

func iqmSorted(x []float64) float64 {
	k := len(x) / 4
	return Mean(x[k : len(x)-k])
}

// Quantile returns the q-quantile of sorted values, linear between neighbours.
// It panics unless 0 ≤ q ≤ 1.
func Quantile(sorted []float64, q float64) float64 {
	if !(q >= 0 && q <= 1) {
		panic(fmt.Sprintf("stats: quantile %v; allowed is 0 to 1", q))
	}
	if len(sorted) == 0 {
		return math.NaN()
	}
	p := q * float64(len(sorted)-1)
	i := int(p)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (p-float64(i))*(sorted[i+1]-sorted[i])
}

// Bootstrap makes intervals. Its zero value is not usable; see New.
type Bootstrap struct {
	seed      uint64
	resamples int
	level     float64
	// table[n] holds the resamples of n values as sorted positions. Every
	// aggregate of n values uses the same ones: intervals that are compared
	// see the same draws, and large sweeps draw once.
	mu    sync.Mutex
	table map[int][]int32
}

// New returns a bootstrap of 95 % intervals from 2000 resamples. It is safe for
// concurrent use.
func New(seed uint64) *Bootstrap {
	return &Bootstrap{seed: seed, resamples: 2000, level: 0.95, table: map[int][]int32{}}
}

// positions returns the resamples of n values, each as n sorted positions. A
// sorted sample read at sorted positions is sorted, which the IQM needs.
func (b *Bootstrap) positions(n int) []int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.table[n]
	if ok {
		return t
	}
	t = make([]int32, b.resamples*n)
	rng := stream.New(b.seed, stream.Bootstrap, uint64(n))
	for r := range b.resamples {
		row := t[r*n : (r+1)*n]
		for k := range row {
			row[k] = int32(rng.Intn(n))
		}
		slices.Sort(row)
	}
	b.table[n] = t
	return t
}

// interval fills Lo and Hi from the distribution of the resampled statistic.
func (b *Bootstrap) interval(e *Estimate, dist []float64) {
	slices.Sort(dist)
	tail := (1 - b.level) / 2
	e.Lo, e.Hi = Quantile(dist, tail), Quantile(dist, 1-tail)
}

// begin returns an estimate without an interval yet and whether there are
// enough values for one, all of them finite: what is not has no place in an
// order, so that no aggregate is honest about it.
func begin(value float64, n int, from ...[]float64) (Estimate, bool) {
	e := Estimate{Value: value, Lo: math.NaN(), Hi: math.NaN(), N: n}
	odd, all := 0, 0
	for _, x := range from {
		all += len(x)
		for _, v := range x {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				odd++
			}
		}
	}
	switch {
	case n == 0:
		e.Warning = "no value"
	case odd > 0:
		e.Value = math.NaN()
		e.Warning = fmt.Sprintf("%d of %d values are not finite", odd, all)
	case n < MinSeeds:
		e.Warning = fmt.Sprintf("need at least %d seeds for an interval", MinSeeds)
	default:
		return e, true
	}
	return e, false
}

func (b *Bootstrap) estimate(x []float64, stat func(sorted []float64) float64) Estimate {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	e, ok := begin(stat(s), n, s)
	if !ok {
		return e
	}
	pos := b.positions(n)
	dist, draw := make([]float64, b.resamples), make([]float64, n)
	for r := range dist {
		for k, p := range pos[r*n : (r+1)*n] {
			draw[k] = s[p]
		}
		dist[r] = stat(draw)
	}
	b.interval(&e, dist)
	return e
}

// Mean estimates the mean of one value per seed.
func (b *Bootstrap) Mean(x []float64) Estimate { return b.estimate(x, Mean) }

// IQM estimates the interquartile mean of one value per seed.
func (b *Bootstrap) IQM(x []float64) Estimate { return b.estimate(x, iqmSorted) }

// Paired estimates the mean difference x − ref of values of the same seeds in
// the same order. It panics if the lengths differ.
func (b *Bootstrap) Paired(x, ref []float64) Estimate {
	return b.Mean(differences(x, ref))
}

func differences(x, ref []float64) []float64 {
	if len(x) != len(ref) {
		panic(fmt.Sprintf("stats: %d values against %d; pairs need as many", len(x), len(ref)))
	}
	return floats.SubTo(make([]float64, len(x)), x, ref)
}

// StratifiedMean and StratifiedIQM estimate an aggregate over several tasks:
// the values of all tasks are pooled, and the bootstrap resamples the seeds
// within each task, so that every resample has as many runs of each task as
// the data. N is the number of seeds of the task that has the fewest.
func (b *Bootstrap) StratifiedMean(tasks [][]float64) Estimate { return b.stratified(tasks, Mean) }

// StratifiedIQM is StratifiedMean for the interquartile mean.
func (b *Bootstrap) StratifiedIQM(tasks [][]float64) Estimate { return b.stratified(tasks, iqmSorted) }

func (b *Bootstrap) stratified(tasks [][]float64, stat func(sorted []float64) float64) Estimate {
	all, least := pool(tasks)
	e, ok := begin(stat(all), least, all)
	if !ok {
		return e
	}
	var dist []float64
	b.draw(tasks, b.affordable(len(all)), func(sorted []float64) { dist = append(dist, stat(sorted)) })
	b.interval(&e, dist)
	return e
}

// Improvement estimates the probability that a run of x beats a run of ref,
// ties counting half: the Mann–Whitney statistic over all pairs, with seeds of
// both resampled.
func (b *Bootstrap) Improvement(x, ref []float64) Estimate {
	n, m := len(x), len(ref)
	r := slices.Sorted(slices.Values(ref))
	less, most := make([]int, n), make([]int, n) // values of ref below each of x, and at most it
	for i, v := range slices.Sorted(slices.Values(x)) {
		less[i], _ = slices.BinarySearch(r, v)
		most[i] = notAbove(r, v)
	}
	// Σᵢ cxᵢ (Σ_{rⱼ<xᵢ} crⱼ + ½ Σ_{rⱼ=xᵢ} crⱼ) / nm, of cx and cr draws of each value
	cx, cr, upTo := make([]int, n), make([]int, m), make([]int, m+1)
	share := func() float64 {
		for j, c := range cr {
			upTo[j+1] = upTo[j] + c
		}
		wins := 0
		for i, c := range cx {
			wins += c * (upTo[less[i]] + upTo[most[i]])
		}
		return float64(wins) / 2 / float64(n*m)
	}
	for i := range cx {
		cx[i] = 1
	}
	for j := range cr {
		cr[j] = 1
	}
	e, ok := begin(share(), min(n, m), x, ref)
	if !ok {
		return e
	}
	rng := stream.New(b.seed, stream.Bootstrap, 2<<32, uint64(n), uint64(m))
	dist := make([]float64, b.resamples)
	for k := range dist {
		clear(cx)
		clear(cr)
		for range n {
			cx[rng.Intn(n)]++
		}
		for range m {
			cr[rng.Intn(m)]++
		}
		dist[k] = share()
	}
	b.interval(&e, dist)
	return e
}

// Profile returns the performance profile: for each score τ, the share of runs
// that earn more than τ, with its interval. Runs are resampled within tasks. A
// run whose value is NaN is above no score.
func (b *Bootstrap) Profile(tasks [][]float64, taus []float64) []Estimate {
	all, least := pool(tasks)
	n := len(all)
	out := make([]Estimate, len(taus))
	enough := false
	for k, tau := range taus {
		out[k], enough = begin(float64(n-notAbove(all, tau))/float64(n), least)
	}
	if !enough {
		return out
	}
	if len(tasks) == 1 {
		// A mean of ones and zeros; scores with no run between them have one
		// interval.
		done := map[float64]Estimate{}
		above := make([]float64, n)
		for k, o := range out {
			e, ok := done[o.Value]
			if !ok {
				for i, v := range all {
					if above[i] = 0; v > taus[k] {
						above[i] = 1
					}
				}
				e = b.Mean(above)
				done[o.Value] = e
			}
			out[k].Lo, out[k].Hi = e.Lo, e.Hi
		}
		return out
	}
	dist := make([][]float64, len(taus))
	b.draw(tasks, b.affordable(n), func(sorted []float64) {
		for k, tau := range taus {
			dist[k] = append(dist[k], float64(n-notAbove(sorted, tau))/float64(n))
		}
	})
	for k := range out {
		b.interval(&out[k], dist[k])
	}
	return out
}

// notAbove returns how many of the sorted values are at most tau.
func notAbove(sorted []float64, tau float64) int {
	return sort.Search(len(sorted), func(i int) bool { return sorted[i] > tau })
}

// pool returns the values of all tasks, sorted, and the size of the smallest.
func pool(tasks [][]float64) (sorted []float64, least int) {
	for t, x := range tasks {
		if t == 0 || len(x) < least {
			least = len(x)
		}
		sorted = append(sorted, x...)
	}
	slices.Sort(sorted)
	return sorted, least
}

// affordable lowers the number of resamples for large pools, whose intervals
// vary less from draw to draw: at most 20 million values, at least 200 times.
func (b *Bootstrap) affordable(n int) int {
	return min(b.resamples, max(200, 20_000_000/max(1, n)))
}

// draw resamples within each task and hands over each sample, sorted.
func (b *Bootstrap) draw(tasks [][]float64, resamples int, use func(sorted []float64)) {
	rng := stream.New(b.seed, stream.Bootstrap, 1<<32, uint64(len(tasks)))
	var sample []float64
	for range resamples {
		sample = sample[:0]
		for _, x := range tasks {
			for range x {
				sample = append(sample, x[rng.Intn(len(x))])
			}
		}
		slices.Sort(sample)
		use(sample)
	}
}

// estimateJSON has null where there is no finite value.
type estimateJSON struct {
	Value   *float64 `json:"value"`
	Lo      *float64 `json:"lo"`
	Hi      *float64 `json:"hi"`
	N       int      `json:"n"`
	Warning string   `json:"warning,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (e Estimate) MarshalJSON() ([]byte, error) {
	out := estimateJSON{&e.Value, &e.Lo, &e.Hi, e.N, e.Warning}
	for _, v := range []**float64{&out.Value, &out.Lo, &out.Hi} {
		if math.IsNaN(**v) || math.IsInf(**v, 0) {
			*v = nil
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Estimate) UnmarshalJSON(b []byte) error {
	var in estimateJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	num := func(v *float64) float64 {
		if v == nil {
			return math.NaN()
		}
		return *v
	}
	*e = Estimate{num(in.Value), num(in.Lo), num(in.Hi), in.N, in.Warning}
	return nil
}
