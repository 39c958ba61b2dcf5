package env

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ephemera/env/stream"
)

// PoissonOptions are the settings of a [Poisson] world. The zero value is
// constant marks, harvests only, and a budget that is enforced.
type PoissonOptions struct {
	Marks Marks // law of the items' initial interest; empty means constant

	Items   bool // crawls bring back their items
	State   bool // View shows the true state of all sources
	NoMean  bool // View shows no mean states, so that an epoch costs what its crawls cost
	Overrun bool // let crawls over the budget pass
}

// maxRate is the greatest rate, in items per epoch: each item is drawn.
const maxRate = 10_000

// Poisson is the world in which items arrive at each source as a Poisson
// process, one by one or in batches. The interest of an item of age a is its
// mark ξ times f(a), by the law of its source; once older than the source's
// window M it is dropped, for any real M. What a source publishes before a
// change of its parameters keeps those that held then.
//
// The items that source i publishes in epoch t, the time between the decisions
// t−1 and t, are a function of (seed, i, t) alone: all policies that are
// compared under one seed see the same world, whatever they crawl.
//
// Harvests are drawn when they are crawled. With State every epoch of every
// source is drawn; where the law of a source is not exponential, or the world
// changes, all that waits there is drawn again at each epoch.
type Poisson struct {
	ledger
	opt   PoissonOptions
	seed  uint64
	rng   *stream.Rand
	reach []float64 // age from which on no item of the source counts, epochs
	state []float64
	sums  [][]epochSum // of each source, in a ring of the epochs within its window
}

// epochSum is the interest, at the end of an epoch, of what was published in it,
// and of the items among it that have the longest until the window closes, when
// only a part of the epoch is within it.
type epochSum struct{ all, last float64 }

// NewPoisson returns the world of an instance under a seed. It refuses rates
// above 10 000 items per epoch.
func NewPoisson(in Instance, seed uint64, o PoissonOptions) (*Poisson, error) {
	l, err := newLedger(in, o.Overrun)
	if err != nil {
		return nil, err
	}
	n := len(in.Sources)
	o.Marks = cmp.Or(o.Marks, MarksConstant)
	if _, err := ParseMarks(string(o.Marks)); err != nil {
		return nil, err
	}
	w := &Poisson{ledger: l, opt: o, seed: seed, rng: stream.New(seed), reach: make([]float64, n)}
	for _, phase := range w.phases {
		for i, s := range phase.Instance.Sources {
			if s.Rate > maxRate {
				return nil, fmt.Errorf("instance %.60q, source %d (%.60q): rate is %v; allowed in world poisson are at most %d items per epoch", in.ID, i+1, s.Name, s.Rate, maxRate)
			}
			w.reach[i] = math.Max(w.reach[i], math.Min(s.Window, s.horizon()))
		}
	}
	if o.NoMean {
		w.view.Mean = nil
	}
	if o.State {
		w.state, w.sums = make([]float64, n), make([][]epochSum, n)
		w.view.State = w.state
		w.arrive()
	}
	return w, nil
}

// Step implements World.
func (w *Poisson) Step(crawl []int) ([]Crawled, error) {
	if err := w.check(crawl); err != nil {
		return nil, err
	}
	for _, i := range crawl {
		c := Crawled{Source: i, Age: w.view.Age(i)}
		if w.opt.Items || !w.opt.State {
			start := len(w.items)
			c.Interest = w.gather(i, w.opt.Items)
			if w.opt.Items {
				c.Items = slices.Clip(w.items[start:])
			}
		}
		if w.opt.State {
			c.Interest = w.state[i]
			w.state[i] = 0
		}
		w.crawled = append(w.crawled, c)
	}
	w.advance(crawl)
	w.arrive()
	return w.crawled, nil
}

// arrive moves the true state of all sources, if it is shown, on to the present epoch.
func (w *Poisson) arrive() {
	for i := range w.state {
		s := w.source(i, w.view.Epoch)
		switch {
		case !s.Exponential() || len(w.phases) > 1:
			w.state[i] = w.gather(i, false)
		case s.Window > w.reach[i]+1: // X ← αX + U
			w.state[i] = s.Factor()*w.state[i] + w.publish(i, w.view.Epoch, false).all
		default:
			w.state[i] = w.windowed(i, s)
		}
	}
}

// windowed returns the interest that waits at source i, of the exponential law with a
// window, from the sums of its epochs: a twentieth of the time of drawing all again.
func (w *Poisson) windowed(i int, s *Source) (interest float64) {
	now, n := w.view.Epoch, int(s.Window)+1 // epochs at least in part within the window
	if w.sums[i] == nil {
		w.sums[i] = make([]epochSum, n)
	}
	w.sums[i][now%n] = w.publish(i, now, false)
	alpha, weight := s.Factor(), 1.0
	for t := now; t > w.view.Last[i] && t > now-n; t-- {
		sum := w.sums[i][t%n]
		if now-t == n-1 {
			sum.all = sum.last
		}
		interest += weight * sum.all
		weight *= alpha
	}
	return interest
}

// gather returns the interest that waits at source i, published since its last
// crawl; with show the items are appended to w.items, oldest first.
func (w *Poisson) gather(i int, show bool) (interest float64) {
	first := w.view.Last[i] + 1
	if age := float64(w.view.Epoch - first); age > w.reach[i] {
		first = w.view.Epoch - int(w.reach[i])
	}
	for t := first; t <= w.view.Epoch; t++ {
		interest += w.publish(i, t, show).all
	}
	return interest
}

// publish draws what source i published in epoch t and returns what interest
// is left of it now; with show the items are appended to w.items.
func (w *Poisson) publish(i, t int, show bool) (sum epochSum) {
	s := w.source(i, t)
	if s.Rate == 0 {
		return sum
	}
	r := w.rng
	r.Reset(w.seed, stream.World, uint64(i), uint64(t))
	scale := s.Interest
	if w.opt.Marks == MarksPerEpoch {
		scale *= r.ExpFloat64()
	}
	oldest, batch := float64(w.view.Epoch-t+1), max(1, s.Batch)
	gap, part := float64(batch)/s.Rate, s.Window-math.Floor(s.Window)
	exponential := s.Exponential()
	for v := r.ExpFloat64() * gap; v < 1; v += r.ExpFloat64() * gap {
		age, f := oldest-v, scale
		if exponential { // most items of most worlds: no call
			f *= math.Exp(-s.Decay * age)
		} else {
			f *= s.interestAt(age)
		}
		for range batch {
			x := f
			if w.opt.Marks == MarksPerItem {
				x *= r.ExpFloat64()
			}
			if age > s.Window {
				continue
			}
			sum.all += x
			if age < part {
				sum.last += x
			}
			if show {
				w.items = append(w.items, Item{Age: age, Interest: x})
			}
		}
	}
	return sum
}

// Marks names the law of the items' initial interest ξ around its mean ξ̄.
type Marks string

// The laws of marks.
const (
	MarksConstant Marks = "constant"  // ξ = ξ̄
	MarksPerItem  Marks = "per-item"  // ξ exponential, drawn for each item
	MarksPerEpoch Marks = "per-epoch" // ξ exponential, one draw for all items of a source and epoch
)

// ParseMarks returns the law of that name.
func ParseMarks(name string) (Marks, error) {
	switch m := Marks(name); m {
	case MarksConstant, MarksPerItem, MarksPerEpoch:
		return m, nil
	}
	return "", fmt.Errorf("marks is %q; allowed are %s, %s and %s", name, MarksConstant, MarksPerItem, MarksPerEpoch)
}

// Cumulant returns κₖ of the interest, at the end of d epochs, of the items that
// a source of the exponential law publishes in them one by one, by Campbell's
// theorem, for ξ̄ = 1 and without a window; κ₁ is the mean and κ₂ the variance.
// One draw for the whole epoch is left out:
//
//	κₖ = λ E[ξᵏ] (1 − e^(−kcd)) / (kc)
func (s Source) Cumulant(k int, d float64, m Marks) float64 {
	moment := 1.0 // E[ξᵏ]
	if m == MarksPerItem {
		moment = math.Gamma(float64(k + 1)) // k!
	}
	kc := float64(k) * s.Decay
	return s.Rate * moment * -math.Expm1(-kc*d) / kc
}
