package crawl

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"ephemera/env"
	"ephemera/live/schedule"
)

// simulate returns a crawler of some feeds, for which every host is one server.
func simulate(t testing.TB, server *httptest.Server, urls ...string) *sim {
	s := newLife(t, server, 30, urls...).open(io.Discard)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestImport: another crawler that begins with what this one has found thinks much the
// same.
func TestImport(t *testing.T) {
	r := newReferee(t, 30)
	s := simulate(t, r.Server, address(0), address(1), address(2)).pass(75 * time.Hour)
	path := filepath.Join(t.TempDir(), "log.csv.gz")
	rows, rec := must(s.Export(path)), must(env.ReadRecording(t.Context(), path))
	if rec.Rows != rows || rows < 100 || len(rec.Names) != 3 {
		t.Fatal(rec)
	}
	other := simulate(t, r.Server, address(0), address(1), address(25))
	other.now = s.now.AddDate(0, 0, 9)
	if n, err := other.Import(rec); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	s.pass(10 * time.Minute) // so that the learner takes up the last answers
	other.pass(10 * time.Minute)
	for k := range 2 {
		a, b := s.view("").Row(s.feeds[address(k)]).PerDay, other.view("").Row(other.feeds[address(k)]).PerDay
		if !(math.Abs(a-b) < .3*a) {
			t.Errorf("feed %d: %v items a day, then %v", k, a, b)
		}
	}
	if n, err := other.Import(rec); n != 0 || err == nil || !strings.Contains(err.Error(), "give another -dir") {
		t.Errorf("the past of %d feeds is imported again: %v", n, err)
	}
	bad := simulate(t, r.Server, address(0))
	bad.opt.PerHour = 0
	if n, err := bad.Import(rec); n != 0 || err == nil || !strings.Contains(err.Error(), "budget") {
		t.Errorf("no learner can begin, and the past of %d feeds is known: %v", n, err)
	}
	if n, err := other.Plan(io.Discard, 24*time.Hour); err != nil || n < 10 || n > 30*24 {
		t.Errorf("%d looks are planned: %v", n, err)
	}
}

// TestList: the file is edited while it runs.
func TestList(t *testing.T) {
	r := newReferee(t, 30)
	s := simulate(t, r.Server, address(0), address(1))
	for _, tt := range []struct {
		text  string
		asked []int
		bad   bool
	}{
		{"<opml><body>", []int{0, 1}, true},
		{opml(address(1), address(4)), []int{1, 4}, false},
		{opml(address(1)), []int{1}, false},
		// Those that come back as their servers asked.
		{opml(address(0), address(1), address(4), address(4)), []int{0, 1, 4}, false},
	} {
		check(os.WriteFile(s.OPML, []byte(tt.text), 0o644))
		begin := s.now
		s.pass(3 * time.Hour)
		var asked []int
		for _, k := range []int{0, 1, 4} {
			if site := r.sites[fmt.Sprintf("feed %d (%s) feed", k, kinds[k])]; site != nil && site.last.After(begin) {
				asked = append(asked, k)
			}
		}
		if !slices.Equal(asked, tt.asked) || (s.listing.err != nil) != tt.bad || len(r.wrong) > 0 {
			t.Errorf("%s: feeds %v are asked for, want %v; %v; %v", tt.text, asked, tt.asked, s.listing.err, r.wrong)
		}
	}
}

// TestKillAfterLeaving: a kill, before the learner is kept, loses nothing of what was learned of a feed that
// has left the list just before it or meanwhile.
func TestKillAfterLeaving(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		r := newReferee(t, 30)
		l := newLife(t, r.Server, 30, address(0), address(1))
		s := l.open(io.Discard).pass(75*time.Hour + 50*time.Minute)
		last := func(state []byte) (epoch int) {
			var of struct {
				Last, Epoch int
				Crawled     any // in Epoch, if it is not taken up yet
			}
			if check(json.Unmarshal(state, &of)); of.Crawled != nil {
				return of.Epoch
			}
			return of.Last
		}
		want := last(must(s.learner.SourceState(address(0))))
		check(os.WriteFile(s.OPML, []byte(opml(address(1))), 0o644))
		if !meanwhile {
			s.pass(2 * time.Minute)
		}
		check(s.store.Close()) // as at a kill
		l.Begin = s.now
		s = l.open(io.Discard)
		if got := last(s.feeds[address(0)].Left.State); s.learner.Has(address(0)) || got != want {
			t.Errorf("the last look that it left is of epoch %d; want %d", got, want)
		}
		check(s.Close())
	}
}

// TestComesBack: a feed that is off the list for a while keeps what was learned of it, also over a
// restart, and where the learner begins anew it is learned once.
func TestComesBack(t *testing.T) {
	for _, tt := range []struct {
		name          string
		restart, anew bool
	}{{"", false, false}, {"restarted", true, false}, {"learned anew", true, true}} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReferee(t, 30)
			l := newLife(t, r.Server, 30, address(0), address(1))
			s := l.open(io.Discard).pass(75 * time.Hour)
			s.pass(10 * time.Minute) // so that the learner takes up the last answers
			type known struct {
				Learned struct{ Rate struct{ Items, Log float64 } }
			}
			learned := func() (k known) {
				check(json.Unmarshal(must(s.learner.SourceState(address(0))), &k))
				return k
			}
			before := learned().Learned.Rate
			list := func(urls ...string) {
				check(os.WriteFile(s.OPML, []byte(opml(urls...)), 0o644))
				s.pass(2 * time.Hour)
			}
			list(address(1))
			if s.learner.Has(address(0)) {
				t.Error("it is crawled though it is off the list")
			}
			if tt.restart {
				l.Begin = s.now
				if tt.anew {
					check(s.store.SetValue(learnerName, nil))
					check(s.store.Close())
					check(os.WriteFile(s.OPML, []byte(opml(address(0), address(1))), 0o644))
				} else {
					check(s.Close())
				}
				s = l.open(io.Discard)
			}
			defer func() { s.Close() }()
			check(os.WriteFile(s.OPML, []byte(opml(address(0), address(1))), 0o644))
			s.pass(10 * time.Minute)
			after := learned().Learned.Rate
			if !(math.Abs(before.Log-after.Log) < .1 && math.Abs(before.Items-after.Items) < .1*before.Items) {
				t.Errorf("%+v is known of it; before it was %+v", after, before)
			}
		})
	}
}

// TestOtherVersion: a learner that another version saved is kept under another name, and
// the journal is learned anew.
func TestOtherVersion(t *testing.T) {
	r := newReferee(t, 30)
	l := newLife(t, r.Server, 30, address(0), address(1))
	s := l.open(io.Discard).pass(75 * time.Hour)
	s.pass(10 * time.Minute) // so that the learner takes up the last answers
	before, items := s.view("").Row(s.feeds[address(0)]).PerDay, s.stats.Items
	l.Begin = s.now
	check(s.save(s.now, true))
	var kept snapshot
	check(json.Unmarshal(must(s.store.Value(learnerName)), &kept))
	state := regexp.MustCompile(`"version":\d+`).ReplaceAll(kept.State, []byte(`"version":1`))
	if bytes.Equal(state, kept.State) {
		t.Fatal("the state has no version")
	}
	kept.State = state
	check(s.store.SetValue(learnerName, must(json.Marshal(kept))))
	check(s.store.Close())

	again := l.open(io.Discard)
	defer again.Close()
	again.pass(10 * time.Minute)
	if after := again.view("").Row(again.feeds[address(0)]).PerDay; !(math.Abs(before-after) < .1*before) {
		t.Errorf("a feed has %v items a day, and anew %v", before, after)
	}
	if n := again.stats.Items; n < items {
		t.Errorf("%d items are counted, of %d", n, items)
	}
	var aside [][]byte
	check(again.store.Values(learnerName+" until ", "", func(_ string, data []byte) bool {
		aside = append(aside, data)
		return true
	}))
	if len(aside) != 1 || !bytes.Contains(aside[0], []byte(base64.StdEncoding.EncodeToString(state)[:100])) {
		t.Errorf("%d states are kept under another name", len(aside))
	}
}

// TestKilledRound: a feed whose request was under way when a round for cron was killed is
// asked for in the rounds that follow, though each of them is a process of its own.
func TestKilledRound(t *testing.T) {
	r := newReferee(t, 30)
	l := newLife(t, r.Server, 30, address(0))
	s := l.open(io.Discard)
	id := s.feeds[address(0)].ID
	s.store.Hasten([]schedule.ID{id})
	taken, err := s.store.Take(&schedule.Request{Crawl: crawlName, Hold: time.Hour.Milliseconds()}, 2)
	if len(taken) != 1 || err != nil {
		t.Fatal(taken, err)
	}
	check(s.store.Close()) // before it is asked for
	for range 30 {
		l.Begin = l.Begin.Add(time.Hour)
		s := l.open(io.Discard)
		for range 3 {
			s.round()
		}
		check(s.Close())
	}
	if r.looks < 20 || len(r.wrong) > 0 {
		t.Errorf("%d requests in 30 hours, %v", r.looks, r.wrong)
	}
}

// TestHeldOverRestart: feeds whose requests were under way at a kill are left alone for an hour
// from then on, though nothing else was kept for some time before, and whatever the clock is set to meanwhile.
func TestHeldOverRestart(t *testing.T) {
	for _, step := range []time.Duration{0, 48 * time.Hour, -48 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			r := newReferee(t, 120)
			var urls []string
			for k := range 7 {
				urls = append(urls, address(k))
			}
			l := newLife(t, r.Server, 120, urls...)
			l.Boot = "1"
			s := l.open(io.Discard).pass(3 * time.Hour)
			s.now = s.now.Add(10 * time.Minute)
			var all []schedule.ID
			for _, f := range s.feeds {
				all = append(all, f.ID)
			}
			s.clock() // takes up where the clock is
			must(s.store.Hasten(all))
			taken, err := s.store.Take(
				&schedule.Request{Crawl: crawlName, PerQueue: 1, Hold: s.opt.hold().Milliseconds()}, len(all))
			if err != nil || len(taken) != len(all) {
				t.Fatal(len(taken), err)
			}
			check(s.Close())
			l.Begin, l.Ahead = s.now, step
			s = l.open(io.Discard)
			defer s.Close()
			before, until := r.looks, l.Begin.Add(time.Hour)
			for s.now.Before(until.Add(-time.Minute)) {
				s.pass(time.Minute)
				for _, f := range s.view("").Feeds {
					row := s.view("").Row(f)
					due := row.Due.Add(-step).Sub(until)
					if due < 0 || row.Reason == "it is due, and others come first" {
						t.Errorf("%v before its hour is over, the next look at %s is %v after that: %s",
							until.Sub(s.now), f.Name(), due, row.Reason)
					}
				}
			}
			if r.looks > before {
				t.Errorf("%d looks within an hour; want none", r.looks-before)
			}
			if s.pass(15 * time.Minute); r.looks < before+5 {
				t.Errorf("%d looks in the quarter after; want most of 7", r.looks-before)
			}
		})
	}
}

// TestLostLongest: where each feed is looked at because its longest interval has ended, one whose request was
// under way at a kill is among the first when it is no longer left alone, and not behind all others.
func TestLostLongest(t *testing.T) {
	var urls []string
	for k := range 24 {
		urls = append(urls, address(k*len(kinds)))
	}
	r := newReferee(t, 1)
	l := newLife(t, r.Server, .5, urls...)
	s := l.open(io.Discard).pass(10 * 24 * time.Hour)
	var first *record
	for _, f := range s.feeds {
		if first == nil || f.Tried.Before(first.Tried) {
			first = f
		}
	}
	s.store.Hasten([]schedule.ID{first.ID})
	taken, err := s.store.Take(&schedule.Request{Crawl: crawlName, Hold: time.Hour.Milliseconds()}, 1)
	if len(taken) != 1 || err != nil {
		t.Fatal(taken, err)
	}
	check(s.store.Close())
	l.Begin = s.now.Add(time.Minute)
	s = l.open(io.Discard).pass(10 * time.Hour)
	defer s.Close()
	if tried := s.feeds[first.ID.URL].Tried; !tried.After(l.Begin) || r.looks == 0 {
		t.Errorf("%s was asked for last at %v, before the kill at %v", first.ID.URL, tried, l.Begin)
	}
}

// TestWebSub: a hub that a feed names is subscribed to and tells what is new; the feed
// is looked at once a day then, and what is not signed is ignored.
func TestWebSub(t *testing.T) {
	const host = "http://f0027.test/"
	r := newReferee(t, 30)
	s := simulate(t, r.Server, address(27))
	s.Crawler.opt.PublicURL = "https://me.example.org/"
	s.pass(10 * time.Minute)
	if len(r.forms) != 1 || r.forms[0].Get("hub.mode") != "subscribe" || r.forms[0].Get("hub.topic") != host+"topic" {
		t.Fatal(r.forms)
	}
	page := s.Handler()
	call := func(method, path, body, secret string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		q := httptest.NewRequest(method, r.forms[0].Get("hub.callback")+path, strings.NewReader(body))
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		q.Header.Set("X-Hub-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		page.ServeHTTP(w, q)
		if w.Header().Get("X-Content-Type-Options") != "nosniff" { // what a hub sends comes back
			t.Errorf("%s %s: the answer has %v", method, path, w.Header())
		}
		return w
	}
	for _, tt := range []struct {
		path, mode, topic string
		status            int
	}{
		{"x", "subscribe", "topic", 410},
		{"", "subscribe", "feed", 404},
		{"", "unsubscribe", "topic", 404},
		{"", "subscribe", "topic", 200},
	} {
		asked := "?hub.mode=" + tt.mode + "&hub.topic=" + host + tt.topic + "&hub.lease_seconds=864000&hub.challenge=c"
		w := call("GET", tt.path+asked, "", "")
		confirmed := !s.feeds[address(27)].Push.Until.IsZero()
		if w.Code != tt.status || confirmed != (tt.status == 200) || confirmed != (w.Body.String() == "c") {
			t.Errorf("%+v: %d %q", tt, w.Code, w.Body)
		}
	}
	r.tell = true
	s.pass(time.Hour)
	site := r.sites["feed 27 (hub) feed"]
	before := site.requests
	for day := range 9 {
		for _, tt := range []struct {
			secret string
			items  int // that are taken
		}{{"wrong", 0}, {r.forms[0].Get("hub.secret"), 1}} {
			before := s.stats.Items
			sent := fmt.Sprintf(`<rss version="2.0"><channel><item><guid>sent %d</guid></item></channel></rss>`, day)
			if w := call("POST", "", sent, tt.secret); w.Code != 200 || s.stats.Items-before != tt.items {
				t.Errorf("day %d, secret %s: %d, %d items; want 200 and %d",
					day, tt.secret, w.Code, s.stats.Items-before, tt.items)
			}
		}
		s.pass(24 * time.Hour)
	}
	if n := site.requests - before; n < 8 || len(r.forms) < 2 || len(r.wrong) > 0 {
		t.Errorf("%d looks, %d subscriptions, %v", n, len(r.forms), r.wrong)
	}
}

// TestPage opens the page in a browser, without script, at the widths of a phone and of a desk, in
// the light and in the dark.
func TestPage(t *testing.T) {
	path, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("EPHEMERA_REQUIRE_ALL") != "1" {
		t.Skip("no Chromium here; Debian's package is chromium")
	}
	var urls []string
	for k := range 112 {
		urls = append(urls, address(k))
	}
	s := newLife(t, newReferee(t, 60).Server, 60, urls...).open(io.Discard).pass(30 * time.Hour)
	defer s.Close()
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("blink-settings", "scriptEnabled=false"))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	const wide = `document.documentElement.scrollWidth - innerWidth`
	one := "/?feed=" + address(0)
	for _, tt := range []struct {
		path, script string
		want         int
	}{
		{"/", wide, 0},
		{one, wide, 0},
		{"/", `document.querySelectorAll("#feeds tr").length`, 101},
		{"/?page=2", `document.querySelectorAll("#feeds tr").length`, 13},
		{"/", `document.querySelectorAll("#pages a").length`, 1},
		// None is squeezed.
		{"/", `[...document.querySelectorAll("td")].filter(cell => cell.offsetHeight > 90).length`, 0},
		{"/", `Math.min(50, document.querySelectorAll("#found tr").length)`, 50},
		{"/", `Math.min(20, document.querySelectorAll("#failures tr").length)`, 20},
		{"/", `Math.min(5, document.querySelectorAll("#held tr").length)`, 5},
		{"/", `document.querySelectorAll("#delays tr").length`, 3},
		{"/", `document.querySelector("h2").textContent == "Health" ? 1 : 0`, 1},
		{"/", `document.body.innerText.trim().endsWith("metrics") ? 1 : 0`, 1}, // the page is whole
		{one, `document.querySelectorAll("#week td").length`, 7 * 24},
		{one, `Math.min(11, document.querySelectorAll("#of tr").length)`, 11},
		{one, `Math.min(3, document.querySelectorAll("#looks tr").length)`, 3},
		{"/metrics", `document.body.innerText.match(
			/crawl_(build_info{|requests_total{outcome="found"}|feeds 112|delay_seconds{quantile="0.5"})/g).length`, 4},
	} {
		for _, width := range []int64{390, 1280} {
			size := chromedp.EmulateViewport(width, 740, chromedp.EmulateMobile)
			check(chromedp.Do(ctx, size, chromedp.Navigate(server.URL+tt.path)))
			if got, err := chromedp.Run(ctx, chromedp.Evaluate[int](tt.script)); err != nil || got != tt.want {
				t.Errorf("%s, %d px: %s is %d, want %d: %v", tt.path, width, tt.script, got, tt.want, err)
			}
		}
	}
	for _, tt := range []struct{ scheme, want string }{{"light", "rgb(170, 0, 0)"}, {"dark", "rgb(255, 138, 128)"}} {
		prefer := chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: tt.scheme}}
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
			return err
		})
		check(chromedp.Do(ctx, prefer, chromedp.Navigate(server.URL)))
		color := chromedp.Evaluate[string](`getComputedStyle(document.querySelector(".no")).color`)
		if got, err := chromedp.Run(ctx, color); err != nil || got != tt.want {
			t.Errorf("in the %s failures are %s, want %s: %v", tt.scheme, got, tt.want, err)
		}
	}
}
