package calendar

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"ephemera/baselines/order"
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

// service is a crawler that has been at work for long: at the price at which k
// sources are due in an epoch, each was crawled somewhere within its cycle.
type service struct {
	p     []Params
	costs []float64
	view  env.Online
	k     int // crawls per epoch where all costs are 1, and the budget
}

// counted counts what is asked of the index.
type counted struct {
	Whittle
	at, first int
}

func (c *counted) At(p *Params, age int) float64 {
	c.at++
	return c.Whittle.At(p, age)
}

func (c *counted) FirstAge(p *Params, level float64) int {
	c.first++
	return c.Whittle.FirstAge(p, level)
}

func newService(family string, n, k int) *service {
	r := stream.New(1, stream.Test)
	sources := families[family](n)
	s := &service{p: make([]Params, n), costs: make([]float64, n), k: k}
	s.view.Last = make([]int, n)
	for i, src := range sources {
		s.p[i], s.costs[i] = Whittle{}.Of(src), src.Cost
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
	for i := range s.view.Last {
		cycle := Whittle{}.FirstAge(&s.p[i], hi)
		if cycle == Never {
			cycle = 10 * n / k
		}
		s.view.Last[i] = -1 - r.Intn(cycle)
	}
	return s
}

func (s *service) calendar(rank Ranking) *Calendar {
	return New(s.costs, float64(s.k), rank, func(i int) Params { return s.p[i] })
}

// run returns a function that plays one epoch.
func (s *service) run(c *Calendar) func() {
	var dst []int
	return func() {
		dst = c.Select(dst[:0], &s.view)
		for _, i := range dst {
			s.view.Last[i] = s.view.Epoch
		}
		s.view.Epoch++
	}
}

// size returns the bytes that a calendar holds.
func (c *Calendar) size() int {
	n := cap(c.marks)*int(unsafe.Sizeof(mark{})) + 128*cap(c.slab.chunks) + 4*(cap(c.chosen)+cap(c.ids)) + cap(c.classOf)
	n += int(unsafe.Sizeof(order.Item{})) * cap(c.sample)
	for _, k := range c.classes {
		n += int(unsafe.Sizeof(k)) + int(unsafe.Sizeof(order.Item{}))*(cap(k.pool)+cap(k.passed)) + 8*(len(k.near.buckets)+len(k.far.buckets))
	}
	return n
}

// BenchmarkSelect takes epochs of a crawler in service, one crawl for 1000
// sources.
func BenchmarkSelect(b *testing.B) {
	for _, family := range []string{"lognormal", "slow", "mixed"} {
		for _, n := range []int{1e4, 1e5, 1e6, 1e7} {
			b.Run(fmt.Sprintf("%s/N=%d", family, n), func(b *testing.B) {
				s := newService(family, n, n/1000)
				c := s.calendar(Whittle{})
				epoch := s.run(c)
				for range 100 {
					epoch()
				}
				b.ReportAllocs()
				for b.Loop() {
					epoch()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*s.k), "ns/crawl")
				b.ReportMetric(float64(c.size())/float64(n), "bytes/source")
			})
		}
	}
}

// BenchmarkStart takes the first decision, which puts every source in its place.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1e6, 1e7} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			s := newService("lognormal", n, n/1000)
			for b.Loop() {
				s.calendar(Whittle{}).Select(nil, &s.view)
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N*n)*1e9, "ns/source")
		})
	}
}
