package crawl

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestHubRounds: a feed that names another hub at each look, or none at some, has the crawler
// ask one a day.
func TestHubRounds(t *testing.T) {
	var posts []string
	looks := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			posts = append(posts, r.Host+r.URL.String())
		case r.URL.Path == "/feed":
			looks++
			w.Header().Set("ETag", fmt.Sprint(looks))
			if looks%3 > 0 {
				w.Header().Set("Link", fmt.Sprintf(`<http://victim%d.test/admin/delete?id=5>; rel="hub"`, looks))
			}
			fmt.Fprintf(w, `<rss version="2.0"><channel><item><guid>%d</guid></item></channel></rss>`, looks)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	l := newLife(t, server, 60, "http://a.test/feed")
	s := l.open(io.Discard)
	for range 12 { // with restarts between
		s.Crawler.opt.PublicURL = "https://me.example.org/"
		s.pass(6 * time.Hour)
		l.Begin = s.now
		check(s.Close())
		s = l.open(io.Discard)
	}
	check(s.Close())
	if looks < 30 || len(posts) == 0 || len(posts) > 3 {
		t.Errorf("%d looks in three days, %d requests to hubs: %v", looks, len(posts), posts)
	}
}

// fromHub returns a request by which the hub of a feed sends what is new.
func fromHub(of *record, text string) *http.Request {
	q := httptest.NewRequest("POST", "/websub/"+of.Push.Token, strings.NewReader(text))
	mac := hmac.New(sha256.New, []byte(of.Push.Secret))
	mac.Write([]byte(text))
	q.Header.Set("X-Hub-Signature", fmt.Sprintf("sha256=%x", mac.Sum(nil)))
	return q
}

// TestHubAndLooks: a feed whose hub sends items all the time is looked at once a day all the same, though others
// are worth more.
func TestHubAndLooks(t *testing.T) {
	const perHour, hubs = 2, "http://hub.test/feed"
	r := newReferee(t, perHour)
	looks := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.Host != "hub.test":
			r.ServeHTTP(w, q)
		case q.URL.Path == "/feed":
			looks++
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Link", `</>; rel="hub"`)
			io.WriteString(w, `<rss version="2.0"><channel/></rss>`)
		case q.URL.Path == "/robots.txt":
			http.NotFound(w, q)
		}
	}))
	defer server.Close()
	urls := []string{hubs}
	for k := range 30 {
		urls = append(urls, address(k*len(kinds)))
	}
	s := newLife(t, server, perHour, urls...).open(io.Discard)
	defer s.Close()
	s.Crawler.opt.PublicURL = "https://me.example.org/"
	s.pass(24 * time.Hour)
	of, first := s.feeds[hubs], looks
	for k := range 5 * 24 {
		path := "/websub/" + of.Push.Token
		confirmed := httptest.NewRequest("GET", path+"?hub.mode=subscribe&hub.lease_seconds=864000&hub.topic="+
			of.Push.Topic, nil)
		s.Handler().ServeHTTP(httptest.NewRecorder(), confirmed)
		item := fmt.Sprintf(`<rss version="2.0"><channel><item><guid>%d</guid></item></channel></rss>`, k)
		s.Handler().ServeHTTP(httptest.NewRecorder(), fromHub(of, item))
		s.pass(time.Hour)
	}
	if n := looks - first; of.Items != 5*24 || n < 3 || n > 5 {
		t.Errorf("%d items were sent, and it was looked at %d times in five days", of.Items, n)
	}
}

// TestHubLeavesOut: what a hub sends is no look at the feed. An item that it did not send before has the date that it
// says, and one without a date that of when it was sent.
func TestHubLeavesOut(t *testing.T) {
	item := func(id string, at time.Time) string {
		text := "<item><guid>" + id + "</guid><title>" + id + "</title>"
		if !at.IsZero() {
			text += "<pubDate>" + at.Format(time.RFC1123Z) + "</pubDate>"
		}
		return text + "</item>"
	}
	document := func(items string) string { return `<rss version="2.0"><channel>` + items + `</channel></rss>` }
	shown := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/feed":
			w.Header().Set("ETag", fmt.Sprintf("%q", shown))
			w.Header().Set("Link", `</>; rel="hub"`)
			io.WriteString(w, document(shown))
		case "/robots.txt":
			http.NotFound(w, q)
		}
	}))
	defer server.Close()
	s := newLife(t, server, 60, "http://a.test/feed").open(io.Discard)
	defer s.Close()
	s.Crawler.opt.PublicURL = "https://me.example.org/"
	s.pass(2 * time.Minute)
	of := s.feeds["http://a.test/feed"]
	looked, left := of.Last, s.now.Add(3*time.Minute)
	s.now = s.now.Add(10 * time.Minute)
	s.Handler().ServeHTTP(httptest.NewRecorder(), fromHub(of, document(item("sent", time.Time{}))))
	at := s.now
	if last := of.Looked(); !last.Equal(looked) {
		t.Errorf("it was looked at last at %v, the page says %v", looked, last)
	}
	shown = item("left", left) + item("sent", time.Time{})
	s.pass(2 * time.Hour)
	page := must(s.view("http://a.test/feed").Of())
	if len(page) != 2 || !page[0].Published.Equal(left.Truncate(time.Second)) {
		t.Errorf("%+v; want two items, the last of %v", page, left)
	}
	check(s.journal(0, func(e *entry) bool {
		if e.Outcome == pushed && e.undated().Sub(at).Abs() > time.Second {
			t.Errorf("what was sent at %v is dated %v", at, e.undated())
		}
		return true
	}))
}

// TestHubWithoutEnd: a hub that sends new items without an end is answered once a minute for a
// feed, in the mean, and so is one that changes its mind about the subscription.
func TestHubWithoutEnd(t *testing.T) {
	r := newReferee(t, 30)
	s := simulate(t, r.Server, address(27))
	s.Crawler.opt.PublicURL = "https://me.example.org/"
	s.pass(10 * time.Minute)
	of := s.feeds[address(27)]
	begin := s.stats.Items
	sent := func(n int) (taken int) {
		for k := range n {
			w, path := httptest.NewRecorder(), "/websub/"+of.Push.Token
			q := httptest.NewRequest("GET", path+"?hub.mode=denied&hub.topic="+of.Push.Topic, nil)
			if k%2 == 0 {
				item := fmt.Sprintf(`<rss version="2.0"><channel><item><guid>%v %d</guid></item></channel></rss>`,
					s.now, k)
				q = fromHub(of, item)
			}
			s.Handler().ServeHTTP(w, q)
			if wait := w.Header().Get("Retry-After"); (w.Code == http.StatusOK) == (wait == "60") {
				t.Fatal(w.Code, w.Header())
			}
			if w.Code == http.StatusOK {
				taken++
			}
		}
		return taken
	}
	for _, tt := range []struct {
		name  string
		after time.Duration
		want  int
	}{
		{"at once", 0, hubAhead},
		{"a minute later", hubEvery, 1},
		{"an hour later", time.Hour, hubAhead},
		{"the clock set back", -1000 * time.Hour, hubAhead},
	} {
		s.now = s.now.Add(tt.after)
		s.clock() // takes up where the clock is
		if got := sent(50); got != tt.want {
			t.Errorf("%s: %d of 50 requests are answered; want %d", tt.name, got, tt.want)
		}
	}
	if got := s.stats.Items - begin; got < hubAhead || got > 3*hubAhead/2+1 {
		t.Errorf("%d items are taken", got)
	}
}

// TestHubBodies: what comes without the token of a subscription is not read, what comes with
// it is read up to a size and a time, by one at a time; the page answers meanwhile.
func TestHubBodies(t *testing.T) {
	r := newReferee(t, 30)
	s := simulate(t, r.Server, address(27))
	s.Crawler.opt.PublicURL = "https://me.example.org/"
	s.pass(10 * time.Minute)
	token := s.feeds[address(27)].Push.Token
	page := httptest.NewServer(s.Handler())
	defer page.Close()
	// post returns the status of an answer to the begin of a request, after how long.
	post := func(token string, length, sent int) (status int, took time.Duration) {
		begin := time.Now()
		c, err := net.Dial("tcp", page.Listener.Addr().String())
		check(err)
		defer c.Close()
		c.SetDeadline(begin.Add(time.Minute))
		go fmt.Fprintf(c, "POST /websub/%s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s",
			token, length, strings.Repeat("x", sent))
		fmt.Fscanf(c, "HTTP/1.1 %d", &status)
		return status, time.Since(begin)
	}
	if status, took := post("unknown", 100<<20, 1<<10); status != http.StatusGone || took > 5*time.Second {
		t.Errorf("without a token: %d after %v", status, took)
	}
	if status, _ := post(token, maxPush+1, maxPush+1); status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: %d", status)
	}
	if status, _ := post(token, 10, 10); status != http.StatusOK { // and ignored, as it is not signed
		t.Errorf("not signed: %d", status)
	}
	if testing.Short() {
		return // the rest takes ten seconds
	}
	slow := make(chan int)
	go func() {
		status, _ := post(token, 10, 5)
		slow <- status
	}()
	time.Sleep(time.Second)
	if status, took := post(token, 10, 10); status != http.StatusServiceUnavailable || took > 5*time.Second {
		t.Errorf("while another is read: %d after %v", status, took)
	}
	begin := time.Now()
	res := must(http.Get(page.URL))
	res.Body.Close()
	if took := time.Since(begin); res.StatusCode != http.StatusOK || took > 5*time.Second {
		t.Errorf("the page answers %s after %v", res.Status, took)
	}
	if status := <-slow; status != http.StatusRequestTimeout {
		t.Errorf("slow: %d", status)
	}
	if res := must(http.Get(page.URL + "/websub/" + token)); res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", res.Header)
	}
}
