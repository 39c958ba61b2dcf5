package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
)

// Settings of a set of worlds.
type Settings struct {
	Spec
	Worlds int  `json:"worlds"` // K
	Steps  int  `json:"steps"`  // epochs of an episode; 0 for all that the world has
	Scaled bool `json:"scaled"` // observations are float32 in units of their own
	// Action is scores, set or one. Truncate has a set that is dearer than the
	// budget cut to it, longest waiting first; otherwise it is refused.
	Action    string `json:"action"`
	Truncate  bool   `json:"truncate"`
	Autoreset bool   `json:"autoreset"` // a world that is over is reset by its next step
}

// About is what Python must know of worlds to lay out its buffers.
type About struct {
	ID      string    `json:"id"`
	Names   []string  `json:"names"`
	Costs   []float64 `json:"costs"`
	Budget  float64   `json:"budget"`
	Ceiling []float64 `json:"ceiling"` // u*, interest; null where the level does not tell
	Steps   int       `json:"steps"`   // of an episode; 0 for endless
	Width   int       `json:"width"`   // figures of one observation
	Limited bool      `json:"limited"` // no state is above its ceiling
	Start   int64     `json:"start"`
	Length  float64   `json:"length"`
	Whittle float64   `json:"whittle"` // what exact Whittle earns, interest per epoch
	Bound   *float64  `json:"bound"`
}

// Frame is where K worlds write what a step or a reset brings. All slices are
// K blocks, one after the other; n is the number of sources.
type Frame struct {
	Raw      []float64 // K × width, or nil
	Scaled   []float32 // K × width, or nil
	Reward   []float64 // K, interest
	Interest []float64 // K × n, what the crawl of each source brought
	Crawled  []uint8   // K × n, 1 for the sources that were crawled
	Over     []uint8   // K, 1 where the episode ended with this step
}

// Worlds are K worlds of one scene that are stepped by one call. It is safe
// for concurrent use; calls take turns.
type Worlds struct {
	mu      sync.Mutex
	set     Settings
	scene   experiments.Scene
	level   env.Level
	about   About
	n       int
	rate    []float64 // 1/u*
	log     bool      // harvests are scaled without knowledge of the model
	round   float64   // epochs to crawl each source once
	shares  []float32 // of ages from 0 on, as scaled observations show them
	world   []one
	top     *baselines.Selector
	age     *baselines.Selector // of a set that is too dear
	key     []float64
	crawl   []int // of all worlds
	end     []int // where each world's crawls end
	rows    []Frame
	started bool
	closed  bool
}

// one is a world on its way through an episode.
type one struct {
	env.World
	seed  uint64
	epoch int       // of the episode
	over  bool      // the episode has ended
	found []float64 // interest of each source's last crawl, 0 before the first
}

// Open sets worlds up. They are reset before their first step.
func Open(ctx context.Context, text []byte) (*Worlds, *About, error) {
	w := &Worlds{}
	if err := decode(text, &w.set); err != nil {
		return nil, nil, err
	}
	if w.set.Worlds < 1 || w.set.Steps < 0 {
		return nil, nil, fmt.Errorf("%d worlds of %d steps; allowed are 1 world or more and 0 steps or more", w.set.Worlds, w.set.Steps)
	}
	var err error
	if w.scene, w.level, err = w.set.scene(ctx); err != nil {
		return nil, nil, err
	}
	if err := w.lay(ctx); err != nil {
		return nil, nil, err
	}
	return w, &w.about, nil
}

// lay fills what follows from the scene.
func (w *Worlds) lay(ctx context.Context) error {
	first, err := w.scene.Open(0, w.level, false)
	if err != nil {
		return err
	}
	terms := first.Terms()
	if err := shut(first); err != nil {
		return err
	}
	in := w.scene.Instance
	n := len(in.Sources)
	w.n, w.round = n, terms.Round()
	w.rate, w.key = make([]float64, n), make([]float64, n)
	w.about = About{
		ID: in.ID, Names: terms.Names, Costs: terms.Costs, Budget: terms.Budget, Steps: w.scene.Limit(w.set.Steps), Width: 3 * n,
		Start: terms.Start, Length: terms.Length, Limited: !w.scene.Seeded && w.scene.Epochs == 0,
	}
	if w.log = w.level == env.LevelOnline; w.log {
		w.about.Width = 2 * n
	} else {
		for i, s := range in.Sources {
			c := s.Ceiling()
			w.about.Ceiling = append(w.about.Ceiling, c)
			if w.rate[i] = 1; c > 0 {
				w.rate[i] = 1 / c
			}
		}
	}
	switch w.set.Action {
	case "scores", "set":
	case "one":
		for i, c := range terms.Costs {
			if c != 1 || terms.Budget < 1 || terms.Budget >= 2 {
				return fmt.Errorf("action one is for crawls that cost 1 and a budget of 1; source %q costs %v and the budget is %v", terms.Names[i], c, terms.Budget)
			}
		}
	default:
		return fmt.Errorf("unknown action %q; allowed are scores, set and one", w.set.Action)
	}
	for age := 0; age < commonAges; age++ {
		w.shares = append(w.shares, w.ageShare(age))
	}
	w.top = baselines.NewSelector(terms.Costs, terms.Budget)
	w.age = baselines.NewSelector(terms.Costs, terms.Budget)
	w.world, w.end = make([]one, w.set.Worlds), make([]int, w.set.Worlds)
	found := make([]float64, n*len(w.world))
	for k := range w.world {
		w.world[k].found = found[k*n : (k+1)*n : (k+1)*n]
	}
	return w.refer(ctx)
}

// referenceEpochs is how long exact Whittle is run, where an episode is shorter
// or does not end.
const referenceEpochs = 10_000

// refer finds what exact Whittle earns, and the bound. Where rewards have the
// means of the mean dynamics and no state is seen, Whittle is run in these;
// otherwise in the worlds' own scene.
func (w *Worlds) refer(ctx context.Context) error {
	scene, level := w.scene, w.level
	if scene.Bounded(level) {
		scene = experiments.MeanScene(scene.Instance)
		bound, _ := index.Bound(scene.Instance)
		w.about.Bound = &bound
	}
	if level == env.LevelOnline {
		level = env.LevelModel
	}
	whittle, err := experiments.Find("whittle")
	if err != nil {
		return err
	}
	epochs := scene.Limit(w.about.Steps)
	if epochs == 0 {
		epochs = referenceEpochs
	}
	out, err := scene.Play(ctx, experiments.Play{Entry: whittle, Seed: 1, Level: level, Epochs: epochs})
	w.about.Whittle = out.Learned.Reward
	return err
}

func shut(w env.World) error {
	if c, ok := w.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Bind says where Reset and Step write.
func (w *Worlds) Bind(rows []Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows = rows
}

// row returns the frame of a row of what Bind was given.
func (w *Worlds) row(r int) (*Frame, error) {
	if w.closed {
		return nil, errClosed
	}
	if r < 0 || r >= len(w.rows) {
		return nil, fmt.Errorf("row %d of %d", r, len(w.rows))
	}
	return &w.rows[r], nil
}

// Reset begins an episode in every world that mask marks, all with nil, and
// writes into a row. seeds has a seed for each world; without, the seed of an
// episode follows from the one before.
func (w *Worlds) Reset(mask []uint8, seeds []uint64, row int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, err := w.row(row)
	if err != nil {
		return err
	}
	if !w.started && (mask != nil || seeds == nil) {
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
		w.write(k, f)
		w.blank(k, f)
	}
	w.started = true
	return nil
}

// begin begins an episode of x under a seed.
func (w *Worlds) begin(x *one, seed uint64) error {
	if x.World != nil {
		if err := shut(x.World); err != nil {
			return err
		}
	}
	world, err := w.scene.Open(seed, w.level, false)
	if err != nil {
		return err
	}
	x.World, x.seed, x.epoch, x.over = world, seed, 0, false
	clear(x.found)
	return nil
}

// blank writes that nothing was crawled in world k.
func (w *Worlds) blank(k int, f *Frame) {
	lo, hi := k*w.n, (k+1)*w.n
	f.Reward[k], f.Over[k] = 0, 0
	clear(f.Interest[lo:hi])
	clear(f.Crawled[lo:hi])
}

// write writes what is seen of world k now.
func (w *Worlds) write(k int, f *Frame) {
	width := w.about.Width
	if f.Scaled != nil {
		w.scaled(&w.world[k], f.Scaled[k*width:(k+1)*width])
	} else {
		w.raw(&w.world[k], f.Raw[k*width:(k+1)*width])
	}
}

// state returns what is seen of the sources' states, nil for nothing.
func (w *Worlds) state(v *env.Observed) []float64 {
	switch w.level {
	case env.LevelModel:
		return v.Mean
	case env.LevelObserved:
		return v.State
	}
	return nil
}

// raw writes states (interest), ages (epochs) and the interest that each
// source's last crawl brought.
func (w *Worlds) raw(x *one, to []float64) {
	v := x.View()
	to = to[copy(to, w.state(v)):]
	age, found := to[:w.n], to[w.n:]
	for i, last := range v.Last {
		age[i] = float64(v.Epoch - last)
	}
	copy(found, x.found)
}

// scaled writes the same without units: states and harvests as shares of u*,
// where the level of knowledge tells u*, otherwise log(1 + harvest); ages as
//
//	1 − e^(−age/round)   with round the epochs that crawling each source once takes.
func (w *Worlds) scaled(x *one, to []float32) {
	v := x.View()
	if s := w.state(v); s != nil {
		for i, y := range s {
			to[i] = float32(y * w.rate[i])
		}
		to = to[w.n:]
	}
	age, found := to[:w.n], to[w.n:2*w.n]
	for i, last := range v.Last {
		if a := v.Epoch - last; a < len(w.shares) {
			age[i] = w.shares[a]
		} else {
			age[i] = w.ageShare(a)
		}
	}
	if w.log {
		for i, y := range x.found {
			found[i] = float32(math.Log1p(y))
		}
		return
	}
	for i, y := range x.found {
		found[i] = float32(y * w.rate[i])
	}
}

// commonAges is how many ages are looked up.
const commonAges = 1024

func (w *Worlds) ageShare(age int) float32 { return float32(-math.Expm1(-float64(age) / w.round)) }

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
	w.mu.Lock()
	defer w.mu.Unlock()
	f, err := w.row(row)
	if err != nil {
		return err
	}
	if !w.started {
		return errors.New("step before the first reset")
	}
	w.crawl = w.crawl[:0]
	for k := range w.world {
		if err := w.choose(k, a); err != nil {
			if len(w.world) > 1 {
				err = fmt.Errorf("world %d: %w", k, err)
			}
			return err
		}
		w.end[k] = len(w.crawl)
	}
	from := 0
	for k := range w.world {
		if err := w.step(k, w.crawl[from:w.end[k]], f); err != nil {
			return err
		}
		from = w.end[k]
	}
	return nil
}

// choose appends the crawls of world k to w.crawl.
func (w *Worlds) choose(k int, a Actions) error {
	x := &w.world[k]
	if x.over {
		if w.set.Autoreset {
			return nil
		}
		return errors.New("step after the end of the episode; reset first")
	}
	lo, hi := k*w.n, (k+1)*w.n
	switch {
	case w.set.Action == "scores" && a.Score64 != nil:
		return w.best(a.Score64[lo:hi])
	case w.set.Action == "scores" && a.Score32 != nil:
		for i, y := range a.Score32[lo:hi] {
			w.key[i] = float64(y)
		}
		return w.best(w.key)
	case w.set.Action == "set" && a.Set != nil:
		return w.named(x, a.Set[lo:hi])
	case w.set.Action == "one" && a.One != nil:
		i := a.One[k]
		if i < 0 || i >= int64(w.n) {
			return fmt.Errorf("action is source %d; allowed are 0 to %d", i, w.n-1)
		}
		w.crawl = append(w.crawl, int(i))
		return nil
	}
	return fmt.Errorf("actions in another form than %q", w.set.Action)
}

// best crawls by decreasing score within the budget, equal scores by number.
func (w *Worlds) best(score []float64) error {
	for i, y := range score {
		if y != y {
			return fmt.Errorf("the score of source %d is NaN", i)
		}
	}
	w.crawl = w.top.Top(w.crawl, score)
	return nil
}

// named crawls the sources that are named.
func (w *Worlds) named(x *one, set []int8) error {
	begin := len(w.crawl)
	var cost float64
	for i, b := range set {
		switch b {
		case 0:
		case 1:
			w.crawl = append(w.crawl, i)
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
	v := x.View()
	for i, b := range set {
		w.key[i] = math.Inf(-1)
		if b == 1 {
			w.key[i] = float64(v.Age(i))
		}
	}
	w.crawl = w.age.Top(w.crawl[:begin], w.key)
	return nil
}

// step steps world k.
func (w *Worlds) step(k int, crawl []int, f *Frame) error {
	x := &w.world[k]
	w.blank(k, f)
	if x.over {
		if err := w.begin(x, stream.Mix(x.seed)); err != nil {
			return err
		}
		w.write(k, f)
		return nil
	}
	got, err := x.Step(crawl)
	if err != nil {
		return fmt.Errorf("world %d: %w", k, err)
	}
	interest, crawled := f.Interest[k*w.n:(k+1)*w.n], f.Crawled[k*w.n:(k+1)*w.n]
	var reward float64
	for _, c := range got {
		reward += c.Interest
		interest[c.Source], crawled[c.Source], x.found[c.Source] = c.Interest, 1, c.Interest
	}
	f.Reward[k] = reward
	if x.epoch++; x.epoch == w.about.Steps {
		x.over, f.Over[k] = true, 1
	}
	w.write(k, f)
	return nil
}

var errClosed = errors.New("the environment is closed")

// Close ends the worlds. It may be called again.
func (w *Worlds) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for k := range w.world {
		if x := &w.world[k]; x.World != nil {
			errs = append(errs, shut(x.World))
			x.World = nil
		}
	}
	w.closed = true
	return errors.Join(errs...)
}

// Layout returns the numbers of worlds, sources and figures of an observation.
func (w *Worlds) Layout() (worlds, sources, width int) { return len(w.world), w.n, w.about.Width }

// IsScaled reports whether observations are float32.
func (w *Worlds) IsScaled() bool { return w.set.Scaled }
