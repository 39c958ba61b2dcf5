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

	// Sums keeps what was drawn for other worlds of this instance, seed and marks; nil
	// keeps nothing. It changes nothing that the world brings.
	Sums EpochSums
}

// EpochSums keeps sums that worlds of one instance, seed and marks share: the interest,
// at the end of an epoch, of what a source published in it. A run is of SumsRun epochs,
// from the epoch SumsRun times its number on.
type EpochSums interface {
	// Lookup returns the sums of a run of source i, nil where they are not kept.
	Lookup(i, run int) []float64
	// Keep keeps a copy of them.
	Keep(i, run int, sums []float64)
	// Runs returns how many runs from the first on may be kept.
	Runs() int
}

// SumsRun is how many epochs in a row an [EpochSums] keeps at once.
const SumsRun = 16

// maxRate is the greatest rate, in items per epoch: each item is drawn.
const maxRate = 10_000

// Poisson is the world in which items arrive at each source as a Poisson
// process, one by one or in batches. The interest of an item of age a is its
// mark ξ times f(a), by the law of its source; once older than the source's
// window M it is dropped, for any real M. What a source publishes before a
// change of its parameters keeps those that held then.
//
// The items that source i publishes in epoch t, the time between the decisions
// t−1 and t, are a function of the seed, i, t and its parameters then: all policies
// that are compared under one seed see the same world, whatever they crawl. They are
// drawn by blocks, each from a stream of its own: an epoch, or, of sources that publish
// little, as many epochs as some eight arrivals take, counted from the last change.
//
// Crawls fail by chance, and where a host is crawled more often in an epoch than it has room
// for ([Source], [Instance]); which crawl of a source and epoch fails by chance follows from
// the seed.
//
// Harvests are drawn when they are crawled, and with State at every epoch. Where the law
// of a source is exponential and it publishes much, what a crawl brings follows from the
// sums of its epochs, x ← αx + U, which worlds of a seed may share. Where the law is
// another, all that waits is drawn again at each look.
type Poisson struct {
	ledger
	opt      PoissonOptions
	arrivals uint64    // key of the streams of items, below it source and first epoch of a block
	failures uint64    // key of the crawls that fail, below it source and epoch
	came     []int     // of the sources that are crawled, those whose crawl does not fail
	asked    []int     // crawls of each host at this epoch, where their number is limited
	marks    uint64    // key of the marks that are drawn per epoch, below it source and epoch
	reach    []float64 // age from which on no item of the source counts, epochs
	state    []float64
	rings    [][]epochSum     // of each source, in a ring of the epochs within its window
	fresh    [SumsRun]float64 // of a run that is drawn
}

// What a world draws.
const (
	drawItems    uint64 = iota // when they arrive, and marks per item
	drawMarks                  // marks per epoch
	drawFailures               // crawls that fail
)

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
	world := stream.Key(stream.Mix(seed), stream.World)
	w := &Poisson{
		ledger: l, opt: o, reach: make([]float64, n),
		arrivals: stream.Key(world, drawItems), marks: stream.Key(world, drawMarks),
		failures: stream.Key(world, drawFailures), came: make([]int, 0, n),
	}
	if hosts := l.terms.Hosts; hosts != nil {
		w.asked = make([]int, slices.Max(hosts)+1)
		w.view.Limits = &Limits{
			Budget: in.Budget, NotBefore: make([]int, n), Group: hosts, PerGroup: in.PerHost,
		}
	}
	for _, phase := range w.phases {
		for i, s := range phase.Instance.Sources {
			if s.Rate > maxRate {
				return nil, fmt.Errorf("instance %.60q, source %d (%.60q): "+
					"rate is %v; allowed in world poisson are at most %d items per epoch",
					in.ID, i+1, s.Name, s.Rate, maxRate)
			}
			w.reach[i] = math.Max(w.reach[i], math.Min(s.Window, s.horizon()))
		}
	}
	if o.NoMean {
		w.view.Mean = nil
	}
	if o.State {
		w.state, w.rings = make([]float64, n), make([][]epochSum, n)
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
	crawl = w.succeed(crawl)
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

// Owed implements World.
func (w *Poisson) Owed() float64 {
	return w.owed(func(i, p int) float64 { return w.gatherOf(i, p, w.oldest(i), false) })
}

// succeed returns the crawls that do not fail, in the order in which they are made: a host
// answers so many at an epoch, and of those each fails with the chance of its source.
func (w *Poisson) succeed(crawl []int) []int {
	now, hosts := w.view.Epoch, w.terms.Hosts
	sources := w.phases[w.phase(now)].Instance.Sources
	clear(w.asked)
	w.came, w.view.Failed = w.came[:0], w.view.Failed[:0]
	for _, i := range crawl {
		if hosts != nil && hosts[i] > 0 {
			if w.asked[hosts[i]]++; w.asked[hosts[i]] > w.terms.PerHost {
				w.view.Failed = append(w.view.Failed, i)
				continue
			}
		}
		if fails := sources[i].Fails; fails > 0 {
			chance := stream.NewCounter(stream.Key(w.failures, uint64(i), uint64(now)))
			if chance.Float64() <= fails {
				w.view.Failed = append(w.view.Failed, i)
				continue
			}
		}
		w.came = append(w.came, i)
	}
	return w.came
}

// DropItems implements [ItemKeeper].
func (w *Poisson) DropItems() { w.opt.Items = false }

// arrive moves the true state of all sources, if it is shown, on to the present epoch.
func (w *Poisson) arrive() {
	for i := range w.state {
		now := w.view.Epoch
		p := w.phase(now)
		s := &w.phases[p].Instance.Sources[i]
		switch {
		case !s.Exponential() || len(w.phases) > 1:
			w.state[i] = w.gather(i, false)
		case s.Window > w.reach[i]+1: // X ← αX + U
			w.state[i] = w.carry(w.state[i], i, p, now, now)
		default:
			w.state[i] = w.windowed(i, p, s)
		}
	}
}

// windowed returns the interest that waits at source i, of the exponential law with a
// window, from the sums of its epochs: a twentieth of the time of drawing all again.
func (w *Poisson) windowed(i, p int, s *Source) (interest float64) {
	now, n := w.view.Epoch, int(s.Window)+1 // epochs at least in part within the window
	if w.rings[i] == nil {
		w.rings[i] = make([]epochSum, n)
	}
	w.rings[i][now%n] = w.publish(i, p, now, now, now, false)
	alpha, weight := s.Factor(), 1.0
	for t := now; t > w.view.Last[i] && t > now-n; t-- {
		sum := w.rings[i][t%n]
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
	first := w.oldest(i)
	for p := w.phase(first); p < len(w.phases) && w.phases[p].From <= w.view.Epoch; p++ {
		interest += w.gatherOf(i, p, first, show)
	}
	return interest
}

// oldest returns the first epoch of which something may wait at source i.
func (w *Poisson) oldest(i int) int {
	first := w.view.Last[i] + 1
	if age := float64(w.view.Epoch - first); age > w.reach[i] {
		first = w.view.Epoch - int(w.reach[i])
	}
	return first
}

// gatherOf is gather of what was published in a phase, from an epoch on.
func (w *Poisson) gatherOf(i, p, first int, show bool) float64 {
	now := w.view.Epoch
	last := now
	if p+1 < len(w.phases) {
		last = min(last, w.phases[p+1].From-1)
	}
	if first = max(first, w.phases[p].From); first > last {
		return 0
	}
	if s := &w.phases[p].Instance.Sources[i]; !show && s.Exponential() && (blockLength(s) == 1 || w.keeps(last)) {
		return w.gatherSums(i, p, first, last)
	}
	return w.publish(i, p, first, last, now, show).all
}

// gatherSums returns the interest that waits at source i, of the exponential law, of
// what it published from the epoch first to last, which are of phase p. It is that of
// the sums of the epochs that are within the window as a whole, and of the items of
// one that is so in part.
func (w *Poisson) gatherSums(i, p, first, last int) (interest float64) {
	s, now := &w.phases[p].Instance.Sources[i], w.view.Epoch
	var old float64
	if s.Window < float64(now-first+1) {
		// What was published in epoch t has ages from now − t to now − t + 1.
		whole := now + 1 - int(s.Window)
		if part := whole - 1; part <= last && s.Window > math.Floor(s.Window) {
			old = w.publish(i, p, part, part, now, false).all
		}
		first = whole
	}
	if first > last {
		return old
	}
	return old + w.carry(0, i, p, first, last)*math.Exp(-s.Decay*float64(now-last))
}

// carry returns the interest at the end of epoch last, of what was there before the
// epoch first and of what source i published from then on: x ← αx + U.
func (w *Poisson) carry(x float64, i, p, first, last int) float64 {
	alpha := w.phases[p].Instance.Sources[i].Factor()
	for t := first; t <= last; {
		run, end := t/SumsRun, min(last, t|(SumsRun-1))+1
		sums := w.fresh[:end-t]
		if w.keeps(t) {
			sums = w.runOfSums(i, run)[t-run*SumsRun : end-run*SumsRun]
		} else {
			w.drawSums(sums, i, t)
		}
		for _, u := range sums {
			x = alpha*x + u
		}
		t = end
	}
	return x
}

// keeps reports whether the sums of an epoch, and of those before it, are kept.
func (w *Poisson) keeps(epoch int) bool {
	return w.opt.Sums != nil && epoch/SumsRun < w.opt.Sums.Runs()
}

// runOfSums returns the sums of source i in a run of epochs that are kept. Those of epochs
// to come are drawn with the others.
func (w *Poisson) runOfSums(i, run int) []float64 {
	if sums := w.opt.Sums.Lookup(i, run); sums != nil {
		return sums
	}
	w.drawSums(w.fresh[:], i, run*SumsRun)
	w.opt.Sums.Keep(i, run, w.fresh[:])
	return w.fresh[:]
}

// drawSums draws the sums of source i, of the exponential law, in epochs in a row, from
// one on.
func (w *Poisson) drawSums(sums []float64, i, first int) {
	clear(sums)
	for t, end := first, first+len(sums); t < end; {
		p := w.phase(t)
		s, next := &w.phases[p].Instance.Sources[i], end
		if p+1 < len(w.phases) {
			next = min(next, w.phases[p+1].From)
		}
		if s.Rate > 0 {
			begin, length := w.block(s, p, t)
			next = min(next, begin+length)
			w.publishSums(sums[t-first:next-first], i, s, begin, t)
		}
		t = next
	}
}

// publishSums puts into the sums of epochs in a row, from one on, what source i, of the
// exponential law, publishes in them; they are of the block that begins with an epoch. The
// sum of an epoch decays from one arrival to the next, and from the last to its end:
//
//	U ← U e^(−c(v−v′)) + ξ
func (w *Poisson) publishSums(sums []float64, i int, s *Source, begin, first int) {
	d, from := w.arrivalsOf(i, s, begin), first-begin
	var sum, last float64 // of the epoch of the arrivals so far, and when the last ones came
	now := from           // that epoch
	for v := d.next(); v < float64(from+len(sums)); v = d.next() {
		f, xi := d.scale(v), 0.
		for range d.batch {
			xi += f * d.mark()
		}
		t := int(v)
		if t < from || float64(t+1)-v > s.Window {
			continue
		}
		if t > now {
			sums[now-from] = sum * math.Exp(-s.Decay*(float64(now+1)-last))
			now, sum = t, 0
		}
		sum *= math.Exp(-s.Decay * (v - last))
		sum += xi
		last = v
	}
	sums[now-from] = sum * math.Exp(-s.Decay*(float64(now+1)-last))
}

// Blocks are such that a source publishes some eight times in one, or a million epochs.
const (
	perBlock     = 8
	longestBlock = 1 << 20
)

// blockLength returns the epochs of the blocks by which what a source publishes is
// drawn, a power of two.
func blockLength(s *Source) int {
	arrivals := s.Rate / float64(max(1, s.Batch)) // per epoch
	if arrivals >= perBlock {
		return 1
	}
	_, exponent := math.Frexp(math.Min(perBlock/arrivals, longestBlock))
	return 1 << (exponent - 1)
}

// publish draws what source i published from the epoch first to last, which are of
// phase p, and returns what interest is left of it at the end of epoch now; with show the
// items are appended to w.items.
func (w *Poisson) publish(i, p, first, last, now int, show bool) (sum epochSum) {
	s := &w.phases[p].Instance.Sources[i]
	if s.Rate == 0 {
		return sum
	}
	for begin, length := w.block(s, p, first); begin <= last; begin += length {
		w.publishBlock(&sum, i, s, begin, now, float64(first-begin), float64(min(last-begin+1, length)), show)
	}
	return sum
}

// block returns the first epoch of the block of phase p in which an epoch lies, and its
// length.
func (w *Poisson) block(s *Source, p, epoch int) (begin, length int) {
	from, length := w.phases[p].From, blockLength(s)
	return from + (epoch-from)/length*length, length
}

// publishBlock adds what source i publishes in the block that begins with an epoch, from
// a time after that to another.
func (w *Poisson) publishBlock(sum *epochSum, i int, s *Source, begin, now int, from, to float64, show bool) {
	d := w.arrivalsOf(i, s, begin)
	law, exponential := s.law(), s.Exponential()
	k := law.k(s)
	old, part := float64(now-begin+1), s.Window-math.Floor(s.Window)
	for v := d.next(); v < to; v = d.next() {
		age, f := old-v, d.scale(v)
		if exponential { // most items of most worlds: no call
			f *= math.Exp(-s.Decay * age)
		} else {
			f *= law.value(s.Decay*age, k)
		}
		for range d.batch {
			mark := d.mark()
			x, initial := f*mark, d.xi*mark
			if v < from || age > s.Window {
				continue
			}
			sum.all += x
			if age < part {
				sum.last += x
			}
			if show {
				if law.initial {
					x = initial
				}
				w.items = append(w.items, Item{Age: age, Interest: x})
			}
		}
	}
}

// arrivals draws what source i publishes in a block, in the order of time.
type arrivals struct {
	w     *Poisson
	i     int
	s     *Source
	begin int // epoch with which the block begins
	batch int // items that arrive at once
	gap   float64
	r     stream.Counter

	v      float64 // when the last ones arrived, in epochs after the block began
	marked int     // the epoch of the block whose mark is xi
	xi     float64
}

func (w *Poisson) arrivalsOf(i int, s *Source, begin int) arrivals {
	batch := max(1, s.Batch)
	return arrivals{
		w: w, i: i, s: s, begin: begin, batch: batch, gap: float64(batch) / s.Rate,
		r:      stream.NewCounter(stream.Key(w.arrivals, uint64(i), uint64(begin))),
		marked: -1, xi: s.Interest,
	}
}

// next returns when the next items arrive.
func (d *arrivals) next() float64 {
	d.v += d.r.ExpFloat64() * d.gap
	return d.v
}

// scale returns the initial interest of the items that arrive at v, but for their own
// marks.
func (d *arrivals) scale(v float64) float64 {
	if d.w.opt.Marks == MarksPerEpoch && int(v) != d.marked {
		d.marked = int(v)
		d.xi = d.s.Interest * d.w.mark(d.i, d.begin+d.marked)
	}
	return d.xi
}

// mark draws the mark of an item of its own, and returns 1 where items have none.
func (d *arrivals) mark() float64 {
	if d.w.opt.Marks == MarksPerItem {
		return d.r.ExpFloat64()
	}
	return 1
}

// mark returns the one draw for all items of source i and an epoch.
func (w *Poisson) mark(i, epoch int) float64 {
	one := stream.NewCounter(stream.Key(w.marks, uint64(i), uint64(epoch)))
	return one.ExpFloat64()
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
