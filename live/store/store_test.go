package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"ephemera/live/schedule"
)

const dir = "frontier"

func open(t interface{ Fatal(...any) }, fs vfs.FS, o Options) *Store {
	o.FS = fs
	s, err := Open(dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dump is all that a store knows, sorted.
func dump(t interface{ Fatal(...any) }, s *Store, now int64) string {
	var all []string
	s.View(now, func(sched *schedule.Schedule) {
		all = append(all, fmt.Sprint("delay ", sched.Delay()))
		for _, crawl := range sched.Crawls() {
			for _, q := range sched.QueuesOf(crawl) {
				all = append(all, fmt.Sprintf("%q %q %+v %+v", crawl, q.Key, q.Limits, q.Counts()))
				err := s.URLs(crawl, q.Key, func(r *Record) bool {
					u := q.Find(r.URL)
					if u == nil {
						t.Fatal("on disk, not in memory: ", r.ID)
					}
					all = append(all, fmt.Sprintf("%q %d %d %s until %d", r.ID, u.Due, u.Created(), r.Data, sched.Until(u)))
					return true
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// crash returns the disk as a power cut leaves it, with that part of what was not
// synced.
func crash(fs *vfs.MemFS, percent int, seed uint64) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 1))})
}

// names that are prefixes of each other, or could be mistaken for lengths or ends.
var hostile = []string{"a", "ab", "_", "a_b", "/", "\x00", "\x01a", "\xff", "\xff\xff", strings.Repeat("k", 255), "[::1]"}

// TestCrashAfterAnyCall holds that all is back after a power cut.
func TestCrashAfterAnyCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewCrashableMem()
		s := open(t, fs, Options{Delay: 1000})
		defer func() { s.Close() }()
		now := int64(1_000_000)
		seed := rapid.Uint64().Draw(t, "seed")
		name := rapid.SampledFrom(hostile)
		draw := func() schedule.ID {
			return schedule.ID{Crawl: name.Draw(t, "crawl"), Key: name.Draw(t, "key"), URL: name.Draw(t, "url")}
		}
		var commit *Commit
		keep := func(c *Commit, err error) {
			if err != nil {
				t.Fatal(err)
			}
			commit = c
		}
		calls := []func(){
			func() {
				_, c, err := s.Discover(draw(), now, now, []byte("new"))
				keep(c, err)
			},
			func() { keep(s.Put(draw(), now-rapid.Int64Range(0, 2000).Draw(t, "late"), now, []byte("known"))) },
			func() { keep(s.Put(draw(), schedule.Completed, now, nil)) },
			func() {
				_, _, err := s.Take(schedule.Request{Now: now, PerQueue: 2, Queues: 3, Hold: 5000})
				keep(commit, err)
			},
			func() {
				id := draw()
				_, err := s.Change(id.Crawl, id.Key, func(l *schedule.Limits) { l.Blocked, l.Delay, l.Most = now+3000, 7, 9 })
				keep(commit, err)
			},
			func() { keep(commit, s.SetDelay(rapid.Int64Range(0, 9).Draw(t, "delay"))) },
			func() {
				id := draw()
				_, err := s.RemoveQueue(id.Crawl, id.Key)
				keep(commit, err)
			},
			func() {
				_, err := s.RemoveCrawl(name.Draw(t, "crawl"))
				keep(commit, err)
			},
			func() {
				_, err := s.RemoveBefore(name.Draw(t, "crawl"), "", now-2000)
				keep(commit, err)
			},
		}
		weight := []int{0, 0, 0, 0, 1, 1, 2, 3, 3, 3, 4, 5, 6, 7, 8}
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now += rapid.SampledFrom([]int64{0, 500, 1000, 3000}).Draw(t, "wait")
			calls[rapid.SampledFrom(weight).Draw(t, "call")]()
		}
		if commit != nil {
			commit.Wait()
		}
		want := dump(t, s, now)

		// Waited for: all of it is there.
		again := open(t, crash(fs, rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "unsynced"), seed), Options{Delay: 1000})
		if got := dump(t, again, now); got != want {
			t.Fatalf("after the crash:\n%s\nwant:\n%s", got, want)
		}
		again.Close()
	})
}

// TestCrashKeepsOrderOfCalls holds that of calls which nobody waited for a power cut
// keeps the first ones.
func TestCrashKeepsOrderOfCalls(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := open(t, fs, Options{})
	defer s.Close()
	var acked int
	for i := range 400 {
		_, c, err := s.Discover(schedule.ID{Crawl: "c", Key: fmt.Sprint(i % 7), URL: fmt.Sprintf("%03d", i)}, 1, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i%13 == 0 {
			c.Wait()
			acked = i + 1
		}
		if i%20 != 0 {
			continue
		}
		again := open(t, crash(fs, 50, uint64(i)), Options{})
		known := map[string]bool{}
		again.URLs("c", "", func(r *Record) bool { known[r.URL] = true; return true })
		again.Close()
		if n := len(known); n < acked || n > 0 && slices.Max(slices.Collect(maps.Keys(known))) != fmt.Sprintf("%03d", n-1) {
			t.Fatalf("after %d calls, %d waited for: %d are kept, not the first ones", i+1, acked, n)
		}
	}
}

// TestHoldsAndBlocksOverRestart holds that nothing is handed out after a start that
// would not have been without it.
func TestHoldsAndBlocksOverRestart(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs, Options{})
	for _, key := range []string{"held", "blocked", "limited", "slow"} {
		s.Put(schedule.ID{Crawl: "c", Key: key, URL: "1"}, 1000, 0, nil)
		s.Put(schedule.ID{Crawl: "c", Key: key, URL: "2"}, 1000, 0, nil)
	}
	s.Put(schedule.ID{Crawl: "c", Key: "limited", URL: "done"}, schedule.Completed, 0, nil)
	s.Change("c", "blocked", func(l *schedule.Limits) { l.Blocked = 9000 })
	s.Change("c", "limited", func(l *schedule.Limits) { l.Most = 1 })
	s.Change("c", "slow", func(l *schedule.Limits) { l.Delay = 9000 })
	request := schedule.Request{Now: 1000, PerQueue: 1, Hold: 8000}
	if got, _, err := s.Take(request); len(got) != 2 || err != nil {
		t.Fatal(got, err)
	}
	for now := int64(1000); now < 9000; now += 1000 {
		s.Close()
		s = open(t, fs, Options{})
		request.Now = now
		if got, _, _ := s.Take(request); len(got) != 0 {
			t.Fatalf("at %d: %v", now, got)
		}
	}
	request.Now = 9000
	if got, _, _ := s.Take(request); len(got) != 2 || got[0].Key != "held" && got[1].Key != "held" {
		t.Fatal(got)
	}
	s.Close()
}

// fullDisk is a disk with so much room.
type fullDisk struct {
	vfs.FS
	mu   sync.Mutex
	free uint64
}

func (d *fullDisk) set(free uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = free
}

func (d *fullDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return vfs.DiskUsage{AvailBytes: d.free, TotalBytes: 400}, nil
}

// TestFullDisk holds that on a full disk writing fails with a clear error and
// changes nothing, reading goes on, and so does writing when there is room.
func TestFullDisk(t *testing.T) {
	disk := &fullDisk{FS: vfs.NewMem(), free: 1000}
	s := open(t, disk, Options{})
	defer s.Close()
	id := schedule.ID{Crawl: "c", Key: "k", URL: "u"}
	put := func(url string) error {
		id.URL = url
		c, err := s.Put(id, 1000, 0, nil)
		if err == nil {
			c.Wait()
		}
		return err
	}
	disk.set(100)
	if err := put("first"); err != nil {
		t.Fatal(err)
	}
	disk.set(99)
	time.Sleep(lookEvery)
	before := dump(t, s, 1000)
	_, _, take := s.Take(schedule.Request{Now: 5000, Hold: 1})
	_, change := s.Change("c", "k", func(l *schedule.Limits) { l.Most = 1 })
	_, removed := s.RemoveCrawl("c")
	for _, err := range []error{put("second"), take, change, removed, s.SetDelay(5), s.SetValue("v", nil)} {
		if !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
	}
	if got := dump(t, s, 1000); got != before {
		t.Fatalf("%s\nwant\n%s", got, before)
	}
	disk.set(100)
	time.Sleep(lookEvery)
	if err := put("second"); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkDiscover puts URLs from 8 goroutines that wait for the disk each 100.
func BenchmarkDiscover(b *testing.B) {
	s, err := Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range b.N / 8 {
				id := schedule.ID{Crawl: "c", Key: fmt.Sprint(i % 1000), URL: fmt.Sprint("https://host/", g, "/", i)}
				_, c, err := s.Discover(id, 1, 1, []byte("data"))
				if err != nil {
					b.Error(err)
					return
				}
				if i%100 == 0 {
					c.Wait()
				}
			}
		})
	}
	wg.Wait()
}
