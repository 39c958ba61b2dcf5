package schedule

import (
	"slices"
	"testing"
)

// That the right URLs are handed out is held by the tests of live/store, which drive
// a schedule with its disk.

// TestClockThatGoesBack holds that a hand-out stays behind those of less than a minute
// before.
func TestClockThatGoesBack(t *testing.T) {
	s := New(0, nil, 1)
	s.Put(s.Ensure("c", "k"), nil, URL{Name: "u", Due: 1000})
	s.Advance(9000, 1)
	s.Advance(5000, 1)
	var held []int64
	s.Take(&Request{Hold: 1000}, 1, func(_ Taken, until int64) { held = append(held, until) })
	if !slices.Equal(held, []int64{10_000}) {
		t.Fatalf("held until %d, want 10000", held)
	}
}
