// Package envtest holds one conformance check that every world passes and one
// that every policy passes.
package envtest

import (
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// Epochs is how many epochs a world has to last for its check.
const Epochs = 400

// World checks that the worlds that newWorld returns, all built alike, keep
// the contract of env.World and refuse crawls over the budget, unless the world
// lets them pass. State, where it is not nil, has to be the true state.
func World(t *testing.T, newWorld func() env.World, overrun bool) {
	t.Helper()
	t.Run("first view", func(t *testing.T) { firstView(t, newWorld()) })
	t.Run("refusals", func(t *testing.T) { refusals(t, newWorld(), newWorld(), overrun) })
	t.Run("books", func(t *testing.T) { books(t, newWorld()) })
	t.Run("last crawls", func(t *testing.T) { lastCrawls(t, newWorld) })
	t.Run("allocations", func(t *testing.T) { allocations(t, newWorld()) })
}

// crawler picks random sources within the budget.
type crawler struct {
	r     *stream.Rand
	terms env.Terms
	order []int
	pick  []int
}

func newCrawler(w env.World, seed uint64) *crawler {
	t := w.Terms()
	n := len(t.Costs)
	return &crawler{r: stream.New(seed, stream.Test), terms: t, order: upTo(n), pick: make([]int, 0, n)}
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func (c *crawler) next() []int {
	c.pick = c.pick[:0]
	left := math.Min(c.terms.Budget, 1.5*c.terms.Budget*c.r.Float64()) // sometimes all of it
	c.r.Shuffle(len(c.order), func(a, b int) { c.order[a], c.order[b] = c.order[b], c.order[a] })
	for _, i := range c.order {
		if c.terms.Costs[i] <= left {
			c.pick = append(c.pick, i)
			left -= c.terms.Costs[i]
		}
	}
	return c.pick
}

// step crawls and fails the test if that is refused.
func step(t *testing.T, w env.World, crawl []int) []env.Crawled {
	t.Helper()
	got, err := w.Step(crawl)
	if err != nil {
		t.Fatalf("epoch %d: Step(%v): %v", w.View().Epoch, crawl, err)
	}
	return got
}

func firstView(t *testing.T, w env.World) {
	v, terms := w.View(), w.Terms()
	n := len(terms.Costs)
	if n == 0 || len(terms.Names) != n || !(terms.Budget > 0) {
		t.Fatalf("terms have %d costs, %d names and the budget %v", n, len(terms.Names), terms.Budget)
	}
	if v.Epoch != 0 || len(v.Last) != n || v.Mean != nil && len(v.Mean) != n || v.State != nil && len(v.State) != n {
		t.Fatalf("first view: epoch %d, %d last crawls, %d mean states and %d states for %d sources",
			v.Epoch, len(v.Last), len(v.Mean), len(v.State), n)
	}
	for i := range n {
		if v.Last[i] != -1 || v.Age(i) != 1 {
			t.Errorf("source %d: last crawl %d, age %d; want -1 and 1", i, v.Last[i], v.Age(i))
		}
	}
}

// refusals checks that worlds built alike are the same, though one of them has
// to refuse crawls.
func refusals(t *testing.T, w, twin env.World, overrun bool) {
	terms := w.Terms()
	if !reflect.DeepEqual(terms, twin.Terms()) {
		t.Fatalf("terms of worlds built alike differ: %v and %v", terms, twin.Terms())
	}
	n := len(terms.Costs)
	all := upTo(n)
	bad := [][]int{{-1}, {n}, {0, 0}, {0, n}, {n - 1, -1}}
	if !overrun {
		var total float64
		for _, c := range terms.Costs {
			total += c
		}
		if env.Fits(total, terms.Budget) {
			t.Fatal("the budget covers all sources; the check needs a smaller one")
		}
		bad = append(bad, all)
	}
	c := newCrawler(w, 2)
	for epoch := range 200 {
		if !reflect.DeepEqual(w.View(), twin.View()) {
			t.Fatalf("epoch %d: views of worlds built alike differ:\n%v\n%v", epoch, w.View(), twin.View())
		}
		before := clone(w.View())
		for _, crawl := range bad {
			if _, err := w.Step(crawl); err == nil || errors.Is(err, io.EOF) {
				t.Fatalf("Step(%v) at epoch %d: error is %v; want a refusal", crawl, w.View().Epoch, err)
			}
			if !reflect.DeepEqual(before, w.View()) {
				t.Fatalf("the refused Step(%v) changed the view from %v to %v", crawl, before, w.View())
			}
		}
		crawl := c.next()
		if overrun && w.View().Epoch%3 == 0 {
			crawl = all
		}
		keep := slices.Clone(crawl)
		got := step(t, w, crawl)
		if !slices.Equal(keep, crawl) {
			t.Fatal("Step changed the list of crawls")
		}
		if want := step(t, twin, crawl); !reflect.DeepEqual(got, want) {
			t.Fatalf("after refusals the crawls bring back %v, without %v", got, want)
		}
	}
}

func books(t *testing.T, w env.World) {
	c := newCrawler(w, 3)
	last := slices.Clone(w.View().Last)
	first := slices.Clone(w.View().Mean) // x = u, which is what every crawl sets it to
	var crawled int
	for epoch := range Epochs {
		if w.View().Epoch != epoch {
			t.Fatalf("epoch is %d, want %d", w.View().Epoch, epoch)
		}
		state := slices.Clone(w.View().State)
		crawl := c.next()
		got := step(t, w, crawl)
		if len(got) != len(crawl) {
			t.Fatalf("%d crawls brought back %d results", len(crawl), len(got))
		}
		for k, g := range got {
			i := crawl[k]
			age := epoch - last[i]
			last[i] = epoch
			crawled++
			if g.Source != i || g.Age != age {
				t.Fatalf("epoch %d: crawl of source %d at age %d is reported as source %d, age %d",
					epoch, i, age, g.Source, g.Age)
			}
			if !(g.Interest >= 0) || math.IsInf(g.Interest, 0) {
				t.Fatalf("epoch %d: source %d brought back %v", epoch, i, g.Interest)
			}
			if x := w.View().Mean; x != nil && epoch < 20 && x[i] != first[i] {
				t.Errorf("source %d: mean state after a crawl is %v, at the start %v", i, x[i], first[i])
			}
			if state != nil && g.Interest != state[i] {
				t.Fatalf("epoch %d: source %d brought back %v; its state was %v", epoch, i, g.Interest, state[i])
			}
			if g.Items != nil {
				checkItems(t, g)
			}
		}
		if !slices.Equal(w.View().Last, last) {
			t.Fatalf("epoch %d: last crawls are %v, want %v", epoch, w.View().Last, last)
		}
	}
	if crawled < Epochs/4 {
		t.Fatalf("only %d crawls in %d epochs", crawled, Epochs)
	}
}

func checkItems(t *testing.T, g env.Crawled) {
	t.Helper()
	var sum float64
	before := float64(g.Age) * (1 + 1e-12)
	for _, it := range g.Items {
		if !(it.Age >= 0 && it.Age <= before && it.Interest >= 0) {
			t.Fatalf("source %d: item %+v behind one of age %v; want ages from that of the crawl down to 0",
				g.Source, it, before)
		}
		before = it.Age
		sum += it.Interest
	}
	if math.Abs(sum-g.Interest) > 1e-9*(sum+g.Interest) {
		t.Fatalf("source %d: items hold %v, the crawl %v", g.Source, sum, g.Interest)
	}
}

// lastCrawls checks that a world stands where another does in which each source
// was crawled at its last crawl and not before: a crawl begins its source anew and
// touches no other, and epoch and last crawls are all that has to be kept of a world.
func lastCrawls(t *testing.T, newWorld func() env.World) {
	var before float64
	differ := 0
	for run := range 3 {
		w, twin := newWorld(), newWorld()
		c := newCrawler(w, uint64(10+run))
		for range Epochs / 2 {
			step(t, w, c.next())
		}
		for n := range Epochs / 2 {
			var crawl []int
			for i, last := range w.View().Last {
				if last == n {
					crawl = append(crawl, i)
				}
			}
			step(t, twin, crawl)
		}
		for n := Epochs / 2; n < Epochs; n++ {
			if !reflect.DeepEqual(w.View(), twin.View()) {
				t.Fatalf("epoch %d: the views differ", n)
			}
			crawl := c.next()
			got, other := step(t, w, crawl), step(t, twin, crawl)
			if !reflect.DeepEqual(got, other) {
				t.Fatalf("epoch %d: the crawls bring back %v, with other crawls before the last ones %v", n, got, other)
			}
			for _, g := range got {
				if g.Interest != before {
					differ++
				}
				before = g.Interest
			}
		}
	}
	if differ == 0 {
		t.Fatal("all crawls bring back the same; the check needs some that differ")
	}
}

func allocations(t *testing.T, w env.World) {
	c := newCrawler(w, 5)
	for range 200 { // buffers grow
		step(t, w, c.next())
	}
	if n := testing.AllocsPerRun(150, func() { step(t, w, c.next()) }); n != 0 {
		t.Errorf("Step allocates %v times; want 0", n)
	}
}
