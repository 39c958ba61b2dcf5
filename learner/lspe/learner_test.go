package lspe

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// TestConforms: learner and policy keep the contract and the budget, with equal
// costs and without.
func TestConforms(t *testing.T) {
	for _, in := range []env.Instance{env.Paper(1), env.Paper(2.9), env.Mixed(12, 4.5, 2)} {
		envtest.Policy(t, in, func() env.Policy[env.Online] { return newLearner(t, in, 1, nil) })
		envtest.Policy(t, in, func() env.Policy[env.Online] {
			l := newLearner(t, in, 1, nil)
			newHarvests(in, 1).learn(l, 200)
			return l.Frozen()
		})
	}
}

// A policy that learns no more takes up nothing that crawls brought back.
func TestPolicyHasNoUpdate(t *testing.T) {
	if _, ok := reflect.TypeFor[*Policy]().MethodByName("Update"); ok {
		t.Error("Policy has a method Update")
	}
}

// TestTimeScales: a(n) = o(b(n)) and d(n) = o(a(n)) for the default steps, and
// both sums diverge while those of their squares converge.
func TestTimeScales(t *testing.T) {
	s := DefaultSettings()
	for _, n := range []int{1e2, 1e4, 1e6} {
		if a, b := s.A.At(10*n)/s.B.At(10*n), s.A.At(n)/s.B.At(n); a >= b {
			t.Errorf("a/b is %v at n = %d and %v at %d; want it to fall", b, n, a, 10*n)
		}
		if d, a := s.D.At(10*n)/s.A.At(10*n), s.D.At(n)/s.A.At(n); d >= a {
			t.Errorf("d/a is %v at n = %d and %v at %d; want it to fall", a, n, d, 10*n)
		}
	}
	for _, p := range []float64{s.B.Power, s.A.Power, s.D.Power} {
		if p <= .5 || p > 1 {
			t.Errorf("a power is %v; want above ½ and at most 1", p)
		}
	}
}

// TestRescale: what is learned of a source is linear in its harvests, where the price
// is given in the same unit.
func TestRescale(t *testing.T) {
	in := env.Paper(1)
	l := newLearner(t, in, 1, nil)
	newHarvests(in, 1).learn(l, 200)
	l.between.Level = 1e15 // sources differ: the mean level says nothing of one,
	defer func(prior float64) { levelPrior = prior }(levelPrior)
	levelPrior = 0
	evaluate := func() {
		level, _ := l.level(&l.src[0])
		l.evaluate(0, level)
	}
	for range 10 { // until nothing is left to mend
		evaluate()
	}
	before, crawl := l.Index(0), l.src[0].Crawl
	l.Rescale(0, 3)
	for m, v := range l.src[0].Crawl {
		if v != 3*crawl[m] {
			t.Errorf("weight %d at a crawl is %v after its harvests were tripled, and was %v", m, v, crawl[m])
		}
	}
	l.price *= 3
	if after := l.Index(0); math.Abs(after/before-3) > 1e-12 {
		t.Errorf("an index of %v is %v after its harvests were tripled", before, after)
	}
	evaluate() // finds nothing to mend
	if after := l.Index(0); math.Abs(after/before-3) > 1e-6 {
		t.Errorf("an index of %v is %v when the critic has looked at tripled harvests", before, after)
	}
}

// TestSettings: each setting that is out of its range is refused by its name.
func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*Settings)
	}{
		{"features", func(s *Settings) { s.Features = 4 }},
		{"gamma", func(s *Settings) { s.Gamma = 2 }},
		{"kappa", func(s *Settings) { s.Kappa = 0 }},
		{"kappa_over", func(s *Settings) { s.KappaOver = math.NaN() }},
		{"kappa_max", func(s *Settings) { s.KappaMax = math.Inf(1) }},
		{"kappa_max", func(s *Settings) { s.KappaMax = .02 }}, // with it the price is no number
		{"a", func(s *Settings) { s.A.Scale = -1 }},
		{"b", func(s *Settings) { s.B.Scale = 3 }},
		{"d", func(s *Settings) { s.D.Block = 0 }},
		{"critic", func(s *Settings) { s.Critic = "off" }},
		{"actor", func(s *Settings) { s.Actor = "on" }},
		{"price", func(s *Settings) { s.Price = "none" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := DefaultSettings()
			tt.spoil(&s)
			_, err := New(env.Paper(1).Terms(), &s, stream.New(1, stream.Policy))
			if err == nil || !strings.HasPrefix(err.Error(), tt.name) {
				t.Errorf("error %v; want one that begins with %s", err, tt.name)
			}
		})
	}
}

// TestState: a learner that takes up a state goes on bit for bit, in the first
// pass and after it, through JSON.
func TestState(t *testing.T) {
	in := env.Mixed(30, 4, 1)
	for _, epochs := range []int{2, 500} {
		one, w1 := newLearner(t, in, 1, nil), newHarvests(in, 1)
		two, w2 := newLearner(t, in, 7, nil), newHarvests(in, 1)
		w1.learn(one, epochs)
		w2.learn(newLearner(t, in, 1, nil), epochs)
		newHarvests(in, 2).learn(two, 300) // another life
		data, err := json.Marshal(one.State())
		if err != nil {
			t.Fatal(err)
		}
		var state State
		if err := json.Unmarshal(data, &state); err != nil {
			t.Fatal(err)
		}
		if err := two.SetState(state); err != nil {
			t.Fatal(err)
		}
		w1.learn(one, 400)
		w2.learn(two, 400)
		if a, b := one.State(), two.State(); !reflect.DeepEqual(a, b) || !slices.Equal(w1.view.Last, w2.view.Last) {
			t.Errorf("after %d epochs it goes on otherwise", epochs)
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(*State)
	}{
		{"sources", func(s *State) { s.Sources = s.Sources[1:] }},
		{"weights", func(s *State) { s.Pooled.Weights = nil }},
	} {
		l := newLearner(t, in, 1, nil)
		s := l.State()
		tt.spoil(&s)
		if err := l.SetState(s); err == nil || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("error %v; want one with %s", err, tt.name)
		}
	}
}

// TestFollows: a learner and a policy that come into another world, or to another
// time, take it up from the view.
func TestFollows(t *testing.T) {
	in := env.Lognormal(50, 10, 1)
	l := newLearner(t, in, 1, nil)
	newHarvests(in, 1).learn(l, 3000)
	best := whittle(in, 3000).frozen
	if got := newHarvests(in, 2).learn(l, 3000) / best; got < .97 {
		t.Errorf("in another world the learner earns %.4f of Whittle", got)
	}
	if got := newHarvests(in, 2).follow(l.Frozen(), 0, 3000) / best; got < .98 {
		t.Errorf("in another world its policy earns %.4f of Whittle", got)
	}
}

// TestUnaffordable: a source dearer than the budget is never crawled and counts
// nowhere.
func TestUnaffordable(t *testing.T) {
	in := env.Lognormal(10, 2, 1)
	in.Sources[3].Cost = 2.5
	l := newLearner(t, in, 1, nil)
	w := newHarvests(in, 1)
	w.learn(l, 500)
	w.follow(l.Frozen(), 10, 100)
	if w.view.Last[3] != -1 || !math.IsInf(l.Threshold(3), 1) {
		t.Errorf("it was crawled at %d; its threshold is %v", w.view.Last[3], l.Threshold(3))
	}
}

// TestNothingToFind: where no crawl brings anything all sources are crawled.
func TestNothingToFind(t *testing.T) {
	in := env.Lognormal(10, 2, 1)
	for i := range in.Sources {
		in.Sources[i].Interest = 0
	}
	l := newLearner(t, in, 1, nil)
	w := newHarvests(in, 1)
	w.learn(l, 500)
	for i, last := range w.view.Last {
		if last < 300 || math.IsNaN(l.Threshold(i)) {
			t.Errorf("source %d was crawled at %d; its threshold is %v", i, last, l.Threshold(i))
		}
	}
}

// TestJumps: where all parameters are dealt out anew half-way, almost all of what
// Whittle earns is earned again, as the target of that world asks, and without it
// hardly any jump is seen.
func TestJumps(t *testing.T) {
	envtest.Alone(t)
	var mean shares
	for seed := uint64(1); seed <= 5; seed++ {
		got := play(t, env.Lognormal(50, 10, seed), seed, 10000, 5000, nil)
		mean.frozen, mean.learning = mean.frozen+got.frozen/5, mean.learning+got.learning/5
	}
	if mean.frozen < .985 || mean.learning < .97 {
		t.Errorf("reshuffled: %.4f", mean)
	}
	in := env.Lognormal(50, 10, 3)
	if got := play(t, in, 3, 8000, 4000, nil); got.frozen < .98 || got.learning < .96 {
		t.Errorf("within 4000 epochs of a change %.4f", got.frozen)
	}
	l := newLearner(t, in, 3, nil)
	newHarvests(in, 3).learn(l, 4000)
	if l.changed > 0 {
		t.Errorf("the world has changed at %d", l.changed)
	}
}

// TestScale: interest in other units changes nothing but the units.
func TestScale(t *testing.T) {
	in := env.Lognormal(20, 4, 1)
	big := env.Lognormal(20, 4, 1)
	const by = 1 << 20
	for i := range big.Sources {
		big.Sources[i].Interest *= by
	}
	one, two := newLearner(t, in, 1, nil), newLearner(t, big, 1, nil)
	w1, w2 := newHarvests(in, 1), newHarvests(big, 1)
	w1.learn(one, 1000)
	w2.learn(two, 1000)
	if math.Abs(two.Price()/by/one.Price()-1) > 1e-6 || math.Abs(w2.earned/by/w1.earned-1) > 1e-6 {
		t.Errorf("price %v and %v, earned %v and %v", one.Price(), two.Price()/by, w1.earned, w2.earned/by)
	}
}

// TestAllocs: an epoch allocates nothing once all buffers have grown.
func TestAllocs(t *testing.T) {
	in := env.Lognormal(200, 20, 1)
	l, w := newLearner(t, in, 1, nil), newHarvests(in, 1)
	w.learn(l, 3000)
	var crawl []int
	crawl = append(crawl, make([]int, 200)...)
	if n := testing.AllocsPerRun(500, func() {
		crawl = l.Select(crawl[:0], &w.view)
		l.Update(w.step(crawl), &w.view)
	}); n > .1 {
		t.Errorf("%v allocations an epoch", n)
	}
}

// TestOpen: limits hold while sources come and go.
func TestOpen(t *testing.T) {
	envtest.Open(t, func(terms env.Terms) env.DynamicLearner {
		l, err := New(terms, nil, stream.New(1, stream.Policy))
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
}

// TestComeAndGo: a source that is added is crawled and learned like the others, one
// that is removed is crawled no more, and a state that was saved in between goes on
// bit for bit in a learner of the sources that there are then.
func TestComeAndGo(t *testing.T) {
	in := env.Mixed(30, 6, 1)
	come := in.Sources[20:]
	terms := in.Terms()
	terms.Costs = slices.Clone(terms.Costs[:20])
	learn := func(l *Learner, w *harvests, epochs int) (crawled [30]int) {
		var crawl []int
		for range epochs {
			view := w.view
			view.Last = view.Last[:len(l.src)]
			crawl = l.Select(crawl[:0], &view)
			for _, i := range crawl {
				crawled[i]++
			}
			out := w.step(crawl)
			view = w.view
			view.Last = view.Last[:len(l.src)]
			l.Update(out, &view)
		}
		return crawled
	}
	l, err := New(terms, nil, stream.New(1, stream.Policy))
	if err != nil {
		t.Fatal(err)
	}
	w := newHarvests(in, 1)
	learn(l, w, 300)
	for i, s := range come {
		l.Add(20+i, s.Cost)
	}
	l.Remove(3)
	learn(l, w, 3)
	state := l.State()
	terms.Costs = slices.Clone(in.Terms().Costs)
	terms.Costs[3] = math.Inf(1)
	two, err := New(terms, nil, stream.New(9, stream.Policy))
	if err != nil {
		t.Fatal(err)
	}
	if err := two.SetState(state); err != nil {
		t.Fatal(err)
	}
	w2 := newHarvests(in, 1)
	if err := w2.rand.SetState(w.rand.State()); err != nil {
		t.Fatal(err)
	}
	w2.view = w.view
	w2.view.Last = slices.Clone(w.view.Last)
	crawled := learn(l, w, 2000)
	if again := learn(two, w2, 2000); again != crawled {
		t.Errorf("restored it crawled\n%v, and\n%v had it gone on", again, crawled)
	}
	var plan float64
	for i := range l.src {
		if s := &l.src[i]; s.Theta > 0 {
			plan += l.spends(i, s.Theta)
		}
	}
	if crawled[3] > 0 || slices.Min(crawled[20:]) == 0 || math.Abs(plan/l.plan-1) > 1e-9 {
		t.Errorf("crawls %v, plan %v; the thresholds sum up to %v", crawled, l.plan, plan)
	}
}

// TestNobodyStarves: next to sources that are due at every epoch and use the budget up
// one that becomes due is crawled, even at a price of 0.
func TestNobodyStarves(t *testing.T) {
	in := env.Instance{Sources: slices.Repeat([]env.Source{env.NewSource("", 1000, 3, 1)}, 5), Budget: 4}
	in.Sources[0] = env.NewSource("slow", 5000, 3e-4, 1)
	l, w := newLearner(t, in, 1, nil), newHarvests(in, 1)
	w.learn(l, 1000)
	l.price = 0
	for i := range in.Sources {
		l.src[i].LastTheta = 0
		l.move(i, 1)
	}
	l.move(0, 20)
	w.follow(l.Frozen(), 0, 1000)
	if age := w.view.Age(0); age > 30 {
		t.Errorf("a source with the threshold 20 was not crawled for %d epochs", age)
	}
}

// TestDueAtEveryEpoch: while those that wait are many, and none of them due, a source
// that is due at every epoch is crawled at every epoch.
func TestDueAtEveryEpoch(t *testing.T) {
	in := env.Instance{Sources: slices.Repeat([]env.Source{env.NewSource("", 10, .1, 1)}, 40), Budget: 3}
	in.Sources[0] = env.NewSource("quick", 5000, 3, 1)
	l, w := newLearner(t, in, 1, nil), newHarvests(in, 1)
	w.learn(l, 1000)
	p := l.Frozen()
	w.follow(p, 0, 100)
	var crawl []int
	for range 300 {
		if crawl = p.Select(crawl[:0], &w.view); !slices.Contains(crawl, 0) {
			t.Fatalf("at epoch %d it is not among %v", w.view.Epoch, crawl)
		}
		w.step(crawl)
	}
}

// TestColdStartSpends: once all were seen the budget is used, also where the pooled
// curve of four sources is flat.
func TestColdStartSpends(t *testing.T) {
	in := env.Paper(1)
	var share float64
	for seed := uint64(1); seed <= 10; seed++ {
		w := newHarvests(in, seed)
		share += w.learn(newLearner(t, in, seed, nil), 100) / whittle(in, 100).frozen / 10
	}
	if share < .8 {
		t.Errorf("the first hundred epochs earn %.3f of Whittle; want .8", share)
	}
}

// TestNoiseStaysWide: the noisier its harvests compared with the price, the longer ages vary.
func TestNoiseStaysWide(t *testing.T) {
	l := newLearner(t, env.Paper(1), 1, nil)
	s := &l.src[0]
	s.Cycles, s.Theta, s.Mean, l.price = 1000, 20, 100, 60
	for _, c := range []struct{ deviation, want float64 }{
		{10, l.set.slope(1000)},
		{60, l.set.slope(300)},
		{180, l.set.slope(100)},
	} {
		s.Dispersion = c.deviation * c.deviation / s.Mean
		if got := l.slope(0); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("κ is %v where harvests deviate by %v; want %v", got, c.deviation, c.want)
		}
	}
}
