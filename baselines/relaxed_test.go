package baselines

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env"
)

// The threshold is where the yield of a cycle of real length is stationary:
// (17) in (19), differentiated by η.
func TestRelaxedThresholdIsStationary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawInstance(t, 1, 1, true, true).Sources[0]
		charge := math.Pow(10, rapid.Float64Range(-14, -0.01).Draw(t, "log")) * s.Ceiling()
		x := RelaxedThreshold(s, charge/s.Cost)
		// α^η(1 − η ln α) = 1 − Cλ/u*, with η from x, both sides taken from 1.
		y := -math.Log1p(-x / s.Ceiling())
		if got := -math.Expm1(subLog1pNegExp(y)); math.Abs(got-charge/s.Ceiling()) > 1e-6*charge/s.Ceiling() {
			t.Fatalf("threshold %v: 1 − α^η(1 − η ln α) is %v, want %v", x, got, charge/s.Ceiling())
		}
		// A cycle a little shorter or longer earns less.
		yield := func(y float64) float64 { return (s.Ceiling()*-math.Expm1(-y) - charge) / y }
		if y > 1e-3 && !(yield(y) >= yield(y*0.99) && yield(y) >= yield(y*1.01)) {
			t.Fatalf("threshold %v is not the best", x)
		}
	})
}

// subLog1pNegExp returns log((1+y) e^(−y)).
func subLog1pNegExp(y float64) float64 { return -subLog1p(y) }

func TestRelaxedThresholdEnds(t *testing.T) {
	s := env.Paper(1).Sources[0]
	if got := RelaxedThreshold(s, 0); got != 0 {
		t.Errorf("threshold at price 0 is %v, want 0", got)
	}
	for _, p := range []float64{s.Ceiling(), 2 * s.Ceiling(), math.Inf(1)} {
		if got := RelaxedThreshold(s, p); got != s.Ceiling() {
			t.Errorf("threshold at price %v is %v, want the ceiling", p, got)
		}
	}
	// (21) as printed, with W₋₁.
	for _, p := range []float64{20, 105, 300} {
		u := s.Ceiling()
		near(t, "threshold", RelaxedThreshold(s, p), u*(1-math.Exp(1+lambertWm1((p/u-1)/math.E))), 1e-12)
	}
}

// In whole epochs the optimal threshold is the first age whose Whittle index
// reaches the price: the age that earns most by trying all.
func TestRelaxedExactThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawInstance(t, 1, 1, true, false).Sources[0]
		price := rapid.Float64Range(0.001, 0.95).Draw(t, "price") * s.Ceiling() / s.Cost
		p := RelaxedControl{price: price, exact: true}
		first := 1
		for !p.crawls(&s, s.MeanState(first), first) {
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

// The price rises while too much is crawled and falls while too little is, in
// budget units.
func TestRelaxedControlMovesThePrice(t *testing.T) {
	in := env.Paper(1)
	for i := range in.Sources {
		in.Sources[i].Cost = 2
	}
	in.Budget = 3
	w := mean(t, in, true)
	p := NewRelaxedControl(in, RelaxedOptions{First: 0.5, Hold: 1, Power: 1})
	if got := p.Select(nil, &w.View().Model); len(got) != 4 {
		t.Fatalf("at price 0 sources %v are crawled, want all", got)
	}
	near(t, "price after 8 of 3 budget units", p.Price(), 0.5*(8-3), 1e-15)
	p.price = 1e6
	if got := p.Select(nil, &w.View().Model); len(got) != 0 {
		t.Fatalf("at price 1e6 sources %v are crawled, want none", got)
	}
	near(t, "price after 0 of 3 budget units", p.Price(), 1e6-0.5/2*3, 1e-15)
	p.price = 0.1
	p.sources = nil
	p.Select(nil, &env.Model{})
	if p.Price() != 0 {
		t.Errorf("price is %v, want it kept from falling below 0", p.Price())
	}
}

// Dual descent from far above and far below the optimal price ends at a price
// whose control costs the budget and earns the bound.
func TestRelaxedControlReachesTheBound(t *testing.T) {
	for _, m := range []float64{1, 2, 3} {
		in := env.Paper(m)
		bound, _ := RelaxedBound(in)
		for _, start := range []float64{0, 300} {
			out := play(t, mean(t, in, true), NewRelaxedControl(in, RelaxedOptions{Price: start, Exact: true}), 0, 50_000)
			near(t, "cost", out.cost, m, 2e-3)
			near(t, "reward", out.reward, bound, 2e-3)
		}
	}
}
