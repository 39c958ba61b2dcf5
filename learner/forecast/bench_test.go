package forecast

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/env/stream"
)

// BenchmarkEpoch measures ns per crawl, learning and frozen, with N/1000 crawls an
// epoch of an hour, each of which finds some items.
func BenchmarkEpoch(b *testing.B) {
	for _, n := range []int{1e4, 1e5, 1e6} {
		crawls := n / 1000
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			r := stream.New(1, stream.Test)
			terms := env.Terms{
				Names: make([]string, n), Costs: slices.Repeat([]float64{1}, n), Budget: float64(crawls),
				Start: 1_700_006_400, Length: 3600,
			}
			o := env.Online{Last: slices.Repeat([]int{-1}, n)}
			rate := make([]float64, n)
			for i := range rate {
				rate[i] = .003 * math.Exp(r.NormFloat64())
			}
			l := newLearner(terms, nil)
			var crawl []int
			var took time.Duration
			epoch := func(p env.Policy[env.Online], learns bool) {
				began := time.Now()
				crawl = p.Select(crawl[:0], &o)
				took += time.Since(began)
				var got []env.Crawled
				for _, i := range crawl {
					c := env.Crawled{Source: i, Age: o.Age(i)}
					for a := r.ExpFloat64() / rate[i]; learns && a < float64(c.Age); a += r.ExpFloat64() / rate[i] {
						c.Items = append(c.Items, env.Item{Age: a, Interest: math.Exp(-.002 * a)})
					}
					slices.Reverse(c.Items)
					got = append(got, c)
					o.Last[i] = o.Epoch
				}
				o.Epoch++
				if learns {
					began = time.Now()
					l.Update(got, &o)
					took += time.Since(began)
				}
			}
			per := func() float64 {
				v := float64(took.Nanoseconds()) / float64(b.N*crawls)
				took = 0
				return v
			}
			for o.Epoch < 1500 { // each has been crawled
				epoch(l, true)
			}
			took = 0
			for b.Loop() {
				epoch(l, true)
			}
			b.ReportMetric(per(), "ns/crawl-learning")
			b.ReportMetric(float64(len(l.Awake))/float64(crawls), "awake/crawl")
			p := l.Frozen()
			epoch(p, false)
			took = 0
			for range b.N {
				epoch(p, false)
			}
			b.ReportMetric(per(), "ns/crawl-frozen")
			b.ReportMetric(0, "ns/op")
		})
	}
}
