package crawl

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"ephemera/live/clock"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// step sets the crawler's clock, while it runs or while nothing runs. Forward, nobody can tell
// that from time that passes if the machine does not.
func (s *sim) step(d time.Duration, restart bool) *sim {
	if restart {
		check(s.Close())
	}
	if d > 0 && s.Boot == "" {
		s.now = s.now.Add(d)
	} else {
		s.Ahead += d
	}
	if restart {
		s.Begin = s.now
		s = s.life.open(io.Discard)
	}
	return s
}

// on returns a life on a machine that tells steps of its clock from time that passes.
func (l life) on(boot string) life {
	l.Boot = boot
	return l
}

// TestClock: whatever the clock is set to, no feed waits for longer than the longest
// interval, none is asked for too soon, and what was found is found once.
func TestClock(t *testing.T) {
	const year = 365 * 24 * time.Hour
	sizes := []time.Duration{30 * year}
	if *full {
		sizes = []time.Duration{time.Second, time.Hour, year / 12, year, 30 * year}
	}
	for _, d := range sizes {
		for _, steps := range [][]time.Duration{{d}, {-d}, {d, -d}, {-d, d}} {
			for k := range 4 {
				restart, boot := k%2 > 0, []string{"", "1"}[k/2]
				t.Run(fmt.Sprint(steps, restart, boot), func(t *testing.T) {
					var urls []string
					var numbers []int
					for k, kind := range kinds {
						switch kind {
						case "etag", "none", "max-age", "ttl", "moved", "503", "date", "reset":
							urls = append(urls, address(k))
							numbers = append(numbers, k)
						}
					}
					r := newReferee(t, 60)
					l := newLife(t, r.Server, 60, urls...).on(boot)
					l.disk = vfs.NewMem()
					s := l.open(io.Discard).pass(12 * time.Hour)
					rate := s.view("").Row(s.feeds[urls[0]]).PerDay
					for _, d := range steps {
						for _, site := range r.sites {
							if d > 0 && boot == "" && !site.must.IsZero() {
								site.must = site.must.Add(d) // nobody could ask meanwhile
							}
						}
						s = s.step(d, restart).pass(time.Minute)
					}
					begin := s.now
					for range 38 {
						s.pass(time.Hour)
						for _, k := range numbers {
							site := r.sites[fmt.Sprintf("feed %d (%s) feed", k, kinds[k])]
							if kinds[k] == "moved" {
								site = r.sites[fmt.Sprintf("feed %d (moved) new", k)]
							}
							last := site.last
							if last.Before(begin) {
								last = begin
							}
							longest := 24 * time.Hour
							if kinds[k] == "503" || kinds[k] == "date" {
								longest = 36 * time.Hour // which they ask for
							}
							if wait := s.now.Sub(last); wait > longest+30*time.Minute {
								t.Fatalf("feed %d (%s) was not asked for in %v", k, kinds[k], wait)
							}
						}
					}
					if now := s.view("").Row(s.feeds[urls[0]]).PerDay; boot != "" && !(now > rate/2 && now < 2*rate) {
						t.Errorf("a feed had %.3g items a day, and has %.3g", rate, now)
					}
					now := s.now.Add(s.Ahead)
					for _, row := range s.view("").Feeds {
						if row := s.view("").Row(row); row.Last.After(now) || row.Due.Sub(now) > 36*time.Hour {
							t.Errorf("at %v the last look at %s was at %v, the next is at %v",
								now, row.Name(), row.Last, row.Due)
						}
					}
					if d := s.stats.Days[0].Begin; d.After(now) || now.Sub(d) > 24*time.Hour {
						t.Errorf("at %v the last day begins at %v", now, d)
					}
					check(s.Close())
					s.Begin = s.now
					r.compare(s.life)
					delete(r.wrong, "impossible dates") // which they are by the clock of then
					delete(r.wrong, "wrong sums")       // none of these feeds has such dates
					for rule, breaches := range r.wrong {
						t.Errorf("%s: %d times, such as %s", rule, len(breaches), breaches[0])
					}
				})
			}
		}
	}
}

// TestSmallStepOfClock: where a clock is set forward by a second, no wait ends by that much too
// soon, also where it was set while nothing ran, and where the crawler was killed after that.
func TestSmallStepOfClock(t *testing.T) {
	for _, how := range []string{"running", "stopped", "killed"} {
		t.Run(how, func(t *testing.T) {
			r := newReferee(t, 60)
			l := newLife(t, r.Server, 60, address(0)).on("1")
			l.disk = vfs.NewMem()
			s := l.open(io.Discard)
			s.now = s.now.Add(700 * time.Millisecond) // others are made at the begin of a minute
			s.round()
			s = s.step(time.Second, how == "stopped")
			if how == "killed" {
				s.pass(time.Minute)
				check(s.store.Close())
				s.Begin = s.now
				s = s.life.open(io.Discard)
			}
			s.pass(time.Hour)
			defer s.Close()
			if r.looks < 3 {
				t.Errorf("%d looks in an hour", r.looks)
			}
			for rule, breaches := range r.wrong {
				t.Errorf("%s: %d times, such as %s", rule, len(breaches), breaches[0])
			}
		})
	}
}

// TestKilledInStep: whenever the crawler is killed while it takes up that its clock was set, all that it has kept is
// moved once: feeds, one of them under way, what a host asks for, and the items.
func TestKilledInStep(t *testing.T) {
	for _, by := range []time.Duration{30 * 24 * time.Hour, -30 * 24 * time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			disk := vfs.NewCrashableMem()
			var lock sync.Mutex   // the store writes in several goroutines
			var left []*vfs.MemFS // what a kill leaves
			setting := false
			set := func(v bool) { lock.Lock(); setting = v; lock.Unlock() }
			l := newLife(t, newReferee(t, 60).Server, 60, address(0), address(1), address(2), address(3), address(4),
				address(slices.Index(kinds, "503"))).on("1")
			l.disk = errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
				lock.Lock()
				defer lock.Unlock()
				if setting && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					left = append(left, disk.CrashClone(vfs.CrashCloneCfg{
						UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1)),
					}))
				}
				return nil
			}))
			s := l.open(io.Discard).pass(5*time.Hour + 20*time.Minute)
			times := func(s *sim) string {
				var all []string
				for _, r := range s.feeds {
					all = append(all, fmt.Sprintln(r.ID.URL, r.Tried, r.Last, r.NotBefore))
				}
				for host, b := range s.blocked {
					all = append(all, fmt.Sprintln(host, b.Asked, b.Until))
				}
				if s.river[0].at > s.latest.Unix() {
					all = append(all, "an item was found later than now")
				}
				slices.Sort(all)
				return strings.Join(all, "")
			}
			before := times(s)
			r := s.feeds[address(0)]
			must(s.store.Hasten([]schedule.ID{r.ID}))
			must(s.store.Take(&schedule.Request{Crawl: crawlName, Hold: s.opt.hold().Milliseconds()}, 1))
			s.loadAsked() // as the next start does
			r.held = true
			s.Ahead = by
			set(true)
			s.clock()
			set(false)
			r.held = false
			left = append(left, disk)
			want := times(s)
			if len(s.blocked) == 0 || want == before || len(left) < 2 {
				t.Fatalf("%d hosts ask to wait; in %d writes\n%s becomes\n%s", len(s.blocked), len(left), before, want)
			}
			check(s.Close())
			l.Begin, l.Ahead = s.now, by
			for k, disk := range left {
				l.disk = disk
				s := l.open(io.Discard)
				if got := times(s); got != want {
					t.Errorf("after a kill at write %d of %d:\n%swant\n%s", k, len(left), got, want)
				}
				check(s.Close())
			}
		})
	}
}

// TestStepWithDamagedItem: an item that cannot be read holds up nothing else when the clock is set.
func TestStepWithDamagedItem(t *testing.T) {
	const by = -30 * 24 * time.Hour
	l := newLife(t, newReferee(t, 60).Server, 60, address(0), address(1)).on("1")
	s := l.open(io.Discard).pass(5 * time.Hour)
	defer s.Close()
	check(s.store.Set(store.Value{Name: itemPrefix + s.river[0].place.String(), Data: []byte("{")}))
	last := s.river[1].at
	s.Ahead = by
	s.clock()
	var kept clock.Reading
	check(json.Unmarshal(must(s.store.Value(readingName)), &kept))
	if kept != s.read {
		t.Errorf("the step is kept as if the clocks showed %v; they showed %v", kept, s.read)
	}
	if got := time.Duration(s.river[1].at-last) * time.Second; got != by {
		t.Errorf("another item was moved by %v; want %v", got, by)
	}
}

// TestKilledAfterStep: what the journal has of a clock that was ahead stops nothing after a
// kill.
func TestKilledAfterStep(t *testing.T) {
	r := newReferee(t, 12)
	var urls []string
	for k := range 12 {
		urls = append(urls, address(k*len(kinds)))
	}
	l := newLife(t, r.Server, 12, urls...)
	s := l.open(io.Discard).pass(90 * time.Minute)
	s.Ahead = 365 * 24 * time.Hour
	s.pass(58 * time.Minute)
	s.Ahead = 0
	s.pass(time.Minute)
	check(s.store.Close()) // killed
	l.Begin, l.Ahead = s.now, 0
	s = l.open(io.Discard)
	before := r.looks
	s.pass(10 * time.Hour)
	if n := r.looks - before; n < 90 || len(r.wrong["requests an hour"]) > 0 {
		t.Errorf("%d requests in 10 hours of at most 12; %v", n, r.wrong)
	}
	check(s.Close())
}

// TestKilledOften: after a step back that nobody can tell from time, waits go on, also where the
// crawler is killed before it saves what was learned.
func TestKilledOften(t *testing.T) {
	r := newReferee(t, 12)
	l := newLife(t, r.Server, 12, address(3))
	l.Ahead = 30 * 24 * time.Hour
	for k := range 46 {
		if k == 6 {
			l.Ahead = 0
		}
		s := l.open(io.Discard).pass(50 * time.Minute)
		check(s.store.Close()) // killed
		l.Begin = s.now
	}
	if site := r.sites["feed 3 (none) feed"]; site.requests < 30 {
		t.Errorf("%d looks in 38 hours at a feed to be asked once an hour", site.requests)
	}
}
