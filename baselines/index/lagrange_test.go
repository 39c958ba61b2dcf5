package index

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/envtest"
)

// value returns V(x), the most that can be had from x up to and with the next
// crawl, β having been paid for every epoch:
//
//	V(x) = maxₖ [u* − αᵏ(u* − x) − λC − (k+1)β]
//
// Below the ceiling the bracket is concave in the number k of epochs that are
// waited, and rises from k to k+1 while αᵏ(1 − α)(u* − x) > β.
func (l *Lagrange) value(s env.Source, x float64) float64 {
	ceil := s.Ceiling()
	if x >= ceil {
		return math.Max(x-l.charge-l.beta, l.never())
	}
	gap := ceil - x
	if l.beta == 0 { // nothing is ever earned, so nothing is ever crawled
		return math.Max(0, x-l.charge)
	}
	k := math.Max(0, math.Ceil(math.Log(-math.Expm1(-s.Decay)*gap/l.beta)/s.Decay))
	return ceil - gap*math.Exp(-s.Decay*k) - l.charge - (k+1)*l.beta
}

// never returns what not crawling again is worth.
func (l *Lagrange) never() float64 {
	if l.beta > 0 {
		return math.Inf(-1)
	}
	return 0
}

// lagrangian returns the Lagrangian index of Avrachenkov, Borkar and Shah
// (arXiv 2412.12641) at any state x ≥ 0 and a price λ, in interest per budget
// unit:
//
//	(1/C) [x + V(u) − Cλ − V(αx + u)]
//
// This is what a crawl now is worth against a crawl later, when every crawl is
// charged λ per budget unit; at the price λ = γ(x) it is 0. The division by C
// puts sources of unequal cost in the order of Theorem 1.
func lagrangian(s env.Source, price, x float64) float64 {
	l := NewLagrange(s, price)
	return (x - l.charge - l.value(s, s.Factor()*x+s.Gain())) / s.Cost
}

// The closed form against value iteration of (10), at any state and price.
func TestLagrangianAgainstValueIteration(t *testing.T) {
	for _, alpha := range []float64{0.3, 0.7, 0.9} {
		for _, cost := range []float64{1, 2.5} {
			s := envtest.Source(alpha, 10, cost)
			for _, p := range []float64{0, 0.1, 0.4, 0.8, 0.97, 1.01, 1.6} {
				price := p * s.Ceiling() / cost
				for _, at := range []float64{0, 0.1, 0.35, 0.6, 0.9, 1, 1.2, 1.8} {
					x := at * s.Ceiling()
					got, want := lagrangian(s, price, x), solve(s, price, x)/cost
					if math.Abs(got-want) > 1e-6*s.Ceiling() {
						t.Errorf("α %v, C %v, λ %.4g, x %.4g: index %v, value iteration gives %v",
							alpha, cost, price, x, got, want)
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
			if want := lagrangian(s, price, x); math.Abs(got-want) > 1e-9*s.Ceiling()/s.Cost {
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
		if v := lagrangian(s, price, x); math.Abs(v) > 1e-9*s.Ceiling()/s.Cost {
			t.Fatalf("index at the price γ(x) is %v, want 0", v)
		}
		if up, down := lagrangian(s, 0.98*price, x), lagrangian(s, 1.02*price, x); !(up > 0 && down < 0) {
			t.Fatalf("index below the price γ(x) is %v, above %v", up, down)
		}
	})
}
