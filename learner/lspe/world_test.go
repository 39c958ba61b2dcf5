package lspe

import (
	"math"
	"slices"
	"testing"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// harvests is a world of sources, or of any number of copies of them, that draws
// what a crawl brings at once, and no items: a compound Poisson sum of the same
// mean and variance. It counts the mean H(s) of each crawl as reward, so that
// shares have no noise of their own.
type harvests struct {
	in     env.Instance
	view   env.Online
	rand   *stream.Rand
	out    []env.Crawled
	spread [][]float64 // of each source and age, the variance of a harvest
	change int         // epoch at which the parameters are dealt out anew; 0 for never
	earned float64
	used   float64
}

func newHarvests(in env.Instance, seed uint64) *harvests {
	w := &harvests{in: in, rand: stream.New(seed, stream.World), spread: make([][]float64, len(in.Sources))}
	w.in.Sources = slices.Clone(in.Sources)
	w.view.Last = slices.Repeat([]int{-1}, len(in.Sources))
	return w
}

func (w *harvests) source(i int) *env.Source { return &w.in.Sources[i%len(w.in.Sources)] }

// variance returns that of the harvest at an age, batch/λ ∫H′² for interest that
// is the same in all items, by the midpoints of quarters of an epoch.
func (w *harvests) variance(i, age int) float64 {
	s, v := w.source(i), w.spread[i%len(w.spread)]
	if v == nil {
		v = []float64{0}
	}
	for n := len(v); n <= age; n++ {
		var sum float64
		for k := range 4 {
			a := float64(n-1) + float64(k)/4
			d := (s.Harvest(a+.25) - s.Harvest(a)) * 4
			sum += d * d / 4
		}
		v = append(v, v[n-1]+sum*float64(max(1, s.Batch))/s.Rate)
	}
	w.spread[i%len(w.spread)] = v
	return v[age]
}

const (
	many   = 25   // arrivals above which their sum is taken for normal
	oldest = 4096 // ages beyond it bring what it brings
)

// draw draws what a crawl brings.
func (w *harvests) draw(i, age int) float64 {
	s := w.source(i)
	age = min(age, oldest)
	span := min(float64(age), s.Window)
	batch := float64(max(1, s.Batch))
	if n := s.Rate / batch * span; n < many {
		var sum float64
		arrivals := 0
		for p := w.rand.Float64(); p > math.Exp(-n) && n > 0; p *= w.rand.Float64() {
			arrivals++
		}
		for range arrivals {
			const short = 1e-3
			a := span * w.rand.Float64()
			sum += (s.Harvest(a+short) - s.Harvest(a)) / short
		}
		return sum * batch / s.Rate
	}
	return max(0, s.Harvest(float64(age))+math.Sqrt(w.variance(i, age))*w.rand.NormFloat64())
}

// step crawls and goes on. It panics where the budget is exceeded.
func (w *harvests) step(crawl []int) []env.Crawled {
	w.out = w.out[:0]
	var cost float64
	for _, i := range crawl {
		age := w.view.Age(i)
		cost += w.source(i).Cost
		w.earned += w.source(i).Harvest(float64(age))
		w.out = append(w.out, env.Crawled{Source: i, Age: age, Interest: w.draw(i, age)})
		w.view.Last[i] = w.view.Epoch
	}
	if !env.Fits(cost, w.in.Budget) {
		panic("over the budget")
	}
	w.used += cost
	w.view.Epoch++
	if w.view.Epoch == w.change {
		old := slices.Clone(w.in.Sources)
		for i, k := range w.rand.Perm(len(old)) {
			cost := w.in.Sources[i].Cost
			w.in.Sources[i] = old[k]
			w.in.Sources[i].Cost = cost
		}
		clear(w.spread)
	}
	return w.out
}

// learn runs a learner and returns what it earned per epoch.
func (w *harvests) learn(l *Learner, epochs int) float64 {
	var crawl []int
	before := w.earned
	for range epochs {
		crawl = l.Select(crawl[:0], &w.view)
		l.Update(w.step(crawl), &w.view)
	}
	return (w.earned - before) / float64(epochs)
}

// follow runs a policy and returns what it earned per epoch after two rounds.
func (w *harvests) follow(p env.Policy[env.Online], round float64, epochs int) float64 {
	var crawl []int
	var before float64
	first := int(2 * round)
	for n := range first + epochs {
		if n == first {
			before = w.earned
		}
		crawl = p.Select(crawl[:0], &w.view)
		w.step(crawl)
	}
	return (w.earned - before) / float64(epochs)
}

// byAges is a policy that knows the model and looks at the ages alone.
type byAges struct{ policy env.Policy[env.Model] }

func (p byAges) Select(dst []int, o *env.Online) []int {
	return p.policy.Select(dst, &env.Model{Online: *o})
}

// whittle returns what Whittle's index of the true curves earns per epoch: in the
// first epochs, as while learning, and in as many after them.
func whittle(in env.Instance, epochs int) shares {
	w, p := newHarvests(in, 1), byAges{baselines.NewWhittle(in)}
	first := w.follow(p, 0, epochs)
	return shares{w.follow(p, 0, epochs), first}
}

func newLearner(t testing.TB, in env.Instance, seed uint64, change func(*Settings)) *Learner {
	t.Helper()
	s := DefaultSettings()
	if change != nil {
		change(&s)
	}
	l, err := New(in.Terms(), &s, stream.New(seed, stream.Policy))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// shares are what is earned of what Whittle earns with the true curves in the same
// epochs: after learning, and while it goes on.
type shares struct{ frozen, learning float64 }

func play(t testing.TB, in env.Instance, seed uint64, epochs, change int, set func(*Settings)) shares {
	t.Helper()
	return against(t, whittle(in, epochs), in, seed, epochs, change, set)
}

// against is play where it is known what Whittle earns.
func against(t testing.TB, best shares, in env.Instance, seed uint64, epochs, change int, set func(*Settings)) shares {
	t.Helper()
	l := newLearner(t, in, seed, set)
	w := newHarvests(in, seed)
	w.change = change
	learning := w.learn(l, epochs) / best.learning
	return shares{w.follow(l.Frozen(), l.round, epochs) / best.frozen, learning}
}
