package store

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"ephemera/live/schedule"
)

// model is a store in the obvious way: it looks at everything, each time.
type model struct {
	delay  int64
	turns  int
	queues map[schedule.ID]*modelQueue // without URL
}

type modelQueue struct {
	schedule.Limits
	turn int
	urls map[string]*modelURL
}

type modelURL struct {
	due, created, until int64
	data                string
}

// inTurn returns the queues in the order of their turns.
func (m *model) inTurn() (ids []schedule.ID) {
	for id := range m.queues {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b schedule.ID) int { return m.queues[a].turn - m.queues[b].turn })
	return ids
}

func (m *model) serve(q *modelQueue) {
	m.turns++
	q.turn = m.turns
}

func (m *model) put(id schedule.ID, due, now int64, data string) {
	url := id.URL
	id.URL = ""
	if m.queues[id] == nil {
		m.queues[id] = &modelQueue{Limits: schedule.Limits{Delay: -1}, urls: map[string]*modelURL{}}
		m.serve(m.queues[id])
	}
	u := m.queues[id].urls[url]
	if u == nil {
		u = &modelURL{created: now / 1000 * 1000}
		m.queues[id].urls[url] = u
	}
	u.due, u.until, u.data = due, 0, data
}

// restart puts the queues in the order in which they were served last.
func (m *model) restart() {
	ids := m.inTurn()
	slices.SortFunc(ids, func(a, b schedule.ID) int {
		return cmp.Or(cmp.Compare(m.queues[a].Last, m.queues[b].Last), cmp.Compare(a.Crawl, b.Crawl), cmp.Compare(a.Key, b.Key))
	})
	for _, id := range ids {
		m.serve(m.queues[id])
	}
}

func (q *modelQueue) count(now int64) (n schedule.Counts) {
	n.Queues = 1
	for _, u := range q.urls {
		switch {
		case u.due == schedule.Completed:
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

// take returns the URLs of the request with what is kept of them.
func (m *model) take(r schedule.Request) (got []string) {
	served := 0
	for _, id := range m.inTurn() {
		q := m.queues[id]
		n := q.count(r.Now)
		delay := q.Delay
		if delay < 0 {
			delay = m.delay
		}
		if r.Crawl != "" && r.Crawl != id.Crawl || r.Key != "" && r.Key != id.Key ||
			q.Blocked > r.Now || q.Last > 0 && q.Last+delay > r.Now ||
			q.Most > 0 && n.Completed >= int(q.Most) || r.PerQueue > 0 && n.Held >= r.PerQueue {
			continue
		}
		var due []string
		for url, u := range q.urls {
			if u.due != schedule.Completed && u.due <= r.Now && u.until <= r.Now {
				due = append(due, url)
			}
		}
		slices.SortFunc(due, func(a, b string) int {
			return cmp.Or(cmp.Compare(q.urls[a].due, q.urls[b].due), cmp.Compare(a, b))
		})
		if r.PerQueue > 0 {
			due = due[:min(len(due), r.PerQueue-n.Held)]
		}
		if len(due) == 0 {
			continue
		}
		for _, url := range due {
			u := q.urls[url]
			u.until = r.Now + r.Hold
			id.URL = url
			got = append(got, show(&Record{id, u.due, u.created, []byte(u.data)}))
		}
		q.Last = r.Now
		m.serve(q)
		if served++; served == r.Queues || r.Enough > 0 && len(got) >= r.Enough {
			break
		}
	}
	return got
}

func show(r *Record) string { return fmt.Sprintf("%q %d %d %s", r.ID, r.Due, r.Created, r.Data) }

// all returns what is kept of each URL, by crawl, key and URL.
func (m *model) all() (all []string) {
	for id, q := range m.queues {
		for url, u := range q.urls {
			id.URL = url
			all = append(all, show(&Record{id, u.due, u.created, []byte(u.data)}))
		}
	}
	slices.Sort(all)
	return all
}

// names that are prefixes of each other, or could be mistaken for lengths or ends.
var hostile = []string{"a", "ab", "_", "a_b", "/", "\x00", "\x01a", "\xff", "\xff\xff", strings.Repeat("k", 255), "[::1]"}

// TestAgainstObviousModel holds that whatever is called, the same URLs are handed out
// in the same order, and the totals agree; and that a power cut after any call changes
// nothing of that.
func TestAgainstObviousModel(t *testing.T) {
	walks := uint64(200)
	if testing.Short() {
		walks = 40
	}
	for seed := range walks {
		walk(t, seed)
	}
}

func walk(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	names := slices.Clone(hostile)
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	span := func() int64 { return []int64{0, 1, 2, 500, 1000, 2000, 5000}[rng.IntN(7)] }
	fs := vfs.NewCrashableMem()
	s := open(t, fs, Options{Delay: 1000})
	defer func() { s.Close() }()
	m := &model{delay: 1000, queues: map[schedule.ID]*modelQueue{}}
	now := int64(1_000_000)
	var commit *Commit
	for step := range 300 {
		queue := schedule.ID{Crawl: names[rng.IntN(2)], Key: names[2+rng.IntN(3)]}
		id, q := queue, m.queues[queue]
		id.URL = names[rng.IntN(6)]
		var gone, want int
		var err error
		switch call := rng.IntN(24); {
		case call < 5:
			now += span()
		case call < 10:
			due, data := now+span()-1000, fmt.Sprint(step)
			if rng.IntN(4) == 0 {
				due = schedule.Completed
			}
			commit, err = s.Put(id, due, now, []byte(data))
			m.put(id, due, now, data)
		case call < 12:
			var unknown bool
			unknown, commit, err = s.Discover(id, now, now, []byte("new"))
			if want := q == nil || q.urls[id.URL] == nil; unknown != want {
				t.Fatalf("walk %d: %q is unknown: %v", seed, id, unknown)
			}
			if unknown {
				m.put(id, now, now, "new")
			}
		case call < 17:
			r := schedule.Request{Now: now, Queues: rng.IntN(4), PerQueue: rng.IntN(4), Hold: span(), Enough: rng.IntN(4)}
			if rng.IntN(2) == 0 {
				r.Crawl = id.Crawl
				if rng.IntN(2) == 0 {
					r.Key = id.Key
				}
			}
			var taken []Record
			var got []string
			taken, _, err = s.Take(r)
			for i := range taken {
				got = append(got, show(&taken[i]))
			}
			if want := m.take(r); !slices.Equal(got, want) {
				t.Fatalf("walk %d: %+v: got %q, want %q", seed, r, got, want)
			}
		case call < 20:
			blocked, delay, most := now+span(), span()-1, uint32(rng.IntN(4))
			limit := []func(l *schedule.Limits){
				func(l *schedule.Limits) { l.Blocked = blocked },
				func(l *schedule.Limits) { l.Delay = delay },
				func(l *schedule.Limits) { l.Most = most },
			}[rng.IntN(3)]
			var found bool
			if found, err = s.Change(id.Crawl, id.Key, limit); found != (q != nil) {
				t.Fatalf("walk %d: %q is there: %v", seed, queue, found)
			}
			if found {
				limit(&q.Limits)
			}
		case call < 21:
			m.delay = span()
			err = s.SetDelay(m.delay)
		case call < 22:
			key := &id.Key
			if rng.IntN(4) == 0 {
				key = nil // all of the crawl
			}
			gone, err = s.Remove(id.Crawl, key)
			for of, q := range m.queues {
				if of.Crawl == id.Crawl && (key == nil || of.Key == id.Key) {
					want += len(q.urls)
					delete(m.queues, of)
				}
			}
		case call < 23:
			before := now - span()
			gone, err = s.RemoveBefore(id.Crawl, id.Key, before)
			if q != nil {
				want = len(q.urls)
				maps.DeleteFunc(q.urls, func(_ string, u *modelURL) bool { return u.created < before })
				want -= len(q.urls)
			}
		default:
			commit.Wait() // waited for: all of it is there
			fs = crash(fs, 50*rng.IntN(3), seed)
			s.Close()
			s = open(t, fs, Options{Delay: 1000})
			m.restart()
			var got []string
			for _, crawl := range names[:2] {
				err = cmp.Or(err, s.URLs(crawl, "", func(r *Record) bool {
					got = append(got, show(r))
					return true
				}))
			}
			if slices.Sort(got); !slices.Equal(got, m.all()) {
				t.Fatalf("walk %d: after the crash:\n%q\nwant:\n%q", seed, got, m.all())
			}
		}
		if gone != want || err != nil {
			t.Fatalf("walk %d: removed %d, want %d: %v", seed, gone, want, err)
		}
		s.View(now, func(sched *schedule.Schedule) {
			var all schedule.Counts
			for id, q := range m.queues {
				want := q.count(now)
				if got := sched.Lookup(id.Crawl, id.Key).Counts(); got != want {
					t.Fatalf("walk %d: %q: %+v, want %+v", seed, id, got, want)
				}
				all.Queues += want.Queues
				all.Active += want.Active
				all.Scheduled += want.Scheduled
				all.Held += want.Held
				all.Completed += want.Completed
			}
			if got := sched.Counts(""); got != all {
				t.Fatalf("walk %d: all: %+v, want %+v", seed, got, all)
			}
		})
	}
}
