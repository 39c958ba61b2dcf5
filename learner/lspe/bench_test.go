package lspe

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"ephemera/baselines"
	"ephemera/env"
)

// BenchmarkEpoch measures ns per crawl with N/1000 crawls an epoch, of 10⁶ sources
// 1000: learning, frozen, and a choice among all N by a key, beside the world's
// own time.
func BenchmarkEpoch(b *testing.B) {
	for _, n := range []int{1e3, 1e5, 1e6} {
		crawls := max(10, n/1000)
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			in := env.Lognormal(n, float64(crawls), 1)
			l, w := newLearner(b, in, 1, nil), newHarvests(in, 1)
			w.learn(l, n/crawls+2000/crawls+100)
			p := l.Frozen()
			key := make([]float64, n)
			sel := baselines.NewSelector(l.costs, l.budget)
			var crawl []int
			var learning, frozen, scan time.Duration
			for b.Loop() {
				began := time.Now()
				crawl = l.Select(crawl[:0], &w.view)
				learning += time.Since(began)
				out := w.step(crawl)
				began = time.Now()
				l.Update(out, &w.view)
				learning += time.Since(began)
			}
			p.Select(nil, &w.view)
			w.step(nil)
			const epochs = 50
			for range epochs {
				began := time.Now()
				crawl = p.Select(crawl[:0], &w.view)
				frozen += time.Since(began)
				w.step(crawl)
			}
			began := time.Now()
			for i := range key {
				key[i] = float64(w.view.Age(i)) / l.src[i].theta
			}
			sel.Top(crawl[:0], key)
			scan = time.Since(began)
			b.ReportMetric(float64(learning.Nanoseconds())/float64(b.N*crawls), "ns/crawl-learning")
			b.ReportMetric(float64(frozen.Nanoseconds())/float64(epochs*crawls), "ns/crawl-frozen")
			b.ReportMetric(float64(scan.Nanoseconds())/float64(crawls), "ns/crawl-scan")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestMemory: a source takes at most 250 bytes.
func TestMemory(t *testing.T) {
	const n = 200_000
	in := env.Lognormal(n, 200, 1)
	terms := in.Terms()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l, err := New(terms, nil, newHarvests(env.Paper(1), 1).rand)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := float64(after.HeapAlloc-before.HeapAlloc) / n
	t.Logf("%.0f bytes a source, %d of them learned", per, unsafe.Sizeof(source{}))
	if per > 250 {
		t.Errorf("a source takes %.0f bytes; want at most 250", per)
	}
	runtime.KeepAlive(l)
}
