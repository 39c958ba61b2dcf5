package env

// Mean is the world of the papers' mean dynamics (2)-(3): what waits at a
// source is exactly its mean, x ← αx + u while it is not crawled and x ← u
// after a crawl, which earns x.
type Mean struct{ ledger }

// NewMean returns the mean dynamics of an instance, at x = u. With overrun,
// crawls over the budget pass; otherwise Step refuses them.
func NewMean(in Instance, overrun bool) (*Mean, error) {
	l, err := newLedger(in, overrun)
	if err != nil {
		return nil, err
	}
	w := &Mean{l}
	w.view.State = w.view.Mean // the mean is the state
	return w, nil
}

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
