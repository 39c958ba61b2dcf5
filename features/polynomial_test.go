package features

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestPaper: "φ = [x₁ ⋯ x_N x₁² x₁x₂ ⋯ x_{N−1}x_N x_N²]" (Allerton, section V).
func TestPaper(t *testing.T) {
	p := New(Settings{Inputs: 3, Degree: 2})
	got := p.To(make([]float64, p.Len()), []float64{2, 3, 5})
	if s := fmt.Sprint(got); s != "[2 3 5 4 6 10 9 15 25]" {
		t.Errorf("features %s", s)
	}
	for _, tt := range []struct{ inputs, features int }{{4, 14}, {10, 65}, {20, 230}, {40, 860}} {
		if p := New(Settings{Inputs: tt.inputs, Degree: 2}); p.Len() != tt.features {
			t.Errorf("N = %d: %d features; want %d", tt.inputs, p.Len(), tt.features)
		}
	}
}

// monomials returns the features by trying all exponents: the slow, obvious
// version.
func monomials(z []float64, degree int, separable bool) []float64 {
	var all []float64
	var walk func(from, left, factors int, v float64)
	walk = func(from, left, factors int, v float64) {
		if left == 0 {
			if !separable || factors == 1 {
				all = append(all, v)
			}
			return
		}
		for i := from; i < len(z); i++ {
			for k := left; k > 0; k-- {
				walk(i+1, left-k, factors+1, v*math.Pow(z[i], float64(k)))
			}
		}
	}
	for d := 1; d <= degree; d++ {
		walk(0, d, 0, 1)
	}
	return all
}

func TestAgainstMonomials(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Settings{
			Inputs:    rapid.IntRange(1, 6).Draw(t, "inputs"),
			Degree:    rapid.IntRange(1, 5).Draw(t, "degree"),
			Separable: rapid.Bool().Draw(t, "separable"),
		}
		number := rapid.Float64Range(-3, 3)
		x := make([]float64, s.Inputs)
		z := make([]float64, s.Inputs)
		if rapid.Bool().Draw(t, "scaled") {
			s.Hi = make([]float64, s.Inputs)
		}
		for i := range x {
			x[i] = number.Draw(t, "x")
			z[i] = x[i]
			if s.Hi != nil {
				s.Hi[i] = rapid.Float64Range(.5, 4).Draw(t, "hi")
				z[i] = x[i] / s.Hi[i]
			}
		}
		p := New(s)
		want := monomials(z, s.Degree, s.Separable)
		got := p.To(make([]float64, p.Len()), x)
		if len(want) != len(got) {
			t.Fatalf("%d features; want %d", len(got), len(want))
		}
		for m, want := range want {
			if math.Abs(got[m]-want) > 1e-12*(1+math.Abs(want)) {
				t.Fatalf("feature %d is %v; want %v", m, got[m], want)
			}
		}
	})
}

func TestAllocations(t *testing.T) {
	p := New(Settings{Inputs: 5, Degree: 4, Hi: []float64{1, 2, 3, 4, 5}})
	dst, x := make([]float64, p.Len()), []float64{1, 2, 3, 4, 5}
	if n := testing.AllocsPerRun(10, func() { p.To(dst, x) }); n != 0 {
		t.Errorf("To allocates %v times", n)
	}
}

func BenchmarkTo(b *testing.B) {
	for _, n := range []int{4, 10, 20, 40} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			p := New(Settings{Inputs: n, Degree: 2})
			dst, x := make([]float64, p.Len()), make([]float64, n)
			for b.Loop() {
				p.To(dst, x)
			}
		})
	}
}

func ExampleNew() {
	p := New(Settings{Inputs: 2, Degree: 2, Hi: []float64{200, 50}})
	fmt.Println(p.To(make([]float64, p.Len()), []float64{100, 10}))
	// Output:
	// [0.5 0.2 0.25 0.1 0.04000000000000001]
}
