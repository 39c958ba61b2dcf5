package crawl

import (
	"errors"
	"slices"
	"time"
)

// behind is by how much a time lies before the latest one when the clock was set back.
const behind = time.Minute

// clock returns the time, which never lies before an earlier one. Where the clock of the
// machine was set back, all that was kept later than now goes back too, so that it lasts
// as long as it was to.
func (c *Crawler) clock() time.Time {
	now := c.opt.Now().Round(0) // as a saved time: by the wall clock
	if c.latest.Sub(now) > behind {
		c.setBack(now)
	}
	if now.After(c.latest) {
		c.latest = now
	}
	return c.latest
}

// setBack goes back to a time. Learner and store do so themselves, when they are asked what
// is due.
func (c *Crawler) setBack(now time.Time) {
	s := shift{now, c.latest.Sub(now)}
	c.latest = now
	c.opt.Log.Warn("the clock was set back; waits go on from there", "time", now.UTC(), "by", s.by)
	c.listed, c.saved = time.Time{}, now
	s.move(&c.stats.Last)
	c.stats.setBack(now)
	for i := range c.recent {
		s.move(&c.recent[i])
	}
	slices.SortFunc(c.recent, time.Time.Compare)
	err := errors.Join(c.setHostsBack(s), c.setItemsBack(s))
	for _, r := range c.feeds {
		if r.setBack(s) && !r.held && err == nil { // what is under way is kept at its end
			_, err = c.keep(r, nil)
		}
	}
	if err != nil { // it is done again at the next start
		c.opt.Log.Error("what the clock changed was not kept", "error", err)
	}
}

// shift is how far the clock was set back, and to when.
type shift struct {
	now time.Time
	by  time.Duration
}

// move has a time that is still to come lie as far before now as it lay before the time
// that the clock had, and reports whether it did.
func (s shift) move(t *time.Time) bool {
	if !t.After(s.now) {
		return false
	}
	*t = t.Add(-s.by)
	return true
}

// setBack has what was kept later than now go back, and reports whether there is any.
func (r *record) setBack(s shift) bool {
	last := s.move(&r.Last)
	if r.Tried.IsZero() || s.move(&r.Tried) { // it was not always kept
		last = s.move(&r.NotBefore) || last
	}
	last = s.move(&r.HubAsked) || last
	if p := r.Push; p != nil {
		if most := s.now.Add(lease); p.Until.After(most) {
			p.Until, last = most, true
		}
	}
	return last
}

// setBack has days that are still to come be today.
func (s *stats) setBack(now time.Time) {
	var days []day
	for _, d := range s.Days {
		if d.Begin.After(now) {
			d.Begin = now.UTC()
		}
		n := len(days)
		if n == 0 || !sameDay(days[n-1].Begin, d.Begin) {
			days = append(days, d)
			continue
		}
		to := &days[n-1]
		if d.Begin.Before(to.Begin) {
			to.Begin = d.Begin
		}
		to.Requests += d.Requests
		to.Items += d.Items
		for k, n := range d.Delays {
			to.Delays[k] += n
		}
	}
	s.Days = days
}

func sameDay(a, b time.Time) bool {
	return a.Truncate(24 * time.Hour).Equal(b.Truncate(24 * time.Hour))
}
