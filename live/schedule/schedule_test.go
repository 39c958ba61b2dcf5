package schedule

import "testing"

// That the right URLs are handed out is held by the tests of live/store, which drive
// a schedule with its disk.

// TestClockThatGoesBack holds that a hand-out stays behind those of less than a minute
// before.
func TestClockThatGoesBack(t *testing.T) {
	s := New(0)
	q, _ := s.Ensure("c", "k", nil)
	s.Put(q, "u", 1000, 0)
	s.Advance(9000)
	if got := s.Take(nil, Request{Now: 5000, Hold: 1000}); len(got) != 1 || s.Until(got[0].URL) != 10_000 {
		t.Fatalf("%+v", got)
	}
}
