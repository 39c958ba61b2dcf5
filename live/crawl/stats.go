package crawl

import (
	"math"
	"slices"
	"time"

	"ephemera/live/feed"
)

// stats sums up the journal.
type stats struct {
	Days    []day                `json:"days"`    // the last first
	Outcome map[feed.Outcome]int `json:"outcome"` // requests
	Items   int                  `json:"items"`
	Last    time.Time            `json:"last,omitzero"` // request
}

// day is what one day brought.
type day struct {
	Begin    time.Time   `json:"begin"`
	Requests int         `json:"requests"`
	Items    int         `json:"items"`
	Delays   [places]int `json:"delay_places"` // items by place of their delay, as far as it is known
}

func (s *stats) add(e *entry) {
	if e.Outcome == imported {
		return
	}
	begin := e.At.UTC().Truncate(24 * time.Hour)
	if len(s.Days) == 0 {
		s.Days = []day{{Begin: e.At.UTC()}} // which is no whole day
	}
	if s.Days[0].Begin.Before(begin) {
		s.Days = slices.Insert(s.Days, 0, day{Begin: begin})
		s.Days = s.Days[:min(len(s.Days), shownDays)]
	}
	d := &s.Days[0]
	if e.Outcome != pushed {
		s.Outcome[e.Outcome]++
		s.Last = e.At
		d.Requests++
	}
	d.Items += len(e.Items)
	s.Items += len(e.Items)
	if e.Previous.IsZero() || e.Unseen {
		return // it had waited for the feed to be known, or may have been found sooner
	}
	for _, it := range e.Items {
		if !it.Published.IsZero() {
			d.Delays[min(int(perOctave*math.Log2(1+e.At.Sub(it.Published).Minutes())), places-1)]++
		}
	}
}

const (
	shownDays = 28
	perOctave = 8 // places of delays in a factor of two
	places    = 16 * perOctave
)

// Quantile returns the delay within which a share of the items was found, up to
// 10 %; 0 if there are none.
func (d day) Quantile(share float64) time.Duration {
	total := 0
	for _, n := range d.Delays {
		total += n
	}
	below := 0
	for place, n := range d.Delays {
		if below += n; n > 0 && float64(below) >= share*float64(total) {
			return time.Duration((math.Exp2((float64(place)+.5)/perOctave) - 1) * float64(time.Minute))
		}
	}
	return 0
}
