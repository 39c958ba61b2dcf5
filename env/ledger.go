package env

import (
	"fmt"
	"math"
)

// ledger is the part that all worlds share: the epoch, the crawls so far, the
// mean state, and the check of a step against the budget.
type ledger struct {
	terms   Terms
	overrun bool // let crawls over the budget pass
	pages   bool // it is copies that lose their worth, and not items
	phases  []Phase
	view    Observed
	factor  []float64 // α
	gain    []float64 // u
	other   []int     // sources whose mean state is not αx + u: other laws, and changes
	tries   int       // calls of check
	named   []int     // the last of them that named the source
	crawled []Crawled
	items   []Item // of the crawls, where they bring back items
}

// newLedger starts at epoch 0 with x = u everywhere, as if all sources had
// been crawled one epoch before.
func newLedger(in Instance, overrun bool) (ledger, error) {
	if err := in.Validate(); err != nil {
		return ledger{}, err
	}
	n := len(in.Sources)
	l := ledger{
		terms:   in.Terms(),
		overrun: overrun,
		phases:  in.Phases(),
		factor:  make([]float64, n),
		gain:    make([]float64, n),
		named:   make([]int, n),
	}
	l.view.Last = make([]int, n)
	l.view.Mean = make([]float64, n)
	for i, s := range in.Sources {
		l.factor[i], l.gain[i] = s.Factor(), s.Gain()
		l.view.Last[i] = -1
		l.view.Mean[i] = l.gain[i]
		if !s.Exponential() || len(l.phases) > 1 {
			l.other = append(l.other, i)
		}
	}
	return l, nil
}

// View implements World.
func (l *ledger) View() *Observed { return &l.view }

// Terms implements World.
func (l *ledger) Terms() Terms { return l.terms }

// Owed implements World where waiting costs nothing.
func (l *ledger) Owed() float64 { return 0 }

// owed returns the sum of what waits of the phases of sources in which waiting costs.
func (l *ledger) owed(waits func(i, p int) float64) (sum float64) {
	for p, phase := range l.phases {
		for i, s := range phase.Instance.Sources {
			if s.Law == LawDelay {
				sum += waits(i, p)
			}
		}
	}
	return sum
}

// check refuses a step that names a source wrongly or costs too much, and gets
// ready for one that does not.
func (l *ledger) check(crawl []int) error {
	var cost float64
	l.tries++
	for _, i := range crawl {
		if i < 0 || i >= len(l.named) {
			return fmt.Errorf("epoch %d: crawl of source %d; allowed are 0 to %d", l.view.Epoch, i, len(l.named)-1)
		}
		if l.named[i] == l.tries {
			return fmt.Errorf("epoch %d: source %d is named twice", l.view.Epoch, i)
		}
		l.named[i] = l.tries
		cost += l.terms.Costs[i]
	}
	if !l.overrun && !Fits(cost, l.terms.Budget) {
		return fmt.Errorf("epoch %d: crawls cost %v; allowed is the budget, %v", l.view.Epoch, cost, l.terms.Budget)
	}
	l.crawled, l.items = l.crawled[:0], l.items[:0]
	return nil
}

// Fits reports whether crawls of that cost are within the budget. Sums of
// costs in another order differ in their last bits, which must not matter.
func Fits(cost, budget float64) bool { return cost <= budget*(1+1e-9) }

// advance books the crawls, moves the mean state on by (2)-(3) and begins the
// next epoch.
func (l *ledger) advance(crawl []int) {
	for _, i := range crawl {
		l.view.Last[i] = l.view.Epoch
	}
	l.view.Epoch++
	x := l.view.Mean
	if x == nil {
		return
	}
	for _, i := range crawl {
		x[i] = 0 // (3): 0 grows to u below
	}
	// (2): x ← αx + u
	alpha, u := l.factor[:len(x)], l.gain[:len(x)]
	for i := range x {
		x[i] = alpha[i]*x[i] + u[i]
	}
	for _, i := range l.other {
		if l.pages {
			x[i] = l.fresh(i)
		} else {
			x[i] = l.mean(i)
		}
	}
}

// phase returns the number of the phase of an epoch.
func (l *ledger) phase(epoch int) int {
	p := len(l.phases) - 1
	for l.phases[p].From > epoch {
		p--
	}
	return p
}

// mean returns the mean state of source i: of each phase, newest first, what was
// published in it.
func (l *ledger) mean(i int) (x float64) {
	for p := len(l.phases) - 1; p >= 0; p-- {
		x += l.meanOf(i, p)
	}
	return x
}

// meanOf returns the part of the mean state of source i that was published in a phase,
// x(older) − x(newer) for the ages between which that lies.
func (l *ledger) meanOf(i, p int) float64 {
	begin, newer := max(l.phases[p].From, l.view.Last[i]+1), 0 // its first epoch of which something waits
	if p+1 < len(l.phases) {
		newer = max(0, l.view.Epoch-l.phases[p+1].From+1)
	}
	older := l.view.Epoch - begin + 1
	if older <= newer {
		return 0
	}
	s := &l.phases[p].Instance.Sources[i]
	return s.MeanState(older) - s.MeanState(newer)
}

// fresh returns the mean state of page i: of each phase, oldest first, how long its copy was
// fresh in it. At its begin the copy still is with the probability chance.
func (l *ledger) fresh(i int) (x float64) {
	begin, chance := l.view.Last[i]+1, 1.
	for p := l.phase(begin); begin <= l.view.Epoch; p++ {
		end := l.view.Epoch + 1
		if p+1 < len(l.phases) {
			end = min(end, l.phases[p+1].From)
		}
		s := &l.phases[p].Instance.Sources[i]
		x += chance * s.MeanState(end-begin)
		chance *= math.Exp(-s.Decay * float64(end-begin))
		begin = end
	}
	return x
}

// Mean is the world of the papers' mean dynamics (2)-(3): what waits at a
// source is exactly its mean, x ← αx + u while it is not crawled and x ← u
// after a crawl, which earns x.
type Mean struct{ ledger }

// NewMean returns the mean dynamics of an instance, at x = u, whose crawls always succeed.
// With overrun, crawls over the budget pass; otherwise Step refuses them.
func NewMean(in Instance, overrun bool) (*Mean, error) {
	if err := in.alwaysSucceeds("mean"); err != nil {
		return nil, err
	}
	l, err := newLedger(in, overrun)
	if err != nil {
		return nil, err
	}
	l.pages = in.Objective.Law == LawFreshness
	w := &Mean{l}
	w.view.State = w.view.Mean // the mean is the state
	return w, nil
}

// Owed implements World.
func (w *Mean) Owed() float64 { return w.owed(w.meanOf) }

// Step implements World. The crawls bring back interest but no items.
func (w *Mean) Step(crawl []int) ([]Crawled, error) {
	if err := w.check(crawl); err != nil {
		return nil, err
	}
	for _, i := range crawl {
		w.crawled = append(w.crawled, Crawled{Source: i, Age: w.view.Age(i), Interest: w.view.Mean[i]})
	}
	w.advance(crawl)
	return w.crawled, nil
}
