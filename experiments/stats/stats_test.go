package stats

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/env/stream"
)

func normals(n int, mean, sd float64, path ...uint64) []float64 {
	r := stream.New(1, append([]uint64{stream.Test}, path...)...)
	x := make([]float64, n)
	for i := range x {
		x[i] = mean + sd*r.NormFloat64()
	}
	return x
}

func TestIQM(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{1, 2, 6}, 3},
		{[]float64{100, 1, 2, 3}, 2.5},
		{[]float64{-50, 1, 2, 3, 100}, 2},
		{[]float64{8, 1, 7, 2, 6, 3, 5, 4}, 4.5},
	} {
		in := slices.Clone(c.x)
		if got := New(1).IQM(c.x).Value; got != c.want {
			t.Errorf("IQM(%v) = %v; want %v", c.x, got, c.want)
		}
		if !slices.Equal(in, c.x) {
			t.Errorf("IQM changed its input %v to %v", in, c.x)
		}
	}
}

// The bootstrap interval of a mean is near Student's for a sample of size 40.
func TestMeanNearStudent(t *testing.T) {
	for k := range uint64(10) {
		x := normals(40, 3, 2, k)
		e := New(1).Mean(x)
		m, sd := stat.MeanStdDev(x, nil)
		half := distuv.StudentsT{Nu: 39, Sigma: 1}.Quantile(0.975) * sd / math.Sqrt(40)
		if math.Abs(e.Value-m) > 1e-12 {
			t.Errorf("mean %v; want %v", e.Value, m)
		}
		if math.Abs(e.Lo-(m-half)) > 0.15*half || math.Abs(e.Hi-(m+half)) > 0.15*half {
			t.Errorf("interval [%v, %v]; Student's is [%v, %v]", e.Lo, e.Hi, m-half, m+half)
		}
		if e.N != 40 || e.Warning != "" {
			t.Errorf("n = %d, warning %q", e.N, e.Warning)
		}
	}
}

// Nominal 95 % intervals of the mean of 20 normal values cover it in 92 to 95
// of 100 samples; the percentile interval is known to be a little short.
func TestCoverage(t *testing.T) {
	b := New(3)
	hit, hitIQM := 0, 0
	const trials = 600
	for k := range uint64(trials) {
		x := normals(20, 1, 1, 77, k)
		if e := b.Mean(x); e.Lo <= 1 && 1 <= e.Hi {
			hit++
		}
		if e := b.IQM(x); e.Lo <= 1 && 1 <= e.Hi {
			hitIQM++
		}
	}
	for name, h := range map[string]int{"mean": hit, "IQM": hitIQM} {
		if c := float64(h) / trials; c < 0.89 || c > 0.975 {
			t.Errorf("%s: coverage %.3f; want about 0.93", name, c)
		}
	}
}

// Without an interval an aggregate says why; one of values that are not finite is none,
// for where would they stand in the order of an interquartile mean?
func TestWithoutInterval(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		x             []float64
		warning, text string
	}{
		{[]float64{1, 2, 3, 4}, "need at least 5 seeds for an interval", "2.500 (n = 4)"},
		{nil, "no value", "– (n = 0)"},
		{[]float64{1, 2, nan, 4, 5}, "1 of 5 values are not finite", "– (n = 5)"},
		{[]float64{inf, 1, 2, 3, 4, 5, 6, 7, 8}, "1 of 9 values are not finite", "– (n = 9)"},
		{[]float64{-inf, 1, 2, 3, 4, 5, 6, 7, inf}, "2 of 9 values are not finite", "– (n = 9)"},
		{[]float64{3, 3, 3, 3, 3}, "", "3.000 (all 5 the same)"},
	} {
		for what, e := range map[string]Estimate{"mean": New(1).Mean(c.x), "IQM": New(1).IQM(c.x)} {
			if e.Warning != c.warning || e.String() != c.text || e.N != len(c.x) || e.Same != (c.warning == "") || math.IsNaN(e.Lo) == e.Same {
				t.Errorf("%s of %v: %+v, %s", what, c.x, e, e)
			}
		}
	}
	if e := New(1).Mean([]float64{3, 3, 3, 3, 3.1}); e.Same {
		t.Errorf("not the same: %+v", e)
	}
}

func TestProfile(t *testing.T) {
	p := New(1).Profile([]float64{1, 5, 3, 4, 2, math.NaN()}, []float64{0, 3, 10})
	if p[0].Value != 5./6 || p[1].Value != 2./6 || p[2].Value != 0 || !(p[1].Lo < 2./6 && p[1].Hi > 2./6) {
		t.Errorf("profile %v; want 5/6, 1/3, 0", p)
	}
}

// On an AR(1) series with φ = 0.8 the true standard error of the mean is about
// three times that of independent days; blocks see it, single days do not.
func TestBlocks(t *testing.T) {
	const n, phi = 2000, 0.8
	x := normals(n, 0, 1, 6)
	for i := 1; i < n; i++ {
		x[i] += phi * x[i-1]
	}
	days, weeks := New(1).Blocks(x, 1), New(1).Blocks(x, 30)
	if days.Value != weeks.Value || math.Abs(days.Value-Mean(x)) > 1e-12 {
		t.Errorf("means %v and %v", days.Value, weeks.Value)
	}
	if r := (weeks.Hi - weeks.Lo) / (days.Hi - days.Lo); r < 2.2 || r > 3.6 {
		t.Errorf("blocks widen the interval %.2f times; want about 3", r)
	}
	se := 1 / (1 - phi) / math.Sqrt(n)
	if r := (weeks.Hi - weeks.Lo) / (2 * 1.96 * se); r < 0.75 || r > 1.25 {
		t.Errorf("interval is %.2f of the true one", r)
	}
	if e := New(1).Blocks(x[:20], 7); !strings.Contains(e.Warning, "5 blocks") || !math.IsNaN(e.Lo) {
		t.Errorf("two blocks: %+v", e)
	}
	num := make([]float64, n)
	den := make([]float64, n)
	for i := range num {
		den[i] = 3 + x[i]/10
		num[i] = 2 * den[i]
	}
	if e := New(1).RatioBlocks(num, den, 7); math.Abs(e.Value-2) > 1e-12 || e.Hi-e.Lo > 1e-9 {
		t.Errorf("ratio of proportional series: %v", e)
	}
}

// Equal input and seed, equal interval, in whatever order the values come; another seed, another
// interval.
func TestSeeded(t *testing.T) {
	x := normals(20, 0, 1)
	y := slices.Clone(x)
	slices.Reverse(y)
	a, b, c := New(1).Mean(x), New(1).Mean(y), New(2).Mean(x)
	if a.Lo != b.Lo || a.Hi != b.Hi {
		t.Errorf("same seed: %v and %v", a, b)
	}
	if a.Lo == c.Lo {
		t.Errorf("another seed draws the same: %v", c)
	}
	again := New(1)
	again.Mean(normals(7, 0, 1))
	again.IQM(x)
	if d := again.Mean(x); d.Lo != a.Lo || d.Hi != a.Hi {
		t.Errorf("earlier calls change the draws: %v and %v", a, d)
	}
}

func TestFormat(t *testing.T) {
	for v, want := range map[float64]string{260.391: "260.4", 0.99954: "0.9995", 0.99996: "1.000", 999.97: "1000", 0.001: "0.001000", 1: "1.000", 12345.6: "12346", 0: "0", -0.01234567: "-0.01235", 3.2e-7: "3.200e-07", 2e6: "2.000e+06", 999999.6: "1.000e+06", 999940: "999940", 9.99999e-5: "0.0001000", 9.9994e-5: "9.999e-05", 0.40625: "0.4062", 0.28125: "0.2812", 0.34375: "0.3438"} {
		if got := Format(v); got != want {
			t.Errorf("Format(%v) = %q; want %q", v, got, want)
		}
	}
}

func BenchmarkMean20(b *testing.B) {
	x, s := normals(20, 0, 1), New(1)
	s.Mean(x)
	for b.Loop() {
		s.Mean(x)
	}
}
