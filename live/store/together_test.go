package store

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ephemera/live/schedule"
)

// TestTogether: while callers put, take, hasten, delete, purge, and copy the store, records contradict neither
// each other nor the schedule, there and in each copy.
func TestTogether(t *testing.T) {
	var now atomic.Int64
	now.Store(1e12)
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "s"), &Options{
		Sync: Never, window: 2, Memory: 4 << 20, Now: func() time.Time { return time.UnixMilli(now.Load()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.recent = make([]recentURL, 1) // so that records are read
	var wg sync.WaitGroup
	ends := time.Now().Add(2 * time.Second)
	for caller := range uint64(16) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, caller))
			for time.Now().Before(ends) && !t.Failed() {
				if err := call(s, r, now.Load()); err != nil {
					t.Error(err)
				}
				now.Add(r.Int64N(30))
			}
		})
	}
	for n := 0; time.Now().Before(ends); n++ {
		dir := filepath.Join(dir, fmt.Sprint("copy", n))
		if err := s.Backup(dir); err != nil {
			t.Fatal(err)
		}
		c, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = counts(c); err != nil {
			t.Errorf("copy %d: %v", n, err)
		}
		c.Close()
	}
	wg.Wait()
	s.mu.Lock()
	s.end().Wait()
	want := map[schedule.ID]schedule.Counts{}
	for _, crawl := range s.sched.Crawls() {
		for _, q := range s.sched.QueuesOf(crawl) {
			want[schedule.ID{Crawl: crawl, Key: q.Key}] = q.Counts()
		}
	}
	got, err := counts(s)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("the records have %v (%v), the schedule %v", got, err, want)
	}
}

// call calls the store once.
func call(s *Store, r *rand.Rand, now int64) (err error) {
	crawl, key := fmt.Sprint("c", r.IntN(2)), fmt.Sprint("k", r.IntN(4))
	id := schedule.ID{Crawl: crawl, Key: key, URL: fmt.Sprint(r.IntN(10))}
	data := make([]byte, r.IntN(60_000))
	switch p := r.IntN(500); {
	case p < 175:
		due := now + r.Int64N(20_000) - 10_000
		if r.IntN(8) == 0 {
			due = schedule.Completed
		}
		_, err = s.Put(id, due, now, data)
	case p < 300:
		_, _, err = s.Discover(id, now, now, data)
	case p < 400:
		q := &schedule.Request{Queues: r.IntN(3), PerQueue: r.IntN(10), Hold: 1 + r.Int64N(5000)}
		if r.IntN(2) == 0 {
			q.Crawl = crawl
		}
		_, err = s.Take(q, 1+r.IntN(50))
	case p < 415:
		_, err = s.SetData(id, data)
	case p < 430:
		_, err = s.ChangeData(id, func(*Record) ([]byte, error) { return data, nil })
	case p < 460:
		_, err = s.Hasten([]schedule.ID{id})
	case p < 470:
		_, err = s.Remove(crawl, &key)
	case p < 471:
		_, err = s.Remove(crawl, nil)
	case p < 475:
		_, err = s.RemoveBefore(crawl, key, now-r.Int64N(3000), func(schedule.ID) {})
	case p < 490:
		blocked, delay := now+r.Int64N(100), r.Int64N(10)
		_, _, err = s.Change(crawl, key, func(l *schedule.Limits) { l.Blocked, l.Delay = blocked, delay })
	default:
		err = s.Settle()
	}
	return err
}

// counts returns how many URLs queues have by their records, or what these contradict.
func counts(s *Store) (map[schedule.ID]schedule.Counts, error) {
	waits, holds := map[schedule.ID]int64{}, map[schedule.ID]int64{} // when each is due
	found, kept := map[schedule.ID]schedule.Counts{}, map[schedule.ID]schedule.Kept{}
	err := s.each([]byte{kindWait}, []byte{kindWait + 1}, func(crawl, key, rest, _ []byte) (bool, error) {
		due, url, err := readWait(rest)
		id := schedule.ID{Crawl: string(crawl), Key: string(key), URL: url}
		if _, twice := waits[id]; twice {
			return false, fmt.Errorf("%v waits twice", id)
		}
		waits[id] = due
		return true, err
	})
	hold := func(crawl, key, url, value []byte) (bool, error) {
		var until, due int64
		_, err := readNumbers(value, &until, &due)
		holds[schedule.ID{Crawl: string(crawl), Key: string(key), URL: string(url)}] = due
		return true, err
	}
	queue := func(crawl, key, _, value []byte) (bool, error) {
		id := schedule.ID{Crawl: string(crawl), Key: string(key)}
		k, err := readKept(value)
		kept[id], found[id] = k, schedule.Counts{Queues: 1}
		return true, err
	}
	err = cmp.Or(err, s.each([]byte{kindHold}, []byte{kindHold + 1}, hold),
		s.each([]byte{kindQueue, 0}, []byte{kindQueue + 1}, queue))
	var failed error
	err = cmp.Or(err, s.URLs("", "", func(r *Record) bool {
		of := schedule.ID{Crawl: r.Crawl, Key: r.Key}
		n := found[of]
		wait, waiting := waits[r.ID]
		due, held := holds[r.ID]
		completed := r.Due == schedule.Completed
		switch {
		case completed && !waiting && !held:
			n.Completed++
		case waiting && !held && !completed && wait == r.Due:
			n.Scheduled++
		case held && !waiting && !completed && due == r.Due:
			n.Scheduled++
			n.Held++
		default:
			failed = fmt.Errorf("%v is due at %d; it waits: %v, until %d; it is held: %v, and due at %d",
				r.ID, r.Due, waiting, wait, held, due)
		}
		n.Active = min(1, n.Scheduled)
		found[of] = n
		delete(waits, r.ID)
		delete(holds, r.ID)
		return failed == nil
	}), failed)
	if err == nil && len(waits)+len(holds) > 0 {
		err = fmt.Errorf("%v wait and %v are held, which are not there", waits, holds)
	}
	for id, n := range found {
		if k := kept[id]; err == nil && (k.Waiting != n.Scheduled-n.Held || k.Completed != n.Completed) {
			err = fmt.Errorf("queue %v is kept as %+v, and has %+v", id, k, n)
		}
	}
	return found, err
}
