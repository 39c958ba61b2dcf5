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
	s.Advance(9000)
	var held []int64
	s.Take(Request{Now: 5000, Hold: 1000}, func(_ Taken, until int64) { held = append(held, until) })
	if !slices.Equal(held, []int64{10_000}) {
		t.Fatalf("held until %d, want 10000", held)
	}
}

// shelf is a disk with the URLs of one queue, in their order.
type shelf struct {
	urls  []URL
	reads int
}

func (d *shelf) After(_ *Queue, place URL, n int) (found []URL, err error) {
	d.reads++
	for _, u := range d.urls {
		if compare(&u, &place) > 0 && len(found) < n {
			found = append(found, u)
		}
	}
	return found, nil
}

// TestReadAhead: what was read of a queue is handed out without another look at the disk, and is of
// no use where the queue has changed meanwhile.
func TestReadAhead(t *testing.T) {
	a, b, c := URL{Name: "a", Due: 1000}, URL{Name: "b", Due: 2000}, URL{Name: "c", Due: 3000}
	d := URL{Name: "d", Due: 1500}
	for _, tt := range []struct {
		name      string
		meanwhile func(s *Schedule, q *Queue, disk *shelf)
		want      []URL
		reads     int
	}{
		{"nothing", func(*Schedule, *Queue, *shelf) {}, []URL{a, b}, 1},
		{"put", func(s *Schedule, q *Queue, disk *shelf) {
			s.Put(q, nil, d)
			disk.urls = []URL{a, d, b, c}
		}, []URL{a, d}, 2},
		{"taken", func(s *Schedule, _ *Queue, disk *shelf) {
			s.Take(Request{Now: 5000, Hold: 1000, PerQueue: 1}, func(Taken, int64) {})
			disk.urls = []URL{b, c}
		}, []URL{b, c}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disk := &shelf{urls: []URL{a, b, c}}
			s := New(0, disk, 2)
			q := s.Restore("c", "k", Kept{Limits: Limits{Delay: -1}, Waiting: 3, First: 1000})
			late := s.Restore("c", "late", Kept{Limits: Limits{Delay: -1}, Waiting: 3, First: 9000})
			s.Restored(0)
			unread, n := s.Unread(5000, 10)
			if len(unread) != 1 || unread[0].Queue != q {
				t.Fatalf("unread are %v, want that of %s and not of %s", unread, q.Key, late.Key)
			}
			window, _ := disk.After(q, unread[0].Place, n)
			tt.meanwhile(s, q, disk)
			s.HasRead(unread[0], window)
			var got []URL
			s.Take(Request{Now: 5001, Hold: 1000, PerQueue: len(q.held) + 2}, func(t Taken, _ int64) {
				got = append(got, t.URL)
			})
			if !slices.Equal(got, tt.want) || disk.reads > tt.reads {
				t.Errorf("%v are handed out with %d looks at the disk, want %v with %d",
					got, disk.reads, tt.want, tt.reads)
			}
		})
	}
}
