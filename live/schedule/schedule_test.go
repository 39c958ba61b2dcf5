package schedule

import (
	"fmt"
	"math"
	"testing"
)

// That the right URLs are handed out is held by the tests of live/store, which drive
// a schedule with its disk.

// TestClockThatGoesBack holds that a hand-out stays behind those before it.
func TestClockThatGoesBack(t *testing.T) {
	s := New(0)
	q, _ := s.Ensure("c", "k", nil)
	s.Put(q, "u", 1000, 0)
	s.Advance(9000)
	if got := s.Take(nil, Request{Now: 5000, Hold: 1000}); len(got) != 1 || s.Until(got[0].URL) != 10_000 {
		t.Fatalf("%+v", got)
	}
}

// BenchmarkTake takes one URL each of 100 due queues among others that are not due.
func BenchmarkTake(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New(0)
			for i := range n {
				q, _ := s.Ensure("c", fmt.Sprint("host", i), nil)
				due := int64(math.MaxInt64 - 1)
				if i%(n/100) == 0 {
					due = 1
				}
				s.Put(q, "u", due, 0)
			}
			var got []Taken
			for now := int64(1); b.Loop(); now++ {
				if got = s.Take(got[:0], Request{Now: now, PerQueue: 1, Hold: 1}); len(got) != 100 {
					b.Fatal(len(got))
				}
			}
		})
	}
}
