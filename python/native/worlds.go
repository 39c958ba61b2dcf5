package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// worldSettings are the settings of a set of worlds.
type worldSettings struct {
	spec
	Worlds    int  // K
	Steps     int  // epochs of an episode; 0 for all that the world has
	Scaled    bool // observations and rewards have units of their own
	Truncate  bool // a set that is dearer than the budget is cut to it, longest waiting first; otherwise refused
	Autoreset bool // a world that is over is reset by its next step
	Threads   int
}

const maxWorlds = 1 << 24

// about is what Python must know of worlds to lay out its buffers.
type about struct {
	env.Terms
	ID      string
	Ceiling []float64 // u*, interest, where no state is above it; otherwise null
	Epochs  int       // of an episode; 0 for endless
	Width   int       // figures of one observation
	Bounded bool      // the relaxed optimum bounds what can be earned
	Changes []int     // epochs at which parameters change
}

// Worlds are K worlds that are stepped by one call. Only one call at a time is
// allowed.
type Worlds struct {
	set    worldSettings
	about  about
	n      int  // sources
	most   int  // crawls of an epoch
	single bool // they are one crawl, of any source
	frames []frame
	site   *site // of all worlds; nil where each draws an instance of its own
	does   dynamics
	hands  []hand
	doing  doing

	// Of each world.
	at    []*site // nil before the first reset
	seed  []uint64
	epoch []int
	over  []uint8 // 1 where the episode has ended
	got   [][]env.Crawled
}

// frame is a buffer that K worlds write into, one row by each reset or step. Each
// part has in each row a block for each world.
type frame struct {
	reward   []float64 // 1 figure
	unit     []float64 // 1, at a reset: bound of the relaxed problem, interest per epoch
	seed     []uint64  // 1, at a reset: of the episode
	interest []float64 // n, what the crawl of each source brought
	raw      []float64 // width, what is seen; or
	scaled   []float32 // the same
	crawled  []uint8   // n, 1 for the sources that were crawled
	over     []uint8   // 1, whether the episode has ended

	// Which sources a block has as crawled. When it is written again only these have
	// to be cleared.
	crawl  []int // most
	crawls []int // 1, how many they are; −1 for not settled
}

// put writes a figure of an observation.
func (f *frame) put(at int, v float64) {
	if f.scaled != nil {
		f.scaled[at] = float32(v)
	} else {
		f.raw[at] = v
	}
}

// doing is what a step was called with.
type doing struct {
	actions any
	to      *frame
	row     int
}

// hand is what one thread works with.
type hand struct {
	top *baselines.Selector
	key []float64
}

// openWorlds sets worlds up. They are reset before their first step.
func openWorlds(ctx context.Context, text []byte) (*Worlds, error) {
	w := &Worlds{set: worldSettings{spec: usual(), Threads: 1}}
	if err := decode(text, &w.set); err != nil {
		return nil, err
	}
	k := w.set.Worlds
	if k < 1 || k > maxWorlds || w.set.Steps < 0 || w.set.Threads < 1 {
		return nil, fmt.Errorf("%d worlds of %d epochs on %d threads; allowed are 1 to %d worlds, 0 epochs or more and 1 thread or more", k, w.set.Steps, w.set.Threads, maxWorlds)
	}
	at, err := w.open(ctx, 0)
	if err != nil {
		return nil, err
	}
	t := at.terms
	w.n = len(t.Costs)
	w.most = int(min(float64(w.n), t.Budget*(1+1e-9)/slices.Min(t.Costs)))
	if w.drawn() {
		w.most = w.n // other costs may come
	} else {
		w.site = at
		w.single = w.most == 1 && slices.Max(t.Costs) <= t.Budget
	}
	in, online := at.Instance, w.set.Knowledge == env.LevelOnline
	w.about = about{Terms: t, ID: in.ID, Epochs: at.Limit(cmp.Or(w.set.Steps, w.set.Window)), Width: 3 * w.n, Bounded: at.Bounded(w.set.Knowledge)}
	if online {
		w.about.Width = 2 * w.n
	}
	if w.set.Kind == "mean" && w.site != nil && len(in.Changes) == 0 && !online {
		for _, s := range in.Sources {
			w.about.Ceiling = append(w.about.Ceiling, s.Ceiling())
		}
	}
	for _, c := range in.Changes {
		w.about.Changes = append(w.about.Changes, c.At)
	}
	w.at, w.seed, w.epoch, w.over, w.got = make([]*site, k), make([]uint64, k), make([]int, k), make([]uint8, k), make([][]env.Crawled, k)
	for range w.set.Threads {
		w.hands = append(w.hands, hand{top: baselines.NewSelector(t.Costs, t.Budget), key: make([]float64, w.n)})
	}
	if w.does = newFlat(w); w.does == nil {
		w.does = newStepped(w)
	}
	return w, nil
}

// drawn reports whether each seed has an instance of its own.
func (w *Worlds) drawn() bool { return strings.Contains(w.set.Instance, anySeed) }

// cut cuts figures off a buffer.
func cut[T any](buffer *[]byte, length int) []T {
	var one T
	size := length * int(unsafe.Sizeof(one))
	figures := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData((*buffer)[:size]))), length)
	*buffer = (*buffer)[size:]
	return figures
}

// Bind says that a reset or step that names the slot writes into rows of a buffer,
// which holds zeros: the parts of a frame one after the other. Of what is there
// only interest and marks of crawls are taken to be as they were left.
func (w *Worlds) Bind(slot, rows int, buffer []byte) {
	blocks := rows * len(w.at)
	f := frame{crawl: make([]int, blocks*w.most), crawls: make([]int, blocks)}
	f.reward, f.unit, f.seed = cut[float64](&buffer, blocks), cut[float64](&buffer, blocks), cut[uint64](&buffer, blocks)
	f.interest = cut[float64](&buffer, blocks*w.n)
	if w.set.Scaled {
		f.scaled = cut[float32](&buffer, blocks*w.about.Width)
	} else {
		f.raw = cut[float64](&buffer, blocks*w.about.Width)
	}
	f.crawled, f.over = cut[uint8](&buffer, blocks*w.n), cut[uint8](&buffer, blocks)
	for slot >= len(w.frames) {
		w.frames = append(w.frames, frame{})
	}
	w.frames[slot] = f
}

// Layout returns the numbers of worlds and of sources.
func (w *Worlds) Layout() (worlds, sources int) { return len(w.at), w.n }

func (w *Worlds) describe() any { return &w.about }

// call is [Call] about worlds.
func (w *Worlds) call(what string, text []byte, m *Made) error {
	switch what {
	case "reset":
		return w.reset(text)
	case "items":
		m.Numbers = w.items(m.Numbers)
		return nil
	}
	return unknown(what)
}

// reset begins episodes and writes what is seen then.
func (w *Worlds) reset(text []byte) error {
	var r struct {
		Mask      []bool   // of the worlds in which an episode begins; null for all
		Seeds     []uint64 // of all worlds; null for those that follow from the seeds before
		Slot, Row int      // where it is written
	}
	if err := decode(text, &r); err != nil {
		return err
	}
	if w.at[0] == nil && (r.Mask != nil || r.Seeds == nil) {
		return errors.New("the first reset is of all worlds and has their seeds")
	}
	for k := range w.at {
		if r.Mask != nil && !r.Mask[k] {
			continue
		}
		seed := stream.Mix(w.seed[k])
		if r.Seeds != nil {
			seed = r.Seeds[k]
		}
		if err := w.begin(k, seed); err != nil {
			return err
		}
	}
	to, first := &w.frames[r.Slot], r.Row*len(w.at)
	for k, at := range w.at {
		w.clear(to, first+k)
		to.unit[first+k], to.seed[first+k], to.over[first+k] = at.unit, w.seed[k], w.over[k]
	}
	return w.does.step(0, len(w.at), to, r.Row, true)
}

// begin begins an episode of world k under a seed.
func (w *Worlds) begin(k int, seed uint64) (err error) {
	at := w.site
	if at == nil {
		if at, err = w.open(context.Background(), seed); err != nil {
			return err
		}
		if len(at.terms.Costs) != w.n {
			return fmt.Errorf("instance %s has %d sources, and not %d", at.Instance.ID, len(at.terms.Costs), w.n)
		}
	}
	w.at[k], w.seed[k], w.epoch[k], w.over[k], w.got[k] = at, seed, 0, 0, nil
	return w.does.begin(k)
}

// clear has a block have no crawls.
func (w *Worlds) clear(to *frame, block int) {
	for _, i := range to.crawl[block*w.most:][:max(0, to.crawls[block])] {
		to.interest[block*w.n+i], to.crawled[block*w.n+i] = 0, 0
	}
	to.crawls[block] = 0
}

// Step steps all worlds and writes into a row of a slot. The actions are K × n
// scores, []float32 or []float64, K × n marks 0 and 1, []int8, or K sources,
// []int64. What it refuses changes nothing in any of them.
func (w *Worlds) Step(actions any, slot, row int) error {
	if w.at[0] == nil {
		return errors.New("step before the first reset")
	}
	w.doing = doing{actions, &w.frames[slot], row}
	if err := w.each((*Worlds).choose); err != nil {
		return err
	}
	return w.each((*Worlds).step)
}

// each does something to worlds from number lo up to hi, on all threads.
func (w *Worlds) each(do func(w *Worlds, h *hand, lo, hi int) error) error {
	threads := len(w.hands)
	if threads == 1 {
		return do(w, &w.hands[0], 0, len(w.at))
	}
	var group errgroup.Group
	for t := range threads {
		group.Go(func() error { return do(w, &w.hands[t], t*len(w.at)/threads, (t+1)*len(w.at)/threads) })
	}
	return group.Wait()
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
			if err := w.begin(k, stream.Mix(w.seed[k])); err != nil {
				return w.of(k, err)
			}
		} else if w.epoch[k]++; w.epoch[k] == w.about.Epochs {
			w.over[k] = 1
		}
	}
	copy(w.doing.to.over[w.doing.row*len(w.at)+lo:], w.over[lo:hi])
	return w.does.step(lo, hi, w.doing.to, w.doing.row, false)
}

// items appends, of the last step of each world, how many crawls there were; of
// each crawl the source, the interest, and how many items it brought back; and age
// and interest of each item.
func (w *Worlds) items(to []float64) []float64 {
	for _, got := range w.got {
		to = append(to, float64(len(got)))
		for _, c := range got {
			to = append(to, float64(c.Source), c.Interest, float64(len(c.Items)))
			for _, x := range c.Items {
				to = append(to, x.Age, x.Interest)
			}
		}
	}
	return to
}
