package crawl

import (
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
	c, err := s.life.start(&s.now)
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
	again := &sim{t: t, now: s.now, life: s.life}
	again.Dir += "-copy"
	if err := os.CopyFS(again.Dir, os.DirFS(s.Dir)); err != nil {
		t.Fatal(err)
	}
	again.open()
	defer again.Close()
	for _, c := range []*sim{s, again} {
		c.pass(10 * time.Minute) // so that the learner takes up the last answers
	}
	for address, r := range s.feeds {
		a, b := s.Row(r), again.Row(again.feeds[address])
		if a.PerDay == 0 || math.Abs(a.PerDay-b.PerDay) > .02*a.PerDay || a.Items != b.Items {
			t.Errorf("%s: %v items a day before, %v after; found %d, %d", address, a.PerDay, b.PerDay, a.Items, b.Items)
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
	before := make([]int, 5)
	looks := func(k int) int { // since it was asked before
		n := 0
		if site := r.sites[fmt.Sprint(k, "/feed")]; site != nil {
			n = site.requests - before[k]
		}
		before[k] += n
		return n
	}
	for _, text := range []string{"<opml><body>", "<opml/>", `<opml><body><outline xmlUrl="file:///x"/></body></opml>`} {
		if err := os.WriteFile(s.OPML, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if s.pass(time.Hour); s.listErr == nil || looks(0) == 0 {
			t.Fatalf("%s: %v", text, s.listErr)
		}
	}
	writeOPML(t, s.OPML, address(1), address(4))
	if s.pass(2 * time.Hour); looks(0) > 0 || looks(4) == 0 || s.listErr != nil {
		t.Errorf("a feed was removed, one added: %v, %v", before, s.listErr)
	}
	writeOPML(t, s.OPML, address(0), address(1), address(4), address(4))
	if s.pass(2 * time.Hour); looks(0) == 0 || s.learner.Len() != 3 {
		t.Error("a feed that came back is not looked at")
	}
	if len(r.wrong) > 0 { // it came back with its validators
		t.Error(r.wrong)
	}
}

// TestDates: items have dates at which they can have appeared.
func TestDates(t *testing.T) {
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		last  float64 // look, hours ago; 0 for none
		seen  []uint64
		hours []float64 // ago, of the items 1, 2, …
		want  []float64 // of the new ones; 0 for not known
	}{
		{"a first look", 0, nil, []float64{1, 5, 9}, []float64{1, 5, 9}},
		{"a silent feed", 0, nil, []float64{5000, 9000}, []float64{5000, 9000}},
		{"in the future", 0, nil, []float64{-5, 3}, []float64{0, 3}},
		{"one more", 4, []uint64{2, 3}, []float64{1, 5, 9}, []float64{1}},
		{"older than the last look", 4, []uint64{2, 3}, []float64{6, 5, 9}, []float64{0}},
	} {
		ago := func(hours float64) time.Time { return now.Add(-time.Duration(hours * float64(time.Hour))) }
		r := &record{Seen: tt.seen}
		if tt.last > 0 {
			r.Last = ago(tt.last)
		}
		var shown []feed.Item
		for k, h := range tt.hours {
			shown = append(shown, feed.Item{ID: uint64(k + 1), Published: ago(h)})
		}
		var got []float64
		for _, it := range r.news(shown, now) {
			h := 0.
			if !it.Published.IsZero() {
				h = now.Sub(it.Published).Hours()
			}
			got = append(got, h)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestMove: what is exported is a recording, from which another crawler learns.
func TestMove(t *testing.T) {
	r := newReferee(t, 30)
	s := simulate(t, r, 0, 1, 4)
	s.pass(72 * time.Hour)
	path := filepath.Join(t.TempDir(), "log.csv.gz")
	rows, err := s.Export(path)
	if err != nil || rows < 100 {
		t.Fatal(rows, err)
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
	if n, err := other.Plan(io.Discard, 24*time.Hour); err != nil || n < 10 || n > 30*24 {
		t.Errorf("%d looks are planned: %v", n, err)
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
