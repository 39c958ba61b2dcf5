package store

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"ephemera/live/schedule"
)

// After implements [schedule.Disk].
func (s *Store) After(q *schedule.Queue, place schedule.URL, n int) (found []schedule.URL, err error) {
	if s.land(); !s.batch.Empty() {
		s.apply()
	}
	end := after(appendQueue(nil, kindWait, q.Crawl(), &q.Key))
	from := append(appendWait(nil, q.Crawl(), q.Key, place.Due, place.Name), 0)
	err = s.each(from, end, func(_, _, rest, value []byte) (bool, error) {
		due, name, err := readWait(rest)
		u := schedule.URL{Name: name, Due: due}
		if err == nil {
			_, err = readNumbers(value, &u.Created)
			u.Created *= 1000
		}
		found = append(found, u)
		return len(found) < n, err
	})
	if err != nil {
		return nil, explain(s.dir, err)
	}
	return found, nil
}

// Held reports whether a URL was handed out and not put back, and its hold is not over.
func (s *Store) Held(id schedule.ID) bool {
	s.mu.Lock()
	defer s.end()
	s.advance()
	h := s.sched.Lookup(id.Crawl, id.Key).Held(id.URL)
	return h != nil && h.Until > s.sched.Now()
}

// Settle ends all holds that are over, and has all queues be ready whose time has come, part after part,
// so that others get at the schedule in between.
func (s *Store) Settle() error {
	for more := true; more; {
		if err := s.lockForWrite(); err != nil {
			return err
		}
		more = s.advance()
		s.end()
	}
	return nil
}

// Take hands out n URLs at most that are due, as [schedule.Schedule.Take] does, and returns
// when their holds are on disk. It takes part after part, so that others get at the schedule in
// between, and waits for the disk once. A request that finds less than it wants goes on until the schedule
// is settled.
func (s *Store) Take(r *schedule.Request, n int) (records []Record, err error) {
	var commit *Commit // of the last holds, which are on disk after all others
	for more := true; more && err == nil; {
		var last *Commit
		if records, last, more, err = s.take(records, r, n); last != nil {
			commit = last
		}
	}
	if len(records) == 0 {
		return nil, err
	}
	commit.Wait()
	if err != nil { // the next call says so
		s.opt.Log.Error("some URLs that are due are not handed out", "error", err)
	}
	if err := s.readData(records); err != nil {
		return nil, err
	}
	return records, nil
}

// takenAtOnce is how many URLs are taken under one lock at most.
const takenAtOnce = 1000

// take takes a part of n records, without their data, and reports whether there may be more of them. The
// commit is that of the holds.
func (s *Store) take(records []Record, r *schedule.Request, n int) ([]Record, *Commit, bool, error) {
	if err := s.lockForWrite(); err != nil {
		return records, nil, false, err
	}
	over := s.advance()
	part := min(n-len(records), takenAtOnce)
	more, err := s.sched.Take(r, part, func(t schedule.Taken, until int64) {
		id := idOf(t)
		records = append(records, Record{ID: id, Due: t.URL.Due, Created: t.URL.Created})
		s.deleteWait(id, t.URL.Due)
		s.setHold(t, until)
		s.key[0] = kindURL // the key is that of the hold but for the kind
		s.mark(s.key)
	})
	more = len(records) < n && (more || over && r.WantsQueue())
	return records, s.end(), more, err
}

// dense is how many records of a queue, in the mean, are read at once by going from one to the next.
const dense = 16

// readData reads the data of records. A URL that was removed meanwhile has none.
func (s *Store) readData(records []Record) (err error) {
	queues := 1
	for i := 1; i < len(records); i++ {
		if records[i].Key != records[i-1].Key || records[i].Crawl != records[i-1].Crawl {
			queues++
		}
	}
	if len(records) < dense*queues {
		var key []byte
		for i := range records {
			key = appendURL(key[:0], kindURL, records[i].ID)
			var kept Record
			if _, err := s.readURL(key, &kept, bytes.Clone); err != nil {
				return err
			}
			records[i].Data = kept.Data
		}
		return nil
	}
	keys, order := make([][]byte, len(records)), make([]int, len(records))
	for i := range records {
		keys[i], order[i] = appendURL(nil, kindURL, records[i].ID), i
	}
	slices.SortFunc(order, func(i, j int) int { return bytes.Compare(keys[i], keys[j]) })
	if err := s.read(); err != nil {
		return err
	}
	defer s.reading.RUnlock()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kindURL}, UpperBound: []byte{kindURL + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for _, i := range order {
		if !it.SeekGE(keys[i]) {
			return it.Error()
		}
		if !bytes.Equal(it.Key(), keys[i]) {
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		var kept Record
		if err := kept.read(value); err != nil {
			return err
		}
		records[i].Data = bytes.Clone(kept.Data)
	}
	return nil
}

// readURL reads the record of a URL with that key, if there is one, and what keep returns of
// its data; none if keep is nil.
func (s *Store) readURL(key []byte, r *Record, keep func([]byte) []byte) (found bool, err error) {
	if err := s.read(); err != nil {
		return false, err
	}
	defer s.reading.RUnlock()
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer closer.Close()
	if err = r.read(value); keep == nil {
		r.Data = nil
	} else {
		r.Data = keep(r.Data)
	}
	return true, err
}
