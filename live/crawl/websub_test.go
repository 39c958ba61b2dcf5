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
		sent := httptest.NewRequest("POST", path, strings.NewReader(item))
		mac := hmac.New(sha256.New, []byte(of.Push.Secret))
		mac.Write([]byte(item))
		sent.Header.Set("X-Hub-Signature", fmt.Sprintf("sha256=%x", mac.Sum(nil)))
		s.Handler().ServeHTTP(httptest.NewRecorder(), sent)
		s.pass(time.Hour)
	}
	if n := looks - first; of.Items != 5*24 || n < 3 || n > 5 {
		t.Errorf("%d items were sent, and it was looked at %d times in five days", of.Items, n)
	}
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
				q = httptest.NewRequest("POST", path, strings.NewReader(item))
				mac := hmac.New(sha256.New, []byte(of.Push.Secret))
				mac.Write([]byte(item))
				q.Header.Set("X-Hub-Signature", fmt.Sprintf("sha256=%x", mac.Sum(nil)))
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
