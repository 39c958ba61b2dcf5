package store

import (
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

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
