package index

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env/envtest"
)

// The closed form against value iteration of (10), at any state and price.
func TestLagrangianAgainstValueIteration(t *testing.T) {
	for _, alpha := range []float64{0.3, 0.7, 0.9} {
		for _, cost := range []float64{1, 2.5} {
			s := envtest.Source(alpha, 10, cost)
			for _, p := range []float64{0, 0.1, 0.4, 0.8, 0.97, 1.01, 1.6} {
				price := p * s.Ceiling() / cost
				for _, at := range []float64{0, 0.1, 0.35, 0.6, 0.9, 1, 1.2, 1.8} {
					x := at * s.Ceiling()
					got, want := Lagrangian(s, price, x), solve(s, price, x)/cost
					if math.Abs(got-want) > 1e-6*s.Ceiling() {
						t.Errorf("α %v, C %v, λ %.4g, x %.4g: index %v, value iteration gives %v", alpha, cost, price, x, got, want)
					}
				}
			}
		}
	}
}

// The form at reachable ages against the form at any state.
func TestLagrangianAtAge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := envtest.DrawInstance(t, 1, 1, true, false).Sources[0]
		price := rapid.Float64Range(0, 1.2).Draw(t, "price") * s.Ceiling() / s.Cost
		l := NewLagrange(s, price)
		for age := 1; age < 30; age++ {
			x := s.MeanState(age)
			got := l.AtAge(age)
			if want := Lagrangian(s, price, x); math.Abs(got-want) > 1e-9*s.Ceiling()/s.Cost {
				t.Fatalf("λ %v, age %d of threshold age %d: %v, want %v", price, age, l.age, got, want)
			}
		}
	})
}

// At one price the Lagrangian index is 0 where the Whittle index is the price,
// positive above and negative below.
func TestLagrangianSign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := envtest.DrawInstance(t, 1, 1, true, false).Sources[0]
		x := rapid.Float64Range(0.01, 0.99).Draw(t, "x") * s.Ceiling()
		price := Whittle(s, x)
		if v := Lagrangian(s, price, x); math.Abs(v) > 1e-9*s.Ceiling()/s.Cost {
			t.Fatalf("index at the price γ(x) is %v, want 0", v)
		}
		if up, down := Lagrangian(s, 0.98*price, x), Lagrangian(s, 1.02*price, x); !(up > 0 && down < 0) {
			t.Fatalf("index below the price γ(x) is %v, above %v", up, down)
		}
	})
}

// The policy against the index at any state, put in order by a sort.
// What the policy earns on Table I: as much as Whittle.
