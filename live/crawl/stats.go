package crawl

import (
	"slices"
	"time"

	"ephemera/live/feed"
)

// Days and found items that the page shows.
const (
	shownDays  = 28
	shownItems = 200
)

// day is what one day brought.
type day struct {
	begin    time.Time
	Requests int
	Failed   int
	Empty    int // requests without anything new
	Items    int
	missed   int             // requests that showed nothing but new items
	delays   []time.Duration // of the items of which it is known
}

// quantile returns the delay within which a share of the items was found.
func (d *day) quantile(q float64) time.Duration {
	if len(d.delays) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d.delays))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

// found is an item with the feed that showed it.
type found struct {
	item
	Feed string
	At   time.Time
}

// stats sums up the journal.
type stats struct {
	days    []day // the last ones
	latest  []found
	hours   map[string]*[168]uint16 // items of each feed by hour of the week, from Monday, UTC
	outcome map[feed.Outcome]int    // requests by outcome
	items   int
	last    time.Time // request
}

func (s *stats) add(e *entry) {
	if s.hours == nil {
		s.hours, s.outcome = map[string]*[168]uint16{}, map[feed.Outcome]int{}
	}
	for _, it := range e.Items {
		if !it.Published.IsZero() {
			h := s.hours[e.Feed]
			if h == nil {
				h = new([168]uint16)
				s.hours[e.Feed] = h
			}
			t := it.Published.UTC()
			if k := (int(t.Weekday())+6)%7*24 + t.Hour(); h[k] < 65535 {
				h[k]++
			}
		}
	}
	if e.Outcome == imported {
		return
	}
	begin := e.At.UTC().Truncate(24 * time.Hour)
	if n := len(s.days); n == 0 || s.days[n-1].begin.Before(begin) {
		s.days = append(s.days, day{begin: begin})
		if len(s.days) > shownDays {
			s.days = slices.Delete(s.days, 0, 1)
		}
	}
	d := &s.days[len(s.days)-1]
	d.Requests++
	s.outcome[e.Outcome]++
	s.last = e.At
	switch {
	case e.Error != "":
		d.Failed++
	case len(e.Items) == 0:
		d.Empty++
	}
	if e.Truncated {
		d.missed++
	}
	d.Items += len(e.Items)
	s.items += len(e.Items)
	for _, it := range e.Items {
		if it.Delay > 0 {
			d.delays = append(d.delays, it.Delay)
		}
		if !e.First {
			s.latest = append(s.latest, found{it, e.Feed, e.At})
		}
	}
	if len(s.latest) > 2*shownItems {
		s.latest = slices.Delete(s.latest, 0, len(s.latest)-shownItems)
	}
}
