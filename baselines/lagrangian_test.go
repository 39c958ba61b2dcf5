package baselines

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env"
)

// The closed form against value iteration of (10), at any state and price.
func TestLagrangianAgainstValueIteration(t *testing.T) {
	for _, alpha := range []float64{0.3, 0.7, 0.9} {
		for _, cost := range []float64{1, 2.5} {
			s := source(alpha, 10, cost)
			for _, p := range []float64{0, 0.1, 0.4, 0.8, 0.97, 1.01, 1.6} {
				price := p * s.Ceiling() / cost
				for _, at := range []float64{0, 0.1, 0.35, 0.6, 0.9, 1, 1.2, 1.8} {
					x := at * s.Ceiling()
					got, want := LagrangianIndex(s, price, x), solve(s, price, x)/cost
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
		s := drawInstance(t, 1, 1, true, false).Sources[0]
		price := rapid.Float64Range(0, 1.2).Draw(t, "price") * s.Ceiling() / s.Cost
		l := newLagrange(s, price)
		for age := 1; age < 30; age++ {
			x := s.MeanState(age)
			got := l.atAge(x, s.Gain()-(1-s.Factor())*x, age) / s.Cost
			if want := LagrangianIndex(s, price, x); math.Abs(got-want) > 1e-9*s.Ceiling()/s.Cost {
				t.Fatalf("λ %v, age %d of threshold age %d: %v, want %v", price, age, l.age, got, want)
			}
		}
	})
}

// At one price the Lagrangian index is 0 where the Whittle index is the price,
// positive above and negative below.
func TestLagrangianSign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawInstance(t, 1, 1, true, false).Sources[0]
		x := rapid.Float64Range(0.01, 0.99).Draw(t, "x") * s.Ceiling()
		price := WhittleIndex(s, x)
		if v := LagrangianIndex(s, price, x); math.Abs(v) > 1e-9*s.Ceiling()/s.Cost {
			t.Fatalf("index at the price γ(x) is %v, want 0", v)
		}
		if up, down := LagrangianIndex(s, 0.98*price, x), LagrangianIndex(s, 1.02*price, x); !(up > 0 && down < 0) {
			t.Fatalf("index below the price γ(x) is %v, above %v", up, down)
		}
	})
}

func TestLagrangianKeepsTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 1, 8, true, true)
		w, err := env.NewMean(in, false)
		if err != nil {
			t.Fatal(err)
		}
		p := NewLagrangian(in)
		for range 50 {
			if _, err := w.Step(p.Select(nil, &w.View().Model)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The policy against the index at any state, put in order by a sort.
func TestLagrangianPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 2, 8, rapid.Bool().Draw(t, "costs"), true)
		price := Relax(in, MeanDynamics).Price
		costs := in.Terms().Costs
		p, w := NewLagrangian(in), mean(t, in, false)
		key := make([]float64, len(costs))
		for range 30 {
			o := &w.View().Model
			for i, s := range in.Sources {
				key[i] = LagrangianIndex(s, price, o.Mean[i])
			}
			got := p.Select(nil, o)
			// Indices that differ in their last bits may change places, so that
			// the indices are compared, not the sources.
			want := topSlow(costs, in.Budget, key)
			var a, b float64
			for _, i := range got {
				a += key[i]
			}
			for _, i := range want {
				b += key[i]
			}
			if math.Abs(a-b) > 1e-9*(1+price)*float64(len(key)) {
				t.Fatalf("crawls %v, want %v by %v", got, want, key)
			}
			if _, err := w.Step(got); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What the policy earns on Table I: as much as Whittle.
func TestLagrangianOnTableI(t *testing.T) {
	for _, m := range []float64{1, 2, 3} {
		in := env.Paper(m)
		near(t, "reward over 1000 epochs", run(t, in, NewLagrangian(in), 1000), run(t, in, NewWhittle(in), 1000), 1e-12)
		near(t, "reward in the long run", longRun(t, in, NewLagrangian(in), 7000, 7000), longRun(t, in, NewWhittle(in), 7000, 7000), 1e-12)
	}
}
