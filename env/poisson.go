package env

import (
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

	// Changes are in force from their epoch on, in any order.
	Changes []Change
}

// Change gives a source new parameters: from the given epoch on, items arrive
// at the new rate and with the new mean interest, and all that waits decays at
// the new rate. Rate 0 is a source that has vanished. A change at the epoch 0
// replaces the instance's parameters.
type Change struct {
	Epoch    int
	Source   int
	Rate     float64 // λ, items per epoch
	Decay    float64 // c, 1/epoch
	Interest float64 // ξ̄
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
	maxRing   = 1 << 27 // figures held for windows, 1 GiB
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
	id      string
	opt     PoissonOptions
	marks   markKind
	seed    uint64
	rng     *stream.Rand
	laws    []law // of source i: laws[first[i]:first[i+1]], by epoch
	first   []int
	changes []Change // not yet in force, by epoch
	whole   []int    // whole epochs in the window
	late    []float64
	limit   []bool // the window is finite and drops something
	state   []float64
	ring    []float64 // per source: early and late sums of the epochs in the window
	at      []int     // where the source's ring begins
	items   []Item
	ends    []int
}

var _ World = (*Poisson)(nil)

// NewPoisson returns the world of an instance under a seed.
func NewPoisson(in Instance, seed uint64, o PoissonOptions) (*Poisson, error) {
	l, err := newLedger(in, o.Overrun)
	if err != nil {
		return nil, err
	}
	n := len(in.Sources)
	if o.Marks == "" {
		o.Marks = MarksConstant
	}
	if _, err := ParseMarks(string(o.Marks)); err != nil {
		return nil, err
	}
	if o.Sigma == 0 {
		o.Sigma = 1
	}
	if !(o.Sigma > 0) || o.Sigma > MaxSigma {
		return nil, fmt.Errorf("sigma of log-normal marks is %v; allowed is above 0 and at most %v", o.Sigma, MaxSigma)
	}
	if o.Bulk == 0 {
		o.Bulk = defaultBulk
	}
	if !(o.Bulk > 0) {
		return nil, fmt.Errorf("bulk rate is %v; allowed is above 0", o.Bulk)
	}
	if o.Items {
		o.Bulk = math.Inf(1)
	}
	if o.Unobserved != nil && len(o.Unobserved) != n {
		return nil, fmt.Errorf("there are %d marks of unobserved sources for %d sources", len(o.Unobserved), n)
	}
	o.Unobserved = slices.Clone(o.Unobserved)
	w := &Poisson{ledger: l, id: in.ID, opt: o, marks: o.Marks.kind(), seed: seed, rng: stream.New(seed),
		first: make([]int, n+1), whole: make([]int, n), late: make([]float64, n), limit: make([]bool, n), at: make([]int, n)}
	if err := w.readLaws(in); err != nil {
		return nil, err
	}
	w.changes = slices.Clone(o.Changes)
	slices.SortStableFunc(w.changes, func(a, b Change) int { return a.Epoch - b.Epoch })
	w.opt.Changes = nil
	w.apply()
	for i := range l.gain {
		w.view.Mean[i] = w.gain[i]
	}
	if o.State {
		w.state = make([]float64, n)
		w.view.State = w.state
		if o.Unobserved != nil {
			w.view.State = make([]float64, n)
		}
		w.arrive()
	}
	return w, nil
}

// readLaws checks the changes and lays out the laws and windows.
func (w *Poisson) readLaws(in Instance) error {
	n := len(in.Sources)
	by := make([][]Change, n)
	for k, c := range w.opt.Changes {
		if c.Source < 0 || c.Source >= n {
			return fmt.Errorf("change %d: source is %d; allowed are 0 to %d", k+1, c.Source, n-1)
		}
		if c.Epoch < 0 {
			return fmt.Errorf("change %d: epoch is %d; allowed is 0 or more", k+1, c.Epoch)
		}
		if err := in.Sources[c.Source].changed(c).Validate(); err != nil {
			return fmt.Errorf("change %d, source %d (%q): %w", k+1, c.Source+1, in.Sources[c.Source].Name, err)
		}
		if err := w.drawable(in.Sources[c.Source].changed(c)); err != nil {
			return fmt.Errorf("change %d, source %d (%q): %w", k+1, c.Source+1, in.Sources[c.Source].Name, err)
		}
		by[c.Source] = append(by[c.Source], c)
	}
	size := 0
	for i, s := range in.Sources {
		slices.SortStableFunc(by[i], func(a, b Change) int { return a.Epoch - b.Epoch })
		slowest := s.Decay
		for _, c := range by[i] {
			slowest = math.Min(slowest, c.Decay)
		}
		// A window that drops nothing but what is negligible is none; the epoch
		// less is for items that are nearly an epoch older than their epoch's end.
		if s.Window < maxWindow && math.Exp(-slowest*(s.Window-1)) >= negligible {
			m, f := math.Modf(s.Window)
			w.whole[i], w.late[i], w.limit[i] = int(m), f, true
			if w.opt.State {
				w.at[i] = size
				size += 2 * min(int(m)+1, maxRing) // no overflow in the sum
			}
		}
		if err := w.drawable(s); err != nil {
			return fmt.Errorf("instance %q, source %d (%q): %w", in.ID, i+1, s.Name, err)
		}
		w.laws = append(w.laws, newLaw(0, s, w.opt.Marks, w.opt.Sigma, w.opt.Bulk, w.late[i]))
		for _, c := range by[i] {
			next := newLaw(c.Epoch, s.changed(c), w.opt.Marks, w.opt.Sigma, w.opt.Bulk, w.late[i])
			if last := &w.laws[len(w.laws)-1]; last.from == c.Epoch {
				*last = next
			} else {
				w.laws = append(w.laws, next)
			}
		}
		w.first[i+1] = len(w.laws)
	}
	if size > maxRing {
		return fmt.Errorf("the windows of all sources hold %d epochs together; to compute states, allowed are %d", size/2, maxRing/2)
	}
	w.ring = make([]float64, size)
	return nil
}

// drawable refuses rates at which items cannot be drawn.
func (w *Poisson) drawable(s Source) error {
	if s.Rate > maxRate {
		return fmt.Errorf("rate is %v; allowed in the world of items are at most %v items per epoch", s.Rate, float64(maxRate))
	}
	if w.opt.Items && s.Rate > maxItems {
		return fmt.Errorf("rate is %v; where crawls bring back items, allowed are at most %v per epoch", s.Rate, float64(maxItems))
	}
	return nil
}

// changed returns the source after a change.
func (s Source) changed(c Change) Source {
	s.Rate, s.Decay, s.Interest = c.Rate, c.Decay, c.Interest
	return s
}

// Instance returns the instance with the parameters that are in force at an
// epoch, for policies that are to know of changes.
func (w *Poisson) Instance(epoch int) Instance {
	in := Instance{ID: w.id, Sources: make([]Source, len(w.gain)), Budget: w.terms.Budget}
	for i := range in.Sources {
		in.Sources[i] = w.laws[w.lawAt(i, epoch)].source
	}
	return in
}

// lawAt returns the number of the law of source i at epoch t.
func (w *Poisson) lawAt(i, t int) int {
	k := w.first[i+1] - 1
	for w.laws[k].from > t {
		k--
	}
	return k
}

// apply puts the changes of the present epoch into the mean dynamics.
func (w *Poisson) apply() {
	for len(w.changes) > 0 && w.changes[0].Epoch <= w.view.Epoch {
		i := w.changes[0].Source
		l := &w.laws[w.lawAt(i, w.view.Epoch)]
		w.factor[i], w.gain[i] = l.factor, l.source.Gain()
		w.changes = w.changes[1:]
	}
}

// Step implements World.
func (w *Poisson) Step(crawl []int) ([]Crawled, error) {
	if err := w.check(crawl); err != nil {
		return nil, err
	}
	w.crawled, w.items, w.ends = w.crawled[:0], w.items[:0], w.ends[:0]
	for _, i := range crawl {
		c := Crawled{Source: i, Age: w.view.Age(i)}
		switch {
		case w.opt.Items:
			c.Interest = w.gatherItems(i)
			w.ends = append(w.ends, len(w.items))
		case !w.opt.State:
			c.Interest = w.gather(i)
		}
		if w.opt.State {
			c.Interest = w.state[i]
			w.state[i] = 0
		}
		w.crawled = append(w.crawled, c)
	}
	if w.opt.Items {
		from := 0
		for k, end := range w.ends {
			w.crawled[k].Items = w.items[from:end:end]
			from = end
		}
	}
	w.view.Epoch++ // changes of the next epoch are in force while it passes
	w.apply()
	w.view.Epoch--
	w.advance(crawl)
	if w.opt.State {
		w.arrive()
	}
	return w.crawled, nil
}

// arrive moves the true state of all sources on to the present epoch.
func (w *Poisson) arrive() {
	n := w.view.Epoch
	for i := range w.state {
		l := &w.laws[w.lawAt(i, n)]
		early, late := w.sums(i, n, l)
		if !w.limit[i] {
			w.state[i] = l.factor*w.state[i] + (early + late)
		} else {
			w.state[i] = w.window(i, n, early, late)
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

// window books the sums of epoch n of a source with a window and returns its
// state. It adds up positive terms afresh, so that nothing of a dropped item
// stays behind as a rounding error.
func (w *Poisson) window(i, n int, early, late float64) float64 {
	m := w.whole[i]
	ring := w.ring[w.at[i] : w.at[i]+2*(m+1)]
	p := n % (m + 1)
	ring[2*p], ring[2*p+1] = early, late
	x, weight := 0.0, 1.0
	k := w.lawAt(i, n)
	since := w.view.Last[i]
	for t := n; t > since && n-t <= m; t-- {
		for w.laws[k].from > t {
			k--
		}
		if n-t < m {
			x += weight * (ring[2*p] + ring[2*p+1])
		} else {
			x += weight * ring[2*p+1]
		}
		weight *= w.laws[k].factor
		if p--; p < 0 {
			p = m
		}
	}
	return x
}

// gather returns the interest that waits at source i, drawn from the present
// epoch back to the last crawl, the window, or until the rest is negligible.
func (w *Poisson) gather(i int) float64 {
	n := w.view.Epoch
	x, weight := 0.0, 1.0
	k := w.lawAt(i, n)
	for t := n; t > w.view.Last[i] && weight >= negligible; t-- {
		back := n - t
		if w.limit[i] && back >= w.whole[i] && (back > w.whole[i] || w.late[i] == 0) {
			break
		}
		for w.laws[k].from > t {
			k--
		}
		early, late := w.sums(i, t, &w.laws[k])
		if w.limit[i] && back == w.whole[i] {
			early = 0 // of this epoch only the last part is within the window
		}
		x += weight * (early + late)
		weight *= w.laws[k].factor
	}
	return x
}

// sums draws the interest, at the end of epoch t, of the items that source i
// published in it: in the last part of the epoch, as long as the fractional
// part of the window, and before.
func (w *Poisson) sums(i, t int, l *law) (early, late float64) {
	s := &l.source
	if s.Rate == 0 || s.Interest == 0 {
		return 0, 0
	}
	w.rng.Reset(w.seed, stream.World, uint64(i), uint64(t))
	scale := 1.0
	if w.opt.Marks == MarksPerEpoch {
		scale = w.rng.ExpFloat64()
	}
	f := w.late[i]
	if l.bulk {
		early = scale * w.part(l, l.early, 1-f) * math.Exp(-s.Decay*f)
		return early, scale * w.part(l, l.late, f)
	}
	xi := scale * s.Interest
	gap, c, cut := 1/s.Rate, s.Decay, 1-f
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

// part draws the interest, at the end of d epochs, of the items of those d
// epochs.
func (w *Poisson) part(l *law, mode sumMode, d float64) float64 {
	s := &l.source
	switch {
	case d == 0:
		return 0
	case mode == byGamma:
		return drawGammaSum(w.rng, s.Rate, s.Decay, s.Interest, d)
	case mode == byCumulants:
		return l.drawCumulants(w.rng, d, w.opt.Marks, w.opt.Sigma)
	}
	var x float64
	gap := 1 / s.Rate
	for v := w.rng.ExpFloat64() * gap; v < d; v += w.rng.ExpFloat64() * gap {
		x += w.item(s.Decay * (v - d))
	}
	return s.Interest * x
}

// item returns what is left of an item after decay by e^y, with a draw of its
// mark, in units of ξ̄.
func (w *Poisson) item(y float64) float64 {
	switch w.marks {
	case drawnExponential:
		return math.Exp(y) * w.rng.ExpFloat64()
	case drawnLogNormal:
		s := w.opt.Sigma
		return math.Exp(y + s*(w.rng.NormFloat64()-s/2))
	}
	return math.Exp(y)
}

// gatherItems appends the items that wait at source i, oldest first, to
// w.items and returns their interest.
func (w *Poisson) gatherItems(i int) float64 {
	n := w.view.Epoch
	// Epochs are drawn backwards, as in gather, for their weights.
	x, weight := 0.0, 1.0
	k := w.lawAt(i, n)
	start := len(w.items)
	for t := n; t > w.view.Last[i] && weight >= negligible; t-- {
		back := n - t
		if w.limit[i] && back >= w.whole[i] && (back > w.whole[i] || w.late[i] == 0) {
			break
		}
		for w.laws[k].from > t {
			k--
		}
		cut := 0.0
		if w.limit[i] && back == w.whole[i] {
			cut = 1 - w.late[i]
		}
		w.drawItems(i, t, float64(back), weight, cut, &w.laws[k])
		weight *= w.laws[k].factor
	}
	got := w.items[start:]
	slices.Reverse(got)
	for _, it := range got {
		x += it.Interest
	}
	return x
}

// drawItems appends the items of source i and epoch t from the time cut in it,
// youngest first. The draws are those of sums.
func (w *Poisson) drawItems(i, t int, back, weight, cut float64, l *law) {
	s := &l.source
	if s.Rate == 0 {
		return
	}
	w.rng.Reset(w.seed, stream.World, uint64(i), uint64(t))
	xi := s.Interest * weight
	if w.opt.Marks == MarksPerEpoch {
		xi *= w.rng.ExpFloat64()
	}
	start := len(w.items)
	gap, c := 1/s.Rate, s.Decay
	for v := w.rng.ExpFloat64() * gap; v < 1; v += w.rng.ExpFloat64() * gap {
		x := xi * w.item(c*(v-1))
		if v >= cut {
			w.items = append(w.items, Item{Age: back + (1 - v), Interest: x})
		}
	}
	slices.Reverse(w.items[start:])
}
