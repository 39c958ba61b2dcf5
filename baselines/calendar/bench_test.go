package calendar

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// families are the instances of the benchmarks. The sources of lognormal live
// for 1 to 20 epochs, so that at a thousand sources per crawl most are never
// crawled. Those of slow live for 500, and most of them take their turn.
var families = map[string]func(n int) []env.Source{
	"lognormal": func(n int) []env.Source { return env.Lognormal(n, 1, 1).Sources },
	"mixed":     func(n int) []env.Source { return env.Mixed(n, 1, 1).Sources },
	"slow": func(n int) []env.Source {
		r := stream.New(1, stream.Family)
		src := make([]env.Source, n)
		for i := range src {
			src[i] = env.NewSource("", math.Exp(r.NormFloat64()), 0.002*math.Exp(r.NormFloat64()), math.Exp(r.NormFloat64()))
		}
		return src
	},
}

func ones(n int) []float64 {
	c := make([]float64, n)
	for i := range c {
		c[i] = 1
	}
	return c
}

// service is a crawler of n sources that has been at work for long: at the
// price at which k sources are due in an epoch, each was crawled somewhere
// within its cycle.
type service struct {
	p     []Params
	costs []float64
	last  []int
	k     int // crawls per epoch where all costs are 1, and the budget
}

func newService(family string, n, k int) *service {
	r := stream.New(1, stream.Test)
	s := &service{p: make([]Params, n), costs: make([]float64, n), last: make([]int, n), k: k}
	for i, src := range families[family](n) {
		s.p[i], s.costs[i] = curve(src), src.Cost
	}
	due := func(price float64) (sum float64) {
		step := max(1, n/100_000)
		for i := 0; i < n; i += step {
			sum += float64(step) / float64(Whittle{}.FirstAge(&s.p[i], price))
		}
		return sum
	}
	lo, hi := 0.0, 1e9
	for range 60 {
		if mid := (lo + hi) / 2; due(mid) > float64(k) {
			lo = mid
		} else {
			hi = mid
		}
	}
	for i := range s.last {
		cycle := Whittle{}.FirstAge(&s.p[i], hi)
		if cycle == Never {
			cycle = 10 * n / k
		}
		s.last[i] = -1 - r.Intn(cycle)
	}
	return s
}

func (s *service) of(i int) Params { return s.p[i] }

func (s *service) calendar() *Calendar {
	c := empty(s.costs, float64(s.k), Whittle{}, s.of)
	c.Reset(0, s.last)
	return c
}

// scan computes every index at every epoch by recurrence, without logarithms
// and powers, and selects from all of them by quickselect or, if sel is not
// nil, by the selector, which first thins them out by a sample.
type scan struct {
	top, factor, loss []float64 // A, α, 1−α
	left, age         []float64 // α^s, s
	key               []float64
	sel               *baselines.Selector
	k                 int
	all               []candidate
}

func newScan(s *service, sel *baselines.Selector) *scan {
	n := len(s.last)
	f := func() []float64 { return make([]float64, n) }
	c := &scan{top: f(), factor: f(), loss: f(), left: f(), age: f(), key: f(), sel: sel, k: s.k, all: make([]candidate, n)}
	for i, p := range s.p {
		c.top[i], c.factor[i], c.loss[i] = p[top], 1-p[loss], p[loss]
		c.age[i] = float64(-s.last[i] - 1)
		c.left[i] = math.Exp(-p[decay] * c.age[i])
	}
	return c
}

func (c *scan) next(dst []int) []int {
	for i, a := range c.factor {
		// γ = A [1 − α^s (1 + s(1−α))]
		e, age := c.left[i]*a, c.age[i]+1
		c.left[i], c.age[i] = e, age
		c.key[i] = c.top[i] * (1 - e*(1+age*c.loss[i]))
	}
	from := len(dst)
	if c.sel != nil {
		dst = c.sel.Top(dst, c.key)
	} else {
		for i, key := range c.key {
			c.all[i] = candidate{key, int32(i)}
		}
		first(c.all, c.k)
		for _, p := range c.all[:c.k] {
			dst = append(dst, int(p.id))
		}
	}
	for _, i := range dst[from:] {
		c.left[i], c.age[i] = 1, 0
	}
	return dst
}

// BenchmarkEpoch takes turns of one epoch of each scan and 50 epochs of the
// calendar, so that other load on the machine has about as long to disturb the
// one as the other. It reports ratios of the medians per epoch.
func BenchmarkEpoch(b *testing.B) {
	const turn = 50
	for _, family := range []string{"lognormal", "slow"} {
		for _, n := range []int{1e4, 1e5, 1e6, 1e7} {
			k := n / 1000
			b.Run(fmt.Sprintf("%s/N=%d/K=%d", family, n, k), func(b *testing.B) {
				s := newService(family, n, k)
				c := s.calendar()
				scans := []*scan{newScan(s, nil), newScan(s, baselines.NewSelector(s.costs, float64(k)))}
				var dst []int
				for range 100 {
					dst = c.Next(dst[:0])
				}
				before := c.Counts
				var times [3][]float64
				for b.Loop() {
					for x, g := range scans {
						start := time.Now()
						dst = g.next(dst[:0])
						times[x] = append(times[x], float64(time.Since(start)))
					}
					start := time.Now()
					for range turn {
						dst = c.Next(dst[:0])
					}
					times[2] = append(times[2], float64(time.Since(start))/turn)
				}
				var t [3]float64
				for x := range times {
					slices.Sort(times[x])
					t[x] = times[x][len(times[x])/2]
				}
				crawls := float64(len(times[2]) * turn * k)
				b.ReportMetric(0, "ns/op") // of all together, which says nothing
				b.ReportMetric(t[0]/t[2], "quickselect/calendar")
				b.ReportMetric(t[1]/t[2], "selector/calendar")
				b.ReportMetric(t[2]/float64(k), "calendar-ns/crawl")
				b.ReportMetric(float64(c.Counts.Index-before.Index)/crawls, "index/crawl")
				b.ReportMetric(float64(c.Counts.FirstAge-before.FirstAge)/crawls, "firstage/crawl")
			})
		}
	}
}

// BenchmarkNext is for profiles and allocations: epochs of the calendar alone.
func BenchmarkNext(b *testing.B) {
	for _, family := range []string{"lognormal", "slow", "mixed"} {
		for _, n := range []int{1e4, 1e5, 1e6, 1e7} {
			b.Run(fmt.Sprintf("%s/N=%d", family, n), func(b *testing.B) {
				s := newService(family, n, n/1000)
				c := s.calendar()
				var dst []int
				for range 100 {
					dst = c.Next(dst[:0])
				}
				b.ReportAllocs()
				for b.Loop() {
					dst = c.Next(dst[:0])
				}
				b.ReportMetric(float64(c.size())/float64(n), "bytes/source")
			})
		}
	}
}

// BenchmarkBuild measures the first build.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1e6, 1e7} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			s := newService("lognormal", n, n/1000)
			for b.Loop() {
				New(s.costs, float64(s.k), Whittle{}, s.of)
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N*n)*1e9, "ns/source")
		})
	}
}

// BenchmarkColdStart measures the first 1000 epochs after a build at which
// every source has age 1, while the price climbs from next to nothing. At N =
// 1000 K every source could be crawled once in that time.
func BenchmarkColdStart(b *testing.B) {
	for _, family := range []string{"lognormal", "slow"} {
		b.Run(fmt.Sprintf("%s/N=%d", family, 100_000), func(b *testing.B) {
			s := newService(family, 100_000, 100)
			for i := range s.last {
				s.last[i] = -1
			}
			var dst []int
			var fast, slow time.Duration
			for b.Loop() {
				c, g := s.calendar(), newScan(s, nil)
				start := time.Now()
				for range 1000 {
					dst = c.Next(dst[:0])
				}
				fast += time.Since(start)
				start = time.Now()
				for range 1000 {
					dst = g.next(dst[:0])
				}
				slow += time.Since(start)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(slow)/float64(fast), "ratio")
		})
	}
}

// BenchmarkPolicy compares whole decisions of the Whittle policy of baselines,
// which reads the mean state that the world keeps, with those of NewWhittle, in
// one mean world that begins at age 1. The world's own step is left out.
func BenchmarkPolicy(b *testing.B) {
	for _, n := range []int{1e4, 1e5, 1e6, 1e7} {
		b.Run(fmt.Sprintf("N=%d/K=%d", n, n/1000), func(b *testing.B) {
			in := env.Lognormal(n, float64(n/1000), 1)
			w, err := env.NewMean(in, false)
			if err != nil {
				b.Fatal(err)
			}
			scan, calendar := baselines.NewWhittle(in), NewWhittle(in)
			var dst, crawl []int
			step := func() (slow, fast time.Duration) {
				start := time.Now()
				dst = scan.Select(dst[:0], &w.View().Model)
				slow = time.Since(start)
				start = time.Now()
				crawl = calendar.Select(crawl[:0], &w.View().Online)
				fast = time.Since(start)
				if len(dst) != len(crawl) {
					b.Fatalf("the scan crawls %d sources, the calendar %d", len(dst), len(crawl))
				}
				if _, err := w.Step(crawl); err != nil {
					b.Fatal(err)
				}
				return slow, fast
			}
			for range 50 {
				step()
			}
			var slow, fast time.Duration
			for b.Loop() {
				s, f := step()
				slow, fast = slow+s, fast+f
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(slow.Nanoseconds())/float64(b.N*n), "scan-ns/source")
			b.ReportMetric(float64(fast.Nanoseconds())/float64(b.N*(n/1000)), "calendar-ns/crawl")
			b.ReportMetric(float64(slow)/float64(fast), "ratio")
		})
	}
}
