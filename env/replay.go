package env

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Part names a part of a recording.
type Part string

// The parts of a recording.
const (
	PartMeasured Part = "measured" // after the split
	PartFitting  Part = "fitting"  // before the split
	PartWhole    Part = "whole"
)

// ReplayOptions are the settings of a [Replay]. Epoch, Decay and Budget have no
// default.
type ReplayOptions struct {
	Epoch  time.Duration // length of an epoch
	Decay  float64       // c, 1/hour
	Budget float64       // of the fitted instance, whose crawls cost 1

	// Split is the share of the recording's time span that is the fitting
	// part; 0 means one half.
	Split float64
	Part  Part // part that is played; empty means PartMeasured

	// Shows is how many items each source shows when the part begins, though they
	// were published before: the last ones, which wait for the first crawl. If
	// Scrolls, it never shows more: what is older is missed.
	Shows   int
	Scrolls bool

	Items   bool // crawls bring back their items
	State   bool // View shows the true state of all sources
	Overrun bool // let crawls over the budget pass
}

// bounds returns the Unix times between which a part lies, and its number of
// whole epochs.
func (rec *Recording) bounds(o ReplayOptions, part Part) (from, to float64, epochs int, err error) {
	if o.Split == 0 {
		o.Split = 0.5
	}
	first, last := float64(rec.First), float64(rec.Last)
	span := last - first
	switch {
	case o.Epoch <= 0:
		err = fmt.Errorf("epoch is %v; allowed is above 0", o.Epoch)
	case !(o.Decay > 0) || math.IsInf(o.Decay, 0):
		err = fmt.Errorf("decay is %v; allowed is a finite rate per hour above 0", o.Decay)
	case !(o.Split > 0 && o.Split < 1):
		err = fmt.Errorf("split is %v; allowed is above 0 and below 1", o.Split)
	case o.Shows < 0 || o.Scrolls && o.Shows == 0:
		err = fmt.Errorf("a source shows %d items; allowed is 1 or more", o.Shows)
	case span == 0:
		err = fmt.Errorf("%s: all publications are at one time, %d; a recording needs a span of time", rec.Path, rec.First)
	case o.Epoch.Seconds() > span:
		err = fmt.Errorf("%s: epoch is %v, longer than the recording; allowed is at most %v", rec.Path, o.Epoch, seconds(span))
	}
	if err != nil {
		return 0, 0, 0, err
	}
	split := first + o.Split*span
	switch part {
	case PartMeasured, "":
		part, from, to = PartMeasured, split, last
	case PartFitting:
		from, to = first, split
	case PartWhole:
		from, to = first, last
	default:
		return 0, 0, 0, fmt.Errorf("unknown part %q; allowed are %s, %s and %s", part, PartMeasured, PartFitting, PartWhole)
	}
	epochs = int((to - from) / o.Epoch.Seconds())
	if epochs < 1 {
		return 0, 0, 0, fmt.Errorf("%s: the %s part lasts %v and has no whole epoch of %v; allowed is a shorter epoch or another split", rec.Path, part, seconds(to-from), o.Epoch)
	}
	return from, to, epochs, nil
}

func seconds(s float64) time.Duration { return time.Duration(s) * time.Second }

// Epochs returns the number of whole epochs of the part that o names.
func (rec *Recording) Epochs(o ReplayOptions) (int, error) {
	_, _, n, err := rec.bounds(o, o.Part)
	return n, err
}

// Fit reads the fitting part and returns the sources that it suggests: the
// rate is the number of publications per epoch, the interest their mean
// utility, the decay the given one per epoch. A source that publishes nothing
// there has rate 0 and interest 0. Crawls cost 1 and there is no window.
func (rec *Recording) Fit(o ReplayOptions) (Instance, error) {
	from, to, _, err := rec.bounds(o, PartFitting)
	if err != nil {
		return Instance{}, err
	}
	count, total := make([]float64, len(rec.Names)), make([]float64, len(rec.Names))
	for _, p := range rec.published() {
		if float64(p.at) >= to {
			break
		}
		count[p.source]++
		total[p.source] += p.utility
	}
	base := filepath.Base(rec.Path)
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".csv")
	in := Instance{ID: base, Budget: o.Budget, Sources: make([]Source, len(rec.Names))}
	epochs := (to - from) / o.Epoch.Seconds()
	for i, name := range rec.Names {
		var mean float64
		if count[i] > 0 {
			mean = total[i] / count[i]
		}
		in.Sources[i] = NewSource(name, count[i]/epochs, o.Decay*o.Epoch.Hours(), mean)
	}
	return in, in.Validate()
}

// Replay is the world of a recording: every publication is an item whose
// interest is its utility at the time of publication and decays from there.
// There is no window, but for what a source no longer shows.
//
// The part that is played begins at time b with nothing waiting anywhere, or with
// the last items before it, as a feed shows them.
// Decision n = 0, 1, … is taken at b + (n+1) epochs and finds what was
// published since b or the last crawl and before the decision. The part ends
// with its last whole epoch, where Step returns io.EOF.
//
// An item whose present interest is below 2⁻⁶⁰ of its utility is not shown.
//
// View's Mean follows the mean dynamics of the fitted instance.
type Replay struct {
	ledger
	opt    ReplayOptions
	ahead  []publication // not yet arrived
	begin  float64       // Unix time b
	length float64       // seconds
	rate   float64       // decay per second
	factor float64       // α
	epochs int
	state  []float64
	wait   [][]publication // of each source, from its last crawl to the end of the recording
	shown  []int           // how many of them wait by now
	keep   float64         // seconds until an item is negligible
}

var _ World = (*Replay)(nil)

// NewReplay plays the part of a recording that o names. The instance is the
// recording's own, from [Recording.Fit] or with parameters from elsewhere for
// the same sources in the same order; its budget is the one that holds.
func NewReplay(rec *Recording, in Instance, o ReplayOptions) (*Replay, error) {
	from, _, epochs, err := rec.bounds(o, o.Part)
	if err != nil {
		return nil, err
	}
	l, err := newLedger(in, o.Overrun)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(l.terms.Names, rec.Names) {
		panic("env: replay of a recording with the sources of another")
	}
	n := len(in.Sources)
	first, _ := slices.BinarySearchFunc(rec.all[:rec.to], from, func(p publication, from float64) int { return cmp.Compare(float64(p.at), from) })
	w := &Replay{
		ledger: l, opt: o, ahead: rec.all[first:rec.to],
		begin: from, length: o.Epoch.Seconds(), rate: o.Decay / 3600,
		epochs: epochs, state: make([]float64, n), wait: make([][]publication, n), shown: make([]int, n),
	}
	w.factor = math.Exp(-w.rate * w.length)
	w.keep = -math.Log(negligible) / w.rate
	w.terms.Start = int64(math.Floor(from + w.length))
	w.terms.Length = w.length
	if o.State {
		w.view.State = w.state
	}
	shown := lastOfEach(rec.all[:first], o.Shows, n)
	for _, p := range shown {
		w.state[p.source] += p.utility * math.Exp(-w.rate*(from-float64(p.at)))
		w.shown[p.source]++
	}
	for _, p := range append(shown, w.ahead...) {
		w.wait[p.source] = append(w.wait[p.source], p)
	}
	w.arrive()
	return w, nil
}

// lastOfEach returns the last so many publications of each of n sources.
func lastOfEach(all []publication, most, n int) (last []publication) {
	count := make([]int, n)
	for k := len(all) - 1; k >= 0 && most > 0; k-- {
		if p := all[k]; count[p.source] < most {
			count[p.source]++
			last = append(last, p)
		}
	}
	slices.Reverse(last)
	return last
}

// Epochs returns how many epochs the world has.
func (w *Replay) Epochs() int { return w.epochs }

// now returns the Unix time of the present decision.
func (w *Replay) now() float64 { return w.begin + float64(w.view.Epoch+1)*w.length }

// arrive lets the epoch before the present decision pass.
func (w *Replay) arrive() {
	for i := range w.state {
		w.state[i] *= w.factor
	}
	if w.view.Epoch >= w.epochs {
		return // the part is over
	}
	now := w.now()
	for len(w.ahead) > 0 && float64(w.ahead[0].at) < now {
		p := w.ahead[0]
		w.state[p.source] += p.utility * math.Exp(-w.rate*(now-float64(p.at)))
		w.ahead = w.ahead[1:]
		w.shown[p.source]++
		w.scroll(p.source, now)
	}
}

// scroll drops what a source no longer shows.
func (w *Replay) scroll(i int32, now float64) {
	over := w.shown[i] - w.opt.Shows
	if !w.opt.Scrolls || over <= 0 {
		return
	}
	w.wait[i], w.shown[i], w.state[i] = w.wait[i][over:], w.opt.Shows, 0
	for _, p := range w.wait[i][:w.shown[i]] {
		w.state[i] += p.utility * math.Exp(-w.rate*(now-float64(p.at)))
	}
}

// Step implements World. After the last whole epoch it returns io.EOF.
func (w *Replay) Step(crawl []int) ([]Crawled, error) {
	if w.view.Epoch >= w.epochs {
		return nil, io.EOF
	}
	if err := w.check(crawl); err != nil {
		return nil, err
	}
	for _, i := range crawl {
		c := Crawled{Source: i, Age: w.view.Age(i), Interest: w.state[i], Truncated: w.opt.Scrolls && w.shown[i] == w.opt.Shows}
		c.Items, w.state[i] = w.take(i), 0
		w.crawled = append(w.crawled, c)
	}
	w.advance(crawl)
	w.arrive()
	return w.crawled, nil
}

// take takes what waits at source i, and returns it where crawls bring back items.
func (w *Replay) take(i int) []Item {
	now, start, wait := w.now(), len(w.items), w.wait[i][:w.shown[i]]
	w.wait[i], w.shown[i] = w.wait[i][len(wait):], 0
	if !w.opt.Items {
		return nil
	}
	for _, p := range wait {
		if age := now - float64(p.at); age <= w.keep || float64(p.at) < w.begin {
			w.items = append(w.items, Item{Age: age / w.length, Interest: p.utility * math.Exp(-w.rate*age)})
		}
	}
	return slices.Clip(w.items[start:])
}
