package crawl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ephemera/live/feed"
)

// paced has the server of the feeds show what there is at the simulated time, while a reader in
// between has the time of the machine.
type paced struct {
	Reader
	s *sim
}

func (p *paced) Feeds(ctx context.Context) ([]Outline, []error, error) {
	p.tell()
	feeds, left, err := p.Reader.Feeds(ctx)
	if err != nil {
		time.Sleep(10 * time.Millisecond) // a minute, while it is away
	}
	return feeds, left, err
}

func (p *paced) Refresh(ctx context.Context, place feed.Place) error {
	p.tell()
	return p.Reader.Refresh(ctx, place)
}

func (p *paced) tell() {
	res, err := http.Get(fmt.Sprintf("http://%s/clock/%d", p.s.Server, p.s.now.Unix()))
	check(err)
	res.Body.Close()
}

// publisher serves feeds /feed/K, which each show the last ten items at its time.
type publisher struct {
	*httptest.Server
	mu    sync.Mutex
	now   time.Time
	clock func() time.Time // in place of now, if it is there
	asked map[int][]time.Time
	soon  []string // requests sooner than was asked for
}

func newPublisher(t *testing.T) *publisher {
	p := &publisher{asked: map[int][]time.Time{}}
	p.Server = httptest.NewUnstartedServer(p)
	p.Listener.Close()
	p.Listener = must(net.Listen("tcp4", "0.0.0.0:0")) // each feed has an address of its own
	p.Start()
	t.Cleanup(p.Close)
	return p
}

const (
	feedFails   = 7  // which fails half of the time
	feedRetries = 11 // which asks for two hours at each third request
	feedUndated = 13 // whose items have no dates
)

func (p *publisher) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	part := strings.Split(q.URL.Path, "/")
	n, _ := strconv.ParseInt(part[len(part)-1], 10, 64)
	if part[1] == "clock" {
		p.now = time.Unix(n, 0)
		return
	}
	if part[1] != "feed" {
		http.NotFound(w, q)
		return
	}
	if p.clock != nil {
		p.now = p.clock()
	}
	k := int(n)
	asked := p.asked[k]
	if len(asked) > 1 { // after the feed was put into the reader
		since := p.now.Sub(asked[len(asked)-1])
		if since < shortest || k == feedRetries && len(asked)%3 == 0 && since < 2*time.Hour {
			p.soon = append(p.soon, fmt.Sprintf("feed %d at %v, %v after the last", k, p.now, since))
		}
	}
	p.asked[k] = append(asked, p.now)
	switch {
	case k == feedFails && len(asked)%2 == 1:
		w.WriteHeader(http.StatusBadGateway)
		return
	case k == feedRetries && len(asked)%3 == 2:
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	newest := p.now.Unix() / every(k)
	tag := fmt.Sprintf(`"%d"`, newest)
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Type", "application/rss+xml")
	if q.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	fmt.Fprintf(w, `<rss version="2.0"><channel><title>Feed %d</title><link>http://f%d.test/</link>`, k, k)
	for n := newest; n > newest-pageItems; n-- {
		date := "<pubDate>" + time.Unix(n*every(k), 0).UTC().Format(time.RFC1123Z) + "</pubDate>"
		if k == feedUndated {
			date = ""
		}
		fmt.Fprintf(w, `<item><guid>%d</guid><title>Item %d</title><link>http://f%d.test/%d</link>`+
			`<description>&lt;p&gt;About %d.&lt;/p&gt;</description>%s</item>`, n, n, k, n, n, date)
	}
	io.WriteString(w, `</channel></rss>`)
}

// miniflux is a process of the real one.
type miniflux struct {
	*exec.Cmd
	address string
}

func (m *miniflux) start(t *testing.T, program, database string, settings ...string) {
	m.Cmd = exec.Command(program)
	m.Env = append(append(os.Environ(),
		"DATABASE_URL="+database, "LISTEN_ADDR="+strings.TrimPrefix(m.address, "http://"), "BASE_URL="+m.address,
		"RUN_MIGRATIONS=1", "CREATE_ADMIN=1", "ADMIN_USERNAME=admin", "ADMIN_PASSWORD=secret123",
		"FETCHER_ALLOW_PRIVATE_NETWORKS=1", "LOG_LEVEL=error",
		"http_proxy=", "https_proxy=", "HTTP_PROXY=", "HTTPS_PROXY="), settings...)
	m.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(m.Start())
	for range 600 {
		if res, err := http.Get(m.address + "/healthcheck"); err == nil {
			res.Body.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("Miniflux does not start")
}

// steered are the settings with which it does nothing but what it is asked for.
var steered = []string{"DISABLE_SCHEDULER_SERVICE=1", "SCHEDULER_ROUND_ROBIN_MIN_INTERVAL=1"}

// ask asks for something as the administrator.
func (m *miniflux) ask(method, path string, body, into any) {
	q := must(http.NewRequest(method, m.address+path, bytes.NewReader(must(json.Marshal(body)))))
	q.SetBasicAuth("admin", "secret123")
	res, err := http.DefaultClient.Do(q)
	check(err)
	defer res.Body.Close()
	text := must(io.ReadAll(res.Body))
	if res.StatusCode/100 != 2 {
		panic(fmt.Sprintf("%s %s: %s %s", method, path, res.Status, text))
	}
	check(json.Unmarshal(text, into))
}

// answers returns what it answers, for tests without it.
func (m *miniflux) answers(good, bad int64) []byte {
	all := map[string]answer{}
	whole, failing := fmt.Sprint("/v1/feeds/", good), fmt.Sprint("/v1/feeds/", bad)
	for _, q := range []struct{ name, method, path string }{
		{"feeds", "GET", "/v1/feeds"},
		{"feed", "GET", whole},
		{"refresh", "PUT", whole + "/refresh"},
		{"entries", "GET", whole + "/entries?order=id&direction=desc&limit=2"},
		{"no feed", "PUT", "/v1/feeds/999999/refresh"},
		{"no token", "GET", "/v1/feeds"},
		{"failing refresh", "PUT", failing + "/refresh"},
		{"failing feed", "GET", failing},
	} {
		name := q.name
		for range 2 {
			r := must(http.NewRequest(q.method, m.address+q.path, nil))
			if name != "no token" {
				r.SetBasicAuth("admin", "secret123")
			}
			res, err := http.DefaultClient.Do(r)
			check(err)
			body := must(io.ReadAll(res.Body))
			res.Body.Close()
			var list []any
			if name == "feeds" {
				check(json.Unmarshal(body, &list))
				body = must(json.Marshal(list[:1]))
			}
			all[name] = answer{res.StatusCode, body}
			if name != "failing refresh" || res.StatusCode != http.StatusNoContent {
				break // it fails half of the time
			}
		}
	}
	return must(json.MarshalIndent(all, "", "\t"))
}

// TestRealMiniflux: a real Miniflux fetches 50 feeds when it is asked to, through kills of either
// side: each of its entries is found once, no feed is asked for sooner than it may be, feeds that
// are added and removed there follow. .ci/miniflux builds it and starts its database.
func TestRealMiniflux(t *testing.T) {
	program, database := os.Getenv("EPHEMERA_MINIFLUX"), os.Getenv("DATABASE_URL")
	if program == "" || database == "" {
		t.Skip("no Miniflux here; .ci/miniflux runs this test with one")
	}
	p := newPublisher(t)
	free := must(net.Listen("tcp", "127.0.0.1:0"))
	m := &miniflux{address: "http://" + free.Addr().String()}
	free.Close()
	m.start(t, program, database, steered...)
	defer func() { m.Process.Kill(); m.Wait() }()
	var key struct {
		Token string `json:"token"`
	}
	m.ask("POST", "/v1/api-keys", map[string]string{"description": "crawl"}, &key)
	var categories []struct {
		ID int64 `json:"id"`
	}
	m.ask("GET", "/v1/categories", nil, &categories)
	l := newLife(t, p.Server, 60)
	l.Miniflux, l.Token = m.address, key.Token
	l.Begin = time.Now().Add(-60 * time.Hour).Truncate(time.Hour).Add(time.Minute) // so that what is published has been
	p.now = l.Begin
	at := func(k int) string {
		_, port, _ := net.SplitHostPort(l.Server)
		return fmt.Sprintf("http://127.1.0.%d:%s/feed/%d", k+1, port, k)
	}
	add := func(k int) {
		var added struct {
			ID int64 `json:"feed_id"`
		}
		m.ask("POST", "/v1/feeds", map[string]any{"feed_url": at(k), "category_id": categories[0].ID}, &added)
	}
	for k := range 50 {
		if k != 49 {
			add(k)
		}
	}
	length := 12 * time.Hour
	for n := range 4 {
		l.End = l.Begin.Add(length)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "EPHEMERA_TEST_LIFE="+string(must(json.Marshal(l))))
		cmd.Stderr = os.Stderr
		done := make(chan struct{})
		if n == 1 { // Miniflux is killed, and is away for a while
			go func() {
				defer close(done)
				for half := l.Begin.Add(length / 2); ; time.Sleep(time.Millisecond) {
					p.mu.Lock()
					passed := p.now.After(half)
					p.mu.Unlock()
					if passed {
						break
					}
				}
				check(m.Process.Kill())
				m.Wait()
				time.Sleep(300 * time.Millisecond)
				m.start(t, program, database, steered...)
			}()
		} else {
			close(done)
		}
		_, err := cmd.Output()
		if exit, ok := err.(*exec.ExitError); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatal(err)
		}
		<-done
		if n == 2 {
			add(49)
		}
		l.Begin = l.End
	}
	s := l.open(io.Discard)
	defer s.Close()
	s.pass(3 * time.Hour)
	requests, soon := 0, p.soon // before those by hand
	for k := range 50 {
		requests += len(p.asked[k])
		r := s.feeds[at(k)]
		if r == nil || !r.listed || r.Last.IsZero() {
			t.Errorf("feed %d was not looked at: %+v", k, r)
			continue
		}
		// What Miniflux has, after one more refresh by hand, is what was found.
		s.Crawler.reader.Refresh(t.Context(), r.Place) // whether it fails is read from its entries
		res := s.Crawler.reader.Entries(t.Context(), r.Place)
		more := 0
		if res.Feed != nil {
			more = len(res.Feed.Items)
		}
		id := s.Crawler.reader.(*paced).Reader.(*Miniflux).ids[at(k)]
		var all struct {
			Total int `json:"total"`
		}
		m.ask("GET", fmt.Sprintf("/v1/feeds/%d/entries?limit=1", id), nil, &all)
		if r.Items+more != all.Total || r.Items < pageItems {
			t.Errorf("feed %d: %d items were found and %d wait; Miniflux has %d (%v)",
				k, r.Items, more, all.Total, res.Err)
		}
		if k == feedUndated && r.Hours != ([7][24]int{}) {
			t.Errorf("items without dates have %v", r.Hours)
		}
	}
	t.Logf("%d requests for 50 feeds in 51 hours, of at most %d; %d items; half of them within %v",
		requests, 51*60, s.stats.Items, s.stats.Days[0].Quantile(.5))
	if len(soon) > 0 || requests < 1500 || requests > 51*60+200 {
		t.Errorf("%d requests; sooner than they may be: %q", requests, soon)
	}
	if one := s.feeds[at(feedRetries)]; len(p.asked[feedRetries]) < 6 {
		t.Errorf("%d requests for the feed that asks to wait: %+v", len(p.asked[feedRetries]), one)
	}
	river := httptest.NewServer(s.Handler())
	defer river.Close()
	for _, path := range []string{"/items.json", "/items.atom"} { // what is found here is read there
		var added struct {
			ID int64 `json:"feed_id"`
		}
		m.ask("POST", "/v1/feeds", map[string]any{
			"feed_url": river.URL + path, "category_id": categories[0].ID,
		}, &added)
		var read struct {
			Total   int `json:"total"`
			Entries []struct {
				Title, URL string
				Published  time.Time `json:"published_at"`
			} `json:"entries"`
		}
		m.ask("GET", fmt.Sprintf("/v1/feeds/%d/entries?order=id&direction=asc&limit=200", added.ID), nil, &read)
		given, _ := s.follow(t, path)
		same := 0
		for _, e := range read.Entries {
			for _, it := range given[:shownItems] {
				if it.Title == e.Title && it.Link == e.URL {
					same++
					break
				}
			}
		}
		if read.Total != shownItems || same != shownItems {
			t.Errorf("%s: Miniflux has %d entries, %d of them as they are given, of %d",
				path, read.Total, same, shownItems)
		}
	}
	if *update {
		ids := s.Crawler.reader.(*paced).Reader.(*Miniflux).ids
		check(os.WriteFile(answersFile, m.answers(ids[at(0)], ids[at(feedFails)]), 0o644))
	}
	var removed struct{}
	func() {
		defer func() { recover() }() // it answers nothing
		first := s.Crawler.reader.(*paced).Reader.(*Miniflux).ids[at(0)]
		m.ask("DELETE", fmt.Sprintf("/v1/feeds/%d", first), nil, &removed)
	}()
	if s.pass(2 * time.Minute); s.feeds[at(0)].listed {
		t.Error("a feed that was removed there is on the list")
	}
}
