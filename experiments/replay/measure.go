package replay

import (
	"math"

	"ephemera/env"
)

// crawl is one crawl of a schedule.
type crawl struct {
	Source int
	At     float64 // Unix time
}

// measures is what a schedule brings in a part of a recording.
type measures struct {
	Interest float64 // per hour
	Crawls   float64 // per hour
	Empty    float64 // share of the crawls that found nothing new
	Median   float64 // hours from publication to crawl, of half of the items; +Inf if fewer were found
	P90      float64 // the same of nine items in ten
	Worth    float64 // hours from publication to crawl, of half of all utility
	Prompt   float64 // share of the items found within an hour
	Neglect  float64 // hours, the longest that a source with items waited for a crawl

	days []float64 // interest of each whole day
}

// catalog holds the publications of a recording by source.
type catalog struct {
	first   []int // of each source's publications, and their end
	at      []float64
	utility []float64
}

func newCatalog(rec *env.Recording) *catalog {
	n := len(rec.Names)
	c := &catalog{first: make([]int, n+1), at: make([]float64, rec.Rows), utility: make([]float64, rec.Rows)}
	rec.Each(func(i int, _ int64, _ float64) { c.first[i+1]++ })
	for i := range n {
		c.first[i+1] += c.first[i]
	}
	next := append([]int(nil), c.first[:n]...)
	rec.Each(func(i int, at int64, utility float64) {
		c.at[next[i]], c.utility[next[i]] = float64(at), utility
		next[i]++
	})
	return c
}

// published returns how many items source i had from one time to another, and
// their utility.
func (c *catalog) published(i int, from, to float64) (n, sum float64) {
	for k := c.first[i]; k < c.first[i+1]; k++ {
		if c.at[k] >= from && c.at[k] < to {
			n++
			sum += c.utility[k]
		}
	}
	return n, sum
}

// measure plays a schedule, sorted by time, against what was published from
// one time to another. Interest that is a hours old is worth left(a) of what it was.
func (c *catalog) measure(crawls []crawl, from, to float64, left func(hours float64) float64) measures {
	n := len(c.first) - 1
	next, last := make([]int, n), make([]float64, n)
	var items, worth float64
	for i := range n {
		next[i], last[i] = c.first[i], from
		for next[i] < c.first[i+1] && c.at[next[i]] < from {
			next[i]++
		}
		for k := next[i]; k < c.first[i+1] && c.at[k] < to; k++ {
			items++
			worth += c.utility[k]
		}
	}
	had := append([]int(nil), next...)

	const minute = 60
	m := measures{days: make([]float64, int((to-from)/day))}
	delays := make([]float64, int((to-from)/minute)+1) // items by minutes of delay
	worths := make([]float64, len(delays))             // their utility
	var made, empty float64
	for _, w := range crawls {
		if w.At < from || w.At > to {
			continue
		}
		i, k := w.Source, next[w.Source]
		var interest float64
		for ; k < c.first[i+1] && c.at[k] < w.At; k++ {
			interest += c.utility[k] * left((w.At-c.at[k])/3600)
			delay := int((w.At - c.at[k]) / minute)
			delays[delay]++
			worths[delay] += c.utility[k]
		}
		made++
		if k == next[i] {
			empty++
		}
		next[i] = k
		m.Interest += interest
		if d := int((w.At - from) / day); d < len(m.days) {
			m.days[d] += interest
		}
		if had[i] < c.first[i+1] && c.at[had[i]] < to {
			m.Neglect = max(m.Neglect, w.At-last[i])
		}
		last[i] = w.At
	}
	for i := range n {
		if had[i] < c.first[i+1] && c.at[had[i]] < to {
			m.Neglect = max(m.Neglect, to-last[i])
		}
	}
	hours := (to - from) / 3600
	m.Interest /= hours
	m.Crawls = made / hours
	m.Empty = empty / max(1, made)
	m.Neglect /= 3600
	m.Median, m.P90, m.Worth = quantile(delays, .5*items)/60, quantile(delays, .9*items)/60, quantile(worths, .5*worth)/60
	for _, d := range delays[:min(60, len(delays))] {
		m.Prompt += d / max(1, items)
	}
	return m
}

// quantile returns the least value up to which the weights by value add up to
// what is needed; +Inf if all of them do not.
func quantile(weight []float64, need float64) float64 {
	var sum float64
	for v, w := range weight {
		if sum += w; w > 0 && sum >= need*(1-1e-9) {
			return float64(v)
		}
	}
	return math.Inf(1)
}
