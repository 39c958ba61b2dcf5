package crawl

import (
	"encoding/json"
	"math"
	"slices"
	"sort"
	"time"

	"ephemera/live/schedule"
	"ephemera/live/store"
)

// window returns in which time how many requests for feeds are made at most: those of an
// hour, or of the time in which there is a whole number of them.
func (o *Options) window() (length time.Duration, requests int) {
	n := math.Ceil(o.PerHour)
	return time.Duration(n / o.PerHour * float64(time.Hour)), int(n)
}

// A request is at each moment in one of two places, in memory as on disk: among those that are asked, as a hold of
// the schedule, until what became of it is kept; and from then on among the recent ones. On disk these are those
// of the snapshot, and since that the entries of the journal and those that were left without one.

// allowance returns how many requests may be begun until a time.
func (c *Crawler) allowance(until time.Time) int {
	length, requests := c.opt.window()
	over := sort.Search(len(c.recent), func(k int) bool { return until.Sub(c.recent[k]) < length })
	requests -= len(c.recent[over:])
	for _, at := range c.asked {
		if until.Sub(at) < length {
			requests--
		}
	}
	return requests
}

// ends returns what is to be kept with the end of the request for a feed, if one was made, and has no entry of
// the journal. The caller keeps it and then calls done.
func (c *Crawler) ends(r *record, entry bool) (values []store.Value, done func(), err error) {
	at, is := c.asked[r]
	if !is {
		return nil, func() {}, nil
	}
	unanswered := c.unanswered
	if !entry {
		unanswered = append(slices.Clone(unanswered), at)
		data, err := json.Marshal(unanswered)
		if err != nil {
			return nil, nil, err
		}
		values = append(values, store.Value{Name: unansweredName, Data: data})
	}
	return values, func() {
		c.unanswered = unanswered
		delete(c.asked, r)
		c.counts(at)
	}, nil
}

// counts takes up a request that is at its end. Those before the last ones that are allowed together do not count
// any more.
func (c *Crawler) counts(at time.Time) {
	_, requests := c.opt.window()
	place, _ := slices.BinarySearchFunc(c.recent, at, time.Time.Compare)
	c.recent = slices.Insert(c.recent, place, at)
	c.recent = c.recent[max(0, len(c.recent)-requests):]
}

// loadRecent adds the requests that were made since the learner was saved.
func (c *Crawler) loadRecent(now time.Time) error {
	after := c.seq
	if c.recent == nil { // they were not saved
		after, c.recent = 0, []time.Time{}
	}
	data, err := c.store.Value(unansweredName)
	if err == nil && data != nil {
		err = json.Unmarshal(data, &c.unanswered)
	}
	if err != nil {
		return err
	}
	c.recent = append(c.recent, c.unanswered...)
	length, _ := c.opt.window()
	err = c.journal(after, func(e *entry) bool {
		at := e.At         // the end of it
		if at.After(now) { // the clock was set back since
			at = now
		}
		if now.Sub(at) < length && e.Outcome != pushed && e.Outcome != imported && !e.ByReader {
			c.recent = append(c.recent, at)
		}
		return true
	})
	slices.SortFunc(c.recent, time.Time.Compare)
	return err
}

// loadAsked takes up the requests that were under way at a kill: nobody knows what became of them, and their feeds
// are left alone for a while. One of a host is made at a time, so it was the last one of its host.
func (c *Crawler) loadAsked() {
	hold := c.opt.hold()
	why := "the answer to its last request was not kept, as after a kill; it is left alone for " + span(hold) +
		" from then"
	c.store.View(func(s *schedule.Schedule) {
		for t := range s.Held {
			r := c.feeds[t.URL.Name]
			if r == nil {
				continue
			}
			at := time.UnixMilli(t.Queue.Last)
			c.asked[r] = at
			if r.Tried.Before(at) {
				r.Tried = at
			}
			r.wait(at.Add(hold), why)
		}
	})
}

// settle has the requests be at their end whose answers were not kept, as after a kill or on a full disk.
func (c *Crawler) settle(now time.Time) error {
	for r := range c.asked {
		if r.held {
			continue
		}
		if err := c.unmade(r, now, r.NotBefore.Add(-c.opt.lead())); err != nil {
			return err
		}
	}
	return nil
}

// hold is for how long a feed is left alone whose request was under way at a kill.
func (o *Options) hold() time.Duration { return max(o.Shortest, leastHold) }

const leastHold = time.Hour
