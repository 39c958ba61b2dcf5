package lspe

import (
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
