package baselines

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
)

// In whole epochs the optimal threshold is the first age whose Whittle index
// reaches the price: the age that earns most by trying all.
func TestRelaxedExactThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := envtest.DrawInstance(t, 1, 1, true, false).Sources[0]
		price := rapid.Float64Range(0.001, 0.95).Draw(t, "price") * s.Ceiling() / s.Cost
		p := relaxedControl{RelaxedOptions: RelaxedOptions{Price: price, Exact: true}}
		first := 1
		for !p.crawls(&s, first) {
			first++
		}
		yield := func(age int) float64 { return (s.MeanState(age) - price*s.Cost) / float64(age) }
		for age := 1; age < 3*first+20; age++ {
			if yield(age) > yield(first)+1e-9*s.Ceiling() {
				t.Fatalf("age %d earns %v, the threshold age %d earns %v", age, yield(age), first, yield(first))
			}
		}
	})
}

// (21) as printed: x̄ = u*(1 − e^(1+w)), where w e^w = e⁻¹(Cλ/u* − 1), w ≤ −1.
func TestPaperRelaxedThreshold(t *testing.T) {
	for _, s := range env.Paper(1).Sources {
		s.Cost = 2
		for share := .01; share < 1; share += .02 {
			lo, hi := -60., -1. // where w e^w falls
			for range 100 {
				if w := (lo + hi) / 2; w*math.Exp(w) > (share-1)/math.E {
					lo = w
				} else {
					hi = w
				}
			}
			threshold := s.Ceiling() * (1 - math.Exp(1+lo))
			p := relaxedControl{RelaxedOptions: RelaxedOptions{Price: share * s.Ceiling() / s.Cost}}
			for age := 1; age < 60; age++ {
				if want := s.MeanState(age) >= threshold; p.crawls(&s, age) != want {
					t.Errorf("source %s, λ = %v: crawled at age %d is %v; x̄ = %v, and x = %v",
						s.Name, p.Price, age, !want, threshold, s.MeanState(age))
				}
			}
		}
	}
}

// The price rises while too much is crawled and falls while too little is, in
// budget units.
func TestRelaxedControlMovesThePrice(t *testing.T) {
	in := env.Paper(1)
	for i := range in.Sources {
		in.Sources[i].Cost = 2
	}
	in.Budget = 3
	w := mean(t, in, true)
	p := must(NewRelaxedControl(in, RelaxedOptions{First: 0.5})).(*relaxedControl)
	if got := p.Select(nil, &w.View().Model); len(got) != 4 {
		t.Fatalf("at price 0 sources %v are crawled, want all", got)
	}
	envtest.Near(t, "price after 8 of 3 budget units", p.Price, 0.5*(8-3), 1e-15)
	p.Price = 1e6
	if got := p.Select(nil, &w.View().Model); len(got) != 0 {
		t.Fatalf("at price 1e6 sources %v are crawled, want none", got)
	}
	envtest.Near(t, "price after 0 of 3 budget units", p.Price, 1e6-0.5/1.1*3, 1e-15)
	p.Price = 0.1
	p.sources = nil
	p.Select(nil, &env.Model{})
	if p.Price != 0 {
		t.Errorf("price is %v, want it kept from falling below 0", p.Price)
	}
}

// Dual descent from far above and far below the optimal price ends at a price
// whose control costs the budget and earns the bound.
func TestRelaxedControlReachesTheBound(t *testing.T) {
	for _, m := range []float64{1, 2, 3} {
		in := env.Paper(m)
		bound, _ := index.Bound(in)
		for _, start := range []float64{0, 300} {
			p := must(NewRelaxedControl(in, RelaxedOptions{Price: start, Exact: true}))
			out := play(t, mean(t, in, true), p, 0, 50_000)
			envtest.Near(t, "cost", out.cost, m, 2e-3)
			envtest.Near(t, "reward", out.reward, bound, 2e-3)
		}
	}
}
