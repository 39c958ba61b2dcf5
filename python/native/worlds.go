package native

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
)

// worldSettings are the settings of a set of worlds.
type worldSettings struct {
	spec
	Worlds int  // K
	Steps  int  // epochs of an episode; 0 for all that the world has
	Scaled bool // observations are float32 in units of their own
	// Action is scores, set or one. Truncate has a set that is dearer than the
	// budget cut to it, longest waiting first; otherwise it is refused.
	Action    string
	Truncate  bool
	Autoreset bool // a world that is over is reset by its next step
}

const maxWorlds = 1 << 24

// about is what Python must know of worlds to lay out its buffers.
type about struct {
	Names   []string  `json:"names"`
	Costs   []float64 `json:"costs"`
	Budget  float64   `json:"budget"`
	Ceiling []float64 `json:"ceiling"` // u*, interest; null where the level does not tell
	Steps   int       `json:"steps"`   // of an episode; 0 for endless
	Width   int       `json:"width"`   // figures of one observation
	Limited bool      `json:"limited"` // no state is above its ceiling
	Bounded bool      `json:"bounded"` // the relaxed optimum bounds what can be earned
}

// Frame is where K worlds write what a step or a reset brings: rows of K blocks,
// all one after the other. n is the number of sources.
type Frame struct {
	Raw      []float64 // rows × K × width, or nil
	Scaled   []float32 // rows × K × width, or nil
	Reward   []float64 // rows × K, interest
	Interest []float64 // rows × K × n, what the crawl of each source brought
	Crawled  []uint8   // rows × K × n, 1 for the sources that were crawled
	Over     []uint8   // rows × K, 1 where the episode has ended
}

// Worlds are K worlds of one scene that are stepped by one call. Only one call
// at a time is allowed.
type Worlds struct {
	set   worldSettings
	scene experiments.Scene
	about about
	n     int
	to    Frame
	world []one
	top   *baselines.Selector
	key   []float64
	units
}

// units are those of observations: interest and epochs, or, scaled, states and
// harvests as shares of u*, where the level of knowledge tells u*, otherwise
// log(1 + harvest), and ages as
//
//	1 − e^(−age/round)   with round the epochs that crawling each source once takes.
type units struct {
	rate  []float64 // 1/u*, or 1
	log   bool
	round float64   // 0 for ages in epochs
	ages  []float64 // of the ages from 0 on
}

// commonAges is how many ages are looked up.
const commonAges = 1024

func (u *units) age(age int) float64 {
	switch {
	case age < len(u.ages):
		return u.ages[age]
	case u.round == 0:
		return float64(age)
	}
	return -math.Expm1(-float64(age) / u.round)
}

// one is a world on its way through an episode.
type one struct {
	env.World
	seed  uint64
	over  bool      // the episode has ended
	found []float64 // interest of each source's last crawl, 0 before the first
	crawl []int     // of this step
}

// openWorlds sets worlds up. They are reset before their first step.
func openWorlds(ctx context.Context, text []byte) (*Worlds, *about, error) {
	w := &Worlds{set: worldSettings{spec: usual()}}
	if err := decode(text, &w.set); err != nil {
		return nil, nil, err
	}
	if w.set.Worlds < 1 || w.set.Worlds > maxWorlds || w.set.Steps < 0 {
		return nil, nil, fmt.Errorf("%d worlds of %d steps; allowed are 1 to %d worlds and 0 steps or more", w.set.Worlds, w.set.Steps, maxWorlds)
	}
	var err error
	if w.scene, err = w.set.scene(ctx); err != nil {
		return nil, nil, err
	}
	first, err := w.scene.Open(0, w.set.Knowledge, false)
	if err != nil {
		return nil, nil, err
	}
	t := first.Terms()
	w.n, w.top = len(t.Costs), baselines.NewSelector(t.Costs, t.Budget)
	w.key = make([]float64, w.n)
	w.world = make([]one, w.set.Worlds)
	w.about = about{
		Names: t.Names, Costs: t.Costs, Budget: t.Budget, Steps: w.scene.Limit(w.set.Steps), Width: 3 * w.n,
		Limited: !w.scene.Seeded && w.scene.Epochs == 0, Bounded: w.scene.Bounded(w.set.Knowledge),
	}
	if w.set.Knowledge == env.LevelOnline {
		w.about.Width = 2 * w.n
	} else {
		for _, s := range w.scene.Instance.Sources {
			w.about.Ceiling = append(w.about.Ceiling, s.Ceiling())
		}
	}
	if err := w.allowed(t); err != nil {
		return nil, nil, err
	}
	w.measure(t)
	return w, &w.about, nil
}

// allowed refuses a form of actions that does not fit the terms.
func (w *Worlds) allowed(t env.Terms) error {
	switch w.set.Action {
	case "scores", "set":
		return nil
	case "one":
		if t.Budget < 1 || t.Budget >= 2 || slices.ContainsFunc(t.Costs, func(c float64) bool { return c != 1 }) {
			return fmt.Errorf("action one is for crawls that cost 1 and a budget of 1; costs are %v to %v and the budget is %v", slices.Min(t.Costs), slices.Max(t.Costs), t.Budget)
		}
		return nil
	}
	return fmt.Errorf("unknown action %q; allowed are scores, set and one", w.set.Action)
}

// measure settles the units.
func (w *Worlds) measure(t env.Terms) {
	w.rate = make([]float64, w.n)
	for i := range w.rate {
		if w.rate[i] = 1; w.set.Scaled && w.about.Ceiling != nil && w.about.Ceiling[i] > 0 {
			w.rate[i] = 1 / w.about.Ceiling[i]
		}
	}
	if w.set.Scaled {
		w.log, w.round = w.set.Knowledge == env.LevelOnline, t.Round()
	}
	for age := range commonAges {
		w.ages = append(w.ages, w.age(age))
	}
}

// Bind says where Reset and Step write.
func (w *Worlds) Bind(to Frame) { w.to = to }

// Layout returns the numbers of worlds, sources and figures of an observation,
// and whether these are float32.
func (w *Worlds) Layout() (worlds, sources, width int, scaled bool) {
	return len(w.world), w.n, w.about.Width, w.set.Scaled
}

func (w *Worlds) started() bool { return w.world[0].World != nil }

// Reset begins an episode in every world that mask marks, all with nil, and
// writes into a row. seeds has a seed for each world; without, the seed of an
// episode follows from the one before.
func (w *Worlds) Reset(mask []uint8, seeds []uint64, row int) error {
	if !w.started() && (mask != nil || seeds == nil) {
		return errors.New("the first reset is of all worlds and has their seeds")
	}
	for k := range w.world {
		x := &w.world[k]
		if mask == nil || mask[k] != 0 {
			seed := stream.Mix(x.seed)
			if seeds != nil {
				seed = seeds[k]
			}
			if err := w.begin(x, seed); err != nil {
				return err
			}
		}
		w.write(row*len(w.world)+k, x, nil)
	}
	return nil
}

// begin begins an episode of x under a seed.
func (w *Worlds) begin(x *one, seed uint64) error {
	world, err := w.scene.Open(seed, w.set.Knowledge, false)
	if err != nil {
		return err
	}
	if x.found == nil {
		x.found = make([]float64, w.n)
	}
	x.World, x.seed, x.over = world, seed, false
	clear(x.found)
	return nil
}

// write writes into a block of the frame what crawls of x brought and what is
// seen of it now.
func (w *Worlds) write(block int, x *one, crawls []env.Crawled) {
	f, lo, hi := &w.to, block*w.n, (block+1)*w.n
	interest, crawled := f.Interest[lo:hi], f.Crawled[lo:hi]
	clear(interest)
	clear(crawled)
	var reward float64
	for _, c := range crawls {
		reward += c.Interest
		interest[c.Source], crawled[c.Source], x.found[c.Source] = c.Interest, 1, c.Interest
	}
	f.Reward[block], f.Over[block] = reward, 0
	if x.over {
		f.Over[block] = 1
	}
	v := x.View()
	var state []float64 // what is seen of it
	switch w.set.Knowledge {
	case env.LevelModel:
		state = v.Mean
	case env.LevelObserved:
		state = v.State
	}
	lo, hi = block*w.about.Width, (block+1)*w.about.Width
	if w.set.Scaled {
		show(&w.units, v, state, x.found, f.Scaled[lo:hi])
	} else {
		show(&w.units, v, state, x.found, f.Raw[lo:hi])
	}
}

// show writes states, ages and the interest that each source's last crawl
// brought.
func show[F float32 | float64](u *units, v *env.Observed, state, found []float64, to []F) {
	n := len(found)
	for i, y := range state {
		to[i] = F(y * u.rate[i])
	}
	to = to[len(state):]
	ages, harvests := to[:n], to[n:2*n]
	for i, last := range v.Last {
		ages[i] = F(u.age(v.Epoch - last))
	}
	for i, y := range found {
		if y *= u.rate[i]; u.log {
			y = math.Log1p(y)
		}
		harvests[i] = F(y)
	}
}

// Actions of all worlds, in one of the forms.
type Actions struct {
	Score32 []float32 // K × n
	Score64 []float64 // K × n
	Set     []int8    // K × n, 0 or 1
	One     []int64   // K
}

// Step steps all worlds and writes into a row. What it refuses changes nothing
// in any of them.
func (w *Worlds) Step(a Actions, row int) error {
	if !w.started() {
		return errors.New("step before the first reset")
	}
	for k := range w.world {
		if err := w.choose(k, a); err != nil {
			if len(w.world) > 1 {
				err = fmt.Errorf("world %d: %w", k, err)
			}
			return err
		}
	}
	for k := range w.world {
		if err := w.step(&w.world[k], row*len(w.world)+k); err != nil {
			return fmt.Errorf("world %d: %w", k, err)
		}
	}
	return nil
}

// choose settles the crawls of world k.
func (w *Worlds) choose(k int, a Actions) error {
	x := &w.world[k]
	x.crawl = x.crawl[:0]
	if x.over {
		if w.set.Autoreset {
			return nil
		}
		return errors.New("step after the end of the episode; reset first")
	}
	lo, hi := k*w.n, (k+1)*w.n
	switch {
	case w.set.Action == "scores" && a.Score64 != nil:
		return w.best(x, a.Score64[lo:hi])
	case w.set.Action == "scores" && a.Score32 != nil:
		for i, y := range a.Score32[lo:hi] {
			w.key[i] = float64(y)
		}
		return w.best(x, w.key)
	case w.set.Action == "set" && a.Set != nil:
		return w.named(x, a.Set[lo:hi])
	case w.set.Action == "one" && a.One != nil:
		i := a.One[k]
		if i < 0 || i >= int64(w.n) {
			return fmt.Errorf("action is source %d; allowed are 0 to %d", i, w.n-1)
		}
		x.crawl = append(x.crawl, int(i))
		return nil
	}
	return fmt.Errorf("actions in another form than %q", w.set.Action)
}

// best crawls by decreasing score within the budget, equal scores by number.
func (w *Worlds) best(x *one, score []float64) error {
	for i, y := range score {
		if y != y {
			return fmt.Errorf("the score of source %d is NaN", i)
		}
	}
	x.crawl = w.top.Top(x.crawl, score)
	return nil
}

// named crawls the sources that are named.
func (w *Worlds) named(x *one, set []int8) error {
	v := x.View()
	var cost float64
	for i, b := range set {
		switch b {
		case 0:
			w.key[i] = math.Inf(-1)
		case 1:
			x.crawl, w.key[i] = append(x.crawl, i), float64(v.Age(i))
			cost += w.about.Costs[i]
		default:
			return fmt.Errorf("action %d of source %d; allowed are 0 and 1", b, i)
		}
	}
	if env.Fits(cost, w.about.Budget) {
		return nil
	}
	if !w.set.Truncate {
		return fmt.Errorf("the set costs %v; allowed is the budget, %v", cost, w.about.Budget)
	}
	x.crawl = w.top.Top(x.crawl[:0], w.key)
	return nil
}

// step steps a world, or resets it if it is over, and writes into a block.
func (w *Worlds) step(x *one, block int) error {
	if x.over {
		if err := w.begin(x, stream.Mix(x.seed)); err != nil {
			return err
		}
		w.write(block, x, nil)
		return nil
	}
	got, err := x.Step(x.crawl)
	if err != nil {
		return err
	}
	x.over = x.View().Epoch == w.about.Steps
	w.write(block, x, got)
	return nil
}
