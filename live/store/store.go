// Package store keeps a [schedule.Schedule] on disk, in Pebble.
//
//  1. A call changes the schedule in memory and appends what is to be kept to a
//     batch, both under one lock. It returns a [Commit], on which the caller waits
//     before it tells anybody.
//  2. One goroutine writes and syncs the batch while the next one fills: one sync
//     serves all callers that wait.
//  3. [Open] reads everything back: URLs, holds, blocks, delays, limits. It finds out
//     whether all that was acknowledged is there (receipt.go).
//
// What was committed is kept whatever happens, and what was not is kept or lost in
// the order of the calls. When the disk is nearly full, calls that write return
// [ErrFull] and change nothing. An error of the disk while writing ends the program
// by a panic, as memory and disk would differ from there on; the next start has what
// was committed.
package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"ephemera/live/schedule"
)

// ErrFull is returned by calls that write while the disk is nearly full.
var ErrFull = errors.New("store: the disk is nearly full; nothing is written until there is room")

const (
	// maxBatch is how many bytes wait for the disk at most before callers do.
	maxBatch = 16 << 20
	// reserve is how many free bytes of the disk are left, of a small disk a
	// quarter: for what is not written yet, and for what Pebble rewrites.
	reserve = 256 << 20
	// lookEvery is how long another program has to use them up unseen.
	lookEvery = 50 * time.Millisecond
)

// Options are the settings of a store.
type Options struct {
	Delay  int64 // of queues without one of their own, in a new store; ms
	Cache  int64 // bytes of records that are kept in memory; 0 stands for 64 MiB
	Log    *slog.Logger
	FS     vfs.FS              // nil is that of the system
	Synced func(time.Duration) // is given how long each sync took; may be nil
	// Sync is how long a commit may be acknowledged before it is synced: 0 syncs each commit
	// before, and Never leaves it to the system.
	Sync time.Duration
}

// Never is [Options].Sync of a store that is never synced.
const Never = time.Duration(math.MaxInt64)

// Store is a schedule on disk. Its methods may be called at once.
type Store struct {
	opt Options
	db  *pebble.DB
	dir string

	mu      sync.Mutex
	room    sync.Cond // the batch was taken over by the writer
	sched   *schedule.Schedule
	batch   *pebble.Batch
	pending *Commit // of batch
	last    *Commit // of the batch before, if any
	full    bool
	looked  time.Time
	closed  bool
	key     []byte // scratch
	value   []byte

	commits  int64 // up to the last batch that was begun to be written
	lost     error
	receipts vfs.File // of the writer

	work     chan struct{} // the batch is not empty
	closing  chan struct{}
	closer   sync.WaitGroup
	unsynced atomic.Bool // something was acknowledged since the last sync
}

// Commit is the writing of what a call changed; nil is that of nothing.
type Commit struct{ done chan struct{} }

func newCommit() *Commit { return &Commit{make(chan struct{})} }

// Wait returns when it is on disk.
func (c *Commit) Wait() {
	if c != nil {
		<-c.done
	}
}

// Open opens the store in a directory, and makes it where it is missing.
func Open(dir string, o *Options) (*Store, error) {
	s := &Store{dir: dir, work: make(chan struct{}, 1), closing: make(chan struct{}), pending: newCommit()}
	if o != nil {
		s.opt = *o
	}
	s.opt.Cache = cmp.Or(s.opt.Cache, 64<<20)
	s.opt.Log = cmp.Or(s.opt.Log, slog.New(slog.DiscardHandler))
	s.opt.FS = cmp.Or(s.opt.FS, vfs.Default)
	s.room.L = &s.mu
	po := &pebble.Options{
		FS: s.opt.FS, CacheSize: s.opt.Cache, MemTableSize: 32 << 20,
		FormatMajorVersion: pebble.FormatNewest, Logger: &pebbleLog{log: s.opt.Log, said: map[string]time.Time{}},
		// Whoever reads what is damaged gets an error.
		EventListener: &pebble.EventListener{DataCorruption: func(i pebble.DataCorruptionInfo) {
			s.opt.Log.Error("a file of the store is damaged", "file", i.Path, "error", i.Details)
		}},
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	var err error
	if s.db, err = pebble.Open(dir, po); err != nil {
		return nil, explain(dir, err)
	}
	s.batch = s.db.NewBatch()
	err = s.openFormat()
	if err == nil {
		err = s.load()
	}
	if err == nil {
		err = s.openReceipt()
	}
	if err != nil {
		s.db.Close()
		return nil, explain(dir, err)
	}
	s.closer.Go(s.write)
	if s.opt.Sync > 0 && s.opt.Sync < Never {
		s.closer.Go(func() { s.syncEvery(s.opt.Sync) })
	}
	return s, nil
}

// pebbleLog hands Pebble's messages on. Pebble tries again at once what failed, a thousand
// times a second on a full disk: an error that differs from an earlier one in its numbers
// alone is said once an hour.
type pebbleLog struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time // errors without their numbers, and when each was said
}

// sayAgain is after how long an error is said that was said before.
const sayAgain = time.Hour

var number = regexp.MustCompile(`[0-9]+`)

func (l *pebbleLog) Infof(f string, args ...any) { l.log.Debug(fmt.Sprintf(f, args...)) }

func (l *pebbleLog) Errorf(f string, args ...any) {
	text := fmt.Sprintf(f, args...)
	kind, now := number.ReplaceAllString(text, ""), time.Now()
	l.mu.Lock()
	at, before := l.said[kind]
	again := !before || now.Sub(at) >= sayAgain
	if again {
		l.said[kind] = now
	}
	l.mu.Unlock()
	if again {
		l.log.Error(text)
	}
}

func (l *pebbleLog) Fatalf(f string, args ...any) { panic("store: " + fmt.Sprintf(f, args...)) }

// Close waits for what is being written, and closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.work)
	close(s.closing)
	s.closer.Wait()
	return errors.Join(s.receipts.Close(), s.db.Close())
}

// write commits batches as long as there are any.
func (s *Store) write() {
	for range s.work {
		s.mu.Lock()
		b, c := s.batch, s.pending
		s.batch, s.pending, s.last = s.db.NewBatch(), newCommit(), c
		s.commits++
		b.Set([]byte{kindCommits}, appendNumbers(nil, s.commits), nil)
		r := s.receipt()
		s.room.Broadcast()
		s.mu.Unlock()

		began := time.Now()
		how := pebble.NoSync
		if s.opt.Sync == 0 {
			how = pebble.Sync
		}
		s.must(b.Commit(how))
		b.Close()
		if _, err := s.receipts.WriteAt(r.line(), 0); err != nil {
			s.opt.Log.Debug("no receipt is written", "error", err)
		}
		close(c.done)
		if s.opt.Sync == 0 {
			s.synced(began)
		} else {
			s.unsynced.Store(true)
		}
	}
}

// must ends the program after an error of the disk.
func (s *Store) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("store %s: %v", s.dir, err))
	}
}

func (s *Store) synced(began time.Time) {
	if s.opt.Synced != nil {
		s.opt.Synced(time.Since(began))
	}
}

// syncEvery syncs what was acknowledged before, until the store is closed.
func (s *Store) syncEvery(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
			if s.unsynced.Swap(false) {
				began := time.Now()
				s.must(s.db.LogData(nil, pebble.Sync))
				s.synced(began)
			}
		}
	}
}

// measureDisk notes whether the disk is nearly full, if it has not just been looked at.
func (s *Store) measureDisk() {
	if time.Since(s.looked) < lookEvery {
		return
	}
	s.looked = time.Now()
	u, err := s.opt.FS.GetDiskUsage(s.dir)
	s.full = err == nil && u.AvailBytes < min(reserve, u.TotalBytes/4)
}

// Full reports whether the disk is nearly full, so that nothing is written.
func (s *Store) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measureDisk()
	return s.full
}

var errClosed = errors.New("store: closed")

// lockForWrite locks the store for a call that writes.
func (s *Store) lockForWrite() error {
	s.mu.Lock()
	for s.batch.Len() > maxBatch && !s.closed {
		s.room.Wait()
	}
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	if s.measureDisk(); s.full {
		s.mu.Unlock()
		return ErrFull
	}
	return nil
}

// end unlocks it. The commit is that of all that was written up to here.
func (s *Store) end() *Commit {
	defer s.mu.Unlock()
	if s.batch.Empty() || s.closed {
		return s.last
	}
	select {
	case s.work <- struct{}{}:
	default:
	}
	return s.pending
}

func (s *Store) setURL(id schedule.ID, u *schedule.URL, data []byte) {
	s.key = appendURL(s.key[:0], kindURL, id)
	s.value = append(appendNumbers(s.value[:0], u.Due, u.Created()/1000), data...)
	s.batch.Set(s.key, s.value, nil)
}

func (s *Store) setQueue(q *schedule.Queue) {
	s.key = appendQueue(s.key[:0], kindQueue, q.Crawl(), &q.Key)
	s.value = appendLimits(s.value[:0], q.Limits)
	s.batch.Set(s.key, s.value, nil)
}

func idOf(t schedule.Taken) schedule.ID {
	return schedule.ID{Crawl: t.Queue.Crawl(), Key: t.Queue.Key, URL: t.URL.Name}
}

// setHold keeps when a hold ends, or that it has ended if until is 0.
func (s *Store) setHold(t schedule.Taken, until int64) {
	s.key = appendURL(s.key[:0], kindHold, idOf(t))
	if until == 0 {
		s.batch.Delete(s.key, nil)
		return
	}
	s.value = appendNumbers(s.value[:0], until)
	s.batch.Set(s.key, s.value, nil)
}

// advance brings the schedule to a time, and keeps what is otherwise by that.
func (s *Store) advance(now int64) {
	ended, back := s.sched.Advance(now)
	if s.closed {
		return
	}
	for _, t := range ended {
		s.setHold(t, 0)
	}
	if !back {
		return
	}
	s.opt.Log.Warn("the clock was set back; waits go on from there", "time", time.UnixMilli(now).UTC())
	s.setLasts()
}

// Shift says that the clock was set, as [schedule.Schedule.Shift] does.
func (s *Store) Shift(by time.Duration) {
	s.mu.Lock()
	defer s.end()
	if s.closed {
		return
	}
	s.sched.Shift(by.Milliseconds())
	s.setLasts()
}

// setLasts keeps until when URLs are held, and when queues were served.
func (s *Store) setLasts() {
	for t, until := range s.sched.Held {
		s.setHold(t, until)
	}
	for _, crawl := range s.sched.Crawls() {
		for _, q := range s.sched.QueuesOf(crawl) {
			s.setQueue(q)
		}
	}
}

// ensure returns the queue of a URL.
func (s *Store) ensure(id schedule.ID) *schedule.Queue {
	q, created := s.sched.Ensure(id.Crawl, id.Key, nil)
	if created {
		s.setQueue(q)
	}
	return q
}

// Discover schedules a URL that is not known yet, and reports whether it was so.
func (s *Store) Discover(id schedule.ID, due, created int64, data []byte) (bool, *Commit, error) {
	if err := s.lockForWrite(); err != nil {
		return false, nil, err
	}
	q := s.ensure(id)
	unknown := q.Find(id.URL) == nil
	if unknown {
		s.setURL(id, s.sched.Put(q, id.URL, due, created), data)
	}
	return unknown, s.end(), nil
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
	due, data := f()
	q := s.ensure(id)
	if u := q.Find(id.URL); u != nil && s.sched.Until(u) > 0 {
		s.key = appendURL(s.key[:0], kindHold, id)
		s.batch.Delete(s.key, nil)
	}
	s.setURL(id, s.sched.Put(q, id.URL, due, created), data)
	s.setValues(values)
	return s.end(), nil
}

// SetData replaces the data of a URL, if it is known, and nothing else.
func (s *Store) SetData(id schedule.ID, data []byte) (*Commit, error) {
	if err := s.lockForWrite(); err != nil {
		return nil, err
	}
	if u := s.sched.Lookup(id.Crawl, id.Key).Find(id.URL); u != nil {
		s.setURL(id, u, data)
	}
	return s.end(), nil
}

// Hasten makes URLs due now, and returns the places of those that are not known or
// completed. It leaves URLs that are held. It is not kept: whoever hastens does it
// again after a start.
func (s *Store) Hasten(ids []schedule.ID, now int64) (gone []int) {
	s.mu.Lock()
	defer s.end()
	s.advance(now)
	for i, id := range ids {
		q := s.sched.Lookup(id.Crawl, id.Key)
		u := q.Find(id.URL)
		switch {
		case u == nil || u.Due == schedule.Completed:
			gone = append(gone, i)
		case s.sched.Until(u) == 0:
			s.sched.Put(q, id.URL, now, u.Created())
		}
	}
	return gone
}

// Record is what is kept of a URL.
type Record struct {
	schedule.ID
	Due     int64 // ms, or schedule.Completed
	Created int64 // ms
	Data    []byte
}

// Take hands out URLs that are due, as [schedule.Schedule.Take] does, and returns
// when their holds are on disk.
func (s *Store) Take(r schedule.Request) (records []Record, queues int, err error) {
	if err := s.lockForWrite(); err != nil {
		return nil, 0, err
	}
	s.advance(r.Now)
	taken := s.sched.Take(nil, r)
	records = make([]Record, len(taken))
	for i, t := range taken {
		records[i] = Record{ID: idOf(t), Due: t.URL.Due, Created: t.URL.Created()}
		s.setHold(t, s.sched.Until(t.URL))
		if i == 0 || taken[i-1].Queue != t.Queue {
			queues++
			s.setQueue(t.Queue)
		}
	}
	s.end().Wait()
	for i := range records {
		// A URL that was removed meanwhile has no data.
		if kept, err := s.Find(records[i].ID); err != nil {
			return nil, 0, err
		} else if kept != nil {
			records[i].Data = kept.Data
		}
	}
	return records, queues, nil
}

// get returns a copy of what is kept under a key, or nil.
func (s *Store) get(key []byte) ([]byte, error) {
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

// Backup copies the store, as it is now on disk, to a directory that is not there yet. Files
// that do not change are linked where that is possible.
func (s *Store) Backup(dir string) error {
	return s.db.Checkpoint(dir, pebble.WithFlushedWAL())
}

// Find returns what is kept of a URL, or nil if it is not known.
func (s *Store) Find(id schedule.ID) (*Record, error) {
	value, err := s.get(appendURL(nil, kindURL, id))
	if value == nil {
		return nil, err
	}
	r := &Record{ID: id}
	return r, r.read(value)
}

func (r *Record) read(value []byte) error {
	var seconds int64
	data, err := readNumbers(value, &r.Due, &seconds)
	r.Created, r.Data = seconds*1000, data
	return err
}

// scan calls f with the records from one key to another, until it returns false or
// an error.
func (s *Store) scan(from, to []byte, f func(record, value []byte) (more bool, err error)) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if more, err := f(it.Key(), it.Value()); err != nil || !more {
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

// URLs calls yield with the URLs of a queue, or of a crawl if key is "", in the
// order of their keys, until it returns false. Record and data are good until yield
// returns.
func (s *Store) URLs(crawl, key string, yield func(*Record) bool) error {
	k := &key
	if key == "" {
		k = nil
	}
	prefix := appendQueue(nil, kindURL, crawl, k)
	var r Record
	return s.each(prefix, after(prefix), func(crawl, key, url, value []byte) (bool, error) {
		r.ID = schedule.ID{Crawl: string(crawl), Key: string(key), URL: string(url)}
		err := r.read(value)
		return err == nil && yield(&r), err
	})
}

// Queues calls yield with the queues of a crawl in the order of their keys, until
// it returns false. The schedule is locked meanwhile.
func (s *Store) Queues(now int64, crawl string, yield func(*schedule.Queue) bool) error {
	prefix := appendQueue(nil, kindQueue, crawl, nil)
	return s.each(prefix, after(prefix), func(_, key, _, _ []byte) (more bool, err error) {
		s.View(now, func(sched *schedule.Schedule) {
			q := sched.Lookup(crawl, string(key))
			more = q == nil || yield(q)
		})
		return more, nil
	})
}

// View calls f with the schedule at a time. f must not change it.
func (s *Store) View(now int64, f func(*schedule.Schedule)) {
	s.mu.Lock()
	defer s.end()
	s.advance(now)
	f(s.sched)
}

// Crawls returns the names of the crawls, sorted.
func (s *Store) Crawls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.sched.Crawls()))
}

// Change changes the limits of a queue, and reports whether there is such a queue.
func (s *Store) Change(crawl, key string, change func(*schedule.Limits)) (bool, error) {
	if err := s.lockForWrite(); err != nil {
		return false, err
	}
	q := s.sched.Lookup(crawl, key)
	if q != nil {
		l := q.Limits
		change(&l)
		s.sched.SetLimits(q, l)
		s.setQueue(q)
	}
	s.end().Wait()
	return q != nil, nil
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
	if err := s.lockForWrite(); err != nil {
		return 0, err
	}
	var queues []*schedule.Queue
	if key == nil {
		queues = s.sched.QueuesOf(crawl)
	} else if q := s.sched.Lookup(crawl, *key); q != nil {
		queues = append(queues, q)
	}
	for _, q := range queues {
		n += s.sched.RemoveQueue(q)
	}
	for _, kind := range []byte{kindURL, kindHold, kindQueue} {
		from := appendQueue(nil, kind, crawl, key)
		s.batch.DeleteRange(from, after(from), nil)
	}
	s.end().Wait()
	return n, nil
}

// RemoveBefore forgets the URLs of a queue, or of a crawl if key is "", that became
// known before a time. It returns how many they were; the queues stay.
func (s *Store) RemoveBefore(crawl, key string, created int64) (n int, err error) {
	s.mu.Lock()
	queues := s.sched.QueuesOf(crawl)
	s.mu.Unlock()
	var commit *Commit
	for _, q := range queues {
		if key != "" && key != q.Key {
			continue
		}
		if err := s.lockForWrite(); err != nil {
			return n, err
		}
		if q == s.sched.Lookup(crawl, q.Key) { // it was not removed meanwhile
			for _, url := range s.sched.RemoveBefore(q, created) {
				n++
				for _, kind := range []byte{kindURL, kindHold} {
					s.key = appendURL(s.key[:0], kind, schedule.ID{Crawl: crawl, Key: q.Key, URL: url})
					s.batch.Delete(s.key, nil)
				}
			}
		}
		commit = s.end()
	}
	commit.Wait()
	return n, nil
}

// SetValue keeps a value of the caller's.
func (s *Store) SetValue(name string, data []byte) error { return s.Set(Value{name, data}) }

// Set keeps values of the caller's, all or none.
func (s *Store) Set(values ...Value) error {
	if err := s.lockForWrite(); err != nil {
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

// load reads the schedule.
func (s *Store) load() error {
	s.sched = schedule.New(s.opt.Delay)
	delay, err := s.get([]byte{kindQueue})
	if err == nil && delay != nil {
		_, err = readNumbers(delay, &s.opt.Delay)
		s.sched.SetDelay(s.opt.Delay)
	}
	if err != nil {
		return err
	}
	err = s.each([]byte{kindQueue, 0}, []byte{kindQueue + 1}, func(crawl, key, _, value []byte) (bool, error) {
		limits, err := readLimits(value)
		s.sched.Ensure(string(crawl), string(key), &limits)
		return true, err
	})
	if err != nil {
		return err
	}
	var q *schedule.Queue
	queue := func(crawl, key []byte) *schedule.Queue {
		if q == nil || q.Key != string(key) || q.Crawl() != string(crawl) {
			q, _ = s.sched.Ensure(string(crawl), string(key), nil)
		}
		return q
	}
	err = s.each([]byte{kindURL}, []byte{kindURL + 1}, func(crawl, key, url, value []byte) (bool, error) {
		var due, created int64
		_, err := readNumbers(value, &due, &created)
		s.sched.Restore(queue(crawl, key), string(url), due, created*1000)
		return true, err
	})
	if err != nil {
		return err
	}
	err = s.each([]byte{kindHold}, []byte{kindHold + 1}, func(crawl, key, url, value []byte) (bool, error) {
		var until int64
		_, err := readNumbers(value, &until)
		s.sched.RestoreHold(queue(crawl, key), string(url), until)
		return true, err
	})
	s.sched.Restored()
	return err
}
