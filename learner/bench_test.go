package learner_test

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner"
)

// sizes are ℓ = N + N(N+1)/2 for N = 4, 10, 20, 40.
var sizes = []int{14, 65, 230, 860}

// BenchmarkFivePasses measures the bare kernel passes of one step of the paper's
// critic by gonum's BLAS: B⁻¹φ, the rank-one update of B⁻¹, that of A, A r and
// B⁻¹(A r + b̄). It is the yardstick of BenchmarkStep and BenchmarkLSPE.
func BenchmarkFivePasses(b *testing.B) {
	for _, l := range sizes {
		b.Run(fmt.Sprintf("l=%d", l), func(b *testing.B) {
			inv := blas64.General{Rows: l, Cols: l, Stride: l, Data: random(l*l, 1)}
			a := blas64.General{Rows: l, Cols: l, Stride: l, Data: random(l*l, 2)}
			vec := func(k uint64) blas64.Vector { return blas64.Vector{N: l, Inc: 1, Data: random(l, k)} }
			phi, d, r, u, v, y := vec(3), vec(4), vec(5), vec(6), vec(7), vec(8)
			for b.Loop() {
				blas64.Gemv(blas.NoTrans, 1, inv, phi, 0, u)
				blas64.Ger(-1e-9, u, u, inv)
				blas64.Ger(1e-9, phi, d, a)
				blas64.Gemv(blas.NoTrans, 1, a, r, 0, v)
				blas64.Gemv(blas.NoTrans, 1, inv, v, 0, y)
			}
		})
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

// BenchmarkStep is one whole step of the paper's learner on Table I: act,
// simulate, features, critic, actor.
func BenchmarkStep(b *testing.B) {
	for _, v := range []struct {
		name string
		set  func(*learner.PaperSettings)
	}{
		{"default", func(*learner.PaperSettings) {}},
		{"harmonic", func(s *learner.PaperSettings) { s.B = learner.Harmonic() }},
		{"budget", func(s *learner.PaperSettings) { s.Act = "budget"; s.B = learner.Harmonic() }},
		{"tikhonov-always", func(s *learner.PaperSettings) { s.Tikhonov = "always" }},
	} {
		b.Run(v.name, func(b *testing.B) {
			set := learner.DefaultPaperSettings()
			v.set(&set)
			in := env.Paper(1)
			p, err := learner.NewPaper(in, set, stream.New(1, stream.Policy))
			if err != nil {
				b.Fatal(err)
			}
			w, err := env.NewMean(in, set.Act == "probabilistic")
			if err != nil {
				b.Fatal(err)
			}
			agent := env.NewAgent[env.Model](p)
			var crawl []int
			b.ReportAllocs()
			for b.Loop() {
				crawl = agent.Select(crawl[:0], w.View())
				got, err := w.Step(crawl)
				if err != nil {
					b.Fatal(err)
				}
				agent.Update(got, w.View())
			}
			b.ReportMetric(float64(p.Counts().Fallbacks)/float64(b.N), "fallbacks/op")
		})
	}
}

// BenchmarkLSPE is one step of the critic alone, by number of features.
func BenchmarkLSPE(b *testing.B) {
	for _, always := range []bool{false, true} {
		for _, l := range sizes {
			name := fmt.Sprintf("l=%d", l)
			if always {
				name = "tikhonov-always/" + name
				if l > 230 {
					continue
				}
			}
			b.Run(name, func(b *testing.B) {
				inv := learner.DefaultInverseSettings()
				inv.Always = always
				c, err := learner.NewLSPE(l, learner.LSPESettings{Gamma: .05, Step: learner.Harmonic(), Inverse: inv})
				if err != nil {
					b.Fatal(err)
				}
				const m = 1024
				x := random(m*l, 9)
				k := 0
				for b.Loop() {
					c.Step(x[k*l:k*l+l], x[(k+1)*l:(k+2)*l], x[k*l])
					if k++; k == m-1 {
						k = 0
					}
				}
			})
		}
	}
}
