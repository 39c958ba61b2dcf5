package crawl

import (
	"math"
	"slices"
	"time"

	"ephemera/live/schedule"
)

// window returns in which time how many requests for feeds are made at most: those of an
// hour, or of the time in which there is a whole number of them.
func (o *Options) window() (length time.Duration, requests int) {
	n := math.Ceil(o.PerHour)
	return time.Duration(n / o.PerHour * float64(time.Hour)), int(n)
}

// allowance returns how many requests may be begun now.
func (c *Crawler) allowance(now time.Time) int {
	if c.round >= 0 {
		return c.round
	}
	length, requests := c.opt.window()
	c.recent = slices.DeleteFunc(c.recent, func(at time.Time) bool { return now.Sub(at) >= length })
	return requests - len(c.recent)
}

// begin counts a request.
func (c *Crawler) begin(now time.Time) {
	if c.recent = append(c.recent, now); c.round > 0 {
		c.round--
	}
}

// loadRecent takes up the requests of the window before a time: those in the journal, and
// those that were under way when the crawler was killed.
func (c *Crawler) loadRecent(now time.Time) error {
	length, requests := c.opt.window()
	for back := uint64(requests); ; back *= 2 {
		from := c.seq - min(c.seq, back)
		c.recent = c.recent[:0]
		whole := from == 0 // or it begins before the window
		err := c.journal(from, func(e *entry) bool {
			switch {
			case now.Sub(e.At) >= length:
				whole = true
			case e.Outcome != pushed && e.Outcome != imported:
				c.recent = append(c.recent, e.At)
			}
			return true
		})
		if err != nil {
			return err
		}
		if whole {
			break
		}
	}
	c.store.View(now.UnixMilli(), func(s *schedule.Schedule) {
		for _, until := range s.Held {
			c.recent = append(c.recent, time.UnixMilli(until).Add(-c.opt.hold()))
		}
	})
	slices.SortFunc(c.recent, time.Time.Compare)
	return nil
}

// hold is for how long a feed is left alone whose request was under way at a kill.
func (o *Options) hold() time.Duration { return max(o.Shortest, time.Hour) }
