// Package store keeps a [schedule.Schedule] on disk, in Pebble.
//
//  1. A call changes the schedule in memory and appends what is to be kept to a
//     batch, both under one lock. It returns a [Commit], on which the caller waits
//     before it tells anybody.
//  2. Batches are applied, so that Pebble's readers see them, when they are large, when
//     something is asked for that they may have, or when they are to be synced. One
//     goroutine syncs while the next batch fills: one sync serves all callers that wait.
//  3. URLs are in Pebble, by name, and those that wait once more, by queue and due time.
//     The schedule reads from there what is due next. Whether a URL is known is asked of
//     Pebble, which has Bloom filters, and not under the lock. Of a queue that was made since
//     the start a filter in memory says of most unknown URLs that they are.
//  4. [Open] reads back queues and holds, and no other URL. It finds out whether all that was
//     acknowledged is there (receipt.go), and takes up what an earlier version wrote
//     (format.go).
//
// What was committed is kept whatever happens, and what was not is kept or lost in
// the order of the calls. When the disk is nearly full, calls that write return
// [ErrFull] and change nothing; those that delete go on. An error of the disk while writing ends the program
// by a panic, as memory and disk would differ from there on; the next start has what
// was committed.
package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"ephemera/live/clock"
	"ephemera/live/schedule"
)

// ErrFull is returned by calls that write while the disk is nearly full.
var ErrFull = errors.New("store: the disk is nearly full; nothing is written until there is room")

const (
	// maxUnwritten is how many bytes wait for the disk at most before callers do.
	maxUnwritten = 16 << 20
	// largeBatch is how many bytes a batch has when it is applied.
	largeBatch = 512 << 10
	// reserve is how many free bytes of the disk are left, of a small disk a
	// quarter: for what is not written yet, and for what Pebble rewrites.
	reserve = 256 << 20
	// lookEvery is how long another program has to use them up unseen.
	lookEvery = 50 * time.Millisecond
)

// Options are the settings of a store.
type Options struct {
	// Program is the name of the one whose store it is. A new store keeps it, and is refused to others.
	Program string
	Delay   int64 // of queues without one of their own, in a new store; ms
	// Memory is how many bytes of records that were read are kept in memory; 0 stands for 256 MiB. An
	// eighth as much is taken for URLs that were put lately, as much for which ones were put at all, and
	// a quarter for what is not in a table on disk yet, twice that while it is written.
	Memory int64
	Log    *slog.Logger
	FS     vfs.FS              // nil is that of the system
	Synced func(time.Duration) // is given how long each sync took; may be nil
	// Now is the machine's clock, and Uptime tells steps of it from time that passes. The store reads
	// them itself, with its lock, so that no call comes with a time that has passed. They must not call
	// it. Nil is time.Now, and an uptime that tells nothing.
	Now    func() time.Time
	Uptime func() clock.Uptime
	// Sync is how long a commit may be acknowledged before it is synced: 0 syncs each commit
	// before, and Never leaves it to the system.
	Sync time.Duration

	window      int // of the schedule; 0 stands for 16
	endedAtOnce int // 0 stands for [endedAtOnce]
}

// Never is [Options].Sync of a store that is never synced.
const Never = time.Duration(math.MaxInt64)

// Store is a schedule on disk. Its methods may be called at once.
type Store struct {
	opt Options
	db  *pebble.DB
	dir string

	mu        sync.Mutex
	room      sync.Cond // what was applied is being synced
	sched     *schedule.Schedule
	moment    Moment // the last one
	batch     *pebble.Batch
	recent    []recentURL
	written   filter          // of the URLs that were put since the start
	soon      map[string]bool // keys of the records of URLs that were hastened and not put since
	inBatch   map[uint64]bool // hashes of the URLs of which there is something in the batch
	inFlight  map[uint64]bool // and in the last one that was applied without the lock
	seed      [2]maphash.Seed
	applied   int     // how many batches
	unwritten int     // bytes of those of them that are not being synced yet
	pending   *Commit // of these and the batch
	last      *Commit // of what came before, if any
	full      bool    // the disk is nearly so
	spent     bool    // and the reserve, too
	looked    time.Time
	closed    bool
	key       []byte // scratch
	value     []byte

	// flight is locked while a batch is applied without mu, and only with mu: so batches are applied in
	// their order, one at a time.
	flight sync.Mutex

	// reading is held by whoever reads from Pebble, and from the end on by Close.
	reading sync.RWMutex

	commits  int64 // up to the last batch that was begun to be written
	lost     error
	receipts vfs.File // of the writer

	work     chan struct{} // the batch is not empty
	closing  chan struct{}
	closer   sync.WaitGroup
	unsynced atomic.Bool // something was acknowledged since the last sync
}

// recentURL is what is known of a URL that was put lately, which commonly is put again soon. It
// stands for the URL of which both hashes are these, at the place that the first one says.
type recentURL struct {
	hash         [2]uint64
	due, created int64
}

const recentBytes = 32 // of a recentURL

// filter is a Bloom filter of hashes, of which each has four bits in one word of 64. With 10⁷ URLs in
// 32 MB, it takes less than a hundredth of others for one of them, and with 5·10⁷ a tenth.
type filter []uint64

func (f filter) word(hash uint64) (at *uint64, bits uint64) {
	bits = 1<<(hash>>40&63) | 1<<(hash>>46&63) | 1<<(hash>>52&63) | 1<<(hash>>58&63)
	return &f[hash%uint64(len(f))], bits
}

func (f filter) add(hash uint64) {
	word, bits := f.word(hash)
	*word |= bits
}

// has reports whether a hash was added; also of some others.
func (f filter) has(hash uint64) bool {
	word, bits := f.word(hash)
	return *word&bits == bits
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
	s := &Store{
		dir: dir, work: make(chan struct{}, 1), closing: make(chan struct{}), pending: newCommit(),
		seed:    [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		inBatch: map[uint64]bool{}, inFlight: map[uint64]bool{}, soon: map[string]bool{},
	}
	if o != nil {
		s.opt = *o
	}
	s.opt.window = cmp.Or(s.opt.window, 16)
	s.opt.endedAtOnce = cmp.Or(s.opt.endedAtOnce, endedAtOnce)
	s.opt.Memory = cmp.Or(s.opt.Memory, 256<<20)
	s.recent, s.written = make([]recentURL, s.opt.Memory/8/recentBytes), make(filter, s.opt.Memory/8/8)
	s.opt.Log = cmp.Or(s.opt.Log, slog.New(slog.DiscardHandler))
	s.opt.FS = cmp.Or(s.opt.FS, vfs.Default)
	s.room.L = &s.mu
	if s.opt.Now == nil {
		s.opt.Now = time.Now
	}
	if s.opt.Uptime == nil {
		s.opt.Uptime = func() clock.Uptime { return clock.Uptime{} }
	}
	s.moment.Read = s.clocks()
	s.moment.Time = s.moment.Read.Time
	if err := s.opt.FS.MkdirAll(dir, 0o755); err != nil { // no file of it is missing
		return nil, fmt.Errorf("store %q: %w", dir, err)
	}
	po := &pebble.Options{
		FS: s.opt.FS, CacheSize: s.opt.Memory,
		// Most of what puts cost is that Pebble rewrites records. These have it do so less often, for
		// more memory and some more files to look into.
		MemTableSize:          s.tableSize(dir),
		L0CompactionThreshold: 8, L0StopWritesThreshold: 32, LBaseMaxBytes: 512 << 20,
		FormatMajorVersion: pebble.FormatNewest, Logger: &pebbleLog{log: s.opt.Log, said: map[string]time.Time{}},
		// It is logged here; a call that reads what is damaged gets an error.
		EventListener: &pebble.EventListener{DataCorruption: func(i pebble.DataCorruptionInfo) {
			s.opt.Log.Error("a file of the store is damaged", "file", i.Path, "error", i.Details)
		}},
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	var err error
	if s.db, err = openPebble(dir, po); err != nil {
		return nil, explain(dir, err)
	}
	s.batch = s.db.NewBatch()
	err = s.openFormat()
	if err == nil {
		err = s.load()
	}
	if err == nil {
		err = s.openProgram()
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

// programName is the value that has [Options.Program].
const programName = "program"

// openProgram refuses the store of another program. One that was made before they had names is a
// crawler's if it has what a crawler learned, and else a frontier's.
func (s *Store) openProgram() error {
	kept, err := s.Value(programName)
	learned, err2 := s.Value("snapshot")
	if err := cmp.Or(err, err2); err != nil {
		return err
	}
	found := cmp.Or(string(kept), s.opt.Program)
	switch {
	case s.opt.Program == "":
		return nil
	case kept == nil && learned != nil:
		found = "crawl"
	case kept == nil && s.commits > 0:
		found = "frontier"
	}
	if found != s.opt.Program {
		return fmt.Errorf("%w, %s; allowed for %s is one that %[3]s made, or a new directory",
			ErrOther, found, s.opt.Program)
	}
	if kept == nil {
		s.setValues([]Value{{programName, []byte(found)}})
	}
	return nil
}

// openPebble opens Pebble. Before it is open it flushes what its log has, and it would try that again
// for ever: after one failure it tries nothing any more, and keeps the directory until the program ends.
func openPebble(dir string, o *pebble.Options) (*pebble.DB, error) {
	var db *pebble.DB
	var opened atomic.Bool
	ended := make(chan error, 1)
	var flush atomic.Pointer[error] // why the last one failed, or that there was nothing to be written
	o.EventListener.FlushEnd = func(i pebble.FlushInfo) { flush.Store(&i.Err) }
	o.EventListener.BackgroundError = func(err error) {
		o.Logger.Errorf("background error: %s", err)
		if last := flush.Load(); last != nil && errors.Is(err, *last) && !opened.Load() {
			ended <- err
			select {}
		}
	}
	go func() {
		d, err := pebble.Open(dir, o)
		opened.Store(true)
		db = d
		ended <- err
	}()
	err := <-ended
	if err != nil {
		return nil, err
	}
	return db, nil
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

// Close waits for what is being written, and closes the store. Reads that are under way end with an error, and
// it waits for what their callers do with the last record, and for a copy that is being made.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.work)
	close(s.closing)
	s.closer.Wait()
	s.reading.Lock()
	return errors.Join(s.receipts.Close(), s.db.Close())
}

// Under load, which is where a batch has more than crowd records, there is that time between it and the next, so
// that these do not have a few URLs each: a batch has to be written to the log, and the numbers of
// its queues with it. One who waits for each answer is not kept waiting.
const (
	crowd   = 8
	between = time.Millisecond / 2
)

// write syncs what was applied as long as there is any.
func (s *Store) write() {
	var next time.Time
	for range s.work {
		time.Sleep(time.Until(next))
		s.mu.Lock()
		c := s.pending
		s.pending, s.last = newCommit(), c
		s.commits++
		s.batch.Set([]byte{kindCommits}, appendNumbers(nil, s.commits, s.sched.Newest()), nil)
		r := s.receipt()
		if next = (time.Time{}); s.batch.Count() > crowd {
			next = time.Now().Add(between)
		}
		b := s.takeOff()
		s.unwritten = 0
		s.room.Broadcast()
		s.mu.Unlock()
		s.fly(b, s.opt.Sync == 0)
		began := time.Now()
		if s.opt.Sync == 0 {
			s.must(b.SyncWait()) // and all that was applied before
			b.Close()
		}
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

// apply has readers see the batch and all before it, and begins another one.
func (s *Store) apply() {
	s.land()
	s.commit(s.swap(), false)
}

// land returns when readers see all that was applied.
func (s *Store) land() {
	s.flight.Lock()
	defer s.flight.Unlock()
}

// takeOff begins another batch and returns the one before, which the caller applies by fly after it has given
// up the lock, so that others write the next one meanwhile.
func (s *Store) takeOff() *pebble.Batch {
	s.flight.Lock()
	s.inFlight, s.inBatch = s.inBatch, s.inFlight
	return s.swap()
}

// fly has readers see the batch of takeOff. If it is to be synced, the caller waits for that and closes it.
func (s *Store) fly(b *pebble.Batch, sync bool) {
	defer s.flight.Unlock()
	s.commit(b, sync)
}

// swap begins another batch, and returns the one before.
func (s *Store) swap() *pebble.Batch {
	s.sched.Changed(s.setQueue)
	b := s.batch
	s.batch = s.db.NewBatch()
	s.applied++
	s.unwritten += b.Len()
	clear(s.inBatch)
	return b
}

// commit has readers see a batch, which it closes unless it is to be synced.
func (s *Store) commit(b *pebble.Batch, sync bool) {
	switch {
	case sync:
		s.must(s.db.ApplyNoSyncWait(b, pebble.Sync))
	case b.Empty():
		s.must(b.Close())
	default:
		s.must(errors.Join(b.Commit(pebble.NoSync), b.Close()))
	}
}

// tableSize returns the most bytes of a table in memory. Each has a log of that length on disk, and a
// start after a kill writes what is in the logs once more: on a small disk that has to fit into what
// is left free.
func (s *Store) tableSize(dir string) uint64 {
	size := uint64(s.opt.Memory / 4)
	if u, err := s.opt.FS.GetDiskUsage(dir); err == nil {
		size = min(size, max(1<<20, u.TotalBytes/16))
	}
	return size
}

// measureDisk notes whether the disk is nearly full, if it has not just been looked at.
func (s *Store) measureDisk() {
	if time.Since(s.looked) < lookEvery {
		return
	}
	s.looked = time.Now()
	u, err := s.opt.FS.GetDiskUsage(s.dir)
	kept, before := min(reserve, u.TotalBytes/4), s.full
	s.full = err == nil && u.AvailBytes < kept
	s.spent = err == nil && u.AvailBytes < kept/16
	switch {
	case s.full && !before:
		s.opt.Log.Error("the disk is nearly full; nothing but deletes is written until there is room",
			"dir", s.dir, "free", u.AvailBytes, "needed", kept)
	case before && !s.full:
		s.opt.Log.Info("the disk has room again; writing goes on", "dir", s.dir, "free", u.AvailBytes)
	}
}

// Full reports whether the disk is nearly full, so that nothing is written.
func (s *Store) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measureDisk()
	return s.full
}

var errClosed = errors.New("store: closed")

// read keeps Pebble open until reading is unlocked. It never waits: a read within another one, for which Close
// waits, fails as one after Close does.
func (s *Store) read() error {
	if !s.reading.TryRLock() {
		return errClosed
	}
	return nil
}

// lockForWrite locks the store for a call that writes.
func (s *Store) lockForWrite() error { return s.lock(&s.full) }

// lockForRelease locks the store for a call that makes room, or helps to: it has the reserve but for
// a sixteenth.
func (s *Store) lockForRelease() error { return s.lock(&s.spent) }

func (s *Store) lock(refused *bool) error {
	s.mu.Lock()
	for s.unwritten > maxUnwritten && !s.closed {
		s.room.Wait()
	}
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	if s.measureDisk(); *refused {
		s.mu.Unlock()
		return ErrFull
	}
	return nil
}

// end unlocks it. The commit is that of all that was written up to here.
func (s *Store) end() *Commit {
	if s.closed || s.batch.Empty() && s.unwritten == 0 && !s.sched.IsChanged() {
		defer s.mu.Unlock()
		return s.last
	}
	select {
	case s.work <- struct{}{}:
	default:
	}
	c := s.pending
	if s.batch.Len() <= largeBatch {
		s.mu.Unlock()
		return c
	}
	b := s.takeOff()
	s.mu.Unlock()
	s.fly(b, false)
	return c
}

// hash returns what stands for a URL whose record has that key.
func (s *Store) hash(key []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(s.seed[0], key), maphash.Bytes(s.seed[1], key)}
}

// mark notes that something of a URL is in the batch, of the record with that key.
func (s *Store) mark(key []byte) { s.inBatch[s.hash(key)[0]] = true }

func (s *Store) recentOf(hash [2]uint64) *recentURL { return &s.recent[hash[0]%uint64(len(s.recent))] }

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

// Now returns the time of the schedule in ms, 0 before the first. After a start it is when a
// queue was served last, however long that was before the kill.
func (s *Store) Now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sched.Now()
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

// Record is what is kept of a URL.
type Record struct {
	schedule.ID
	Due     int64 // ms, or schedule.Completed
	Created int64 // ms
	Data    []byte
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
	s.sched = schedule.New(s.opt.Delay, s, s.opt.window)
	delay, err := s.get([]byte{kindQueue})
	if err == nil && delay != nil {
		_, err = readNumbers(delay, &s.opt.Delay)
		s.sched.SetDelay(s.opt.Delay)
	}
	if err != nil {
		return err
	}
	err = s.each([]byte{kindQueue, 0}, []byte{kindQueue + 1}, func(crawl, key, _, value []byte) (bool, error) {
		k, err := readKept(value)
		if err == nil {
			s.sched.Restore(string(crawl), string(key), k)
		}
		return true, err
	})
	if err != nil {
		return err
	}
	err = s.each([]byte{kindHold}, []byte{kindHold + 1}, func(crawl, key, url, value []byte) (bool, error) {
		u := schedule.URL{Name: string(url)}
		var until int64
		_, err := readNumbers(value, &until, &u.Due, &u.Created)
		u.Created *= 1000
		if q := s.sched.Lookup(string(crawl), string(key)); q != nil {
			s.sched.RestoreHold(schedule.Taken{Queue: q, URL: u}, until)
		}
		return true, err
	})
	if err != nil {
		return err
	}
	var newest int64
	value, err := s.get([]byte{kindCommits})
	if err == nil && value != nil {
		_, err = readNumbers(value, &s.commits, &newest)
	}
	s.sched.Restored(newest)
	if err != nil {
		return err
	}
	return s.unhasten()
}

// unhasten has URLs that were hastened before the start be due when they were to be before.
func (s *Store) unhasten() error {
	defer s.apply()
	return s.each([]byte{kindSoon}, []byte{kindSoon + 1}, func(crawl, key, url, value []byte) (bool, error) {
		id := schedule.ID{Crawl: string(crawl), Key: string(key), URL: string(url)}
		r, err := s.Find(id)
		if r == nil || err != nil {
			return err == nil, err
		}
		was := schedule.URL{Name: id.URL, Due: r.Due, Created: r.Created}
		u := was
		if _, err := readNumbers(value, &u.Due); err != nil {
			return false, err
		}
		q := s.sched.Lookup(id.Crawl, id.Key)
		if held := q.Held(id.URL); held != nil {
			s.sched.Amend(q, &was, u)
			s.setHold(schedule.Taken{Queue: q, URL: u}, held.Until)
			s.setURL(id, &u, r.Data)
		} else {
			s.set(id, &was, false, u, r.Data)
		}
		s.batch.Delete(appendURL(nil, kindSoon, id), nil)
		return true, nil
	})
}
