package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"ephemera/live/schedule"
	"github.com/cockroachdb/pebble/v2/vfs"
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

// crash returns the disk as a power cut leaves it, with that part of what was not
// synced.
func crash(fs *vfs.MemFS, percent int, seed uint64) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 1))})
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
