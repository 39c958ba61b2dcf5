package lspe

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

var update = flag.Bool("update", false, "write the golden files")

var full = flag.Bool("full", false, "run the targets with all their seeds and print a table")

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newModel(in env.Instance, set *Settings, r *stream.Rand) *Learner { return must(New(in, set, r)) }

// earn runs a policy in the mean dynamics and returns its mean reward.
func earn(t testing.TB, in env.Instance, p env.Policy[env.Model], epochs int) float64 {
	t.Helper()
	w, err := env.NewMean(in, false)
	if err != nil {
		t.Fatal(err)
	}
	return stat.Mean(envtest.Play(t, w, env.NewAgent(p), epochs), nil)
}

// ratios returns what the learned policy and the learner itself earn over what
// exact Whittle earns.
func ratios(t testing.TB, in env.Instance, seed uint64, steps, epochs int, set *Settings) (learned, learning float64, l *Learner) {
	t.Helper()
	l = newModel(in, set, stream.New(seed, stream.Policy))
	learning = earn(t, in, l, steps) / earn(t, in, baselines.NewWhittle(in), steps)
	learned = earn(t, in, l.Frozen(), epochs) / earn(t, in, baselines.NewWhittle(in), epochs)
	return learned, learning, l
}

// TestPricedLargest is the largest instance of the targets with few epochs.
func TestPricedLargest(t *testing.T) {
	envtest.Alone(t)
	for _, budget := range []float64{1, 50, 999} {
		learned, _, _ := ratios(t, env.Lognormal(1000, budget, 1), 1, 3000, 1000, nil)
		if learned < .97 {
			t.Errorf("1000 sources, budget %v: learned earns %.4f of Whittle after 3000 epochs; want .97", budget, learned)
		}
	}
}

// TestManySources: where a crawl is for very many sources, noise does not decide
// what is crawled. With κ as for few the learner earns .82 and .07 here.
func TestManySources(t *testing.T) {
	envtest.Alone(t)
	in := env.Lognormal(20_000, 20, 1)
	l := newModel(in, nil, stream.New(1, stream.Policy))
	if share := earn(t, in, l, 500) / earn(t, in, baselines.NewWhittle(in), 500); share < .9 {
		t.Errorf("while it learns, %.4f of Whittle; want .9", share)
	}
}

// dualPrice returns the ends of the interval of prices at which the relaxed
// problem's demand passes the budget.
func dualPrice(in env.Instance) (lo, hi float64) {
	demand := func(price float64) float64 {
		var d float64
		for _, s := range in.Sources {
			if th, _ := bestThreshold(s, price); th > 0 {
				d += s.Cost / float64(th)
			}
		}
		return d
	}
	_, price := index.Bound(in)
	lo, hi = price, price
	for lo > 1e-9 && demand(lo) <= in.Budget {
		lo *= .999
	}
	for demand(hi) >= in.Budget && hi < 1e9 {
		hi = hi*1.001 + 1e-9
	}
	return lo, hi
}

// bestThreshold returns by search the age at which crawling at that price earns
// most per epoch, and what it earns; 0 if never crawling is best.
func bestThreshold(s env.Source, price float64) (age int, profit float64) {
	for k := 1; k < 100000; k++ {
		if v := (s.MeanState(k) - price*s.Cost) / float64(k); v > profit {
			age, profit = k, v
		}
		if (s.Ceiling()-price*s.Cost)/float64(k+1) <= profit {
			break
		}
	}
	return age, profit
}

// TestPricedPrice compares the learned price with the exact optimum of the
// dual, which is an interval where the relaxed demand jumps over the budget.
func TestPricedPrice(t *testing.T) {
	for name, in := range map[string]env.Instance{
		"paper, 1": env.Paper(1), "paper, 2": env.Paper(2), "paper, 3": env.Paper(3),
		"lognormal 50, 10": env.Lognormal(50, 10, 3), "costs 50, 10": env.Mixed(50, 10, 3), "wide 100, 10": env.Wide(100, 10, 3),
	} {
		_, _, l := ratios(t, in, 1, 10000, 1, nil)
		lo, hi := dualPrice(in)
		if got := l.Price(); got < .9*lo || got > 1.1*hi {
			t.Errorf("%s: price %.4g; want [%.4g, %.4g] within a tenth", name, got, lo, hi)
		}
	}
}

// alone trains a learner on one source at a fixed price: in every epoch in
// which its logit says so the source is crawled.
func alone(t testing.TB, s env.Source, price float64, epochs int, change func(s *Settings)) *Learner {
	set := DefaultSettings()
	set.Price, set.Act = "none", "probabilistic"
	change(&set)
	l := newModel(env.Instance{Sources: []env.Source{s}, Budget: s.Cost}, &set, stream.New(1, stream.Test))
	l.price, l.period, l.most = price, 20, 1000 // room for thresholds up to 1000
	o := &env.Model{Online: env.Online{Last: []int{-1}}, Mean: []float64{s.MeanState(1)}}
	for range epochs {
		dst := l.Select(nil, o)
		var crawls []env.Crawled
		for range dst {
			crawls = []env.Crawled{{Interest: o.Mean[0], Age: o.Age(0)}}
			o.Last[0] = o.Epoch
		}
		o.Epoch++
		o.Mean[0] = s.MeanState(o.Age(0))
		l.Update(crawls, o)
	}
	return l
}

// TestPricedFixedPoint holds threshold, profit and index of single sources
// against the exact solution over a grid of (α, u, C, λ).
func TestPricedFixedPoint(t *testing.T) {
	for _, decay := range []float64{.02, .1, .35, 1} {
		for _, gain := range []float64{.5, 180} {
			for _, cost := range []float64{1, 2.5} {
				for _, share := range []float64{.05, .3, .7} {
					s := env.NewSource("", gain*decay/-math.Expm1(-decay), decay, 1)
					s.Cost = cost
					price := share * s.Ceiling() / cost
					want, profit := bestThreshold(s, price)
					p := alone(t, s, price, 20000, func(*Settings) {})
					name := fmt.Sprintf("c %v, u %v, C %v, λ %.3g", decay, gain, cost, price)
					got := p.src[0].Theta
					// What the threshold found would earn is the measure: near
					// the optimum neighbouring ages earn almost the same.
					earns := (s.MeanState(int(got)) - price*cost) / got
					if earns < .995*profit {
						t.Errorf("%s: threshold %v earns %.5g; the best, %d, earns %.5g", name, got, earns, want, profit)
					}
					if eta := p.learned(0); math.Abs(eta-profit) > .03*profit {
						t.Errorf("%s: profit per epoch %.5g; want %.5g", name, eta, profit)
					}
					// Exact: L = x − λC − Ps below the threshold, x(s) − x(s+1) + P above.
					for _, age := range []int{1, want/2 + 1, want, want + 1, 2 * want} {
						x := s.MeanState(age)
						exact := x - s.MeanState(age+1) + profit
						if age < want {
							exact = x - price*cost - profit*float64(age)
						}
						theta, s := p.src[0].Theta, float64(age)
						l := p.excess(0, x, s) * cost
						if s < theta {
							l *= (theta - s) / theta
						} else {
							l /= math.Sqrt(theta * s)
						}
						if math.Abs(l-exact) > .03*(price*cost+profit) {
							t.Errorf("%s, age %d: Lagrangian index %.5g; want %.5g", name, age, l, exact)
						}
					}
				}
			}
		}
	}
}

// TestPricedProfit measures, on single sources, how far the profit per epoch by
// which the index is formed is below that of the best threshold: LSPE(0)
// against the averages alone, when exploration ends and when it goes on.
func TestPricedProfit(t *testing.T) {
	for _, sharpest := range []float64{40, 6} {
		var off [2]float64
		for k, critic := range []string{"lspe", "renewal"} {
			var n float64
			for _, decay := range []float64{.02, .1, .35, 1} {
				for _, share := range []float64{.05, .15, .3, .5} {
					s := env.NewSource("", 100, decay, 1)
					price := share * s.Ceiling()
					if best, profit := bestThreshold(s, price); best > 1 {
						p := alone(t, s, price, 20000, func(s *Settings) { s.Critic, s.KappaMax = critic, sharpest })
						off[k] += math.Abs(p.learned(0)/profit - 1)
						n++
					}
				}
			}
			off[k] /= n
			t.Logf("κ up to %v, critic %s: off by %.2f %%", sharpest, critic, 100*off[k])
		}
		if most := map[float64]float64{40: .005, 6: .08}[sharpest]; off[0] > most {
			t.Errorf("κ up to %v: LSPE(0) is off by %v; allowed is %v", sharpest, off[0], most)
		}
	}
}

// TestPricedIndexNearPrice compares the learned index with the exact Whittle
// index around the learned threshold.
func TestPricedIndexNearPrice(t *testing.T) {
	in := env.Lognormal(50, 10, 3)
	_, _, l := ratios(t, in, 1, 10000, 1, nil)
	for i, s := range in.Sources {
		if th, _ := bestThreshold(s, l.Price()); th == 0 {
			continue
		}
		age := int(l.src[i].Theta)
		exact := index.WhittleAtAge(s, age)
		if math.Abs(exact-l.Price()) > .5*l.Price() {
			continue // not near
		}
		if got := l.Index(i, s.MeanState(age), age); math.Abs(got-exact) > .1*l.Price() {
			t.Errorf("source %d at age %d: index %.4g; exact %.4g; price %.4g", i, age, got, exact, l.Price())
		}
	}
}

// TestPricedIndexAbove: the learned index keeps to the exact one for sources that
// waited up to four times their threshold, and stays within [0, x/C].
func TestPricedIndexAbove(t *testing.T) {
	in := env.Lognormal(50, 10, 3)
	_, _, l := ratios(t, in, 1, 10000, 1, nil)
	sources := 0
	for i, s := range in.Sources {
		if th, _ := bestThreshold(s, l.Price()); th == 0 || l.src[i].Theta < 2 {
			continue
		}
		sources++
		for _, times := range []float64{1, 2, 4} {
			age := times * l.src[i].Theta
			x := s.MeanState(int(age))
			exact := index.WhittleAtAge(s, int(age))
			if got := l.worth(i, x, l.excess(i, x, age)); math.Abs(got-exact) > .1*exact {
				t.Errorf("source %d at %v times its threshold: index %.4g; exact %.4g", i, times, got, exact)
			}
		}
	}
	if sources < 5 {
		t.Errorf("%d sources were looked at", sources)
	}
}

// TestPricedBudget takes 10⁶ random decisions with costs and budgets that do
// not divide, views that no world would show included.
func TestPricedBudget(t *testing.T) {
	steps := 1_000_000
	if testing.Short() {
		steps = 50_000
	}
	r := stream.New(7, stream.Test)
	const block = 1000
	var dst []int
	var crawls []env.Crawled
	for done := 0; done < steps; done += block {
		n := 1 + r.Intn(5)
		in := env.Mixed(n, 1, r.Uint64())
		in.Budget = 3 + (in.TotalCost()-3)*r.Float64()
		in.Budget = math.Min(math.Max(in.Budget, .5), in.TotalCost())
		for i := range in.Sources {
			in.Sources[i].Cost = math.Min(in.Sources[i].Cost, in.Budget)
		}
		in.Budget = math.Min(in.Budget, in.TotalCost())
		l := newModel(in, nil, stream.New(uint64(done), stream.Policy))
		o := &env.Model{Mean: make([]float64, n)}
		o.Last = make([]int, n)
		for e := range block {
			o.Epoch = e
			for i, s := range in.Sources {
				o.Last[i] = e - 1 - r.Intn(50)
				o.Mean[i] = 2 * s.Ceiling() * r.Float64()
			}
			dst = l.Select(dst[:0], o)
			var cost float64
			crawls = crawls[:0]
			for _, i := range dst {
				cost += in.Sources[i].Cost
				crawls = append(crawls, env.Crawled{Source: i, Interest: o.Mean[i], Age: o.Age(i)})
			}
			if !env.Fits(cost, in.Budget) {
				t.Fatalf("epoch %d: crawls cost %v; the budget is %v", done+e, cost, in.Budget)
			}
			l.Update(crawls, o)
		}
		for i := range in.Sources {
			if v := l.Threshold(i) + l.Price() + l.InverseIndex(i); math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("epoch %d: source %d: threshold %v, price %v", done, i, l.Threshold(i), l.Price())
			}
		}
	}
}

// TestPricedState: a state that no learner has is refused.
func TestPricedState(t *testing.T) {
	in := env.Mixed(8, 5, 1)
	a, b := newModel(in, nil, stream.New(3, stream.Policy)), newModel(in, nil, stream.New(99, stream.Policy))
	earn(t, in, a, 500)
	for want, change := range map[string]func(s *State){
		"epochs is -7; allowed is a finite number of 0 or more": func(s *State) { s.Epochs = -7 },
		"price is -1; allowed is a finite number of 0 or more":  func(s *State) { s.Price = -1 },
		"threshold has 0 entries; allowed are 8":                func(s *State) { s.Threshold = nil },
		"threshold has 1e+300 at place 0; allowed are 0 to":     func(s *State) { s.Threshold = []float64{1e300, 0, 0, 0, 0, 0, 0, 0} },
		"work has NaN at place 1; allowed are finite numbers":   func(s *State) { s.Work[1] = math.NaN() },
		"critic: weights has 3 entries; allowed are 32":         func(s *State) { s.Critic.Weights = s.Critic.Weights[:3] },
		"random stream: ": func(s *State) { s.Rand = s.Rand[:3] },
	} {
		s := a.State()
		change(&s)
		if err := b.SetState(s); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v; want %q", err, want)
		}
	}
}

// TestPricedScale: another unit of interest changes nothing but the unit.
func TestPricedScale(t *testing.T) {
	in := env.Paper(2)
	a := newModel(in, nil, stream.New(3, stream.Policy))
	x := earn(t, in, a, 1000)
	for _, e := range []int{20, 200, -200} {
		unit := math.Ldexp(1, e)
		other := env.Paper(2)
		for i := range other.Sources {
			other.Sources[i].Interest *= unit
		}
		b := newModel(other, nil, stream.New(3, stream.Policy))
		y := earn(t, other, b, 1000)
		if math.Abs(y/x/unit-1) > 1e-9 || math.Abs(b.Price()/a.Price()/unit-1) > 1e-6 || b.InverseIndex(0) != a.InverseIndex(0)*unit {
			t.Errorf("reward %v and %v, price %v and %v in units of 1 and 2^%d", x, y, a.Price(), b.Price(), e)
		}
	}
}

// TestPricedGolden holds the trajectory of a seed.
func TestPricedGolden(t *testing.T) {
	in := env.Mixed(6, 4, 11)
	l := newModel(in, nil, stream.New(5, stream.Policy))
	var text string
	for range 5 {
		r := earn(t, in, l, 200)
		text += fmt.Sprintf("%d %.9g %.9g", l.State().Epochs, r, l.Price())
		for i := range in.Sources {
			text += fmt.Sprintf(" %.9g", l.Threshold(i))
		}
		text += "\n"
	}
	golden(t, "learner.golden", text)
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("trajectory differs from %s; run with -update if that is meant\ngot:\n%swant:\n%s", path, text, want)
	}
}

func TestPricedAllocs(t *testing.T) {
	in := env.Lognormal(50, 10, 1)
	l := newModel(in, nil, stream.New(1, stream.Policy))
	w, err := env.NewMean(in, false)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]int, 0, 50)
	step := func() {
		dst = l.Select(dst[:0], &w.View().Model)
		got, err := w.Step(dst)
		if err != nil {
			t.Fatal(err)
		}
		l.Update(got, &w.View().Model)
	}
	step()
	if n := testing.AllocsPerRun(200, step); n != 0 {
		t.Errorf("%v allocations per epoch; want 0", n)
	}
}

// learned returns r₁ₓ − λr₁c, P as the critic learned it.
func (l *Learner) learned(i int) float64 {
	return l.src[i].slope - l.price*l.src[i].toll
}

func near(got, want, tol float64) bool { return math.Abs(got-want) <= tol*(1+math.Abs(want)) }

// harvest runs an agent in a Poisson world and returns the reward of each epoch.
func harvest(t testing.TB, in env.Instance, seed uint64, o env.PoissonOptions, a env.Agent, epochs int) []float64 {
	t.Helper()
	return envtest.Play(t, envtest.Poisson(t, in, seed, o, a), a, epochs)
}
