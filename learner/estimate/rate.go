package estimate

import (
	"math"

	"ephemera/env"
)

// rate is what the number of items tells of λ.
type rate struct {
	Items, Epochs float64 // items found, and epochs in which they could be seen
	Log, Var      float64 // mode of ln λ and its variance, given all sources
}

// addRate takes in how many items a crawl has found, and the age of the oldest. The first that are
// found at all begin the law of λ.
func (e *Estimates) addRate(s *source, c *env.Crawled, items, oldest float64, epoch int, keep float64) {
	r := &s.Rate
	seen := min(float64(c.Age), s.lifetime(), s.window())
	s.Span += float64(c.Age)
	switch {
	case c.Truncated && items > 0 && oldest < float64(c.Age):
		// The crawl covers the span of its items, one of which ends it.
		seen, s.Shows = oldest, items
		items--
	case oldest > s.Span:
		// Items from before the first crawl, as that crawl shows them: what was
		// seen begins with the oldest.
		seen = min(seen+oldest-s.Span, oldest)
		s.Span = oldest
		items--
	}
	r.Items = keep*r.Items + items
	r.Epochs = keep*r.Epochs + seen
	if e.clock.dated() {
		e.addCalendar(&e.Calendars[c.Source], c, int(seen), epoch, keep)
	} else if items > 0 { // gaps are not the night
		if oldest > s.Oldest*(1+1/r.Items) {
			s.Beyond = 0
		}
		s.Oldest = max(s.Oldest, oldest)
		s.Within = keep*s.Within + min(float64(c.Age), s.Oldest)
		s.Beyond = keep*s.Beyond + max(0, float64(c.Age)-s.Oldest)
	}
	if !e.found() && items > 0 {
		e.RateLaw = normal{math.Log(r.Items / r.Epochs), 1}
	}
	if e.found() {
		e.stepRate(r)
	}
}

// unlikely is −ln of the chance below which something is not put down to chance.
const unlikely = 12

// plausible returns the items of a crawl without those from before the first crawl
// whose date must be wrong. All n items are younger than age a where the oldest has the
// age A with the chance (a/A)ⁿ⁻¹.
func (s *source) plausible(c *env.Crawled) []env.Item {
	items := c.Items
	for len(items) > 1 && items[0].Age > s.Span+float64(c.Age) &&
		float64(len(items)-1)*math.Log(items[0].Age/max(1, items[1].Age)) > unlikely {
		items = items[1:]
	}
	return items
}

// stepRate finds the mode of ln λ given N items in E epochs and the law of the
// sources, ln λ ~ N(μ, τ²):
//
//	N − Eλ = (ln λ − μ)/τ²
//
// and its variance, 1/(Eλ + 1/τ²), by Newton's method.
func (e *Estimates) stepRate(r *rate) {
	if r.Var == 0 { // for the first time
		r.Log = e.RateLaw.Mean
	}
	for range 3 {
		mean := r.Epochs * math.Exp(r.Log)
		info := mean + 1/e.RateLaw.Var
		r.Log += max(-1, min(1, (r.Items-mean-(r.Log-e.RateLaw.Mean)/e.RateLaw.Var)/info))
		r.Var = 1 / info
	}
}

// rate returns ln λ and its variance.
func (e *Estimates) rate(r *rate) (log, variance float64) {
	if r.Var == 0 { // not crawled yet
		return e.RateLaw.Mean, e.RateLaw.Var
	}
	return r.Log, r.Var
}

// fitRate takes a step of the law of λ.
func (e *Estimates) fitRate() {
	fitNormal(&e.RateLaw, e.Sources, func(s *source) (mode, variance float64, ok bool) {
		r := &s.Rate
		if r.Epochs > 0 {
			e.stepRate(r)
		}
		return r.Log, r.Var, r.Epochs > 0
	})
}
