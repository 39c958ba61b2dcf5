package lspe

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/env/stream"
)

// epochs returns one whole epoch of the learner in the mean dynamics (act,
// selection, simulation, critic, actor, price) of n sources, of which a tenth
// are crawled, after some to warm up.
func epochs(b *testing.B, n int) func() {
	in := env.Lognormal(n, max(1, float64(n/10)), 1)
	l := newModel(in, nil, stream.New(1, stream.Policy))
	w, err := env.NewMean(in, false)
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]int, 0, n)
	epoch := func() {
		dst = l.Select(dst[:0], &w.View().Model)
		got, err := w.Step(dst)
		if err != nil {
			b.Fatal(err)
		}
		l.Update(got, &w.View().Model)
	}
	for range 20 {
		epoch()
	}
	return epoch
}

// least reports the time of the fastest turn, of one epoch or of as many as
// visit 1000 sources: turns that something else interrupts drop out.
func least(b *testing.B, n int, epoch func()) {
	turn := (999 + n) / n
	best := time.Hour
	for b.Loop() {
		began := time.Now()
		for range turn {
			epoch()
		}
		best = min(best, time.Since(began))
	}
	b.ReportMetric(float64(best.Nanoseconds())/float64(turn*n), "ns/source")
	b.ReportMetric(0, "ns/op") // with the interruptions: left out
}

// BenchmarkPriced measures epochs on one core; N = 10⁷ with -full.
func BenchmarkPriced(b *testing.B) {
	sizes := []int{4, 50, 1000, 10_000, 100_000, 1_000_000}
	if *full {
		sizes = append(sizes, 10_000_000)
	}
	for _, n := range sizes {
		b.Run(fmt.Sprint("N=", n), func(b *testing.B) {
			epoch := epochs(b, n)
			b.ReportAllocs()
			least(b, n, epoch)
		})
	}
}

// BenchmarkCycle is what the critic does when a crawl closes a cycle.
func BenchmarkCycle(b *testing.B) {
	for _, age := range []int{2, 20, 2000} {
		b.Run(fmt.Sprint("S=", age), func(b *testing.B) {
			l := newModel(env.Instance{Sources: []env.Source{env.NewSource("", 100, .1, 1)}, Budget: 1}, nil, stream.New(1, stream.Policy))
			l.src[0].lnTheta = math.Log(float64(age))
			l.src[0].reach()
			for b.Loop() {
				l.critic.cycle(0, age, 100, .01)
			}
		})
	}
}

// TestMemory: a source takes what docs/performance.md says.
func TestMemory(t *testing.T) {
	const n, own, lent = 100_000, 248, 24 // cost and selector are lent
	in := env.Lognormal(n, 1000, 1)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := newModel(in, nil, stream.New(1, stream.Policy))
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := float64(after.HeapAlloc-before.HeapAlloc) / n; got > own+lent+1 {
		t.Errorf("%v bytes per source; want %d", got, own+lent)
	} else {
		t.Logf("%.1f bytes per source", got)
	}
	runtime.KeepAlive(l)
	runtime.KeepAlive(in)
}
