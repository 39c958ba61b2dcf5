package feed

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// memory keeps what servers ask for.
type memory struct{ sync.Map }

func (m *memory) Value(name string) ([]byte, error) {
	v, _ := m.Load(name)
	kept, _ := v.([]byte)
	return kept, nil
}

func (m *memory) SetValue(name string, value []byte) error {
	m.Store(name, value)
	return nil
}

const example = `<?xml version="1.0"?><rss version="2.0"><channel><title>T</title><item><title>one</title><guid>1</guid></item></channel></rss>`

// serve returns a fetcher for which every host is a server with that handler.
func serve(t *testing.T, h http.HandlerFunc) *Fetcher {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	f := &Fetcher{
		Agent: "ephemera/1 (me@example.org)", Timeout: time.Minute, MaxBytes: 1 << 20, Memory: &memory{}, Now: time.Now,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		},
	}
	return f
}

// TestAnswers: what each kind of answer leads to.
func TestAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		path    string
		status  int
		header  string // name=value lines
		body    string
		outcome Outcome
		wait    time.Duration
		url     string // of the next fetch; "" for the same
		reason  string
	}{
		"found":             {status: 200, body: example, header: "ETag=W/\"x\"", outcome: Found},
		"max-age":           {status: 200, body: example, header: "Cache-Control=public, max-age=7200", outcome: Found, wait: 2 * time.Hour},
		"ttl":               {status: 200, body: strings.Replace(example, "<item>", "<ttl>90</ttl><item>", 1), outcome: Found, wait: 90 * time.Minute},
		"304 with max-age":  {status: 304, header: "Cache-Control=max-age=60", outcome: Unchanged, wait: time.Minute},
		"410":               {status: 410, outcome: Gone, reason: "gone"},
		"404":               {status: 404, outcome: Failed, reason: "404 Not Found"},
		"429":               {status: 429, header: "Retry-After=100", outcome: Failed, wait: 100 * time.Second},
		"503 with a date":   {status: 503, header: "Date=Sun, 06 Nov 1994 08:49:37 GMT\nRetry-After=Sun, 06 Nov 1994 09:49:37 GMT", outcome: Failed, wait: time.Hour},
		"far away":          {status: 429, header: "Retry-After=99999999999999999", outcome: Failed, wait: maxWait},
		"redirect":          {path: "/moved", status: 200, body: example, outcome: Found, url: "http://b.test/feed"},
		"redirect for once": {path: "/found", status: 200, body: example, outcome: Found},
		"moved to nothing":  {path: "/moved", status: 404, outcome: Failed, reason: "404"},
		"circle":            {path: "/circle", outcome: Failed, reason: "in a circle"},
		"chain":             {path: "/chain", outcome: Failed, reason: "redirects"},
		"other scheme":      {path: "/file", outcome: Failed, reason: "neither http nor https"},
		"disallowed":        {path: "/private/feed", outcome: Failed, reason: "robots.txt"},
		"a page":            {status: 200, body: "<!doctype html><p>hello", outcome: Failed, reason: "neither RSS"},
		"too large":         {path: "/endless", outcome: Failed, reason: "larger than 1 MB"},
		"gzip bomb":         {path: "/bomb", outcome: Failed, reason: "larger than 1 MB"},
		"slow":              {path: "/slow", outcome: Failed, reason: "no answer within"},
		"reset":             {path: "/reset", outcome: Failed, reason: "EOF"},
		"deep":              {status: 200, body: "<rss xmlns:a='u'><channel>" + strings.Repeat("<a:b>", 100_000), outcome: Failed, reason: "within each other"},
		"entities":          {status: 200, body: `<!DOCTYPE x [<!ENTITY a "` + strings.Repeat("z", 1000) + `"><!ENTITY b "` + strings.Repeat("&a;", 1000) + `">]>` + strings.Replace(example, "one", strings.Repeat("&b;", 1000), 1), outcome: Found},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := tt.path
			if path == "" {
				path = "/feed"
			}
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for _, h := range []string{"Cookie", "Referer"} {
					if r.Header.Get(h) != "" {
						t.Errorf("%s was sent", h)
					}
				}
				if r.Header.Get("User-Agent") == "" || r.URL.RawQuery != "" {
					t.Error("no User-Agent, or a query")
				}
				switch r.URL.Path {
				case "/robots.txt":
					io.WriteString(w, "User-agent: *\nDisallow: /private")
				case "/moved":
					w.Header().Set("Set-Cookie", "a=b")
					http.Redirect(w, r, "http://b.test/feed", http.StatusMovedPermanently)
				case "/found":
					http.Redirect(w, r, "http://b.test/feed", http.StatusFound)
				case "/circle":
					http.Redirect(w, r, "/circle", http.StatusFound)
				case "/file":
					http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
				case "/endless":
					for r.Context().Err() == nil {
						w.Write(make([]byte, 1<<16))
					}
				case "/bomb":
					w.Header().Set("Content-Encoding", "gzip")
					z := gzip.NewWriter(w)
					for range 100 {
						z.Write(make([]byte, 1<<20))
					}
					z.Close()
				case "/slow":
					io.WriteString(w, example[:20])
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				case "/reset":
					c, _, _ := http.NewResponseController(w).Hijack()
					c.Close()
				default:
					if n, ok := strings.CutPrefix(r.URL.Path, "/chain"); ok {
						http.Redirect(w, r, "/chain"+n+"x", http.StatusFound)
						return
					}
					for line := range strings.SplitSeq(tt.header, "\n") {
						k, v, _ := strings.Cut(line, "=")
						w.Header().Set(k, v)
					}
					w.WriteHeader(tt.status)
					io.WriteString(w, tt.body)
				}
			})
			from := "http://a.test" + path
			if tt.path == "/slow" {
				f.Timeout = time.Second
			}
			got := f.Fetch(context.Background(), Place{URL: from})
			if got.Outcome != tt.outcome || got.Wait != tt.wait {
				t.Errorf("%s after %v (%v), want %s after %v", got.Outcome, got.Wait, got.Err, tt.outcome, tt.wait)
			}
			if tt.url == "" {
				tt.url = from
			}
			if got.Place.URL != tt.url {
				t.Errorf("the next fetch is of %s", got.Place.URL)
			}
			if tt.reason != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), tt.reason)) {
				t.Errorf("reason %v, want %q", got.Err, tt.reason)
			}
		})
	}
}

// TestValidators: they go back as they came, to where they came from, and are
// replaced on every 200.
func TestValidators(t *testing.T) {
	etag := `W/"a ,b"`
	var sent []string
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			w.WriteHeader(404)
		case "/old":
			http.Redirect(w, r, "/feed", http.StatusFound)
			fallthrough
		default:
			sent = append(sent, r.URL.Path+" "+r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since"))
			if r.Header.Get("If-None-Match") == etag {
				w.Header().Set("ETag", "of a 304")
				w.WriteHeader(304)
			} else if r.URL.Path == "/feed" {
				w.Header().Set("ETag", etag)
				w.Header().Set("Last-Modified", "yesterday, about noon")
				io.WriteString(w, example)
			}
		}
	})
	p := Place{URL: "http://a.test/old"}
	for k, want := range []Outcome{Found, Unchanged, Found} {
		r := f.Fetch(context.Background(), p)
		if r.Outcome != want {
			t.Fatal(k, r.Outcome, r.Err)
		}
		if p = r.Place; k == 1 {
			etag = ""
		}
	}
	if want := "[/old  /feed  /old  /feed W/\"a ,b\"yesterday, about noon /old  /feed W/\"a ,b\"yesterday, about noon]"; fmt.Sprint(sent) != want {
		t.Errorf("sent %v", sent)
	}
	if p.ETag != "" || p.LastModified == "" {
		t.Errorf("kept %+v", p)
	}
}

// TestOneConnection: requests to a host wait for each other, and where hosts share
// a redirect too.
func TestOneConnection(t *testing.T) {
	var now, most atomic.Int32
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "shared.test" {
			http.Redirect(w, r, "http://shared.test/feed", http.StatusFound)
			return
		}
		n := now.Add(1)
		if n > most.Load() {
			most.Store(n)
		}
		time.Sleep(5 * time.Millisecond)
		now.Add(-1)
		io.WriteString(w, example)
	})
	var g sync.WaitGroup
	for k := range 10 {
		g.Go(func() { f.Fetch(context.Background(), Place{URL: fmt.Sprintf("http://h%d.test/feed", k)}) })
	}
	g.Wait()
	if most.Load() != 1 {
		t.Errorf("%d at once", most.Load())
	}
}

// TestPrivate: no name leads to an address of a private network.
func TestPrivate(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	f := &Fetcher{Timeout: time.Second, MaxBytes: 1 << 20, Memory: &memory{}, Now: time.Now}
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		if r := f.Fetch(context.Background(), Place{URL: "http://" + host + ":" + port + "/feed"}); r.Err == nil || r.Status != 0 {
			t.Errorf("%s: %v %d", host, r.Err, r.Status)
		}
	}
	for a, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "8.8.8.8": true,
		"10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"224.0.0.1": false, "255.255.255.255": false, "fe80::1": false, "fe80::1%eth0": false, "fd00::1": false, "::": false,
		"::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false,
	} {
		if public(netip.MustParseAddr(a)) != want {
			t.Errorf("%s: public is %v", a, !want)
		}
	}
}

// TestRobots holds rules of RFC 9309, with its examples of section 5.
func TestRobots(t *testing.T) {
	const own = "User-agent: ephemera\n"
	for _, tt := range []struct {
		text, path string
		allow      bool
	}{
		{"", "/", true},
		{"User-agent: *\nDisallow: /", "/feed", false},
		{"User-agent: *\nDisallow:", "/feed", true},
		{"User-agent: other\nDisallow: /", "/feed", true},
		{"User-agent: *\nDisallow: /\n\nUser-agent: Ephemera/1.0\nAllow: /", "/feed", true},
		{own + "Disallow: /a\nUser-agent: *\nDisallow: /b\nuser-agent: EPHEMERA\ndisallow: /c", "/c", false},
		{own + "Disallow: /a\nUser-agent: *\nDisallow: /b", "/b", true},
		{"User-agent: x\nUser-agent: ephemera\nDisallow: /a", "/a", false},
		{own + "# a comment\nUser-agent: x\nDisallow: /a # here", "/a", false},
		{own + "Sitemap: /x\nDisallow: /a", "/a", false},
		{"\xef\xbb\xbf" + own + "Disallow: /a\r\nAllow: /a/b", "/a/b/c", true},
		{own + "Allow: /example/page/\nDisallow: /example/page/disallowed.gif", "/example/page/disallowed.gif", false},
		{own + "Allow: /example/page/\nDisallow: /example/page/disallowed.gif", "/example/page/", true},
		{own + "Disallow: /page\nAllow: /page", "/page", true},
		{own + "Disallow: *.gif$\nAllow: /publications/", "/a/b.gif", false},
		{own + "Disallow: *.gif$", "/a/b.gif?x", true},
		{own + "Disallow: /a*b*c$", "/a-b-c-c", false},
		{own + "Disallow: /a*b*c$", "/a-b-c-d", true},
		{own + "Disallow: /foo/bar?baz=quz", "/foo/bar?baz=quz", false},
		{own + "Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", false},
		{own + "Disallow: /foo/bar/%E3%83%84", "/foo/bar/ツ", false},
		{own + "Disallow: /bar/%62%61%7A", "/bar/baz", false},
		{own + "Disallow: /a%2Fb", "/a/b", true},
	} {
		u, err := url.Parse("http://h" + tt.path)
		if err != nil {
			t.Fatal(err)
		}
		r := Robots{Rules: ParseRobots([]byte(tt.text))}
		if got := r.Allow(u); got != tt.allow {
			t.Errorf("%q, %s: %v %+v", tt.text, tt.path, got, r.Rules)
		}
	}
}

// TestRobotsUnreachable: a server that cannot answer for robots.txt is left alone,
// and one that has none is not asked again for a day.
func TestRobotsUnreachable(t *testing.T) {
	status, asked := 503, 0
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			asked++
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(status)
			return
		}
		io.WriteString(w, example)
	})
	p := Place{URL: "http://a.test/feed"}
	now := time.Now()
	f.Now = func() time.Time { return now }
	for range 2 {
		if r := f.Fetch(context.Background(), p); r.Outcome != Failed || r.Wait != 10*time.Minute || asked != 1 {
			t.Errorf("%+v, asked %d times", r, asked)
		}
	}
	status = 403
	now = now.Add(10 * time.Minute)
	for range 3 {
		if r := f.Fetch(context.Background(), p); r.Outcome != Found {
			t.Errorf("%+v", r)
		}
		now = now.Add(11 * time.Hour)
	}
	now = now.Add(11 * time.Hour)
	f.Fetch(context.Background(), p)
	if asked != 3 {
		t.Errorf("robots.txt was asked for %d times", asked)
	}
}
