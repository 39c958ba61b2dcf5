package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is the same in the obvious way: it looks at everything, each time.
type model struct {
	delay  int64
	turns  int
	queues map[[2]string]*modelQueue
}

type modelQueue struct {
	Limits
	turn int
	urls map[string]*modelURL
}

type modelURL struct{ due, created, until int64 }

func (m *model) count(q *modelQueue, now int64) (n Counts) {
	n.Queues = 1
	for _, u := range q.urls {
		switch {
		case u.due == Completed:
			n.Completed++
		case u.until > now:
			n.Held++
			fallthrough
		default:
			n.Scheduled++
			n.Active = 1
		}
	}
	return n
}

// take returns the URLs of the request, as "crawl key url".
func (m *model) take(r Request) (got []string) {
	type turn struct {
		id [2]string
		q  *modelQueue
	}
	var order []turn
	for id, q := range m.queues {
		order = append(order, turn{id, q})
	}
	slices.SortFunc(order, func(a, b turn) int { return a.q.turn - b.q.turn })
	served := 0
	for _, t := range order {
		q := t.q
		n := m.count(q, r.Now)
		delay := q.Delay
		if delay < 0 {
			delay = m.delay
		}
		if r.Crawl != "" && r.Crawl != t.id[0] || r.Key != "" && r.Key != t.id[1] ||
			q.Blocked > r.Now || q.Last > 0 && q.Last+delay > r.Now ||
			q.Most > 0 && n.Completed >= int(q.Most) || r.PerQueue > 0 && n.Held >= r.PerQueue {
			continue
		}
		var due []string
		for url, u := range q.urls {
			if u.due != Completed && u.due <= r.Now && u.until <= r.Now {
				due = append(due, url)
			}
		}
		slices.SortFunc(due, func(a, b string) int {
			if d := q.urls[a].due - q.urls[b].due; d != 0 {
				return int(d)
			}
			if a < b {
				return -1
			}
			return 1
		})
		if r.PerQueue > 0 {
			due = due[:min(len(due), r.PerQueue-n.Held)]
		}
		if len(due) == 0 {
			continue
		}
		for _, url := range due {
			q.urls[url].until = r.Now + r.Hold
			got = append(got, fmt.Sprint(t.id, url))
		}
		m.turns++
		q.turn, q.Last = m.turns, r.Now
		if served++; served == r.Queues || r.Enough > 0 && len(got) >= r.Enough {
			break
		}
	}
	return got
}

// TestAgainstObviousModel holds that whatever is called, the same URLs are handed
// out in the same order, and the totals agree.
func TestAgainstObviousModel(t *testing.T) {
	for seed := range uint64(300) {
		walk(t, rand.New(rand.NewPCG(seed, 0)))
	}
}

func walk(t *testing.T, rng *rand.Rand) {
	const delay = 1000
	s := New(delay)
	m := &model{delay: delay, queues: map[[2]string]*modelQueue{}}
	now := int64(1_000_000)
	pick := func(names string) string { return names[rng.IntN(len(names)):][:1] }
	span := func() int64 { return []int64{0, 1, 2, 500, 1000, 2000, 5000}[rng.IntN(7)] }
	for range 300 {
		id := [2]string{pick("cd"), pick("stu")}
		q, mq := s.Lookup(id[0], id[1]), m.queues[id]
		switch call := rng.IntN(20); {
		case call < 5:
			now += span()
		case call < 10:
			if mq == nil {
				q, _ = s.Ensure(id[0], id[1], nil)
				m.turns++
				mq = &modelQueue{Limits: Limits{Delay: -1}, turn: m.turns, urls: map[string]*modelURL{}}
				m.queues[id] = mq
			}
			url, due := pick("abcdef"), now+span()-1000
			if rng.IntN(4) == 0 {
				due = Completed
			}
			s.Put(q, url, due, now)
			u := mq.urls[url]
			if u == nil {
				u = &modelURL{created: now / 1000 * 1000}
				mq.urls[url] = u
			}
			u.due, u.until = due, 0
		case call < 15:
			r := Request{Now: now, Queues: rng.IntN(4), PerQueue: rng.IntN(4), Hold: span(), Enough: rng.IntN(4)}
			if rng.IntN(2) == 0 {
				r.Crawl = id[0]
				if rng.IntN(2) == 0 {
					r.Key = id[1]
				}
			}
			var got []string
			for _, x := range s.Take(nil, r) {
				got = append(got, fmt.Sprint([2]string{x.Queue.Crawl(), x.Queue.Key}, x.URL.Name))
			}
			if want := m.take(r); !slices.Equal(got, want) {
				t.Fatalf("%+v: got %q, want %q", r, got, want)
			}
		case q == nil:
		case call < 18:
			l := q.Limits
			switch rng.IntN(3) {
			case 0:
				l.Delay = span() - 1
			case 1:
				l.Blocked = now + span()
			case 2:
				l.Most = uint32(rng.IntN(4))
			}
			s.SetLimits(q, l)
			mq.Limits = l
		case call < 19:
			m.delay = span()
			s.SetDelay(m.delay)
		case rng.IntN(4) == 0:
			if got, want := s.RemoveQueue(q), len(mq.urls); got != want {
				t.Fatalf("removed %d of %d", got, want)
			}
			delete(m.queues, id)
		default:
			before, n := now-span(), 0
			for url, u := range mq.urls {
				if u.created < before {
					delete(mq.urls, url)
					n++
				}
			}
			if got := s.RemoveBefore(q, before); len(got) != n {
				t.Fatalf("removed %d, want %d", len(got), n)
			}
		}

		s.Advance(now)
		var all Counts
		for id, mq := range m.queues {
			want := m.count(mq, now)
			if got := s.Lookup(id[0], id[1]).Counts(); got != want {
				t.Fatalf("%q: %+v, want %+v", id, got, want)
			}
			all.Queues += want.Queues
			all.Active += want.Active
			all.Scheduled += want.Scheduled
			all.Held += want.Held
			all.Completed += want.Completed
		}
		if got := s.Counts(""); got != all {
			t.Fatalf("all: %+v, want %+v", got, all)
		}
	}
}

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
