package critic

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"math"
	"slices"
	"testing"

	"ephemera/env/stream"
)

// TestKernels holds the vector form of the passes against the Go form, bit for
// bit.
func TestKernels(t *testing.T) {
	if !hasAVX {
		t.Skip("no vector form on this processor")
	}
	r := stream.New(11, stream.Test)
	random := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = r.NormFloat64() * math.Exp(5*r.NormFloat64())
		}
		return v
	}
	same := func(l int, what string, a, b []float64) {
		t.Helper()
		for i := range a {
			if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
				t.Fatalf("l = %d: %s differs at place %d: %v and %v", l, what, i, a[i], b[i])
			}
		}
	}
	for l := 1; l <= 40; l++ {
		a, phi, d, w := random(l*l), random(l), random(l), random(l)
		v := random(l)
		a2, v2 := slices.Clone(a), slices.Clone(v)
		matrixPass(a, v, phi, d, w, .3)
		matrixPassGo(a2, v2, phi, d, w, .3)
		same(l, "A", a, a2)
		same(l, "v", v, v2)

		u, y := make([]float64, l), make([]float64, l)
		u2, y2 := make([]float64, l), make([]float64, l)
		symmPass(a, d, u, y, phi, v)
		symmPassGo(a2, d, u2, y2, phi, v)
		same(l, "P", a, a2)
		same(l, "u", u, u2)
		same(l, "y", y, y2)
	}
}

// BenchmarkKernels holds the two passes that a step of Critic makes against the
// same by gonum. They stay in assembly as long as nothing in gonum comes within
// a factor of 1.5 at ℓ = 14 and 65.
func BenchmarkKernels(b *testing.B) {
	for _, l := range []int{14, 65} {
		vec := func() []float64 {
			v := make([]float64, l)
			for i := range v {
				v[i] = 1 / float64(i+2)
			}
			return v
		}
		p, a := make([]float64, l*l), make([]float64, l*l)
		z, u, y, phi, v, d, r := make([]float64, l), vec(), vec(), vec(), vec(), vec(), vec()
		b.Run(fmt.Sprintf("l=%d/here", l), func(b *testing.B) {
			for b.Loop() {
				symmPass(p, z, u, y, phi, v)
				matrixPass(a, v, phi, d, r, 1e-12)
			}
		})
		b.Run(fmt.Sprintf("l=%d/blas64", l), func(b *testing.B) {
			pm, am := blas64.General{Rows: l, Cols: l, Stride: l, Data: p}, blas64.General{Rows: l, Cols: l, Stride: l, Data: a}
			for b.Loop() {
				blas64.Ger(-1, vector(z), vector(z), pm)
				blas64.Gemv(blas.NoTrans, 1, pm, vector(phi), 0, vector(u))
				blas64.Gemv(blas.NoTrans, 1, pm, vector(v), 0, vector(y))
				blas64.Ger(1e-12, vector(phi), vector(d), am)
				blas64.Gemv(blas.NoTrans, 1, am, vector(r), 1, vector(v))
			}
		})
		b.Run(fmt.Sprintf("l=%d/floats", l), func(b *testing.B) {
			for b.Loop() {
				for i := range l {
					row := p[i*l : i*l+l]
					floats.AddScaled(row, -z[i], z)
					u[i], y[i] = floats.Dot(row, phi), floats.Dot(row, v)
				}
				for i := range l {
					row := a[i*l : i*l+l]
					floats.AddScaled(row, 1e-12*phi[i], d)
					v[i] += floats.Dot(row, r)
				}
			}
		})
	}
}
