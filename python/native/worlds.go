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
	Threads   int  // 0 for one
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
	world  []one
	epoch  []int
	over   []bool // the episode has ended
	most   int    // crawls of an epoch
	crawl  []int  // K × most, of this step
	crawls []int  // how many of them there are
	flat   flat   // holds the worlds, where they follow the mean dynamics; else nil
	hands  []hand
}

// hand is what one thread works with.
type hand struct {
	top *baselines.Selector
	key []float64
	err error
}

// site is a scene, and the units of what is observed in it. Scaled, states and
// harvests are shares of u*, or of the bound where each seed has an instance of its
// own; where the level of knowledge does not tell u*, log(1 + harvest); rewards are shares of the bound; and ages are
//
//	1 − e^(−age/round)   with round the epochs that crawling each source once takes.
type site struct {
	experiments.Scene
	terms env.Terms
	equal bool      // all crawls cost the same
	gain  []float64 // mean states at the beginning; u, under the mean dynamics
	rate  []float64 // what states are multiplied by
	log   bool
	unit  float64   // bound of the relaxed problem, interest per epoch
	pay   float64   // 1/unit, or 1
	round float64   // 0 for ages in epochs
	ages  []float32 // of the ages from 0 on, scaled
}

// one is a world on its way through an episode.
type one struct {
	env.World // nil in flat
	at        *site
	seed      uint64
	found     []float64 // as observed: of each source's last crawl, 0 before the first; nil in flat
	got       []env.Crawled
}

// openWorlds sets worlds up. They are reset before their first step.
func openWorlds(ctx context.Context, text []byte) (*Worlds, *about, error) {
	w := &Worlds{set: worldSettings{spec: usual(), Threads: 1}}
	if err := decode(text, &w.set); err != nil {
		return nil, nil, err
	}
	if w.set.Worlds < 1 || w.set.Worlds > maxWorlds || w.set.Steps < 0 || w.set.Threads < 1 {
		return nil, nil, fmt.Errorf("%d worlds of %d epochs on %d threads; allowed are 1 to %d worlds, 0 epochs or more and 1 thread or more", w.set.Worlds, w.set.Steps, w.set.Threads, maxWorlds)
	}
	at, err := w.open(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	t := at.terms
	w.n = len(t.Costs)
	w.world, w.epoch, w.over = make([]one, w.set.Worlds), make([]int, w.set.Worlds), make([]bool, w.set.Worlds)
	w.most = min(w.n, int(t.Budget*(1+1e-9)/slices.Min(t.Costs)))
	if w.drawn() {
		w.most = w.n // other costs may come
	} else {
		w.site = at
		w.flat = newFlat(at, &w.set)
	}
	w.crawl, w.crawls = make([]int, w.set.Worlds*w.most), make([]int, w.set.Worlds)
	for range w.set.Threads {
		w.hands = append(w.hands, hand{top: baselines.NewSelector(t.Costs, t.Budget), key: make([]float64, w.n)})
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
	return w, &w.about, nil
}

// drawn reports whether each seed has an instance of its own.
func (w *Worlds) drawn() bool { return strings.Contains(w.set.Instance, anySeed) }

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
	at := &site{Scene: scene, terms: world.Terms(), gain: world.View().Mean, rate: make([]float64, len(scene.Instance.Sources)), pay: 1}
	at.unit = index.Relax(scene.Instance.MeanDynamics()).Bound
	if at.unit == 0 {
		at.unit = 1
	}
	at.equal = slices.Max(at.terms.Costs) == slices.Min(at.terms.Costs)
	for i := range at.rate {
		at.rate[i] = 1
	}
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
	at.ages = make([]float32, int(min(18*at.round, 1<<16))+2) // then 1 as a float32, or computed
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
	return len(w.world), w.n, w.about.Width, w.set.Scaled
}

func (w *Worlds) started() bool { return w.world[0].at != nil }

// Reset begins an episode in every world that mask marks, all with nil, and
// writes into a row of a slot. seeds has a seed for each world; without, the seed
// of an episode follows from the one before.
func (w *Worlds) Reset(mask []uint8, seeds []uint64, slot, row int) error {
	if !w.started() && (mask != nil || seeds == nil) {
		return errors.New("the first reset is of all worlds and has their seeds")
	}
	to := &w.frames[slot]
	for k := range w.world {
		x := &w.world[k]
		if mask == nil || mask[k] != 0 {
			seed := stream.Mix(x.seed)
			if seeds != nil {
				seed = seeds[k]
			}
			if err := w.begin(k, seed, to); err != nil {
				return err
			}
		}
		w.write(to, row, k)
	}
	return nil
}

// begin begins an episode of world k under a seed.
func (w *Worlds) begin(k int, seed uint64, to *Frame) (err error) {
	x := &w.world[k]
	if x.at = w.site; x.at == nil {
		if x.at, err = w.open(context.Background(), seed); err != nil {
			return err
		}
		if len(x.at.terms.Costs) != w.n {
			return fmt.Errorf("instance %s has %d sources, and not %d", x.at.Instance.ID, len(x.at.terms.Costs), w.n)
		}
	}
	x.seed, x.got, w.epoch[k], w.over[k] = seed, nil, 0, false
	to.Unit[k], to.Seed[k] = x.at.unit, seed
	if w.flat != nil {
		w.flat.begin(k)
		return nil
	}
	x.found = make([]float64, w.n)
	if x.World, err = x.at.Open(seed, w.set.Knowledge, w.set.Window > 0); err == nil && w.set.Window > 0 {
		err = x.window(w.set.Window, w.n)
	}
	return err
}

// window goes to the beginning of a window, in the epoch before which all sources
// were crawled.
func (x *one) window(epochs, sources int) error {
	for range stream.Mix(x.seed) % uint64(x.at.Epochs-epochs) {
		if _, err := x.Step(nil); err != nil {
			return err
		}
	}
	all := make([]int, sources)
	for i := range all {
		all[i] = i
	}
	_, err := x.Step(all)
	return err
}

// write writes what the last crawls of world k brought and what is seen of it now.
func (w *Worlds) write(to *Frame, row, k int) {
	if w.flat != nil {
		w.flat.write(w, to, row, k)
		return
	}
	x := &w.world[k]
	block := row*len(w.world) + k
	lo, hi := block*w.n, (block+1)*w.n
	interest, crawled := to.Interest[lo:hi], to.Crawled[lo:hi]
	clear(interest)
	clear(crawled)
	var reward float64
	for _, c := range x.got {
		reward += c.Interest
		interest[c.Source], crawled[c.Source] = c.Interest, 1
	}
	to.Reward[block], to.Over[block] = reward*x.at.pay, 0
	if w.over[k] {
		to.Over[block] = 1
	}
	lo, hi = block*w.about.Width, (block+1)*w.about.Width
	if w.set.Scaled {
		show(w, k, to.Scaled[lo:hi])
	} else {
		show(w, k, to.Raw[lo:hi])
	}
}

// show writes states, ages and the interest that each source's last crawl brought.
func show[F float32 | float64](w *Worlds, k int, to []F) {
	x := &w.world[k]
	states, ages, harvests := parts(to, w.n)
	v := x.View()
	seen := v.Mean
	if w.set.Knowledge == env.LevelObserved {
		seen = v.State
	}
	for i := range states {
		states[i] = F(seen[i] * x.at.rate[i])
	}
	for i := range ages {
		ages[i] = age[F](x.at, v.Age(i))
		harvests[i] = F(x.found[i])
	}
}

// parts returns the parts of an observation; the first may be empty.
func parts[F float32 | float64](to []F, n int) (states, ages, harvests []F) {
	k := len(to) - 2*n
	return to[:k], to[k : k+n], to[k+n:]
}

// Actions of all worlds, in one of the forms.
type Actions struct {
	Score32 []float32 // K × n
	Score64 []float64 // K × n
	Set     []int8    // K × n, 0 or 1
	One     []int64   // K
}

// Step steps all worlds and writes into a row of a slot. What it refuses changes
// nothing in any of them.
func (w *Worlds) Step(a *Actions, slot, row int) error {
	if !w.started() {
		return errors.New("step before the first reset")
	}
	for _, do := range []phase{(*Worlds).choose, (*Worlds).step} {
		if err := w.each(do, a, &w.frames[slot], row); err != nil {
			return err
		}
	}
	return nil
}

// phase is what is done to worlds from number lo up to hi. Its errors name the world.
type phase = func(w *Worlds, h *hand, lo, hi int, a *Actions, to *Frame, row int) error

// each does something to all worlds, on all threads.
func (w *Worlds) each(do phase, a *Actions, to *Frame, row int) error {
	if len(w.hands) == 1 {
		return do(w, &w.hands[0], 0, len(w.world), a, to, row)
	}
	var wait sync.WaitGroup
	for t := range w.hands {
		h, lo, hi := &w.hands[t], t*len(w.world)/len(w.hands), (t+1)*len(w.world)/len(w.hands)
		wait.Go(func() { h.err = do(w, h, lo, hi, a, to, row) })
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
	if err != nil && len(w.world) > 1 {
		err = fmt.Errorf("world %d: %w", k, err)
	}
	return err
}

// choose settles the crawls of worlds.
func (w *Worlds) choose(h *hand, lo, hi int, a *Actions, _ *Frame, _ int) error {
	for k := lo; k < hi; k++ {
		if err := w.chooseOf(h, k, a); err != nil {
			return w.of(k, err)
		}
	}
	return nil
}

func (w *Worlds) chooseOf(h *hand, k int, a *Actions) error {
	w.crawls[k] = 0
	if w.over[k] {
		if w.set.Autoreset {
			return nil
		}
		return errors.New("step after the end of the episode; reset first")
	}
	lo, hi := k*w.n, (k+1)*w.n
	switch {
	case a.Score64 != nil:
		return best(w, h, k, a.Score64[lo:hi])
	case a.Score32 != nil:
		return best(w, h, k, a.Score32[lo:hi])
	case a.Set != nil:
		return w.named(h, k, a.Set[lo:hi])
	}
	i := a.One[k]
	if i < 0 || i >= int64(w.n) {
		return fmt.Errorf("action is source %d; allowed are 0 to %d", i, w.n-1)
	}
	w.crawl[k*w.most], w.crawls[k] = int(i), 1
	return nil
}

// best crawls by decreasing score within the budget, equal scores by number.
func best[F float32 | float64](w *Worlds, h *hand, k int, score []F) error {
	if w.most == 1 && w.site != nil && w.site.equal {
		most, at := F(math.Inf(-1)), -1
		for i, y := range score {
			if !(y <= most) {
				if y != y {
					return fmt.Errorf("the score of source %d is NaN", i)
				}
				most, at = y, i
			}
		}
		if at >= 0 {
			w.crawl[k], w.crawls[k] = at, 1
		}
		return nil
	}
	for i, y := range score {
		if y != y {
			return fmt.Errorf("the score of source %d is NaN", i)
		}
		h.key[i] = float64(y)
	}
	w.top(h, k)
	return nil
}

// top crawls by decreasing key.
func (w *Worlds) top(h *hand, k int) {
	top := h.top
	if t := &w.world[k].at.terms; w.site == nil {
		top = baselines.NewSelector(t.Costs, t.Budget)
	}
	w.crawls[k] = len(top.Top(w.crawl[k*w.most:k*w.most], h.key))
}

// named crawls the sources that are named.
func (w *Worlds) named(h *hand, k int, set []int8) error {
	t := &w.world[k].at.terms
	var cost float64
	for i, b := range set {
		switch b {
		case 0:
			h.key[i] = math.Inf(-1)
		case 1:
			h.key[i] = float64(w.age(k, i))
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

// age returns for how many epochs source i of world k has waited.
func (w *Worlds) age(k, i int) int {
	if w.flat != nil {
		return w.epoch[k] - w.flat.last(k, i)
	}
	return w.world[k].View().Age(i)
}

// step steps worlds, or resets those that are over, and writes into a row.
func (w *Worlds) step(_ *hand, lo, hi int, _ *Actions, to *Frame, row int) error {
	if w.flat != nil {
		return w.flat.step(w, lo, hi, to, row)
	}
	for k := lo; k < hi; k++ {
		if err := w.stepOf(k, to, row); err != nil {
			return w.of(k, err)
		}
	}
	return nil
}

func (w *Worlds) stepOf(k int, to *Frame, row int) (err error) {
	x := &w.world[k]
	if w.over[k] {
		if err := w.begin(k, stream.Mix(x.seed), to); err != nil {
			return err
		}
		w.write(to, row, k)
		return nil
	}
	if x.got, err = x.Step(w.crawl[k*w.most : k*w.most+w.crawls[k]]); err != nil {
		return err
	}
	for _, c := range x.got {
		x.found[c.Source] = x.at.harvest(c.Source, c.Interest)
	}
	w.epoch[k]++
	w.over[k] = w.epoch[k] == w.about.Epochs
	w.write(to, row, k)
	return nil
}

// items appends, of the last step of each world, how many crawls there were; of
// each crawl the source, the interest, and how many items it brought back; and age
// and interest of each item.
func (w *Worlds) items(to []float64) []float64 {
	for k := range w.world {
		got := w.world[k].got
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
