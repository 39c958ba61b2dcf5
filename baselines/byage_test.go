package baselines

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
)

// ages are the policies whose index is a function of the age.
var ages = []struct {
	name string
	of   func(in env.Instance) ageIndex
}{
	{"greedy", func(in env.Instance) ageIndex { return NewGreedy(in).(*byAge).index }},
	{"lagrangian", func(in env.Instance) ageIndex { return NewLagrangian(in).(*byAge).index }},
	{"whittle", func(in env.Instance) ageIndex { return WhittleAt(in) }},
}

// The first age at which the index of a curve reaches a level is that of a search.
func TestWhittleFindsTheFirstAge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := envtest.DrawInstance(t, 1, 3, true, true)
		in.Sources[0].Decay = math.Exp(rapid.Float64Range(-12, 3).Draw(t, "ln decay"))
		in.Sources[0].Law = rapid.SampledFrom(env.Laws()).Draw(t, "law")
		if in.Sources[0].Unbounded() {
			in.Sources[0].Window = math.Inf(1)
		}
		p := newWhittle(in, true)
		for i := range in.Sources {
			c := index.NewCurve(in.Sources[i])
			level := min(c.Limit, c.Index(1000)) / c.Cost * rapid.Float64Range(-.1, 1.1).Draw(t, "level")
			if got, want := p.first(i, level), p.index.firstAge(i, level); got != want {
				t.Fatalf("%+v: level %v is reached at age %d; by search %d", in.Sources[i], level, got, want)
			}
		}
	})
}

// alike plays an instance of equal costs by both ways of ranking by age. others
// says whether somebody else crawls too.
func alike(t rapid.TB, in env.Instance, x ageIndex, epochs int, others bool) {
	t.Helper()
	scan, some := newByAge(in.Terms(), x, false), newByAge(in.Terms(), x, true)
	w := mean(t, in, true)
	for epoch := range epochs {
		o := &w.View().Model
		want, got := scan.Select(nil, o), some.Select(nil, o)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("epoch %d: with the ring %v are crawled, without it %v", epoch, got, want)
		}
		if extra := epoch * 7 % len(in.Sources); others && !slices.Contains(got, extra) {
			got = append(got, extra)
		}
		if _, err := w.Step(got); err != nil {
			t.Fatal(err)
		}
	}
}

// With the ring the same sources are crawled at every epoch, ties included, also
// where others crawl too.
func TestRingChoosesAsTheScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := envtest.DrawInstance(t, 1, 40, false, true)
		for i := 1; i < len(in.Sources); i += 2 {
			if rapid.Bool().Draw(t, "twin") {
				in.Sources[i] = in.Sources[i-1]
			}
		}
		for _, x := range ages {
			alike(t, in, x.of(in), 120, rapid.Bool().Draw(t, "others"))
		}
	})
	laws := env.Lognormal(1500, 20, 3)
	for i := range laws.Sources {
		laws.Sources[i].Law = []env.Law{env.LawExponential, env.LawPower, env.LawHump}[i%3]
	}
	for _, in := range []env.Instance{env.Lognormal(3000, 20, 2), env.Wide(2000, 30, 2), laws} {
		for _, x := range ages {
			alike(t, in, x.of(in), 300, true)
		}
	}
}

// Where the crawls of a host are limited, too, nothing is crawled while its index is below 0.
func TestWaitsAtHosts(t *testing.T) {
	in := env.Instance{Budget: 2, PerHost: 1}
	for _, host := range []string{"a", "a", "b", ""} {
		s := env.NewSource("", 10, .1, 1)
		s.Law, s.Host = env.LawHump, host
		in.Sources = append(in.Sources, s)
	}
	for _, sleep := range []bool{false, true} {
		p, at := newWhittle(in, sleep), WhittleAt(in)
		w := must(env.NewPoisson(in, 1, env.PoissonOptions{}))
		for range 100 {
			crawl := p.Select(nil, &w.View().Model)
			for _, i := range crawl {
				if age := w.View().Age(i); !(at(i, age) >= 0) {
					t.Fatalf("sleep %t, epoch %d: source %d is crawled at age %d, where its index is %v",
						sleep, w.View().Epoch, i, age, at(i, age))
				}
			}
			must(w.Step(crawl))
		}
		if w.View().Last[3] < 0 {
			t.Errorf("sleep %t: nothing was crawled", sleep)
		}
	}
}

// Sources of which a crawl is above the budget are as if they were not there, however many
// they are and whatever waits at them.
func TestRingPassesOverTheUnaffordable(t *testing.T) {
	in := env.Lognormal(400, 5, 1)
	for i := range 200 {
		in.Sources[i].Cost, in.Sources[i].Interest = 10, 1000*in.Sources[i].Interest
	}
	for _, x := range ages {
		alike(t, in, x.of(in), 1000, false)
	}
}

// Where costs differ, what is left of the budget after the first that fit may
// go to another source. What that earns or loses is little.
func TestRingWithUnequalCosts(t *testing.T) {
	for _, budget := range []float64{3, 60} {
		in := env.Mixed(3000, budget, 2).MeanDynamics()
		for _, x := range ages {
			for _, pack := range []bool{false, true} {
				if pack && x.name != "whittle" {
					continue // no policy
				}
				var earned [2]float64
				for k, sleep := range []bool{false, true} {
					p := newByAge(in.Terms(), x.of(in), sleep)
					p.pack = pack
					earned[k] = run(t, in, p, 700)
				}
				share := earned[1] / earned[0]
				t.Logf("budget %v, %s, packed %t: the ring earns %.6f of the scan", budget, x.name, pack, share)
				if share < .999 {
					t.Errorf("budget %v, %s, packed %t: the ring earns %.6f of the scan; want .999",
						budget, x.name, pack, share)
				}
			}
		}
	}
}

// The work of an epoch grows with the crawls, not with the sources.
func TestRingWorksByCrawls(t *testing.T) {
	const crawls, epochs = 50, 300
	for _, n := range []int{10_000, 50_000} {
		in := env.Lognormal(n, crawls, 1)
		asked, whittle := 0, WhittleAt(in)
		p := newByAge(in.Terms(), func(i, age int) float64 { asked++; return whittle(i, age) }, true)
		w := mean(t, in, false)
		step := func() { must(w.Step(p.Select(nil, &w.View().Model))) }
		for range 2 * n / crawls {
			step()
		}
		asked = 0
		for range epochs {
			step()
		}
		each := float64(asked) / (epochs * crawls)
		t.Logf("%d sources: %.2f indices for each crawl", n, each)
		if each > 100 {
			t.Errorf("%d sources: %.2f indices for each crawl; want at most 100", n, each)
		}
	}
}

// BenchmarkByAge takes turns of the scan and the ring on the same epochs of one
// mean world in service. It reports ns per decision of both.
func BenchmarkByAge(b *testing.B) {
	for _, x := range ages {
		for _, n := range []int{100, 1000, 10_000, 100_000, 1_000_000} {
			for _, round := range []int{10, 40, 1000} {
				if n/round == 0 {
					continue
				}
				b.Run(fmt.Sprintf("%s/N=%d/round=%d", x.name, n, round), func(b *testing.B) {
					in := env.Lognormal(n, float64(n/round), 1)
					key, w := x.of(in), mean(b, in, false)
					policies := []env.Policy[env.Model]{
						newByAge(in.Terms(), key, false), newByAge(in.Terms(), key, true),
					}
					var took [2][]float64
					var dst []int
					step := func(which int) {
						for k := which; k < len(policies); k++ {
							start := time.Now()
							dst = policies[k].Select(dst[:0], &w.View().Model)
							took[k] = append(took[k], float64(time.Since(start)))
						}
						if _, err := w.Step(dst); err != nil {
							b.Fatal(err)
						}
					}
					for range 2 * round {
						step(1)
					}
					took[0], took[1] = took[0][:0], took[1][:0]
					for b.Loop() {
						step(0)
					}
					slices.Sort(took[0])
					slices.Sort(took[1])
					scan, ring := took[0][len(took[0])/2], took[1][len(took[1])/2]
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(scan, "scan-ns")
					b.ReportMetric(ring, "ring-ns")
					b.ReportMetric(ring*float64(round)/float64(n), "ns/crawl")
				})
			}
		}
	}
}
