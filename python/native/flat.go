package native

import "ephemera/env"

// flat holds K worlds of the mean dynamics side by side, so that a step is one pass
// over arrays.
type flat struct {
	at          *site
	n           int
	alpha, gain []float64 // α and u of each source
	x           []float64 // K × n, mean states
	last        []int32   // K × n, epochs of the last crawls
}

// newFlat returns nil for worlds that are no mean dynamics of exponential laws.
func newFlat(at *site, kind string, worlds int) *flat {
	if kind != "mean" || len(at.Instance.Changes) > 0 {
		return nil
	}
	n := len(at.Instance.Sources)
	f := &flat{at: at, n: n, gain: at.gain, x: make([]float64, worlds*n), last: make([]int32, worlds*n)}
	for _, s := range at.Instance.Sources {
		if !s.Exponential() {
			return nil
		}
		f.alpha = append(f.alpha, s.Factor())
	}
	return f
}

func (f *flat) begin(k int) {
	copy(f.x[k*f.n:], f.gain)
	for i := range f.last[k*f.n : (k+1)*f.n] {
		f.last[k*f.n+i] = -1
	}
}

// step crawls sources of world k, and appends what that brings.
func (f *flat) step(k, epoch int, crawl []int, got []env.Crawled) []env.Crawled {
	x, last := f.x[k*f.n:(k+1)*f.n], f.last[k*f.n:(k+1)*f.n]
	for _, i := range crawl {
		got = append(got, env.Crawled{Source: i, Age: epoch - int(last[i]), Interest: x[i]})
		x[i], last[i] = 0, int32(epoch) // (3)
	}
	// (2): x ← αx + u
	alpha, gain := f.alpha[:len(x)], f.gain[:len(x)]
	for i := range x {
		x[i] = alpha[i]*x[i] + gain[i]
	}
	return got
}

// flatShow writes states, if they are seen, and ages of world k.
func flatShow[F float32 | float64](f *flat, k, epoch int, states, ages []F) {
	x, last, rate := f.x[k*f.n:(k+1)*f.n], f.last[k*f.n:(k+1)*f.n], f.at.rate
	for i := range states {
		states[i] = F(x[i] * rate[i])
	}
	for i := range ages {
		ages[i] = age[F](f.at, epoch-int(last[i]))
	}
}
