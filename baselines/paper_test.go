package baselines

import (
	"math"
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
)

// TCNS, section IX: "This resulted in the average reward 260.30" (Whittle index
// policy, Table I, M = 1, 1000 time steps). For M = 2 the paper prints no
// figure; 337.65 is ours.
func TestPaperWhittleReward(t *testing.T) {
	for _, c := range []struct{ budget, want float64 }{{1, 260.30}, {2, 337.65}} {
		in := env.Paper(c.budget)
		got := run(t, in, NewWhittle(in), 1000)
		if math.Round(got*100) != math.Round(c.want*100) {
			t.Errorf("budget %v: Whittle earns %.4f over 1000 epochs, want %.2f", c.budget, got, c.want)
		}
	}
}

// TCNS, section IX: "The application of Whittle index results in periodic
// crawling of sources 1 and 2, crawling each with period two. Sources 3 and 4
// should never be crawled." For M = 2: "Source 1 is always crawled. Sources 2
// and 3 are crawled in a non-trivial periodic way and source 4 is crawled
// periodically with a rather long period."
func TestPaperWhittleFrequencies(t *testing.T) {
	const epochs = 7000
	for _, tt := range []struct {
		budget    float64
		frequency [4]float64
	}{
		{1, [4]float64{0.5, 0.5, 0, 0}},
		{2, [4]float64{1, 4. / 7, 2. / 7, 1. / 7}},
	} {
		in := env.Paper(tt.budget)
		count := play(t, mean(t, in, false), NewWhittle(in), 0, epochs).crawls
		for i, n := range count {
			if want := tt.frequency[i]; math.Abs(n-want) > 1e-3 {
				t.Errorf("budget %v: source %d is crawled %.4f times per epoch, want %.4f", tt.budget, i+1, n, want)
			}
		}
	}
}

// TCNS, section IX: "if one always greedily crawls only source 1, he obtains the
// average reward 179.8". In the stochastic model round robin "results in just
// 208.4"; in the mean dynamics it is 208.05.
func TestPaperSimplePolicies(t *testing.T) {
	in := env.Paper(1)
	if got := run(t, in, NewBestSource(in), 1000); math.Round(got*100) != 17979 {
		t.Errorf("always source 1 earns %.4f, want 179.79", got)
	}
	if got := run(t, in, NewRoundRobin(in.Terms()), 1000); math.Round(got*100) != 20805 {
		t.Errorf("round robin earns %.4f, want 208.05", got)
	}
}

// TCNS, section VII: the relaxation "is also useful to establish an upper bound
// on the optimal value, therefore also on the Whittle index policy". The bounds
// and prices for Table I are ours.
func TestPaperBound(t *testing.T) {
	for _, tt := range []struct{ budget, bound, price float64 }{
		{1, 260.39, 105.1},
		{2, 338.05, 43.6},
		{3, 372.41, 18.1},
	} {
		bound, price := index.Bound(env.Paper(tt.budget))
		if math.Round(bound*100) != math.Round(tt.bound*100) || math.Round(price*10) != math.Round(tt.price*10) {
			t.Errorf("budget %v: bound %.4f at price %.3f, want %.2f at %.1f",
				tt.budget, bound, price, tt.bound, tt.price)
		}
	}
}

// TCNS, section IX: the bound "indicates that the Whittle index policy in this
// particular case gives solution which is very close to the optimal one". For
// M = 1 and 3 it is optimal, with the relaxed bound as the certificate; for
// M = 2 it earns .9992 of the bound, and so does the optimum: dynamic programming
// shows Whittle to be optimal there too, but for the error of its truncation.
func TestPaperWhittleAgainstOptimum(t *testing.T) {
	envtest.Alone(t)
	for _, c := range []struct{ budget, ofBound, ofOptimum float64 }{{1, 1, 1}, {2, 0.99915, 1}, {3, 1, 1}} {
		in := env.Paper(c.budget)
		bound, _ := index.Bound(in)
		o, err := solveOptimum(in, but(usualLimits, func(l *limits) { l.truncation, l.gap = 1e-6, 1e-8 }))
		if err != nil {
			t.Fatal(err)
		}
		whittle := longRun(t, in, NewWhittle(in), 7000, 7000)
		t.Logf("budget %v: Whittle %.5f, optimum %.5f to %.5f, bound %.5f", c.budget, whittle, o.Lower, o.Upper, bound)
		if !(whittle <= o.Upper*(1+1e-12) && o.Lower <= bound*(1+1e-12)) {
			t.Errorf("budget %v: Whittle %v, optimum %v to %v, bound %v are out of order",
				c.budget, whittle, o.Lower, o.Upper, bound)
		}
		if whittle < c.ofBound*bound*(1-1e-9) {
			t.Errorf("budget %v: Whittle earns %.6f of the bound, want at least %v", c.budget, whittle/bound, c.ofBound)
		}
		if whittle < c.ofOptimum*(o.Upper-o.Truncation)*(1-1e-7) {
			t.Errorf("budget %v: Whittle earns %.6f of the optimum, want at least %v",
				c.budget, whittle/o.Upper, c.ofOptimum)
		}
		if c.budget == 2 && !(o.Upper < bound*(1-5e-4)) {
			t.Errorf("budget 2: the optimum, at most %v, is not clearly below the bound %v", o.Upper, bound)
		}
	}
}

// TCNS, section IX: "We can also apply the relaxed control described in Section
// VII. This gives the average reward 260.96 [...] While using the relaxed
// control, the constraint violation appeared in less than 1% of time steps."
//
// Deviation: what is earned beyond the bound, 260.39, is earned by crawls beyond
// the budget, as in the paper. But we overrun the budget in every second epoch
// and stay below it in the others: from x = u sources 1 and 2 are crawled in the
// same epochs, and at a price that gives each of them period two nothing in (22)
// moves them apart. The paper does not give its start or its steps.
func TestPaperRelaxedControl(t *testing.T) {
	in := env.Paper(1)
	for _, c := range []struct {
		exact        bool
		reward, over float64
	}{{false, 259.46, 0.37}, {true, 260.71, 0.50}} {
		p := must(NewRelaxedControl(in, RelaxedOptions{Exact: c.exact}))
		out := play(t, mean(t, in, true), p, 0, 1000)
		t.Logf("exact %v: %+v", c.exact, out)
		if math.Abs(out.reward-c.reward) > 0.005 || math.Abs(out.over-c.over) > 0.005 {
			t.Errorf("exact %v: reward %.4f with %.3f of the epochs over budget, want %.2f and %.2f",
				c.exact, out.reward, out.over, c.reward, c.over)
		}
		if !(out.overrun > 0 && out.overrun < 1) {
			t.Errorf("exact %v: mean overrun %v", c.exact, out.overrun)
		}
	}
}
