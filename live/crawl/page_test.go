package crawl

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// TestPageHides: names and passwords of addresses stand neither on a page nor in what is
// exported or planned, and what a feed shows does not lead back with them.
func TestPageHides(t *testing.T) {
	r := newReferee(t, 30)
	with := func(k int) string { return strings.Replace(address(k), "http://", "http://user:secret@", 1) }
	s := simulate(t, r.Server, with(0), with(6), with(12), with(3))
	// One that fails is called by its address, as Miniflux has it.
	list := opml(with(0), with(6), with(12), with(3), with(8)+`" text="`+with(8))
	check(os.WriteFile(s.OPML, []byte(list), 0o644))
	s.pass(30 * time.Hour)
	var said bytes.Buffer
	must(s.Plan(&said, 24*time.Hour))
	log := filepath.Join(t.TempDir(), "log.csv")
	if rows := must(s.Export(log)); rows == 0 {
		t.Fatal("nothing was found")
	}
	said.Write(must(os.ReadFile(log)))
	pages := map[string]string{}
	get := func(path string) string {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		said.Write(w.Body.Bytes())
		pages[path] = w.Body.String()
		return w.Body.String()
	}
	list = get("/")
	for _, path := range []string{"/items.json", "/items.atom", "/opml"} {
		said.WriteString(s.get(path).Body.String())
	}
	for link := range strings.SplitSeq(list, `<a href="/?feed=`) {
		if link, _, _ := strings.Cut(link, `"`); strings.HasPrefix(link, "http") {
			one := get("/?feed=" + link)
			if !strings.Contains(one, "xxxxx@") || !strings.Contains(one, "When it published") {
				t.Errorf("no page of one feed is at %s: %.500s", link, one)
			}
		}
	}
	if len(pages) != 6 {
		t.Errorf("%d pages", len(pages))
	}
	for _, word := range []string{"secret", "user"} {
		if i := strings.Index(said.String(), word); i >= 0 {
			t.Errorf("%q is shown: …%.100s", word, said.String()[max(0, i-50):])
		}
	}
	if !strings.Contains(list, " 2026 ") || !strings.Contains(said.String(), "3 Mar 2026") {
		t.Error("times have no year")
	}
}

// TestNextLook: no next look lies in the past, whatever keeps the crawler from it.
func TestNextLook(t *testing.T) {
	r := newReferee(t, 6)
	var urls []string
	for k := range 60 {
		urls = append(urls, address(k))
	}
	s := newLife(t, r.Server, 6, urls...).open(io.Discard).pass(40 * time.Hour)
	defer s.Close()
	s.now = s.now.Add(3 * time.Hour) // in which it did not run
	v := s.view("")
	for _, r := range v.Feeds {
		if row := v.Row(r); !row.Due.IsZero() && row.Due.Before(v.Now) {
			t.Errorf("at %v the next look at %s is at %v: %s", v.Now, r.Name(), row.Due, row.Reason)
		}
	}
}

// TestNextLookOfOne: a feed that may be looked at before the learner plans again waits for no others: it is alone.
func TestNextLookOfOne(t *testing.T) {
	l := newLife(t, newReferee(t, 60).Server, 60, address(0))
	l.Shortest = time.Minute
	s := l.open(io.Discard)
	defer s.Close()
	planned := 0
	for range 60 {
		s.pass(time.Minute)
		row := s.view("").Row(s.feeds[address(0)])
		if strings.Contains(row.Reason, "others") {
			t.Errorf("at %v its next look is at %v: %s", s.now, row.Due, row.Reason)
		}
		if row.Reason == "looks are planned for 5m at a time" {
			planned++
			if wait := row.Due.Sub(s.now); wait < 0 || wait > 5*time.Minute {
				t.Errorf("at %v its next look is at %v", s.now, row.Due)
			}
		}
	}
	if planned == 0 {
		t.Error("it never waits for the next plan")
	}
}

// TestHealth: the page says what fails, since when and what to do, who holds a feed back, and what
// requests were for; and of a feed, why its next look is then.
func TestHealth(t *testing.T) {
	s := simulate(t, newReferee(t, 30).Server, address(0), address(8), address(21), address(28)).pass(10 * time.Hour)
	page := s.get("/").Body.String()
	for _, want := range []string{
		"Feeds that fail: 2", "it redirects in a circle", "look for its new one on its site",
		"its robots.txt does not allow it", "take it off the list, or ask the publisher",
		`data-is="worked last">never`,
		"held back by those who publish them: 1<",
		"its publisher asks to wait 365 days; obeyed are 24h, the longest interval",
		"brought that nothing has changed",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	at := func(text string) int { return strings.Index(page, text) }
	if health := at("<h2>Health"); health < 0 || health > at(">The plan") || at(">The plan") > at("<h2>Found") {
		t.Error("health does not come first, then the plan, then items")
	}
	if page := s.get("/?feed=" + address(28)).Body.String(); !strings.Contains(page, ": its publisher asks to wait.") {
		t.Error("a feed's page does not say why its next look is then")
	}
}

// TestAdvice: what is advised fits the whole reason of a failure, not a word of it.
func TestAdvice(t *testing.T) {
	const wait = ""
	for _, tt := range []struct {
		reason, want string
	}{
		{"its robots.txt does not allow it", "its publisher does not want it to be asked for"},
		{"robots.txt: connection refused", wait},
		{"its robots.txt cannot be read: 503 Service Unavailable", wait},
		{"robots.txt: no such host", "its site has no address any more"},
		{"its server says that it is gone", "it is gone for good"},
		{"for now it redirects to an address that is gone", wait},
		{`it redirects to "ftp://a.test/"; allowed is an address with http or https`, "its address leads to no feed"},
		{"more than 5 redirects", "its address leads in a circle"},
		{"it redirects in a circle", "its address leads in a circle"},
		{"it is neither RSS, nor Atom, nor a JSON feed", "its address shows no feed"},
		{"its certificate does not hold: certificate has expired or is not yet valid", "its certificate is not right"},
		{"its server answers 404 Not Found", "it is not there any more"},
		{"its server answers 500 Internal Server Error", wait},
	} {
		got := (&record{Error: tt.reason}).Advice()
		if !strings.HasPrefix(got, tt.want) || got != wait && tt.want == wait {
			t.Errorf("%q: the advice is %q, want %q", tt.reason, got, tt.want)
		}
	}
}

// TestHeldHost: where a server asks to wait, the feeds of its host are one row with a name each.
func TestHeldHost(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "busy.test" {
			w.Header().Set("Retry-After", "100000")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Cache-Control", "max-age=40000")
		io.WriteString(w, `<rss version="2.0"><channel><title>Waits</title></channel></rss>`)
	}))
	defer server.Close()
	urls := []string{"http://calm.test/1", "http://calm.test/2"}
	for k := range 4 {
		urls = append(urls, fmt.Sprintf("http://busy.test/%d", k))
	}
	s := simulate(t, server, urls...).pass(3 * time.Hour)
	page := s.get("/").Body.String()
	_, table, _ := strings.Cut(page, `<table id="held"`)
	table, _, _ = strings.Cut(table, "</table>")
	if rows := strings.Count(table, "<tr>") - 1; rows != 3 || strings.Count(table, `<a href="/?feed=`) != 6 {
		t.Errorf("%d rows, want 3 with 6 feeds:\n%s", rows, table)
	}
	for _, want := range []string{"held back by those who publish them: 6<", "and 3 more of busy.test"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestBodyOfPage: a request for the page whose body does not come holds up neither the page nor the crawler.
func TestBodyOfPage(t *testing.T) {
	s := newLife(t, newReferee(t, 30).Server, 30, address(0)).open(io.Discard)
	defer s.Close()
	body, end := io.Pipe()
	defer end.Close()
	asked := httptest.NewRequest("GET", "/", body)
	asked.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	done := make(chan struct{})
	go func() {
		s.Handler().ServeHTTP(httptest.NewRecorder(), asked)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("the page waits for the body")
	}
}

// TestZone: times are those of the zone that somebody names, and names once.
func TestZone(t *testing.T) {
	s := simulate(t, newReferee(t, 30).Server, address(0)).pass(30 * time.Hour)
	h := s.Handler()
	get := func(path string, with *http.Cookie) (page string, given []*http.Cookie) {
		w, q := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		if with != nil {
			q.AddCookie(with)
		}
		h.ServeHTTP(w, q)
		return w.Body.String(), w.Result().Cookies()
	}
	named, given := get("/?zone=Asia/Tokyo", nil)
	if len(given) != 1 {
		t.Fatal(given)
	}
	later, _ := get("/", given[0])
	one, _ := get("/?feed="+address(0), given[0])
	wrong, none := get("/?zone=Nowhere", given[0])
	for _, tt := range []struct{ name, page, want string }{
		{"a wrong one", wrong, "No zone is called so"},
		{"after a wrong one", wrong, "3 Mar 2026 15:01 JST"},
		{"as it is named", named, "3 Mar 2026 15:01 JST"},
		{"later", later, "3 Mar 2026 15:01 JST"},
		{"of a feed", one, "18 h JST"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(tt.page, tt.want) {
				t.Errorf("the page does not say %q", tt.want)
			}
		})
	}
	if len(none) > 0 {
		t.Errorf("a wrong zone is kept: %v", none)
	}
	// What was published at 20:00 UTC on a Monday is of 5:00 on a Tuesday.
	r := &record{}
	r.count(time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC))
	v := s.view("")
	if v.Where, _ = time.LoadLocation("Asia/Tokyo"); v.Week(r)[1][5] != 1 {
		t.Error(v.Week(r))
	}
}

// TestLastLooks: a feed's page has its last looks, however many others were looked at since, and they
// go with the clock.
func TestLastLooks(t *testing.T) {
	s := simulate(t, newReferee(t, 30).Server, address(0), address(8)).pass(30 * time.Hour)
	r := s.feeds[address(0)]
	if len(r.Looks) != shownLooks || !r.Looks[0].At.Equal(r.Last) {
		t.Fatalf("%+v, looked at last at %v", r.Looks, r.Last)
	}
	for i, l := range r.Looks[1:] {
		if !l.At.Before(r.Looks[i].At) {
			t.Errorf("%+v", r.Looks)
		}
	}
	page := s.get("/?feed=" + address(0)).Body.String()
	if !strings.Contains(page, "nothing new") || !strings.Contains(page, "2 new items") {
		t.Error("the page does not say what looks found")
	}
	if page := s.get("/?feed=" + address(8)).Body.String(); !strings.Contains(page, "<td>failed</td>") {
		t.Error("the page does not say which looks failed")
	}
	if plan := s.get("/").Body.String(); strings.Count(plan, `data-is="last look">2 Mar 2026 `)+
		strings.Count(plan, `data-is="last look">3 Mar 2026 `) != 2 {
		t.Error("the plan does not say when the feed that fails was looked at last")
	}
	before := r.Looks[3].At
	r.set(shift{by: time.Hour}, s.now)
	if !r.Looks[3].At.Equal(before.Add(time.Hour)) {
		t.Errorf("%v, and with the clock %v", before, r.Looks[3].At)
	}
}

// TestShown: names and passwords of addresses are covered, whatever is in them, and paths are not.
func TestShown(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"http://me:pass@h/feed", "http://xxxxx@h/feed"},
		{"http://token@h/feed", "http://xxxxx@h/feed"},
		{"http://me:pa/ss@h/feed", "http://xxxxx@h/feed"},
		{"http://me:pa#ss@h/feed", "http://xxxxx@h/feed"},
		{"http://me:1?2@h/feed", "http://xxxxx@h/feed"},
		{"http://me:pa@ss/word@h/feed", "http://xxxxx@h/feed"},
		{"http://me:pa/ss@h/@name and http://a:b@c", "http://xxxxx@h/@name and http://xxxxx@c"},
		{"http://h/@name.rss", "http://h/@name.rss"},
		{"http://h:8080/@name.rss", "http://h:8080/@name.rss"},
		{"http://h/a@b", "http://h/a@b"},
	} {
		if got := shown(tt.text); got != tt.want {
			t.Errorf("%s is shown as %s, want %s", tt.text, got, tt.want)
		}
	}
}

// TestDigits: a rate is written as people write it.
func TestDigits(t *testing.T) {
	for n, want := range map[float64]string{
		.01234: "0.0123", 2.934: "2.93", 12: "12", 999.4: "999", 999.6: "1000", 19234.5: "19234",
	} {
		if got := digitsOf(n); got != want {
			t.Errorf("%v is %s, want %s", n, got, want)
		}
	}
}

// TestToday: a day without a request has none.
func TestToday(t *testing.T) {
	s := simulate(t, newReferee(t, 30).Server, address(0)).pass(10 * time.Minute)
	for _, want := range []string{"today 1 request, ", "today 0 requests, 0 items"} {
		if page := s.get("/").Body.String(); !strings.Contains(page, want) {
			t.Errorf("%s is not on the page: %.2500s", want, page)
		}
		s.now = s.now.Add(24 * time.Hour)
	}
}

// TestMetrics: Prometheus has nothing to say against /metrics, and there is no delay while none is known.
func TestMetrics(t *testing.T) {
	r := newReferee(t, 60)
	s := newLife(t, r.Server, 60, address(0)).open(io.Discard)
	defer s.Close()
	for _, known := range []bool{false, true} {
		text := s.get("/metrics").Body.String()
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
		if strings.Contains(text, "crawl_delay_seconds{") != known {
			t.Errorf("that a delay is known is %v: %s", known, text)
		}
		s.pass(6 * time.Hour)
	}
}

// TestNextLookIsThen: where there are requests for all, the page says of nearly all looks when they are, to an epoch.
func TestNextLookIsThen(t *testing.T) {
	var urls []string
	for _, k := range []int{0, 1, 2, 3, 4, 5, 21, 28, 30, 33, 39, 40} {
		urls = append(urls, address(k))
	}
	for _, perHour := range []float64{60, 200} {
		s := newLife(t, newReferee(t, perHour).Server, perHour, urls...).open(io.Discard).pass(24 * time.Hour)
		epoch, _ := s.opt.epoch()
		said := map[*record]map[time.Time]string{} // of the looks that are to come: when, and why then
		right, wrong := 0, map[string]int{}
		for range 24 * 60 {
			before := map[*record]time.Time{}
			v := s.view("")
			for _, r := range v.Feeds {
				row := v.Row(r)
				if before[r] = r.Tried; said[r] == nil {
					said[r] = map[time.Time]string{}
				}
				said[r][row.Due] = row.Reason
			}
			s.pass(time.Minute)
			for _, r := range v.Feeds {
				if r.Tried.Equal(before[r]) {
					continue
				}
				for due, why := range said[r] {
					if due.Sub(r.Tried).Abs() <= epoch {
						right++
					} else {
						wrong[why]++
					}
				}
				said[r] = nil
			}
		}
		n := 0
		for _, k := range wrong {
			n += k
		}
		if right < 500 || 20*n > right {
			t.Errorf("%v an hour: %d times are right, and %d wrong: %v", perHour, right, n, wrong)
		}
		check(s.Close())
	}
}

// TestNextLookOfTooMany: where there are too few requests for all, the page says of each feed that is due how many
// come before it, and when it is looked at, to an epoch.
func TestNextLookOfTooMany(t *testing.T) {
	var urls []string
	for k := range 15 {
		urls = append(urls, address(k*len(kinds)))
	}
	s := newLife(t, newReferee(t, 1).Server, .5, urls...).open(io.Discard).pass(4 * 24 * time.Hour)
	defer s.Close()
	epoch, _ := s.opt.epoch()
	said, right := map[*record][]feedRow{}, 0
	for range 4 * 24 {
		before := map[*record]time.Time{}
		v := s.view("")
		for _, r := range v.Feeds {
			row := v.Row(r)
			if before[r] = r.Tried; strings.HasPrefix(row.Reason, "it is due, after ") {
				said[r] = append(said[r], row)
			}
		}
		s.pass(time.Hour)
		for _, r := range v.Feeds {
			if r.Tried.Equal(before[r]) {
				continue
			}
			for _, row := range said[r] {
				if row.Due.Sub(r.Tried).Abs() > epoch {
					t.Errorf("%s was looked at on %v; the page said %v: %s", r.Name(), r.Tried, row.Due, row.Reason)
				}
				right++
			}
			said[r] = nil
		}
	}
	if right < 100 {
		t.Errorf("%d times; want 100 at least", right)
	}
}

// TestPlanIsThen: the plan has the looks of the next hours when they are, to two minutes.
func TestPlanIsThen(t *testing.T) {
	var urls []string
	for _, k := range []int{0, 1, 2, 3, 4, 5, 26, 33, 40} {
		urls = append(urls, address(k))
	}
	s := newLife(t, newReferee(t, 60).Server, 60, urls...).open(io.Discard).pass(24*time.Hour + 3*time.Minute)
	defer s.Close()
	var plan bytes.Buffer
	planned := map[string][]time.Time{}
	must(s.Plan(&plan, 3*time.Hour))
	for line := range strings.Lines(plan.String()) {
		at, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		planned[name] = append(planned[name], must(time.ParseInLocation("Mon 2 Jan 2006 15:04", at, time.Local)))
	}
	begin := s.now
	s.pass(3 * time.Hour)
	right, wrong := 0, 0
	var not []string
	for _, r := range s.feeds {
		for _, l := range r.Looks {
			near := func(at time.Time) bool { return at.Sub(l.At).Abs() < 2*time.Minute }
			if l.At.Before(begin) {
				continue
			}
			if slices.ContainsFunc(planned[r.Name()], near) {
				right++
			} else {
				wrong++
				not = append(not, r.Name()+l.At.Local().Format(" 15:04:05"))
			}
		}
	}
	if right < 60 || wrong > 0 {
		t.Errorf("%d looks of 3 hours are planned, and %d are not, %v:\n%s", right, wrong, not, &plan)
	}
}
