package estimate

import (
	"math"
	"slices"

	"ephemera/env"
)

// rate is what the number of items tells of λ.
type rate struct {
	Items, Epochs float64 // items found, and epochs in which they could be seen
	Log, Var      float64 // mode of ln λ and its variance, given all sources
}

// addRate takes in how many items a crawl has found that count: they have some interest,
// and are within their lifetime or from before the first crawl.
func (e *Estimates) addRate(s *source, c *env.Crawled, epoch int, keep float64) {
	var items, oldest float64 // greatest age
	for _, it := range c.Items {
		if !(it.Interest <= faintest) && (it.Age <= e.lifetime(s) || it.Age > s.Span+float64(c.Age)) {
			items++
			oldest = max(oldest, it.Age)
		}
	}
	r := &s.Rate
	seen := min(float64(c.Age), e.lifetime(s))
	s.Span += float64(c.Age)
	if s.Shows > 0 {
		s.Shows = max(s.Shows, items)
	}
	switch {
	case c.Truncated && items > 0 && oldest < float64(c.Age):
		// The crawl covers the span of its items, one of which ends it, unless they were dated when found.
		if s.Shows = items; oldest > 0 {
			seen = oldest
			items--
		}
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
		e.addCalendar(s, c, seen, epoch, keep)
	} else if items > 0 && oldest > 0 { // gaps are not the night; an item of age 0 was dated when it was found
		s.addReach(seen, oldest, keep)
	}
	e.stepRate(s)
}

// addReach takes in how far back a crawl has seen that found an item, and the age of
// the oldest. If no item was as old, crawls beyond what was the greatest age have seen
// as much more within.
func (s *source) addReach(seen, oldest, keep float64) {
	s.Within, s.Beyond, s.Past = keep*s.Within, keep*s.Beyond, keep*s.Past
	if grown := oldest - s.Oldest; grown > 0 {
		moved := min(s.Beyond, grown*s.Past)
		s.Within, s.Beyond, s.Oldest = s.Within+moved, s.Beyond-moved, oldest
	}
	s.Within += min(seen, s.Oldest)
	if seen > s.Oldest {
		s.Beyond += seen - s.Oldest
		s.Past++
	}
}

// plausible returns the items of a crawl, the oldest first, without dates that must be wrong, since they lie
// long before all that is known. Of n other items, younger than a, and N known ones, younger than b, none is
// as old as A with the chance (a/A)ⁿ(b/A)ᴺ. Items with such a date, such as 1970, are left out of a first
// crawl. Later they count as dated when they were found.
func (s *source) plausible(c *env.Crawled) []env.Item {
	items, known, wrong := c.Items, max(1, s.Span+float64(c.Age)), 0
	for wrong < len(items) && items[wrong].Age > known {
		oldest, next := items[wrong].Age, wrong+1 // beyond those of one date
		for next < len(items) && items[next].Age == oldest {
			next++
		}
		off := s.Rate.Items * math.Log(oldest/known)
		if next < len(items) {
			off += float64(len(items)-next) * math.Log(oldest/max(1, items[next].Age))
		}
		if off <= unlikely {
			break
		}
		wrong = next
	}
	if wrong == 0 || s.Span == 0 {
		return items[wrong:]
	}
	dated := slices.Clone(items[wrong:])
	for _, it := range items[:wrong] {
		dated = append(dated, env.Item{Interest: it.Interest})
	}
	return dated
}

// stepRate finds the mode of ln λ given N items in E epochs and the law of the
// sources, ln λ ~ N(μ, τ²):
//
//	N − Eλ = (ln λ − μ)/τ²
//
// and its variance, 1/(Eλ + 1/τ²), by Newton's method.
func (e *Estimates) stepRate(s *source) (mode, variance float64, shown bool) {
	r := &s.Rate
	_, visible := s.window()
	for range 8 {
		mean := visible * r.Epochs * math.Exp(r.Log)
		info := mean + 1/e.RateLaw.Var
		before := r.Log
		r.Log += max(-1, min(1, (r.Items-mean-(r.Log-e.RateLaw.Mean)/e.RateLaw.Var)/info))
		r.Var = 1 / info
		if r.Log == before {
			break
		}
	}
	return r.Log, r.Var, r.Epochs > 0
}
