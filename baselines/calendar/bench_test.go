package calendar

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// lognormal draws n sources: rate, decay and interest vary by factors of about
// e and the mean life is 500 epochs.
func lognormal(n int, seed uint64) []env.Source {
	r := stream.New(seed, stream.Family)
	src := make([]env.Source, n)
	for i := range src {
		src[i] = env.NewSource("", math.Exp(r.NormFloat64()), 0.002*math.Exp(r.NormFloat64()), math.Exp(r.NormFloat64()))
	}
	return src
}

func ones(n int) []float64 {
	c := make([]float64, n)
	for i := range c {
		c[i] = 1
	}
	return c
}

func BenchmarkProbe(b *testing.B) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	k, _ := strconv.Atoi(os.Getenv("K"))
	warm, _ := strconv.Atoi(os.Getenv("WARM"))
	w := NewWhittle(lognormal(n, 1))
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			New(ones(n), float64(k), w)
		}
	})
	c := New(ones(n), float64(k), w)
	var dst []int
	for e := range warm {
		before := c.Counts
		dst = c.Next(dst[:0])
		if e%(warm/40+1) == 0 {
			q := c.classes[0]
			fmt.Println(e, len(dst), q.level, len(q.pool), q.wheel[0].n, q.wheel[1].n, c.Counts.Index-before.Index, c.Counts.FirstAge-before.FirstAge, c.Counts)
		}
	}
	b.Run("next", func(b *testing.B) {
		before, e := c.Counts, 0
		for b.Loop() {
			e++
			dst = c.Next(dst[:0])
		}
		b.ReportMetric(float64(c.Counts.Index-before.Index)/float64(e*k), "index/crawl")
		b.ReportMetric(float64(c.Counts.FirstAge-before.FirstAge)/float64(e*k), "first/crawl")
		b.ReportMetric(float64(c.Counts.Lowered-before.Lowered)/float64(e), "lowered/epoch")
		b.ReportMetric(float64(c.Counts.Swept-before.Swept)/float64(e), "swept/epoch")
		b.ReportMetric(float64(c.Counts.Spread-before.Spread)/float64(e), "spread/epoch")
	})
}

var _ = baselines.NewSelector
