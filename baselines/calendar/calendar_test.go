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
	costs  []float64 // 0 for an absent source
	last   []int
	epoch  int
	budget float64
}

func (o *obvious) next(w *world) []int {
	var order []int
	key := make([]float64, len(o.costs))
	for i, c := range o.costs {
		key[i] = w.ix().At(&w.p[i], o.epoch-o.last[i])
		if c > 0 && key[i] > math.Inf(-1) {
			order = append(order, i)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return key[order[a]] > key[order[b]] })
	left, got := o.budget, []int(nil)
	for _, i := range order {
		if env.Fits(o.costs[i], left) {
			left -= o.costs[i]
			got = append(got, i)
		}
	}
	for _, i := range got {
		o.last[i] = o.epoch
	}
	o.epoch++
	return got
}

// steps is an index with plateaus, jumps, ties, and ages at which there is
// none.
type steps struct{}

func (steps) At(p *Params, age int) float64 {
	blank, wide, high := int(p[0]), int(p[1]), p[2]
	if age <= blank {
		if wide%2 == 0 {
			return math.NaN()
		}
		return math.Inf(-1)
	}
	return high * (1 - 1/(1+float64(age/wide)))
}

func (s steps) FirstAge(p *Params, level float64) int {
	for age := 1; age < 3000; age++ {
		if s.At(p, age) >= level {
			return age
		}
	}
	return Never
}

// world is a random set of sources whose parameters can be redrawn.
type world struct {
	r     *stream.Rand
	kind  int
	p     []Params
	free  []Params // of an index without a closed form
	scale float64
}

func (w *world) ix() Index {
	switch w.kind {
	case 0:
		return Whittle{}
	case 1:
		return Mean{}
	case 2:
		return steps{}
	case 3: // no closed form, negative values
		return Func(func(i, age int) float64 { return Whittle{}.At(&w.free[i], age) - 0.4*w.free[i][0] - w.scale })
	}
	return Func(func(i, age int) float64 { return float64(age) }) // ties everywhere
}

func (w *world) draw(i int) Params {
	r := w.r
	s := env.NewSource("", 1, math.Exp(r.NormFloat64()-2), w.scale*math.Exp(r.NormFloat64()))
	if r.Intn(3) == 0 { // ties
		s.Decay, s.Interest = 0.125*float64(1+r.Intn(3)), w.scale*float64(r.Intn(3))
	}
	if i == len(w.p) {
		w.p, w.free = append(w.p, Params{}), append(w.free, Params{})
	}
	w.free[i] = curve(s)
	switch w.kind {
	case 0, 1:
		w.p[i] = curve(s)
	case 2:
		w.p[i] = Params{0, float64(1 + r.Intn(7)), w.scale * float64(r.Intn(6)-1)}
		if r.Intn(4) == 0 {
			w.p[i][0] = float64(r.Intn(9))
		}
	default:
		w.p[i] = Func(nil).Of(i)
	}
	return w.p[i]
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
	n := 1 + r.Intn(24)
	w := &world{r: r, kind: r.Intn(5), scale: math.Exp(3 * r.NormFloat64())}
	mode := r.Intn(4)
	o := &obvious{}
	for i := range n {
		w.draw(i)
		o.costs = append(o.costs, cost(r, mode))
		o.last = append(o.last, -1)
	}
	o.budget = budget(r, o.costs)
	c := empty(slices.Clone(o.costs), o.budget, w.ix(), func(i int) Params { return w.p[i] })
	c.grain = grain{surplus: 1 + r.Intn(3), survey: 1 + r.Intn(6), span: 1 << (1 + r.Intn(4)), fill: r.Intn(6), exact: 1 + r.Intn(20)}
	if r.Intn(2) == 0 {
		o.epoch = r.Intn(50)
		for i := range o.last {
			o.last[i] = o.epoch - 1 - r.Intn(30)
		}
		c.Reset(o.epoch, o.last)
	}
	var got []int
	for range 30 + r.Intn(40) {
		disturb(r, w, o, c, mode)
		at := o.epoch
		want := o.next(w)
		got = c.Next(got[:0])
		sort.Ints(want)
		sort.Ints(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("case %d (index %d, costs %d), epoch %d: crawled %v; scan and sort crawls %v", seed, w.kind, mode, at, got, want)
		}
		if err := c.check(); err != nil {
			return fmt.Errorf("case %d, epoch %d: %w", seed, at, err)
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

// disturb adds, removes and changes sources, and moves the price.
func disturb(r *stream.Rand, w *world, o *obvious, c *Calendar, mode int) {
	for r.Intn(3) == 0 {
		i := r.Intn(len(o.costs))
		there := o.costs[i] > 0
		switch r.Intn(6) {
		case 0:
			if there {
				c.Remove(i)
				o.costs[i] = 0
			}
		case 1:
			if !there {
				o.costs[i], o.last[i] = cost(r, mode), o.epoch-1
				c.Add(i, o.costs[i], w.draw(i))
			}
		case 2:
			if len(o.costs) < 40 {
				i = len(o.costs)
				o.costs, o.last = append(o.costs, cost(r, mode)), append(o.last, o.epoch-1)
				c.Add(i, o.costs[i], w.draw(i))
			}
		case 3: // a jump of the price
			o.budget = budget(r, o.costs)
			c.SetBudget(o.budget)
		case 4: // a drift
			o.budget *= 0.8 + 0.4*r.Float64()
			c.SetBudget(o.budget)
		case 5:
			if there {
				c.Change(i, w.draw(i))
			}
		}
	}
}

// check looks for sources in two places or in none.
func (c *Calendar) check() error {
	seen := make([]int, len(c.marks))
	for _, k := range c.classes {
		for _, p := range k.pool {
			seen[p.id]++
			if w := c.marks[p.id].wake; w != awake {
				return fmt.Errorf("source %d in the pool has mark %d", p.id, w)
			}
		}
		if !slices.IsSortedFunc(k.level[:], func(a, b float64) int { return -int(math.Copysign(1, a-b)) * b2i(a != b) }) {
			return fmt.Errorf("levels %v do not fall", k.level)
		}
	}
	entries := 0
	for _, k := range c.classes {
		for j := range k.wheel {
			entries += k.wheel[j].n
		}
	}
	if entries != c.slab.used {
		return fmt.Errorf("%d entries in wheels, %d in chunks", entries, c.slab.used)
	}
	for i, m := range c.marks {
		if (m.wake == awake) != (seen[i] == 1) || seen[i] > 1 || m.wake == held || m.wake >= 0 && m.wake < c.now {
			return fmt.Errorf("source %d has mark %d and is in the pool %d times", i, m.wake, seen[i])
		}
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The calendar chooses what scan and sort chooses, with costs, with sources
// added, removed and changed while it runs, with budgets that drift and jump.
func TestChoosesAsScanAndSort(t *testing.T) {
	cases := 100_000
	if testing.Short() {
		cases = 5_000
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
