package schedule

import (
	"fmt"
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

// TestFewMovesInOneCall: of many queues that become ready at once, close at once or are removed a call moves
// a thousand at most.
func TestFewMovesInOneCall(t *testing.T) {
	const all = 3*mostMoved + 1
	s := New(1000, nil, 1)
	url := URL{Name: "u", Due: 1000}
	for i := range all {
		s.Put(s.Ensure("c", fmt.Sprint(i)), nil, url)
	}
	parts := func(what string, want int, size func() int, call func() (more bool)) {
		t.Helper()
		for before, more := size(), true; more; before = size() {
			if more = call(); max(before-size(), size()-before) > mostMoved {
				t.Errorf("%s: from %d to %d of them in one call", what, before, size())
			}
		}
		if size() != want {
			t.Errorf("%s: there are %d in the end, want %d", what, size(), want)
		}
	}
	advance := func() bool { _, more, _ := s.Advance(s.now, all); return more }
	r := &Request{Hold: 1e6}
	take := func(keep func(Taken, int64)) (more bool) {
		more, err := s.Take(r, mostMoved, keep)
		if err != nil {
			t.Fatal(err)
		}
		return more
	}
	ready := func() int { return s.Ready("") }

	s.now = 2000
	parts("due", all, ready, advance)
	parts("taken", 0, ready, func() bool {
		return take(func(tk Taken, _ int64) { s.Put(tk.Queue, &tk.URL, url) })
	})
	s.now = 3000
	parts("after the delay", all, ready, advance)
	s.SetDelay(5000)
	parts("after a longer delay was set", 0, ready, func() bool {
		return take(func(tk Taken, _ int64) { t.Fatalf("%s is handed out within its delay", tk.Queue.Key) })
	})
	s.SetDelay(500)
	parts("after a shorter delay was set", all, ready, advance)
	for take(func(Taken, int64) {}) {
	}
	s.now = 4000
	held := func() int { return s.holds.Len() }
	n, sweep := s.Remove("c", nil)
	if before := held(); n != all || before != all || s.urls != 0 {
		t.Fatalf("removed are %d URLs, of which %d are held, and %d are left; want all %d", n, before, s.urls, all)
	}
	before, pauses := held(), 0
	sweep(func() {
		if pauses++; pauses == 1 { // others use the same names meanwhile
			s.Put(s.Ensure("c", "0"), nil, url)
		}
		s.Held(func(tk Taken, _ int64) bool { t.Fatalf("%s is held", tk.Queue.Key); return false })
		if before-held() > mostMoved {
			t.Errorf("removed: from %d to %d in one call", before, held())
		}
		if ended, _, _ := s.Advance(s.now+r.Hold, 10); len(ended) > 0 {
			t.Fatalf("the hold of %s, which was removed, has ended", ended[0].Queue.Key)
		}
		before = held()
	})
	var got []string
	take(func(tk Taken, _ int64) { got = append(got, tk.Queue.Key) })
	if !slices.Equal(got, []string{"0"}) || held() != 1 || s.urls != 1 || s.resting.Len()+s.waiting.Len()+ready() != 0 {
		t.Errorf("after all were removed, and one put, %q are handed out; %d are held, %d wait, and there are %d",
			got, held(), s.resting.Len()+s.waiting.Len()+ready(), s.urls)
	}
}
