package store

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"maps"
	"strings"

	"ephemera/live/schedule"
)

func (s *Store) setURL(id schedule.ID, u *schedule.URL, data []byte) {
	s.key = appendURL(s.key[:0], kindURL, id)
	hash := s.hash(s.key)
	s.inBatch[hash[0]] = true
	s.written.add(hash[0])
	*s.recentOf(hash) = recentURL{hash, u.Due, u.Created}
	s.value = append(appendNumbers(s.value[:0], u.Due, u.Created/1000), data...)
	s.batch.Set(s.key, s.value, nil)
}

func (s *Store) setQueue(q *schedule.Queue) {
	s.key = appendQueue(s.key[:0], kindQueue, q.Crawl(), &q.Key)
	s.value = appendKept(s.value[:0], q.Kept())
	s.batch.Set(s.key, s.value, nil)
}

func idOf(t schedule.Taken) schedule.ID {
	return schedule.ID{Crawl: t.Queue.Crawl(), Key: t.Queue.Key, URL: t.URL.Name}
}

// setWait keeps that a URL waits.
func (s *Store) setWait(id schedule.ID, u *schedule.URL) {
	s.key = appendWait(s.key[:0], id.Crawl, id.Key, u.Due, id.URL)
	s.value = appendNumbers(s.value[:0], u.Created/1000)
	s.batch.Set(s.key, s.value, nil)
}

func (s *Store) deleteWait(id schedule.ID, due int64) {
	s.key = appendWait(s.key[:0], id.Crawl, id.Key, due, id.URL)
	s.batch.Delete(s.key, nil)
}

// setHold keeps that a URL is held.
func (s *Store) setHold(t schedule.Taken, until int64) {
	s.key = appendURL(s.key[:0], kindHold, idOf(t))
	s.value = appendNumbers(s.value[:0], until, t.URL.Due, t.URL.Created/1000)
	s.batch.Set(s.key, s.value, nil)
}

func (s *Store) deleteHold(id schedule.ID) {
	s.key = appendURL(s.key[:0], kindHold, id)
	s.batch.Delete(s.key, nil)
}

// known returns what is known of a URL, or nil, and whether it is held. It is called with the
// lock, which it gives up while it reads.
func (s *Store) known(id schedule.ID) (was *schedule.URL, held bool, err error) {
	key := appendURL(make([]byte, 0, 256), kindURL, id)
	for optimistic := true; ; optimistic = false {
		hash := s.hash(key) // which deletes change
		q := s.sched.Lookup(id.Crawl, id.Key)
		if q == nil {
			return nil, false, nil
		}
		if h := q.Held(id.URL); h != nil {
			return &h.URL, true, nil
		}
		if r := s.recentOf(hash); r.hash == hash {
			return &schedule.URL{Name: id.URL, Due: r.due, Created: r.created}, false, nil
		}
		if q.New && !s.written.has(hash[0]) {
			return nil, false, nil
		}
		if s.inBatch[hash[0]] {
			s.apply()
		} else if s.inFlight[hash[0]] {
			s.land()
		}
		applied := s.applied
		if optimistic {
			s.mu.Unlock()
		}
		var r Record
		found, err := s.readURL(key, &r, nil)
		if optimistic {
			s.mu.Lock()
		}
		switch {
		case s.closed:
			return nil, false, errClosed
		case err != nil:
			return nil, false, err
		case applied != s.applied || s.inBatch[hash[0]] || q != s.sched.Lookup(id.Crawl, id.Key):
			continue // it may have changed meanwhile
		case !found:
			return nil, false, nil
		}
		*s.recentOf(hash) = recentURL{hash, r.Due, r.Created}
		return &schedule.URL{Name: id.URL, Due: r.Due, Created: r.Created}, false, nil
	}
}

// put schedules a URL anew, or completes it, and keeps that.
func (s *Store) put(id schedule.ID, was *schedule.URL, held bool, u schedule.URL, data []byte) {
	s.notSoon(id)
	s.set(id, was, held, u, data)
}

// notSoon forgets that a URL was hastened.
func (s *Store) notSoon(id schedule.ID) {
	if len(s.soon) == 0 {
		return
	}
	if s.key = appendURL(s.key[:0], kindSoon, id); s.soon[string(s.key)] {
		delete(s.soon, string(s.key))
		s.batch.Delete(s.key, nil)
	}
}

// set is put of a URL that stays hastened if it is.
func (s *Store) set(id schedule.ID, was *schedule.URL, held bool, u schedule.URL, data []byte) {
	s.sched.Put(s.sched.Ensure(id.Crawl, id.Key), was, u)
	waits := was != nil && !held && was.Due != schedule.Completed
	switch {
	case held:
		s.deleteHold(id)
	case waits && was.Due != u.Due:
		s.deleteWait(id, was.Due)
	}
	s.setURL(id, &u, data)
	if u.Due != schedule.Completed && !(waits && was.Due == u.Due) {
		s.setWait(id, &u)
	}
}

// Discover schedules a URL that is not known yet, and reports whether it was so.
func (s *Store) Discover(id schedule.ID, due, created int64, data []byte) (bool, *Commit, error) {
	if err := s.lockForWrite(); err != nil {
		return false, nil, err
	}
	was, _, err := s.known(id)
	if was == nil && err == nil {
		s.put(id, nil, false, schedule.URL{Name: id.URL, Due: due, Created: created / 1000 * 1000}, data)
	}
	return was == nil && err == nil, s.end(), err
}

// Value is a value of the caller's. One without data is forgotten.
type Value struct {
	Name string
	Data []byte
}

// Put schedules a URL anew, or completes it, and replaces its data. Its hold ends.
// One that is not known yet becomes known at the time created. Values are kept with
// it: all of that, or nothing.
func (s *Store) Put(id schedule.ID, due, created int64, data []byte, values ...Value) (*Commit, error) {
	return s.PutLate(id, created, func() (int64, []byte) { return due, data }, values...)
}

// PutLate is Put of what f returns. It calls f, which must not call the store, only if
// that will be kept.
func (s *Store) PutLate(
	id schedule.ID, created int64, f func() (due int64, data []byte), values ...Value,
) (*Commit, error) {
	if err := s.lockForWrite(); err != nil {
		return nil, err
	}
	was, held, err := s.known(id)
	if err != nil {
		return s.end(), err
	}
	due, data := f()
	u := schedule.URL{Name: id.URL, Due: due, Created: created / 1000 * 1000}
	if was != nil {
		u.Created = was.Created
	}
	s.put(id, was, held, u, data)
	s.setValues(values)
	return s.end(), nil
}

// data returns what the caller keeps of a URL that is known. It is called with the lock.
func (s *Store) data(id schedule.ID) ([]byte, error) {
	key := appendURL(nil, kindURL, id)
	if hash := s.hash(key); s.inBatch[hash[0]] {
		s.apply()
	} else if s.inFlight[hash[0]] {
		s.land()
	}
	var r Record
	_, err := s.readURL(key, &r, bytes.Clone)
	return r.Data, err
}

// SetData replaces the data of a URL, if it is known, and nothing else.
func (s *Store) SetData(id schedule.ID, data []byte) (*Commit, error) {
	if err := s.lockForWrite(); err != nil {
		return nil, err
	}
	was, _, err := s.known(id)
	if was != nil {
		s.setURL(id, was, data)
	}
	return s.end(), err
}

// ChangeData is SetData of what f returns for the record as it is now. f must not call the store.
func (s *Store) ChangeData(id schedule.ID, f func(*Record) ([]byte, error)) (*Commit, error) {
	if err := s.lockForWrite(); err != nil {
		return nil, err
	}
	r, err := s.record(id)
	if r != nil && err == nil {
		var data []byte
		if data, err = f(r); err == nil {
			s.setURL(id, &schedule.URL{Name: id.URL, Due: r.Due, Created: r.Created}, data)
		}
	}
	return s.end(), err
}

// Hasten makes URLs due now, and returns the places of those that are not known or
// completed. It leaves URLs that are held, and those that are due, so that these keep their places in
// their queues. After a start they are due again when they were to be
// before: whoever hastens does it again.
func (s *Store) Hasten(ids []schedule.ID) (gone []int, err error) {
	if err := s.lockForWrite(); err != nil {
		return nil, err
	}
	defer s.end()
	s.advance()
	now := s.moment.Time.UnixMilli()
	for i, id := range ids {
		was, held, err := s.known(id)
		switch {
		case err != nil:
			return gone, err
		case was == nil || was.Due == schedule.Completed:
			gone = append(gone, i)
		case !held && was.Due > now:
			data, err := s.data(id)
			if err != nil {
				return gone, err
			}
			if s.key = appendURL(s.key[:0], kindSoon, id); !s.soon[string(s.key)] {
				s.soon[string(s.key)] = true
				s.batch.Set(s.key, appendNumbers(nil, was.Due), nil)
			}
			s.set(id, was, false, schedule.URL{Name: id.URL, Due: now, Created: was.Created}, data)
		}
	}
	return gone, nil
}

// Change changes the limits of a queue, and reports whether there is such a queue.
func (s *Store) Change(crawl, key string, change func(*schedule.Limits)) (bool, *Commit, error) {
	if err := s.lockForWrite(); err != nil {
		return false, nil, err
	}
	q := s.sched.Lookup(crawl, key)
	if q != nil {
		l := q.Limits
		change(&l)
		s.sched.SetLimits(q, l)
	}
	return q != nil, s.end(), nil
}

// SetDelay changes the delay of queues without one of their own, ms.
func (s *Store) SetDelay(delay int64) error {
	if err := s.lockForWrite(); err != nil {
		return err
	}
	s.sched.SetDelay(delay)
	s.batch.Set([]byte{kindQueue}, appendNumbers(nil, delay), nil)
	s.end().Wait()
	return nil
}

// Remove forgets a queue, or a crawl if key is nil, and returns how many URLs it had.
func (s *Store) Remove(crawl string, key *string) (n int, err error) {
	if err := s.lockForRelease(); err != nil {
		return 0, err
	}
	n, sweep := s.sched.Remove(crawl, key)
	soon := string(appendQueue(nil, kindSoon, crawl, key))
	maps.DeleteFunc(s.soon, func(url string, _ bool) bool { return strings.HasPrefix(url, soon) })
	for _, kind := range []byte{kindURL, kindWait, kindHold, kindSoon, kindQueue} {
		from := appendQueue(nil, kind, crawl, key)
		s.batch.DeleteRange(from, after(from), nil)
	}
	s.apply() // which URLs are in it is not known
	s.seed[1] = maphash.MakeSeed()
	commit := s.end()
	s.mu.Lock()
	sweep(func() {
		s.mu.Unlock() // others get at the schedule
		s.mu.Lock()
	})
	s.mu.Unlock()
	commit.Wait()
	return n, nil
}

// RemoveBefore forgets the URLs of a queue, or of a crawl if key is "", that became
// known before a time, and calls removed with each. It returns how many they were; the queues stay.
func (s *Store) RemoveBefore(crawl, key string, created int64, removed func(schedule.ID)) (n int, err error) {
	if err := s.lockForRelease(); err != nil {
		return 0, err
	}
	s.apply()
	commit := s.end()
	var failed error
	err = s.URLs(crawl, key, func(r *Record) bool {
		if r.Created >= created {
			return true
		}
		if failed = s.lockForRelease(); failed != nil {
			return false
		}
		was, held, err := s.known(r.ID)
		old := was != nil && was.Created < created // it was not removed meanwhile
		if old {
			n++
			s.notSoon(r.ID)
			s.sched.Drop(s.sched.Lookup(crawl, r.Key), was)
			switch {
			case held:
				s.deleteHold(r.ID)
			case was.Due != schedule.Completed:
				s.deleteWait(r.ID, was.Due)
			}
			s.key = appendURL(s.key[:0], kindURL, r.ID)
			s.mark(s.key)
			*s.recentOf(s.hash(s.key)) = recentURL{}
			s.batch.Delete(s.key, nil)
		}
		if commit, failed = s.end(), err; old {
			removed(r.ID)
		}
		return failed == nil
	})
	commit.Wait()
	return n, cmp.Or(err, failed)
}

// SetValue keeps a value of the caller's.
func (s *Store) SetValue(name string, data []byte) error { return s.Set(Value{name, data}) }

// SetOnFullDisk keeps a small value that helps to make room, also where the disk is nearly full.
func (s *Store) SetOnFullDisk(name string, data []byte) error {
	return s.setLocked(s.lockForRelease(), Value{name, data})
}

// Set keeps values of the caller's, all or none.
func (s *Store) Set(values ...Value) error { return s.setLocked(s.lockForWrite(), values...) }

// setLocked sets values if the lock was taken without an error, and unlocks.
func (s *Store) setLocked(err error, values ...Value) error {
	if err != nil {
		return err
	}
	s.setValues(values)
	s.end().Wait()
	return nil
}

func (s *Store) setValues(values []Value) {
	for _, v := range values {
		s.key = append(append(s.key[:0], kindValue), v.Name...)
		if len(v.Data) == 0 {
			s.batch.Delete(s.key, nil)
		} else {
			s.batch.Set(s.key, v.Data, nil)
		}
	}
}
