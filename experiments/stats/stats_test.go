package stats

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
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
		if got := EstimateIQM(c.x).Value; got != c.want {
			t.Errorf("EstimateIQM(%v) = %v; want %v", c.x, got, c.want)
		}
		if !slices.Equal(in, c.x) {
			t.Errorf("IQM changed its input %v to %v", in, c.x)
		}
	}
}

// The interval of a mean is Student's.
func TestMeanIsStudents(t *testing.T) {
	for _, n := range []int{5, 6, 40} {
		x := normals(n, 3, 2, uint64(n))
		e := EstimateMean(x)
		m, sd := stat.MeanStdDev(x, nil)
		half := distuv.StudentsT{Nu: float64(n - 1), Sigma: 1}.Quantile(.975) * sd / math.Sqrt(float64(n))
		if math.Abs(e.Value-m) > 1e-12 || math.Abs(e.Lo-(m-half)) > 1e-9 || math.Abs(e.Hi-(m+half)) > 1e-9 {
			t.Errorf("of %d values: %v in [%v, %v]; Student's is %v in [%v, %v]",
				n, e.Value, e.Lo, e.Hi, m, m-half, m+half)
		}
		if e.N != n || e.Warning != "" {
			t.Errorf("n = %d, warning %q", e.N, e.Warning)
		}
	}
}

// Intervals cover in 95 of 100 samples what they are of, of five values as of twenty.
func TestCoverage(t *testing.T) {
	const trials = 3000
	for _, n := range []int{5, 8, 20} {
		var mean, iqm, ratio int
		for k := range uint64(trials) {
			x := normals(n, 1, 1, 77, uint64(n), k)
			if e := EstimateMean(x); e.Lo <= 1 && 1 <= e.Hi {
				mean++
			}
			if e := EstimateIQM(x); e.Lo <= 1 && 1 <= e.Hi {
				iqm++
			}
			den := normals(n, 10, 1, 78, uint64(n), k)
			num := make([]float64, n)
			for i := range num {
				num[i] = 2*den[i] + x[i] - 1
			}
			if e := EstimateRatio(num, den, 1); e.Lo <= 2 && 2 <= e.Hi {
				ratio++
			}
		}
		for _, covered := range []struct {
			name string
			hits int
		}{{"mean", mean}, {"IQM", iqm}, {"ratio", ratio}} {
			if c := float64(covered.hits) / trials; c < .925 || c > .97 {
				t.Errorf("%s of %d values: %.3f of the intervals cover it; want .95", covered.name, n, c)
			}
		}
	}
}

// Of policies that earn the same the interval between the best two leaves out 0 in at
// most 5 of 100 comparisons, however many they are; one that earns more by as much as
// the noise is, is distinguished.
func TestBestOfMany(t *testing.T) {
	const trials = 500
	for _, rows := range []uint64{2, 10, 60} {
		wrong := 0
		for k := range uint64(trials) {
			var best, second []float64
			for r := range rows {
				x := normals(8, 0, 1, 40, rows, k, r)
				switch m := Mean(x); {
				case best == nil || m > Mean(best):
					best, second = x, best
				case second == nil || m > Mean(second):
					second = x
				}
			}
			if EstimateMean(minus(best, second)).Leaves(0) {
				wrong++
			}
		}
		if wrong > trials*7/100 || rows > 2 && wrong > trials/20 {
			t.Errorf("%d of %d times a winner is named among %d equals", wrong, trials, rows)
		}
	}
	x := normals(20, 10, 5)
	better := make([]float64, len(x))
	for i, noise := range normals(20, 1, 1, 41) {
		better[i] = x[i] + noise // the same seeds: their spread of 5 does not matter
	}
	for _, c := range []struct {
		what         string
		best, second []float64
		want         bool
	}{
		{"apart", better, x, true},
		{"too few seeds", []float64{9, 9.1, 9, 9.1}, []float64{1, 1, 1, 1}, false},
		{"the same", x, x, false},
		{"nothing random differs", []float64{2, 2, 2, 2, 2}, []float64{1, 1, 1, 1, 1}, true},
		{"not a number", []float64{2, 3, 2, math.NaN(), 2}, []float64{1, 1, 1, 1, 1}, false},
	} {
		if got := EstimateMean(minus(c.best, c.second)).Leaves(0); got != c.want {
			t.Errorf("%s: %v; want %v", c.what, got, c.want)
		}
	}
}

func minus(x, y []float64) []float64 { return floats.SubTo(make([]float64, len(x)), x, y) }

// The finite series is Student's distribution, and its quantiles are gonum's.
func TestStudent(t *testing.T) {
	for nu := 1; nu < 60; nu++ {
		s := distuv.StudentsT{Sigma: 1, Nu: float64(nu)}
		for _, x := range []float64{0, .01, .5, 1, 2.3, 5, 12} {
			if got, want := studentTails(-x, nu), 2*s.Survival(x); math.Abs(got-want) > 1e-12 {
				t.Errorf("P(|T| > %v) with %d degrees of freedom is %v; gonum has %v", x, nu, got, want)
			}
		}
		if got, want := studentQuantile(nu), s.Quantile(.975); math.Abs(got-want) > 1e-8 {
			t.Errorf("the quantile with %d degrees of freedom is %v; gonum has %v", nu, got, want)
		}
	}
	if p := studentTails(math.Inf(1), 9); p != 0 {
		t.Errorf("beyond infinity lies %v", p)
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
		for _, estimate := range []struct {
			name string
			e    Estimate
		}{{"mean", EstimateMean(c.x)}, {"IQM", EstimateIQM(c.x)}} {
			e := estimate.e
			if e.Warning != c.warning || e.String() != c.text || e.N != len(c.x) ||
				e.Same != (c.warning == "") || math.IsNaN(e.Lo) == e.Same {
				t.Errorf("%s of %v: %+v, %s; want %q, %s", estimate.name, c.x, e, e, c.warning, c.text)
			}
		}
	}
	if e := EstimateMean([]float64{3, 3, 3, 3, 3.1}); e.Same {
		t.Errorf("not the same: %+v", e)
	}
}

func TestProfile(t *testing.T) {
	p := Profile([]float64{1, 5, 3, 4, 2, math.NaN()}, []float64{0, 3, 10})
	if p[0].Value != 5./6 || p[1].Value != 2./6 || p[2].Value != 0 {
		t.Errorf("profile %v; want 5/6, 1/3, 0", p)
	}
	// Wilson's interval of 2 of 6, and of 0 of 6.
	for _, tt := range []struct {
		e      Estimate
		lo, hi float64
	}{{p[1], .0967714, .7000067}, {p[2], 0, .3903343}} {
		if e := tt.e; math.Abs(e.Lo-tt.lo) > 1e-6 || math.Abs(e.Hi-tt.hi) > 1e-6 {
			t.Errorf("share %v has the interval [%.7f, %.7f]; want [%.7f, %.7f]", e.Value, e.Lo, e.Hi, tt.lo, tt.hi)
		}
	}
	if few := Profile([]float64{1, 2, 3}, []float64{2}); few[0].Value != 1./3 || !math.IsNaN(few[0].Lo) {
		t.Errorf("of three runs: %+v; want no interval", few[0])
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
	days, weeks := EstimateBlocks(x, 1), EstimateBlocks(x, 30)
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
	if e := EstimateBlocks(x[:20], 7); !strings.Contains(e.Warning, "5 blocks") || !math.IsNaN(e.Lo) {
		t.Errorf("two blocks: %+v", e)
	}
	num := make([]float64, n)
	den := make([]float64, n)
	for i := range num {
		den[i] = 3 + x[i]/10
		num[i] = 2 * den[i]
	}
	if e := EstimateRatio(num, den, 7); math.Abs(e.Value-2) > 1e-12 || e.Hi-e.Lo > 1e-9 {
		t.Errorf("ratio of proportional series: %v", e)
	}
}

func TestFormat(t *testing.T) {
	for _, tt := range []struct {
		v    float64
		want string
	}{
		{260.391, "260.4"},
		{0.99954, "0.9995"},
		{0.99996, "1.000"},
		{999.97, "1000"},
		{0.001, "0.001000"},
		{1, "1.000"},
		{12345.6, "12346"},
		{0, "0"},
		{-0.01234567, "-0.01235"},
		{3.2e-7, "3.200e-07"},
		{2e6, "2.000e+06"},
		{999999.6, "1.000e+06"},
		{999940, "999940"},
		{9.99999e-5, "0.0001000"},
		{9.9994e-5, "9.999e-05"},
		{0.40625, "0.4062"},
		{0.28125, "0.2812"},
		{0.34375, "0.3438"},
	} {
		if got := Format(tt.v); got != tt.want {
			t.Errorf("Format(%v) = %q; want %q", tt.v, got, tt.want)
		}
	}
}
