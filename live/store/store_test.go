package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

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
				_, err := s.Remove(id.Crawl, &id.Key)
				keep(commit, err)
			},
			func() {
				_, err := s.Remove(name.Draw(t, "crawl"), nil)
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
		next := func(s *Store) (ids []string) {
			taken, _, err := s.Take(schedule.Request{Now: now + 4000, PerQueue: 1, Hold: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range taken {
				ids = append(ids, fmt.Sprint(r.ID))
			}
			slices.Sort(ids)
			return ids
		}
		if got, want := next(again), next(s); !slices.Equal(got, want) {
			t.Fatalf("after the crash %q are handed out, and %q without it", got, want)
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
