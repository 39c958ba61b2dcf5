package replay

import (
	"encoding/json"
	"math"
	"sort"
	"strconv"

	"ephemera/env"
	"ephemera/experiments/result"
)

// hours is a length of time; +Inf for never, which is null in JSON.
type hours float64

// String writes it in minutes, hours or days.
func (h hours) String() string {
	switch {
	case math.IsInf(float64(h), 1):
		return "never"
	case h < 2:
		return strconv.FormatFloat(float64(60*h), 'f', 0, 64) + " min"
	case h >= 100:
		return formatNumber(math.Round(float64(h)/24)) + " d"
	}
	return strconv.FormatFloat(float64(h), 'f', 1, 64) + " h"
}

// MarshalJSON implements json.Marshaler.
func (h hours) MarshalJSON() ([]byte, error) { return json.Marshal(result.RatioOf(float64(h))) }

// measures is what a schedule brings in a part of a recording.
type measures struct {
	// From publication to crawl, of half of the items; never if fewer were found.
	Median   hours   `json:"delay_median_hours"`
	P90      hours   `json:"delay_p90_hours"`       // the same of nine items in ten
	Mean     hours   `json:"delay_mean_hours"`      // of all items; one that is never found has waited until the end
	Missed   float64 `json:"never_found"`           // share of the items that no crawl finds
	LeftOut  int     `json:"sources_left_out"`      // sources with items of which no crawl finds any
	Neglect  hours   `json:"longest_neglect_hours"` // the longest that a source with items waited for a crawl
	Interest float64 `json:"-"`                     // per hour
	Empty    float64 `json:"empty_crawls"`          // share of the crawls that found nothing new

	crawls float64   // per hour
	days   []float64 // interest of each whole day
}

// between returns what a source published from one time until before another.
func between(rec *env.Recording, i int, from, to float64) []env.Publication {
	of := rec.Of(i)
	place := func(t float64) int { return sort.Search(len(of), func(k int) bool { return float64(of[k].At) >= t }) }
	return of[place(from):place(to)]
}

// measure plays a schedule, sorted by time, against what was published in a
// window. A crawl finds the last items since the crawl before, at most so many as
// its source shows; 0 stands for all. An item that is a hours old is worth e^(−ca)
// of its utility, with c = ln 2/halfLife.
func measure(rec *env.Recording, crawls []Crawl, w window, halfLife float64, shows int) measures {
	decay := math.Ln2 / halfLife
	n := len(rec.Names)
	waits := make([][]env.Publication, n) // what was published since the last crawl, and later
	last := make([]float64, n)            // time of the last crawl of a source with items; +Inf for others
	missed := make([]bool, n)             // no item of the source has been found
	var items float64
	for i := range n {
		waits[i], last[i] = between(rec, i, w.from, w.to), math.Inf(1)
		if len(waits[i]) > 0 {
			last[i], missed[i] = w.from, true
		}
		items += float64(len(waits[i]))
	}
	const minute = 60
	m := measures{days: make([]float64, int((w.to-w.from)/day))}
	delays := make([]float64, int((w.to-w.from)/minute)+1) // items by minutes of delay
	var made, empty, found, neglect, waited float64
	for _, x := range crawls {
		if x.At < w.from || x.At > w.to {
			continue
		}
		i := x.Source
		fresh := 0
		for fresh < len(waits[i]) && float64(waits[i][fresh].At) < x.At {
			fresh++
		}
		seen := waits[i][:fresh]
		if waits[i] = waits[i][fresh:]; shows > 0 {
			for _, p := range seen[:max(0, fresh-shows)] {
				waited += w.to - float64(p.At)
			}
			seen = seen[max(0, fresh-shows):]
		}
		var interest float64
		for _, p := range seen {
			delay := x.At - float64(p.At)
			interest += p.Utility * math.Exp(-decay*(delay/3600))
			delays[int(delay/minute)]++
			waited += delay
		}
		made++
		found += float64(len(seen))
		if len(seen) == 0 {
			empty++
		} else {
			missed[i] = false
		}
		m.Interest += interest
		if d := int((x.At - w.from) / day); d < len(m.days) {
			m.days[d] += interest
		}
		neglect = max(neglect, x.At-last[i])
		last[i] = max(x.At, last[i]) // +Inf stays
	}
	for i, at := range last {
		for _, p := range waits[i] {
			waited += w.to - float64(p.At)
		}
		neglect = max(neglect, w.to-at)
		if missed[i] {
			m.LeftOut++
		}
	}
	long := (w.to - w.from) / 3600
	m.Interest /= long
	m.crawls = made / long
	m.Mean = hours(waited / 3600 / max(1, items))
	m.Missed = 1 - found/max(1, items)
	m.Empty = empty / max(1, made)
	m.Neglect = hours(neglect / 3600)
	m.Median, m.P90 = delayOf(delays, .5*items), delayOf(delays, .9*items)
	return m
}

// delayOf returns the least delay up to which so many items were found, of which
// there are some by minutes of delay; never if fewer were found.
func delayOf(items []float64, need float64) hours {
	var sum float64
	for minutes, n := range items {
		if sum += n; n > 0 && sum >= need*(1-1e-9) {
			return hours(minutes) / 60
		}
	}
	return hours(math.Inf(1))
}
