package native

import (
	"ephemera/env"
	"ephemera/env/stream"
)

// newDynamics returns those of the worlds; seen is where observations go.
func newDynamics[F float32 | float64](w *Worlds, seen func(*Frame) []F) dynamics {
	if d := newFlat(w, seen); d != nil {
		return d
	}
	k := len(w.at)
	return &stepped[F]{w: w, seen: seen, world: make([]env.World, k), found: make([]F, k*w.n)}
}

// parts returns where the parts of the observation of world k stand; the first may
// be empty.
func parts[F float32 | float64](w *Worlds, all []F, row, k int) (states, ages, harvests []F) {
	n, width := w.n, w.about.Width
	all = all[(row*len(w.at)+k)*width:][:width]
	return all[:width-2*n], all[width-2*n : width-n], all[width-n:]
}

// stepped are worlds of any kind, each with its own state.
type stepped[F float32 | float64] struct {
	w     *Worlds
	seen  func(*Frame) []F
	world []env.World
	found []F // K × n, as observed: of each source's last crawl, 0 before the first
}

func (d *stepped[F]) age(k, i int) int { return d.world[k].View().Age(i) }

func (d *stepped[F]) begin(k int) (err error) {
	n, set := d.w.n, &d.w.set
	clear(d.found[k*n : (k+1)*n])
	d.world[k], err = d.w.at[k].Open(d.w.seed[k], set.Knowledge, set.Window > 0)
	if err != nil || set.Window == 0 {
		return err
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

func (d *stepped[F]) crawl(lo, hi int, to *Frame, row int) error {
	w, n := d.w, d.w.n
	for k := lo; k < hi; k++ {
		if w.over[k] != 0 {
			continue
		}
		got, err := d.world[k].Step(w.crawl[k*w.most:][:w.crawls[k]])
		if err != nil {
			return w.of(k, err)
		}
		block := row*len(w.at) + k
		for _, c := range got {
			to.Reward[block] += c.Interest
			to.Interest[block*n+c.Source], to.Crawled[block*n+c.Source] = c.Interest, 1
			d.found[k*n+c.Source] = F(w.at[k].harvest(c.Source, c.Interest))
		}
		to.Reward[block] *= w.at[k].pay
		w.got[k] = got
	}
	return nil
}

func (d *stepped[F]) show(lo, hi int, to *Frame, row int) {
	n := d.w.n
	for k := lo; k < hi; k++ {
		states, ages, harvests := parts(d.w, d.seen(to), row, k)
		at, v := d.w.at[k], d.world[k].View()
		x := v.Mean
		if d.w.set.Knowledge == env.LevelObserved {
			x = v.State
		}
		for i := range states {
			states[i] = F(x[i] * at.rate[i])
		}
		for i := range ages {
			ages[i] = age[F](at, v.Age(i))
		}
		copy(harvests, d.found[k*n:(k+1)*n])
	}
}

// flat are worlds of the mean dynamics of exponential laws, side by side in arrays.
type flat[F float32 | float64] struct {
	w       *Worlds
	seen    func(*Frame) []F
	sources []recursion
	x       []float64 // K × n, mean states
	crawled []int32   // K × n, epochs of the last crawls
	found   []F       // K × n, as observed: of each source's last crawl, 0 before the first
	ages    []F       // as observed, at the ages from 0 on
}

// recursion is x ← αx + u, and the unit in which x is seen.
type recursion struct{ alpha, gain, rate float64 }

// newFlat returns nil for worlds of other dynamics.
func newFlat[F float32 | float64](w *Worlds, seen func(*Frame) []F) dynamics {
	if w.set.Kind != "mean" || w.site == nil || len(w.site.Instance.Changes) > 0 {
		return nil
	}
	k, n := len(w.at), w.n
	world, err := w.site.Open(0, env.LevelModel, false)
	if err != nil {
		return nil
	}
	d := &flat[F]{w: w, seen: seen, x: make([]float64, k*n), crawled: make([]int32, k*n), found: make([]F, k*n)}
	for i, s := range w.site.Instance.Sources {
		if !s.Exponential() {
			return nil
		}
		d.sources = append(d.sources, recursion{s.Factor(), world.View().Mean[i], w.site.rate[i]})
	}
	for a := range max(len(w.site.ages), 1024) {
		d.ages = append(d.ages, age[F](w.site, a))
	}
	return d
}

func (d *flat[F]) age(k, i int) int { return d.w.epoch[k] - int(d.crawled[k*d.w.n+i]) }

func (d *flat[F]) begin(k int) error {
	lo, n := k*d.w.n, d.w.n
	clear(d.found[lo : lo+n])
	for i, s := range d.sources {
		d.x[lo+i], d.crawled[lo+i] = s.gain, -1
	}
	return nil
}

func (d *flat[F]) crawl(lo, hi int, to *Frame, row int) error {
	w, n, first := d.w, d.w.n, row*len(d.w.at)
	for k := lo; k < hi; k++ {
		x := d.x[k*n : (k+1)*n]
		var reward float64
		for _, i := range w.crawl[k*w.most:][:w.crawls[k]] {
			y := x[i]
			reward += y
			to.Interest[(first+k)*n+i], to.Crawled[(first+k)*n+i] = y, 1
			d.found[k*n+i], d.crawled[k*n+i] = F(w.site.harvest(i, y)), int32(w.epoch[k])
			x[i] = 0 // (3): 0 grows to u below
		}
		to.Reward[first+k] = reward * w.site.pay
		// (2): x ← αx + u
		sources := d.sources[:len(x)]
		for i, y := range x {
			x[i] = sources[i].alpha*y + sources[i].gain
		}
	}
	return nil
}

func (d *flat[F]) show(lo, hi int, to *Frame, row int) {
	n, known, all := d.w.n, d.ages, d.seen(to)
	for k := lo; k < hi; k++ {
		states, ages, harvests := parts(d.w, all, row, k)
		crawled, epoch := d.crawled[k*n:(k+1)*n], d.w.epoch[k]
		copy(harvests, d.found[k*n:])
		ages = ages[:len(crawled)]
		for i, c := range crawled {
			if a := epoch - int(c); uint(a) < uint(len(known)) {
				ages[i] = known[a]
			} else {
				ages[i] = age[F](d.w.site, a)
			}
		}
		x := d.x[k*n : (k+1)*n][:len(states)]
		sources := d.sources[:len(states)]
		for i, y := range x {
			states[i] = F(y * sources[i].rate)
		}
	}
}
