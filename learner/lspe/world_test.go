package lspe

import (
	"math"
	"slices"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// harvests is a world that draws what a crawl brings at once, and no items: a
// compound Poisson sum of the same mean and variance. It counts the mean H(s) of
// each crawl as reward, so that shares have no noise of their own.
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

// variance returns that of the harvest at an age, batch/λ ∫H′² for interest that
// is the same in all items, by the midpoints of quarters of an epoch.
func (w *harvests) variance(i, age int) float64 {
	s, v := &w.in.Sources[i], w.spread[i]
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
	w.spread[i] = v
	return v[age]
}

const (
	many   = 25   // arrivals above which their sum is taken for normal
	oldest = 4096 // ages beyond it bring what it brings
)

// draw draws what a crawl brings.
func (w *harvests) draw(i, age int) float64 {
	s := &w.in.Sources[i]
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
		cost += w.in.Sources[i].Cost
		w.earned += w.in.Sources[i].Harvest(float64(age))
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

// whittle returns what Whittle's index of the true curves earns per epoch,
//
//	W(s) = [(s + 1)H(s) − sH(s + 1)]/C
//
// with the mean harvests, a source of negative index left alone.
func whittle(in env.Instance, epochs int) float64 {
	n := len(in.Sources)
	last := slices.Repeat([]int{-1}, n)
	table := make([][]float64, n) // of each source, W of ages from 0
	type item struct {
		key float64
		id  int
	}
	var items []item
	var earned float64
	for now := range epochs {
		items = items[:0]
		for i := range in.Sources {
			s, age := &in.Sources[i], min(now-last[i], oldest)
			for k := len(table[i]); k <= age; k++ {
				a := float64(k)
				table[i] = append(table[i], ((a+1)*s.Harvest(a)-a*s.Harvest(a+1))/s.Cost)
			}
			if key := table[i][age]; key >= 0 {
				items = append(items, item{key, i})
			}
		}
		slices.SortFunc(items, func(a, b item) int {
			switch {
			case a.key > b.key:
				return -1
			case a.key < b.key:
				return 1
			}
			return a.id - b.id
		})
		left := in.Budget
		for _, c := range items {
			s := &in.Sources[c.id]
			if env.Fits(s.Cost, left) {
				left -= s.Cost
				earned += s.Harvest(float64(now - last[c.id]))
				last[c.id] = now
			}
		}
	}
	return earned / float64(epochs)
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

// shares are what is earned, over what Whittle earns with the true curves.
type shares struct{ frozen, learning float64 }

func play(t testing.TB, in env.Instance, seed uint64, epochs, change int, set func(*Settings)) shares {
	t.Helper()
	return against(t, whittle(in, epochs), in, seed, epochs, change, set)
}

// against is play where it is known what Whittle earns.
func against(t testing.TB, best float64, in env.Instance, seed uint64, epochs, change int, set func(*Settings)) shares {
	t.Helper()
	l := newLearner(t, in, seed, set)
	w := newHarvests(in, seed)
	w.change = change
	learning := w.learn(l, epochs) / best
	return shares{w.follow(l.Frozen(), l.round, epochs) / best, learning}
}
