package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
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
	ID      string    `json:"id"`
	Names   []string  `json:"names"`
	Costs   []float64 `json:"costs"`
	Budget  float64   `json:"budget"`
	Start   int64     `json:"start"`   // Unix time of the first decision, 0 without dates
	Length  float64   `json:"length"`  // seconds between decisions, 0 without dates
	Ceiling []float64 `json:"ceiling"` // u*, interest; null where the level does not tell
	Epochs  int       `json:"epochs"`  // of an episode; 0 for endless
	Width   int       `json:"width"`   // figures of one observation
	Limited bool      `json:"limited"` // no state is above its ceiling
	Bounded bool      `json:"bounded"` // the relaxed optimum bounds what can be earned
	Changes []int     `json:"changes"` // epochs at which parameters change
}

// Frame is where K worlds write what a step or a reset brings: rows of K blocks,
// all one after the other. n is the number of sources. Unit and Seed have one row.
type Frame struct {
	Raw      []float64 // rows × K × width, or nil
	Scaled   []float32 // rows × K × width, or nil
	Reward   []float64 // rows × K
	Interest []float64 // rows × K × n, what the crawl of each source brought
	Crawled  []uint8   // rows × K × n, 1 for the sources that were crawled
	Over     []uint8   // rows × K, 1 where the episode has ended
	Unit     []float64 // K, bound of the relaxed problem, interest per epoch
	Seed     []uint64  // K, of the episode
}

// Worlds are K worlds that are stepped by one call. Only one call at a time is
// allowed.
type Worlds struct {
	set    worldSettings
	about  about
	n      int
	frames []Frame
	site   *site // of all worlds; nil where each draws an instance of its own
	does   dynamics

	// Of each world.
	at    []*site // nil before the first reset
	seed  []uint64
	epoch []int
	over  []uint8 // the episode has ended
	got   [][]env.Crawled

	most   int   // crawls of an epoch
	crawl  []int // K × most, of this step
	crawls []int // how many of them there are
	single bool  // they are one crawl, of any source
	hands  []hand
	call   call
}

// dynamics are what goes on in worlds. Two calls about other worlds may be made at
// the same time.
type dynamics interface {
	begin(k int) error // an episode of world k, under its seed
	// crawl has worlds from number lo up to hi crawl what was chosen and go on to
	// the next epoch. Where an episode is over it does nothing.
	crawl(lo, hi int, to *Frame, row int) error
	show(lo, hi int, to *Frame, row int) // writes observations
	age(k, i int) int                    // epochs since the last crawl of source i
}

// call is what a step was called with.
type call struct {
	actions any
	to      *Frame
	row     int
}

// hand is what one thread works with.
type hand struct {
	top *baselines.Selector
	key []float64
	err error
}

// openWorlds sets worlds up. They are reset before their first step.
func openWorlds(ctx context.Context, text []byte) (*Worlds, *about, error) {
	w := &Worlds{set: worldSettings{spec: usual(), Threads: 1}}
	if err := decode(text, &w.set); err != nil {
		return nil, nil, err
	}
	k := w.set.Worlds
	if k < 1 || k > maxWorlds || w.set.Steps < 0 || w.set.Threads < 1 {
		return nil, nil, fmt.Errorf("%d worlds of %d epochs on %d threads; allowed are 1 to %d worlds, 0 epochs or more and 1 thread or more", k, w.set.Steps, w.set.Threads, maxWorlds)
	}
	at, err := w.open(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	t := at.terms
	w.n, w.most = len(t.Costs), env.HowMany(len(t.Costs), slices.Min(t.Costs), t.Budget)
	if w.drawn() {
		w.most = w.n // other costs may come
	} else {
		w.site = at
		w.single = w.most == 1 && slices.Max(t.Costs) <= t.Budget
	}
	w.about = about{
		ID: at.Instance.ID, Names: t.Names, Costs: t.Costs, Budget: t.Budget, Start: t.Start, Length: t.Length,
		Epochs: at.Limit(cmp.Or(w.set.Steps, w.set.Window)), Width: 3 * w.n,
		Limited: w.set.Kind == "mean" && w.site != nil && len(at.Instance.Changes) == 0, Bounded: at.Bounded(w.set.Knowledge),
	}
	for _, c := range at.Instance.Changes {
		w.about.Changes = append(w.about.Changes, c.At)
	}
	if w.set.Knowledge == env.LevelOnline {
		w.about.Width = 2 * w.n
	} else {
		for _, s := range at.Instance.Sources {
			w.about.Ceiling = append(w.about.Ceiling, s.Ceiling())
		}
	}
	w.at, w.seed, w.epoch, w.over, w.got = make([]*site, k), make([]uint64, k), make([]int, k), make([]uint8, k), make([][]env.Crawled, k)
	w.crawl, w.crawls = make([]int, k*w.most), make([]int, k)
	for range w.set.Threads {
		w.hands = append(w.hands, hand{top: baselines.NewSelector(t.Costs, t.Budget), key: make([]float64, w.n)})
	}
	if w.set.Scaled {
		w.does = newDynamics(w, func(to *Frame) []float32 { return to.Scaled })
	} else {
		w.does = newDynamics(w, func(to *Frame) []float64 { return to.Raw })
	}
	return w, &w.about, nil
}

// drawn reports whether each seed has an instance of its own.
func (w *Worlds) drawn() bool { return strings.Contains(w.set.Instance, anySeed) }

// site is a scene, and the units of what is observed in it. Scaled, states and
// harvests are shares of u*, or of the bound where each seed has an instance of its
// own; where the level of knowledge does not tell u*, log(1 + harvest); rewards are
// shares of the bound; and ages are
//
//	1 − e^(−age/round)   with round the epochs that crawling each source once takes.
type site struct {
	experiments.Scene
	terms env.Terms
	rate  []float64 // what states are multiplied by
	log   bool
	unit  float64   // bound of the relaxed problem, interest per epoch
	pay   float64   // 1/unit, or 1
	round float64   // 0 for ages in epochs
	ages  []float32 // of the ages from 0 on, scaled
}

// open opens the scene of a seed and measures it.
func (w *Worlds) open(ctx context.Context, seed uint64) (*site, error) {
	scene, err := w.set.scene(ctx, seed)
	if err != nil {
		return nil, err
	}
	world, err := scene.Open(seed, w.set.Knowledge, false)
	if err != nil {
		return nil, err
	}
	at := &site{Scene: scene, terms: world.Terms(), rate: slices.Repeat([]float64{1}, len(scene.Instance.Sources)), pay: 1}
	at.unit = cmp.Or(index.Relax(scene.Instance.MeanDynamics()).Bound, 1)
	if !w.set.Scaled {
		return at, nil
	}
	at.pay, at.round = 1/at.unit, at.terms.Round()
	if at.log = w.set.Knowledge == env.LevelOnline; !at.log {
		for i, s := range scene.Instance.Sources {
			if at.rate[i] = at.pay; !w.drawn() && s.Ceiling() > 0 {
				at.rate[i] = 1 / s.Ceiling()
			}
		}
	}
	at.ages = make([]float32, int(min(18*at.round, 1<<16))+2)
	for age := range at.ages {
		at.ages[age] = float32(-math.Expm1(-float64(age) / at.round))
	}
	return at, nil
}

// harvest returns what a crawl brought as it is observed.
func (at *site) harvest(i int, y float64) float64 {
	if y *= at.rate[i]; at.log {
		return math.Log1p(y)
	}
	return y
}

// age returns an age as it is observed.
func age[F float32 | float64](at *site, a int) F {
	switch {
	case at.round == 0:
		return F(a)
	case a < len(at.ages):
		return F(at.ages[a])
	case float64(a) > 18*at.round:
		return 1 // as a float32
	}
	return F(-math.Expm1(-float64(a) / at.round))
}

// Bind says where Reset and Step write when they name that slot.
func (w *Worlds) Bind(slot int, to Frame) {
	for slot >= len(w.frames) {
		w.frames = append(w.frames, Frame{})
	}
	w.frames[slot] = to
}

// Layout returns the numbers of worlds, sources and figures of an observation,
// and whether these are float32.
func (w *Worlds) Layout() (worlds, sources, width int, scaled bool) {
	return len(w.at), w.n, w.about.Width, w.set.Scaled
}

func (w *Worlds) started() bool { return w.at[0] != nil }

// Reset begins an episode in every world that mask marks, all with nil, and
// writes into a row of a slot. seeds has a seed for each world; without, the seed
// of an episode follows from the one before.
func (w *Worlds) Reset(mask []uint8, seeds []uint64, slot, row int) error {
	if !w.started() && (mask != nil || seeds == nil) {
		return errors.New("the first reset is of all worlds and has their seeds")
	}
	to := &w.frames[slot]
	w.clear(0, len(w.at), to, row)
	for k := range w.at {
		if mask == nil || mask[k] != 0 {
			seed := stream.Mix(w.seed[k])
			if seeds != nil {
				seed = seeds[k]
			}
			if err := w.begin(k, seed, to); err != nil {
				return err
			}
		}
	}
	w.show(0, len(w.at), to, row)
	return nil
}

// begin begins an episode of world k under a seed.
func (w *Worlds) begin(k int, seed uint64, to *Frame) (err error) {
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
	to.Unit[k], to.Seed[k] = at.unit, seed
	return w.does.begin(k)
}

// clear has worlds from number lo up to hi have brought nothing.
func (w *Worlds) clear(lo, hi int, to *Frame, row int) {
	lo, hi = row*len(w.at)+lo, row*len(w.at)+hi
	clear(to.Reward[lo:hi])
	clear(to.Interest[lo*w.n : hi*w.n])
	clear(to.Crawled[lo*w.n : hi*w.n])
}

// show writes what is seen now of worlds from number lo up to hi.
func (w *Worlds) show(lo, hi int, to *Frame, row int) {
	copy(to.Over[row*len(w.at)+lo:], w.over[lo:hi])
	w.does.show(lo, hi, to, row)
}

// Step steps all worlds and writes into a row of a slot. The actions are K × n
// scores, []float32 or []float64, K × n marks 0 and 1, []int8, or K sources,
// []int64. What it refuses changes nothing in any of them.
func (w *Worlds) Step(actions any, slot, row int) error {
	if !w.started() {
		return errors.New("step before the first reset")
	}
	w.call = call{actions, &w.frames[slot], row}
	if err := w.each((*Worlds).choose); err != nil {
		return err
	}
	return w.each((*Worlds).step)
}

// each does something to worlds from number lo up to hi, on all threads.
func (w *Worlds) each(do func(w *Worlds, h *hand, lo, hi int) error) error {
	if len(w.hands) == 1 {
		return do(w, &w.hands[0], 0, len(w.at))
	}
	var wait sync.WaitGroup
	for t := range w.hands {
		h, lo, hi := &w.hands[t], t*len(w.at)/len(w.hands), (t+1)*len(w.at)/len(w.hands)
		wait.Go(func() { h.err = do(w, h, lo, hi) })
	}
	wait.Wait()
	for _, h := range w.hands {
		if h.err != nil {
			return h.err
		}
	}
	return nil
}

// of names the world in its error.
func (w *Worlds) of(k int, err error) error {
	if err != nil && len(w.at) > 1 {
		err = fmt.Errorf("world %d: %w", k, err)
	}
	return err
}

// choose settles the crawls of worlds.
func (w *Worlds) choose(h *hand, lo, hi int) error {
	n := w.n
	for k := lo; k < hi; k++ {
		w.crawls[k] = 0
		if w.over[k] != 0 {
			if !w.set.Autoreset {
				return w.of(k, errors.New("step after the end of the episode; reset first"))
			}
			continue
		}
		var err error
		switch a := w.call.actions.(type) {
		case []float64:
			err = best(w, h, k, a[k*n:(k+1)*n])
		case []float32:
			if w.single {
				if i, ok := greatest(a[k*n : (k+1)*n]); ok {
					w.crawl[k], w.crawls[k] = i, 1
					continue
				}
			}
			err = best(w, h, k, a[k*n:(k+1)*n])
		case []int8:
			err = w.named(h, k, a[k*n:(k+1)*n])
		case []int64:
			if a[k] < 0 || a[k] >= int64(n) {
				err = fmt.Errorf("action is source %d; allowed are 0 to %d", a[k], n-1)
			}
			w.crawl[k*w.most], w.crawls[k] = int(a[k]), 1
		}
		if err != nil {
			return w.of(k, err)
		}
	}
	return nil
}

// best crawls by decreasing score within the budget, equal scores by number.
func best[F float32 | float64](w *Worlds, h *hand, k int, score []F) error {
	for i, y := range score {
		if y != y {
			return fmt.Errorf("the score of source %d is NaN", i)
		}
		h.key[i] = float64(y)
	}
	w.top(h, k)
	return nil
}

// greatest returns the number of the greatest score, the first of equal ones; ok is
// false where one of them is NaN or all are −∞. It takes no branches, which scores
// would mislead.
func greatest(score []float32) (at int, ok bool) {
	// Read as integers, floats from 0 on are in order, and those below are turned round.
	most, size, at := int32(math.MinInt32), int32(0), 0
	for i, y := range score {
		b := int32(math.Float32bits(y + 0)) // −0 is 0
		size = max(size, b&math.MaxInt32)
		if b ^= b >> 31 & math.MaxInt32; b > most {
			most, at = b, i
		}
	}
	infinite := int32(math.Float32bits(float32(math.Inf(1))))
	return at, size <= infinite && !math.IsInf(float64(score[at]), -1)
}

// top crawls by decreasing key.
func (w *Worlds) top(h *hand, k int) {
	top := h.top
	if w.site == nil {
		t := &w.at[k].terms
		top = baselines.NewSelector(t.Costs, t.Budget)
	}
	w.crawls[k] = len(top.Top(w.crawl[k*w.most:k*w.most], h.key))
}

// named crawls the sources that are named.
func (w *Worlds) named(h *hand, k int, set []int8) error {
	t := &w.at[k].terms
	var cost float64
	for i, b := range set {
		switch b {
		case 0:
			h.key[i] = math.Inf(-1)
		case 1:
			h.key[i] = float64(w.does.age(k, i))
			cost += t.Costs[i]
		default:
			return fmt.Errorf("action %d of source %d; allowed are 0 and 1", b, i)
		}
	}
	if !w.set.Truncate && !env.Fits(cost, t.Budget) {
		return fmt.Errorf("the set costs %v; allowed is the budget, %v", cost, t.Budget)
	}
	w.top(h, k)
	return nil
}

// step steps worlds, or resets those that are over, few enough at a time that they
// stay in the cache.
func (w *Worlds) step(_ *hand, lo, end int) error {
	to, row := w.call.to, w.call.row
	for few := 1 + 1024/w.n; lo < end; lo += few {
		hi := min(lo+few, end)
		w.clear(lo, hi, to, row)
		if err := w.does.crawl(lo, hi, to, row); err != nil {
			return err
		}
		for k := lo; k < hi; k++ {
			if w.over[k] != 0 {
				if err := w.begin(k, stream.Mix(w.seed[k]), to); err != nil {
					return w.of(k, err)
				}
			} else if w.epoch[k]++; w.epoch[k] == w.about.Epochs {
				w.over[k] = 1
			}
		}
		w.show(lo, hi, to, row)
	}
	return nil
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
