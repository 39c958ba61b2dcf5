package native

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
)

// worldSettings are the settings of a set of worlds.
type worldSettings struct {
	experiments.Run      // of exact Whittle; * in the name of its instance stands for the seed
	Window          int  // epochs of the windows of the fitted part of a recording that are played; 0 to play the rest
	Worlds          int  // K
	Limit           int  // epochs of an episode; 0 for all that the world has
	Scaled          bool // observations and rewards have units of their own
	Truncate        bool // a set that is dearer than the budget is cut to it, longest waiting first; otherwise refused
	Autoreset       bool // a world that is over is reset by its next step
	Account         bool // the one world is that of a run, whose record is wanted
	Threads         int
}

// about is what Python must know of worlds to lay out its buffers.
type about struct {
	env.Terms
	ID      string
	Ceiling []float64 // u*, interest, where no state is above it; otherwise null
	Costly  bool      // interest may be below 0: a source has the law delay
	Epochs  int       // of an episode; 0 for endless
	Width   int       // figures of one observation
	Most    int       // crawls of an epoch
	Bounded bool      // the relaxed optimum bounds what can be earned
	Changes []int     // epochs at which parameters change
	Parts   []Part    // of the buffer that worlds write into, in their order
}

// Worlds are K worlds that are stepped by one call. Only one call at a time is
// allowed.
type Worlds struct {
	set    worldSettings
	about  about
	n      int   // sources
	single bool  // an epoch has one crawl, of any source
	site   *site // of all worlds; nil where each draws an instance of its own
	does   dynamics
	hands  []hand
	played *played // the run's parts; nil without an account

	// Of the call under way.
	actions unsafe.Pointer
	form    int
	to      frame

	// Of each world.
	at    []*site // nil before the first reset
	seed  []uint64
	epoch []int
	over  []uint8         // 1 where the episode has ended
	got   [][]env.Crawled // by the last step
}

// frame is where a reset or a step writes: the parts of one buffer, each with a block
// for each world. A buffer holds zeros at first. When it is used again only what its last
// crawls left is cleared.
type frame struct {
	reward   []float64
	unit     []float64 // at a reset: what a scaled reward of 1 stands for, interest per epoch
	bound    []float64 // at a reset: of the relaxed problem, interest per epoch
	seed     []int64   // at a reset: of the episode
	interest []float64 // what the crawl of each source brought
	crawl    []int     // the sources that are crawled
	crawls   []int     // how many they are; −1 for not settled
	raw      []float64 // what is seen; or
	scaled   []float32 // the same
	crawled  []uint8   // 1 for the sources that are crawled
	over     []uint8   // 1 where the episode has ended
}

// Part says what a part of the buffer is, so that who lays it out need not know.
type Part struct {
	Name string
	Type string // of its figures, as NumPy calls it
	Each int    // figures of a world; 0 for one without an axis
}

// cutter cuts the parts off a buffer; without one it lists them.
type cutter struct {
	buffer unsafe.Pointer
	worlds int
	parts  []Part
}

func cut[T any](c *cutter, name, kind string, each int) (figures []T) {
	if c.buffer == nil {
		c.parts = append(c.parts, Part{name, kind, each})
		return nil
	}
	figures = unsafe.Slice((*T)(c.buffer), c.worlds*max(1, each))
	c.buffer = unsafe.Add(c.buffer, len(figures)*int(unsafe.Sizeof(*new(T))))
	return figures
}

// cut has the call under way write into a buffer.
func (w *Worlds) cut(c *cutter) {
	w.to = frame{
		reward:   cut[float64](c, "reward", "float64", 0),
		unit:     cut[float64](c, "unit", "float64", 0),
		bound:    cut[float64](c, "bound", "float64", 0),
		seed:     cut[int64](c, "seed", "int64", 0),
		interest: cut[float64](c, "interest", "float64", w.n),
		crawl:    cut[int](c, "crawl", "intp", w.about.Most),
		crawls:   cut[int](c, "crawls", "intp", 0),
	}
	if w.set.Scaled {
		w.to.scaled = cut[float32](c, "observation", "float32", w.about.Width)
	} else {
		w.to.raw = cut[float64](c, "observation", "float64", w.about.Width)
	}
	w.to.crawled, w.to.over = cut[uint8](c, "crawled", "bool", w.n), cut[uint8](c, "over", "bool", 0)
}

// write has the call under way write into a buffer.
func (w *Worlds) write(buffer unsafe.Pointer) { w.cut(&cutter{buffer: buffer, worlds: len(w.at)}) }

// put writes a figure of an observation.
func (f *frame) put(at int, v float64) {
	if f.scaled != nil {
		f.scaled[at] = float32(v)
	} else {
		f.raw[at] = v
	}
}

// hand is what one thread works with.
type hand struct {
	top *baselines.Selector
	key []float64
}

// openWorlds sets worlds up. They are reset before their first step.
func openWorlds(set worldSettings) (*Worlds, error) {
	w := &Worlds{set: set}
	at, err := w.openSite(0)
	if err != nil {
		return nil, err
	}
	if v := w.set.Window; v != 0 && (v < 0 || v >= at.Epochs) {
		return nil, fmt.Errorf("window is %d; allowed are 1 to %d epochs, "+
			"those of the part on which the model is fitted", v, at.Epochs-1)
	}
	k, t := w.set.Worlds, at.terms
	w.n = len(t.Costs)
	in := at.Instance
	w.about = about{
		Terms: t, ID: in.ID, Epochs: at.Limit(cmp.Or(w.set.Limit, w.set.Window)),
		Width: 3 * w.n, Most: w.n, Bounded: at.Bounded(at.level),
		Costly: slices.ContainsFunc(in.Sources, env.Source.Unbounded),
	}
	if !w.drawn() { // otherwise other costs may come
		w.site = at
		w.about.Most = int(min(float64(w.n), t.Budget*(1+1e-9)/slices.Min(t.Costs)))
		w.single = w.about.Most == 1 && slices.Max(t.Costs) <= t.Budget
	}
	if at.level == env.LevelOnline {
		w.about.Width = 2 * w.n
	} else if w.set.World.Kind == "mean" && w.site != nil && len(in.Changes) == 0 && !w.about.Costly {
		for _, s := range in.Sources {
			w.about.Ceiling = append(w.about.Ceiling, s.Ceiling())
		}
	}
	for _, c := range in.Changes {
		w.about.Changes = append(w.about.Changes, c.At)
	}
	w.at, w.seed, w.epoch = make([]*site, k), make([]uint64, k), make([]int, k)
	w.over, w.got = make([]uint8, k), make([][]env.Crawled, k)
	for range min(w.set.Threads, k) {
		w.hands = append(w.hands, hand{top: baselines.NewSelector(t.Costs, t.Budget), key: make([]float64, w.n)})
	}
	if w.set.Account {
		w.played = newPlayed()
	} else {
		w.does = newFlat(w)
	}
	if w.does == nil {
		w.does = &stepped{w: w, world: make([]env.World, k), found: make([]float64, k*w.n), owed: make([]float64, k)}
	}
	var c cutter
	w.cut(&c)
	w.about.Parts = c.parts
	return w, nil
}

func (w *Worlds) functions() functions {
	f := functions{"describe": func() *about { return &w.about }, "reset": w.reset, "step": w.Step, "items": w.items}
	if w.played != nil {
		f["limit"], f["terms"], f["measure"] = w.limit, w.seedTerms, w.measure
		f["again"], f["record"], f["pages"] = w.again, w.record, w.pages
		f["close"] = w.played.stop
	}
	return f
}

// drawn reports whether each seed has an instance of its own.
func (w *Worlds) drawn() bool { return strings.Contains(w.set.Instance.Name, anySeed) }

// reset begins episodes and writes what is seen then over the numbers: in the worlds
// of the mask, nil for all, as at first, under the seeds, of all worlds, or nil, but at
// first, for those that follow from the seeds before.
func (w *Worlds) reset(mask []bool, seeds []uint64, n Numbers) error {
	w.write(unsafe.Pointer(unsafe.SliceData(n)))
	for k := range w.at {
		if mask == nil || mask[k] {
			seed := following(w.seed[k])
			if seeds != nil {
				seed = seeds[k]
			}
			if err := w.beginEpisode(k, seed); err != nil {
				return err
			}
		}
		w.clear(k)
		w.to.unit[k], w.to.bound[k] = w.at[k].unit, w.at[k].bound
		w.to.seed[k], w.to.over[k] = int64(w.seed[k]), w.over[k]
	}
	return w.does.step(0, len(w.at), true)
}

// following returns the seed of the episode after that of a seed. Like all seeds of
// Python it is below 2⁶³: others keep it as a number of 64 bits with a sign.
func following(seed uint64) uint64 { return stream.Mix(seed) >> 1 }

// beginEpisode begins an episode of world k under a seed.
func (w *Worlds) beginEpisode(k int, seed uint64) (err error) {
	at := w.site
	if at == nil {
		if at, err = w.openSite(seed); err != nil {
			return err
		}
	}
	w.at[k], w.seed[k], w.epoch[k], w.over[k], w.got[k] = at, seed, 0, 0, nil
	return w.does.beginEpisode(k)
}

// clear has a world have no crawls.
func (w *Worlds) clear(k int) {
	for _, i := range w.to.crawl[k*w.about.Most:][:max(0, w.to.crawls[k])] {
		w.to.interest[k*w.n+i], w.to.crawled[k*w.n+i] = 0, 0
	}
	w.to.crawls[k] = 0
}

// Step steps all worlds and writes into a buffer. The form of the actions is one
// of those below. What it refuses changes nothing in any of them.
func (w *Worlds) Step(actions unsafe.Pointer, form int, to unsafe.Pointer) error {
	w.write(to)
	w.actions, w.form = actions, form
	if err := w.each((*Worlds).takeActions); err != nil {
		return err
	}
	return w.each((*Worlds).step)
}

// each does something to worlds from number lo up to hi, on all threads.
func (w *Worlds) each(do func(w *Worlds, h *hand, lo, hi int) error) error {
	threads, k := len(w.hands), len(w.at)
	if threads == 1 {
		return do(w, &w.hands[0], 0, k)
	}
	var group errgroup.Group
	for t := 1; t < threads; t++ {
		group.Go(func() error { return do(w, &w.hands[t], t*k/threads, (t+1)*k/threads) })
	}
	first := do(w, &w.hands[0], 0, k/threads)
	return cmp.Or(first, group.Wait())
}

// of names the world in its error.
func (w *Worlds) of(k int, err error) error {
	if err != nil && len(w.at) > 1 {
		err = fmt.Errorf("world %d: %w", k, err)
	}
	return err
}

// step steps worlds, or resets those that are over.
func (w *Worlds) step(_ *hand, lo, hi int) error {
	for k := lo; k < hi; k++ {
		if w.over[k] != 0 {
			if err := w.beginEpisode(k, following(w.seed[k])); err != nil {
				return w.of(k, err)
			}
		} else if w.epoch[k]++; w.epoch[k] == w.limit() {
			w.over[k] = 1
		}
	}
	copy(w.to.over[lo:], w.over[lo:hi])
	if err := w.does.step(lo, hi, false); err != nil || w.played == nil {
		return err
	}
	return w.played.add(w.got[0])
}

// items writes over the numbers, if they are enough, and returns how many are needed.
// Of the last step of each world these are the number of crawls; of each crawl the
// source, the interest, and how many items it brought back; and age and interest of
// each item.
func (w *Worlds) items(n Numbers) int {
	n = n[:0]
	for _, got := range w.got {
		n = append(n, float64(len(got)))
		for _, c := range got {
			n = append(n, float64(c.Source), c.Interest, float64(len(c.Items)))
			for _, x := range c.Items {
				n = append(n, x.Age, x.Interest)
			}
		}
	}
	return len(n)
}

// Forms of actions.
const (
	scores32 = iota // K × n, float32
	scores64        // K × n, float64
	set             // K × n, 0 or 1, int8
	one             // K, numbers of sources, int64
)

// action returns the n figures that are the action of world k.
func action[T any](w *Worlds, k, n int) []T {
	return unsafe.Slice((*T)(w.actions), (k+1)*n)[k*n:]
}

// takeActions settles the crawls of worlds from number lo up to hi: by decreasing key
// within the budget, equal keys by number.
func (w *Worlds) takeActions(h *hand, lo, hi int) error {
	chosen := w.form == scores32 && w.single && greatest != nil
	if chosen && greatest(w, lo, hi) == 0 {
		return nil
	}
	for k := lo; k < hi; k++ {
		if chosen && w.to.crawls[k] >= 0 {
			continue
		}
		w.clear(k)
		if w.over[k] != 0 {
			if !w.set.Autoreset {
				return w.of(k, errors.New("step after the end of the episode; reset first"))
			}
			continue
		}
		if err := w.rank(h.key, k); err != nil {
			return w.of(k, err)
		}
		top, first := h.top, k*w.about.Most
		if w.site == nil {
			t := &w.at[k].terms
			top = baselines.NewSelector(t.Costs, t.Budget)
		}
		if d, ok := w.does.(*stepped); ok {
			top.Within(&d.world[k].View().Online)
		}
		w.to.crawls[k] = len(top.Top(w.to.crawl[first:first], h.key))
	}
	return nil
}

// rank writes the keys by which world k crawls its sources: their scores, or of those
// that are named the epochs that they have waited. Sources that are named are together
// within the budget unless what is above it is cut off.
func (w *Worlds) rank(key []float64, k int) error {
	n := len(key)
	switch w.form {
	case scores32:
		for i, y := range action[float32](w, k, n) {
			key[i] = float64(y)
		}
	case scores64:
		copy(key, action[float64](w, k, n))
	case set:
		t := &w.at[k].terms
		var cost float64
		for i, b := range action[int8](w, k, n) {
			switch b {
			case 0:
				key[i] = math.Inf(-1)
			case 1:
				key[i] = float64(w.does.age(k, i))
				cost += t.Costs[i]
			default:
				return fmt.Errorf("action %d of source %d; allowed are 0 and 1", b, i)
			}
		}
		if !w.set.Truncate && !env.Fits(cost, t.Budget) {
			return fmt.Errorf("the set costs %v; allowed is the budget, %v", cost, t.Budget)
		}
	case one:
		i := action[int64](w, k, 1)[0]
		if i < 0 || i >= int64(n) {
			return fmt.Errorf("action is source %d; allowed are 0 to %d", i, n-1)
		}
		for j := range key {
			key[j] = math.Inf(-1)
		}
		key[i] = 0
	}
	if i := slices.IndexFunc(key, math.IsNaN); i >= 0 {
		return fmt.Errorf("the score of source %d is NaN; allowed are numbers, inf, which is crawled first, "+
			"and -inf, which is never crawled", i)
	}
	return nil
}
