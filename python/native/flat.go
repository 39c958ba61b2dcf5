package native

import "ephemera/env/stream"

// flat holds K worlds of the mean dynamics side by side, so that a step is one pass
// over arrays.
type flat interface {
	begin(k int)
	last(k, i int) int
	step(w *Worlds, lo, hi int, to *Frame, row int) error
	write(w *Worlds, to *Frame, row, k int)
}

// flatOf shows what is seen as F.
type flatOf[F float32 | float64] struct {
	at                *site
	n                 int
	states            bool      // they are seen
	alpha, gain, rate []float64 // α, u and the unit of each source
	x                 []float64 // K × n, mean states
	crawled           []int32   // K × n, epochs of the last crawls
	found             []F       // K × n, as observed: of the last crawls, 0 before the first
	ages              []F       // as observed, of the ages from 0 on
}

// newFlat returns nil for worlds that are no mean dynamics of exponential laws.
func newFlat(at *site, set *worldSettings) flat {
	if set.Kind != "mean" || len(at.Instance.Changes) > 0 {
		return nil
	}
	for _, s := range at.Instance.Sources {
		if !s.Exponential() {
			return nil
		}
	}
	if set.Scaled {
		return flatFrom[float32](at, set)
	}
	return flatFrom[float64](at, set)
}

func flatFrom[F float32 | float64](at *site, set *worldSettings) flat {
	n := len(at.rate)
	f := &flatOf[F]{at: at, n: n, states: !at.log && set.Knowledge != "online", gain: at.gain, rate: at.rate}
	f.x, f.crawled, f.found = make([]float64, set.Worlds*n), make([]int32, set.Worlds*n), make([]F, set.Worlds*n)
	for _, s := range at.Instance.Sources {
		f.alpha = append(f.alpha, s.Factor())
	}
	for a := range max(len(at.ages), 1024) {
		f.ages = append(f.ages, age[F](at, a))
	}
	return f
}

func (f *flatOf[F]) last(k, i int) int { return int(f.crawled[k*f.n+i]) }

func (f *flatOf[F]) begin(k int) {
	lo, hi := k*f.n, (k+1)*f.n
	copy(f.x[lo:hi], f.gain)
	clear(f.found[lo:hi])
	for i := lo; i < hi; i++ {
		f.crawled[i] = -1
	}
}

// step steps worlds from number lo up to hi.
func (f *flatOf[F]) step(w *Worlds, lo, hi int, to *Frame, row int) error {
	n, first, width, out := f.n, row*len(w.world), w.about.Width, f.to(to)
	clear(to.Interest[(first+lo)*n : (first+hi)*n])
	clear(to.Crawled[(first+lo)*n : (first+hi)*n])
	for k := lo; k < hi; k++ {
		block := first + k
		if w.over[k] {
			if err := w.begin(k, stream.Mix(w.world[k].seed), to); err != nil {
				return w.of(k, err)
			}
			to.Reward[block], to.Over[block] = 0, 0
			f.show(out[block*width:(block+1)*width], k, 0)
			continue
		}
		x, found := f.x[k*n:(k+1)*n], f.found[k*n:(k+1)*n]
		var reward float64
		for _, i := range w.crawl[k*w.most : k*w.most+w.crawls[k]] {
			y := x[i]
			reward += y
			to.Interest[block*n+i], to.Crawled[block*n+i] = y, 1
			found[i] = F(f.at.harvest(i, y))
			x[i], f.crawled[k*n+i] = 0, int32(w.epoch[k]) // (3)
		}
		w.epoch[k]++
		to.Reward[block], to.Over[block] = reward*f.at.pay, 0
		if w.epoch[k] == w.about.Epochs {
			w.over[k], to.Over[block] = true, 1
		}
		// (2): x ← αx + u, and what is seen of it
		states, ages, harvests := parts(out[block*width:(block+1)*width], n)
		copy(harvests, found)
		if f.states {
			alpha, gain, rate, states := f.alpha[:len(x)], f.gain[:len(x)], f.rate[:len(x)], states[:len(x)]
			for i, y := range x {
				y = alpha[i]*y + gain[i]
				x[i] = y
				states[i] = F(y * rate[i])
			}
		} else {
			alpha, gain := f.alpha[:len(x)], f.gain[:len(x)]
			for i, y := range x {
				x[i] = alpha[i]*y + gain[i]
			}
		}
		f.showAges(ages, k, w.epoch[k])
	}
	return nil
}

// to returns where observations go.
func (f *flatOf[F]) to(to *Frame) []F {
	if raw, ok := any(to.Raw).([]F); ok {
		return raw
	}
	return any(to.Scaled).([]F)
}

// write writes what is seen of world k after a reset, or again.
func (f *flatOf[F]) write(w *Worlds, to *Frame, row, k int) {
	block := row*len(w.world) + k
	clear(to.Interest[block*f.n : (block+1)*f.n])
	clear(to.Crawled[block*f.n : (block+1)*f.n])
	to.Reward[block], to.Over[block] = 0, 0
	if w.over[k] {
		to.Over[block] = 1
	}
	f.show(f.to(to)[block*w.about.Width:(block+1)*w.about.Width], k, w.epoch[k])
}

// show writes what is seen of world k.
func (f *flatOf[F]) show(to []F, k, epoch int) {
	states, ages, harvests := parts(to, f.n)
	for i := range states {
		states[i] = F(f.x[k*f.n+i] * f.rate[i])
	}
	f.showAges(ages, k, epoch)
	copy(harvests, f.found[k*f.n:(k+1)*f.n])
}

func (f *flatOf[F]) showAges(to []F, k, epoch int) {
	crawled, known := f.crawled[k*f.n:(k+1)*f.n], f.ages
	to = to[:len(crawled)]
	for i, last := range crawled {
		if a := epoch - int(last); uint(a) < uint(len(known)) {
			to[i] = known[a]
		} else {
			to[i] = age[F](f.at, a)
		}
	}
}
