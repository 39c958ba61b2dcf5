package env_test

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat"

	"ephemera/env"
	"ephemera/env/envtest"
)

// near fails unless got is want within a relative tolerance.
func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Abs(want)) {
		t.Errorf("%s is %v, want %v within %g", what, got, want, tol)
	}
}

// within fails unless the mean of x is want within z standard errors.
func within(t *testing.T, what string, x []float64, want, z float64) {
	t.Helper()
	m, sd := stat.MeanStdDev(x, nil)
	if se := sd / math.Sqrt(float64(len(x))); !(math.Abs(m-want) <= z*se) {
		t.Errorf("%s: mean of %d draws is %v ± %v, want %v", what, len(x), m, se, want)
	}
}

// varianceWithin fails unless the variance of x is want within z standard
// errors, estimated from the fourth moment.
func varianceWithin(t *testing.T, what string, x []float64, want, z float64) {
	t.Helper()
	m, v := stat.MeanVariance(x, nil)
	m4 := stat.MomentAbout(4, x, m, nil)
	if se := math.Sqrt((m4 - v*v) / float64(len(x))); !(math.Abs(v-want) <= z*se) {
		t.Errorf("%s: variance of %d draws is %v ± %v, want %v", what, len(x), v, se, want)
	}
}

// TCNS, (1): u = λ ξ̄ ∫₀¹ e^(−c(1−s)) ds; Allerton, II: with a window
// u = (1 − α)(1 − α^M) λ/c.
func TestGainIsTheIntegral(t *testing.T) {
	for _, s := range append(env.Wide(50, 1, 1).Sources, env.Mixed(50, 1, 1).Sources...) {
		interest := func(v float64) float64 { return math.Exp(-s.Decay * (1 - v)) }
		u := s.Rate * s.Interest * quad.Fixed(interest, 0, 1, 30, nil, 0)
		if !math.IsInf(s.Window, 1) {
			u *= 1 - math.Pow(s.Factor(), s.Window)
		}
		near(t, "gain", s.Gain(), u, 1e-12)
		near(t, "ceiling", s.Ceiling(), s.Gain()/(1-s.Factor()), 1e-12)
	}
}

// curves are sources of each law, with and without a window, one by one and in
// batches.
func curves() (all []env.Source) {
	for _, law := range []env.Law{"", env.LawPower, env.LawHump} {
		for _, window := range []float64{math.Inf(1), 0.3, 2.5, 4} {
			for _, batch := range []int{0, 20} {
				s := env.Source{Rate: 12, Decay: 0.4, Interest: 2, Window: window, Cost: 1, Law: law, Batch: batch}
				if law == env.LawPower && batch > 0 {
					s.Shape = 2.5
				}
				s.Name = fmt.Sprintf("%s law, window %v, batch %d", law, window, batch)
				all = append(all, s)
			}
		}
	}
	return all
}

// interestAt is the law of interest as it is documented.
func interestAt(s env.Source, age float64) float64 {
	switch s.Law {
	case env.LawPower:
		return math.Pow(1+s.Decay*age, -cmp.Or(s.Shape, 1.5))
	case env.LawHump:
		return s.Decay * age * math.Exp(1-s.Decay*age)
	}
	return math.Exp(-s.Decay * age)
}

// H(s) = λ ξ̄ ∫₀^min(s, M) f(a) da, and what follows from it.
func TestHarvestIsTheIntegral(t *testing.T) {
	for _, s := range curves() {
		f := func(age float64) float64 { return s.Rate * s.Interest * interestAt(s, age) }
		for _, age := range []float64{1e-4, 0.01, 0.024, 0.03, 0.3, 1, 2.2, 5, 30} {
			want := quad.Fixed(f, 0, math.Min(age, s.Window), 60, nil, 0)
			near(t, fmt.Sprintf("%s: harvest at age %v", s.Name, age), s.Harvest(age), want, 1e-9)
		}
		free := s
		free.Window = math.Inf(1)
		share := 1.0
		if !math.IsInf(s.Window, 1) {
			share = free.Harvest(s.Window) / free.Ceiling()
		}
		near(t, s.Name+": mean state", s.MeanState(3), free.Harvest(3)*share, 1e-12)
		near(t, s.Name+": gain", s.Gain(), s.MeanState(1), 1e-12)
		near(t, s.Name+": ceiling", s.Ceiling(), s.Harvest(math.Inf(1)), 1e-12)
		near(t, s.Name+": ceiling", s.Ceiling(), s.MeanState(math.MaxInt), 1e-8)
	}
}

// A crawl at age s brings back H(s) on average, whatever the world shows.
func TestCrawlsBringTheHarvest(t *testing.T) {
	in := env.Instance{ID: "curves", Sources: curves()}
	in.Budget = in.TotalCost()
	ages := []int{1, 2, 3, 4, 7}
	for _, o := range []env.PoissonOptions{{}, {State: true}, {Items: true}} {
		o.Marks = env.MarksPerItem
		w := must(env.NewPoisson(in, 9, o))
		found := make([][8][]float64, len(in.Sources))
		all := make([]int, len(in.Sources))
		for i := range all {
			all[i] = i
		}
		for k := range 2000 {
			for range ages[k%len(ages)] - 1 {
				must(w.Step(nil))
			}
			for i, c := range must(w.Step(all)) {
				found[i][c.Age] = append(found[i][c.Age], c.Interest)
			}
		}
		for i, s := range in.Sources {
			for _, age := range ages {
				within(t, fmt.Sprintf("%s, %+v, age %d", s.Name, o, age), found[i][age], s.Harvest(float64(age)), 4.5)
			}
		}
	}
}

// Allerton, (2)-(3): x ← αx + u while a source is not crawled, x ← u after a
// crawl. The state at age s is then u(1 − α^s)/(1 − α).
func TestMeanDynamics(t *testing.T) {
	in := env.Mixed(5, 2, 4)
	w := must(env.NewMean(in, true))
	x := make([]float64, 5)
	for i, s := range in.Sources {
		x[i] = s.Gain()
	}
	for n := range 60 {
		var crawl []int
		for i := range 5 {
			near(t, "state", w.View().State[i], x[i], 1e-12)
			near(t, "state at age", w.View().State[i], in.Sources[i].MeanState(w.View().Age(i)), 1e-12)
			if n%(3+7*i) == 2 {
				crawl = append(crawl, i)
			}
		}
		got := must(w.Step(crawl))
		for k, c := range got {
			near(t, "reward", c.Interest, x[crawl[k]], 1e-12)
			x[crawl[k]] = 0
		}
		for i, s := range in.Sources {
			x[i] = s.Factor()*x[i] + s.Gain()
		}
	}
}

// In a world that changes, what is published in an epoch follows the parameters
// of that epoch for good: its share of x grows from x(k) to x(k+1) with its age k.
func TestMeanStateOfChanges(t *testing.T) {
	in := changing()
	w := must(env.NewMean(in, true))
	phases := in.Phases()
	for n := range 90 {
		for i := range in.Sources {
			var want float64
			for made := w.View().Last[i] + 1; made <= n; made++ {
				var s env.Source
				for _, p := range phases {
					if p.From <= made {
						s = p.Instance.Sources[i]
					}
				}
				want += s.MeanState(n-made+1) - s.MeanState(n-made)
			}
			near(t, fmt.Sprintf("epoch %d: state of source %d", n, i+1), w.View().State[i], want, 1e-10)
		}
		must(w.Step([]int{n % 3, 3 + n%2, 6}))
	}
}

var allMarks = []env.Marks{env.MarksConstant, env.MarksPerItem, env.MarksPerEpoch}

// gains returns what the source gains in each of n epochs.
func gains(t *testing.T, s env.Source, n int, seed uint64, o env.PoissonOptions) []float64 {
	t.Helper()
	w := must(env.NewPoisson(env.Instance{ID: "one", Sources: []env.Source{s}, Budget: s.Cost}, seed, o))
	x := make([]float64, n)
	for k := range x {
		x[k] = must(w.Step([]int{0}))[0].Interest
	}
	return x
}

// TCNS, (1) and VIII: E U = u; Campbell's theorem gives the variance
// λ E[ξ²](1 − α²)/(2c).
func TestGainOfPoissonItems(t *testing.T) {
	for _, rate := range []float64{0.7, 250} {
		for _, m := range allMarks {
			s := env.NewSource("", rate, 0.35, 0.7)
			n := 40_000
			what := fmt.Sprintf("λ = %v, %s marks", rate, m)
			if rate == 250 { // items one by one
				n = 5_000
			}
			x := gains(t, s, n, 3, env.PoissonOptions{Marks: m})
			within(t, what, x, s.Gain(), 4)
			varianceWithin(t, what, x, envtest.GainVariance(s, m), 4)
		}
	}
	// E[ξ²] of the marks, from their laws.
	s := env.NewSource("", 250, 0.35, 0.7)
	for _, second := range []struct {
		marks env.Marks
		mean  float64
	}{{env.MarksConstant, 0.49}, {env.MarksPerItem, 2 * 0.49}} {
		want := 250 * second.mean * (1 - math.Exp(-0.7)) / 0.7
		near(t, fmt.Sprintf("variance, %s marks", second.marks), envtest.GainVariance(s, second.marks), want, 1e-12)
	}
	want := 2*250*0.49*(1-math.Exp(-0.7))/0.7 + s.Gain()*s.Gain()
	near(t, "variance, per-epoch marks", envtest.GainVariance(s, env.MarksPerEpoch), want, 1e-12)
}
