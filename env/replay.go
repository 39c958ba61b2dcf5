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
	from, to = float64(rec.First), float64(rec.Last)
	split := from + cmp.Or(o.Split, 0.5)*(to-from)
	switch part {
	case PartMeasured:
		from = split
	case PartFitting:
		to = split
	}
	epochs = int((to - from) / o.Epoch.Seconds())
	if epochs < 1 || o.Epoch <= 0 {
		err = fmt.Errorf("%s: the %s part lasts %v and has no whole epoch of %v; "+
			"allowed is a shorter epoch or another split",
			rec.Path, part, time.Duration(to-from)*time.Second, o.Epoch)
	}
	return from, to, epochs, err
}

// Epochs returns the number of whole epochs of the part that o names.
func (rec *Recording) Epochs(o ReplayOptions) (int, error) {
	_, _, n, err := rec.bounds(o, cmp.Or(o.Part, PartMeasured))
	return n, err
}

// Arrival is what a source publishes in one epoch.
type Arrival struct {
	Epoch    int
	Interest float64 // of these items at the epoch's decision
}

// Arrivals returns what the part of a recording that o names brings: of each source the
// epochs in which it publishes. Interest decays as o says; with Shows the items from before the
// part arrive in epoch 0. Where a source Scrolls, or an item is too old to be shown, a crawl finds
// less than this.
func (rec *Recording) Arrivals(o ReplayOptions) ([][]Arrival, error) {
	from, _, epochs, err := rec.bounds(o, cmp.Or(o.Part, PartMeasured))
	if err != nil {
		return nil, err
	}
	all, length := make([][]Arrival, len(rec.Names)), o.Epoch.Seconds()
	for i := range all {
		of, n := rec.Of(i), 0
		for _, p := range of[max(0, before(of, from)-o.Shows):] {
			published := float64(p.At)
			n = max(n, int((published-from)/length)-1) // of the decision before, which rounding may have made late
			for decisionAt(from, n, length) <= published {
				n++
			}
			if n >= epochs {
				break
			}
			x := p.Utility * math.Exp(-o.Decay/3600*(decisionAt(from, n, length)-published))
			if k := len(all[i]) - 1; k >= 0 && all[i][k].Epoch == n {
				all[i][k].Interest += x
			} else {
				all[i] = append(all[i], Arrival{n, x})
			}
		}
	}
	return all, nil
}

// decisionAt returns the Unix time of decision n of a part that begins at b.
func decisionAt(b float64, n int, length float64) float64 { return b + float64(n+1)*length }

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
	for i := range rec.Names {
		of := rec.Of(i)
		for _, p := range of[before(of, from):before(of, to)] {
			count[i]++
			total[i] += p.Utility
		}
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
// Under the objectives delay and deadline of the instance items show their utility, and
// what a crawl brings is the sum of them.
//
// View's Mean follows the mean dynamics of the fitted instance.
type Replay struct {
	ledger
	opt    ReplayOptions
	begin  float64 // Unix time b
	length float64 // seconds
	rate   float64 // decay per second
	keep   float64 // seconds until an item is negligible
	epochs int
	wait   [][]Publication // of each source, from its last crawl to the end of the part
}

// NewReplay plays the part of a recording that o names. The instance is the
// recording's own, from [Recording.Fit] or with parameters from elsewhere for
// the same sources in the same order; its budget is the one that holds.
func NewReplay(rec *Recording, in Instance, o ReplayOptions) (*Replay, error) {
	from, _, epochs, err := rec.bounds(o, cmp.Or(o.Part, PartMeasured))
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
	w := &Replay{
		ledger: l, opt: o, begin: from, length: o.Epoch.Seconds(), rate: o.Decay / 3600,
		epochs: epochs, wait: make([][]Publication, len(in.Sources)),
	}
	if law := lookUpLaw(in.Objective.Law); law.initial {
		w.rate = 0
	}
	w.keep = -math.Log(negligible) / w.rate
	w.terms.Start = int64(math.Floor(from + w.length))
	w.terms.Length = w.length
	if o.State {
		w.view.State = make([]float64, len(in.Sources))
	}
	for i := range w.wait {
		of := rec.Of(i)
		w.wait[i] = of[max(0, before(of, from)-o.Shows):]
	}
	w.arrive()
	return w, nil
}

// Epochs returns how many epochs the world has.
func (w *Replay) Epochs() int { return w.epochs }

// now returns the Unix time of the present decision.
func (w *Replay) now() float64 { return decisionAt(w.begin, w.view.Epoch, w.length) }

// arrive brings the true state of all sources, if it is shown, to the present epoch.
func (w *Replay) arrive() {
	for i := range w.view.State {
		w.view.State[i] = w.gather(i, w.waiting(i), false)
	}
}

// waiting returns how many publications of source i wait.
func (w *Replay) waiting(i int) (n int) {
	now := w.now()
	for n < len(w.wait[i]) && float64(w.wait[i][n].At) < now {
		n++
	}
	return n
}

// gather returns the interest that source i shows of the first n publications that
// wait; with items they are appended to w.items, oldest first.
func (w *Replay) gather(i, n int, items bool) (interest float64) {
	now, shown := w.now(), w.wait[i][:n]
	if w.opt.Scrolls {
		shown = shown[max(0, n-w.opt.Shows):]
	}
	for _, p := range shown {
		age := now - float64(p.At)
		if age > w.keep && float64(p.At) >= w.begin {
			continue
		}
		x := p.Utility * math.Exp(-w.rate*age)
		interest += x
		if items {
			w.items = append(w.items, Item{Age: age / w.length, Interest: x})
		}
	}
	return interest
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
		n, start := w.waiting(i), len(w.items)
		c := Crawled{
			Source:    i,
			Age:       w.view.Age(i),
			Interest:  w.gather(i, n, w.opt.Items),
			Truncated: w.opt.Scrolls && n >= w.opt.Shows,
		}
		if w.opt.Items {
			c.Items = slices.Clip(w.items[start:])
		}
		w.wait[i] = w.wait[i][n:]
		w.crawled = append(w.crawled, c)
	}
	w.advance(crawl)
	w.arrive()
	return w.crawled, nil
}
