package index

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/envtest"
)

// linearBound solves the relaxed problem as a linear program over y[i][s], the
// crawls of source i per epoch that come s epochs after the one before:
//
//	max Σ y H(s)   with   Σₛ s y[i][s] ≤ 1 for each i,   Σ C y ≤ M
func linearBound(in env.Instance, ages int) (float64, error) {
	n := len(in.Sources)
	a := mat.NewDense(n+1, n*ages+n+1, nil)
	c, b := make([]float64, n*ages+n+1), make([]float64, n+1)
	for i, s := range in.Sources {
		cv := NewCurve(s)
		for k := range ages {
			a.Set(i, i*ages+k, float64(k+1))
			a.Set(n, i*ages+k, s.Cost)
			c[i*ages+k] = -cv.At(k + 1)
		}
		b[i] = 1
	}
	b[n] = in.Budget
	for r := range n + 1 { // slack
		a.Set(r, n*ages+r, 1)
	}
	basic := make([]int, n+1)
	for r := range basic {
		basic[r] = n*ages + r
	}
	opt, _, err := lp.Simplex(c, a, b, 1e-12, basic)
	return -opt, err
}

func TestRelaxAgainstLinearProgram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := envtest.DrawInstance(t, 1, 10, rapid.Bool().Draw(t, "costs"), rapid.Bool().Draw(t, "windows"))
		if rapid.Bool().Draw(t, "laws") {
			for i := range in.Sources {
				if drawLaw(t, &in.Sources[i]); in.Sources[i].Unbounded() { // the program may leave a source alone
					in.Sources[i].Law, in.Sources[i].Shape = env.LawFreshness, 0
				}
			}
		}
		if rapid.Bool().Draw(t, "twins") { // sources that tie
			in.Sources[len(in.Sources)-1] = in.Sources[0]
			if in.Validate() != nil {
				t.Skip("the budget no longer fits")
			}
		}
		r := Relax(in)
		can := in
		dear := func(s env.Source) bool { return !env.Fits(s.Cost, in.Budget) }
		can.Sources = slices.DeleteFunc(slices.Clone(in.Sources), dear)
		want, err := linearBound(can, 70)
		if err != nil {
			t.Fatal(err)
		}
		// The program knows ages up to 70 only, where at most a share of
		// some thousandths is still to come, and the tie with never crawling.
		if !(r.Bound >= want*(1-1e-9) && r.Bound <= want*(1+1e-3)) {
			t.Fatalf("%v of %+v; the linear program gives %v", r, in, want)
		}
		checkPlan(t, in, r)
	})
}

// checkPlan recomputes what the plan earns and costs, and the dual value at the
// price by trying every age.
func checkPlan(t *rapid.T, in env.Instance, r Relaxed) {
	var earn, cost, dual float64
	for i, s := range in.Sources {
		c := NewCurve(s)
		if r.Short[i] > r.Long[i] || r.Share[i] < 0 || r.Share[i] > 1 {
			t.Fatalf("source %d: ages %d and %d, share %v", i, r.Short[i], r.Long[i], r.Share[i])
		}
		for _, part := range []struct {
			age   int
			share float64
		}{{r.Short[i], r.Share[i]}, {r.Long[i], 1 - r.Share[i]}} {
			if part.age != Never {
				earn += part.share * c.At(part.age) / float64(part.age)
				cost += part.share * s.Cost / float64(part.age)
			}
		}
		best := 0.0
		for age := 1; age < 2000 && env.Fits(s.Cost, in.Budget); age++ {
			best = math.Max(best, (c.At(age)-r.Price*s.Cost)/float64(age))
		}
		dual += best
	}
	dual += r.Price * in.Budget
	envtest.Near(t, "reward of the plan", r.Reward, earn, 1e-12)
	envtest.Near(t, "reward and bound", r.Reward, r.Bound, 1e-9)
	envtest.Near(t, "bound and dual value", r.Bound, dual, 1e-6)
	envtest.Near(t, "cost of the plan", r.Cost, cost, 1e-12)
	if cost > in.Budget*(1+1e-9) {
		t.Fatalf("the plan costs %v; allowed is %v", cost, in.Budget)
	}
	if cost < in.Budget*(1-1e-9) && r.Price > 0 {
		t.Fatalf("the plan costs %v of %v at the price %v", cost, in.Budget, r.Price)
	}
}

// A larger budget is never worth less, its further parts never worth more, and
// the price is what they are worth.
func TestRelaxIsConcaveInTheBudget(t *testing.T) {
	at := func(m float64) Relaxed { return Relax(env.Paper(m)) }
	for m := 1.05; m < 3.9; m += 0.0937 {
		const d = 1e-4
		r := at(m)
		up, down := (at(m+d).Bound-r.Bound)/d, (r.Bound-at(m-d).Bound)/d
		if up > r.Price*(1+1e-6) || down < r.Price*(1-1e-6) {
			t.Errorf("budget %v: price %v is not between %v and %v", m, r.Price, up, down)
		}
	}
	// On the budgets of Table I the bound has kinks, and the price is that of
	// the last part of the budget.
	for _, m := range []float64{2, 3} {
		const d = 1e-4
		envtest.Near(t, "price", at(m).Price, (at(m).Bound-at(m-d).Bound)/d, 1e-6)
	}
}

// Hard cases for the bisection: hardly any decay, rates 20 orders of magnitude
// apart, nothing to earn.
func TestRelaxExtremes(t *testing.T) {
	for k, sources := range [][]env.Source{
		{env.NewSource("", 1, 1e-9, 1), env.NewSource("", 1, 1e-9, 1), env.NewSource("", 2, 1e-9, 1)},
		{env.NewSource("", 1e-12, 1, 1), env.NewSource("", 1e8, 0.01, 1), env.NewSource("", 0, 1, 1)},
		{env.NewSource("", 0, 1, 1), env.NewSource("", 5, 1, 0)},
		{env.NewSource("", 1, 700, 1), env.NewSource("", 1, 1e-3, 1)},
	} {
		in := env.Instance{ID: fmt.Sprint(k), Budget: 1, Sources: sources}
		r := Relax(in)
		envtest.Near(t, fmt.Sprintf("case %d: reward and bound", k), r.Reward, r.Bound, 1e-9)
		if r.Cost > 1+1e-9 {
			t.Errorf("case %d costs %v", k, r.Cost)
		}
	}
	// Without decay every crawl finds all there ever was: all arrivals are
	// earned at any budget.
	in := env.Instance{Budget: 1, Sources: []env.Source{env.NewSource("", 3, 1e-12, 1), env.NewSource("", 4, 1e-12, 1)}}
	envtest.Near(t, "bound without decay", Relax(in).Bound, 7, 1e-9)
	// Until the deadline a crawl may wait, and with so few sources all are found in time.
	day := env.Objective{Law: env.LawDeadline, Time: 24 * time.Hour}
	if r := Relax(env.Paper(1).WithObjective(day, time.Hour)); r.Price != 0 {
		t.Errorf("budget is left over, and has the price %v", r.Price)
	}
}

func BenchmarkRelax(b *testing.B) {
	in := env.Lognormal(100_000, 5000, 1)
	for b.Loop() {
		Relax(in)
	}
}
