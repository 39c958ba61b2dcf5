package store

import (
	"cmp"
	"time"

	"ephemera/live/clock"
	"ephemera/live/schedule"
)

// Moment is a time of a store.
type Moment struct {
	Time time.Time     // by the machine's clock
	Read clock.Reading // of both clocks, which it goes by
	Set  time.Duration // by how much the machine's clock was set since the start, and all that the store has
}

func (s *Store) clocks() clock.Reading {
	return clock.Reading{Time: s.opt.Now().Round(0), Uptime: s.opt.Uptime()}
}

// Moment returns the time, for which each wait lasts as long as it was to, whatever the clock is
// set to: if it was set since the last time, holds and delays go with it.
func (s *Store) Moment() Moment {
	s.mu.Lock()
	defer s.end()
	s.tick()
	return s.moment
}

// tick reads the clocks.
func (s *Store) tick() {
	read, now, by := clock.Follow(s.moment.Read, s.clocks())
	s.moment = Moment{now, read, s.moment.Set + by}
	if by != 0 {
		s.opt.Log.Warn("the clock was set; waits go on from there", "now", now.UTC(), "by", by)
		s.shift(by)
	}
}

// endedAtOnce is how many holds are ended under one lock at most: as many as URLs are taken, so that
// those that are over do not become more from call to call.
const endedAtOnce = takenAtOnce

// advance brings the schedule to the time, and keeps what is otherwise by that. It reports whether
// there is more to be done for that, by the next call.
func (s *Store) advance() (more bool) {
	s.tick()
	now, newest := s.moment.Time.UnixMilli(), s.sched.Newest()
	ended, more, back := s.sched.Advance(now, s.opt.endedAtOnce)
	if s.closed {
		return false
	}
	for _, t := range ended {
		s.deleteHold(idOf(t))
		s.setWait(idOf(t), &t.URL)
		s.mark(appendURL(nil, kindURL, idOf(t)))
	}
	if !back {
		return more
	}
	s.opt.Log.Warn("the clock was set back; waits go on from there", "now", time.UnixMilli(now).UTC())
	s.setHolds()
	if newest > now {
		s.discoverBy(now)
	}
	return more
}

// discoverBy has URLs that were discovered later than now be discovered just now. It looks
// at each.
func (s *Store) discoverBy(now int64) {
	s.apply()
	s.must(s.URLs("", "", func(r *Record) bool {
		if r.Created <= now {
			return true
		}
		was := schedule.URL{Name: r.URL, Due: r.Due, Created: r.Created}
		u := schedule.URL{Name: r.URL, Due: r.Due, Created: now / 1000 * 1000}
		if was.Due == was.Created { // nobody has fetched it yet
			u.Due = u.Created
		}
		q := s.sched.Lookup(r.Crawl, r.Key)
		held := q.Held(r.URL)
		s.sched.Amend(q, &was, u)
		s.setURL(r.ID, &u, r.Data)
		switch {
		case held != nil:
			s.setHold(schedule.Taken{Queue: q, URL: u}, held.Until)
		case u.Due != schedule.Completed:
			s.deleteWait(r.ID, was.Due)
			s.setWait(r.ID, &u)
		}
		if s.batch.Len() > largeBatch {
			s.apply()
		}
		return true
	}))
}

// Shift says that the clock was set, as [schedule.Schedule.Shift] does, and replaces the data of URLs that are
// known, which no other call changes meanwhile, and values: all of that, or nothing. It does that also where
// the disk is nearly full.
func (s *Store) Shift(by time.Duration, urls []Record, values ...Value) error {
	if err := s.lockForRelease(); err != nil {
		return err
	}
	var failed error
	was := make([]*schedule.URL, len(urls))
	for i, r := range urls { // it may apply the batch
		var err error
		was[i], _, err = s.known(r.ID)
		failed = cmp.Or(failed, err)
	}
	if failed == nil {
		s.shift(by)
		for i, r := range urls {
			if was[i] != nil {
				s.setURL(r.ID, was[i], r.Data)
			}
		}
		s.setValues(values)
	}
	s.end().Wait()
	return failed
}

func (s *Store) shift(by time.Duration) {
	if s.closed {
		return
	}
	s.sched.Shift(by.Milliseconds())
	s.setHolds()
}

// setHolds keeps until when URLs are held.
func (s *Store) setHolds() {
	for t, until := range s.sched.Held {
		s.setHold(t, until)
	}
}

// Now returns the time of the schedule in ms, 0 before the first. After a start it is when a
// queue was served last, however long that was before the kill.
func (s *Store) Now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sched.Now()
}
