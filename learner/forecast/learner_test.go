package forecast

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/envtest"
)

var full = flag.Bool("full", false, "run the targets with all their seeds and print a table")

// rewards runs an agent in a Poisson world and returns the reward of each epoch.
func rewards(t testing.TB, in env.Instance, seed uint64, o env.PoissonOptions, a env.Agent, epochs int) []float64 {
	t.Helper()
	return envtest.Play(t, envtest.Poisson(t, in, seed, o, a), a, epochs)
}

// turn is one world until an epoch and another from then on. Both go on
// together: what waits depends on the epoch and the last crawls only.
type turn struct {
	env.World
	after env.World
	at    int
}

func (w *turn) Step(crawl []int) ([]env.Crawled, error) {
	now, later := w.World, w.after
	if w.View().Epoch >= w.at {
		now, later = later, now
	}
	if _, err := later.Step(crawl); err != nil {
		return nil, err
	}
	return now.Step(crawl)
}

// turned is rewards where the sources become others at an epoch.
func turned(
	t testing.TB, in, after env.Instance, at int, seed uint64, o env.PoissonOptions, a env.Agent, epochs int,
) []float64 {
	t.Helper()
	before, then := envtest.Poisson(t, in, seed, o, a), envtest.Poisson(t, after, seed, o, a)
	return envtest.Play(t, &turn{before, then, at}, a, epochs)
}

// TestTargets holds the learner that knows nothing beforehand against exact Whittle
// with the true parameters, and while it learns against Whittle with estimated
// ones, over the same items: where nothing changes, forgetting and overdue sources
// cost next to nothing.
func TestTargets(t *testing.T) {
	envtest.Alone(t)
	plain := CertaintySettings()
	for _, f := range []struct {
		name    string
		in      func(seed uint64) env.Instance
		short   bool    // runs without -full too
		learned float64 // of Whittle
	}{
		{"paper, 1", func(uint64) env.Instance { return env.Paper(1) }, true, .99},
		{"paper, 2", func(uint64) env.Instance { return env.Paper(2) }, false, .99},
		{"lognormal 50, 10", func(s uint64) env.Instance { return env.Lognormal(50, 10, s) }, true, .99},
		{"mixed 50, 10", func(s uint64) env.Instance { return env.Mixed(50, 10, s) }, false, .99},
		{"wide 100, 10", func(s uint64) env.Instance { return env.Wide(100, 10, s) }, false, .99},
	} {
		seeds, steps := uint64(1), 1500
		if *full {
			seeds, steps = 5, 5000
		} else if !f.short {
			continue
		}
		for _, marks := range []env.Marks{env.MarksConstant, env.MarksPerItem} {
			var learned, learning float64
			for seed := uint64(1); seed <= seeds; seed++ {
				in, o := f.in(seed), env.PoissonOptions{Marks: marks}
				l := newLearner(in.Terms(), nil)
				earn := func(p env.Policy[env.Online], seed uint64) float64 {
					return floats.Sum(rewards(t, in, seed, o, env.NewAgent(p), steps))
				}
				learning += earn(l, seed) / earn(newLearner(in.Terms(), &plain), seed) / float64(seeds)
				whittle := rewards(t, in, seed+1000, o, env.NewAgent(baselines.NewWhittle(in)), steps)
				learned += earn(l.Frozen(), seed+1000) / floats.Sum(whittle) / float64(seeds)
			}
			if *full {
				fmt.Printf("| %s | %s | %.4f | %.4f |\n", f.name, marks, learned, learning)
			}
			if learned < f.learned || learning < .9965 {
				t.Errorf("%s, marks %s: learned earns %.4f of Whittle, learning %.4f of certainty; want %.4f and .9965",
					f.name, marks, learned, learning, f.learned)
			}
		}
	}
}

// TestPacking: crawls of unequal cost are packed into the budget, which exact
// Whittle's order of the index does not do.
func TestPacking(t *testing.T) {
	in := env.Mixed(50, 5, 1)
	l := newLearner(in.Terms(), nil)
	rewards(t, in, 1, env.PoissonOptions{}, env.NewAgent(l), 3000)
	got := floats.Sum(rewards(t, in, 2, env.PoissonOptions{}, env.NewAgent(l.Frozen()), 2000))
	want := floats.Sum(rewards(t, in, 2, env.PoissonOptions{}, env.NewAgent(baselines.NewWhittle(in)), 2000))
	if got < 1.005*want {
		t.Errorf("learned earns %.4f of Whittle; want 1.005", got/want)
	}
}

// TestOnlineChange: at epoch 5000 the sources of Table I change places. The
// learner earns 97 % of what Whittle with the new parameters earns
// within 1400 epochs.
func TestOnlineChange(t *testing.T) {
	envtest.Alone(t)
	in, after := env.Paper(1), env.Paper(1)
	o := env.PoissonOptions{Marks: env.MarksPerItem}
	for i := range in.Sources {
		s := in.Sources[3-i]
		s.Decay = in.Sources[i].Decay
		after.Sources[i] = s
	}
	l := newLearner(in.Terms(), nil)
	got := turned(t, in, after, 5000, 1, o, env.NewAgent[env.Online](l), 7000)
	old := turned(t, in, after, 5000, 1, o, env.NewAgent(baselines.NewWhittle(in)), 7000)
	want := turned(t, in, after, 5000, 1, o, env.NewAgent(baselines.NewWhittle(after)), 7000)
	for _, c := range []struct {
		from, to int
		with     []float64
		share    float64
	}{{1000, 5000, old, .99}, {6400, 7000, want, .97}} {
		if r := floats.Sum(got[c.from:c.to]) / floats.Sum(c.with[c.from:c.to]); r < c.share {
			t.Errorf("epochs %d to %d: %.4f of Whittle with the parameters in force; want %v", c.from, c.to, r, c.share)
		}
	}
}

// TestDrift: where interest comes to be lost at another rate, no source is thought to
// be worth more than the best by far, as it would be from one line through the items
// before and after, and what is learned is as good as what is known.
func TestDrift(t *testing.T) {
	marked := newLearner(env.Drift(50, 2, 4).Terms(), nil)
	rewards(t, env.Drift(50, 2, 4), 4, env.PoissonOptions{Marks: env.MarksPerItem}, env.NewAgent(marked), 4000)
	if share := marked.est.Found / marked.est.Foretold; share < .5 {
		t.Errorf("items are worth %.3g of what is foretold of them; of exponential ln ξ as of a normal one it is .78",
			share)
	}
	in := env.Drift(50, 2, 1)
	l := newLearner(in.Terms(), nil)
	rewards(t, in, 1, env.PoissonOptions{}, env.NewAgent(l), 5000)
	var best float64
	for _, p := range in.Phases() {
		for _, s := range p.Instance.Sources {
			best = max(best, s.Rate*s.Interest)
		}
	}
	for i := range in.Sources {
		if _, b, _ := l.Estimate(i); b > 3*best {
			t.Errorf("source %d: inflow %.3g; the best source has %.3g", i, b, best)
		}
	}
	now := in.Phases()[4].Instance
	earn := func(p env.Policy[env.Online]) float64 {
		return floats.Sum(rewards(t, now, 2, env.PoissonOptions{}, env.NewAgent(p), 500))
	}
	whittle := floats.Sum(rewards(t, now, 2, env.PoissonOptions{}, env.NewAgent(baselines.NewWhittle(now)), 500))
	if share := earn(l.Frozen()) / whittle; share < .98 {
		t.Errorf("learned earns %.3f of Whittle after the change; want .98", share)
	}
}

// TestSharedMarks: where the items of an epoch share a mark, a crawl of bad ones does
// not make the best source worthless.
func TestSharedMarks(t *testing.T) {
	in, marks := envtest.RandomInstance(1210, false) // 229 items of mean 1.03 per epoch
	l := newLearner(in.Terms(), nil)
	a := env.NewAgent(l)
	w := envtest.Poisson(t, in, 1210, env.PoissonOptions{Items: true, Marks: marks}, a)
	for n := range 3000 {
		step(t, w, a)
		if _, b, _ := l.Estimate(0); b < 50 && n > 100 {
			t.Fatalf("epoch %d: an inflow of %.3g is foretold; want 236", n, b)
		}
	}
}

// TestOnlineAppear: a source that is silent for 2000 epochs and then becomes
// the best one is found, and one that falls silent is given up.
func TestOnlineAppear(t *testing.T) {
	in := env.Lognormal(20, 4, 2)
	in.Sources[7] = env.NewSource("7", 0, .3, 5)
	in.Sources[3] = env.NewSource("3", 300, .3, 5)
	var o env.PoissonOptions
	after := in
	after.Sources = append([]env.Source(nil), in.Sources...)
	after.Sources[7].Rate, after.Sources[3].Rate = 300, 0
	set := DefaultSettings()
	set.Horizon = 300
	l := newLearner(in.Terms(), &set)
	got := turned(t, in, after, 2000, 1, o, env.NewAgent[env.Online](l), 4000)
	want := turned(t, in, after, 2000, 1, o, env.NewAgent(baselines.NewWhittle(after)), 4000)
	if r := floats.Sum(got[3000:]) / floats.Sum(want[3000:]); r < .95 {
		t.Errorf("1000 epochs after the change: %.4f of Whittle with the parameters in force; want .95", r)
	}
}

// TestRareItems: of a source with some items in thousands of epochs the decay is
// thought to be that of the others. If it is slower by far, an old item must not be
// taken for one that was beyond all when it was new.
func TestRareItems(t *testing.T) {
	in := env.Instance{ID: "rare", Budget: 1, Sources: []env.Source{
		env.NewSource("slow", .0016685723971374426, .0001470789185989788, 1.4892996012928312),
		env.NewSource("rare", .005434165327996486, .2910676578358209, 1.2426277151590202),
		env.NewSource("busy", .9380304694272221, .08345589755820915, 2.6281649914986103),
	}}
	for _, seed := range []uint64{3, 5, 18, 22, 30, 34, 39, 40, 182} {
		l := newLearner(in.Terms(), nil)
		a := env.NewAgent(l)
		w := envtest.Poisson(t, in, seed, env.PoissonOptions{Items: true, Marks: env.MarksPerItem}, a)
		for n := range 3000 {
			step(t, w, a)
			if _, b, _ := l.Estimate(0); b > 10 && n > 10 { // by then the first items have shown the scale
				t.Errorf("seed %d, epoch %d: an inflow of %.3g is foretold of a source with %.3g",
					seed, n, b, in.Sources[0].Rate*in.Sources[0].Interest)
				break
			}
		}
	}
}

// TestForeignState: states of other terms are refused.
func TestForeignState(t *testing.T) {
	in := env.Paper(1)
	l := newLearner(in.Terms(), nil)
	rewards(t, in, 1, env.PoissonOptions{}, env.NewAgent[env.Online](l), 50)
	s := l.State()
	s.Estimates.Sources = s.Estimates.Sources[1:]
	if err := newLearner(in.Terms(), nil).SetState(s); err == nil {
		t.Error("a state of fewer sources is taken up")
	}
	if err := newLearner(in.Terms(), nil).SetState(l.State()); err != nil {
		t.Error(err)
	}
}

// TestBadSettings: a setting that is out of its range is an error.
func TestBadSettings(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*Settings)
	}{
		{"optimism", func(s *Settings) { s.Optimism = 11 }},
		{"horizon", func(s *Settings) { s.Horizon = -1 }},
		{"longest", func(s *Settings) { s.Longest = math.NaN() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := DefaultSettings()
			tt.spoil(&s)
			if l, err := New(env.Paper(1).Terms(), &s); err == nil || l != nil {
				t.Errorf("%+v is taken; want an error", s)
			}
		})
	}
}

// TestPriceOfReturned: sources that come back after a long time, with an index far above the others,
// do not raise the least price by which others sleep.
func TestPriceOfReturned(t *testing.T) {
	const n, returned, back = 60, 30, 1000 // from which source and epoch on one comes back after the other
	terms := env.Terms{Costs: slices.Repeat([]float64{1}, n), Budget: 1, Length: 300, Objective: env.Delay}
	l := newLearner(terms, nil)
	limits := &env.Limits{Budget: 1, NotBefore: make([]int, n)}
	o := &env.Online{Last: slices.Repeat([]int{-1}, n), Limits: limits}
	var before float64
	for o.Epoch < back+n-returned {
		if o.Epoch == 200 {
			for i := returned; i < n; i++ {
				limits.NotBefore[i] = back + i - returned
			}
		}
		if o.Epoch == back {
			before = l.Low
		}
		var crawls []env.Crawled
		for _, i := range l.Select(nil, o) {
			c := env.Crawled{Source: i, Age: o.Age(i)}
			for at := o.Epoch - c.Age + 1; at <= o.Epoch; at++ {
				if at%20 == i%20 {
					c.Items = append(c.Items, env.Item{Age: float64(o.Epoch-at) + .5, Interest: 1})
				}
			}
			crawls = append(crawls, c)
		}
		for _, c := range crawls {
			o.Last[c.Source] = o.Epoch
		}
		o.Epoch++
		l.Update(crawls, o)
	}
	if l.Low > 2*before || before == 0 {
		t.Errorf("the least price is %v when sources come back, and then %v", before, l.Low)
	}
}

// TestLongest: next to a source that the index always prefers, all others are
// crawled once by their share of the budget, and no source waits longer than it is
// given, unless that asks for more than the share.
func TestLongest(t *testing.T) {
	const n = 20
	for _, c := range []struct {
		longest float64
		waits   int // the longest wait after the first crawls
	}{{0, 1000}, {200, 200}, {10, 76}, {never, math.MaxInt}} {
		in := env.Instance{ID: "one", Budget: 1}
		for i := range n {
			in.Sources = append(in.Sources, env.NewSource("", 1, 1, 1+1e4*float64(i/(n-1))))
		}
		set := DefaultSettings()
		set.Longest = c.longest
		a := env.NewAgent(newLearner(in.Terms(), &set))
		w := envtest.Poisson(t, in, 1, env.PoissonOptions{}, a)
		longest, first := 0, 0
		for epoch := range 3000 {
			for _, cr := range step(t, w, a) {
				if v := w.View(); cr.Age == epoch+1 {
					first = max(first, v.Epoch)
				} else {
					longest = max(longest, cr.Age)
				}
			}
		}
		for i, last := range w.View().Last {
			if last < 0 {
				t.Errorf("longest %v: source %d is never crawled", c.longest, i)
			}
		}
		if c.longest != never && (longest > c.waits+n/overdueShare || longest < c.waits) || first > n/overdueShare+n {
			t.Errorf("longest %v: sources wait for %d epochs and are first crawled until epoch %d; want %d, %v",
				c.longest, longest, first, c.waits, n/overdueShare)
		}
	}
}

// step has the agent crawl once.
func step(t testing.TB, w env.World, a env.Agent) []env.Crawled {
	got, err := w.Step(a.Select(nil, w.View()))
	if err != nil {
		t.Fatal(err)
	}
	a.Update(got, w.View())
	return got
}

func newLearner(t env.Terms, set *Settings) *Learner {
	l, err := New(t, set)
	if err != nil {
		panic(err)
	}
	return l
}
