package native

/*
#cgo CFLAGS: -O3
#include "flat.h"
*/
import "C"

import (
	"slices"
	"unsafe"

	"ephemera/env"
)

// flat are worlds of the mean dynamics of exponential laws, side by side in arrays;
// flat.h steps them.
type flat struct {
	w                 *Worlds
	alpha, gain, rate []float64 // of each source
	ones, zeros       []float64 // α and u with which nothing changes
	x                 []float64 // K × n, mean states
	found             []float32 // K × n, as observed: of each source's last crawl, 0 before the first
	last              []int32   // K × n, epochs of the last crawls
	ages              []float32 // as observed, from 0 on; later ones are seen as the last
}

func init() {
	newFlat = flatten
	// The worlds in which no source is crawled have −1 crawls.
	greatest = func(w *Worlds, lo, hi int) int {
		return int(C.flat_choose(w.row(lo, hi), c[C.int32_t](action[float32](w, lo, w.n)), c[C.uint8_t](w.over[lo:])))
	}
}

// flatten returns nil for worlds of other dynamics, or that are seen otherwise.
func flatten(w *Worlds) dynamics {
	if w.set.World.Kind != "mean" || !w.set.Scaled || w.site == nil || w.site.log ||
		len(w.site.Instance.Changes) > 0 || w.site.round > 1e5 {
		return nil
	}
	world, err := w.site.Open(0, env.LevelModel, false)
	if err != nil {
		return nil
	}
	k, n := len(w.at), w.n
	d := &flat{
		w: w, gain: slices.Clone(world.View().Mean), rate: w.site.rate,
		ones: slices.Repeat([]float64{1}, n), zeros: make([]float64, n),
		x: make([]float64, k*n), found: make([]float32, k*n), last: make([]int32, k*n),
	}
	for _, s := range w.site.Instance.Sources {
		if !s.Exponential() {
			return nil
		}
		d.alpha = append(d.alpha, s.Factor())
	}
	for age := range int(18*w.site.round) + 2 { // until it is 1 as a float32
		d.ages = append(d.ages, float32(w.site.age(age)))
	}
	return d
}

func (d *flat) age(k, i int) int { return d.w.epoch[k] - int(d.last[k*d.w.n+i]) }

func (d *flat) beginEpisode(k int) error {
	lo, hi := k*d.w.n, (k+1)*d.w.n
	copy(d.x[lo:hi], d.gain)
	clear(d.found[lo:hi])
	for i := range d.last[lo:hi] {
		d.last[lo+i] = -1
	}
	return nil
}

// c returns where figures begin, for C.
func c[T, F any](x []F) *T { return (*T)(unsafe.Pointer(unsafe.SliceData(x))) }

// row returns where worlds from number lo up to hi write, for C.
func (w *Worlds) row(lo, hi int) C.struct_row {
	n, to := w.n, &w.to
	r := C.struct_row{
		worlds: C.intptr_t(hi - lo), n: C.intptr_t(n), most: C.intptr_t(w.about.Most),
		reward: c[C.double](to.reward[lo:]), interest: c[C.double](to.interest[lo*n:]),
		crawled: c[C.uint8_t](to.crawled[lo*n:]),
		crawl:   c[C.intptr_t](to.crawl[lo*w.about.Most:]), crawls: c[C.intptr_t](to.crawls[lo:]),
	}
	if to.scaled != nil {
		r.seen = c[C.float](to.scaled[lo*w.about.Width:])
	}
	return r
}

func (d *flat) step(lo, hi int, still bool) error {
	w, n := d.w, d.w.n
	states := C.struct_states{
		x: c[C.double](d.x[lo*n:]), found: c[C.float](d.found[lo*n:]),
		last: c[C.int32_t](d.last[lo*n:]), epoch: c[C.intptr_t](w.epoch[lo:]),
	}
	stays := C.struct_growth{
		alpha: c[C.double](d.ones), gain: c[C.double](d.zeros), rate: c[C.double](d.rate), pay: C.double(w.site.pay),
		ages: c[C.float](d.ages), oldest: C.int32_t(len(d.ages) - 1),
	}
	grows := stays
	if !still {
		grows.alpha, grows.gain = c[C.double](d.alpha), c[C.double](d.gain)
	}
	C.flat_step(w.row(lo, hi), states, grows, stays)
	return nil
}
