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
	Marks Marks   // law of the items' initial interest; empty means constant
	Sigma float64 // σ of log-normal marks; 0 means 1

	Items   bool // crawls bring back their items
	State   bool // View shows the true state of all sources
	Overrun bool // let crawls over the budget pass

	// Unobserved marks sources whose state is not seen though State is set;
	// View shows their mean state instead. nil means that all are seen.
	Unobserved []bool

	// Bulk is the rate, in items per epoch, above which the interest of an
	// epoch's items is drawn as one sum; 0 means 1000, +Inf never. It has no
	// effect with Items. Worlds draw the same items under one seed whatever
	// their other options, so that a source below Bulk shows the same content
	// to policies of all levels of knowledge.
	Bulk float64
}

const defaultBulk = 1000

// MaxSigma is the greatest σ of log-normal marks.
const MaxSigma = 8.0

const (
	// maxRate is the greatest rate, in items per epoch: beyond it counts of
	// items lose their last digits.
	maxRate = 1e15
	// maxItems is the greatest rate where crawls bring back items: 160 MB of
	// them for an epoch.
	maxItems = 1e7
)

// negligible is the share of its initial interest below which what is left of
// an item is no longer counted.
const negligible = 0x1p-60

const (
	maxWindow = 1 << 40 // epochs; no run comes to the end of it
	maxRing   = 1 << 26 // epochs held for windows, 1 GiB
)

// Poisson is the world in which items arrive at each source as a Poisson
// process. An item's interest starts at its mark ξ and decays as ξ e^(−c age)
// from the moment of its publication; once older than the source's window M it
// is dropped, for any real M.
//
// The items that source i publishes in epoch t, the time between the decisions
// t−1 and t, are a function of (seed, i, t) alone: all policies that are
// compared under one seed see the same world, whatever they crawl.
//
// Harvests are drawn when they are crawled. With State every epoch of every
// source is drawn.
type Poisson struct {
	ledger
	opt    PoissonOptions
	seed   uint64
	rng    *stream.Rand
	laws   []law // of each source
	state  []float64
	behind bool // the states are to be moved on to the present epoch
}

var _ World = (*Poisson)(nil)

// NewPoisson returns the world of an instance under a seed.
func NewPoisson(in Instance, seed uint64, o PoissonOptions) (*Poisson, error) {
	l, err := newLedger(in, o.Overrun)
	if err != nil {
		return nil, err
	}
	if o, err = o.checked(len(in.Sources)); err != nil {
		return nil, err
	}
	w := &Poisson{behind: o.State, ledger: l, opt: o, seed: seed, rng: stream.New(seed), laws: make([]law, len(in.Sources))}
	held := 0
	for i, s := range in.Sources {
		if err := o.drawable(s); err != nil {
			return nil, fmt.Errorf("instance %q, source %d (%q): %w", in.ID, i+1, s.Name, err)
		}
		w.laws[i] = newLaw(s, o)
		if w.laws[i].limit && o.State {
			held += min(w.laws[i].whole, maxRing) + 1 // no overflow in the sum
		}
	}
	if held > maxRing {
		return nil, fmt.Errorf("the windows of all sources hold %d epochs together; to compute states, allowed are %d", held, maxRing)
	}
	if o.State {
		w.state = make([]float64, len(in.Sources))
		w.view.State = w.state
		if o.Unobserved != nil {
			w.view.State = make([]float64, len(in.Sources))
		}
		for i := range w.laws {
			if l := &w.laws[i]; l.limit {
				l.ring = make([][2]float64, l.whole+1)
			}
		}
	}
	return w, nil
}

// View implements World.
func (w *Poisson) View() *Observed {
	w.arrive() // at the beginning
	return &w.view
}

// checked returns the options with their defaults, for a number of sources.
func (o PoissonOptions) checked(sources int) (PoissonOptions, error) {
	o.Marks, o.Sigma, o.Bulk = cmp.Or(o.Marks, MarksConstant), cmp.Or(o.Sigma, 1), cmp.Or(o.Bulk, defaultBulk)
	if _, err := ParseMarks(string(o.Marks)); err != nil {
		return o, err
	}
	if !(o.Sigma > 0) || o.Sigma > MaxSigma {
		return o, fmt.Errorf("sigma of log-normal marks is %v; allowed is above 0 and at most %v", o.Sigma, MaxSigma)
	}
	if !(o.Bulk > 0) {
		return o, fmt.Errorf("bulk rate is %v; allowed is above 0", o.Bulk)
	}
	if o.Items {
		o.Bulk = math.Inf(1)
	}
	if o.Unobserved != nil && len(o.Unobserved) != sources {
		return o, fmt.Errorf("there are %d marks of unobserved sources for %d sources", len(o.Unobserved), sources)
	}
	o.Unobserved = slices.Clone(o.Unobserved)
	return o, nil
}

// drawable refuses rates at which items cannot be drawn.
func (o PoissonOptions) drawable(s Source) error {
	if s.Rate > maxRate {
		return fmt.Errorf("rate is %v; allowed in the world of items are at most %v items per epoch", s.Rate, float64(maxRate))
	}
	if o.Items && s.Rate > maxItems {
		return fmt.Errorf("rate is %v; where crawls bring back items, allowed are at most %v per epoch", s.Rate, float64(maxItems))
	}
	return nil
}

// Step implements World.
func (w *Poisson) Step(crawl []int) ([]Crawled, error) {
	if err := w.check(crawl); err != nil {
		return nil, err
	}
	w.arrive()
	for _, i := range crawl {
		c := Crawled{Source: i, Age: w.view.Age(i)}
		switch {
		case w.opt.Items:
			c.Items, c.Interest = w.gatherItems(i)
		case !w.opt.State:
			c.Interest = w.gather(i)
		}
		if w.opt.State {
			c.Interest = w.state[i]
			w.state[i] = 0
		}
		w.crawled = append(w.crawled, c)
	}
	w.advance(crawl)
	w.behind = w.opt.State
	w.arrive()
	return w.crawled, nil
}

// arrive moves the true state of all sources on to the present epoch.
func (w *Poisson) arrive() {
	if !w.behind {
		return
	}
	w.behind = false
	for i := range w.state {
		l := &w.laws[i]
		early, late := w.sums(i, w.view.Epoch)
		if l.limit {
			// Positive terms are added up afresh, so that nothing of a dropped
			// item stays behind as a rounding error.
			l.ring[w.view.Epoch%len(l.ring)] = [2]float64{early, late}
			w.state[i] = w.gather(i)
		} else {
			w.state[i] = l.factor*w.state[i] + (early + late)
		}
	}
	if w.opt.Unobserved != nil {
		for i, hidden := range w.opt.Unobserved {
			w.view.State[i] = w.state[i]
			if hidden {
				w.view.State[i] = w.view.Mean[i]
			}
		}
	}
}

// waiting calls visit for the epochs of which something waits at source i, from
// the present one back to the last crawl, the window, or until the rest is
// negligible. weight is what is left of an epoch's interest; items from before
// the time cut in the epoch are older than the window.
func (w *Poisson) waiting(i int, visit func(epoch int, weight, cut float64)) {
	l, weight := &w.laws[i], 1.0
	for t := w.view.Epoch; t > w.view.Last[i] && weight >= negligible; t-- {
		cut := 0.0
		if back := w.view.Epoch - t; l.limit && back >= l.whole {
			if back > l.whole || l.part == 0 {
				return
			}
			cut = 1 - l.part
		}
		visit(t, weight, cut)
		weight *= l.factor
	}
}

// gather returns the interest that waits at source i.
func (w *Poisson) gather(i int) float64 {
	var x float64
	ring := w.laws[i].ring
	w.waiting(i, func(t int, weight, cut float64) {
		var early, late float64
		if ring != nil {
			early, late = ring[t%len(ring)][0], ring[t%len(ring)][1]
		} else {
			early, late = w.sums(i, t)
		}
		if cut > 0 {
			early = 0
		}
		x += weight * (early + late)
	})
	return x
}

// gatherItems returns the items that wait at source i, oldest first, and their
// interest.
func (w *Poisson) gatherItems(i int) (got []Item, x float64) {
	start := len(w.items)
	w.waiting(i, func(t int, weight, cut float64) { w.drawItems(i, t, weight, cut) })
	got = slices.Clip(w.items[start:])
	slices.Reverse(got)
	for _, it := range got {
		x += it.Interest
	}
	return got, x
}

// open sets the stream at what source i publishes in epoch t and returns what
// all its marks are multiplied by.
func (w *Poisson) open(i, t int) float64 {
	w.rng.Reset(w.seed, stream.World, uint64(i), uint64(t))
	if w.opt.Marks == MarksPerEpoch {
		return w.rng.ExpFloat64()
	}
	return 1
}

// sums draws the interest, at the end of epoch t, of the items that source i
// published in it: in the last part of the epoch, as long as the fractional
// part of the window, and before.
func (w *Poisson) sums(i, t int) (early, late float64) {
	l := &w.laws[i]
	if l.Rate == 0 || l.Interest == 0 {
		return 0, 0
	}
	scale := w.open(i, t)
	if l.bulk {
		early = scale * w.sum(l, l.early, 1-l.part) * math.Exp(-l.Decay*l.part)
		return early, scale * w.sum(l, l.late, l.part)
	}
	xi := scale * l.Interest
	gap, c, cut := 1/l.Rate, l.Decay, 1-l.part
	for v := w.rng.ExpFloat64() * gap; v < 1; v += w.rng.ExpFloat64() * gap {
		x := w.item(c * (v - 1))
		if v < cut {
			early += x
		} else {
			late += x
		}
	}
	return xi * early, xi * late
}

// sum draws the interest, at the end of d epochs, of the items of those d
// epochs.
func (w *Poisson) sum(l *law, mode sumMode, d float64) float64 {
	switch {
	case d == 0:
		return 0
	case mode == byGamma:
		return drawGammaSum(w.rng, l.Rate, l.Decay, l.Interest, d)
	case mode == byCumulants:
		return l.drawCumulants(w.rng, d, w.opt)
	}
	var x float64
	gap := 1 / l.Rate
	for v := w.rng.ExpFloat64() * gap; v < d; v += w.rng.ExpFloat64() * gap {
		x += w.item(l.Decay * (v - d))
	}
	return l.Interest * x
}

// item returns what is left of an item after decay by e^y, with a draw of its
// mark, in units of ξ̄.
func (w *Poisson) item(y float64) float64 {
	switch w.opt.Marks {
	case MarksPerItem:
		return math.Exp(y) * w.rng.ExpFloat64()
	case MarksLogNormal:
		s := w.opt.Sigma
		return math.Exp(y + s*(w.rng.NormFloat64()-s/2))
	}
	return math.Exp(y)
}

// drawItems appends to w.items those of source i and epoch t from the time cut in it,
// youngest first. The draws are those of sums.
func (w *Poisson) drawItems(i, t int, weight, cut float64) {
	l := &w.laws[i]
	if l.Rate == 0 {
		return
	}
	xi := l.Interest * weight * w.open(i, t)
	back, start := float64(w.view.Epoch-t), len(w.items)
	gap, c := 1/l.Rate, l.Decay
	for v := w.rng.ExpFloat64() * gap; v < 1; v += w.rng.ExpFloat64() * gap {
		x := xi * w.item(c*(v-1))
		if v >= cut {
			w.items = append(w.items, Item{Age: back + (1 - v), Interest: x})
		}
	}
	slices.Reverse(w.items[start:])
}
