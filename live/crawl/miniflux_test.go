package crawl

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ephemera/live/feed"
)

var update = flag.Bool("update", false, "with .ci/miniflux: write down what a real Miniflux answers")

const answersFile = "testdata/miniflux.json"

// answer is one that a real Miniflux has given.
type answer struct {
	Status int
	Body   json.RawMessage `json:",omitempty"`
}

// fakeMiniflux answers as a real Miniflux did: with other feeds, entries and times in its answers.
type fakeMiniflux struct {
	*httptest.Server
	answers map[string]answer

	mu      sync.Mutex
	now     func() time.Time
	feeds   map[int64]*fakeFeed
	entries int64
	less    int64                     // is the number of each entry than its name
	broken  bool                      // it does not answer
	instead func(http.ResponseWriter) // answers for it; nil for nobody
	refresh []int64
}

type fakeFeed struct {
	url      string
	every    time.Duration // between its entries
	fails    bool
	refused  bool          // by a proxy, each refresh
	wait     time.Duration // that its publisher asks for
	checked  time.Time
	answered time.Time // the last time that it did not fail
	disabled bool
	category *string // All if it is nil
	entries  []fakeEntry
}

type fakeEntry struct {
	id        int64
	published time.Time
	found     time.Time
}

func newFakeMiniflux(t *testing.T) *fakeMiniflux {
	m := &fakeMiniflux{feeds: map[int64]*fakeFeed{}}
	check(json.Unmarshal(must(os.ReadFile(answersFile)), &m.answers))
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// with returns an object of an answer with other values.
func with(object any, values map[string]any) map[string]any {
	all := maps.Clone(object.(map[string]any))
	for name, v := range values {
		if _, is := all[name]; !is {
			panic("Miniflux has not answered " + name)
		}
		all[name] = v
	}
	return all
}

func (m *fakeMiniflux) give(w http.ResponseWriter, name string, change func(any) any) {
	a := m.answers[name]
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.Status)
	if len(a.Body) == 0 {
		return
	}
	var body any
	check(json.Unmarshal(a.Body, &body))
	if change != nil {
		body = change(body)
	}
	w.Write(must(json.Marshal(body)))
}

func (m *fakeMiniflux) feed(template any, id int64) any {
	f := m.feeds[id]
	values := map[string]any{
		"id": id, "feed_url": f.url, "title": fmt.Sprint("Feed ", id),
		"checked_at": f.checked, "next_check_at": f.checked.Add(max(f.wait, time.Minute)),
		"disabled": f.disabled,
	}
	if f.answered.IsZero() && !f.fails {
		values["next_check_at"] = f.checked // as it was imported
	}
	if f.category != nil {
		values["category"] = map[string]any{"id": 2, "title": *f.category}
	}
	if !f.fails {
		values["parsing_error_count"], values["parsing_error_message"] = 0, ""
	}
	return with(template, values)
}

func (m *fakeMiniflux) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	part := append(strings.Split(strings.TrimPrefix(q.URL.Path, "/v1/feeds"), "/"), "", "", "")
	id, _ := strconv.ParseInt(part[1], 10, 64)
	f := m.feeds[id]
	switch {
	case strings.HasPrefix(q.URL.Path, "/clock/"): // of a publisher
	case m.broken:
		panic(http.ErrAbortHandler)
	case m.instead != nil:
		m.instead(w)
	case q.Header.Get("X-Auth-Token") != "token":
		m.give(w, "no token", nil)
	case id == 0:
		m.give(w, "feeds", func(body any) any {
			all := []any{}
			for _, id := range slices.Sorted(maps.Keys(m.feeds)) {
				all = append(all, m.feed(body.([]any)[0], id))
			}
			return all
		})
	case f == nil:
		m.give(w, "no feed", nil)
	case q.Method == http.MethodPut:
		m.refresh = append(m.refresh, id)
		if f.refused {
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
		m.fetch(f)
		m.give(w, map[bool]string{true: "failing refresh", false: "refresh"}[f.fails], nil)
	case part[2] == "entries":
		m.give(w, "entries", func(body any) any {
			template := body.(map[string]any)["entries"].([]any)[0]
			all := []any{}
			for _, e := range f.after(q.URL.Query(), m.less) {
				all = append(all, with(template, map[string]any{
					"id": e.id - m.less, "feed_id": id,
					"hash": fmt.Sprintf("%016x%048x", e.id, 0), "published_at": e.published,
					"created_at": e.found, "title": fmt.Sprint("Entry ", e.id),
				}))
			}
			return with(body, map[string]any{"entries": all, "total": len(f.entries)})
		})
	default:
		name := "feed"
		if f.fails {
			name = "failing feed"
		}
		m.give(w, name, func(body any) any { return m.feed(body, id) })
	}
}

// fetch has the feed be fetched.
func (m *fakeMiniflux) fetch(f *fakeFeed) {
	now := m.now()
	since := f.answered
	if since.IsZero() { // it shows ten
		since = now.Add(-10 * f.every)
	}
	for at := now.Truncate(f.every); !f.fails && at.After(since); at = at.Add(-f.every) {
		m.entries++
		f.entries = append(f.entries, fakeEntry{m.entries, at, now})
	}
	if f.checked = now; !f.fails {
		f.answered = now
	}
}

// after returns the entries that are asked for.
func (f *fakeFeed) after(q url.Values, less int64) (entries []fakeEntry) {
	limit, _ := strconv.Atoi(q.Get("limit"))
	after, _ := strconv.ParseInt(q.Get("after_entry_id"), 10, 64)
	for _, e := range f.entries {
		if e.id-less > after {
			entries = append(entries, e)
		}
	}
	if q.Get("direction") == "desc" {
		slices.Reverse(entries)
	}
	return entries[:min(limit, len(entries))]
}

// steer returns a crawler that steers a reader.
func steer(t *testing.T, m *fakeMiniflux) *sim {
	l := newLife(t, m.Server, 30)
	l.Miniflux, l.Token = m.URL, "token"
	m.now = func() time.Time { return l.Begin }
	s := l.open(discard{})
	m.mu.Lock()
	m.now = func() time.Time { return s.now }
	m.mu.Unlock()
	t.Cleanup(func() { s.Close() })
	return s
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestMiniflux: a reader fetches its feeds when it is asked to; what it found is found here once,
// what it says of waits and failures is taken up, and the list is that of the reader.
func TestMiniflux(t *testing.T) {
	m := newFakeMiniflux(t)
	at := func(k int64) string { return fmt.Sprintf("http://f%d.test/feed", k) }
	m.feeds = map[int64]*fakeFeed{
		1: {every: time.Hour},
		2: {every: 5 * time.Hour},
		3: {every: time.Hour, fails: true},
		4: {every: time.Hour, wait: 3 * time.Hour},
		5: {every: time.Hour, disabled: true},
		6: {every: time.Minute},
	}
	for id, f := range m.feeds {
		f.url = at(id)
	}
	s := steer(t, m).pass(30 * time.Hour)
	asked := map[int64]int{}
	for _, id := range m.refresh {
		asked[id]++
	}
	for id, f := range m.feeds {
		if asked[id] == 0 != f.disabled {
			t.Errorf("feed %d was refreshed %d times", id, asked[id])
		}
		if f.disabled {
			continue
		}
		r := s.feeds[at(id)]
		known := 0
		for _, e := range f.entries {
			if e.id <= r.Place.After {
				known++
			}
		}
		if r.Items != known || r.Missed > 0 || known != len(f.entries) || !f.fails && known < 10 {
			t.Errorf("feed %d: %d items of %d: %+v", id, r.Items, len(f.entries), r)
		}
	}
	if r := s.feeds[at(3)]; r.Failures < 3 || r.Error == "" || asked[3] > 10 {
		t.Errorf("the feed that fails was refreshed %d times: %+v", asked[3], r)
	}
	if asked[4] > 11 || asked[4] < 8 || asked[1] < 15 || len(m.refresh) > 31*30 {
		t.Errorf("the feeds were refreshed %v times; the fourth asks for three hours", asked)
	}
	items, _ := s.follow(t, "/items.json?category=All")
	if len(items) != s.stats.Items || items[0].Title == "" {
		t.Errorf("%d items of %d are given", len(items), s.stats.Items)
	}
	m.mu.Lock()
	delete(m.feeds, 1)
	m.feeds[7] = &fakeFeed{url: at(7), every: time.Hour}
	m.feeds[5].disabled = false
	m.mu.Unlock()
	s.pass(2 * time.Hour)
	if s.feeds[at(1)].listed || s.feeds[at(7)] == nil || s.feeds[at(7)].Items == 0 || s.feeds[at(5)].Items == 0 {
		t.Error("the list is not that of the reader")
	}
}

// TestMinifluxAway: while a reader does not answer, its feeds have not failed; what it is asked for
// then is asked again, and nothing is found twice.
func TestMinifluxAway(t *testing.T) {
	m := newFakeMiniflux(t)
	m.feeds[1] = &fakeFeed{url: "http://f.test/feed", every: time.Hour}
	s := steer(t, m).pass(3 * time.Hour)
	r := s.feeds["http://f.test/feed"]
	set := func(instead func(http.ResponseWriter)) {
		m.mu.Lock()
		m.instead = instead
		m.mu.Unlock()
	}
	for _, tt := range []struct {
		want    string
		instead func(http.ResponseWriter)
	}{
		{"does not answer", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
		{"answers 502: Bad Gateway", func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }},
		{"answers 500: no database", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, `{"error_message": "no database"}`)
		}},
	} {
		before := r.Items
		set(tt.instead)
		s.pass(time.Hour)
		page := s.get("/").Body.String()
		if r.Failures > 0 || r.Items != before || s.away == nil || !strings.Contains(page, tt.want) {
			t.Errorf("%s: %+v, %v", tt.want, r, s.away)
		}
		set(nil)
		s.pass(2 * time.Hour)
		page = s.get("/").Body.String()
		if r.Items != len(m.feeds[1].entries) || r.Items < before+2 || s.away != nil ||
			strings.Contains(page, tt.want) {
			t.Errorf("%s: %d items, of %d, %d before: %v", tt.want, r.Items, len(m.feeds[1].entries), before, s.away)
		}
	}
}

// TestMinifluxLater: a reader that does not answer yet when the crawler starts is waited for, and its feeds go on
// from what is known of them; one that refuses the token ends the crawler. While its list is not given, none of its
// feeds is asked for.
func TestMinifluxLater(t *testing.T) {
	m := newFakeMiniflux(t)
	m.feeds[1] = &fakeFeed{url: "http://f.test/feed", every: time.Hour}
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() && r.URL.Path == "/v1/feeds" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		m.ServeHTTP(w, r)
	}))
	defer server.Close()
	l := newLife(t, m.Server, 30)
	l.Reader = NewMiniflux(server.URL, "token")
	now := func(s *sim) {
		m.mu.Lock()
		m.now = func() time.Time { return s.now }
		m.mu.Unlock()
	}
	s := l.open(discard{})
	now(s)
	s.pass(3 * time.Hour)
	r, asked := s.feeds["http://f.test/feed"], len(m.refresh)
	items, failures := r.Items, r.Failures
	check(s.Close())

	l.Begin = s.now.Add(2 * time.Hour)
	down.Store(true)
	s = l.open(discard{})
	if page := s.get("/").Body.String(); !strings.Contains(page, "Miniflux has not given its list of feeds yet") {
		t.Error(page)
	}
	defer func() { s.Close() }()
	now(s)
	for range 60 {
		if _, err := s.Tick(); err != nil && !strings.Contains(err.Error(), "answers 502: Bad Gateway") {
			t.Error(err)
		}
		s.Wait()
		s.now = s.now.Add(time.Minute)
	}
	if page := s.get("/").Body.String(); len(m.refresh) > asked || !strings.Contains(page, "answers 502: Bad Gateway") {
		t.Errorf("%d refreshes, before %d; %s", len(m.refresh), asked, page)
	}
	down.Store(false)
	s.pass(2 * time.Hour)
	r = s.feeds["http://f.test/feed"]
	if r.Items != len(m.feeds[1].entries) || r.Items <= items || r.Failures > failures {
		t.Errorf("%+v, of %d entries", r, len(m.feeds[1].entries))
	}
	down.Store(true)
	asked = len(m.refresh)
	if s.pass(2 * time.Hour); len(m.refresh) > asked || s.away == nil {
		t.Errorf("without the list it is asked for %d feeds", len(m.refresh)-asked)
	}

	l = newLife(t, m.Server, 30)
	l.Reader = NewMiniflux(server.URL, "wrong")
	down.Store(false)
	other := l.open(discard{})
	defer other.Close()
	defer time.AfterFunc(10*time.Second, other.end).Stop()
	if err := other.Run(); err == nil || !strings.Contains(err.Error(), "refuses the token") {
		t.Errorf("it goes on with a wrong token: %v", err)
	}
}

// TestMinifluxRefused: a feed whose refreshes alone are answered with an error fails, and takes no
// requests from others.
func TestMinifluxRefused(t *testing.T) {
	m := newFakeMiniflux(t)
	for id := range int64(4) {
		m.feeds[id+1] = &fakeFeed{url: fmt.Sprintf("http://f%d.test/feed", id+1), every: time.Hour, refused: id == 0}
	}
	s := steer(t, m).pass(10 * time.Hour)
	asked := map[int64]int{}
	for _, id := range m.refresh {
		asked[id]++
	}
	if asked[1] < 3 || asked[1] > 6 || asked[2] < 8 || s.away != nil {
		t.Errorf("the feeds were refreshed %v times; the first fails: %v", asked, s.away)
	}
	page := s.get("/").Body.String()
	if r := s.feeds["http://f1.test/feed"]; r.Failures < 3 || !strings.Contains(page, "answers 504: Gateway Timeout") {
		t.Errorf("%+v is not on the page", r)
	}
}

// TestMinifluxAnew: a Miniflux that numbers anew, as it has another database, or of which the last entries were
// removed, or to whose list a feed came back, gives each entry once, and a feed has the name that it has there.
func TestMinifluxAnew(t *testing.T) {
	m := newFakeMiniflux(t)
	m.entries = 1000
	f := &fakeFeed{url: "http://f.test/feed", every: time.Hour}
	quiet := &fakeFeed{url: "http://g.test", every: 9000 * time.Hour}
	m.feeds[1], m.feeds[2] = f, quiet
	s := steer(t, m).pass(5 * time.Hour)
	found := func(feeds ...*fakeFeed) { // anew, with what they show
		for _, f := range feeds {
			f.entries = slices.Clone(f.entries[len(f.entries)-10:])
			for k := range f.entries {
				f.entries[k].found = s.now
			}
		}
	}
	for _, tt := range []struct {
		name   string
		change func()
	}{
		{"another database", func() {
			m.less = 990
			found(f, quiet)
		}},
		{"the last entries are removed", func() { f.entries = f.entries[:len(f.entries)-3] }},
		{"it is not on the list", func() { delete(m.feeds, 1) }},
		{"it is on the list again", func() {
			m.feeds[3], m.less = f, -5000
			found(f)
		}},
		{"another name", func() {
			delete(m.feeds, 2)
			m.feeds[4] = quiet
		}},
	} {
		m.mu.Lock()
		tt.change()
		m.mu.Unlock()
		s.pass(5 * time.Hour)
		if got := int(m.entries) - 1000; s.stats.Items != got {
			t.Errorf("%s: %d items of %d", tt.name, s.stats.Items, got)
		}
	}
	if r := s.feeds[quiet.url]; r.Title != "Feed 4" || f.entries[len(f.entries)-1].id < 1030 {
		t.Errorf("%+v", r)
	}
}

// TestMinifluxUndated: an entry that has the date of the check has none.
func TestMinifluxUndated(t *testing.T) {
	m := newFakeMiniflux(t)
	checked := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	m.now = func() time.Time { return checked }
	m.feeds[1] = &fakeFeed{url: "http://f.test/feed", every: time.Hour}
	r := NewMiniflux(m.URL, "token")
	must2(r.Feeds(t.Context()))
	for k, published := range []time.Time{checked.Add(-time.Hour), checked, checked.Add(time.Second)} {
		m.feeds[1].entries = append(m.feeds[1].entries, fakeEntry{int64(k + 1), published, checked})
	}
	m.feeds[1].checked = checked
	res := r.Entries(t.Context(), feed.Place{URL: "http://f.test/feed"})
	if res.Outcome != feed.Found || len(res.Feed.Items) != 3 {
		t.Fatal(res)
	}
	for i, dated := range []bool{false, false, true} { // the last first
		if it := res.Feed.Items[i]; it.Published.IsZero() == dated {
			t.Errorf("%d: %v", it.ID, it.Published)
		}
	}
}

func must2(_ []Outline, _ []error, err error) { check(err) }

// TestMinifluxRefuses: what is wrong with the reader is said.
func TestMinifluxRefuses(t *testing.T) {
	m := newFakeMiniflux(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("<html>"))
	}))
	defer other.Close()
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	for _, tt := range []struct{ address, token, want string }{
		{m.URL, "wrong", "refuses the token; needed is that of an API key"}, {other.URL, "token", "is not Miniflux"},
		{"http://127.0.0.1:1", "token", "does not answer"},
		{none.URL, "token", "needed is the address of Miniflux itself, with its path if it has one"},
	} {
		_, _, err := NewMiniflux(tt.address, tt.token).Feeds(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
