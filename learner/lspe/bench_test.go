package lspe

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// BenchmarkEpoch measures ns per crawl with N/1000 crawls an epoch, 10 at least:
// learning, frozen, and a choice among all N by a key, without the world's own
// time. Of each it takes the least mean of some epochs, so that interruptions drop
// out. From 10⁴ on sources are copies of 10⁴.
func BenchmarkEpoch(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5, 1e6, 1e7} {
		crawls := max(10, n/1000)
		b.Run(fmt.Sprintf("N=%.0e", float64(n)), func(b *testing.B) {
			w := newHarvests(env.Lognormal(min(n, 1e4), float64(crawls), 1), 1)
			w.in.Budget, w.view.Last = float64(crawls), slices.Repeat([]int{-1}, n)
			terms := env.Terms{Costs: slices.Repeat([]float64{1}, n), Budget: float64(crawls)}
			l, err := New(terms, nil, stream.New(1, stream.Policy))
			if err != nil {
				b.Fatal(err)
			}
			w.learn(l, n/crawls+2000/crawls+100)
			p := l.Frozen()
			key := make([]float64, n)
			sel := baselines.NewSelector(terms.Costs, terms.Budget)
			var crawl []int
			// timed returns ns per crawl of some epochs of a policy.
			timed := func(p env.Policy[env.Online], update func(crawls []env.Crawled, next *env.Online)) float64 {
				var spent time.Duration
				epochs := max(20, 1000/crawls)
				for range epochs {
					began := time.Now()
					crawl = p.Select(crawl[:0], &w.view)
					spent += time.Since(began)
					out := w.step(crawl)
					began = time.Now()
					update(out, &w.view)
					spent += time.Since(began)
				}
				return float64(spent.Nanoseconds()) / float64(epochs*crawls)
			}
			least := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
			for b.Loop() {
				least[0] = min(least[0], timed(l, l.Update))
			}
			none := func([]env.Crawled, *env.Online) {}
			timed(p, none)
			for range b.N {
				least[1] = min(least[1], timed(p, none))
				began := time.Now()
				for i := range key {
					key[i] = float64(w.view.Age(i)) / l.src[i].Theta
				}
				crawl = sel.Top(crawl[:0], key)
				least[2] = min(least[2], float64(time.Since(began).Nanoseconds())/float64(crawls))
			}
			b.ReportMetric(least[0], "ns/crawl-learning")
			b.ReportMetric(least[1], "ns/crawl-frozen")
			b.ReportMetric(least[2], "ns/crawl-scan")
			p = nil
			held := heap()
			runtime.KeepAlive(l)
			held -= heap() // l is gone
			runtime.KeepAlive(w)
			b.ReportMetric(float64(held)/float64(n), "B/source")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemory: a source takes at most 410 bytes, without what a learner takes for all.
func TestMemory(t *testing.T) {
	takes := func(n int) int64 {
		in := env.Lognormal(n, float64(n)/1000, 1)
		terms, r := in.Terms(), newHarvests(env.Paper(1), 1).rand
		before := heap()
		l, err := New(terms, nil, r)
		if err != nil {
			t.Fatal(err)
		}
		took := int64(heap() - before)
		runtime.KeepAlive(l)
		return took
	}
	const n = 200_000
	per := float64(takes(n+n/10)-takes(n/10)) / n
	t.Logf("%.0f bytes a source, %d of them learned", per, unsafe.Sizeof(Source{}))
	if per > 410 {
		t.Errorf("a source takes %.1f bytes; want at most 410", per)
	}
}
