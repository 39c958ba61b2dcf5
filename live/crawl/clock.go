package crawl

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"ephemera/live/clock"
	"ephemera/live/store"
)

const readingName = "clock"

// clock returns the time, which never lies before an earlier one. All that was kept goes
// with the machine's clock where that is set, so that each wait lasts as long as it was to.
// Where it was set while the machine was off, and back, that is what was kept later than now.
func (c *Crawler) clock() time.Time {
	read := clock.Reading{Time: c.opt.Now().Round(0), Uptime: c.opt.Uptime()} // as a saved time: by the wall clock
	goesBy, now, by := clock.Follow(c.read, read)
	changed := goesBy != c.read
	c.read = goesBy
	switch {
	case by != 0:
		c.learner.Shift(by)
		c.set(shift{by: by}, by)
	case c.latest.Sub(now) > clock.Behind: // the store finds out when it is asked what is due
		c.learner.Select(now, 0) // goes back, before it is saved
		c.set(shift{by: now.Sub(c.latest), after: now}, 0)
	case changed:
		c.keepReading()
	}
	if now.After(c.latest) {
		c.latest = now
	}
	return c.latest
}

// reading returns what both clocks showed, by which steps of the machine's clock are found, as it is kept.
func (c *Crawler) reading() (store.Value, error) {
	data, err := json.Marshal(c.read)
	return store.Value{Name: readingName, Data: data}, err
}

func (c *Crawler) keepReading() {
	value, err := c.reading()
	if err == nil {
		err = c.store.Set(value)
	}
	if err != nil {
		c.opt.Log.Error("what the clock showed was not kept", "error", err)
	}
}

// loadReading takes up what reading returned, if it was kept.
func (c *Crawler) loadReading() error {
	value, err := c.store.Value(readingName)
	if err != nil || value == nil {
		return err
	}
	return json.Unmarshal(value, &c.read)
}

// set has all that was kept be of a clock that was set; what the schedule has goes by another time. All that
// can be read is kept with the reading of the clocks, or nothing, as after a kill: then the next start finds the
// step again.
func (c *Crawler) set(s shift, schedule time.Duration) {
	c.latest = c.latest.Add(s.by)
	c.opt.Log.Warn("the clock was set; waits go on from there", "now", c.latest.UTC(), "by", s.by)
	c.listing.tried, c.saved = time.Time{}, c.latest
	s.move(&c.stats.Last)
	s.move(&c.listing.read)
	c.stats.set(s, c.latest)
	for i := range c.recent {
		s.move(&c.recent[i])
	}
	slices.SortFunc(c.recent, time.Time.Compare)
	for i := range c.unanswered {
		s.move(&c.unanswered[i])
	}
	for r, at := range c.asked {
		s.move(&at)
		c.asked[r] = at
	}
	hosts, err := c.setHosts(s)
	items, err2 := c.setItemsBack(shift{s.by, c.latest})
	reading, err3 := c.reading()
	learned, err4 := c.snapshot()
	if err = errors.Join(err, err2); err != nil { // such as a damaged item, which holds up nothing else
		c.opt.Log.Error("what cannot be read does not go with the clock", "error", err)
	}
	err = errors.Join(err3, err4)
	var feeds []store.Record
	for _, r := range c.feeds {
		if r.set(s, c.latest) {
			data, bad := json.Marshal(r)
			err = errors.Join(err, bad)
			feeds = append(feeds, store.Record{ID: r.ID, Data: data})
		}
	}
	if err == nil {
		err = c.store.Shift(schedule, feeds, append(slices.Concat(hosts, items, learned), reading)...)
	}
	if err != nil {
		c.opt.Log.Error("what the clock changed was not kept", "error", err)
		return
	}
	c.unanswered = nil
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
