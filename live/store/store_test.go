package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"ephemera/live/schedule"
	"ephemera/live/store/storetest"
)

func open(t *testing.T, fs vfs.FS) *Store { return openAt(t, fs, 0, new(int64)) }

// showing is a clock that shows *now, in ms.
func showing(now *int64) func() time.Time { return func() time.Time { return time.UnixMilli(*now) } }

// openAt opens a store whose clock shows *now.
func openAt(t *testing.T, fs vfs.FS, window int, now *int64) *Store {
	s, err := Open("frontier", &Options{FS: fs, Delay: 1000, window: window, Now: showing(now)})
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
	s := open(t, fs)
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
		again := open(t, crash(fs, 50, uint64(i)))
		known := map[string]bool{}
		again.URLs("c", "", func(r *Record) bool { known[r.URL] = true; return true })
		if err := again.Lost(); err != nil {
			t.Fatal(err)
		}
		again.Close()
		n := len(known)
		if n < acked || n > 0 && slices.Max(slices.Collect(maps.Keys(known))) != fmt.Sprintf("%03d", n-1) {
			t.Fatalf("after %d calls, %d waited for: %d are kept, not the first ones", i+1, acked, n)
		}
	}
}

// TestHastenAfterRestart holds that a hold which ended while nothing ran keeps no URL from
// being hastened.
func TestHastenAfterRestart(t *testing.T) {
	fs, now := vfs.NewCrashableMem(), int64(5000)
	s := openAt(t, fs, 0, &now)
	id := schedule.ID{Crawl: "c", Key: "k", URL: "u"}
	c, err := s.Put(id, 1<<52, 1000, nil)
	c.Wait()
	s.Hasten([]schedule.ID{id})
	taken, err2 := s.Take(&schedule.Request{Hold: 60_000}, math.MaxInt)
	if len(taken) != 1 || err != nil || err2 != nil {
		t.Fatal(taken, err, err2)
	}
	fs = crash(fs, 0, 1)
	s.Close()
	for _, tt := range []struct {
		now int64
		n   int
	}{{64_999, 0}, {65_000, 1}} {
		now = tt.now
		s = openAt(t, fs, 0, &now)
		s.Hasten([]schedule.ID{id})
		if taken, err := s.Take(&schedule.Request{Hold: 60_000}, math.MaxInt); len(taken) != tt.n || err != nil {
			t.Errorf("after %d ms %d are handed out, want %d: %v", tt.now, len(taken), tt.n, err)
		}
		s.Close()
	}
}

// TestHastenAgain: a URL that is hastened again keeps its place in its queue.
func TestHastenAgain(t *testing.T) {
	var now int64
	s := openAt(t, vfs.NewMem(), 0, &now)
	defer s.Close()
	first, second := schedule.ID{Crawl: "c", Key: "k", URL: "z"}, schedule.ID{Crawl: "c", Key: "k", URL: "a"}
	for _, id := range []schedule.ID{first, second} {
		if _, err := s.Put(id, 1<<52, 1000, nil); err != nil {
			t.Fatal(err)
		}
	}
	for k, id := range []schedule.ID{first, second, first} {
		now = int64(5000 + 1000*k)
		if _, err := s.Hasten([]schedule.ID{id}); err != nil {
			t.Fatal(err)
		}
	}
	now = 9000
	taken, err := s.Take(&schedule.Request{PerQueue: 1, Hold: 60_000}, math.MaxInt)
	if err != nil || len(taken) != 1 || taken[0].URL != first.URL {
		t.Errorf("handed out are %v, %v; want %q", taken, err, first.URL)
	}
}

// model is a store in the obvious way: it looks at everything, each time.
type model struct {
	delay  int64
	atOnce int           // holds that end
	queues []*modelQueue // by turn
	turns  int           // of holds
}

type modelQueue struct {
	crawl, key string
	schedule.Limits
	urls   map[string]*modelURL
	served int // how often
}

type modelURL struct {
	Record
	until  int64 // end of its hold; 0 if it is not held, or its hold was ended
	turn   int   // of the hold
	before int64 // when it was due before it was hastened; 0 if it was not
}

func (m *model) find(crawl, key string) *modelQueue {
	for _, q := range m.queues {
		if q.crawl == crawl && q.key == key {
			return q
		}
	}
	return nil
}

func (m *model) put(id schedule.ID, due, now int64, data string) {
	q := m.find(id.Crawl, id.Key)
	if q == nil {
		q = &modelQueue{crawl: id.Crawl, key: id.Key, Limits: schedule.Limits{Delay: -1}, urls: map[string]*modelURL{}}
		m.queues = append(m.queues, q)
	}
	created := now / 1000 * 1000
	if u := q.urls[id.URL]; u != nil {
		created = u.Created
	}
	q.urls[id.URL] = &modelURL{Record: Record{id, due, created, []byte(data)}}
}

// setBack has the clock go from one time back to another.
func (m *model) setBack(from, to int64) {
	for _, q := range m.queues {
		if q.Last > to {
			q.Last -= from - to
		}
		for _, u := range q.urls {
			if u.until > 0 {
				u.until -= from - to
			}
		}
	}
	m.discovered(to)
}

// end ends holds that are over, those of one time in the order of the hand-outs, and reports whether more
// of them are.
func (m *model) end(now int64) (more bool) {
	var over []*modelURL
	for _, q := range m.queues {
		for _, u := range q.urls {
			if u.until > 0 && u.until <= now {
				over = append(over, u)
			}
		}
	}
	slices.SortFunc(over, func(a, b *modelURL) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.turn, b.turn))
	})
	for _, u := range over[:min(m.atOnce, len(over))] {
		u.until = 0
	}
	return len(over) > m.atOnce
}

// discovered has nothing be discovered later than now.
func (m *model) discovered(now int64) {
	for _, q := range m.queues {
		for _, u := range q.urls {
			if u.Created > now {
				if u.Due == u.Created {
					u.Due = now / 1000 * 1000
				}
				u.Created = now / 1000 * 1000
			}
		}
	}
}

// restart puts the queues in the order in which they were served last, and holds in that of their keys.
// What was hastened is due again when it was before.
func (m *model) restart(now int64) {
	var all []*modelURL
	for _, q := range m.queues {
		for _, u := range q.urls {
			u.Due, u.before = cmp.Or(u.before, u.Due), 0
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b *modelURL) int {
		return bytes.Compare(appendURL(nil, kindHold, a.ID), appendURL(nil, kindHold, b.ID))
	})
	for _, u := range all {
		m.turns++
		u.turn = m.turns
	}
	m.discovered(now)
	slices.SortFunc(m.queues, func(a, b *modelQueue) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.crawl, b.crawl), cmp.Compare(a.key, b.key))
	})
}

func (q *modelQueue) count() (n schedule.Counts) {
	n.Queues = 1
	for _, u := range q.urls {
		if u.Due == schedule.Completed {
			n.Completed++
			continue
		}
		n.Scheduled++
		n.Active = 1
		if u.until > 0 {
			n.Held++
		}
	}
	return n
}

// modelRequest is a request of the store and of the model, which has its own progress.
type modelRequest struct {
	schedule.Request
	begun  int
	queue  *modelQueue
	served int // when it stopped in the queue
	left   int // of the queue
}

// take returns n URLs of the request at most with what is kept of them.
func (m *model) take(now int64, r *modelRequest, n int) (got []string) {
	for len(got) < n {
		q := r.queue
		if r.left == 0 || !slices.Contains(m.queues, q) || q.served != r.served || q.closed(now) ||
			len(q.due(now)) == 0 {
			if q = m.next(now, r); q == nil {
				r.left = 0
				break
			}
		}
		due := q.due(now)
		due = due[:min(len(due), r.left, n-len(got))]
		for _, u := range due {
			u.until = now + r.Hold
			m.turns++
			u.turn = m.turns
			got = append(got, show(&u.Record))
		}
		q.served++
		q.Last = now
		m.queues = append(slices.DeleteFunc(m.queues, func(o *modelQueue) bool { return o == q }), q)
		r.queue, r.served, r.left = q, q.served, r.left-len(due)
		if len(got) < n {
			r.left = 0
		}
	}
	return got
}

// next has a request begin with the queue whose turn it is, if there is one.
func (m *model) next(now int64, r *modelRequest) *modelQueue {
	for _, q := range m.queues {
		n := q.count()
		delay := q.Delay
		if delay < 0 {
			delay = m.delay
		}
		if r.Queues > 0 && r.begun == r.Queues ||
			r.Crawl != "" && r.Crawl != q.crawl || r.Key != "" && r.Key != q.key ||
			q.closed(now) || q.Last > 0 && q.Last+delay > now || r.PerQueue > 0 && n.Held >= r.PerQueue ||
			len(q.due(now)) == 0 {
			continue
		}
		r.begun++
		if r.left = n.Scheduled - n.Held; r.PerQueue > 0 {
			r.left = min(r.left, r.PerQueue-n.Held)
		}
		return q
	}
	return nil
}

// closed reports whether nothing is handed out of the queue, whenever it was served last.
func (q *modelQueue) closed(now int64) bool {
	return q.Blocked > now || q.Most > 0 && q.count().Completed >= int(q.Most)
}

// due returns the URLs that are due, in order.
func (q *modelQueue) due(now int64) (due []*modelURL) {
	for _, u := range q.urls {
		if u.Due != schedule.Completed && u.Due <= now && u.until == 0 {
			due = append(due, u)
		}
	}
	slices.SortFunc(due, func(a, b *modelURL) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.URL, b.URL))
	})
	return due
}

func show(r *Record) string { return fmt.Sprintf("%q %d %d %s", r.ID, r.Due, r.Created, r.Data) }

// all returns what is kept of each URL.
func (m *model) all() (all []string) {
	for _, q := range m.queues {
		for _, u := range q.urls {
			all = append(all, show(&u.Record))
		}
	}
	slices.Sort(all)
	return all
}

// names that are prefixes of each other, or could be mistaken for lengths or ends.
var hostile = []string{
	"a", "ab", "_", "a_b", "/", "\x00", "\x01a", "\xff", "\xff\xff", strings.Repeat("k", 255), "[::1]",
}

// TestClock: whatever the clock is set to, while it runs or while nothing runs, what was
// discovered is handed out at once, a hold lasts for as long as it was to, and so does a
// queue's delay.
func TestClock(t *testing.T) {
	const hour, year = 3_600_000, 365 * 24 * 3_600_000
	for _, d := range []int64{1000, -1000, hour, -hour, year, -year, 30 * year, -30 * year} {
		for _, restarts := range []bool{false, true} {
			fs := vfs.NewCrashableMem()
			now := int64(1_700_000_000_000)
			s := openAt(t, fs, 0, &now)
			set := func(to int64) {
				if now = to; restarts {
					fs = crash(fs, 0, 1)
					s.Close()
					s = openAt(t, fs, 0, &now)
				}
				s.View(func(*schedule.Schedule) {}) // as services do each second
			}
			take := func() (got []string) {
				taken, err := s.Take(&schedule.Request{Hold: hour}, math.MaxInt)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range taken {
					got = append(got, r.URL)
				}
				slices.Sort(got)
				return got
			}
			want := func(when string, want ...string) {
				t.Helper()
				if got := take(); !slices.Equal(got, want) {
					t.Errorf("%d ms, restarts %v, %s: %q is handed out, want %q", d, restarts, when, got, want)
				}
			}
			discover := func(key, url string) {
				_, c, err := s.Discover(schedule.ID{Crawl: "c", Key: key, URL: url}, now, now, nil)
				if c.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			discover("held", "held")
			want("at first", "held")
			now += hour / 2
			discover("new", "new")
			want("then", "new")
			discover("new", "newer")
			set(now + d)
			if d >= hour {
				want("ahead", "held", "new", "newer")
				discover("ahead", "ahead")
				set(now - d) // which was a mistake
				want("back", "ahead")
				now += hour - 1000
				want("before the holds end")
				now += 1000
				want("after them", "ahead", "held", "new", "newer")
				continue
			}
			now += 2000 // the delay, and a step of a second
			want("at once", "newer")
			now += hour/2 - 6000
			want("before the hold ends")
			now += 6000
			want("after it", "held")
		}
	}
}

// TestAgainstObviousModel holds that whatever is called, the same URLs are handed out
// in the same order, and the totals agree; and that a power cut after any call changes
// nothing of that.
func TestAgainstObviousModel(t *testing.T) {
	walks := uint64(100)
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
	window := 1 + int(seed%4) // so that most URLs are on disk only
	now := int64(1_000_000_000)
	m := &model{delay: 1000, atOnce: []int{1, 2, 4, endedAtOnce}[seed/4%4]}
	var s *Store
	reopen := func() {
		var err error
		o := &Options{FS: fs, Delay: 1000, window: window, endedAtOnce: m.atOnce, Now: showing(&now)}
		if s, err = Open("frontier", o); err != nil {
			t.Fatal(err)
		}
	}
	reopen()
	defer func() { s.Close() }()
	var r *modelRequest // the last one
	check := func(what, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("walk %d: %+v: got %+v, want %+v", seed, what, got, want)
		}
	}
	for step := range 300 {
		id := schedule.ID{Crawl: names[rng.IntN(2)], Key: names[2+rng.IntN(3)], URL: names[rng.IntN(6)]}
		q := m.find(id.Crawl, id.Key)
		var gone, want int
		var unknown, found bool
		var err error
		switch call := rng.IntN(26); {
		case call < 5:
			if back := int64(3_600_000); rng.IntN(10) == 0 {
				m.setBack(now, now-back)
				now -= back
			} else {
				now += span()
			}
		case call < 10:
			due, data := now+span()-1000, fmt.Sprint(step)
			if rng.IntN(4) == 0 {
				due = schedule.Completed
			}
			_, err = s.Put(id, due, now, []byte(data))
			m.put(id, due, now, data)
		case call < 12:
			unknown, _, err = s.Discover(id, now, now, []byte("new"))
			check(id, unknown, q == nil || q.urls[id.URL] == nil)
			if unknown {
				m.put(id, now, now, "new")
			}
		case call < 17:
			now += span()                     // so that many holds are over at once
			if r == nil || rng.IntN(2) == 0 { // otherwise it goes on
				r = &modelRequest{Request: schedule.Request{
					Queues: rng.IntN(4), PerQueue: rng.IntN(4), Hold: 1 + span(),
				}}
				if rng.IntN(2) == 0 {
					r.Crawl = id.Crawl
					if rng.IntN(2) == 0 {
						r.Key = id.Key
					}
				}
			}
			n := cmp.Or(rng.IntN(4), math.MaxInt)
			var taken []Record
			var got []string
			taken, err = s.Take(&r.Request, n)
			for i := range taken {
				got = append(got, show(&taken[i]))
			}
			var want []string
			for over := true; over; over = over && len(want) < n && (r.Queues == 0 || r.begun < r.Queues) {
				over = m.end(now)
				want = append(want, m.take(now, r, n-len(want))...)
			}
			check(*r, got, want)
		case call < 20:
			blocked, delay, most := now+span(), span()-1, uint32(rng.IntN(4))
			limit := []func(l *schedule.Limits){
				func(l *schedule.Limits) { l.Blocked = blocked },
				func(l *schedule.Limits) { l.Delay = delay },
				func(l *schedule.Limits) { l.Most = most },
			}[rng.IntN(3)]
			var c *Commit
			found, c, err = s.Change(id.Crawl, id.Key, limit)
			c.Wait()
			if check(id, found, q != nil); found {
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
			m.queues = slices.DeleteFunc(m.queues, func(q *modelQueue) bool {
				gone := q.crawl == id.Crawl && (key == nil || q.key == id.Key)
				if gone {
					want += len(q.urls)
				}
				return gone
			})
		case call < 24:
			var places []int
			places, err = s.Hasten([]schedule.ID{id})
			m.end(now)
			u := (*modelURL)(nil)
			if q != nil {
				u = q.urls[id.URL]
			}
			if check("hastened", len(places) == 0, u != nil && u.Due != schedule.Completed); len(places) == 0 {
				if u.until == 0 && u.Due > now {
					u.before = cmp.Or(u.before, u.Due)
					u.Due = now
				}
			}
		case call < 25:
			before := now - span()
			gone, err = s.RemoveBefore(id.Crawl, id.Key, before, func(schedule.ID) {})
			if q != nil {
				want = len(q.urls)
				maps.DeleteFunc(q.urls, func(_ string, u *modelURL) bool { return u.Created < before })
				want -= len(q.urls)
			}
		default:
			s.mu.Lock()
			s.end().Wait() // so that all of it is there, ends of holds too, which nobody waits for
			fs = crash(fs, 50*rng.IntN(3), seed)
			s.Close()
			reopen()
			m.restart(now)
			r = nil
			var got []string
			for _, crawl := range names[:2] {
				err = cmp.Or(err, s.URLs(crawl, "", func(r *Record) bool {
					got = append(got, show(r))
					return true
				}))
			}
			slices.Sort(got)
			check("after the crash", got, m.all())
		}
		check("error", err, nil)
		check("removed", gone, want)
		m.end(now)
		s.View(func(sched *schedule.Schedule) {
			crawls := map[string]schedule.Counts{}
			for _, q := range m.queues {
				want := q.count()
				check(q, sched.Lookup(q.crawl, q.key).Counts(), want)
				all := crawls[q.crawl]
				all.Queues += want.Queues
				all.Active += want.Active
				all.Scheduled += want.Scheduled
				all.Held += want.Held
				all.Completed += want.Completed
				crawls[q.crawl] = all
			}
			for crawl, want := range crawls {
				check(crawl, sched.Counts(crawl), want)
			}
			check("another", sched.Counts("another"), schedule.Counts{})
		})
		m.end(now)
		q = m.find(id.Crawl, id.Key)
		check("held", s.Held(id), q != nil && q.urls[id.URL] != nil && q.urls[id.URL].until > now)
	}
}

// TestSaidOnce: what Pebble says again at each try, under other numbers, is said once, and
// another error is said.
func TestSaidOnce(t *testing.T) {
	var out bytes.Buffer
	l := pebbleLog{log: slog.New(slog.NewTextHandler(&out, nil)), said: map[string]time.Time{}}
	for job := range 1000 {
		l.Errorf("[JOB %d] flush error: write 000%d.sst: no space left on device", job, 2*job)
	}
	l.Errorf("[JOB %d] flush error: write %d.sst: input/output error", 1, 2)
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines; want one for each kind:\n%.500s", n, out.String())
	}
}

// TestShift: a hold, and the delay of a queue, last as long as they were to when the clock was
// set, also after a restart.
func TestShift(t *testing.T) {
	const minute, day = 60_000, 24 * 3_600_000
	for _, step := range []int64{400 * day, -400 * day, 5 * minute} {
		fs, now := vfs.NewMem(), int64(1000*day)
		s := openAt(t, fs, 0, &now)
		take := func() int {
			records, err := s.Take(&schedule.Request{Crawl: "c", Hold: 60 * minute}, math.MaxInt)
			if err != nil {
				t.Fatal(err)
			}
			return len(records)
		}
		_, _, err := s.Discover(schedule.ID{Crawl: "c", Key: "k", URL: "u"}, 1, day, nil)
		if err != nil || take() != 1 {
			t.Fatal(err)
		}
		if err := s.Shift(time.Duration(step)*time.Millisecond, nil); err != nil {
			t.Fatal(err)
		}
		now += step + 59*minute
		early := take()
		s.Close()
		s = openAt(t, fs, 0, &now)
		again := take()
		now += 2 * minute
		if late := take(); early != 0 || again != 0 || late != 1 {
			t.Errorf("step %d: handed out %d and %d times before its hold ends, and %d times after",
				step, early, again, late)
		}
		s.Close()
	}
}

// TestSync: with a sync of each commit a power cut keeps what was acknowledged; with one now
// and then it may lose what came after the last; and without any, all.
func TestSync(t *testing.T) {
	for _, tt := range []struct {
		name     string
		sync     time.Duration
		at, once bool // whether it is kept at once, and after ten times the interval
	}{
		{"every commit", 0, true, true},
		{"never", Never, false, false},
		{"within 20 ms", 20 * time.Millisecond, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			s, err := Open("frontier", &Options{FS: fs, Sync: tt.sync})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			kept := func(url string) bool {
				again := open(t, crash(fs, 0, 1))
				defer again.Close()
				r, err := again.Find(schedule.ID{Crawl: "c", Key: "k", URL: url})
				if err != nil {
					t.Fatal(err)
				}
				return r != nil
			}
			put := func(url string) {
				c, err := s.Put(schedule.ID{Crawl: "c", Key: "k", URL: url}, 1, 1, nil)
				if err != nil {
					t.Fatal(err)
				}
				c.Wait()
			}
			put("first")
			if got := kept("first"); got != tt.at && (tt.at || tt.sync == Never) { // a tick may be just now
				t.Errorf("that a URL is on disk when it is acknowledged is %v, want %v", got, tt.at)
			}
			if time.Sleep(10 * 20 * time.Millisecond); kept("first") != tt.once {
				t.Errorf("that it is on disk after 200 ms is %v, want %v", !tt.once, tt.once)
			}
		})
	}
}

// TestBackup: a copy of a store that runs is a store with what was acknowledged before, and
// the two change apart.
func TestBackup(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs)
	defer s.Close()
	put := func(url string) {
		c, err := s.Put(schedule.ID{Crawl: "c", Key: "k", URL: url}, 1, 1, []byte("data"))
		if err != nil {
			t.Fatal(err)
		}
		c.Wait()
	}
	put("before")
	if err := s.Backup("copy"); err != nil {
		t.Fatal(err)
	}
	put("after")
	if err := s.Backup("copy"); err == nil {
		t.Error("a copy takes the place of another one")
	}
	again, err := Open("copy", &Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	var urls []string
	again.URLs("c", "", func(r *Record) bool { urls = append(urls, r.URL+" "+string(r.Data)); return true })
	if err := again.Lost(); err != nil || !slices.Equal(urls, []string{"before data"}) {
		t.Errorf("the copy has %q, want the one URL that was put before it was made: %v", urls, err)
	}
}

// TestBackupThatIsKilled: whenever the program is killed, what is there under the name of a copy is a
// whole one, and what is left of it next to it is in nobody's way.
func TestBackupThatIsKilled(t *testing.T) {
	disk := vfs.NewCrashableMem()
	var during []*vfs.MemFS // what a kill leaves
	begun := false
	s := open(t, errorfs.Wrap(disk, errorfs.InjectorFunc(func(errorfs.Op) error {
		if begun {
			during = append(during, crash(disk, 100, 1))
		}
		return nil
	})))
	defer s.Close()
	id := schedule.ID{Crawl: "c", Key: "k", URL: "u"}
	c, err := s.Put(id, 1, 1, nil)
	if c.Wait(); err != nil {
		t.Fatal(err)
	}
	begun = true
	if err := s.Backup("copy"); err != nil {
		t.Fatal(err)
	}
	begun = false
	for k, left := range during {
		if _, err := left.Stat("copy"); err != nil {
			continue
		}
		again, err := Open("copy", &Options{FS: left, Memory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		r, err := again.Find(id)
		if again.Close(); r == nil || err != nil {
			t.Fatalf("after a kill at the call %d of %d to the disk the copy has no URL: %v", k, len(during), err)
		}
	}
	disk.MkdirAll(Unfinished+"next", 0o700)
	if err := s.Backup("next"); err != nil {
		t.Error(err)
	}
}

// TestOpenOnFullDisk: where there is no room for what the log has, a start fails, and one with room has
// all of it.
func TestOpenOnFullDisk(t *testing.T) {
	disk := vfs.NewCrashableMem()
	s := open(t, disk)
	id := schedule.ID{Crawl: "c", Key: "k", URL: "u"}
	c, err := s.Put(id, 1, 1, nil)
	if c.Wait(); err != nil {
		t.Fatal(err)
	}
	disk = crash(disk, 0, 1)
	s.Close()
	full := errorfs.Wrap(crash(disk, 100, 1), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	}))
	if _, err := Open("frontier", &Options{FS: full}); !strings.Contains(fmt.Sprint(err), "the disk is full") {
		t.Errorf("the error is %v; want one that says that the disk is full", err)
	}
	s = open(t, disk)
	defer s.Close()
	if r, err := s.Find(id); r == nil || err != nil {
		t.Errorf("what was acknowledged is not there when there is room: %v", err)
	}
}

// TestNearlyFull: on a nearly full disk puts fail, which is said once, and deletes make room as long as
// some of the reserve is left.
func TestNearlyFull(t *testing.T) {
	var log bytes.Buffer
	disk := &storetest.Disk{FS: vfs.NewMem()}
	s, err := Open("frontier", &Options{FS: disk, Log: slog.New(slog.NewTextHandler(&log, nil)), Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func(key string) error {
		s.looked = time.Time{}
		c, err := s.Put(schedule.ID{Crawl: "c", Key: key, URL: "u"}, 1<<60, 1, nil)
		c.Wait()
		return err
	}
	release := func() error {
		s.looked = time.Time{}
		a := "a"
		n, err1 := s.Remove("c", &a)
		m, err2 := s.RemoveBefore("c", "b", 5000, func(schedule.ID) {})
		if err1 == nil && err2 == nil && (n != 1 || m != 1) {
			t.Errorf("%d and %d URLs are deleted; want one each", n, m)
		}
		return cmp.Or(err1, err2, s.SetOnFullDisk("name", []byte{1}))
	}
	if err := errors.Join(put("a"), put("b")); err != nil {
		t.Fatal(err)
	}
	disk.Full.Store(true)
	for range 3 {
		if err := put("d"); err != ErrFull {
			t.Errorf("the error of a put is %v, want %v", err, ErrFull)
		}
	}
	b := schedule.ID{Crawl: "c", Key: "b", URL: "u"}
	before, err1 := s.Find(b)
	_, err2 := s.Hasten([]schedule.ID{b})
	after, err3 := s.Find(b)
	if err2 != ErrFull || !reflect.DeepEqual(before, after) {
		t.Errorf("the error of hastening is %v, want %v; %+v (%v) becomes %+v (%v)",
			err2, ErrFull, before, err1, after, err3)
	}
	disk.Spent.Store(true)
	if err := release(); err != ErrFull {
		t.Errorf("without a free byte the error of a delete is %v, want %v", err, ErrFull)
	}
	disk.Spent.Store(false)
	if err := release(); err != nil {
		t.Error(err)
	}
	disk.Full.Store(false)
	if err := errors.Join(put("d"), put("e")); err != nil {
		t.Error(err)
	}
	stops, goes := strings.Count(log.String(), "nearly full"), strings.Count(log.String(), "room again")
	if stops != 1 || goes != 1 {
		t.Errorf("the log says %d times that writing stops, and %d times that it goes on; want once each:\n%s",
			stops, goes, &log)
	}
}

// TestFormat: a store without the number of its format is of the first one, and one that a
// later program wrote is left as it is.
func TestFormat(t *testing.T) {
	fs := vfs.NewMem()
	number := func(change func(s *Store)) (found []byte) {
		s := open(t, fs)
		defer s.Close()
		found, err := s.get([]byte{kindFormat})
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		return found
	}
	number(func(s *Store) { s.db.Delete([]byte{kindFormat}, nil) })
	if got, want := number(func(*Store) {}), appendNumbers(nil, format); !bytes.Equal(got, want) {
		t.Errorf("the format of a store without a number becomes %v, want %v", got, want)
	}
	number(func(s *Store) { s.db.Set([]byte{kindFormat}, appendNumbers(nil, format+1), nil) })
	s, err := Open("frontier", &Options{FS: fs})
	if err == nil {
		s.Close()
	}
	if want := "newer than this program: it is 3; this one reads up to 2"; !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

// TestFilter: what was added is there, and of others with 10⁷ added less than a hundredth.
func TestFilter(t *testing.T) {
	const n = 10_000_000
	f, r := make(filter, 1<<22), rand.New(rand.NewPCG(1, 2))
	for range n {
		h := r.Uint64()
		if f.add(h); !f.has(h) {
			t.Fatal("what was added is not there")
		}
	}
	others := 0
	for range n / 10 {
		if f.has(r.Uint64()) {
			others++
		}
	}
	if share := float64(others) / (n / 10); share > .01 || share == 0 {
		t.Errorf("%v of others are taken for one that was added, want less than .01", share)
	}
}

// TestTakeMany holds that many URLs of a queue that are handed out at once come each with its own
// data, in the order in which they are due, whatever their names, and without that of others.
func TestTakeMany(t *testing.T) {
	now := int64(5000)
	s := openAt(t, vfs.NewMem(), 0, &now)
	defer s.Close()
	const n = 100
	var want []string
	for i := range n {
		id := schedule.ID{Crawl: "c", Key: fmt.Sprint("k", i/50), URL: fmt.Sprintf("u%02d", i*37%n)}
		var data []byte
		if i%3 > 0 {
			data = fmt.Append(nil, "data ", i)
		}
		if _, err := s.Put(id, int64(1000+i), 1000, data); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint(id, string(data)))
	}
	records, err := s.Take(&schedule.Request{Hold: 1000}, n)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprint(r.ID, string(r.Data)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAtOnce: what one caller wrote it finds again, while others write and batches are applied.
func TestAtOnce(t *testing.T) {
	s, err := Open(t.TempDir(), &Options{Sync: Never})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.recent = make([]recentURL, 1) // so that records are read
	var wg sync.WaitGroup
	for caller := range 4 {
		wg.Go(func() {
			const urls = 40 // more than a window of the schedule
			for round := range 200 {
				queue := fmt.Sprintf("%d-%d", caller, round)
				id := func(i int) schedule.ID { return schedule.ID{Crawl: "c", Key: queue, URL: fmt.Sprint(i)} }
				for i := range urls {
					s.Put(id(i), int64(1000+i), 1000, bytes.Repeat([]byte("x"), 1000))
					if unknown, _, err := s.Discover(id(i), 1000, 1000, nil); unknown || err != nil {
						t.Errorf("%v, which was put, is unknown (%v)", id(i), err)
					}
				}
				for i := range urls / 2 { // those of the window
					s.Put(id(i), schedule.Completed, 1000, nil)
				}
				r := &schedule.Request{Crawl: "c", Key: queue, Queues: 1, Hold: 1_000_000}
				if got, err := s.Take(r, 2*urls); len(got) != urls/2 || err != nil {
					t.Errorf("%d URLs of %d are taken (%v)", len(got), urls/2, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestInFlight: whoever looks for what waits in a queue finds what is in a batch that is being applied.
func TestInFlight(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(schedule.ID{Crawl: "c", Key: "k", URL: "u"}, nil, false, schedule.URL{Name: "u", Due: 1000}, nil)
	b := s.takeOff()
	var found []schedule.URL
	done := make(chan struct{})
	go func() {
		defer close(done)
		found, err = s.After(s.sched.Lookup("c", "k"), schedule.URL{}, 10)
	}()
	time.Sleep(20 * time.Millisecond) // it looks meanwhile
	s.fly(b, false)
	if <-done; len(found) != 1 || err != nil {
		t.Errorf("it finds %v (%v)", found, err)
	}
}

// TestDeletedWhileRead: a URL whose queue is deleted while its record is read is unknown, also where another
// caller has read it just before, and the queue is there again.
func TestDeletedWhileRead(t *testing.T) {
	disk := vfs.NewMem()
	key := "k"
	id := func(url string) schedule.ID { return schedule.ID{Crawl: "c", Key: key, URL: url} }
	s := open(t, disk)
	between := schedule.ID{Crawl: "c", Key: "a", URL: "u"} // so that the start does not read the other's record
	s.Discover(between, 1, 1, make([]byte, 100_000))
	_, commit, err := s.Discover(id("u"), 1, 1, nil)
	commit.Wait()
	if err := cmp.Or(err, s.db.Flush(), s.Close()); err != nil {
		t.Fatal(err)
	}
	var reads atomic.Bool
	s = open(t, errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && reads.CompareAndSwap(true, false) {
			s.mu.Lock()
			record := appendURL(nil, kindURL, id("u"))
			hash := s.hash(record)
			*s.recentOf(hash) = recentURL{hash, 1, 1} // as the other caller leaves it
			s.mu.Unlock()
			if n, err := s.Remove("c", &key); n != 1 || err != nil {
				t.Errorf("%d URLs are deleted (%v)", n, err)
			}
			if added, _, err := s.Discover(id("other"), 1, 1, nil); !added || err != nil {
				t.Error(err)
			}
		}
		return nil
	})))
	defer s.Close()
	reads.Store(true)
	if added, _, err := s.Discover(id("u"), 1, 1, nil); !added || err != nil || reads.Load() {
		t.Errorf("it is added: %v (%v); its record was read: %v", added, err, !reads.Load())
	}
	if n := s.sched.Counts("c").Scheduled; n != 3 {
		t.Errorf("%d URLs are scheduled, want 3", n)
	}
}
