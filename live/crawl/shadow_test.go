package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"ephemera/live/feed"
	"ephemera/live/store"
	"ephemera/live/store/storetest"
)

// readers are fakes of readers that fetch their feeds each hour by themselves, and count what
// changes them.
func readers(t *testing.T, n int) map[string]struct {
	reader func() Reader
	server *httptest.Server
	fetch  func(k int, now time.Time) // has one of n feeds fetched
	items  func(k int) int            // that a feed has
	asked  func() int                 // what was asked that changes something
} {
	every := func(k int) time.Duration { // a few publish often
		return []time.Duration{20 * time.Minute, 8 * time.Hour, 11 * time.Hour, 14 * time.Hour}[k%4]
	}
	at := func(k int) string { return fmt.Sprintf("http://f%02d.test/feed", k) }
	m, f := newFakeMiniflux(t), newFakeFreshRSS(t)
	for k := range n {
		m.feeds[int64(k+1)] = &fakeFeed{url: at(k), every: every(k)}
		f.feeds = append(f.feeds, &fakeFresh{url: at(k), every: every(k)})
	}
	type one = struct {
		reader func() Reader
		server *httptest.Server
		fetch  func(k int, now time.Time)
		items  func(k int) int
		asked  func() int
	}
	return map[string]one{
		"FreshRSS": {
			func() Reader { return NewFreshRSS(f.URL, "alice", "token", "apisecret") }, f.Server,
			func(k int, now time.Time) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.now = func() time.Time { return now }
				f.fetch(f.feeds[k])
			},
			func(k int) int { return len(f.feeds[k].entries) },
			func() int { return len(f.refresh) },
		},
		"Miniflux": {
			func() Reader { return NewMiniflux(m.URL, "token") }, m.Server,
			func(k int, now time.Time) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.now = func() time.Time { return now }
				m.fetch(m.feeds[int64(k+1)])
			},
			func(k int) int { return len(m.feeds[int64(k+1)].entries) },
			func() int { return len(m.refresh) },
		},
	}
}

// TestShadow: in the shadow of a reader that fetches each feed once an hour nothing is changed there,
// each item is found once, at the time at which the reader found it, through kills, and the page
// compares that with when the learner would have found it, with as many requests.
func TestShadow(t *testing.T) {
	const n, days = 12, 3
	for name, r := range readers(t, n) {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, r.server, 60)
			l.Reader, l.Shadow = r.reader(), true
			s := l.open(io.Discard)
			for k := range n {
				r.fetch(k, s.now)
			}
			fetches := n
			for minute := range days * 24 * 60 {
				if minute%5 == 0 {
					r.fetch(minute/5%n, s.now.Add(-time.Second))
					fetches++
				}
				if rand.N(200) == 0 { // killed
					must(s.Tick())
					s.Wait()
					check(s.store.Close())
					l.Begin, l.Reader = s.now, r.reader()
					s = l.open(io.Discard)
				}
				s.pass(time.Minute)
			}
			defer s.Close()
			if r.asked() > 0 {
				t.Errorf("the reader was asked %d times for what changes it", r.asked())
			}
			looks := 0
			for k := range n {
				f := s.feeds[fmt.Sprintf("http://f%02d.test/feed", k)]
				if f == nil || f.Items != r.items(k) {
					t.Errorf("feed %d: %+v; the reader has %d", k, f, r.items(k))
				}
			}
			for _, times := range s.stats.Outcome {
				looks += times
			}
			if looks < fetches-n || looks > fetches {
				t.Errorf("%d looks are known, of %d", looks, fetches)
			}
			page := s.comparedPage(t)
			got := s.compared.Rivals
			one := s.get("/?feed=" + s.feeds["http://f00.test/feed"].Key()).Body.String()
			if !strings.Contains(one, name+" looks by its own rule; the learner would look on ") {
				t.Errorf("%.3000s", one)
			}
			for _, want := range []string{
				"with as many requests, 12 an hour.",
				"do not wait where publishers ask for it, which " + name + " does not say.",
			} {
				if !strings.Contains(page, want) {
					t.Errorf("%q is not on the page: %.3000s", want, page)
				}
			}
			if len(got) != 4 || !strings.HasPrefix(got[0].Name, name) || !strings.Contains(page, "In the shadow") {
				t.Fatalf("%+v %.3000s", s.compared, page)
			}
			for _, one := range got {
				if d := one.Requests - got[0].Requests; d < -got[0].Requests/10 || d > got[0].Requests/10 {
					t.Errorf("%+v; the reader made %d requests", one, got[0].Requests)
				}
			}
			if got[0].Mean < 15*time.Minute || got[0].Mean > 35*time.Minute || got[1].Mean > got[0].Mean ||
				got[1].Mean > got[2].Mean*2/3 {
				t.Errorf("each feed is fetched once an hour: %+v", got)
			}
		})
	}
}

// TestShadowUnseen: where the crawler was stopped for ten hours, or the reader not reached, the page says of the
// reader's other fetches what it says without that, of as many an hour, and what it leaves out; also where
// the first looks after that are dated by a clock that is set right soon.
func TestShadowUnseen(t *testing.T) {
	const n, days, begin, end = 12, 2, 30 * 60, 40 * 60 // minutes
	play := func(stopped, away, ahead bool) *comparison {
		r := readers(t, n)["Miniflux"]
		var down atomic.Bool
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if down.Load() {
				panic(http.ErrAbortHandler)
			}
			r.server.Config.Handler.ServeHTTP(w, q)
		}))
		defer server.Close()
		l := newLife(t, server, 60)
		l.Reader, l.Shadow, l.disk, l.Boot = NewMiniflux(server.URL, "token"), true, vfs.NewMem(), "1"
		s := l.open(io.Discard)
		first := s.now
		for k := range n {
			r.fetch(k, first)
		}
		for minute := range days * 24 * 60 {
			l.Begin = first.Add(time.Duration(minute) * time.Minute)
			switch {
			case stopped && minute == begin:
				check(s.Close())
			case stopped && minute == end:
				s = l.open(io.Discard)
			}
			down.Store(away && begin <= minute && minute < end)
			if s.Ahead = 0; ahead && end-1 <= minute && minute < end+10 {
				s.Ahead = 30 * 24 * time.Hour
			}
			if minute%5 == 0 {
				r.fetch(minute/5%n, l.Begin.Add(-time.Second))
			}
			if !stopped || minute < begin || minute >= end {
				s.now = l.Begin
				s.pass(time.Minute)
			}
		}
		page := s.comparedPage(t)
		if strings.Contains(page, whileUnseen+".") != (stopped || away) || strings.Count(page, "at most 60") != 1 ||
			!strings.Contains(page, "the learner would look, at most 60 requests an hour") {
			t.Errorf("%.3000s", page)
		}
		if d := s.stats.Days[0].Quantile(.9); d > 90*time.Minute {
			t.Errorf("nine tenths were found within %v", d)
		}
		check(s.Close())
		return s.compared
	}
	whole := play(false, false, false)
	if len(whole.Left) > 0 {
		t.Errorf("left out are %+v", whole.Left)
	}
	for name, got := range map[string]*comparison{
		"stopped": play(true, false, false), "away": play(false, true, false),
		"away until the clock is ahead by a month": play(false, true, true),
	} {
		if len(got.Rivals) == 0 || len(got.Left) != 1 || got.Left[0].Why != whileUnseen || got.Left[0].Mean > 0 {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if d := got.Items + got.LeftItems() - whole.Items; d < -2 || d > 2 {
			t.Errorf("%s: %d items and %d that are left out, of %d", name, got.Items, got.LeftItems(), whole.Items)
		}
		hours := got.To.Sub(got.From).Hours()
		for k, one := range got.Rivals[:3] {
			if d := one.Mean - whole.Rivals[k].Mean; d.Abs() > 3*time.Minute {
				t.Errorf("%s: %+v; want %+v", name, one, whole.Rivals[k])
			}
			want := float64(whole.Rivals[k].Requests) * (hours - 10.5) / hours
			if d := float64(one.Requests) - want; d < -.1*want || d > .1*want {
				t.Errorf("%s: %+v; want %.0f requests", name, one, want)
			}
		}
	}
}

// late is a reader that fetches once more when it has given its list.
type late struct {
	Reader
	fetch func()
}

func (r late) Feeds(ctx context.Context) (feeds []Outline, left []error, err error) {
	defer r.fetch()
	return r.Reader.Feeds(ctx)
}

// TestShadowLate: a fetch that is newer than the list that is known is looked at once.
func TestShadowLate(t *testing.T) {
	m := newFakeMiniflux(t)
	f := &fakeFeed{url: "http://f1.test/feed", every: time.Hour}
	m.feeds[1] = f
	l := newLife(t, m.Server, 60)
	now := l.Begin
	fetch := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		now = now.Add(time.Second)
		m.now = func() time.Time { return now }
		m.fetch(f)
	}
	fetch()
	l.Reader, l.Shadow = late{NewMiniflux(m.URL, "token"), fetch}, true
	s := l.open(io.Discard)
	defer s.Close()
	for range 50 {
		s.round()
	}
	if n := len(s.feeds[f.url].Looks); n != 1 {
		t.Errorf("a fetch is looked at %d times", n)
	}
}

// TestShadowUnread: while a reader gives its list and not what it fetched of a feed, the feed has not failed. It is
// asked again each minute, and gives each entry in the end; the comparison leaves out what was added meanwhile, if
// the reader may have made other fetches.
func TestShadowUnread(t *testing.T) {
	for name, path := range map[string]string{"Miniflux": "/v1/feeds/1/entries", "FreshRSS": "/contents/feed/1"} {
		for _, hours := range []int{0, 4} { // others
			t.Run(fmt.Sprint(name, hours), func(t *testing.T) {
				r := readers(t, 3)[name]
				var broken atomic.Bool
				var asked atomic.Int64
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
					if broken.Load() && strings.HasSuffix(q.URL.Path, path) {
						asked.Add(1)
						http.Error(w, "no", http.StatusInternalServerError)
						return
					}
					r.server.Config.Handler.ServeHTTP(w, q)
				}))
				defer server.Close()
				l := newLife(t, server, 60)
				l.Shadow, l.Reader = true, NewMiniflux(server.URL, "token")
				if name == "FreshRSS" {
					l.Reader = NewFreshRSS(server.URL, "alice", "token", "apisecret")
				}
				s := l.open(io.Discard)
				defer s.Close()
				fetch := func() {
					for k := range 3 {
						r.fetch(k, s.now.Add(-time.Second))
					}
				}
				for range 5 {
					fetch()
					s.pass(time.Hour)
				}
				fetch()
				broken.Store(true)
				s.pass(30 * time.Minute)
				for range hours {
					s.pass(time.Hour)
					fetch()
				}
				page := s.get("/").Body.String()
				broken.Store(false)
				s.pass(30 * time.Minute)
				f := s.feeds["http://f00.test/feed"]
				n := int(asked.Load())
				if s.stats.Outcome[feed.Failed] > 0 || f.Failures > 0 || f.Items != r.items(0) ||
					n < 29+60*hours || n > 31+62*hours {
					t.Errorf("%v; %d of %d items, asked %d times", s.stats.Outcome, f.Items, r.items(0), n)
				}
				if want := "Not read is what " + name + " fetched of <a"; !strings.Contains(page, want) ||
					!strings.Contains(page, "answers 500") || strings.Contains(s.get("/").Body.String(), want) {
					t.Errorf("%.3000s", page)
				}
				var last entry
				check(s.journal(0, func(e *entry) bool {
					if e.Feed == f.ID.URL {
						last = *e
					}
					return true
				}))
				if last.Unseen != (hours > 0) {
					t.Errorf("%+v", last)
				}
			})
		}
	}
}

// TestShadowFullDisk: what the reader fetched while the disk was full is found as soon as there is room, also if the
// disk gets full while it is read.
func TestShadowFullDisk(t *testing.T) {
	for _, reading := range []bool{false, true} {
		t.Run(fmt.Sprint(reading), func(t *testing.T) {
			r := readers(t, 3)["Miniflux"]
			disk := &storetest.Disk{FS: vfs.NewMem()}
			full := func(is bool) {
				disk.Full.Store(is)
				time.Sleep(100 * time.Millisecond) // the store looks again after 50
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if reading && strings.HasSuffix(q.URL.Path, "/entries") {
					full(true)
					reading = false
				}
				r.server.Config.Handler.ServeHTTP(w, q)
			}))
			defer server.Close()
			l := newLife(t, server, 60)
			l.Reader, l.Shadow, l.disk = NewMiniflux(server.URL, "token"), true, disk
			was := reading
			reading = false
			s := l.open(io.Discard)
			defer s.Close()
			for range 3 {
				r.fetch(0, s.now.Add(-time.Second))
				s.pass(time.Hour)
			}
			if reading = was; !reading {
				full(true)
			}
			r.fetch(0, s.now.Add(-time.Second))
			for range 3 {
				_, err := s.Tick()
				s.Wait()
				if s.now = s.now.Add(time.Minute); err != nil && !errors.Is(err, store.ErrFull) {
					t.Error(err)
				}
			}
			f := s.feeds["http://f00.test/feed"]
			if len(f.Looks) != 3 {
				t.Errorf("%d looks before there is room; want 3", len(f.Looks))
			}
			full(false)
			s.pass(2 * time.Minute)
			if f.Items != r.items(0) || len(f.Looks) != 4 || f.Failures > 0 {
				t.Errorf("%d of %d items are found in %d looks of 4", f.Items, r.items(0), len(f.Looks))
			}
		})
	}
}

// TestShadowSwitched: what the reader fetched by its own rule does not count among the requests after the switch, also
// after a kill; the learner goes on with what it knows, and feeds are asked for in the first epoch.
func TestShadowSwitched(t *testing.T) {
	for _, killed := range []bool{false, true} {
		r := readers(t, 12)["Miniflux"]
		l := newLife(t, r.server, 12)
		l.Reader, l.Shadow = r.reader(), true
		s := l.open(io.Discard)
		for minute := range 12*60 - 2 {
			if minute%2 == 0 {
				r.fetch(minute/2%12, s.now.Add(-time.Second))
			}
			s.pass(time.Minute)
		}
		if killed {
			check(s.store.Close())
		} else {
			check(s.Close())
		}
		l.Begin, l.Reader, l.Shadow = s.now, r.reader(), false
		before := s.learner
		s = l.open(io.Discard)
		if n := s.allowance(s.now); n != 12 {
			t.Errorf("killed: %v: %d requests of 12 are left", killed, n)
		}
		for address := range s.feeds {
			was, is := must(before.Belief(address)), must(s.learner.Belief(address))
			if d := math.Abs(is.Items - was.Items); d > 1e-9*was.Items || was.Items == 0 {
				t.Errorf("killed: %v: %s is thought to have %v items an hour, and had %v",
					killed, address, is.Items, was.Items)
			}
		}
		if s.pass(6 * time.Minute); r.asked() == 0 { // an epoch
			t.Errorf("killed: %v: no feed is asked for in the first minutes", killed)
		}
		check(s.Close())
	}
}

// TestShadowImported: a feed that is imported into Miniflux has not been fetched then, so what its first fetch finds is
// not new.
func TestShadowImported(t *testing.T) {
	m := newFakeMiniflux(t)
	l := newLife(t, m.Server, 60)
	f := &fakeFeed{url: "http://f1.test/feed", every: time.Hour, checked: l.Begin.Add(-time.Minute)}
	m.feeds[1] = f
	l.Reader, l.Shadow = NewMiniflux(m.URL, "token"), true
	s := l.open(io.Discard).pass(10 * time.Minute)
	defer s.Close()
	m.mu.Lock()
	m.now = func() time.Time { return s.now }
	m.fetch(f)
	m.mu.Unlock()
	s.pass(10 * time.Minute)
	for _, d := range s.river {
		if !d.first {
			t.Error("an item that was there before counts as new")
		}
	}
	if r := s.feeds[f.url]; r.Items != 10 || len(r.Looks) != 1 || r.Hours == [7][24]int{} {
		t.Errorf("%+v", r)
	}
}

// TestShadowFailing: of a feed that fails the page says that the reader asks for it again, and not when this crawler
// does.
func TestShadowFailing(t *testing.T) {
	m := newFakeMiniflux(t)
	l := newLife(t, m.Server, 60)
	f := &fakeFeed{url: "http://f1.test/feed", every: time.Hour, fails: true, checked: l.Begin}
	m.feeds[1] = f
	l.Reader, l.Shadow = NewMiniflux(m.URL, "token"), true
	s := l.open(io.Discard).pass(10 * time.Minute)
	defer s.Close()
	for _, path := range []string{"/", "/?feed=" + f.url} {
		page := s.get(path).Body.String()
		health, _, _ := strings.Cut(page, ">The plan<")
		want := "nothing for now: Miniflux asks for it again<"
		if !strings.Contains(health, want) || strings.Contains(health, "next look") {
			t.Errorf("%s: %.3000s", path, page)
		}
	}
}

// comparedPage returns the page with a comparison.
func (s *sim) comparedPage(t *testing.T) string {
	s.get("/")
	s.comparisons.Wait()
	page := s.get("/").Body.String()
	if w := s.get("/"); w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	return page
}

// BenchmarkCompare compares schedules of 5000 feeds over two weeks, at 600 requests an hour.
func BenchmarkCompare(b *testing.B) {
	now := time.Date(2026, 3, 16, 0, 0, 0, 0, time.UTC)
	begin := now.Add(-comparedOver)
	for b.Loop() {
		all := map[string]*observed{}
		for k := range 5000 {
			o := &observed{since: begin.Add(-time.Hour), last: now, wait: shortest}
			for at := begin; at.Before(now); at = at.Add(8*time.Hour + 20*time.Minute) {
				o.looks = append(o.looks, at)
			}
			for range k % 100 {
				at := begin.Add(rand.N(comparedOver))
				o.items = append(o.items, found{published: at, at: at.Add(time.Hour)})
			}
			all[address(k)] = o
		}
		opt := &Options{Shortest: shortest, Longest: longest, Shadow: true, Reader: NewMiniflux("http://a.test", "")}
		out := must(opt.compare(b.Context(), all, begin, now))
		b.Logf("%+v", out)
	}
}
