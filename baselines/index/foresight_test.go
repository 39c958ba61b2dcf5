package index_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
)

// future is what sources publish, and the terms of crawls.
type future struct {
	arrivals [][]env.Arrival
	decay    float64 // per epoch
	costs    []float64
	budget   float64
	epochs   int
}

func (f future) bound() float64 {
	bound, _ := index.Foresight(f.arrivals, f.decay, f.costs, f.budget, f.epochs)
	return bound
}

func drawFuture(t *rapid.T, sources, epochs int) (f future) {
	f.decay = rapid.SampledFrom([]float64{0, .01, .2, 1, 40}).Draw(t, "decay")
	f.epochs = epochs
	for range sources {
		var of []env.Arrival
		for n := range f.epochs + 1 { // one more, which does not count
			if interest := rapid.IntRange(-3, 9).Draw(t, "interest"); interest >= 0 {
				of = append(of, env.Arrival{Epoch: n, Interest: float64(interest)})
			}
		}
		f.arrivals = append(f.arrivals, of)
		f.costs = append(f.costs, rapid.SampledFrom([]float64{.5, 1, 2}).Draw(t, "cost"))
	}
	f.budget = rapid.SampledFrom([]float64{.5, 1, 1.5, 3}).Draw(t, "budget")
	return f
}

// finds returns what a crawl of epoch t finds after one of epoch from, −1 for none.
func (f future) finds(i, from, t int) (interest float64) {
	for _, a := range f.arrivals[i] {
		if a.Epoch > from && a.Epoch <= t {
			interest += a.Interest * math.Exp(-f.decay*float64(t-a.Epoch))
		}
	}
	return interest
}

// plan returns what the best crawls of a source earn beyond their charge, and when they are,
// looking at each crawl after each other.
func (f future) plan(i int, charge float64) (earned float64, crawls []int) {
	var at, before []int
	var all, best []float64 // all: what there would be without a crawl
	last := -1
	for t, a := range f.arrivals[i] {
		if a.Epoch >= f.epochs {
			break
		}
		at, all = append(at, a.Epoch), append(all, a.Interest)
		fade := func(from int) float64 { return math.Exp(-f.decay*float64(at[t]-at[from])) * all[from] }
		if t > 0 {
			all[t] += fade(t - 1)
		}
		best, before = append(best, all[t]-charge), append(before, -1)
		for from := range t {
			if b := best[from] + all[t] - fade(from) - charge; b > best[t] {
				best[t], before[t] = b, from
			}
		}
		if best[t] > earned {
			earned, last = best[t], t
		}
	}
	for ; last >= 0; last = before[last] {
		crawls = append(crawls, at[last])
	}
	slices.Reverse(crawls)
	return earned, crawls
}

// dual returns the upper bound at a price.
func (f future) dual(price float64) float64 {
	sum := price * f.budget
	for i, cost := range f.costs {
		if cost <= f.budget {
			earned, _ := f.plan(i, price*cost)
			sum += earned / float64(f.epochs)
		}
	}
	return sum
}

// The bound is the least value of the dual, and the value at its price: the search among all
// crawls before finds as much as the one among those that may still get ahead.
func TestForesightIsTheLeastDual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFuture(t, 3, 30)
		bound, price := index.Foresight(f.arrivals, f.decay, f.costs, f.budget, f.epochs)
		envtest.Near(t, "the dual at its price", bound, f.dual(price), 1e-9)
		lo, hi := 0., 1000.
		for range 60 { // the dual is convex
			if a, b := lo+(hi-lo)/3, hi-(hi-lo)/3; f.dual(a) < f.dual(b) {
				hi = b
			} else {
				lo = a
			}
		}
		envtest.Near(t, "the bound", bound, f.dual(lo), 1e-6)
	})
}

// No schedule that keeps the budget at each epoch earns more, of all that there are, and one does
// earn the bound where the budget pays for every crawl.
func TestForesightBoundsEverySchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFuture(t, rapid.IntRange(1, 2).Draw(t, "sources"), 5)
		n := len(f.costs)
		last := slices.Repeat([]int{-1}, n)
		var most func(epoch int) float64
		most = func(epoch int) (best float64) {
			if epoch == f.epochs {
				return 0
			}
			for set := range 1 << n {
				before := slices.Clone(last)
				var earned, cost float64
				for i := range n {
					if set>>i&1 == 1 {
						earned += f.finds(i, last[i], epoch)
						cost += f.costs[i]
						last[i] = epoch
					}
				}
				if cost <= f.budget {
					best = max(best, earned+most(epoch+1))
				}
				copy(last, before)
			}
			return best
		}
		earned, bound := most(0)/float64(f.epochs), f.bound()
		if earned > bound*(1+1e-12) {
			t.Fatalf("a schedule earns %v, the bound is %v", earned, bound)
		}
		if f.budget == 3 && n == 1 {
			envtest.Near(t, "the bound of a budget for all", bound, earned, 1e-9)
		}
	})
}

// A greater budget never lowers the bound, and each unit of it brings less than the one before.
func TestForesightRisesWithTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFuture(t, 3, 20)
		f.costs = slices.Repeat([]float64{.5}, len(f.costs)) // the least budget pays for each
		var bounds []float64
		for _, f.budget = range []float64{.5, 1, 1.5} {
			bounds = append(bounds, f.bound())
		}
		if d, e := bounds[1]-bounds[0], bounds[2]-bounds[1]; e < -1e-9 || d < e-1e-8 {
			t.Fatalf("budgets of .5, 1 and 1.5 have the bounds %v", bounds)
		}
	})
}

// newPlanned returns the policy that crawls first what the plans of the price say, as soon as the
// budget allows, and then where most waits.
func newPlanned(f future, in env.Instance, price float64) env.Agent {
	due := make([][]int, len(f.costs))
	for i, cost := range f.costs {
		_, due[i] = f.plan(i, price*cost)
	}
	return env.NewAgent(baselines.NewByIndex(in.Terms(), func(key []float64, o *env.Observed) {
		for i, at := range due {
			for len(at) > 0 && at[0] <= o.Last[i] {
				at = at[1:]
			}
			if due[i], key[i] = at, o.State[i]; len(at) > 0 && at[0] <= o.Epoch {
				key[i] += 1e12
			}
		}
	}))
}

// recordings are those of the shared data, with how near a plan comes to the bound.
var recordings = []struct {
	name    string
	planned float64
}{{"hn", .999}, {"fbmedia2016", .95}}

// On recordings no policy earns more than the bound, neither one that knows what waits everywhere
// nor one that knows what will come, which shows how near one can come to the bound. The faster
// interest is lost, the lower is the bound.
func TestForesightOnRecordings(t *testing.T) {
	envtest.Alone(t)
	for _, x := range recordings {
		t.Run(x.name, func(t *testing.T) {
			path := filepath.Join("..", "..", "..", "shared", "data", "trace_"+x.name+".csv.gz")
			if _, err := os.Stat(path); err != nil {
				t.Skipf("needs the recording: %v", err)
			}
			rec := must(env.ReadRecording(context.Background(), path))
			o := env.ReplayOptions{Epoch: time.Hour, Budget: 5, State: true}
			foresight := func(decay float64) (f future, bound, price float64) {
				o.Decay = decay
				costs := slices.Repeat([]float64{1}, len(rec.Names))
				f = future{must(rec.Arrivals(o)), decay, costs, o.Budget, must(rec.Epochs(o))}
				began := time.Now()
				bound, price = index.Foresight(f.arrivals, f.decay, f.costs, f.budget, f.epochs)
				t.Logf("decay %v: bound %.2f, price %.2f, in %v", decay, bound, price, time.Since(began))
				return f, bound, price
			}
			_, slow, _ := foresight(.05)
			_, fast, _ := foresight(.6)
			f, bound, price := foresight(.175)
			if slow < bound || bound < fast {
				t.Errorf("at decays of .05, .175 and .6 the bounds are %v, %v and %v", slow, bound, fast)
			}
			in := must(rec.Fit(o))
			played := in // with the means of the part that is played
			played.Sources = slices.Clone(in.Sources)
			var items int
			for i := range played.Sources {
				var count, sum float64
				for _, p := range rec.Of(i) {
					if 2*p.At >= rec.First+rec.Last {
						count, sum = count+1, sum+p.Utility
					}
				}
				items += int(count)
				name := in.Sources[i].Name
				played.Sources[i] = env.NewSource(name, count/float64(f.epochs), o.Decay, sum/max(count, 1))
			}
			t.Logf("%d items in %d epochs", items, f.epochs)
			for _, p := range []struct {
				name  string
				agent env.Agent
				least float64
			}{
				{"round robin", env.NewAgent(baselines.NewRoundRobin(in.Terms())), 0},
				{"Whittle", env.NewAgent(baselines.NewWhittle(in)), 0},
				{"Whittle with the means of this part", env.NewAgent(baselines.NewWhittle(played)), 0},
				{"greedy", env.NewAgent(baselines.NewGreedy(in)), 0},
				{"what waits", env.NewAgent(baselines.NewMyopicObserved(in)), 0},
				{"Whittle of what waits", env.NewAgent(baselines.NewWhittleObserved(in, false)), 0},
				{"the plan", newPlanned(f, in, price), x.planned},
			} {
				w := must(env.NewReplay(rec, in, o))
				share := stat.Mean(envtest.Play(t, w, p.agent, 0), nil) / bound
				t.Logf("%s earns %.4f of the bound", p.name, share)
				if share > 1 || share < p.least {
					t.Errorf("%s earns %v of the bound; want at most 1 and at least %v", p.name, share, p.least)
				}
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
