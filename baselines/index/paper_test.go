package index

import (
	"math"
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
)

// discounted returns V_δ of (8) with the subsidy λ, by trying every time k to
// the first crawl,
//
//	V_δ(x) = max over k of Cλ(1 − δᵏ)/(1 − δ) + δᵏ(x(k) + δV_δ(u))
//
// with x(k) the state after k epochs without a crawl, and by iterating V_δ(u).
func discounted(s env.Source, price, delta float64) func(x float64) float64 {
	alpha, u, subsidy := s.Factor(), s.Gain(), s.Cost*price
	best := func(x, fresh float64) float64 {
		v := subsidy / (1 - delta) // never
		paid, weight := 0.0, 1.0
		for range int(60/s.Decay) + 2 {
			v = math.Max(v, paid+weight*(x+delta*fresh))
			x = alpha*x + u
			paid, weight = paid+weight*subsidy, weight*delta
		}
		return v
	}
	lo, hi := 0.0, (s.Ceiling()+subsidy)/(1-delta)
	for range 200 {
		if mid := (lo + hi) / 2; best(u, mid) > mid {
			lo = mid
		} else {
			hi = mid
		}
	}
	return func(x float64) float64 { return best(x, hi) }
}

// theory has sources and, for each, prices from below λ_m to above λ_M.
func theory(f func(s env.Source, price float64)) {
	dear := env.NewSource("", 12, 0.15, 0.4)
	dear.Cost = 2.5
	for _, s := range append(env.Paper(1).Sources, dear) {
		least, most := Whittle(s, s.Gain()), s.Ceiling()/s.Cost
		prices := []float64{0, 0.5 * least, 0.98 * most, 1.1 * most}
		for _, share := range []float64{0.02, 0.3, 0.7} {
			prices = append(prices, least+share*(most-least))
		}
		for _, price := range prices {
			f(s, price)
		}
	}
}

// states are spread over S = [u, u*].
func states(s env.Source, n int) []float64 {
	v := make([]float64, n)
	for k := range v {
		v[k] = s.Gain() + (s.Ceiling()-s.Gain())*float64(k)/float64(n-1)
	}
	return v
}

// TCNS, Lemma 1: "(2) V_δ is Lipschitz uniformly in δ ∈ (0, 1); (3) V_δ is
// monotone increasing and convex." Its proof gives the constant (1 −
// (αδ)^τ)/(1 − α), which is at most 1/(1 − α), with τ the time of the first
// crawl; a crawl at once, τ = 0, has to be counted as τ = 1, since there V_δ
// rises as x does.
func TestPaperDiscountedValue(t *testing.T) {
	theory(func(s env.Source, price float64) {
		for _, delta := range []float64{0.5, 0.9, 0.99} {
			v := discounted(s, price, delta)
			rise := 0.0
			x := states(s, 60)
			for k := range x[1:] {
				slope := (v(x[k+1]) - v(x[k])) / (x[k+1] - x[k])
				if slope < rise-1e-7 || slope < 0 || slope > 1/(1-s.Factor())+1e-7 {
					t.Fatalf("source %q, λ %v, δ %v: the slope of V at %v is %v after %v; "+
						"want it to rise within 0 and 1/(1−α)",
						s.Name, price, delta, x[k], slope, rise)
				}
				rise = slope
			}
		}
	})
}

// TCNS, (10): as δ goes to 1, V_δ(x) − V_δ(u) goes to V(x), (1 − δ)V_δ(u) to β,
// and "V(x) + β = max(Cλ + V(αx + u), x)"; Lemma 2: V is increasing and convex
// with V(u) = 0. V and β are those of [Lagrange], which charges Cλ for a crawl
// where the paper pays it for none, so that its β is less by Cλ.
func TestPaperVanishingDiscount(t *testing.T) {
	theory(func(s env.Source, price float64) {
		l := NewLagrange(s, price)
		beta := l.beta + s.Cost*price
		worst := math.Inf(1)
		for _, delta := range []float64{0.99, 0.999, 0.9999} {
			v := discounted(s, price, delta)
			fresh := v(s.Gain())
			off := math.Abs((1-delta)*fresh - beta)
			for _, x := range states(s, 12) {
				off = math.Max(off, math.Abs(v(x)-fresh-(l.value(s, x)-l.value(s, s.Gain()))))
			}
			if off > worst+1e-9*s.Ceiling() {
				t.Errorf("source %q, λ %v: at δ = %v the distance from V and β grows from %v to %v",
					s.Name, price, delta, worst, off)
			}
			worst = off
		}
		if worst > 2e-2*s.Ceiling() {
			t.Errorf("source %q, λ %v: at δ = 0.9999 V and β are off by %v", s.Name, price, worst)
		}
		for _, x := range states(s, 30) {
			next := s.Factor()*x + s.Gain()
			envtest.Near(t, "V(x) + β in (10)", l.value(s, x)+beta, math.Max(s.Cost*price+l.value(s, next), x), 1e-9)
		}
	})
}

// TCNS, (13) and (14): all states are passive for λ ≥ λ_M := max over x of (x −
// V(αx + u))/C and all active for λ ≤ λ_m := min over x of it; "for each λ in
// (λ_m, λ_M), both B, B^c are non-empty". Lemma 4: B is [u, a] and B^c is [a,
// u*]. λ_m is γ(u) and λ_M is γ(u*).
func TestPaperBothActions(t *testing.T) {
	theory(func(s env.Source, price float64) {
		l := NewLagrange(s, price)
		least, most := math.Inf(1), math.Inf(-1)
		passive, active := 0, 0
		for _, x := range states(s, 400) {
			worth := (x - l.value(s, s.Factor()*x+s.Gain())) / s.Cost
			least, most = math.Min(least, worth), math.Max(most, worth)
			if worth < price {
				if active > 0 {
					t.Fatalf("source %q, λ %v: %v is passive above an active state", s.Name, price, x)
				}
				passive++
			} else {
				active++
			}
		}
		lower, upper := Whittle(s, s.Gain()), Whittle(s, s.Ceiling())
		switch {
		case price <= lower && (price > least || passive > 0):
			t.Errorf("source %q, λ %v ≤ γ(u): λ_m is %v and %d states are passive", s.Name, price, least, passive)
		case price >= upper && (price < most || active > 0):
			t.Errorf("source %q, λ %v ≥ γ(u*): λ_M is %v and %d states are active", s.Name, price, most, active)
		case price > lower && price < upper && (passive == 0 || active == 0 || !(least < price && price < most)):
			t.Errorf("source %q, λ %v: %d states are passive, %d active, λ_m %v, λ_M %v",
				s.Name, price, passive, active, least, most)
		}
	})
}

// TCNS, (16): "x*(λ) = (Cλ + u − β(λ))/(1−α) … this is increasing in λ. Thus the
// passive set is monotonically increasing, establishing Whittle indexability."
// The threshold is the inverse of the index.
func TestPaperIndexability(t *testing.T) {
	for _, s := range env.Paper(1).Sources {
		s.Cost = 1.7
		lower, upper := Whittle(s, s.Gain()), Whittle(s, s.Ceiling())
		before := s.Gain()
		var passive [200]bool
		for k := 1; k < 100; k++ {
			price := lower + (upper-lower)*float64(k)/100
			l := NewLagrange(s, price)
			x := (s.Cost*price + s.Gain() - (l.beta + s.Cost*price)) / (1 - s.Factor())
			envtest.Near(t, "x*(λ)", x, Inverse(s, price), 1e-9)
			if x < before {
				t.Fatalf("source %q: x* falls from %v to %v at λ = %v", s.Name, before, x, price)
			}
			before = x
			for j, x := range states(s, len(passive)) {
				is := s.Cost*price+l.value(s, s.Factor()*x+s.Gain()) > x
				if passive[j] && !is {
					t.Fatalf("source %q: %v leaves the passive set at λ = %v", s.Name, x, price)
				}
				passive[j] = is
			}
		}
	}
}

// Allerton, section III: "the policy for the ith process is a threshold policy
// with threshold T_i(x_{−i}) := γ_i^{−1}(max over j ≠ i of γ_j(x_j)) … monotone
// increasing in x_{−i}", and source i is active where x_i ≥ T_i; here for one
// crawl per epoch.
func TestPaperWhittleDynamics(t *testing.T) {
	in := env.Paper(1).Sources
	threshold := func(i int, x []float64) float64 {
		most := 0.0
		for j, s := range in {
			if j != i {
				most = math.Max(most, Whittle(s, x[j]))
			}
		}
		return Inverse(in[i], most)
	}
	x := make([]float64, len(in))
	for n := range 4000 {
		for i, s := range in {
			// Points spread evenly over S, without a period.
			_, part := math.Modf(float64(n) * math.Sqrt(float64(2+3*i)))
			x[i] = s.Gain() + part*(s.Ceiling()-s.Gain())
		}
		best := 0
		for i, s := range in {
			if Whittle(s, x[i]) > Whittle(in[best], x[best]) {
				best = i
			}
		}
		for i := range in {
			at := threshold(i, x)
			if active := x[i] >= at; active != (i == best) && math.Abs(x[i]-at) > 1e-9*at {
				t.Fatalf("states %v: source %d is active by its threshold %v: %v; "+
					"the greatest index is that of %d",
					x, i, at, active, best)
			}
			for j := range in {
				if up := x[j] * 1.05; j != i {
					old := x[j]
					x[j] = up
					if higher := threshold(i, x); higher < at {
						t.Fatalf("T of source %d falls from %v to %v as source %d rises", i, at, higher, j)
					}
					x[j] = old
				}
			}
		}
	}
}
