package crawl

import (
	"math"
	"slices"
	"sort"
	"time"

	"ephemera/live/schedule"
)

// window returns in which time how many requests for feeds are made at most: those of an
// hour, or of the time in which there is a whole number of them.
func (o *Options) window() (length time.Duration, requests int) {
	n := math.Ceil(o.PerHour)
	return time.Duration(n / o.PerHour * float64(time.Hour)), int(n)
}

// allowance returns how many requests may be begun until a time.
func (c *Crawler) allowance(until time.Time) int {
	length, requests := c.opt.window()
	over := sort.Search(len(c.recent), func(k int) bool { return until.Sub(c.recent[k]) < length })
	return requests - len(c.recent[over:])
}

// asks takes up that a request is made. Those before the last ones that are allowed together do not count
// any more.
func (c *Crawler) asks(now time.Time) {
	_, requests := c.opt.window()
	c.recent = append(c.recent[max(0, len(c.recent)-requests+1):], now)
}

// loadRecent adds the requests that were made since the learner was saved: those in the
// journal, and those that were under way when the crawler was killed.
func (c *Crawler) loadRecent(now time.Time) error {
	after := c.seq
	if c.recent == nil { // they were not saved
		after, c.recent = 0, []time.Time{}
	}
	length, _ := c.opt.window()
	err := c.journal(after, func(e *entry) bool {
		at := e.At
		if at.After(now) { // the clock was set back since
			at = now
		}
		if now.Sub(at) < length && e.Outcome != pushed && e.Outcome != imported {
			c.recent = append(c.recent, at)
		}
		return true
	})
	if err != nil {
		return err
	}
	c.store.View(func(s *schedule.Schedule) {
		for _, until := range s.Held { // for an hour at least, or for longer by the settings of then
			at := time.UnixMilli(until).Add(-leastHold)
			if at.After(now) {
				at = now
			}
			c.recent = append(c.recent, at)
		}
	})
	slices.SortFunc(c.recent, time.Time.Compare)
	return nil
}

// hold is for how long a feed is left alone whose request was under way at a kill.
func (o *Options) hold() time.Duration { return max(o.Shortest, leastHold) }

const leastHold = time.Hour
