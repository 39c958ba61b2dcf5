package calendar

import (
	"fmt"
	"math"
	"testing"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// lognormal draws a source whose rate, decay and interest each vary by a factor
// of about e; half of them lose half of their interest within 350 epochs.
func lognormal(r *stream.Rand) env.Source {
	return env.NewSource("", math.Exp(r.NormFloat64()), 0.002*math.Exp(r.NormFloat64()), math.Exp(r.NormFloat64()))
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
	p    []Params
	last []int
	k    int
}

func newService(n, k int) *service {
	r := stream.New(1, stream.Family)
	s := &service{p: make([]Params, n), last: make([]int, n), k: k}
	for i := range s.p {
		s.p[i] = curve(lognormal(r))
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
	c := empty(ones(len(s.p)), float64(s.k), Whittle{}, s.of)
	c.Reset(0, s.last)
	return c
}

// scan computes every index at every epoch by recurrence, without logarithms
// and powers, and selects from all of them.
type scan struct {
	top, factor, loss []float64 // A, α, 1−α
	left, age         []float64 // α^s, s
	key               []float64
	sel               *baselines.Selector
}

func newScan(s *service) *scan {
	n := len(s.last)
	f := func() []float64 { return make([]float64, n) }
	c := &scan{top: f(), factor: f(), loss: f(), left: f(), age: f(), key: f(), sel: baselines.NewSelector(ones(n), float64(s.k))}
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
	dst = c.sel.Top(dst, c.key)
	for _, i := range dst[from:] {
		c.left[i], c.age[i] = 1, 0
	}
	return dst
}

// BenchmarkNext compares an epoch of the calendar with an epoch of the scan.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{1e4, 1e5, 1e6, 1e7} {
		k := n / 1000
		b.Run(fmt.Sprintf("N=%d/K=%d", n, k), func(b *testing.B) {
			s := newService(n, k)
			c := s.calendar()
			var dst []int
			for range 100 {
				dst = c.Next(dst[:0])
			}
			b.Run("calendar", func(b *testing.B) {
				b.ReportAllocs()
				before := c.Counts
				for b.Loop() {
					dst = c.Next(dst[:0])
				}
				per := 1 / float64(b.N*k)
				b.ReportMetric(float64(c.Counts.Index-before.Index)*per, "index/crawl")
				b.ReportMetric(float64(c.Counts.FirstAge-before.FirstAge)*per, "firstage/crawl")
			})
			g := newScan(s)
			b.Run("scan", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					dst = g.next(dst[:0])
				}
			})
		})
	}
}

// BenchmarkBuild measures the first build.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1e6, 1e7} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			s := newService(n, n/1000)
			costs := ones(n)
			for b.Loop() {
				New(costs, float64(s.k), Whittle{}, s.of)
			}
		})
	}
}
