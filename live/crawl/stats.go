package crawl

import (
	"math"
	"slices"
	"time"

	"ephemera/live/feed"
)

// Days and found items that the page shows.
const (
	shownDays  = 28
	shownItems = 100
)

// stats sums up the journal.
type stats struct {
	Days    []day                `json:"days"` // the last ones
	Latest  []found              `json:"latest"`
	Hours   map[string][]byte    `json:"hours"`   // items of each feed by hour of the week, from Monday, UTC
	Outcome map[feed.Outcome]int `json:"outcome"` // requests
	Items   int                  `json:"items"`
	Last    time.Time            `json:"last,omitzero"` // request
}

// day is what one day brought.
type day struct {
	Begin    time.Time   `json:"begin"`
	Requests int         `json:"requests"`
	Failed   int         `json:"failed"`
	Empty    int         `json:"empty"` // requests without anything new
	Items    int         `json:"items"`
	Delays   map[int]int `json:"delays"` // items by place of their delay, as far as it is known
}

// delayPlace returns the place of a delay: eight to a factor of two.
func delayPlace(d time.Duration) int { return int(8 * math.Log2(1+d.Minutes())) }

// quantile returns the delay within which a share of the items was found, up to
// 10 %.
func (d *day) quantile(q float64) time.Duration {
	var places []int
	total := 0
	for place, n := range d.Delays {
		places = append(places, place)
		total += n
	}
	slices.Sort(places)
	below := 0
	for _, place := range places {
		if below += d.Delays[place]; float64(below) >= q*float64(total) {
			return time.Duration((math.Exp2((float64(place)+.5)/8) - 1) * float64(time.Minute))
		}
	}
	return 0
}

// found is an item with the feed that showed it.
type found struct {
	item
	Feed string    `json:"feed"`
	At   time.Time `json:"at"`
}

func (s *stats) add(e *entry) {
	if s.Hours == nil {
		s.Hours, s.Outcome = map[string][]byte{}, map[feed.Outcome]int{}
	}
	for _, it := range e.Items {
		if !it.Published.IsZero() {
			s.count(e.Feed, it.Published.UTC())
		}
	}
	if e.Imported {
		return
	}
	begin := e.At.UTC().Truncate(24 * time.Hour)
	if n := len(s.Days); n == 0 || s.Days[n-1].Begin.Before(begin) {
		s.Days = append(s.Days, day{Begin: begin, Delays: map[int]int{}})
		s.Days = s.Days[max(0, len(s.Days)-shownDays):]
	}
	d := &s.Days[len(s.Days)-1]
	if !e.Pushed {
		d.Requests++
		s.Outcome[e.Outcome]++
		s.Last = e.At
	}
	switch {
	case e.Pushed:
	case e.Error != "":
		d.Failed++
	case len(e.Items) == 0:
		d.Empty++
	}
	d.Items += len(e.Items)
	s.Items += len(e.Items)
	for _, it := range e.Items {
		if it.Delay > 0 {
			d.Delays[delayPlace(it.Delay)]++
		}
		if !e.First {
			s.Latest = append(s.Latest, found{it, e.Feed, e.At})
		}
	}
	s.Latest = s.Latest[max(0, len(s.Latest)-shownItems):]
}

// count counts an item of a feed. Where a byte is full, all are halved.
func (s *stats) count(address string, at time.Time) {
	h := s.Hours[address]
	if h == nil {
		h = make([]byte, 7*24)
		s.Hours[address] = h
	}
	k := (int(at.Weekday())+6)%7*24 + at.Hour()
	if h[k] == math.MaxUint8 {
		for j := range h {
			h[j] /= 2
		}
	}
	h[k]++
}
