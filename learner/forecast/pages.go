package forecast

import (
	"slices"

	"ephemera/env"
	"ephemera/learner/estimate"
)

// Under the objective freshness a crawl shows one bit, whether the page has changed, and what
// is estimated is how often it changes. What it is worth that the copy is fresh is given. The
// index is the papers', with Δ for c and μ for λξ̄ (docs/freshness.md).

var _ env.ItemLearner = (*Learner)(nil)

// beginPages begins without any knowledge of the pages. There is no optimism: the index of a page
// that has waited goes as 1/Δ, and one that is thought to change too often starves.
func (l *Learner) beginPages() {
	n := len(l.terms.Costs)
	l.set.Optimism = 0
	l.terms.Importance = slices.Clone(l.terms.Importance)
	if l.terms.Importance == nil {
		l.terms.Importance = slices.Repeat([]float64{1}, n)
	}
	l.pages = estimate.NewPages(n, l.set.Horizon)
	l.pages.Expect(l.round)
}

// page returns page i as it is thought to be: with the changes of which no ping tells.
func (l *Learner) page(i int) env.Source {
	s := env.NewPage("", l.pages.Page(i).Unseen, l.terms.Importance[i])
	s.Cost = l.terms.Costs[i]
	return s
}

// ahead returns by how many epochs the pings since its last crawl make source i older.
func (l *Learner) ahead(i int) float64 {
	if l.pages == nil {
		return 0
	}
	return min(l.pages.Page(i).Ahead, never)
}

// open begins source i without any knowledge of it.
func (l *Learner) open(i int) {
	if l.pages == nil {
		l.est.Open(i)
		return
	}
	l.pages.Expect(l.round)
	l.pages.Open(i)
	if i == len(l.terms.Importance) {
		l.terms.Importance = append(l.terms.Importance, 1)
	}
	l.terms.Importance[i] = 1
}

// Restored takes up what was written to Source(i), in epochs that last as long as k of these. What is known of
// items goes with epochs of one length. A source that waited in line as a new one is looked at again, if it is
// none.
func (l *Learner) Restored(i int, k float64) {
	if l.pages != nil && k != 1 {
		l.pages.Rescale(i, k)
	}
	if l.Wake != nil && l.Wake[i] == unseen && l.crawled(i) {
		l.leaveLine(int32(i))
		l.present() // it may have been awake before it was removed
		l.wake(int32(i))
	}
}

func (l *Learner) crawled(i int) bool {
	if l.pages != nil {
		return l.pages.Crawled(i)
	}
	return l.est.Crawled(i)
}

func (l *Learner) updatePages(crawls []env.Crawled, next *env.Online) {
	for _, c := range crawls {
		l.pages.Add(c)
	}
	l.pages.Fit(next.Epoch)
}

// takePings takes in the pings of a view.
func (l *Learner) takePings(o *env.Online) {
	for _, i := range o.Pings {
		l.Ping(int(i))
	}
}

// SetImportance implements env.ItemLearner. The source is looked at again.
func (l *Learner) SetImportance(i int, importance float64) {
	if l.pages != nil {
		l.terms.Importance[i] = importance
		l.lookAgain(i)
	}
}

// Ping implements env.ItemLearner. The source is looked at again.
func (l *Learner) Ping(i int) {
	if l.pages != nil {
		l.pages.Ping(i)
		l.lookAgain(i)
	}
}

// EstimatePage implements env.ItemLearner.
func (l *Learner) EstimatePage(i int) (changes, unseen, ahead float64) {
	if l.pages == nil {
		return 0, 0, 0
	}
	p := l.pages.Page(i)
	return p.Changes, p.Unseen, p.Ahead
}
