package paper_test

import (
	"fmt"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/critic"
)

// sizes are ℓ = N + N(N+1)/2 for N = 4, 10, 20, 40.
var sizes = []int{14, 65, 230, 860}

// fivePasses returns the bare kernel passes of one step of the paper's critic by
// gonum's BLAS: B⁻¹φ, the rank-one update of B⁻¹, that of A, A r and
// B⁻¹(A r + b̄). They are the yardstick.
func fivePasses(l int) func() {
	inv, a := random(l*l, 1), random(l*l, 2)
	vec := func(k uint64) []float64 { return random(l, k) }
	phi, d, r, u, v, y := vec(3), vec(4), vec(5), vec(6), vec(7), vec(8)
	var kernels gonum.Implementation
	return func() {
		kernels.Dgemv(blas.NoTrans, l, l, 1, inv, l, phi, 1, 0, u, 1)
		kernels.Dger(l, l, -1e-9, u, 1, u, 1, inv, l)
		kernels.Dger(l, l, 1e-9, phi, 1, d, 1, a, l)
		kernels.Dgemv(blas.NoTrans, l, l, 1, a, l, r, 1, 0, v, 1)
		kernels.Dgemv(blas.NoTrans, l, l, 1, inv, l, v, 1, 0, y, 1)
	}
}

func random(n int, seed uint64) []float64 {
	r := stream.New(seed, stream.Test)
	v := make([]float64, n)
	for i := range v {
		v[i] = r.Float64() - .5
	}
	return v
}

// paperStep returns one whole step of the paper's learner on Table I: act,
// simulate, features, critic, actor.
func paperStep(b *testing.B, name string) func() {
	set := reading(b, name)
	in := env.Paper(1)
	p, w := newPaper(b, in, set, 1), newMean(b, in, set.Act == "probabilistic")
	agent := env.NewAgent[env.Model](p)
	var crawl []int
	return func() {
		crawl = agent.Select(crawl[:0], w.View())
		got, err := w.Step(crawl)
		if err != nil {
			b.Fatal(err)
		}
		agent.Update(got, w.View())
	}
}

// criticStep returns one step of the critic alone.
func criticStep(b *testing.B, l int, always bool) func() {
	set := critic.DefaultSettings()
	set.Always = always
	c, step := critic.New(l, 1, set), critic.Harmonic()
	const m = 64
	x, n := random(m*l, 9), 0
	return func() {
		n++
		k := n % (m - 1)
		c.Step(x[k*l:][:l], x[(k+1)*l:][:l], x[k*l], step.At(n))
	}
}

// against measures work and the five passes in turns of some microseconds and
// reports the least time of each, and their ratio. Turns that something else
// interrupts drop out, so that the ratio holds on a busy machine.
func against(b *testing.B, l int, work func()) {
	passes := fivePasses(l)
	turn := max(1, 100_000/(l*l))
	if turn > 1 {
		for range 20_000 { // past the first checks and fallbacks
			work()
		}
	}
	least := func(old time.Duration, f func()) time.Duration {
		began := time.Now()
		for range turn {
			f()
		}
		return min(old, time.Since(began))
	}
	one, five := time.Hour, time.Hour
	b.ReportAllocs()
	for b.Loop() {
		one = least(one, work)
		five = least(five, passes)
	}
	b.ReportMetric(float64(one.Nanoseconds())/float64(turn), "ns/step")
	b.ReportMetric(float64(five.Nanoseconds())/float64(turn), "ns/five-passes")
	b.ReportMetric(float64(one)/float64(five), "ratio")
	b.ReportMetric(float64(one.Nanoseconds())/float64(turn*l*l), "ns/l²")
	b.ReportMetric(0, "ns/op") // of both together: left out
}

// BenchmarkStep is one whole step of the paper's learner on Table I, next to
// the five passes at ℓ = 14.
func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"printed", "crawled", "ages"} {
		b.Run(name, func(b *testing.B) { against(b, 14, paperStep(b, name)) })
	}
}

// BenchmarkLSPE is one step of the critic alone, next to the five passes, for ℓ
// of N = 4, 10, 20 and 40 sources.
func BenchmarkLSPE(b *testing.B) {
	for _, l := range sizes {
		b.Run(fmt.Sprintf("l=%d", l), func(b *testing.B) { against(b, l, criticStep(b, l, false)) })
	}
	for _, l := range sizes[:3] {
		b.Run(fmt.Sprintf("tikhonov-always/l=%d", l), func(b *testing.B) { against(b, l, criticStep(b, l, true)) })
	}
}
