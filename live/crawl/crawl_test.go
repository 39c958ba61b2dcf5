package crawl

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ephemera/env"
	"ephemera/live/feed"
)

// sim is a crawler with a clock that a test moves.
type sim struct {
	*Crawler
	t   testing.TB
	now time.Time
	life
}

// simulate returns a crawler of those feeds of a referee.
func simulate(t testing.TB, r *referee, feeds ...int) *sim {
	var urls []string
	for _, k := range feeds {
		urls = append(urls, address(k))
	}
	return simulateURLs(t, r.Listener.Addr().String(), urls...)
}

// simulateURLs returns a crawler for which every host is one server.
func simulateURLs(t testing.TB, server string, urls ...string) *sim {
	s := &sim{t: t, now: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)}
	dir := memoryDir(t)
	s.life = life{Server: server, OPML: filepath.Join(dir, "feeds.opml"), Dir: filepath.Join(dir, "state"), PerHour: 30}
	writeOPML(t, s.OPML, urls...)
	s.open()
	t.Cleanup(func() { s.Close() })
	return s
}

func (s *sim) open() {
	s.t.Helper()
	c, err := s.life.open(&s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Crawler = c
}

func (s *sim) pass(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(time.Minute) {
		if _, err := s.Tick(); err != nil {
			s.t.Fatal(err)
		}
		s.Wait()
	}
}

// TestCrash: what is thought after a crash is what was thought before it.
func TestCrash(t *testing.T) {
	s := simulate(t, newReferee(t, 30), 0, 1, 2, 4, 25)
	s.pass(75 * time.Hour)
	copied := filepath.Join(filepath.Dir(s.Dir), "copy")
	if err := os.CopyFS(copied, os.DirFS(s.Dir)); err != nil {
		t.Fatal(err)
	}
	again := &sim{t: t, now: s.now, life: s.life}
	again.Dir = copied
	again.open()
	defer again.Close()
	for _, c := range []*sim{s, again} {
		c.pass(10 * time.Minute) // so that the learner takes up the last answers
	}
	for address, r := range s.feeds {
		a, b := s.Row(r), again.Row(again.feeds[address])
		if a.PerDay == 0 || math.Abs(a.PerDay-b.PerDay) > .02*a.PerDay {
			t.Errorf("%s: %v items a day before, %v after", address, a.PerDay, b.PerDay)
		}
	}
	if s.stats.Items != again.stats.Items || s.stats.Items < 100 {
		t.Errorf("%d items before, %d after", s.stats.Items, again.stats.Items)
	}
}

// TestList: the file is edited while it runs.
func TestList(t *testing.T) {
	r := newReferee(t, 30)
	s := simulate(t, r, 0, 1)
	looks := func(k int) int {
		r.mu.Lock()
		defer r.mu.Unlock()
		if site := r.sites[fmt.Sprint(k, "/feed")]; site != nil {
			return site.requests
		}
		return 0
	}
	s.pass(time.Hour)
	before := looks(0)
	for k, text := range []string{"<opml><body>", "<opml/>", `<opml><body><outline xmlUrl="file:///x"/></body></opml>`} {
		if err := os.WriteFile(s.OPML, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Hour)
		if s.listErr == nil || looks(0) <= before {
			t.Fatalf("file %d: %v, %d looks", k, s.listErr, looks(0))
		}
		before = looks(0)
	}
	writeOPML(t, s.OPML, address(1), address(4))
	s.pass(2 * time.Hour)
	if looks(0) != before || looks(4) == 0 || s.listErr != nil {
		t.Errorf("%d looks at the feed that was removed, %d at the new one: %v", looks(0)-before, looks(4), s.listErr)
	}
	writeOPML(t, s.OPML, address(0), address(1), address(4), address(4))
	s.pass(2 * time.Hour)
	if looks(0) == before || s.learner.Len() != 3 {
		t.Error("a feed that came back is not looked at")
	}
	r.mu.Lock() // it came back with its validators
	defer r.mu.Unlock()
	if len(r.wrong) > 0 {
		t.Error(r.example)
	}
}

// TestDates: items have dates at which they can have appeared.
func TestDates(t *testing.T) {
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	ago := func(hours ...int) (items []feed.Item) {
		for k, h := range hours {
			items = append(items, feed.Item{ID: uint64(k + 1), Published: now.Add(-time.Duration(h) * time.Hour)})
		}
		return items
	}
	for _, tt := range []struct {
		name  string
		last  int // look, hours ago; 0 for none
		seen  []uint64
		hours []int
		want  string // hours ago; ? for not known
	}{
		{"a first look", 0, nil, []int{1, 5, 9}, "1 5 9"},
		{"a silent feed", 0, nil, []int{5000, 9000, 10000}, "5000 9000 10000"},
		{"in the future", 0, nil, []int{-5, 3}, "? 3"},
		{"one more", 4, []uint64{2, 3}, []int{1, 5, 9}, "1"},
		{"older than the last look", 4, []uint64{2, 3}, []int{6, 5, 9}, "?"},
		{"all are new", 4, []uint64{9}, []int{1, 2, 3}, "1 2 3"},
	} {
		r := &record{Seen: tt.seen}
		if tt.last > 0 {
			r.Last = now.Add(-time.Duration(tt.last) * time.Hour)
		}
		items := r.news(ago(tt.hours...), now)
		var got []string
		for _, it := range items {
			if it.Published.IsZero() {
				got = append(got, "?")
			} else {
				got = append(got, fmt.Sprint(now.Sub(it.Published).Hours()))
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
	}
}

// TestMove: what is exported is a recording, from which another crawler learns.
func TestMove(t *testing.T) {
	r := newReferee(t, 30)
	s := simulate(t, r, 0, 1, 4)
	s.pass(72 * time.Hour)
	var b bytes.Buffer
	rows, err := s.Export(&b, "log.csv.gz")
	if err != nil || rows < 100 {
		t.Fatal(rows, err)
	}
	path := filepath.Join(t.TempDir(), "log.csv.gz")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	rec, err := env.ReadRecording(context.Background(), path)
	if err != nil || rec.Rows != rows || len(rec.Names) != 3 {
		t.Fatal(rec, err)
	}
	other := simulate(t, r, 0, 1, 25)
	other.now = s.now.AddDate(0, 0, 9)
	if n, err := other.Import(rec); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	other.pass(6 * time.Minute)
	for _, k := range []int{0, 1} {
		if a, b := s.Row(s.feeds[address(k)]).PerDay, other.Row(other.feeds[address(k)]).PerDay; math.Abs(a-b) > .3*a {
			t.Errorf("feed %d: %v items a day there, %v here", k, a, b)
		}
	}
	plan, err := other.Plan(24 * time.Hour)
	looks := map[string]int{}
	for _, p := range plan {
		looks[p.Feed]++
	}
	if err != nil || len(looks) != 3 || len(plan) > 30*24 || looks[address(0)] < 3 {
		t.Errorf("%v: %v", err, looks)
	}
}

// TestWebSub: a hub that a feed names is subscribed to and tells what is new; the feed
// is looked at once a day then, and at other times what is not signed is ignored.
func TestWebSub(t *testing.T) {
	var s *sim
	var looks []time.Time
	var forms []url.Values
	item := func(k int) string {
		return fmt.Sprintf(`<item><guid>%d</guid><pubDate>%s</pubDate></item>`, k, s.now.Add(-time.Minute).UTC().Format(time.RFC1123Z))
	}
	doc := func(items string) string { return `<rss version="2.0"><channel>` + items + `</channel></rss>` }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/hub":
			q.ParseForm()
			forms = append(forms, q.PostForm)
			w.WriteHeader(http.StatusAccepted)
		case "/feed":
			looks = append(looks, s.now)
			w.Header().Set("Link", `<http://hub.test/hub>; rel="hub", <http://a.test/topic>; rel="self"`)
			w.Header().Set("ETag", fmt.Sprint(len(looks)))
			io.WriteString(w, doc(item(1)))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	s = simulateURLs(t, server.Listener.Addr().String(), "http://a.test/feed")
	s.Crawler.opt.PublicURL = "https://me.example.org/"
	s.pass(10 * time.Minute)
	if len(forms) != 1 || forms[0].Get("hub.mode") != "subscribe" || forms[0].Get("hub.topic") != "http://a.test/topic" {
		t.Fatal(forms)
	}
	page := s.Handler()
	call := func(method, query, body string, header http.Header) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		q := httptest.NewRequest(method, forms[0].Get("hub.callback")+query, strings.NewReader(body))
		q.Header = header
		page.ServeHTTP(w, q)
		return w
	}
	for query, want := range map[string]int{
		"x?hub.mode=subscribe&hub.topic=http://a.test/topic&hub.lease_seconds=864000&hub.challenge=c":  http.StatusGone,
		"?hub.mode=subscribe&hub.topic=http://a.test/feed&hub.lease_seconds=864000&hub.challenge=c":    http.StatusNotFound,
		"?hub.mode=unsubscribe&hub.topic=http://a.test/topic&hub.lease_seconds=864000&hub.challenge=c": http.StatusNotFound,
	} {
		if w := call("GET", query, "", nil); w.Code != want || !s.feeds["http://a.test/feed"].Push.Until.IsZero() {
			t.Errorf("%s: %d", query, w.Code)
		}
	}
	if w := call("GET", "?hub.mode=subscribe&hub.topic=http://a.test/topic&hub.lease_seconds=864000&hub.challenge=c", "", nil); w.Code != 200 || w.Body.String() != "c" {
		t.Fatal(w)
	}
	s.pass(time.Hour)
	looks = nil
	for day := range 9 {
		for _, signed := range []bool{false, true} {
			body := doc(item(10 + day))
			mac := hmac.New(sha256.New, []byte(forms[0].Get("hub.secret")))
			if signed {
				mac.Write([]byte(body))
			}
			before := s.stats.Items
			w := call("POST", "", body, http.Header{"X-Hub-Signature": {"sha256=" + hex.EncodeToString(mac.Sum(nil))}})
			if found := s.stats.Items - before; w.Code != 200 || found != 0 != signed {
				t.Errorf("day %d, signed %v: %d, %d items", day, signed, w.Code, found)
			}
		}
		s.pass(24 * time.Hour)
	}
	for k := 1; k < len(looks); k++ {
		if d := looks[k].Sub(looks[k-1]); d < 24*time.Hour || d > 25*time.Hour {
			t.Errorf("two looks within %v", d)
		}
	}
	if len(looks) < 8 || s.stats.Items != 10 || len(forms) < 2 {
		t.Errorf("%d looks, %d items, %d subscriptions", len(looks), s.stats.Items, len(forms))
	}
}

// TestPage opens the page in a browser, without script, at the width of a phone.
func TestPage(t *testing.T) {
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
		}
	}
	if path == "" {
		if os.Getenv("EPHEMERA_REQUIRE_ALL") == "1" {
			t.Fatal("no Chromium here, and EPHEMERA_REQUIRE_ALL=1; Debian's package is chromium")
		}
		t.Skip("no Chromium here; Debian's package is chromium")
	}
	s := simulate(t, newReferee(t, 30), 0, 1, 2, 4, 8, 10, 20)
	s.pass(80 * time.Hour)
	page := s.Handler()
	server := httptest.NewServer(page)
	defer server.Close()
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WindowSize(360, 740), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("blink-settings", "scriptEnabled=false"))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, tt := range []struct {
		url, script string
		want        int
	}{
		{server.URL, `document.documentElement.scrollWidth`, 360},
		{server.URL, `document.querySelectorAll("#feeds tr").length`, 8},
		{server.URL, `Math.min(50, document.querySelectorAll("#found tr").length)`, 50},
		{server.URL, `Math.min(2, document.querySelectorAll("#failures tr").length)`, 2},
		{server.URL, `document.querySelectorAll("#delays tr").length`, 5},
		{server.URL + "/?feed=" + address(0), `Math.min(24, document.querySelectorAll("#week td").length)`, 24},
		{server.URL + "/?feed=" + address(0), `document.documentElement.scrollWidth`, 360},
	} {
		err := chromedp.Do(ctx, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile), chromedp.Navigate(tt.url))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := chromedp.Run(ctx, chromedp.Evaluate[int](tt.script)); err != nil || got != tt.want {
			t.Errorf("%s is %d, want %d: %v", tt.script, got, tt.want, err)
		}
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, name := range []string{`crawl_requests_total{outcome="found"}`, `crawl_feeds 7`, `crawl_delay_seconds{quantile="0.5"}`} {
		if !strings.Contains(w.Body.String(), name) {
			t.Errorf("/metrics has no %s", name)
		}
	}
}
