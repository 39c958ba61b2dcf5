package native

import (
	"cmp"
	"math"
	"slices"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
)

// site is a scene, and the units of what is observed in it. Scaled, states and
// harvests are shares of u*, or of the unit where each seed has an instance of its
// own or u* is not finite; where the level of knowledge does not tell u*, log(1 + harvest);
// rewards are shares of the unit. Costs, and shares of them, are below 0. Ages are
//
//	1 − e^(−age/round)   with round the epochs that crawling each source once takes.
type site struct {
	*experiments.Scene
	engine *experiments.Engine // which opened the scene
	level  env.Level
	terms  env.Terms
	rate   []float64 // what states are multiplied by
	log    bool
	bound  float64 // of the relaxed problem in this world, interest per epoch
	unit   float64 // amount of that under the mean dynamics, of what can be afforded, or 1 if it is 0
	pay    float64 // 1 over the unit, or 1
	round  float64 // 0 for ages in epochs
}

// openSite opens the scene of a seed and measures it.
func (w *Worlds) openSite(seed uint64) (*site, error) {
	engine := new(experiments.Engine)
	r, err := resolve(engine, w.set.Run, seed)
	if err != nil {
		return nil, err
	}
	world, err := r.Scene.Open(seed, r.Level, false)
	if err != nil {
		return nil, err
	}
	in := r.Scene.Instance
	at := &site{
		Scene: r.Scene, engine: engine, level: r.Level,
		terms: world.Terms(), rate: slices.Repeat([]float64{1}, len(in.Sources)), pay: 1,
	}
	at.bound, _ = r.Scene.Bound()
	mean := in.MeanDynamics()
	for i := range mean.Sources {
		if !at.terms.Affordable(i) {
			mean.Sources[i].Rate = 0 // under delay its part of the bound is −Inf, whatever is crawled
		}
	}
	under, _ := index.Bound(mean)
	at.unit = cmp.Or(math.Abs(under), 1)
	if !w.set.Scaled {
		return at, nil
	}
	at.pay, at.round = 1/at.unit, at.terms.Round()
	if at.log = at.level == env.LevelOnline; !at.log {
		for i, s := range in.Sources {
			if at.rate[i] = at.pay; !w.drawn() && s.Ceiling() > 0 {
				at.rate[i] = 1 / s.Ceiling()
			}
		}
	}
	return at, nil
}

// harvest returns what a crawl brought as it is observed.
func (at *site) harvest(i int, y float64) float64 {
	if y *= at.rate[i]; at.log {
		return math.Copysign(math.Log1p(math.Abs(y)), y) // of a cost, too
	}
	return y
}

// age returns an age as it is observed.
func (at *site) age(epochs int) float64 {
	if at.round == 0 {
		return float64(epochs)
	}
	return -math.Expm1(-float64(epochs) / at.round)
}

// dynamics are what goes on in worlds. Two calls about other worlds may be made at
// the same time.
type dynamics interface {
	beginEpisode(k int) error // an episode of world k, under its seed
	// step has worlds from number lo up to hi crawl what was chosen, go on to their
	// epochs, and write what they bring and what is seen then. With still, and where
	// an episode has just begun, it only shows.
	step(lo, hi int, still bool) error
	age(k, i int) int // epochs since the last crawl of source i
}

// What C does better, where there is C: dynamics in arrays, nil for other ones, and the
// crawl of the greatest score, which returns in how many worlds that was not possible.
var (
	newFlat  = func(*Worlds) dynamics { return nil }
	greatest func(w *Worlds, lo, hi int) int
)

// stepped are worlds of any kind, each with its own state.
type stepped struct {
	w     *Worlds
	world []env.World
	found []float64 // K × n, as observed: of each source's last crawl, 0 before the first
	owed  []float64 // K, what waiting items had cost when the episode began
}

func (d *stepped) age(k, i int) int { return d.world[k].View().Age(i) }

func (d *stepped) beginEpisode(k int) (err error) {
	n, set := d.w.n, &d.w.set
	clear(d.found[k*n : (k+1)*n])
	scene := d.w.at[k].Scene
	open := scene.OpenAlone
	if d.w.played != nil {
		scene = d.w.scene()
		open = scene.Open
	}
	d.world[k], err = open(d.w.seed[k], d.w.at[k].level, set.Window > 0)
	if err == nil && d.w.played != nil {
		d.w.open(scene, d.world[k])
	}
	if err != nil {
		return err
	}
	d.owed[k] = d.world[k].Owed()
	if set.Window == 0 {
		return nil
	}
	// The window begins after an epoch in which all sources were crawled.
	for range stream.Mix(d.w.seed[k]) % uint64(d.w.at[k].Epochs-set.Window) {
		if _, err := d.world[k].Step(nil); err != nil {
			return err
		}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	_, err = d.world[k].Step(all)
	return err
}

func (d *stepped) step(lo, hi int, still bool) error {
	w, n, width, to := d.w, d.w.n, d.w.about.Width, &d.w.to
	for k := lo; k < hi; k++ {
		at, found := w.at[k], d.found[k*n:(k+1)*n]
		to.reward[k] = 0
		if !still && w.epoch[k] > 0 {
			got, err := d.world[k].Step(to.crawl[k*w.about.Most:][:to.crawls[k]])
			if err != nil {
				return w.of(k, err)
			}
			for _, c := range got {
				to.reward[k] += c.Interest
				to.interest[k*n+c.Source], to.crawled[k*n+c.Source] = c.Interest, 1
				found[c.Source] = at.harvest(c.Source, c.Interest)
			}
			if w.over[k] != 0 { // what nobody found costs, too
				to.reward[k] += d.world[k].Owed() - d.owed[k]
			}
			to.reward[k] *= at.pay
			w.got[k] = got
		}
		v := d.world[k].View()
		x := v.Mean
		if at.level == env.LevelObserved {
			x = v.State
		}
		seen := k * width
		for i := range width - 2*n {
			to.put(seen+i, x[i]*at.rate[i])
		}
		for i, y := range found {
			to.put(seen+width-2*n+i, at.age(v.Age(i)))
			to.put(seen+width-n+i, y)
		}
	}
	return nil
}
