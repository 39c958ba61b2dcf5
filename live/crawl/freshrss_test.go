package crawl

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ephemera/live/feed"
)

// fakeFreshRSS answers as a real FreshRSS did: with other feeds, entries and times in its answers.
type fakeFreshRSS struct {
	*httptest.Server
	answers map[string]text

	mu      sync.Mutex
	now     func() time.Time
	feeds   []*fakeFresh // the first has the number 1
	refresh []int
}

type fakeFresh struct {
	url     string
	every   time.Duration // between its entries
	undated bool
	muted   bool
	label   *string // News & more if it is nil
	checked time.Time
	entries []freshEntry // by number
}

type freshEntry struct {
	fakeEntry
	appeared time.Time
}

func newFakeFreshRSS(t *testing.T, feeds ...*fakeFresh) *fakeFreshRSS {
	m := &fakeFreshRSS{feeds: feeds}
	check(json.Unmarshal(must(os.ReadFile(freshAnswers)), &m.answers))
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// give answers; change puts others in the place of the objects of a list of the answer.
func (m *fakeFreshRSS) give(w http.ResponseWriter, name, list string, change func(template any) []any) {
	a := m.answers[name]
	w.WriteHeader(a.Status)
	if list != "" {
		var body map[string]any
		check(json.Unmarshal([]byte(a.Body), &body))
		body[list] = change(body[list].([]any)[0])
		delete(body, "continuation") // there are no more
		a.Body = string(must(json.Marshal(body)))
	}
	w.Write([]byte(a.Body))
}

func (m *fakeFreshRSS) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	api, auth := "/api/greader.php", strings.TrimPrefix(q.Header.Get("Authorization"), "GoogleLogin auth=")
	_, number, entries := strings.Cut(q.URL.Path, "/stream/contents/feed/")
	switch {
	case q.URL.Path == "/i/" && (q.FormValue("token") != "token" || q.FormValue("user") != "alice"):
		m.give(w, "refused", "", nil)
	case q.URL.Path == "/i/" && q.FormValue("a") == "opml":
		first, rest, _ := strings.Cut(m.answers["opml"].Body, "<outline text=\"Feed 0\"")
		_, rest, _ = strings.Cut(rest, "</outline>")
		for k, f := range m.feeds {
			if !f.muted {
				first += fmt.Sprintf(`<outline text="Feed %d" type="rss" xmlUrl="%s"/>`,
					k+1, strings.ReplaceAll(f.url, "&", "&amp;"))
			}
		}
		fmt.Fprint(w, first+"</outline>"+rest)
	case q.URL.Path == "/i/" && q.FormValue("c") == "feed" && q.FormValue("a") == "actualize":
		id, _ := strconv.Atoi(q.FormValue("id"))
		m.refresh = append(m.refresh, id)
		m.fetch(m.feeds[id-1])
		m.give(w, "refresh", "", nil)
	case q.URL.Path == api+"/accounts/ClientLogin" &&
		q.FormValue("Passwd") == "apisecret" && q.FormValue("Email") == "alice":
		m.give(w, "login", "", nil)
	case q.URL.Path == api+"/accounts/ClientLogin":
		m.give(w, "login refused", "", nil)
	case q.URL.Path == "/api/fever.php" && q.FormValue("api_key") == feverKey("alice", "apisecret"):
		m.give(w, "fever", "feeds", func(template any) (all []any) {
			for k, f := range m.feeds {
				updated := int64(0)
				if !f.checked.IsZero() {
					updated = f.checked.Unix()
				}
				all = append(all, with(template, map[string]any{
					"id": k + 1, "url": f.url, "last_updated_on_time": updated,
				}))
			}
			return all
		})
	case !strings.Contains(m.answers["login"].Body, "Auth="+auth+"\n"):
		m.give(w, "unauthorized", "", nil)
	case q.URL.Path == api+"/reader/api/0/subscription/list":
		m.give(w, "list", "subscriptions", func(template any) (all []any) {
			for k, f := range m.feeds {
				values := map[string]any{
					"id": fmt.Sprint("feed/", k+1), "title": fmt.Sprintf("Feed ＆ %d", k+1), "url": f.url,
				}
				if f.label != nil {
					values["categories"] = []any{map[string]any{"label": *f.label}}
				}
				all = append(all, with(template, values))
			}
			return all
		})
	case entries:
		id, _ := strconv.Atoi(number)
		m.give(w, "entries", "items", func(template any) []any { return m.feeds[id-1].page(template, q) })
	default:
		http.NotFound(w, q)
	}
}

// fetch has the feed be fetched.
func (m *fakeFreshRSS) fetch(f *fakeFresh) {
	now, since := m.now(), f.checked
	if since.IsZero() { // it shows ten
		since = now.Add(-10 * f.every)
	}
	for at := since.Truncate(f.every).Add(f.every); !at.After(now); at = at.Add(f.every) {
		published := at
		if f.undated {
			published = now.Truncate(time.Second)
		}
		id := now.UnixMicro() + int64(len(f.entries))
		f.entries = append(f.entries, freshEntry{fakeEntry{id, published, now}, at})
	}
	f.checked = now
}

// page returns the entries that are asked for.
func (f *fakeFresh) page(template any, q *http.Request) []any {
	n, _ := strconv.Atoi(q.FormValue("n"))
	since, _ := strconv.ParseInt(q.FormValue("ot"), 10, 64)
	all := []any{}
	for _, e := range f.entries {
		if e.id >= since*1e6 {
			all = append(all, with(template, map[string]any{
				"timestampUsec": fmt.Sprint(e.id), "published": e.published.Unix(),
				"title": fmt.Sprint("Q ＆ A ", e.appeared.Unix()),
			}))
		}
	}
	if q.FormValue("r") != "o" {
		return all[max(0, len(all)-n):]
	}
	return all[:min(n, len(all))]
}

// TestFreshRSS: a FreshRSS fetches its feeds when it is asked to; what it found is found here once,
// an entry that has the date of its fetch has none, and a feed that is muted is no feed.
func TestFreshRSS(t *testing.T) {
	feeds := []*fakeFresh{
		{every: time.Hour}, {every: 5 * time.Hour}, {every: time.Hour, undated: true}, {every: time.Hour, muted: true},
	}
	for k, f := range feeds {
		f.url = fmt.Sprintf("http://f%d.test/feed?a=1&b=2", k)
	}
	m := newFakeFreshRSS(t, feeds...)
	l := newLife(t, m.Server, 30)
	l.Reader = NewFreshRSS(m.URL, "alice", "token", "apisecret")
	m.now = func() time.Time { return l.Begin }
	s := l.open(discard{})
	defer s.Close()
	m.now = func() time.Time { return s.now }
	s.pass(30 * time.Hour)
	for k, f := range feeds {
		r := s.feeds[f.url]
		if f.muted {
			if r != nil || len(f.entries) > 0 {
				t.Errorf("a muted feed is asked for: %+v", r)
			}
			continue
		}
		asked := 0
		for _, id := range m.refresh {
			if id == k+1 {
				asked++
			}
		}
		dated := r.Hours != [7][24]int{}
		if asked < 5 || r.Items != len(f.entries) || r.Items < 10 || dated == f.undated || r.Failures > 0 {
			t.Errorf("feed %d: asked for %d times, %d items of %d: %+v", k+1, asked, r.Items, len(f.entries), r)
		}
	}
	items, _ := s.follow(t, "/items.json?category=News+%26+more")
	if len(items) != s.stats.Items || !strings.HasPrefix(items[0].Title, "Q & A ") ||
		s.feeds[feeds[0].url].Title != "Feed & 1" {
		t.Errorf("%d items of %d are given: %+v", len(items), s.stats.Items, items[0])
	}
}

// TestFreshRSSWithoutFeeds: to whom has not subscribed yet, or has muted all feeds, FreshRSS gives a list without any.
func TestFreshRSSWithoutFeeds(t *testing.T) {
	m := newFakeFreshRSS(t)
	r := NewFreshRSS(m.URL, "alice", "token", "apisecret")
	for range 2 {
		if feeds, left, err := r.Feeds(t.Context()); len(feeds)+len(left) > 0 || err != nil {
			t.Errorf("%v, %v, %v; want neither a feed nor an error", feeds, left, err)
		}
		m.mu.Lock()
		m.feeds = []*fakeFresh{{url: "http://f1.test/feed", muted: true}}
		m.mu.Unlock()
	}
}

// TestFreshRSSAnew: a feed that is subscribed anew, whose entries then have other numbers, goes on where it was: each
// is found once, with a date or without, and so is what its publisher added meanwhile.
func TestFreshRSSAnew(t *testing.T) {
	dated := &fakeFresh{url: "http://f1.test/feed", every: time.Hour}
	undated := &fakeFresh{url: "http://f2.test/feed", every: time.Hour, undated: true}
	m := newFakeFreshRSS(t, dated, undated, &fakeFresh{url: "http://f3.test/feed", every: time.Hour})
	l := newLife(t, m.Server, 30)
	l.Reader = NewFreshRSS(m.URL, "alice", "token", "apisecret")
	m.now = func() time.Time { return l.Begin }
	s := l.open(discard{})
	defer s.Close()
	m.now = func() time.Time { return s.now }
	begin := s.now
	s.pass(10*time.Hour + 30*time.Minute)
	for _, f := range []*fakeFresh{dated, undated} {
		f.muted, f.entries, f.checked = true, nil, time.Time{}
	}
	s.pass(2 * time.Hour)
	if r := s.feeds[dated.url]; r.listed {
		t.Errorf("%+v", r)
	}
	dated.muted, undated.muted = false, false
	s.pass(2 * time.Hour)
	for _, f := range []*fakeFresh{dated, undated} {
		want := 10 + int(s.now.Add(-time.Minute).Sub(begin)/time.Hour)
		if r := s.feeds[f.url]; len(f.entries) < 10 || r.Items < want-1 || r.Items > want {
			t.Errorf("%s: %d items of %d", f.url, r.Items, want)
		}
	}
}

// TestFreshRSSRefuses: what is wrong with the reader is said, and a password that is set anew is
// taken up.
func TestFreshRSSRefuses(t *testing.T) {
	m := newFakeFreshRSS(t, &fakeFresh{url: "http://f.test/feed", every: time.Hour})
	m.now = time.Now
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "<title>Sign in</title>")
	}))
	defer other.Close()
	for _, tt := range []struct{ name, address, token, password, want string }{
		{"address", "http://127.0.0.1:1", "token", "apisecret", "does not answer"},
		{"other page", other.URL, "token", "apisecret", `is not FreshRSS: its API answers "<title>Sign in</title>"`},
		{"password", m.URL, "token", "wrong", "refuses the API password of alice"},
		{"token", m.URL, "wrong", "apisecret", "needed is the authentication token of alice's profile"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := NewFreshRSS(tt.address, "alice", tt.token, tt.password).Feeds(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Error(err)
			}
		})
	}
	r := NewFreshRSS(m.URL, "alice", "token", "apisecret")
	r.auth = "alice/old"
	must2(r.Feeds(t.Context()))
	place := feed.Place{URL: "http://f.test/feed"}
	check(r.Refresh(t.Context(), place))
	if l := r.Entries(t.Context(), place); l.Outcome != feed.Found || len(l.Feed.Items) != 10 {
		t.Errorf("%+v", l)
	}
}
