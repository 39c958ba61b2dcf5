package index

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/envtest"
)

// solve solves (10) by value iteration for one source at a price λ, in the form
// with the subsidy Cλ for not crawling. The states are the two chains that are
// reached from u and from x, so that nothing is interpolated. It returns what
// crawling at x is worth more than not crawling.
func solve(s env.Source, price, x float64) float64 {
	const tol = 1e-9
	alpha, u, subsidy := s.Factor(), s.Gain(), s.Cost*price
	// The chains end where the state has converged.
	length := int(math.Log(1e-13)/math.Log(alpha)) + 2
	state := make([]float64, 2*length) // the chain from u, then that from x
	for k, z := range []float64{u, x} {
		for j := range length {
			state[k*length+j] = z
			z = alpha*z + u
		}
	}
	next := func(j int) int {
		if j == length-1 || j == 2*length-1 {
			return j
		}
		return j + 1
	}
	v, w := make([]float64, 2*length), make([]float64, 2*length)
	for {
		lo, hi := math.Inf(1), math.Inf(-1)
		for j, z := range state {
			// (10): V(x) + β = max(Cλ + V(αx + u), x + V(u))
			t := math.Max(subsidy+v[next(j)], z+v[0])
			lo, hi = math.Min(lo, t-v[j]), math.Max(hi, t-v[j])
			w[j] = (t + v[j]) / 2 // half steps, against the period
		}
		v0 := w[0]
		for j := range w {
			w[j] -= v0
		}
		v, w = w, v
		if hi-lo < tol*(1+math.Abs(hi)) {
			break
		}
	}
	return x + v[0] - subsidy - v[next(length)]
}

// bisect returns where f, falling, crosses 0.
func bisect(lo, hi float64, f func(float64) float64) float64 {
	for range 60 {
		if mid := (lo + hi) / 2; f(mid) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// The index by closed form, by value iteration of (10), and by bisection on the
// price of the Lagrangian index, at reachable states and at others.
func TestWhittleThreeWays(t *testing.T) {
	for _, alpha := range []float64{0.2, 0.5, 0.8, 0.9} {
		for _, u := range []float64{0.3, 180} {
			for _, cost := range []float64{1, 2.5} {
				s := envtest.Source(alpha, u, cost)
				for _, at := range []float64{0.03, 0.2, 0.5, 0.77, 0.95, 1.02, 1.5} {
					check(t, s, at*s.Ceiling())
				}
				for _, age := range []int{1, 2, 3, 7} {
					check(t, s, s.MeanState(age))
				}
			}
		}
	}
}

func check(t *testing.T, s env.Source, x float64) {
	t.Helper()
	name := fmt.Sprintf("index at α %.3g, u %.3g, C %.3g, x %.6g", s.Factor(), s.Gain(), s.Cost, x)
	want := Whittle(s, x)
	high := 2 * (x + s.Ceiling()) / s.Cost
	price := bisect(0, high, func(p float64) float64 { return lagrangian(s, p, x) })
	envtest.Near(t, name+", price of the Lagrangian index", price, want, 1e-9)
	// Value iteration at prices around the index: crawling is better below and
	// worse above.
	for _, d := range []float64{1e-3, 1e-5} {
		if a := solve(s, want*(1-d), x); !(a > 0) {
			t.Errorf("%s: at a price %g below %.9g crawling is worth %g", name, d, want, a)
		}
		if a := solve(s, want*(1+d), x); !(a < 0) {
			t.Errorf("%s: at a price %g above %.9g crawling is worth %g", name, d, want, a)
		}
	}
}

// The Remark's form without ⌈·⌉ agrees with Theorem 1 on the reachable states.
func TestWhittleRemark(t *testing.T) {
	for _, s := range env.Paper(1).Sources {
		for age := 1; age < 60; age++ {
			what := fmt.Sprintf("source %s at age %d", s.Name, age)
			envtest.Near(t, what, WhittleAtAge(s, age), Whittle(s, s.MeanState(age)), 1e-9)
		}
	}
}

// As printed, log⁺ gives the richest state of all the index 0; the extension is
// the limit from below and what the dynamic programming equation says.
func TestWhittleAboveTheCeiling(t *testing.T) {
	s := env.Paper(1).Sources[0]
	ceil := s.Ceiling()
	if got := WhittleLiteral(s, ceil*1.1); got != 0 {
		t.Errorf("literal index above the ceiling is %v, want 0", got)
	}
	envtest.Near(t, "index at the ceiling", Whittle(s, ceil), ceil, 1e-15)
	envtest.Near(t, "index below the ceiling", Whittle(s, ceil*(1-1e-12)), ceil, 1e-10)
	envtest.Near(t, "index above the ceiling", Whittle(s, ceil*1.1), ceil*1.1, 1e-15)
	envtest.Near(t, "literal index below the ceiling", WhittleLiteral(s, ceil*0.7), Whittle(s, ceil*0.7), 1e-15)
	s.Rate = 0
	if a, b := Whittle(s, 0), WhittleAtAge(s, 3); a != 0 || b != 0 {
		t.Errorf("indices of a source that earns nothing are %v and %v, want 0", a, b)
	}
}

// γ⁻¹(γ(x)) is x, and the index of γ⁻¹(λ) is λ.
func TestInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := envtest.DrawInstance(t, 1, 1, true, true).Sources[0]
		x := rapid.Float64Range(0.001, 1.5).Draw(t, "x") * s.Ceiling()
		price := Whittle(s, x)
		envtest.Near(t, "γ⁻¹(γ(x))", Inverse(s, price), x, 1e-6)
		envtest.Near(t, "γ(γ⁻¹(λ))", Whittle(s, Inverse(s, price)), price, 1e-9)
	})
	s := env.Paper(1).Sources[0]
	if a, b := Inverse(s, 0), Inverse(s, -1); a != 0 || b != 0 {
		t.Errorf("γ⁻¹ at prices 0 and −1 is %v and %v, want 0", a, b)
	}
	s.Rate = 0
	if got := Inverse(s, 3); got != 3 {
		t.Errorf("γ⁻¹(3) of a source that earns nothing is %v, want 3", got)
	}
}
