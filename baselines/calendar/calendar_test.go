package calendar

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// obvious is the selection as it is defined: every index is computed, all
// sources are sorted, and the budget is used from the top.
type obvious struct {
	rank   Ranking
	p      []Params
	costs  []float64
	view   env.Online
	budget float64
}

func (o *obvious) choose() []int {
	var ids []int
	key := make([]float64, len(o.costs))
	for i := range o.costs {
		key[i] = o.rank.At(&o.p[i], o.view.Age(i))
		if key[i] > math.Inf(-1) {
			ids = append(ids, i)
		}
	}
	sort.SliceStable(ids, func(a, b int) bool { return key[ids[a]] > key[ids[b]] })
	left, got := o.budget, []int(nil)
	for _, i := range ids {
		if env.Fits(o.costs[i], left) {
			left -= o.costs[i]
			got = append(got, i)
		}
	}
	return got
}

// crawl goes on to the next epoch.
func (o *obvious) crawl(ids []int) {
	for _, i := range ids {
		o.view.Last[i] = o.view.Epoch
	}
	o.view.Epoch++
}

// steps is an index with plateaus, jumps, ties, and ages at which there is
// none.
type steps []step

type step struct {
	blank, wide int
	high        float64
}

func (s steps) At(params *Params, age int) float64 {
	p := s[int(params[0])]
	if age <= p.blank {
		if p.wide%2 == 0 {
			return math.NaN()
		}
		return math.Inf(-1)
	}
	return p.high * (1 - 1/(1+float64(age/p.wide)))
}

func (s steps) FirstAge(p *Params, level float64) int {
	for age := 1; age < 3000; age++ {
		if s.At(p, age) >= level {
			return age
		}
	}
	return Never
}

// ranking draws a ranking of n sources, with ties.
func ranking(r *stream.Rand, kind, n int) (Ranking, []Params) {
	scale := math.Exp(3 * r.NormFloat64())
	sources, plateaus := make([]env.Source, n), make(steps, n)
	for i := range n {
		sources[i] = env.NewSource("", 1, math.Exp(r.NormFloat64()-2), scale*math.Exp(r.NormFloat64()))
		if r.Intn(3) == 0 {
			sources[i].Decay, sources[i].Interest = 0.125*float64(1+r.Intn(3)), scale*float64(r.Intn(3))
		}
		plateaus[i] = step{wide: 1 + r.Intn(7), high: scale * float64(r.Intn(6)-1)}
		if r.Intn(4) == 0 {
			plateaus[i].blank = r.Intn(9)
		}
	}
	p, w := make([]Params, n), make([]Params, n)
	for i := range n {
		p[i], w[i] = Func{}.Of(i), Whittle{}.Of(sources[i])
	}
	switch kind {
	case 0:
		return Whittle{}, w
	case 1:
		return Func{Index: func(i, age int) float64 { return sources[i].MeanState(age) }}, p
	case 2:
		return plateaus, p
	case 3: // negative values
		return Func{Index: func(i, age int) float64 { return Whittle{}.At(&w[i], age) - 0.4*w[i][top] - scale }}, p
	}
	return Func{Index: func(_, age int) float64 { return float64(age) }}, p // ties everywhere
}

func cost(r *stream.Rand, mode int) float64 {
	switch mode {
	case 0:
		return 1
	case 1: // few, in units without rounding
		return 0.25 * float64(1+r.Intn(12))
	case 2:
		return math.Exp(1.5 * r.NormFloat64())
	}
	return 1 + float64(r.Intn(1000))/1e4 // almost equal
}

// run plays one random case and returns what went wrong.
func run(seed uint64) (err error) {
	r := stream.New(seed, stream.Test)
	n, kind, mode := 1+r.Intn(24), r.Intn(5), r.Intn(4)
	o := &obvious{}
	o.rank, o.p = ranking(r, kind, n)
	for range n {
		o.costs = append(o.costs, cost(r, mode))
		o.view.Last = append(o.view.Last, -1)
	}
	o.budget = budget(r, o.costs)
	c := newGrained(o.costs, o.budget, o.rank, func(i int) Params { return o.p[i] }, grain{surplus: 1 + r.Intn(3), survey: 1 + r.Intn(6), span: 1 << (1 + r.Intn(4)), fill: r.Intn(6)})
	if r.Intn(2) == 0 {
		o.view.Epoch = r.Intn(50)
		for i := range o.view.Last {
			o.view.Last[i] = o.view.Epoch - 1 - r.Intn(30)
		}
	}
	var got []int
	for range 30 + r.Intn(40) {
		switch r.Intn(8) {
		case 0: // a jump of the price
			o.budget = budget(r, o.costs)
		case 1: // a drift
			o.budget *= 0.8 + 0.4*r.Float64()
		}
		c.budget = o.budget
		want := o.choose()
		got = c.Select(got[:0], &o.view)
		sort.Ints(want)
		sort.Ints(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("case %d (index %d, costs %d), epoch %d: crawled %v; scan and sort crawls %v", seed, kind, mode, o.view.Epoch, got, want)
		}
		if err := c.check(); err != nil {
			return fmt.Errorf("case %d, epoch %d: %w", seed, o.view.Epoch, err)
		}
		o.crawl(got)
		if r.Intn(20) == 0 { // epochs passed, and crawls that the calendar did not choose
			o.view.Epoch += 1 + r.Intn(3)
			o.view.Last[r.Intn(n)] = o.view.Epoch - 1
		}
	}
	return nil
}

func budget(r *stream.Rand, costs []float64) float64 {
	var sum float64
	for _, c := range costs {
		sum += c
	}
	b := sum * math.Pow(r.Float64(), 2)
	if r.Intn(2) == 0 {
		b = math.Round(4*b) / 4
	}
	return b
}

// check looks for sources in two places or in none.
func (c *Calendar) check() error {
	seen := make([]int, len(c.marks))
	for x := range c.classes {
		k := &c.classes[x]
		if k.horizon > k.floor {
			return fmt.Errorf("the horizon, %v, is above the floor, %v", k.horizon, k.floor)
		}
		for _, p := range k.pool {
			seen[p.ID]++
		}
		for _, w := range []*wheel{&k.near, &k.far} {
			entries := 0
			for b := range w.buckets {
				for head, n := w.buckets[b].head, w.buckets[b].n; head != none; head, n = c.slab.at(head).next, chunkRoom {
					for _, id := range c.slab.at(head).ids[:n] {
						entries++
						seen[id]++
						if wake := c.marks[id].wake; wake < c.epoch || w.bucket(wake) != &w.buckets[b] {
							return fmt.Errorf("source %d wakes at %d and lies in bucket %d", id, wake, b)
						}
					}
				}
			}
			if entries != w.n {
				return fmt.Errorf("%d sources in a wheel that counts %d", entries, w.n)
			}
		}
	}
	for _, id := range c.chosen {
		seen[id]++
	}
	for i, n := range seen {
		if n != 1 {
			return fmt.Errorf("source %d is in %d places", i, n)
		}
	}
	return nil
}

// The calendar chooses what scan and sort chooses, with costs, with budgets
// that drift and jump, and where others crawl as well.
func TestChoosesAsScanAndSort(t *testing.T) {
	cases := 20_000
	if testing.Short() {
		cases = 2_000
	}
	const parts = 4
	for p := range parts {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			t.Parallel()
			for k := p; k < cases; k += parts {
				if err := run(uint64(k)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
