// Package store keeps a [schedule.Schedule] on disk, in Pebble.
//
//  1. A call changes the schedule in memory and appends what is to be kept to a
//     batch, both under one lock. It returns a [Commit], on which the caller waits
//     before it tells anybody.
//  2. Batches (batch.go) are applied, so that Pebble's readers see them, when they are large, when
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
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math"
	"regexp"
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
