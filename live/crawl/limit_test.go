package crawl

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"ephemera/live/schedule"
	"ephemera/live/store/storetest"
)

// TestPerHour: in no hour are there more requests than allowed, at whatever times the
// crawler gets to run, and however often it is killed; and nearly as many as allowed.
func TestPerHour(t *testing.T) {
	for _, perHour := range []float64{60, 7} {
		r := newReferee(t, perHour)
		var urls []string
		for k := range 100 {
			urls = append(urls, address(k*len(kinds)))
		}
		l := newLife(t, r.Server, perHour, urls...)
		rng := rand.New(rand.NewPCG(3, 1))
		const hours = 36
		s := l.open(io.Discard)
		end := s.now.Add(hours * time.Hour)
		for next := s.now; s.now.Before(end); s.now = s.now.Add(time.Duration(1+rng.IntN(400)) * time.Second) {
			if s.now.After(next) {
				next = s.now.Add(2 * time.Hour)
				s.Wait()
				check(s.store.Close()) // what was learned is not saved
				s.Begin = s.now
				s = s.life.open(io.Discard)
			}
			for s.round() > 0 {
			}
		}
		check(s.Close())
		for rule, breaches := range r.wrong {
			t.Errorf("%v an hour: %s: %d times, such as %s", perHour, rule, len(breaches), breaches[0])
		}
		if float64(r.looks) < .9*hours*perHour {
			t.Errorf("%v an hour: %d requests in %d hours", perHour, r.looks, hours)
		}
	}
}

// TestOncePerHour: a round makes no more requests than those of an hour, also a long time
// after the last one, and the next one none before the hour is over.
func TestOncePerHour(t *testing.T) {
	r := newReferee(t, 3)
	var urls []string
	for k := range 12 {
		urls = append(urls, address(k*len(kinds)))
	}
	l := newLife(t, r.Server, 3, urls...)
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 3}, {20 * time.Minute, 0}, {10 * time.Hour, 3}} {
		l.Begin = l.Begin.Add(tt.after)
		s := l.open(io.Discard)
		if n, err := s.Once(); n != tt.want || err != nil {
			t.Errorf("%v later: %d requests, %v; want %d", tt.after, n, err, tt.want)
		}
		check(s.Close())
	}
}

// TestOnceEarly: rounds that a timer begins some minutes too early or too late make all requests of their
// hours, and never more than those of an hour.
func TestOnceEarly(t *testing.T) {
	const perHour = 6
	r := newReferee(t, perHour)
	var urls []string
	for k := range 40 {
		urls = append(urls, address(k*len(kinds)))
	}
	l := newLife(t, r.Server, perHour, urls...)
	begin, made := l.Begin, 0
	for hour, minutes := range []time.Duration{3, 0, 5, 2} {
		due := begin.Add(time.Duration(hour)*time.Hour + minutes*time.Minute)
		if due.After(l.Begin) { // else the round before has only just ended
			l.Begin = due
		}
		s := l.open(io.Discard)
		n, err := s.Once()
		check(err)
		check(s.Close())
		made, l.Begin = made+n, s.now
	}
	if made != 4*perHour || len(r.wrong) > 0 {
		t.Errorf("%d requests in 4 rounds of %d; %v", made, perHour, r.wrong)
	}
}

// TestOnceInterrupted: a round ends when somebody ends it, and keeps what it has found.
func TestOnceInterrupted(t *testing.T) {
	r := newReferee(t, 60)
	var urls []string
	for k := range 12 { // of one host, so that they come one after the other
		urls = append(urls, fmt.Sprintf("%s?%d", address(0), k))
	}
	l := newLife(t, r.Server, 60, urls...)
	s := l.open(io.Discard)
	pause := s.Crawler.opt.pause
	s.Crawler.opt.pause = func(ctx context.Context, d time.Duration) {
		s.end()
		pause(ctx, d)
	}
	n, err := s.Once()
	check(s.Close())
	if n == 0 || n == len(urls) || err != nil {
		t.Errorf("%d requests of %d, %v", n, len(urls), err)
	}
	l.Begin = s.now
	again := l.open(io.Discard)
	defer again.Close()
	if kept := again.stats.Days[0].Requests; kept != n {
		t.Errorf("of %d requests %d are kept", n, kept)
	}
}

// TestNoEpochLost: a feed is asked for when its wait is over, and not an epoch later because the answer
// came a little after its epoch had begun.
func TestNoEpochLost(t *testing.T) {
	for _, tt := range []struct {
		kind int
		wait time.Duration
	}{{0, shortest}, {4, 2 * time.Hour}, {33, time.Hour}} {
		r := newReferee(t, 60)
		var s *sim
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			r.ServeHTTP(w, q)
			s.took.Add(int64(2 * time.Second))
		}))
		s = newLife(t, server, 60, address(tt.kind)).open(io.Discard)
		s.pass(2 * 24 * time.Hour)
		if n, most := r.looks, int(2*24*time.Hour/tt.wait); n < most-1-most/50 || n > most || len(r.wrong) > 0 {
			t.Errorf("%s: %d looks in two days, each %v after the last one; want about %d; %v",
				kinds[tt.kind], n, tt.wait, most, r.wrong)
		}
		s.Close()
		server.Close()
	}
}

// TestShortestChanged: another interval between two requests holds after a restart for feeds that are known, too.
func TestShortestChanged(t *testing.T) {
	r := newReferee(t, 60)
	l := newLife(t, r.Server, 60, address(0))
	for _, shortest := range []time.Duration{6 * time.Hour, 15 * time.Minute, 6 * time.Hour} {
		l.Shortest = shortest
		s := l.open(io.Discard).pass(6 * time.Hour) // in which a wait may end that was begun before
		before := r.looks
		s.pass(2 * 24 * time.Hour)
		check(s.Close())
		l.Begin = s.now
		n, most := r.looks-before, int(2*24*time.Hour/shortest)
		if n < most-1-most/50 || n > most+1 || len(r.wrong) > 0 {
			t.Errorf("%d looks in two days, each %v after the last one; want about %d; %v", n, shortest, most, r.wrong)
		}
	}
}

// TestCountedOnce: a request counts once among those of the hour, whatever became of its answer, and whether the
// crawler is saved before that, after it, or not at all before a kill. Another feed of its host waits for nothing.
func TestCountedOnce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(s *sim, over func(), disk *storetest.Disk)
	}{
		{"answered", func(s *sim, over func(), _ *storetest.Disk) { over(); s.Wait() }},
		{"broken off", func(s *sim, over func(), _ *storetest.Disk) { s.end(); s.Wait() }},
		{"not kept", func(s *sim, over func(), disk *storetest.Disk) {
			disk.Full.Store(true)
			time.Sleep(100 * time.Millisecond) // the store looks again after 50
			over()
			s.Wait()
			disk.Full.Store(false)
			time.Sleep(100 * time.Millisecond)
		}},
		{"under way", func(*sim, func(), *storetest.Disk) {}},
	} {
		for saved := range 4 { // bits: while it is under way, and afterwards
			t.Run(fmt.Sprint(tt.name, saved), func(t *testing.T) {
				asked, answer := make(chan bool, 100), make(chan bool)
				over := sync.OnceFunc(func() { close(answer) })
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
					if q.URL.Path == "/robots.txt" {
						http.NotFound(w, q)
						return
					}
					asked <- true
					<-answer
					w.Header().Set("ETag", "1")
					io.WriteString(w, `<rss version="2.0"><channel><item><guid>1</guid></item></channel></rss>`)
				}))
				defer server.Close()
				defer over()
				l := newLife(t, server, 60, "http://a.test/feed")
				disk := &storetest.Disk{FS: vfs.Default}
				l.disk = disk
				s := l.open(io.Discard)
				begun := must(s.Tick())
				<-asked
				if saved&1 > 0 {
					check(s.save(s.now, true))
				}
				tt.answer(s, over, disk)
				if saved&2 > 0 {
					s.now = s.now.Add(time.Minute)
					must(s.Tick())
					check(s.save(s.now, true))
				}
				before := s.allowance(s.now)
				check(s.store.Close()) // killed
				s.end()
				s.Wait()
				check(os.WriteFile(l.OPML, []byte(opml("http://a.test/feed", "http://a.test/other")), 0o644))
				for _, later := range []time.Duration{time.Minute, 2 * time.Minute} {
					l.Begin = s.now.Add(later)
					s = l.open(io.Discard)
					now, then := s.allowance(s.now), s.allowance(s.now.Add(time.Hour))
					if begun != 1 || before != 59 || now != 59 || then != 60 {
						t.Errorf("after %d requests %d of 60 are left, %v after the kill %d, and %d an hour later",
							begun, before, later, now, then)
					}
					check(s.store.Close()) // killed again
				}
				over()
				s = l.open(io.Discard)
				defer s.Close()
				if s.pass(10 * time.Minute); s.feeds["http://a.test/other"].Last.IsZero() {
					t.Error("another feed of the host is not asked for")
				}
			})
		}
	}
}

// TestKilledWithOtherShortest: requests that were under way at a kill count among those of the hour, and of no later
// one, whatever the shortest interval is before and after it.
func TestKilledWithOtherShortest(t *testing.T) {
	for _, shortest := range [][2]time.Duration{{time.Hour / 4, 6 * time.Hour}, {6 * time.Hour, time.Hour / 4}} {
		l := newLife(t, newReferee(t, 5).Server, 5, address(0))
		l.Shortest = shortest[0]
		s := l.open(io.Discard).pass(6*time.Hour + 50*time.Minute)
		check(s.save(s.now, true))
		before := s.allowance(s.now)
		must(s.store.Hasten([]schedule.ID{s.feeds[address(0)].ID}))
		held := must(s.store.Take(&schedule.Request{Crawl: crawlName, Hold: s.opt.hold().Milliseconds()}, 1))
		check(s.store.Close()) // killed
		l.Begin, l.Shortest = s.now.Add(time.Minute), shortest[1]
		s = l.open(io.Discard)
		now, later := s.allowance(s.now), s.allowance(s.now.Add(time.Hour))
		if len(held) != 1 || now != before-1 || later != 5 {
			t.Errorf("%v: of %d requests that were left %d are, with %d under way at the kill, and %d an hour later",
				shortest, before, now, len(held), later)
		}
		check(s.Close())
	}
}
