package baselines

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"pgregory.net/rapid"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// residual returns the greatest violation of the conditions of Karush, Kuhn and
// Tucker: of R′(f) = λC for 0 < f < 1, ≤ at 0 and ≥ at 1, relative to H(∞), and of
// ΣCf = M, or ≤ at price 0, relative to M.
func (a Allocation) residual(in env.Instance) float64 {
	worst := math.Abs(a.Cost-in.Budget) / in.Budget
	if a.Price == 0 {
		worst = math.Max(0, a.Cost-in.Budget) / in.Budget
	}
	for i, s := range in.Sources {
		y, f := newYield(s, a.Spread), a.Frequency[i]
		if y.top == 0 || !env.Fits(s.Cost, in.Budget) {
			continue
		}
		// R is not concave everywhere, nor smooth at the window; what a little
		// more or less would earn at the price shows it.
		for _, other := range []float64{f * .99, math.Min(1, f*1.01), 1, f / 4} {
			gain := y.reward(other) - y.reward(f) - a.Price*s.Cost*(other-f)
			worst = math.Max(worst, gain/y.top)
		}
	}
	return worst
}

func TestAllocationKKT(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := envtest.DrawInstance(t, 1, 12, rapid.Bool().Draw(t, "costs"), true)
		if rapid.Bool().Draw(t, "laws") {
			for i := range in.Sources {
				in.Sources[i].Law = rapid.SampledFrom([]env.Law{env.LawExponential, env.LawPower, env.LawHump}).Draw(t, "law")
			}
		}
		var rewards []float64
		for _, d := range []Spread{EvenSpread, RandomSpread} {
			a := Allocate(in, d)
			if r := a.residual(in); !(r < 1e-12) {
				t.Fatalf("spread %d: residual %g of %+v for %+v", d, r, a, in)
			}
			rewards = append(rewards, a.Reward)
			for i := range in.Sources {
				if !in.Terms().Affordable(i) && a.Frequency[i] != 0 {
					t.Fatalf("spread %d: source %d, whose crawl is above the budget, has %v crawls per epoch", d, i, a.Frequency[i])
				}
			}
		}
		// Even gaps of any real length earn at least what whole epochs do, and
		// those at least what random gaps do.
		bound, _ := index.Bound(in)
		if !(rewards[0] >= bound*(1-1e-9) && bound >= rewards[1]*(1-1e-3)) {
			t.Fatalf("even %v, whole epochs %v, random %v are out of order", rewards[0], bound, rewards[1])
		}
	})
}

// R′ against finite differences and its inverse, and the randomised R against
// the sum over geometric ages, for any law; the closed forms against the sums.
func TestSpreadReward(t *testing.T) {
	sources := env.Paper(1).Sources
	for _, law := range []env.Law{env.LawPower, env.LawHump} {
		s := env.NewSource(string(law), 20, .4, 1)
		s.Law = law
		sources = append(sources, s)
		s.Window = 5.5
		sources = append(sources, s)
	}
	for _, s := range sources {
		for _, f := range []float64{0.02, 0.2, 0.5, 0.9} {
			y := newYield(s, RandomSpread)
			var sum float64
			for age := 1; age < 5000; age++ {
				sum += f * math.Pow(1-f, float64(age-1)) * f * s.Harvest(float64(age))
			}
			tol := 1e-10
			if !y.closed {
				tol = 1e-3
			}
			envtest.Near(t, s.Name+": randomised reward", y.reward(f), sum, tol)
			general := y
			if y.closed {
				s.Window = 1e9 // which is none
				general = newYield(s, RandomSpread)
				envtest.Near(t, s.Name+": closed and general form", general.reward(f), sum, 1e-3)
				s.Window = math.Inf(1)
			}
			slope := fd.Derivative(general.reward, f, &fd.Settings{Formula: fd.Central, Step: 1e-5})
			envtest.Near(t, s.Name+": slope", general.slope(f), slope, 1e-6)
			if slope > 0 {
				envtest.Near(t, s.Name+": frequency at the slope", general.at(general.slope(f)), f, 1e-9)
			}
		}
		even := newYield(s, EvenSpread)
		envtest.Near(t, "even reward every 3 epochs", even.reward(1./3), s.Harvest(3)/3, 1e-14)
	}
}

// What the schedules earn on Table I, of the bound.
func TestSchedulesOnTableI(t *testing.T) {
	for _, c := range []struct{ budget, even, random float64 }{
		{1, 0.99999, 0.910}, {2, 0.9991, 0.978}, {3, 0.9994, 0.992},
	} {
		in := env.Paper(c.budget)
		bound, _ := index.Bound(in)
		f := Allocate(in, EvenSpread).Frequency
		even := longRun(t, in, NewEvenSchedule(in.Terms(), f), 1000, 20_000) / bound
		random := longRun(t, in, NewRandomSchedule(in.Terms(), Allocate(in, RandomSpread).Frequency, stream.New(1, stream.Test)), 1000, 20_000) / bound
		t.Logf("budget %v: of the bound, even %.5f, random %.5f", c.budget, even, random)
		if math.Abs(even-c.even) > 2e-4 || math.Abs(random-c.random) > 4e-3 {
			t.Errorf("budget %v: even %.5f, random %.5f of the bound; want %+v", c.budget, even, random, c)
		}
	}
}

func TestRandomSchedule(t *testing.T) {
	in := env.Paper(2)
	a := Allocate(in, RandomSpread)
	out := play(t, mean(t, in, false), NewRandomSchedule(in.Terms(), a.Frequency, stream.New(1, stream.Test)), 100, 100_000)
	for i, f := range a.Frequency {
		// Five standard errors, at most.
		if math.Abs(out.crawls[i]-f) > 5*math.Sqrt(0.25/100_000) {
			t.Errorf("source %d is crawled %v times per epoch, want %v", i+1, out.crawls[i], f)
		}
	}
	if math.Abs(out.cost-2) > 1e-12 {
		t.Errorf("%v crawls per epoch, want exactly 2 at each", out.cost)
	}
	envtest.Near(t, "reward", out.reward, a.Reward, 2e-3)

	rapid.Check(t, func(t *rapid.T) {
		in := envtest.DrawInstance(t, 2, 10, true, true)
		a := Allocate(in, RandomSpread)
		// The world refuses crawls over the budget.
		play(t, mean(t, in, false), NewRandomSchedule(in.Terms(), a.Frequency, stream.New(2, stream.Test)), 0, 100)
	})
}
