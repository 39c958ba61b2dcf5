package env_test

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/env"
)

// Each parameter of 4000 sources against the distribution that the
// documentation names, by the one-sample statistic of Kolmogorov and Smirnov.
func TestFamiliesHaveTheirDistributions(t *testing.T) {
	const n = 4000
	normal := distuv.UnitNormal.CDF
	lognormal := map[string]func(env.Source) float64{
		"rate":     func(s env.Source) float64 { return normal(math.Log(s.Rate / 50)) },
		"interest": func(s env.Source) float64 { return normal(math.Log(s.Interest)) },
		"decay":    func(s env.Source) float64 { return s.Decay - 0.05 },
	}
	for _, c := range []struct {
		in  env.Instance
		cdf map[string]func(env.Source) float64
	}{
		{env.Lognormal(n, 10, 5), lognormal},
		{env.Wide(n, 10, 5), map[string]func(env.Source) float64{
			"rate":  func(s env.Source) float64 { return 1 - math.Pow(s.Rate, -1.3) },
			"decay": func(s env.Source) float64 { return math.Log(s.Decay/0.01) / math.Log(300) },
			// Gamma with shape 2 and scale ½: 1 − (1 + 2x) e^(−2x)
			"interest": func(s env.Source) float64 { return 1 - (1+2*s.Interest)*math.Exp(-2*s.Interest) },
		}},
		{env.Mixed(n, 10, 5), map[string]func(env.Source) float64{
			"cost":   func(s env.Source) float64 { return (s.Cost - 0.5) / 2.5 },
			"window": func(s env.Source) float64 { return (s.Window - 2) / 48 },
			"rate":   lognormal["rate"], "decay": lognormal["decay"], "interest": lognormal["interest"],
		}},
		{env.Quiet(n, 10, 5), map[string]func(env.Source) float64{
			"rate":  func(s env.Source) float64 { return normal(math.Log(s.Rate / .1)) },
			"decay": lognormal["decay"], "interest": lognormal["interest"],
		}},
	} {
		if err := c.in.Validate(); err != nil {
			t.Error(err)
		}
		for _, name := range slices.Sorted(maps.Keys(c.cdf)) {
			t.Run(c.in.ID+"/"+name, func(t *testing.T) {
				u := make([]float64, n)
				for i, s := range c.in.Sources {
					u[i] = c.cdf[name](s)
				}
				slices.Sort(u)
				var d float64
				for i, x := range u {
					d = max(d, math.Abs(x-float64(i)/n), math.Abs(x-float64(i+1)/n))
				}
				if d *= math.Sqrt(n); d > 1.95 {
					t.Errorf("distance %v in standard units; want at most 1.95", d)
				}
			})
		}
	}
}

func TestFamiliesGrow(t *testing.T) {
	for _, f := range []func(int, float64, uint64) env.Instance{env.Lognormal, env.Wide, env.Mixed, env.Quiet} {
		small, large := f(5, 1, 9), f(50, 1, 9)
		if !reflect.DeepEqual(small.Sources, large.Sources[:5]) {
			t.Errorf("%s does not begin with %s", large.ID, small.ID)
		}
		if reflect.DeepEqual(small.Sources, f(5, 1, 10).Sources) {
			t.Errorf("%s does not depend on the seed", small.ID)
		}
	}
	a, b := env.Lognormal(5, 1, 9).Sources[3], env.Mixed(5, 1, 9).Sources[3]
	if a.Rate != b.Rate || a.Decay != b.Decay || a.Interest != b.Interest {
		t.Errorf("the sources of lognormal and mixed differ: %+v, %+v", a, b)
	}
}

// Three phases: some sources change, then all exchange their parameters.
func TestPhases(t *testing.T) {
	in := env.Mixed(30, 4, 1)
	in.Changes = []env.Change{{At: 10, Sources: []env.Source{in.Sources[2]}}, {At: 20, Shuffle: true}}
	in.Changes[0].Sources[0].Rate = 1e3
	p := in.Phases()
	if len(p) != 3 || p[0].From != 0 || p[1].From != 10 || p[2].From != 20 {
		t.Fatalf("phases %+v", p)
	}
	first, second, third := p[0].Instance.Sources, p[1].Instance.Sources, p[2].Instance.Sources
	if !reflect.DeepEqual(first, in.Sources) || second[2].Rate != 1e3 || !reflect.DeepEqual(second[3:], first[3:]) {
		t.Errorf("%+v became %+v", first, second)
	}
	var before, after []float64
	moved := 0
	for i, s := range third {
		if s.Name != first[i].Name || s.Cost != first[i].Cost {
			t.Errorf("source %+v became %+v", second[i], s)
		}
		if s.Rate != second[i].Rate {
			moved++
		}
		before, after = append(before, second[i].Rate), append(after, s.Rate)
	}
	slices.Sort(before)
	slices.Sort(after)
	if !slices.Equal(before, after) || moved < 20 {
		t.Errorf("%d of 30 sources have another rate after a shuffle, rates were %v and are %v", moved, before, after)
	}
}

// Drift renews one tenth of the sources each time, from the family's distributions.
func TestDrift(t *testing.T) {
	in := env.Drift(2000, 5, 3)
	if err := in.Validate(); err != nil || len(in.Changes) != 9 || in.Changes[8].At != 9000 {
		t.Fatalf("%d changes, error %v", len(in.Changes), err)
	}
	var renewed, logs float64
	for _, c := range in.Changes {
		for _, s := range c.Sources {
			renewed++
			logs += math.Log(s.Rate / 50)
		}
	}
	if math.Abs(renewed-1800) > 5*math.Sqrt(1800) || math.Abs(logs/renewed) > 4/math.Sqrt(renewed) {
		t.Errorf("%v sources were renewed, their mean ln(rate/50) is %v; want 1800 and 0", renewed, logs/renewed)
	}
	small := env.Drift(20, 5, 3).Sources
	if !reflect.DeepEqual(small, in.Sources[:20]) || !reflect.DeepEqual(small, env.Lognormal(20, 5, 3).Sources) {
		t.Error("a smaller instance has other sources")
	}
}

func TestWithLaw(t *testing.T) {
	const n = 3000
	count := map[string]int{}
	plain := env.Lognormal(n, 5, 2)
	in := plain.WithLaw("mixture", 2)
	for i, s := range in.Sources {
		count[string(s.Law)]++
		count[fmt.Sprint("batch", s.Batch)]++
		if !math.IsInf(s.Window, 1) {
			count["window"]++
			near(t, "window", s.Window, 2/s.Decay, 1e-15)
		}
		if s.Rate != plain.Sources[i].Rate {
			t.Fatal("a mixture changes rates")
		}
		if i == 9 && !reflect.DeepEqual(env.Lognormal(10, 5, 2).WithLaw("mixture", 2).Sources, in.Sources[:10]) {
			t.Error("a smaller mixture has other sources")
		}
	}
	for _, tt := range []struct {
		name string
		want float64
	}{
		{"exponential", 1. / 3},
		{"power", 1. / 3},
		{"hump", 1. / 3},
		{"batch20", .5},
		{"batch1", .5},
		{"window", .5},
	} {
		if got := float64(count[tt.name]) / n; math.Abs(got-tt.want) > .04 {
			t.Errorf("%s: %v of the sources; want %v", tt.name, got, tt.want)
		}
	}
	in = env.Mixed(20, 5, 2)
	for i := range in.Sources {
		in.Sources[i].Law, in.Sources[i].Shape = env.LawPower, 2
	}
	for _, law := range append(env.Laws(), "window", "batches", "mixture") {
		if err := in.WithLaw(string(law), 1).Validate(); err != nil {
			t.Errorf("law %s in place of another with a shape and a window: %v", law, err)
		}
	}
	if shape := in.WithLaw("power", 1).Sources[0].Shape; shape != 2 {
		t.Errorf("a source that has the law has the shape %v; want 2", shape)
	}
	// Pages with another law are sources of items, and no copies are to be kept fresh.
	for law, want := range map[string]env.Law{"delay": "", "freshness": env.LawFreshness} {
		if in, err := env.Named("pages-pinged:20:"+law, 0); err != nil || in.Objective.Law != want {
			t.Errorf("%s has the objective %q, error %v; want %q", in.ID, in.Objective.Law, err, want)
		}
	}
}

func TestNamed(t *testing.T) {
	file := write(t, "own.toml", strings.Replace(oneSource, "budget = 1", "budget = 0.5", 1)+"cost = 0.5\n")
	for _, c := range []struct {
		name   string
		budget float64
		id     string
		n      int
		want   float64
	}{
		{"paper", 0, "paper", 4, 1},
		{"paper", 3, "paper", 4, 3},
		{"lognormal:50", 0, "lognormal/50/1", 50, 1},
		{"lognormal:50:7", 5, "lognormal/50/7", 50, 5},
		{"lognormal/50/7", 5, "lognormal/50/7", 50, 5},
		{"wide:3:18446744073709551615", 2, "wide/3/18446744073709551615", 3, 2},
		{"mixed:20:3", 4, "mixed/20/3", 20, 4},
		{"mixed:1:2", 0, "mixed/1/2", 1, env.Mixed(1, 1, 2).TotalCost()},
		{"drift:20", 4, "drift/20/1", 20, 4},
		{"paper:power", 2, "paper/power", 4, 2},
		{"lognormal:9:7:mixture", 2, "lognormal/9/7/mixture", 9, 2},
		{"lognormal/9/1/hump", 2, "lognormal/9/1/hump", 9, 2},
		{"wide:9:window", 2, "wide/9/1/window", 9, 2},
		{file, 0, "own", 1, 0.5},
		{file + ":hump", 0, "own/hump", 1, 0.5},
	} {
		in, err := env.Named(c.name, c.budget)
		if err != nil || in.ID != c.id || len(in.Sources) != c.n || in.Budget != c.want {
			t.Errorf("%s: %q with %d sources, budget %v, error %v; want %q, %d, %v",
				c.name, in.ID, len(in.Sources), in.Budget, err, c.id, c.n, c.want)
		}
	}
	for _, c := range []struct {
		name   string
		budget float64
		want   string
	}{
		{"papers", 0, `unknown instance "papers"; ` +
			"allowed are paper, FAMILY:N[:SEED] with the families " +
			"drift, hosts, lognormal, mixed, pages, pages-correlated, pages-pinged, quiet, wide"},
		{"", 0, "allowed are paper"},
		{"lognormal", 0, "allowed are paper"},
		{"lognormal:", 0, `number of sources is ""`},
		{"lognormal:0", 0, `number of sources is "0"; allowed are 1 to`},
		{"wide:-3", 0, `number of sources is "-3"`},
		{"wide:1e3", 0, `number of sources is "1e3"`},
		{"wide:99999999999", 0, "number of sources"},
		{"mixed:3:x", 0, `"x" is neither a seed, a whole number of 0 or more, nor a law; ` +
			"allowed laws are exponential, power, hump"},
		{"mixed:3:1:2", 0, "unknown instance"},
		{"paper:gauss", 0, `unknown instance "paper:gauss"`},
		{"none.toml", 0, "none.toml"},
		{"paper", 5, "budget is 5; allowed is above 0 and at most 4"},
		{"paper", -1, "budget is -1; allowed"},
		{"paper", math.NaN(), "budget is NaN; allowed"},
		{file, 1, "budget is 1; allowed is above 0 and at most 0.5"},
	} {
		if _, err := env.Named(c.name, c.budget); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, budget %v: error is %v; want one with %q", c.name, c.budget, err, c.want)
		}
	}
	defer func() {
		if got := fmt.Sprint(recover()); got != "env: lognormal instance of 0 sources; allowed is 1 or more" {
			t.Errorf("panic is %q", got)
		}
	}()
	env.Lognormal(0, 1, 1)
}
