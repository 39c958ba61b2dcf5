package schedule

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
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
	rapid.Check(t, func(t *rapid.T) {
		const delay = 1000
		s := New(delay)
		m := &model{delay: delay, queues: map[[2]string]*modelQueue{}}
		now := int64(1_000_000)
		name := rapid.SampledFrom([]string{"", "a", "b", "ab", "_"})
		draw := func() (id [2]string, q *Queue, mq *modelQueue) {
			id = [2]string{rapid.SampledFrom([]string{"c", "d"}).Draw(t, "crawl"), name.Draw(t, "key")}
			return id, s.Lookup(id[0], id[1]), m.queues[id]
		}
		span := rapid.SampledFrom([]int64{0, 0, 1, 500, 1000, 2000, 5000})
		few := rapid.IntRange(0, 3)
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) { now += span.Draw(t, "wait") },
			"put": func(t *rapid.T) {
				id, q, mq := draw()
				if mq == nil {
					q, _ = s.Ensure(id[0], id[1], nil)
					m.turns++
					mq = &modelQueue{Limits: Limits{Delay: -1}, turn: m.turns, urls: map[string]*modelURL{}}
					m.queues[id] = mq
				}
				url, due := rapid.StringMatching(`[a-d]`).Draw(t, "url"), now+span.Draw(t, "due")-1000
				if rapid.IntRange(0, 3).Draw(t, "complete") == 0 {
					due = Completed
				}
				s.Put(q, url, due, now)
				u := mq.urls[url]
				if u == nil {
					u = &modelURL{created: now / 1000 * 1000}
					mq.urls[url] = u
				}
				u.due, u.until = due, 0
			},
			"take": func(t *rapid.T) {
				r := Request{Now: now, Queues: few.Draw(t, "queues"), PerQueue: few.Draw(t, "per queue"), Hold: span.Draw(t, "hold"), Enough: few.Draw(t, "enough")}
				if rapid.Bool().Draw(t, "one crawl") {
					r.Crawl = "c"
					r.Key = name.Draw(t, "key")
				}
				var got []string
				for _, x := range s.Take(nil, r) {
					got = append(got, fmt.Sprint([2]string{x.Queue.Crawl(), x.Queue.Key}, x.URL.Name))
				}
				if want := m.take(r); !slices.Equal(got, want) {
					t.Fatalf("%+v: got %q, want %q", r, got, want)
				}
			},
			"limits": func(t *rapid.T) {
				if _, q, mq := draw(); q != nil {
					l := q.Limits
					switch rapid.IntRange(0, 2).Draw(t, "which") {
					case 0:
						l.Delay = span.Draw(t, "delay") - 1
					case 1:
						l.Blocked = now + span.Draw(t, "blocked")
					case 2:
						l.Most = uint32(few.Draw(t, "limit"))
					}
					s.SetLimits(q, l)
					mq.Limits = l
				}
			},
			"default delay": func(t *rapid.T) {
				m.delay = span.Draw(t, "delay")
				s.SetDelay(m.delay)
			},
			"remove": func(t *rapid.T) {
				id, q, mq := draw()
				if q == nil {
					return
				}
				if rapid.IntRange(0, 3).Draw(t, "queue") == 0 {
					if got, want := s.RemoveQueue(q), len(mq.urls); got != want {
						t.Fatalf("removed %d of %d", got, want)
					}
					delete(m.queues, id)
					return
				}
				before, n := now-span.Draw(t, "age"), 0
				for url, u := range mq.urls {
					if u.created < before {
						delete(mq.urls, url)
						n++
					}
				}
				if got := s.RemoveBefore(q, before); len(got) != n {
					t.Fatalf("removed %d, want %d", len(got), n)
				}
			},
			"": func(t *rapid.T) {
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
			},
		})
	})
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
