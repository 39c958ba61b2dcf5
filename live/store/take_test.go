package store

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"ephemera/live/schedule"
)

// TestTakeWaitsThoughMoreFailed: URLs are handed out when their holds are on disk, also where
// the disk fails before as many were taken as were wanted.
func TestTakeWaitsThoughMoreFailed(t *testing.T) {
	disk := vfs.NewCrashableMem()
	now := int64(1e9)
	s := openAt(t, disk, takenAtOnce, &now)
	const all = 20 * takenAtOnce
	for i := range all {
		id := schedule.ID{Crawl: "c", Key: "k", URL: fmt.Sprintf("https://k.example/%06d", i)}
		if _, err := s.Put(id, int64(i), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()

	var fails, failed, slow atomic.Bool
	s = openAt(t, errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch {
		case op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo:
			if slow.Load() {
				time.Sleep(time.Second)
			}
		case op.Kind == errorfs.OpFileReadAt && fails.CompareAndSwap(true, false):
			failed.Store(true)
			return errors.New("the disk fails")
		}
		return nil
	})), takenAtOnce, &now)
	defer s.Close()
	fails.Store(true)
	slow.Store(true)
	got, err := s.Take(&schedule.Request{Hold: 1e9}, math.MaxInt)
	if err != nil || !failed.Load() || len(got) == 0 || len(got) == all {
		t.Fatalf("%d URLs of %d, error %v, the disk failed: %v; want some, and that it failed",
			len(got), all, err, failed.Load())
	}
	slow.Store(false)
	again := openAt(t, crash(disk, 0, 1), takenAtOnce, &now)
	defer again.Close()
	for _, r := range got {
		if !again.Held(r.ID) {
			t.Fatalf("%d URLs were handed out, and after a power cut %s is not held", len(got), r.URL)
		}
	}
}

// TestOthersInBetween: while one takes all of a long queue, others get at the schedule each time when a
// thousand URLs are taken.
func TestOthersInBetween(t *testing.T) {
	var s *Store
	const all = 5*takenAtOnce + 1
	held := []int{0} // whenever the schedule is locked
	s, err := Open("frontier", &Options{FS: vfs.NewMem(), Now: func() time.Time {
		if s != nil {
			held = append(held, s.sched.Counts("c").Held)
		}
		return time.UnixMilli(1e9)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range all {
		if _, err := s.Put(schedule.ID{Crawl: "c", Key: "k", URL: fmt.Sprint(i)}, 1, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	records, err := s.Take(&schedule.Request{Hold: 1e9}, math.MaxInt)
	if len(records) != all || err != nil {
		t.Fatalf("%d URLs are handed out of %d: %v", len(records), all, err)
	}
	held = append(held, all)
	for k := 1; k < len(held); k++ {
		if n := held[k] - held[k-1]; n > takenAtOnce {
			t.Errorf("under one lock %d URLs are taken, want %d at most", n, takenAtOnce)
		}
	}
}

// TestHoldsEndInParts: of holds that are over a thousand end under one lock, so that others get at the schedule
// in between, and so a thousand queues become ready. Who finds what is wanted waits for no more of them, and
// who finds less waits for all.
func TestHoldsEndInParts(t *testing.T) {
	const all = 5*endedAtOnce + 1
	for _, queues := range []int{1, all} {
		var s *Store
		held := []int{0} // whenever the schedule is locked
		now := int64(1e9)
		s, err := Open("frontier", &Options{FS: vfs.NewMem(), Now: func() time.Time {
			if s != nil {
				held = append(held, s.sched.Counts("c").Held)
			}
			return time.UnixMilli(now)
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		put := func(crawl, key string, url int) {
			if _, err := s.Put(schedule.ID{Crawl: crawl, Key: key, URL: fmt.Sprint(url)}, 1, 1, nil); err != nil {
				t.Fatal(err)
			}
		}
		take := func(crawl string, hold int64, want, queues int) {
			t.Helper()
			records, err := s.Take(&schedule.Request{Crawl: crawl, Queues: queues, Hold: hold}, math.MaxInt)
			if len(records) != want || err != nil {
				t.Fatalf("%d queues: %d URLs of crawl %s are handed out, want %d: %v",
					queues, len(records), crawl, want, err)
			}
		}
		for i := range all {
			put("c", fmt.Sprint("k", i%queues), i)
		}
		put("last", "k", 0)
		put("ready", "k", 0)
		take("c", 1000, all, 0)
		take("last", 1001, 1, 1)
		now += 2000
		held = []int{all}
		if take("ready", 1000, 1, 1); s.sched.Counts("c").Held != all-endedAtOnce {
			t.Errorf("%d queues: one who finds a queue has ended %d holds, want %d",
				queues, all-s.sched.Counts("c").Held, endedAtOnce)
		}
		if take("last", 1000, 1, 2); s.sched.Counts("c").Held > 0 {
			t.Errorf("%d queues: %d holds that end before that of a URL last", queues, s.sched.Counts("c").Held)
		}
		take("c", 1000, all, 0)
		now += 2000
		if err := s.Settle(); s.sched.Ready("c") != queues || err != nil {
			t.Errorf("%d of %d queues are ready: %v", s.sched.Ready("c"), queues, err)
		}
		take("c", 1000, all, 0)
		for k := 1; k < len(held); k++ {
			if n := held[k-1] - held[k]; n > endedAtOnce {
				t.Errorf("%d queues: under one lock %d holds end, want %d at most", queues, n, endedAtOnce)
			}
		}
	}
}

// TestDeleteInParts: while a crawl is deleted others put URLs into it and take them: each of these is deleted and
// counted, or there to the last record, also after a power cut.
func TestDeleteInParts(t *testing.T) {
	const all = 10_000
	var now atomic.Int64
	now.Store(1e9)
	disk := vfs.NewCrashableMem()
	open := func(fs vfs.FS) *Store {
		s, err := Open("frontier", &Options{FS: fs, Now: func() time.Time { return time.UnixMilli(now.Load()) }})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open(disk)
	put := func(i int) {
		id := schedule.ID{Crawl: "c", Key: fmt.Sprint(i % all), URL: fmt.Sprint(i)}
		if added, _, err := s.Discover(id, 1, 1, nil); !added || err != nil {
			t.Fatal(i, added, err)
		}
	}
	take := func() {
		if _, err := s.Take(&schedule.Request{Crawl: "c", Queues: all / 4, Hold: 1000}, all); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all {
		put(i)
	}
	take()
	now.Add(2000) // holds are over, and not ended
	var removed int
	done := make(chan error)
	go func() {
		n, err := s.Remove("c", nil)
		removed = n
		done <- err
	}()
	n, ended := all, false
	for last := 0; !ended || last < 100; n++ {
		select {
		case err := <-done:
			if ended = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		if put(n); ended {
			last++
		}
		if n%100 == 0 {
			take()
			now.Add(500)
		}
	}
	s.mu.Lock()
	s.end().Wait()
	want := s.sched.Counts("c")
	again := open(crash(disk, 0, 1))
	s.Close()
	defer again.Close()
	got := again.sched.Counts("c")
	if got != want || removed < all || removed+got.Scheduled != n {
		t.Errorf("%d URLs were put and %d deleted; there are %+v, and before the power cut %+v",
			n, removed, got, want)
	}
	for kind, want := range map[byte]int{
		kindURL: got.Scheduled, kindWait: got.Scheduled - got.Held, kindHold: got.Held, kindQueue: got.Queues,
	} {
		found := 0
		err := again.each([]byte{kind, 0}, []byte{kind + 1}, func(_, _, _, _ []byte) (bool, error) {
			found++
			return true, nil
		})
		if found != want || err != nil {
			t.Errorf("there are %d records %c, want %d: %v", found, kind, want, err)
		}
	}
}
