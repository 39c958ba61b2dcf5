package envtest

import (
	"bytes"
	"errors"
	"fmt"
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
// the contract of env.World and refuse crawls over the budget. A world with a
// Close method is closed when the test ends. State, where it is not nil, has
// to be the true state of all sources.
func World(t *testing.T, newWorld func() env.World) { world(t, newWorld, false, nil) }

// OverrunWorld is World for worlds that were told to let crawls over the
// budget pass.
func OverrunWorld(t *testing.T, newWorld func() env.World) { world(t, newWorld, true, nil) }

// PartlyObservedWorld is World for worlds that show the mean state in place of
// the true one for the marked sources.
func PartlyObservedWorld(t *testing.T, newWorld func() env.World, unobserved []bool) {
	world(t, newWorld, false, unobserved)
}

func world(t *testing.T, newWorld func() env.World, overrun bool, unobserved []bool) {
	t.Helper()
	t.Run("first view", func(t *testing.T) { firstView(t, newWorld()) })
	t.Run("refusals", func(t *testing.T) { refusals(t, newWorld(), newWorld(), overrun) })
	t.Run("books", func(t *testing.T) { books(t, newWorld(), unobserved) })
	t.Run("same bytes", func(t *testing.T) { sameBytes(t, newWorld(), newWorld()) })
	t.Run("independence", func(t *testing.T) { independence(t, newWorld) })
	t.Run("last crawls", func(t *testing.T) { lastCrawls(t, newWorld(), newWorld()) })
	t.Run("allocations", func(t *testing.T) { allocations(t, newWorld()) })
}

// crawler picks random sources within the budget.
type crawler struct {
	r     *stream.Rand
	terms env.Terms
	order []int
	pick  []int
}

func newCrawler(t env.Terms, seed uint64) *crawler {
	c := &crawler{r: stream.New(seed, stream.Test), terms: t, order: make([]int, len(t.Costs)), pick: make([]int, 0, len(t.Costs))}
	for i := range c.order {
		c.order[i] = i
	}
	return c
}

func (c *crawler) next() []int {
	c.pick = c.pick[:0]
	left := c.terms.Budget * c.r.Float64() * 1.5 // sometimes all of it
	left = math.Min(left, c.terms.Budget)
	for k := len(c.order) - 1; k >= 0; k-- {
		j := c.r.Intn(k + 1)
		c.order[j], c.order[k] = c.order[k], c.order[j]
		if i := c.order[k]; c.terms.Costs[i] <= left {
			c.pick = append(c.pick, i)
			left -= c.terms.Costs[i]
		}
	}
	return c.pick
}

// print returns the bits of a view.
func print(v *env.Observed) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, v.Epoch, v.Last)
	for _, x := range [][]float64{v.Mean, v.State} {
		for _, f := range x {
			fmt.Fprintf(&b, "%x ", math.Float64bits(f))
		}
		fmt.Fprintln(&b, len(x))
	}
	return b.Bytes()
}

func firstView(t *testing.T, w env.World) {
	v, terms := w.View(), w.Terms()
	n := len(terms.Costs)
	if n == 0 || len(terms.Names) != n {
		t.Fatalf("terms have %d costs and %d names", n, len(terms.Names))
	}
	if !(terms.Budget > 0) {
		t.Errorf("budget is %v", terms.Budget)
	}
	if v.Epoch != 0 || len(v.Last) != n || len(v.Mean) != n || v.State != nil && len(v.State) != n {
		t.Fatalf("first view: epoch %d, %d last crawls, %d mean states and %d states for %d sources", v.Epoch, len(v.Last), len(v.Mean), len(v.State), n)
	}
	first := slices.Clone(v.Mean)
	for i := range n {
		if v.Last[i] != -1 || v.Age(i) != 1 {
			t.Errorf("source %d: last crawl %d, age %d; want -1 and 1", i, v.Last[i], v.Age(i))
		}
	}
	// x = u at the start, which is what every crawl sets it to.
	c := newCrawler(terms, 1)
	seen := 0
	for range 20 {
		crawl := c.next()
		if _, err := w.Step(crawl); err != nil {
			t.Fatal(err)
		}
		for _, i := range crawl {
			seen++
			if x := w.View().Mean[i]; x != first[i] {
				t.Errorf("source %d: mean state after a crawl is %v, at the start %v", i, x, first[i])
			}
		}
	}
	if seen == 0 {
		t.Fatal("nothing was crawled")
	}
}

func refusals(t *testing.T, w, twin env.World, overrun bool) {
	terms := w.Terms()
	n := len(terms.Costs)
	all := make([]int, n)
	var total float64
	for i := range all {
		all[i] = i
		total += terms.Costs[i]
	}
	c := newCrawler(terms, 2)
	bad := [][]int{{-1}, {n}, {0, 0}, {0, n}, {n - 1, -1}}
	if !overrun {
		if env.Fits(total, terms.Budget) {
			t.Fatal("the budget covers all sources; the check needs a smaller one")
		}
		bad = append(bad, all)
	}
	for range 30 {
		before := print(w.View())
		for _, crawl := range bad {
			if _, err := w.Step(crawl); err == nil || errors.Is(err, io.EOF) {
				t.Fatalf("Step(%v) at epoch %d: error is %v; want a refusal", crawl, w.View().Epoch, err)
			}
			if after := print(w.View()); !bytes.Equal(before, after) {
				t.Fatalf("the refused Step(%v) changed the view from %s to %s", crawl, before, after)
			}
		}
		crawl := c.next()
		if overrun && w.View().Epoch%3 == 0 {
			crawl = all
		}
		keep := slices.Clone(crawl)
		got, err := w.Step(crawl)
		if err != nil {
			t.Fatalf("Step(%v) after refusals: %v", crawl, err)
		}
		if !slices.Equal(keep, crawl) {
			t.Fatal("Step changed the list of crawls")
		}
		want, err := twin.Step(crawl)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("after refusals the crawls bring back %v, without %v", got, want)
		}
	}
}

func books(t *testing.T, w env.World, unobserved []bool) {
	v := w.View()
	terms := w.Terms()
	c := newCrawler(terms, 3)
	last := slices.Clone(v.Last)
	var crawled int
	for epoch := range Epochs {
		if w.View().Epoch != epoch {
			t.Fatalf("epoch is %d, want %d", w.View().Epoch, epoch)
		}
		var state []float64
		if v.State != nil {
			state = slices.Clone(w.View().State)
		}
		crawl := c.next()
		got, err := w.Step(crawl)
		if err != nil {
			t.Fatalf("epoch %d of at least %d: %v", epoch, Epochs, err)
		}
		if len(got) != len(crawl) {
			t.Fatalf("%d crawls brought back %d results", len(crawl), len(got))
		}
		for k, g := range got {
			i := crawl[k]
			age := epoch - last[i]
			last[i] = epoch
			crawled++
			if g.Source != i || g.Age != age {
				t.Fatalf("epoch %d: crawl of source %d at age %d is reported as source %d, age %d", epoch, i, age, g.Source, g.Age)
			}
			if !(g.Interest >= 0) || math.IsInf(g.Interest, 0) {
				t.Fatalf("epoch %d: source %d brought back %v", epoch, i, g.Interest)
			}
			if state != nil && (unobserved == nil || !unobserved[i]) && g.Interest != state[i] {
				t.Fatalf("epoch %d: source %d brought back %v; its state was %v", epoch, i, g.Interest, state[i])
			}
			if state != nil && unobserved != nil && unobserved[i] {
				if d := math.Abs(state[i] - w.(instancer).Instance(0).Sources[i].MeanState(age)); d > 1e-9*(1+state[i]) {
					t.Fatalf("epoch %d: unobserved source %d shows %v, not its mean", epoch, i, state[i])
				}
			}
			if g.Items != nil {
				checkItems(t, g)
			}
		}
		if !slices.Equal(w.View().Last, last) {
			t.Fatalf("epoch %d: last crawls are %v, want %v", epoch, w.View().Last, last)
		}
		for i := range last {
			if a := w.View().Age(i); a != epoch+1-last[i] {
				t.Fatalf("epoch %d: source %d has age %d, want %d", epoch+1, i, a, epoch+1-last[i])
			}
		}
	}
	if crawled < Epochs/4 {
		t.Fatalf("only %d crawls in %d epochs", crawled, Epochs)
	}
}

// instancer is a world that tells its parameters.
type instancer interface{ Instance(epoch int) env.Instance }

func checkItems(t *testing.T, g env.Crawled) {
	t.Helper()
	var sum float64
	before := math.Inf(1)
	for _, it := range g.Items {
		if !(it.Age >= 0 && it.Age <= float64(g.Age)*(1+1e-12)) {
			t.Fatalf("source %d: item of age %v in a crawl of %d epochs", g.Source, it.Age, g.Age)
		}
		if it.Age > before {
			t.Fatalf("source %d: item of age %v after one of age %v; want oldest first", g.Source, it.Age, before)
		}
		before = it.Age
		if !(it.Interest >= 0) {
			t.Fatalf("source %d: item of interest %v", g.Source, it.Interest)
		}
		sum += it.Interest
	}
	if math.Abs(sum-g.Interest) > 1e-9*(sum+g.Interest) {
		t.Fatalf("source %d: items hold %v, the crawl %v", g.Source, sum, g.Interest)
	}
}

func sameBytes(t *testing.T, a, b env.World) {
	if !reflect.DeepEqual(a.Terms(), b.Terms()) {
		t.Fatalf("terms differ: %v and %v", a.Terms(), b.Terms())
	}
	c := newCrawler(a.Terms(), 4)
	for epoch := range 200 {
		if va, vb := print(a.View()), print(b.View()); !bytes.Equal(va, vb) {
			t.Fatalf("epoch %d: views of worlds built alike differ:\n%s%s", epoch, va, vb)
		}
		crawl := c.next()
		ga, err := a.Step(crawl)
		if err != nil {
			t.Fatal(err)
		}
		gb, err := b.Step(crawl)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ga, gb) {
			t.Fatalf("epoch %d: worlds built alike bring back %v and %v", epoch, ga, gb)
		}
	}
}

// independence checks that what a source brings back depends on its own last
// crawl and the epoch only: a crawl begins it anew, and crawls of the other
// sources do not touch it.
func independence(t *testing.T, newWorld func() env.World) {
	type when struct{ source, last, epoch int }
	seen := make(map[when]float64)
	var again, differ int
	var any float64
	for run := range 6 {
		w := newWorld()
		c := newCrawler(w.Terms(), uint64(10+run))
		for range 200 {
			got, err := w.Step(c.next())
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range got {
				epoch := w.View().Epoch - 1
				key := when{g.Source, epoch - g.Age, epoch}
				if x, ok := seen[key]; ok {
					again++
					if x != g.Interest {
						t.Fatalf("source %d, crawled at epochs %d and %d: %v in one run, %v in another", g.Source, key.last, epoch, x, g.Interest)
					}
				}
				seen[key] = g.Interest
				if g.Interest != any {
					differ++
				}
				any = g.Interest
			}
		}
	}
	if again == 0 || differ == 0 {
		t.Fatalf("%d crawls could be compared, %d differed from the one before; the check needs some of both", again, differ)
	}
}

// lastCrawls checks that a world stands where another does in which each source
// was crawled at its last crawl and not before, so that epoch and last crawls
// are all that has to be kept of it.
func lastCrawls(t *testing.T, w, twin env.World) {
	c := newCrawler(w.Terms(), 4)
	step := func(w env.World, crawl []int) {
		if _, err := w.Step(crawl); err != nil {
			t.Fatal(err)
		}
	}
	for range Epochs / 2 {
		step(w, c.next())
	}
	for n := range Epochs / 2 {
		var crawl []int
		for i, last := range w.View().Last {
			if last == n {
				crawl = append(crawl, i)
			}
		}
		step(twin, crawl)
	}
	for n := Epochs / 2; ; n++ {
		if !bytes.Equal(print(w.View()), print(twin.View())) {
			t.Fatalf("epoch %d: the views differ", n)
		}
		if n == Epochs-1 {
			return
		}
		crawl := slices.Clone(c.next())
		step(w, crawl)
		step(twin, crawl)
	}
}

func allocations(t *testing.T, w env.World) {
	c := newCrawler(w.Terms(), 5)
	step := func() {
		if _, err := w.Step(c.next()); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 { // buffers grow
		step()
	}
	if n := testing.AllocsPerRun(150, step); n != 0 {
		t.Errorf("Step allocates %v times; want 0", n)
	}
}
