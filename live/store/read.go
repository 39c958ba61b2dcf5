package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"ephemera/live/schedule"
)

// record returns what is known of a URL with all that was put, or nil. It is called with the lock.
func (s *Store) record(id schedule.ID) (*Record, error) {
	was, _, err := s.known(id)
	if was == nil || err != nil {
		return nil, err
	}
	data, err := s.data(id)
	return &Record{ID: id, Due: was.Due, Created: was.Created, Data: data}, err
}

// Look is Find with all that was put, also what is not on disk yet.
func (s *Store) Look(id schedule.ID) (*Record, error) {
	s.mu.Lock()
	defer s.end()
	return s.record(id)
}

// Record is what is kept of a URL.
type Record struct {
	schedule.ID
	Due     int64 // ms, or schedule.Completed
	Created int64 // ms
	Data    []byte
}

// get returns a copy of what is kept under a key, or nil.
func (s *Store) get(key []byte) ([]byte, error) {
	if err := s.read(); err != nil {
		return nil, err
	}
	defer s.reading.RUnlock()
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return bytes.Clone(value), nil
}

// Unfinished begins the name of a copy that is being made, or was when the program was killed. It is
// next to where the copy will be.
const Unfinished = ".unfinished-"

// Backup copies the store, as it is now on disk, to a directory that is not there yet. Files
// that do not change are linked where that is possible. The directory is there once the copy is whole.
func (s *Store) Backup(dir string) error {
	if err := s.read(); err != nil {
		return err
	}
	defer s.reading.RUnlock()
	fs, parent := s.opt.FS, s.opt.FS.PathDir(dir)
	if _, err := fs.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return cmp.Or(err, fmt.Errorf("%s is there already; a copy is made under a new name", dir))
	}
	making := fs.PathJoin(parent, Unfinished+fs.PathBase(dir))
	err := fs.RemoveAll(making) // what a kill left
	if err == nil {
		err = s.db.Checkpoint(making, pebble.WithFlushedWAL())
	}
	if err == nil {
		err = fs.Rename(making, dir)
	}
	if err != nil {
		return errors.Join(err, fs.RemoveAll(making))
	}
	d, err := fs.OpenDir(parent)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Find returns what is kept of a URL, or nil if it is not known. It may miss what was put and is not on disk yet.
func (s *Store) Find(id schedule.ID) (*Record, error) {
	r := &Record{ID: id}
	found, err := s.readURL(appendURL(nil, kindURL, id), r, bytes.Clone)
	if !found {
		return nil, err
	}
	return r, err
}

func (r *Record) read(value []byte) error {
	var seconds int64
	data, err := readNumbers(value, &r.Due, &seconds)
	r.Created, r.Data = seconds*1000, data
	return err
}

// scan calls f with the records from one key to another, until it returns false or
// an error, or the store is closed.
func (s *Store) scan(from, to []byte, f func(record, value []byte) (more bool, err error)) error {
	if err := s.read(); err != nil {
		return err
	}
	defer s.reading.RUnlock()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		select {
		case <-s.closing:
			return errClosed
		default:
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if more, err := f(it.Key(), value); err != nil || !more {
			return err
		}
	}
	return it.Error()
}

// each is scan with crawl and key of the records, and what follows them.
func (s *Store) each(from, to []byte, f func(crawl, key, rest, value []byte) (more bool, err error)) error {
	return s.scan(from, to, func(record, value []byte) (bool, error) {
		crawl, key, rest, err := names(record)
		if err != nil {
			return false, err
		}
		return f(crawl, key, rest, value)
	})
}

// URLs calls yield with the URLs of a queue, of a crawl if key is "", or of all if crawl is
// "", in the order of their keys, until it returns false. Record and data are good until
// yield returns.
func (s *Store) URLs(crawl, key string, yield func(*Record) bool) error {
	prefix := []byte{kindURL}
	if key != "" {
		prefix = appendQueue(nil, kindURL, crawl, &key)
	} else if crawl != "" {
		prefix = appendQueue(nil, kindURL, crawl, nil)
	}
	var r Record
	return s.each(prefix, after(prefix), func(crawl, key, url, value []byte) (bool, error) {
		r.ID = schedule.ID{Crawl: string(crawl), Key: string(key), URL: string(url)}
		err := r.read(value)
		return err == nil && yield(&r), err
	})
}

// Queues calls yield with the queues of a crawl in the order of their keys, and whether they are active:
// not blocked, and with a scheduled URL. It ends when yield returns false.
func (s *Store) Queues(crawl string, yield func(key string, active bool) bool) error {
	prefix := appendQueue(nil, kindQueue, crawl, nil)
	return s.each(prefix, after(prefix), func(_, key, _, _ []byte) (bool, error) {
		var there, active bool
		name := string(key)
		s.View(func(sched *schedule.Schedule) {
			if q := sched.Lookup(crawl, name); q != nil {
				there, active = true, q.Blocked <= sched.Now() && q.Counts().Active > 0
			}
		})
		return !there || yield(name, active), nil
	})
}

// View calls f with the schedule as it is now, but for what [Store.Settle] does. f must not change it.
func (s *Store) View(f func(*schedule.Schedule)) {
	s.mu.Lock()
	defer s.end()
	s.advance()
	f(s.sched)
}

// Crawls returns the names of the crawls, sorted.
func (s *Store) Crawls() []string {
	s.mu.Lock()
	names := s.sched.Crawls()
	s.mu.Unlock()
	slices.Sort(names)
	return names
}

// Limits returns what a queue is held to, if there is such a queue.
func (s *Store) Limits(crawl, key string) (l schedule.Limits, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.sched.Lookup(crawl, key)
	if q == nil {
		return l, false
	}
	return q.Limits, true
}

// Value returns a value that was kept under a name, or nil.
func (s *Store) Value(name string) ([]byte, error) {
	return s.get(append([]byte{kindValue}, name...))
}

// Values calls yield with the values whose names begin with a prefix and are not
// before another name, in their order, until it returns false.
func (s *Store) Values(prefix, from string, yield func(name string, data []byte) bool) error {
	end := after(append([]byte{kindValue}, prefix...))
	return s.scan(append([]byte{kindValue}, max(prefix, from)...), end, func(record, value []byte) (bool, error) {
		return yield(string(record[1:]), bytes.Clone(value)), nil
	})
}
