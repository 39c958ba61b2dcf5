package store

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"ephemera/live/schedule"
)

func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkStore has the processor's time for a URL, compactions and syncs included: -benchtime
// 300000x is so many URLs, in a hundredth as many queues.
func BenchmarkStore(b *testing.B) {
	s, err := Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	n := 0
	id := func(i int) schedule.ID {
		return schedule.ID{
			Crawl: "DEFAULT", Key: fmt.Sprintf("host%07d", i%(n/100+1)),
			URL: fmt.Sprintf("https://www.host%07d.example/articles/%08d.html", i%(n/100+1), i),
		}
	}
	each := func(name string, f func(i int) (*Commit, error)) {
		b.Run(name, func(b *testing.B) {
			n = b.N
			began := cpu()
			var last *Commit
			for i := range b.N {
				c, err := f(i)
				if err != nil {
					b.Fatal(err)
				}
				if i%1000 == 999 {
					last.Wait()
					last = c
				}
			}
			last.Wait()
			b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
	discover := func(i int) (*Commit, error) {
		_, c, err := s.Discover(id(i), 1000, 1000, nil)
		return c, err
	}
	put := func(i int) (*Commit, error) { return s.Put(id(i), int64(1000+i%1000), 1000, nil) }
	each("discover unknown", discover)
	each("discover known", discover)
	each("put known", put)
	b.Run("take", func(b *testing.B) {
		began := cpu()
		for taken := 0; taken < b.N; {
			records, err := s.Take(&schedule.Request{Hold: 1000_000}, 1000)
			if taken += len(records); err != nil {
				b.Fatal(err)
			}
			if len(records) == 0 {
				break // it was called before
			}
		}
		b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
	each("put held", put)
}
