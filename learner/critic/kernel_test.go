package critic

import (
	"fmt"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"ephemera/env/stream"
)

// TestKernels holds the fused passes against the same by gonum, one operation
// after the other, and P against its transpose.
func TestKernels(t *testing.T) {
	r := stream.New(11, stream.Test)
	random := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = r.NormFloat64()
		}
		return v
	}
	for l := 1; l <= 40; l++ {
		square := func(data []float64) blas64.General {
			return blas64.General{Rows: l, Cols: l, Stride: l, Data: data}
		}
		near := func(what string, got, want []float64) {
			t.Helper()
			if !floats.EqualApprox(got, want, 1e-12*float64(l)) {
				t.Fatalf("l = %d: %s is %v; by gonum it is %v", l, what, got, want)
			}
		}
		a, phi, d, weights, v := random(l*l), random(l), random(l), random(l), random(l)
		a2, v2 := slices.Clone(a), slices.Clone(v)
		matrixPass(a, v, phi, d, weights, .3)
		blas64.Ger(.3, vector(phi), vector(d), square(a2))
		blas64.Gemv(blas.NoTrans, 1, square(a2), vector(weights), 1, vector(v2))
		near("A", a, a2)
		near("v", v, v2)

		p := make([]float64, l*l)
		outer(p, weights, weights, 1)
		p2, u, y := slices.Clone(p), make([]float64, l), make([]float64, l)
		symmPass(p, d, u, y, phi, v)
		blas64.Ger(-1, vector(d), vector(d), square(p2))
		near("P", p, p2)
		u2, y2 := make([]float64, l), make([]float64, l)
		blas64.Gemv(blas.NoTrans, 1, square(p2), vector(phi), 0, vector(u2))
		blas64.Gemv(blas.NoTrans, 1, square(p2), vector(v), 0, vector(y2))
		near("u", u, u2)
		near("y", y, y2)
		for i := range l {
			for j := range i {
				if p[i*l+j] != p[j*l+i] {
					t.Fatalf("l = %d: P is not symmetric at %d, %d", l, i, j)
				}
			}
		}
	}
}

// BenchmarkKernels holds the two passes that a step of Critic makes against the
// same by gonum.
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
