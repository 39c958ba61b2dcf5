package env

import (
	"container/heap"
	"fmt"
	"math"

	"ephemera/env/stream"
)

// Pages is the world of pages, which change as a Poisson process at a rate Δ. A crawl makes
// the copy fresh, which stays so until the next change, and shows one bit: whether the page
// has changed since the crawl before. At first all copies are fresh. What a crawl brings is the
// importance times the epochs since the crawl before in which the copy was fresh, in the mean
//
//	H(s) = μ/Δ·(1 − e^(−Δs)),
//
// the mean state of the papers with Δ for c and μ for λξ̄.
//
// Of the changes of a page a share, its recall, sends a ping when they are made, and so do
// others that no change made, at the rate of false ones. They are in the view of the decision
// that follows them.
//
// When page i changes, and what pings it sends, is a function of the seed, i and its
// parameters alone: policies that are compared under a seed see the same pages.
type Pages struct {
	ledger
	key   uint64 // of all streams, below it page, kind and first epoch of a block
	pings pingHeap
}

// PagesOptions are the settings of a [Pages]. The zero value shows mean states and
// enforces the budget.
type PagesOptions struct {
	NoMean  bool // View shows no mean states
	Overrun bool // let crawls over the budget pass
}

// NewPages returns the world of an instance, all of whose sources are pages, see [NewPage].
// It refuses more than 10 000 changes or false pings of a page and epoch.
func NewPages(in Instance, seed uint64, o PagesOptions) (*Pages, error) {
	if err := in.alwaysSucceeds("pages"); err != nil {
		return nil, err
	}
	l, err := newLedger(in.Pages(), o.Overrun)
	if err != nil {
		return nil, err
	}
	for k, phase := range l.phases {
		for i, s := range phase.Instance.Sources {
			where := fmt.Sprintf("instance %.60q, source %d (%.60q)", in.ID, i+1, s.Name)
			if s.Law != LawFreshness {
				return nil, fmt.Errorf("%s: the law is %s; allowed in world pages is freshness, "+
					"that of a page with change and importance", where, s.law().name)
			}
			if !math.IsInf(s.Window, 1) || s.Batch > 1 {
				return nil, fmt.Errorf("%s: window is %v and batch %d; allowed in world pages are inf and 1, "+
					"as pages have no items", where, s.Window, max(1, s.Batch))
			}
			for _, rate := range []struct {
				name string
				is   float64
			}{{"change", s.Decay}, {"false", s.False}} {
				if rate.is > maxRate {
					return nil, fmt.Errorf("%s: %s is %v; allowed in world pages are at most %d per epoch",
						where, rate.name, rate.is, maxRate)
				}
			}
			if mu := l.phases[0].Instance.Sources[i].HarvestRate(0); s.HarvestRate(0) != mu {
				return nil, fmt.Errorf("%s: importance is %v from epoch %d on; allowed is %v, "+
					"as it is known beforehand and does not change", where, s.HarvestRate(0), l.phases[k].From, mu)
			}
		}
	}
	l.pages = true
	w := &Pages{ledger: l, key: stream.Key(stream.Mix(seed), stream.World)}
	if o.NoMean {
		w.view.Mean = nil
	}
	for i := range in.Sources {
		for _, kind := range []uint64{drawChanges, drawFalse} {
			e := w.events(i, kind, 0)
			w.pings.add(&e)
		}
	}
	w.show()
	return w, nil
}

// Pages returns the instance under the objective freshness, if it has no objective.
func (in Instance) Pages() Instance {
	if in.Objective.Law == "" {
		in.Objective = Objective{Law: LawFreshness}
	}
	return in
}

// Step implements World.
func (w *Pages) Step(crawl []int) ([]Crawled, error) {
	if err := w.check(crawl); err != nil {
		return nil, err
	}
	for _, i := range crawl {
		// The decision of epoch t is made at the time t + 1.
		from, now := float64(w.view.Last[i]+1), float64(w.view.Epoch+1)
		fresh, changed := now-from, false
		e := w.events(i, drawChanges, w.view.Last[i]+1)
		for at := e.next(); at < now; at = e.next() {
			if e.is && at >= from {
				fresh, changed = at-from, true
				break
			}
		}
		mu := w.phases[0].Instance.Sources[i].HarvestRate(0)
		w.crawled = append(w.crawled, Crawled{
			Source: i, Age: w.view.Age(i), Interest: mu * fresh, Changed: changed,
		})
	}
	w.advance(crawl)
	w.show()
	return w.crawled, nil
}

// show shows the pings of the last epoch.
func (w *Pages) show() {
	w.view.Pings = w.view.Pings[:0]
	for len(w.pings) > 0 && w.pings[0].at < float64(w.view.Epoch+1) {
		p := &w.pings[0]
		if p.events.is {
			w.view.Pings = append(w.view.Pings, int32(p.events.i))
		}
		if p.at = p.events.nextPing(); math.IsInf(p.at, 1) {
			heap.Pop(&w.pings)
		} else {
			heap.Fix(&w.pings, 0)
		}
	}
}

// What is drawn of a page.
const (
	drawChanges uint64 = iota // when it changes, and which changes send a ping
	drawFalse                 // when pings come that no change made
)

// events are changes of a page, or pings that no change made, in the order of time. They are
// drawn by blocks, each from a stream of its own, so that they can be begun at any time.
type events struct {
	w    *Pages
	i    int
	kind uint64

	phase, begin, end int     // of the block, epochs
	gap               float64 // mean between two events, epochs
	at                float64 // of the last one, or where the block begins
	is                bool    // at is that of an event
	pinged            bool    // it sent a ping
	recall            float64
	r                 stream.Counter
}

// events returns those of page i from the beginning of the block on in which an epoch lies.
func (w *Pages) events(i int, kind uint64, epoch int) events {
	e := events{w: w, i: i, kind: kind, phase: w.phase(epoch)}
	e.open(epoch)
	return e
}

// rate returns how many events there are per epoch in the phase.
func (e *events) rate() float64 {
	s := &e.w.phases[e.phase].Instance.Sources[e.i]
	if e.kind == drawFalse {
		return s.False
	}
	return s.Decay
}

// open begins the block of the phase in which an epoch lies.
func (e *events) open(epoch int) {
	first, rate := e.w.phases[e.phase].From, e.rate()
	length := blockLength(&Source{Rate: rate})
	e.begin = first + (epoch-first)/length*length
	e.end = e.begin + length
	if e.phase+1 < len(e.w.phases) {
		e.end = min(e.end, e.w.phases[e.phase+1].From)
	}
	e.at, e.gap, e.is = float64(e.begin), 1/rate, false
	e.recall = e.w.phases[e.phase].Instance.Sources[e.i].Recall
	e.r = stream.NewCounter(stream.Key(e.w.key, uint64(e.i), e.kind, uint64(e.begin)))
}

// next goes on to the next event of the block, or, where it has no other, to the begin of the
// next block, and returns that time; +Inf where there is nothing more. So a call takes no longer
// where events are rare.
func (e *events) next() float64 {
	e.at += e.r.ExpFloat64() * e.gap
	switch last := e.phase+1 == len(e.w.phases); {
	case e.at < float64(e.end):
		e.is, e.pinged = true, e.kind == drawFalse || e.r.Float64() <= e.recall
	case e.rate() == 0 && last:
		e.at, e.is = math.Inf(1), false
	case last || e.rate() > 0 && e.end < e.w.phases[e.phase+1].From:
		e.open(e.end)
	default:
		e.phase++
		e.open(e.w.phases[e.phase].From)
	}
	return e.at
}

// nextPing goes on to the next event that sends a ping, or to the begin of the next block, and
// returns that time; +Inf where no ping comes any more.
func (e *events) nextPing() float64 {
	for {
		last := e.phase+1 == len(e.w.phases)
		if last && e.kind == drawChanges && e.w.phases[e.phase].Instance.Sources[e.i].Recall == 0 {
			return math.Inf(1)
		}
		if at := e.next(); e.pinged || !e.is {
			return at
		}
	}
}

// pingHeap is a heap of the next pings and begins of blocks in which they are looked for, the
// first at its root.
type pingHeap []ping

type ping struct {
	at     float64
	events *events
}

// add adds pings to come.
func (h *pingHeap) add(e *events) {
	if at := e.nextPing(); !math.IsInf(at, 1) {
		heap.Push(h, ping{at, e})
	}
}

// The methods of heap.Interface.
func (h pingHeap) Len() int           { return len(h) }
func (h pingHeap) Less(a, b int) bool { return h[a].at < h[b].at }
func (h pingHeap) Swap(a, b int)      { h[a], h[b] = h[b], h[a] }
func (h *pingHeap) Push(x any)        { *h = append(*h, x.(ping)) }
func (h *pingHeap) Pop() (last any) {
	n := len(*h) - 1
	last, *h = (*h)[n], (*h)[:n]
	return last
}

// OfPages returns the agent in a world of pages: to whoever learns a crawl is worth 1 where the
// page has changed and 0 where it has not, and for how long the copy was fresh is not shown.
func (a Agent) OfPages() Agent {
	if a.update == nil {
		return a
	}
	b, shown := a, []Crawled(nil)
	b.update = func(crawls []Crawled, next *Observed) {
		shown = append(shown[:0], crawls...)
		for k := range shown {
			if shown[k].Interest = 0; shown[k].Changed {
				shown[k].Interest = 1
			}
		}
		a.update(shown, next)
	}
	return b
}
