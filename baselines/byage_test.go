package baselines

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ephemera/baselines/calendar"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
)

// ages are the policies whose index is a function of the age.
var ages = map[string]func(in env.Instance) (calendar.Ranking, func(i int) calendar.Params){
	"whittle": func(in env.Instance) (calendar.Ranking, func(i int) calendar.Params) {
		return calendar.Whittle{}, func(i int) calendar.Params { return calendar.Whittle{}.Of(in.Sources[i]) }
	},
	"lagrangian": func(in env.Instance) (calendar.Ranking, func(i int) calendar.Params) {
		f := calendar.Func{Index: lagrangianAt(in, index.Relax(in, index.MeanDynamics).Price)}
		return f, f.Of
	},
	"greedy": func(in env.Instance) (calendar.Ranking, func(i int) calendar.Params) {
		f := calendar.Func{Index: greedyAt(in)}
		return f, f.Of
	},
}

// The calendar and the scan choose the same sources at every epoch, ties
// included, also where others crawl besides.
func TestCalendarChoosesAsTheScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := envtest.DrawInstance(t, 1, 40, rapid.Bool().Draw(t, "costs"), true)
		for i := 1; i < len(in.Sources); i += 2 {
			if rapid.Bool().Draw(t, "twin") {
				s := in.Sources[i-1]
				s.Cost = in.Sources[i].Cost
				in.Sources[i] = s
			}
		}
		for name, of := range ages {
			rank, params := of(in)
			scan, cal := newScan(in.Terms(), rank, params), fromCalendar{calendar.New(in.Terms().Costs, in.Budget, rank, params)}
			w := mean(t, in, true)
			others := rapid.Bool().Draw(t, "others")
			for epoch := range 120 {
				want := scan.Select(nil, &w.View().Model)
				got := cal.Select(nil, &w.View().Model)
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, epoch %d: the calendar crawls %v, the scan %v", name, epoch, got, want)
				}
				if extra := epoch * 7 % len(in.Sources); others && !slices.Contains(got, extra) {
					got = append(got, extra)
				}
				if _, err := w.Step(got); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// The same at sizes at which policies go by the calendar.
func TestCalendarChoosesAsTheScanAmongMany(t *testing.T) {
	for _, in := range []env.Instance{env.Lognormal(3000, 20, 2), env.Mixed(3000, 15, 2), env.Wide(2000, 30, 2)} {
		for name, of := range ages {
			rank, params := of(in)
			p := newByAge(in.Terms(), rank, params)
			if _, ok := p.(fromCalendar); !ok {
				t.Fatalf("%s does not go by the calendar among %d sources, %v rounds", name, len(in.Sources), in.Terms().Round())
			}
			scan, w := newScan(in.Terms(), rank, params), mean(t, in, true)
			for epoch := range 300 {
				want, got := scan.Select(nil, &w.View().Model), p.Select(nil, &w.View().Model)
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("%s of %s, epoch %d: the calendar crawls %v, the scan %v", name, in.ID, epoch, got, want)
				}
				if extra := epoch * 7 % len(in.Sources); !slices.Contains(got, extra) {
					got = append(got, extra)
				}
				if _, err := w.Step(got); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestCalendarKeepsTheContract(t *testing.T) {
	for _, in := range []env.Instance{env.Paper(1), env.Lognormal(60, 5, 1), env.Mixed(60, 7, 1)} {
		rank, params := ages["whittle"](in)
		envtest.Policy(t, in, func() env.Policy[env.Model] {
			return fromCalendar{calendar.New(in.Terms().Costs, in.Budget, rank, params)}
		})
	}
}

// BenchmarkByAge takes turns of the scan and the calendar on the same epochs of
// one mean world in service. It reports ns per decision of both.
func BenchmarkByAge(b *testing.B) {
	for _, name := range []string{"whittle", "lagrangian", "greedy"} {
		for _, n := range []int{100, 500, 2000, 10_000, 100_000, 1_000_000} {
			for _, round := range []int{10, 40, 200, 1000} {
				if n/round == 0 {
					continue
				}
				b.Run(fmt.Sprintf("%s/N=%d/round=%d", name, n, round), func(b *testing.B) {
					in := env.Lognormal(n, float64(n/round), 1)
					rank, params := ages[name](in)
					w := mean(b, in, false)
					policies := []env.Policy[env.Model]{newScan(in.Terms(), rank, params), fromCalendar{calendar.New(in.Terms().Costs, in.Budget, rank, params)}}
					var took [2][]float64
					var dst []int
					step := func() {
						for k, p := range policies {
							start := time.Now()
							dst = p.Select(dst[:0], &w.View().Model)
							took[k] = append(took[k], float64(time.Since(start)))
						}
						if _, err := w.Step(dst); err != nil {
							b.Fatal(err)
						}
					}
					for range 2 * round {
						step()
					}
					took[0], took[1] = took[0][:0], took[1][:0]
					for b.Loop() {
						step()
					}
					slices.Sort(took[0])
					slices.Sort(took[1])
					scan, cal := took[0][len(took[0])/2], took[1][len(took[1])/2]
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(scan, "scan-ns")
					b.ReportMetric(cal, "calendar-ns")
					b.ReportMetric(scan/cal, "ratio")
				})
			}
		}
	}
}
