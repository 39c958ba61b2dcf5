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
)

// simulate returns a crawler of some feeds, for which every host is one server.
func simulate(t testing.TB, server *httptest.Server, urls ...string) *sim {
	s := newLife(t, server, 30, urls...).open(io.Discard)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestGoesOn: what is thought is the same after a crash, and much the same in another
// crawler that begins with what this one has found.
func TestGoesOn(t *testing.T) {
	r := newReferee(t, 30)
	s := simulate(t, r.Server, address(0), address(1), address(2)).pass(75 * time.Hour)
	l := s.life
	l.Begin, l.Dir = s.now, l.Dir+"-copy"
	if err := os.CopyFS(l.Dir, os.DirFS(s.Dir)); err != nil {
		t.Fatal(err)
	}
	crashed := l.open(io.Discard).pass(10 * time.Minute)
	defer crashed.Close()
	s.pass(10 * time.Minute) // so that the learner takes up the last answers
	if s.stats.Items != crashed.stats.Items || s.stats.Items < 100 {
		t.Errorf("%d items before, %d after", s.stats.Items, crashed.stats.Items)
	}
	path := filepath.Join(t.TempDir(), "log.csv.gz")
	rows, err := s.Export(path)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := env.ReadRecording(context.Background(), path)
	if err != nil || rec.Rows != rows || len(rec.Names) != 3 {
		t.Fatal(rec, err)
	}
	other := simulate(t, r.Server, address(0), address(1), address(25))
	other.now = s.now.AddDate(0, 0, 9)
	if n, err := other.Import(rec); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	other.pass(6 * time.Minute)
	for c, close := range map[*sim]float64{crashed: .02, other: .3} {
		for k := range 2 {
			if a, b := s.Row(s.feeds[address(k)]).PerDay, c.Row(c.feeds[address(k)]).PerDay; !(math.Abs(a-b) < close*a) {
				t.Errorf("feed %d: %v items a day, then %v", k, a, b)
			}
		}
	}
	if n, err := other.Plan(io.Discard, 24*time.Hour); err != nil || n < 10 || n > 30*24 {
		t.Errorf("%d looks are planned: %v", n, err)
	}
}

// TestList: the file is edited while it runs.
func TestList(t *testing.T) {
	r := newReferee(t, 30)
	s := simulate(t, r.Server, address(0), address(1))
	before := map[int]int{}
	looks := func(k int) int { // since it was asked before
		n := -before[k]
		if site := r.sites[fmt.Sprintf("feed %d (%s) feed", k, kinds[k])]; site != nil {
			n += site.requests
		}
		before[k] += n
		return n
	}
	for _, text := range []string{"<opml><body>", "<opml/>"} {
		if err := os.WriteFile(s.OPML, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if s.pass(time.Hour); s.listErr == nil || looks(0) == 0 {
			t.Fatalf("%s: %v", text, s.listErr)
		}
	}
	writeOPML(t, s.OPML, address(1), address(4))
	if s.pass(time.Hour); looks(0) > 0 || looks(4) == 0 || s.listErr != nil {
		t.Errorf("a feed was removed, one added: %v, %v", before, s.listErr)
	}
	writeOPML(t, s.OPML, address(1))
	s.pass(2 * time.Minute)
	writeOPML(t, s.OPML, address(0), address(1), address(4), address(4))
	if s.pass(2 * time.Hour); looks(0) == 0 || s.learner.Len() != 3 || len(r.wrong) > 0 {
		t.Error("feeds that came back are not looked at, or not as their servers asked", r.wrong)
	}
}

// TestWebSub: a hub that a feed names is subscribed to and tells what is new; the feed
// is looked at once a day then, and at other times what is not signed is ignored.
func TestWebSub(t *testing.T) {
	var s *sim
	var looks []time.Time
	var forms []url.Values
	doc := func(k int) string {
		return fmt.Sprintf(`<rss version="2.0"><channel><item><guid>%d</guid><pubDate>%s</pubDate></item></channel></rss>`, k, s.now.Add(-time.Minute).UTC().Format(time.RFC1123Z))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/hub":
			q.ParseForm()
			forms = append(forms, q.PostForm)
		case "/feed":
			looks = append(looks, s.now)
			w.Header().Set("Link", `<http://hub.test/hub>; rel="hub", <http://a.test/topic>; rel="self"`)
			w.Header().Set("ETag", fmt.Sprint(len(looks)))
			io.WriteString(w, doc(1))
		}
	}))
	defer server.Close()
	s = simulate(t, server, "http://a.test/feed")
	s.Crawler.opt.PublicURL = "https://me.example.org/"
	s.pass(10 * time.Minute)
	if len(forms) != 1 || forms[0].Get("hub.mode") != "subscribe" || forms[0].Get("hub.topic") != "http://a.test/topic" {
		t.Fatal(forms)
	}
	page := s.Handler()
	call := func(method, path, body, secret string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		q := httptest.NewRequest(method, forms[0].Get("hub.callback")+path, strings.NewReader(body))
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		q.Header.Set("X-Hub-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		page.ServeHTTP(w, q)
		return w
	}
	for _, tt := range []struct {
		path, mode, topic string
		status            int
	}{{"x", "subscribe", "topic", 410}, {"", "subscribe", "feed", 404}, {"", "unsubscribe", "topic", 404}, {"", "subscribe", "topic", 200}} {
		w := call("GET", tt.path+"?hub.mode="+tt.mode+"&hub.topic=http://a.test/"+tt.topic+"&hub.lease_seconds=864000&hub.challenge=c", "", "")
		if confirmed := !s.feeds["http://a.test/feed"].Push.Until.IsZero(); w.Code != tt.status || confirmed != (tt.status == 200) || confirmed != (w.Body.String() == "c") {
			t.Errorf("%+v: %d %q", tt, w.Code, w.Body)
		}
	}
	s.pass(time.Hour)
	looks = nil
	for day := range 9 {
		for secret, new := range map[string]int{"wrong": 0, forms[0].Get("hub.secret"): 1} {
			before := s.stats.Items
			if w := call("POST", "", doc(10+day), secret); w.Code != 200 || s.stats.Items-before != new {
				t.Errorf("day %d, secret %s: %d, %d items", day, secret, w.Code, s.stats.Items-before)
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
	path, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("EPHEMERA_REQUIRE_ALL") == "1" {
		t.Fatal("no Chromium here, and EPHEMERA_REQUIRE_ALL=1; Debian's package is chromium")
	} else if err != nil {
		t.Skip("no Chromium here; Debian's package is chromium")
	}
	s := simulate(t, newReferee(t, 30).Server, address(0), address(1), address(2), address(4), address(8), address(10), address(20)).pass(80 * time.Hour)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("blink-settings", "scriptEnabled=false"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, opts...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	for _, tt := range []struct {
		path, script string
		want         int
	}{
		{"/", `document.documentElement.scrollWidth`, 360},
		{"/", `document.querySelectorAll("#feeds tr").length`, 8},
		{"/", `Math.min(50, document.querySelectorAll("#found tr").length)`, 50},
		{"/", `Math.min(2, document.querySelectorAll("#failures tr").length)`, 2},
		{"/", `document.querySelectorAll("#delays tr").length`, 5},
		{"/?feed=" + address(0), `document.querySelectorAll("#week td").length`, 7 * 24},
		{"/?feed=" + address(0), `document.documentElement.scrollWidth`, 360},
		{"/metrics", `document.body.innerText.match(/crawl_(requests_total{outcome="found"}|feeds 7|delay_seconds{quantile="0.5"})/g).length`, 3},
	} {
		err := chromedp.Do(ctx, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile), chromedp.Navigate(server.URL+tt.path))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := chromedp.Run(ctx, chromedp.Evaluate[int](tt.script)); err != nil || got != tt.want {
			t.Errorf("%s: %s is %d, want %d: %v", tt.path, tt.script, got, tt.want, err)
		}
	}
}
