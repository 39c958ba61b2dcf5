package crawl

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"ephemera/live/clock"
)

const (
	// behind is by how much a time lies before the latest one when the clock was set back.
	behind = time.Minute

	readingName = "clock"
)

// clock returns the time, which never lies before an earlier one. All that was kept goes
// with the machine's clock where that is set, so that each wait lasts as long as it was to.
// Where it was set while the machine was off, and back, that is what was kept later than now.
func (c *Crawler) clock() time.Time {
	read := clock.Reading{Time: c.opt.Now().Round(0), Uptime: c.opt.Uptime()} // as a saved time: by the wall clock
	goesBy, now, by := clock.Follow(c.read, read)
	switch {
	case by != 0:
		c.set(shift{by: by})
		c.learner.Shift(by)
		c.store.Shift(by)
		c.keepClock()
	case c.latest.Sub(now) > behind: // the store finds out when it is asked what is due
		c.set(shift{by: now.Sub(c.latest), after: now})
		c.learner.Select(now, 0) // goes back, before it is saved
		c.keepClock()
	}
	if goesBy != c.read {
		c.keepReading(goesBy)
	}
	if now.After(c.latest) {
		c.latest = now
	}
	return c.latest
}

// keepReading keeps what both clocks showed, by which steps of the machine's clock are found.
func (c *Crawler) keepReading(read clock.Reading) {
	c.read = read
	value, err := json.Marshal(read)
	if err == nil {
		err = c.store.SetValue(readingName, value)
	}
	if err != nil {
		c.opt.Log.Error("what the clock showed was not kept", "error", err)
	}
}

// loadReading takes up what keepReading kept, if there is any.
func (c *Crawler) loadReading() error {
	value, err := c.store.Value(readingName)
	if err != nil || value == nil {
		return err
	}
	return json.Unmarshal(value, &c.read)
}

// keepClock saves what the clock changed, so that all that is in the journal after it is of
// the clock as it is now.
func (c *Crawler) keepClock() {
	if err := c.save(c.latest, true); err != nil {
		c.opt.Log.Error("what the clock changed was not kept", "error", err)
	}
}

// set has all that was kept be of a clock that was set.
func (c *Crawler) set(s shift) {
	c.latest = c.latest.Add(s.by)
	c.opt.Log.Warn("the clock was set; waits go on from there", "now", c.latest.UTC(), "by", s.by)
	c.listed = time.Time{}
	s.move(&c.stats.Last)
	s.move(&c.watched)
	c.stats.set(s, c.latest)
	for i := range c.recent {
		s.move(&c.recent[i])
	}
	slices.SortFunc(c.recent, time.Time.Compare)
	err := errors.Join(c.setHosts(s), c.setItemsBack(shift{s.by, c.latest}))
	for _, r := range c.feeds {
		if r.set(s, c.latest) && !r.held && err == nil { // what is under way is kept at its end
			err = c.keepHeld(r)
		}
	}
	if err != nil {
		c.opt.Log.Error("what the clock changed was not kept", "error", err)
	}
}

// shift is by how much the clock was set, and after which time what was kept goes with it.
type shift struct {
	by    time.Duration
	after time.Time
}

// move has a time go with the clock, if there is one, and reports whether it did.
func (s shift) move(t *time.Time) bool {
	if !t.After(s.after) {
		return false
	}
	*t = t.Add(s.by)
	return true
}

// set has what was kept go with the clock, and reports whether there is any.
func (r *record) set(s shift, now time.Time) bool {
	moved := s.move(&r.Last)
	if r.Tried.IsZero() || s.move(&r.Tried) { // it was not always kept
		moved = s.move(&r.NotBefore) || moved
	}
	moved = s.move(&r.HubAsked) || moved
	r.Looks = slices.Clone(r.Looks)
	for i := range r.Looks {
		moved = s.move(&r.Looks[i].At) || moved
	}
	if p := r.Push; p != nil {
		if most := now.Add(lease); p.Until.After(most) {
			p.Until, moved = most, true
		}
	}
	return moved
}

// set has days go with the clock, and those that are still to come be today.
func (s *stats) set(by shift, now time.Time) {
	by.by = by.by.Round(24 * time.Hour)
	var days []day
	for _, d := range s.Days {
		if by.move(&d.Begin); d.Begin.After(now) {
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
