package replay

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"ephemera/env"
	"ephemera/experiments/result"
)

// hours is a length of time; +Inf for never, which is null in JSON.
type hours float64

// String writes it in hours, or in days where there are many.
func (h hours) String() string {
	switch {
	case math.IsInf(float64(h), 1):
		return "never"
	case h >= 100:
		return formatNumber(math.Round(float64(h)/24)) + " d"
	}
	return strconv.FormatFloat(float64(h), 'f', 1, 64) + " h"
}

// MarshalJSON implements json.Marshaler.
func (h hours) MarshalJSON() ([]byte, error) { return json.Marshal(result.Ptr(float64(h))) }

// measures is what a schedule brings in a part of a recording.
type measures struct {
	Interest float64 `json:"-"`                          // per hour
	Median   hours   `json:"delay_median_hours"`         // from publication to crawl, of half of the items; never if fewer were found
	P90      hours   `json:"delay_p90_hours"`            // the same of nine items in ten
	Worth    hours   `json:"delay_utility_median_hours"` // the same of half of all utility
	Prompt   float64 `json:"seen_within_1h"`             // share of the items found within an hour
	Empty    float64 `json:"empty_crawls"`               // share of the crawls that found nothing new
	Neglect  hours   `json:"longest_neglect_hours"`      // the longest that a source with items waited for a crawl

	crawls float64   // per hour
	days   []float64 // interest of each whole day
}

// publication is one item.
type publication struct{ at, utility float64 }

// catalog holds the publications of each source by time.
type catalog [][]publication

func newCatalog(rec *env.Recording) catalog {
	count := make([]int, len(rec.Names))
	rec.Each(func(i int, _ int64, _ float64) { count[i]++ })
	c := make(catalog, len(count))
	for i, n := range count {
		c[i] = make([]publication, 0, n) // there may be a hundred million in all
	}
	rec.Each(func(i int, at int64, utility float64) {
		c[i] = append(c[i], publication{float64(at), utility})
	})
	return c
}

// between returns what source i published from one time until before another.
func (c catalog) between(i int, from, to float64) []publication {
	place := func(t float64) int {
		k, _ := slices.BinarySearchFunc(c[i], t, func(p publication, t float64) int { return cmp.Compare(p.at, t) })
		return k
	}
	return c[i][place(from):place(to)]
}

// measure plays a schedule, sorted by time, against what was published in a
// window. An item that is a hours old is worth e^(−ca) of its utility, with
// c = ln 2/halfLife.
func (c catalog) measure(crawls []Crawl, w window, halfLife float64) measures {
	decay := math.Ln2 / halfLife
	waits := make([][]publication, len(c)) // what no crawl has found yet
	last := make([]float64, len(c))        // time of the last crawl of a source with items; +Inf for others
	var items, worth float64
	for i := range c {
		waits[i], last[i] = c.between(i, w.from, w.to), math.Inf(1)
		if len(waits[i]) > 0 {
			last[i] = w.from
		}
		for _, p := range waits[i] {
			items++
			worth += p.utility
		}
	}
	const minute = 60
	m := measures{days: make([]float64, int((w.to-w.from)/day))}
	delays := make([]float64, int((w.to-w.from)/minute)+1) // items by minutes of delay
	worths := make([]float64, len(delays))                 // their utility
	var made, empty, neglect float64
	for _, x := range crawls {
		if x.At < w.from || x.At > w.to {
			continue
		}
		i, found := x.Source, 0
		var interest float64
		for _, p := range waits[i] {
			if p.at >= x.At {
				break
			}
			found++
			interest += p.utility * math.Exp(-decay*((x.At-p.at)/3600))
			delay := int((x.At - p.at) / minute)
			delays[delay]++
			worths[delay] += p.utility
		}
		waits[i] = waits[i][found:]
		made++
		if found == 0 {
			empty++
		}
		m.Interest += interest
		if d := int((x.At - w.from) / day); d < len(m.days) {
			m.days[d] += interest
		}
		neglect = max(neglect, x.At-last[i])
		last[i] = max(x.At, last[i]) // +Inf stays
	}
	for _, at := range last {
		neglect = max(neglect, w.to-at)
	}
	long := (w.to - w.from) / 3600
	m.Interest /= long
	m.crawls = made / long
	m.Empty = empty / max(1, made)
	m.Neglect = hours(neglect / 3600)
	m.Median, m.P90, m.Worth = delayOf(delays, .5*items), delayOf(delays, .9*items), delayOf(worths, .5*worth)
	for _, d := range delays[:min(60, len(delays))] {
		m.Prompt += d / max(1, items)
	}
	return m
}

// delayOf returns the least delay up to which the weights by minutes of delay
// add up to what is needed; never if all of them do not.
func delayOf(weight []float64, need float64) hours {
	var sum float64
	for minutes, w := range weight {
		if sum += w; w > 0 && sum >= need*(1-1e-9) {
			return hours(minutes) / 60
		}
	}
	return hours(math.Inf(1))
}
