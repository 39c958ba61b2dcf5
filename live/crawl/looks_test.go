package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"ephemera/live/feed"
	"ephemera/live/store"
	"ephemera/live/store/storetest"
)

// TestItemsOnce: an item without an id is found once, whatever is added to its link, and
// one whose date cannot be written down is found.
func TestItemsOnce(t *testing.T) {
	looks := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		looks++
		w.Header().Set("ETag", fmt.Sprint(looks))
		fmt.Fprintf(w, `<rss version="2.0"><channel>
			<item><link>/a?utm_campaign=%d</link><title>A</title></item>
			<item><link>/b/session-%[1]d</link><title>B</title><pubDate>Sun, 01 Mar 2026 13:00:00 +0100</pubDate></item>
			<item><guid>c</guid><pubDate>Sat, 1 Jan 00:30:00 CET</pubDate></item>
		</channel></rss>`, looks)
	}))
	defer server.Close()
	s := simulate(t, server, "http://a.test/feed").pass(6 * time.Hour)
	if s.stats.Items != 3 || looks < 3 {
		t.Errorf("%d items in %d looks", s.stats.Items, looks)
	}
}

// TestKeptOrLost: a look that cannot be put on disk has not been: neither the learner nor
// the next request knows of it.
func TestKeptOrLost(t *testing.T) {
	s := simulate(t, newReferee(t, 30).Server, address(0))
	r := s.feeds[address(0)]
	var before, after bytes.Buffer
	check(s.learner.Save(&before))
	kept, seq, sums := *r, s.seq, fmt.Sprint(s.stats)
	s.underWay++ // as if it had been asked
	err := s.take(r, &Look{Result: feed.Result{
		Outcome: feed.Found, Place: feed.Place{URL: address(0), ETag: "new"},
		Feed: &feed.Feed{Items: []feed.Item{{ID: 77, Published: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}, {ID: 78}}},
	}})
	check(s.learner.Save(&after))
	if err == nil || !bytes.Equal(before.Bytes(), after.Bytes()) || s.seq != seq || fmt.Sprint(s.stats) != sums {
		t.Errorf("%v: the learner or the sums know of it", err)
	}
	if r.Place != kept.Place || !slices.Equal(r.Seen, kept.Seen) ||
		!r.Last.Equal(kept.Last) || !r.NotBefore.After(s.now) {
		t.Errorf("%+v, was %+v", r.Place, kept.Place)
	}
}

// moving is a server of feeds at some addresses, which move permanently to where they point;
// to 410 they are gone.
type moving struct {
	*httptest.Server
	mu    sync.Mutex
	to    map[string]string // by path
	asked map[string]int    // requests by path
}

func newMoving(t *testing.T, to map[string]string) *moving {
	p := &moving{to: to, asked: map[string]int{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked[r.URL.Path]++
		switch to, is := p.to[r.URL.Path]; {
		case !is:
			http.NotFound(w, r)
		case to == "410":
			w.WriteHeader(http.StatusGone)
		case to != "":
			http.Redirect(w, r, to, http.StatusMovedPermanently)
		default:
			w.Header().Set("ETag", "1")
			io.WriteString(w, `<rss version="2.0"><channel><item><guid>1</guid></item></channel></rss>`)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// during returns how often paths are asked for in some hours.
func (p *moving) during(s *sim, hours int, paths ...string) (n []int) {
	clear(p.asked)
	s.pass(time.Duration(hours) * time.Hour)
	for _, path := range paths {
		n = append(n, p.asked[path])
	}
	return n
}

// list replaces the list of feeds.
func (s *sim) list(urls ...string) *sim {
	check(os.WriteFile(s.OPML, []byte(opml(urls...)), 0o644))
	return s
}

// TestGone: a feed that is gone is not asked for again, unless it is taken off the list and
// put on again; also after a restart.
func TestGone(t *testing.T) {
	p := newMoving(t, map[string]string{"/gone": "410", "/other": ""})
	gone, other := "http://a.test/gone", "http://b.test/other"
	l := newLife(t, p.Server, 30, gone, other)
	s := l.open(io.Discard)
	for k, tt := range []struct {
		list    []string
		restart bool
		want    int
	}{
		{list: []string{gone, other}, want: 1},
		{list: []string{gone, other}, restart: true, want: 0},
		{list: []string{other}, want: 0},
		{list: []string{gone, other}, want: 1},
		{list: []string{other}, restart: true, want: 0},
		{list: []string{gone, other}, restart: true, want: 1},
	} {
		if s.list(tt.list...); tt.restart {
			l.Begin = s.now
			check(s.Close())
			s = l.open(io.Discard)
		}
		if n := p.during(s, 5, "/gone", "/other"); n[0] != tt.want || n[1] == 0 {
			t.Errorf("%d: %d requests for the feed that is gone, %d for the other; want %d, and some",
				k, n[0], n[1], tt.want)
		}
	}
	p.to["/gone"] = ""
	p.during(s.list(other), 1)
	if n := p.during(s.list(gone, other), 5, "/gone"); n[0] < 2 {
		t.Errorf("%d requests for a feed that has come back", n[0])
	}
	check(s.Close())
}

// TestMovedTogether: of feeds that moved to one address one is asked for; that which the list
// names so, if it does.
func TestMovedTogether(t *testing.T) {
	p := newMoving(t, map[string]string{"/a": "http://x.test/x", "/b": "http://X.test:80/x", "/x": ""})
	a, b, x := "http://a.test/a", "http://b.test/b", "http://x.test/x"
	s := simulate(t, p.Server, a, b)
	p.during(s, 2)
	asked := func() (addresses []string) {
		for _, address := range []string{a, b, x} {
			if s.learner.Has(address) {
				addresses = append(addresses, address)
			}
		}
		return addresses
	}
	for _, tt := range []struct{ list, asked []string }{
		{[]string{a, b}, []string{a}},
		{[]string{b}, []string{b}},
		{[]string{a, b, x}, []string{x}},
		{[]string{b, a}, []string{a}},
	} {
		s.list(tt.list...).pass(time.Hour)
		n := p.during(s, 5, "/x", "/a", "/b")
		if n[0] == 0 || n[0] > 5*4 || n[1]+n[2] > 0 || !slices.Equal(asked(), tt.asked) {
			t.Errorf("%v: %v requests, of %v; want them of %v", tt.list, n, asked(), tt.asked)
		}
	}
	for _, r := range s.view("").Feeds {
		if row := s.view("").Row(r); (r.ID.URL == b) != strings.Contains(row.Reason, "asked for as") {
			t.Errorf("%s: %s", r.ID.URL, row.Reason)
		}
	}
}

// TestSpelledTwice: a feed that the list has in another spelling, too, goes on as it was, also after a
// restart: no item comes twice.
func TestSpelledTwice(t *testing.T) {
	p := newMoving(t, map[string]string{"/x": ""})
	feed, other := "http://xn--4ca.test/x", "http://Ä.test:80/x"
	l := newLife(t, p.Server, 30, feed)
	s := l.open(io.Discard).pass(2 * time.Hour)
	for range 2 {
		s.list(other, feed, feed+"#x").pass(3 * time.Hour)
		if items := s.stats.Items; items != 1 || !s.learner.Has(feed) || s.learner.Len() != 1 {
			t.Errorf("it has %d items of 1; %d feeds are crawled", items, s.learner.Len())
		}
		if host := s.feeds[other].ID.Key; host != s.feeds[feed].ID.Key {
			t.Errorf("the host of the other spelling is %q", host)
		}
		l.Begin = s.now
		check(s.Close())
		s = l.open(io.Discard)
	}
	check(s.Close())
}

// TestFullDisk: while the disk is full the page says so and nothing is asked for; when there is
// room again, the feeds are.
func TestFullDisk(t *testing.T) {
	disk := &storetest.Disk{FS: vfs.Default}
	life := newLife(t, newReferee(t, 30).Server, 30, address(0))
	life.disk = disk
	s := life.open(io.Discard)
	t.Cleanup(func() { s.Close() })
	page := func() string {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Body.String()
	}
	const said = "The disk is nearly full"
	disk.Full.Store(true)
	time.Sleep(100 * time.Millisecond) // the store looks again after 50
	if n, err := s.Tick(); n != 0 || !errors.Is(err, store.ErrFull) || !strings.Contains(page(), said) {
		t.Errorf("%d requests, %v; the page: %.1000s", n, err, page())
	}
	disk.Full.Store(false)
	time.Sleep(100 * time.Millisecond)
	n, err := s.Tick()
	s.Wait()
	if n != 1 || err != nil || strings.Contains(page(), said) {
		t.Errorf("%d requests, %v; the page: %.1000s", n, err, page())
	}
}

// TestNewFeedsOnFullDisk: where feeds come onto the list while the disk is full, the list stays as it was, and they
// are taken up when there is room.
func TestNewFeedsOnFullDisk(t *testing.T) {
	m := newFakeMiniflux(t)
	add := func(k int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.feeds[k] = &fakeFeed{url: fmt.Sprintf("http://f%d.test/feed", k), every: time.Hour}
		m.fetch(m.feeds[k])
	}
	own := newLife(t, newReferee(t, 30).Server, 600, address(0))
	shadow := newLife(t, m.Server, 600)
	shadow.Reader, shadow.Shadow = NewMiniflux(m.URL, "token"), true
	m.now = func() time.Time { return shadow.Begin }
	for _, tt := range []struct {
		name string
		life life
		list func(n int) // of so many feeds
	}{
		{"own list", own, func(n int) {
			all := []string{address(0), address(len(kinds)), address(2 * len(kinds))}
			check(os.WriteFile(own.OPML, []byte(opml(all[:n]...)), 0o644))
		}},
		{"in the shadow", shadow, func(n int) {
			for k := len(m.feeds); k < n; k++ {
				add(int64(k + 1))
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disk := &storetest.Disk{FS: vfs.NewMem()}
			tt.life.disk = disk
			tt.list(1)
			s := tt.life.open(io.Discard)
			defer s.Close()
			s.round()
			tt.list(3)
			disk.Full.Store(true)
			time.Sleep(100 * time.Millisecond) // the store looks again after 50
			s.now = s.now.Add(rereading)
			if _, err := s.Tick(); !errors.Is(err, store.ErrFull) && !errors.Is(s.listing.err, store.ErrFull) {
				t.Errorf("the list is read with %v, %v", err, s.listing.err)
			}
			if n := strings.Count(s.get("/opml").Body.String(), "xmlUrl"); n != 1 {
				t.Errorf("%d feeds are listed while the disk is full; want 1", n)
			}
			disk.Full.Store(false)
			time.Sleep(100 * time.Millisecond)
			s.pass(time.Hour)
			for address, r := range s.feeds {
				if len(r.Looks) == 0 {
					t.Errorf("%s, which came while the disk was full, is never looked at", address)
				}
			}
			if len(s.feeds) != 3 {
				t.Errorf("%d feeds; want 3", len(s.feeds))
			}
		})
	}
}

// TestNoNetwork: while this machine reaches no server, no feed fails for that, and a request a minute finds
// out whether it does again: then all feeds are asked for within an hour. A server that alone is not reached
// has failed.
func TestNoNetwork(t *testing.T) {
	var list []string
	for k := range 10 {
		list = append(list, address(k*len(kinds)))
	}
	s := simulate(t, newReferee(t, 30).Server, list...).pass(24 * time.Hour)
	dial, dials := s.fetcher.Dial, 0
	from := func(away func(host string) bool) {
		s.fetcher.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if host, _, _ := net.SplitHostPort(address); !away(host) {
				return dial(ctx, network, address)
			}
			s.mu.Lock()
			dials++
			s.mu.Unlock()
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
		}
	}
	from(func(string) bool { return true })
	if n := must(s.Once()); n > 2 || dials < n {
		t.Errorf("a round says that it made %d requests", n)
	}
	const hours = 12
	s.pass(hours * time.Hour)
	failed := 0
	for _, r := range s.feeds {
		failed += r.Failures
	}
	page := s.get("/").Body.String()
	if failed > 2 || dials > hours*60+workers || dials < hours || s.away == nil ||
		!strings.Contains(page, "No feed is asked for: no server is reached from here") {
		t.Errorf("%d failures, %d attempts; %v", failed, dials, s.away)
	}
	one := s.feeds[list[0]]
	from(func(host string) bool { return host == one.ID.Key })
	begin := s.now
	s.pass(time.Hour)
	for _, r := range s.feeds {
		if r != one && !r.Last.After(begin) || (r.Failures > 0) != (r == one) {
			t.Errorf("%s: last at %v, %v later; %d failures", r.ID.URL, r.Last, s.now.Sub(begin), r.Failures)
		}
	}
}

// TestNoNetworkButNear: while a server of this machine is reached and no other one, no feed fails for that.
func TestNoNetworkButNear(t *testing.T) {
	var list []string
	for k := range 10 {
		list = append(list, address(k*len(kinds)))
	}
	s := simulate(t, newReferee(t, 30).Server, list...).pass(24 * time.Hour)
	near, dial := s.feeds[list[0]], s.fetcher.Dial
	s.fetcher.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, _, _ := net.SplitHostPort(address); host != near.ID.Key {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
		}
		c, err := dial(ctx, network, address)
		return nearby{c}, err
	}
	begin, failed := s.now, 0
	s.pass(12 * time.Hour)
	for _, r := range s.feeds {
		failed += r.Failures
	}
	if failed > 2 || !near.Last.After(begin.Add(9*time.Hour)) {
		t.Errorf("%d failures; the server of this machine was asked last %v later", failed, near.Last.Sub(begin))
	}
}

// nearby is a connection to this machine.
type nearby struct{ net.Conn }

func (nearby) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// TestWholeFeeds: a feed without validators is asked once an hour at most, and one that sends
// more than a quarter MB in as many hours as it sends quarters.
func TestWholeFeeds(t *testing.T) {
	const days = 2
	size := 0
	looks := map[int]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "robots.txt") {
			http.NotFound(w, q)
			return
		}
		looks[size]++
		ms, _ := strconv.ParseInt(q.Header.Get(simTime), 10, 64)
		w.Write(append(page(1, "", ms/1000/every(1)), bytes.Repeat([]byte{' '}, size)...))
	}))
	defer server.Close()
	for _, tt := range []struct{ size, least, most int }{
		{1000, 40, 48}, {100_000, 40, 48}, {1_000_000, 10, 12}, {8_000_000, 2, 3},
	} {
		size = tt.size
		l := newLife(t, server, 60, address(0))
		l.Full = true
		s := l.open(io.Discard).pass(days * 24 * time.Hour)
		if n := looks[size]; n < tt.least || n > tt.most {
			t.Errorf("%d bytes: %d looks in %d days; want %d to %d", size, n, days, tt.least, tt.most)
		}
		s.Close()
	}
}

// TestSeenShrinks: what a feed is remembered for has bounds, also after a look at very many items; within them
// nothing is forgotten of a feed that shows little for a while.
func TestSeenShrinks(t *testing.T) {
	items := func(first, n int) (shown []feed.Item) {
		for k := range n {
			shown = append(shown, feed.Item{ID: uint64(first + k)})
		}
		return shown
	}
	now := time.Now()
	for _, tt := range []struct{ first, then, left int }{
		{100_000, 10, mostSeen}, {100_000, 0, mostSeen}, {100_000, 30_000, 100_000},
		{mostSeen, 1, mostSeen}, {70, 0, 70},
	} {
		r := newRecord("http://a.test/feed")
		r.news(items(1, tt.first), now)
		for range 3 {
			if news := r.news(items(1, tt.then), now); len(news) > 0 || len(r.Seen) != tt.left {
				t.Errorf("of %d, then %d items, %d are new, and %d are remembered; want none and %d",
					tt.first, tt.then, len(news), len(r.Seen), tt.left)
			}
		}
	}
}

// TestManyItems: what a reader has found of a feed in one look, however much, is compared with what was seen
// before in a time that grows with it, and not with its square, since all other feeds wait meanwhile; and
// what was seen is not new.
func TestManyItems(t *testing.T) {
	looks := func(many int) time.Duration {
		r, begin := newRecord("http://a.test/feed"), time.Now()
		for _, tt := range []struct{ first, news int }{
			{0, many}, {many / 2, many / 2}, {0, 0}, {3 * many, many}, {many / 2, 0},
		} {
			var shown []feed.Item
			for k := range many {
				shown = append(shown, feed.Item{ID: uint64(tt.first + k), Also: 1<<60 + uint64(tt.first+k)})
			}
			if news := r.news(shown, begin); len(news) != tt.news {
				t.Errorf("%d items of %d from %d on are new; want %d", len(news), many, tt.first, tt.news)
			}
		}
		return time.Since(begin)
	}
	few, many := time.Hour, time.Hour
	for range 8 { // of the least times, since other programs interrupt
		few, many = min(few, looks(2000)), min(many, looks(32_000))
		if many < 64*few { // 16 times as many; with the square it would be 256
			return
		}
	}
	t.Errorf("2000 items take %v, and 32 000 take %v", few, many)
}

// TestSameItemTwice: two entries of a feed that nothing tells apart are one item.
func TestSameItemTwice(t *testing.T) {
	r := newRecord("http://a.test/feed")
	if news := r.news([]feed.Item{{ID: 1}, {ID: 2}, {ID: 1}}, time.Now()); len(news) != 2 || r.Items != 2 {
		t.Errorf("%d items are new, and the feed has %d; want 2", len(news), r.Items)
	}
}

// TestDatesAhead: of a feed whose first look shows an item of next month, no date is believed:
// others of years ago would have it published once in years.
func TestDatesAhead(t *testing.T) {
	now := time.Date(2026, 3, 2, 0, 1, 0, 0, time.UTC)
	for _, tt := range []struct {
		ahead time.Duration // of the last of three items
		dated int
	}{{-time.Hour, 3}, {time.Hour, 2}, {30 * 24 * time.Hour, 0}} {
		shown := []feed.Item{
			{ID: 1, Published: now.AddDate(-30, 0, 0)}, {ID: 2, Published: now.AddDate(-3, 0, 0)},
			{ID: 3, Published: now.Add(tt.ahead)},
		}
		dated := 0
		for _, it := range newRecord("http://a.test/feed").news(shown, now) {
			if !it.Published.IsZero() {
				dated++
			}
		}
		if dated != tt.dated {
			t.Errorf("one %v ahead: %d of 3 dates are believed; want %d", tt.ahead, dated, tt.dated)
		}
	}
}

// TestEndsAtOnce: a crawler that ends does not wait for servers that do not answer. Their feeds have not
// failed, and may have been asked for: that counts, also after the next start.
func TestEndsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(s *sim, asked <-chan bool)
	}{
		{"a round", func(s *sim, asked <-chan bool) {
			go func() { <-asked; <-asked; s.end() }()
			must(s.Once())
		}},
		{"until the end", func(s *sim, asked <-chan bool) {
			go func() { <-asked; <-asked; s.end() }()
			s.Run()
		}},
		{"closed", func(s *sim, asked <-chan bool) { must(s.Tick()); <-asked; <-asked }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked, over := make(chan bool, 100), make(chan bool)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/robots.txt" && r.Host == "a.test" {
					http.NotFound(w, r)
					return
				}
				asked <- true // for the robots.txt of one, and for the feed of the other
				<-over
			}))
			defer server.Close()
			defer close(over)
			a, b := "http://a.test/feed", "http://b.test/feed"
			l := newLife(t, server, 30, a, b)
			s := l.open(io.Discard)
			done := make(chan bool)
			go func() {
				tt.end(s, asked)
				check(s.Close())
				close(done)
			}()
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Fatal("it waits for servers that do not answer")
			}
			l.Begin = s.now
			s = l.open(io.Discard)
			for _, r := range s.feeds {
				if r.Failures > 0 || r.Error != "" || s.store.Held(r.ID) {
					t.Errorf("%s: %d failures, %q", r.Name(), r.Failures, r.Error)
				}
			}
			if len(s.recent) != 2 || s.stats.Outcome[feed.Failed] > 0 {
				t.Errorf("%d requests count; %v", len(s.recent), s.stats)
			}
			begin := s.now
			for must(s.Tick()) == 0 && s.now.Sub(begin) < time.Hour {
				s.now = s.now.Add(time.Minute)
			}
			if after := s.now.Sub(begin); after < shortest || after > shortest+10*time.Minute {
				t.Errorf("they are asked for again after %v", after)
			}
			check(s.Close())
		})
	}
}

// TestMovedToOneHost: of feeds that moved, or redirect, to one host, which asks to be left alone, the one that was
// asked for has failed. The others wait as long, and have not.
func TestMovedToOneHost(t *testing.T) {
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound} {
		busy, asked, wait := false, 0, "300"
		var s *sim
		var mu sync.Mutex
		came := map[string]time.Time{} // when hosts that redirect were asked last
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case q.URL.Path == "/robots.txt":
				http.NotFound(w, q)
			case q.Host != "one.test":
				if last, is := came[q.Host]; is && s.now.Sub(last) < shortest {
					t.Errorf("%d: %s is asked again after %v", status, q.Host, s.now.Sub(last))
				}
				came[q.Host] = s.now
				w.Header().Set("Location", "http://one.test/"+q.Host)
				w.WriteHeader(status)
			case busy:
				asked++
				w.Header().Set("Retry-After", wait)
				w.WriteHeader(http.StatusTooManyRequests)
			default:
				w.Header().Set("ETag", `"1"`)
				io.WriteString(w, `<rss version="2.0"><channel><item><guid>1</guid></item></channel></rss>`)
			}
		}))
		var urls []string
		for k := range 6 {
			urls = append(urls, fmt.Sprintf("http://a%d.test/feed", k))
		}
		s = newLife(t, server, 60, urls...).open(io.Discard)
		s.pass(2 * time.Hour)
		busy = true
		s.pass(2 * time.Hour)
		busy = false
		s.pass(4 * time.Hour)
		busy, asked, wait = true, 0, "7200"
		s.pass(90 * time.Minute)
		v := s.view("")
		if asked != 1 || len(v.Failing) != 1 || v.HeldFeeds() != len(urls) {
			t.Errorf("%d: it was asked %d times, %d feeds fail, and %d are held back; want 1, 1 and %d",
				status, asked, len(v.Failing), v.HeldFeeds(), len(urls))
		}
		busy = false
		s.pass(time.Hour)
		for _, r := range s.feeds {
			if r.Failures != 0 || s.now.Sub(r.Last) > time.Hour {
				t.Errorf("%d: %s failed %d times: %s; it was looked at %v ago",
					status, r.Address(), r.Failures, r.Error, s.now.Sub(r.Last))
			}
		}
		s.Close()
		server.Close()
	}
}
