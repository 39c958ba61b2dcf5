package env

import "fmt"

// ledger is the part that all worlds share: the epoch, the crawls so far, the
// mean state, and the check of a step against the budget.
type ledger struct {
	terms   Terms
	overrun bool // let crawls over the budget pass
	view    Observed
	factor  []float64 // α
	gain    []float64 // u
	stamp   []int     // epoch+1 of the last Step that named the source
	crawled []Crawled
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
		factor:  make([]float64, n),
		gain:    make([]float64, n),
		stamp:   make([]int, n),
	}
	l.view.Last = make([]int, n)
	l.view.Mean = make([]float64, n)
	for i, s := range in.Sources {
		l.factor[i], l.gain[i] = s.Factor(), s.Gain()
		l.view.Last[i] = -1
		l.view.Mean[i] = l.gain[i]
	}
	return l, nil
}

// View implements World.
func (l *ledger) View() *Observed { return &l.view }

// Terms implements World.
func (l *ledger) Terms() Terms { return l.terms }

// check refuses a step that names a source wrongly or costs too much. It
// changes nothing that a later call could see.
func (l *ledger) check(crawl []int) error {
	var cost float64
	mark := l.view.Epoch + 1
	for k, i := range crawl {
		if i < 0 || i >= len(l.stamp) {
			l.unmark(crawl[:k])
			return fmt.Errorf("epoch %d: crawl of source %d; allowed are 0 to %d", l.view.Epoch, i, len(l.stamp)-1)
		}
		if l.stamp[i] == mark {
			l.unmark(crawl[:k])
			return fmt.Errorf("epoch %d: source %d is named twice", l.view.Epoch, i)
		}
		l.stamp[i] = mark
		cost += l.terms.Costs[i]
	}
	if !l.overrun && !Fits(cost, l.terms.Budget) {
		l.unmark(crawl)
		return fmt.Errorf("epoch %d: crawls cost %v; allowed is the budget, %v", l.view.Epoch, cost, l.terms.Budget)
	}
	return nil
}

func (l *ledger) unmark(crawl []int) {
	for _, i := range crawl {
		l.stamp[i] = 0
	}
}

// Fits reports whether crawls of that cost are within the budget. Sums of
// costs in another order differ in their last bits, which must not matter.
func Fits(cost, budget float64) bool { return cost <= budget*(1+1e-9) }

// advance books the crawls, moves the mean state on by (2)-(3) and begins the
// next epoch.
func (l *ledger) advance(crawl []int) {
	x := l.view.Mean
	for _, i := range crawl {
		l.view.Last[i] = l.view.Epoch
		x[i] = 0 // (3): 0 grows to u below
	}
	// (2): x ← αx + u
	alpha, u := l.factor[:len(x)], l.gain[:len(x)]
	for i := range x {
		x[i] = alpha[i]*x[i] + u[i]
	}
	l.view.Epoch++
}

// handOut gives the crawls of an epoch their items: those of crawl k end at
// ends[k]. Without ends there are none.
func (l *ledger) handOut(items []Item, ends []int) {
	from := 0
	for k, end := range ends {
		l.crawled[k].Items = items[from:end:end]
		from = end
	}
}
