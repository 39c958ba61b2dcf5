package feed

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"html"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"
)

var at, _ = url.Parse("http://h/feeds/x")

// memory keeps what servers ask for, for ever.
type memory struct {
	mu     *sync.Mutex
	robots map[string]*Robots
	left   map[string]time.Duration
}

func newMemory() memory {
	return memory{new(sync.Mutex), map[string]*Robots{}, map[string]time.Duration{}}
}

func (m memory) Left(host string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left[host]
}

func (m memory) Leave(host string, wait time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left[host] = wait
	return nil
}

func (m memory) Robots(origin *url.URL) (*Robots, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.robots[origin.Host], nil
}

func (m memory) KeepRobots(origin *url.URL, rules *Robots) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.robots[origin.Host] = rules
	return nil
}

const example = `<?xml version="1.0"?><rss version="2.0"><channel><title>T</title>` +
	`<item><title>one</title><guid>1</guid></item></channel></rss>`

// TestAnswers: what each kind of answer leads to.
func TestAnswers(t *testing.T) {
	var bomb strings.Builder
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 100<<20))
	z.Close()
	for _, tt := range []struct {
		name    string
		robots  int // status of robots.txt; 0 for 403, which allows all
		status  int
		header  string // name=value lines
		body    string
		outcome Outcome
		retry   time.Duration
		fresh   time.Duration
		url     string // of the next fetch; "" for the same
		reason  string
		anew    bool // it is asked for all that it has, not for changes
	}{
		{name: "s-maxage", status: 200, body: example, header: "Cache-Control=s-maxage=7200,x-max-age=1",
			outcome: Found},
		{name: "304 with max-age", status: 304, header: "Cache-Control=public, MAX-AGE=\"60\"",
			outcome: Unchanged, fresh: time.Minute},
		{name: "304 unasked", status: 304, anew: true, outcome: Failed, reason: "was not asked for changes"},
		{name: "503 with a date", status: 503,
			header:  "Date=Sun, 06 Nov 1994 08:49:37 GMT\nRetry-After=Sun, 06 Nov 1994 09:49:37 GMT",
			outcome: Failed, retry: time.Hour},
		{name: "far away", status: 429, header: "Retry-After=" + strings.Repeat("9", 30),
			outcome: Failed, retry: maxWait},
		{name: "404 with both", status: 404, header: "Cache-Control=max-age=31536000\nRetry-After=60",
			outcome: Failed, retry: time.Minute, fresh: 365 * 24 * time.Hour},
		{name: "Expires", status: 200, body: example,
			header:  "Date=Sun, 06 Nov 1994 08:49:37 GMT\nExpires=Sun, 06 Nov 1994 09:49:37 GMT",
			outcome: Found, fresh: time.Hour},
		{name: "Expires over", status: 304,
			header:  "Date=Sun, 06 Nov 1994 08:49:37 GMT\nExpires=Sun, 06 Nov 1994 07:49:37 GMT",
			outcome: Unchanged},
		{name: "Expires 0", status: 200, body: example, header: "Expires=0", outcome: Found},
		{name: "max-age over Expires", status: 200, body: example,
			header:  "Cache-Control=max-age=60\nExpires=Sun, 06 Nov 2094 09:49:37 GMT",
			outcome: Found, fresh: time.Minute},
		{name: "redirect", status: 301, header: "Location=http://b.test/feed#x",
			outcome: Found, url: "http://b.test/feed"},
		{name: "redirect for once", status: 302, header: "Location=http://b.test/feed", outcome: Found},
		{name: "packed", status: 200, header: "Content-Encoding=br", body: "\x0b\x02", outcome: Failed,
			reason: `it is packed as "br", which was not asked for`},
		{name: "only said to be packed", status: 200, header: "Content-Encoding=utf-8", body: example, outcome: Found},
		{name: "gone", status: 410, outcome: Gone},
		{name: "moved and gone", status: 301, header: "Location=http://gone.test/feed", outcome: Gone},
		{name: "gone for now", status: 302, header: "Location=http://gone.test/feed",
			outcome: Failed, reason: "for now"},
		{name: "moved to nothing", status: 301, header: "Location=http://none.test/feed",
			outcome: Failed, reason: "404 Not Found"},
		{name: "chain", status: 302, header: "Location=more/feed", outcome: Failed, reason: "more than 5 redirects"},
		{name: "other scheme", status: 302, header: "Location=ftp://me:secret@a.test/feed",
			outcome: Failed, reason: `it redirects to "ftp://a.test/feed"; allowed is an address with http or https`},
		{name: "no host", status: 302, header: "Location=http:///feed",
			outcome: Failed, reason: `it redirects to "http:///feed"; allowed is an address with http or https`},
		{name: "private", status: 302, header: "Location=http://127.0.0.1/feed",
			outcome: Failed, reason: "not of the public network"},
		{name: "robots.txt not ready", robots: 503, header: "Retry-After=600",
			outcome: Failed, retry: 10 * time.Minute, reason: "robots.txt cannot be read"},
		{name: "robots.txt elsewhere", robots: 302, status: 200,
			header: "Location=http://b.test/robots.txt", body: example, outcome: Found},
		{name: "a page", status: 200, body: "<!doctype html><p>hello", outcome: Failed, reason: "neither RSS"},
		{name: "an error in JSON", status: 200, body: `{"error":"try again later"}`, outcome: Failed,
			reason: "nor a JSON feed"},
		{name: "gzip bomb", status: 200, header: "Content-Encoding=gzip", body: bomb.String(),
			outcome: Failed, reason: "neither RSS"},
		{name: "slow", status: 200, body: example[:20], outcome: Failed, reason: "no answer within"},
		{name: "deep", status: 200, body: "<rss xmlns:a='u'><channel>" + strings.Repeat("<a:b>", 100_000),
			outcome: Found},
		{
			name: "entities", status: 200,
			body: `<!DOCTYPE x [<!ENTITY a "` + strings.Repeat("z", 1000) + `">` +
				`<!ENTITY b "` + strings.Repeat("&a;", 1000) + `">]>` +
				strings.Replace(example, "one", strings.Repeat("&b;", 1000), 1),
			outcome: Found,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Cookie")+r.Header.Get("Referer") != "" || r.URL.RawQuery != "" {
					t.Errorf("it was asked for %s with %v", r.URL, r.Header)
				}
				w.Header().Set("Set-Cookie", "a=b")
				status, header, body := tt.status, tt.header, tt.body
				switch {
				case r.URL.Path == "/robots.txt":
					status, body = cmp.Or(tt.robots, 403), ""
				case r.Host == "b.test":
					status, header, body = 200, "", example
				case r.Host == "gone.test":
					status, header = 410, ""
				case r.Host == "none.test":
					status, header = 404, ""
				}
				for line := range strings.SplitSeq(header, "\n") {
					k, v, _ := strings.Cut(line, "=")
					w.Header().Set(k, v)
				}
				w.WriteHeader(status)
				io.WriteString(w, body)
				if tt.name == "slow" && r.URL.Path == "/feed" {
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				}
			}))
			defer s.Close()
			f := &Fetcher{Timeout: time.Minute, MaxBytes: 1 << 20, Memory: newMemory(), Now: time.Now}
			f.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if strings.HasSuffix(address, ".test:http") { // every such name is that server
					return net.Dial(network, s.Listener.Addr().String())
				}
				return (&net.Dialer{Control: Public}).DialContext(ctx, network, address)
			}
			if tt.name == "slow" {
				f.Timeout = time.Second
			}
			const from = "http://a.test/feed"
			place := Place{URL: from, Final: from, ETag: `"x"`}
			if tt.anew {
				place = Place{URL: from}
			}
			got := f.Fetch(t.Context(), place)
			if got.Outcome != tt.outcome || got.Retry != tt.retry || got.Fresh != tt.fresh ||
				got.Place.URL != cmp.Or(tt.url, from) {
				t.Errorf("%s, %v and %v (%v), then %s; want %s, %v and %v",
					got.Outcome, got.Retry, got.Fresh, got.Err, got.Place.URL, tt.outcome, tt.retry, tt.fresh)
			}
			if tt.reason != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), tt.reason)) {
				t.Errorf("reason %v, want %q", got.Err, tt.reason)
			}
		})
	}
}

// TestSubscribe: which hubs are asked: by POST, where robots.txt allows it, without
// credentials, on the public network alone, also after a redirect.
func TestSubscribe(t *testing.T) {
	for _, tt := range []struct {
		name       string
		hub, asked string // the requests other than those for robots.txt
		reason     string
	}{
		{name: "a hub", hub: "http://a.test/hub", asked: "POST a.test/hub topic"},
		{name: "disallowed", hub: "http://a.test/admin/delete?id=5", reason: "robots.txt does not allow it"},
		{name: "credentials", hub: "http://me:secret@a.test/hub", reason: "credentials"},
		{name: "moved", hub: "http://a.test/moved", asked: "POST a.test/moved topic, POST b.test/hub topic"},
		{name: "moved to a page", hub: "http://a.test/page", asked: "POST a.test/page topic", reason: "302"},
		{name: "moved to disallowed", hub: "http://a.test/moved-admin", asked: "POST a.test/moved-admin topic",
			reason: "robots.txt does not allow it"},
		{name: "moved to credentials", hub: "http://a.test/moved-login", asked: "POST a.test/moved-login topic",
			reason: "credentials"},
		{name: "moved to a private", hub: "http://a.test/moved-private", asked: "POST a.test/moved-private topic",
			reason: "not of the public network"},
		{name: "in a circle", hub: "http://a.test/circle",
			asked:  strings.TrimSuffix(strings.Repeat("POST a.test/circle topic, ", maxRedirects+1), ", "),
			reason: "307"},
		{name: "a private hub", hub: "http://127.0.0.1/hub", reason: "not of the public network"},
		{name: "of another scheme", hub: "file:///etc/passwd", reason: "allowed is an address with http or https"},
		{name: "that is no address", hub: "http://%zz/", reason: "allowed is an address with http or https"},
		{name: "that does not want it", hub: "http://a.test/no", asked: "POST a.test/no topic", reason: "403"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/robots.txt" {
					io.WriteString(w, "User-agent: *\nDisallow: /admin")
					return
				}
				asked = append(asked, r.Method+" "+r.Host+r.URL.Path+" "+r.FormValue("hub.topic"))
				to := map[string]string{
					"/moved":         "http://b.test/hub",
					"/moved-admin":   "http://b.test/admin",
					"/moved-login":   "http://me@b.test/hub",
					"/moved-private": "http://127.0.0.1/hub",
					"/circle":        "/circle",
				}[r.URL.Path]
				switch {
				case to != "":
					http.Redirect(w, r, to, http.StatusTemporaryRedirect)
				case r.URL.Path == "/page":
					http.Redirect(w, r, "/other", http.StatusFound)
				case r.URL.Path == "/no":
					w.WriteHeader(http.StatusForbidden)
				}
			}))
			defer s.Close()
			f := &Fetcher{Timeout: time.Minute, MaxBytes: 1 << 20, Memory: newMemory(), Now: time.Now}
			f.Dial = (&net.Dialer{}).DialContext
			f.DialHub = func(ctx context.Context, network, address string) (net.Conn, error) {
				if strings.HasSuffix(address, ".test:http") {
					return net.Dial(network, s.Listener.Addr().String())
				}
				return (&net.Dialer{Control: Public}).DialContext(ctx, network, address)
			}
			err := f.Subscribe(t.Context(), tt.hub, url.Values{"hub.topic": {"topic"}})
			if got := strings.Join(asked, ", "); got != tt.asked || (err == nil) != (tt.reason == "") ||
				err != nil && !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("%s is asked: %v; want %s, %q", got, err, tt.asked, tt.reason)
			}
		})
	}
}

// local returns a fetcher that finds a server under every name.
func local(s *httptest.Server, timeout time.Duration) *Fetcher {
	return &Fetcher{
		Timeout: timeout, MaxBytes: 1 << 20, Memory: newMemory(), Now: time.Now,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
		},
	}
}

// TestPassword: name and password of an address go with a redirect to the same host, unless that leaves https,
// and to no other host.
func TestPassword(t *testing.T) {
	given := map[string]string{} // by what was asked for
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		given[r.Host+r.URL.Path] = password
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		io.WriteString(w, example)
	}))
	defer s.Close()
	for _, tt := range []struct{ to, asked, want string }{
		{"http://a.test/new", "a.test/new", "secret"},
		{"/new", "a.test/new", "secret"},
		{"http://you:other@a.test/new", "a.test/new", "other"},
		{"http://b.test/new", "b.test/new", ""},
		{"http://a.test:81/new", "a.test:81/new", ""},
		{"http://sub.a.test/new", "sub.a.test/new", ""},
	} {
		clear(given)
		got := local(s, time.Minute).Fetch(t.Context(), Place{URL: "http://me:secret@a.test/?to=" + tt.to})
		if password, is := given[tt.asked]; !is || password != tt.want || given["a.test/robots.txt"] != "" {
			t.Errorf("to %s: %q, %v, %v; want %q", tt.to, password, given, got.Err, tt.want)
		}
	}
	encrypted, plain := &url.URL{Scheme: "https", Host: "a.test"}, &url.URL{Scheme: "http", Host: "a.test"}
	if !trusts(plain, encrypted) || trusts(encrypted, plain) {
		t.Error("it is to go with a redirect to https, and not with one from there")
	}
}

// TestBrokenOff: a server that closes the connection before its answer, or within it, is said to.
func TestBrokenOff(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/within" {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n<rss>")
		}
		c.Close()
	}))
	defer s.Close()
	for _, path := range []string{"/before", "/within"} {
		got := local(s, time.Minute).Fetch(t.Context(), Place{URL: "http://a.test" + path})
		if got.Err == nil || got.Err.Error() != "its server closed the connection before the end of its answer" {
			t.Errorf("%s: %v", path, got.Err)
		}
	}
}

// TestSlowRedirects: redirects to one slow host after the other, each with a robots.txt that does the
// same, hold up a fetch for no longer than some timeouts.
func TestSlowRedirects(t *testing.T) {
	const timeout = 100 * time.Millisecond
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(timeout * 6 / 10)
		http.Redirect(w, r, fmt.Sprintf("http://h%d.test%s", requests.Add(1), r.URL.Path), http.StatusFound)
	}))
	defer s.Close()
	got := local(s, timeout).Fetch(t.Context(), Place{URL: "http://a.test/feed"})
	if n := requests.Load(); got.Outcome != Failed || n > 8 {
		t.Errorf("%s after %d requests; want at most 8", got.Outcome, n)
	}
}

// TestRobots holds rules of RFC 9309, with its examples of section 5: which paths a
// robots.txt allows, and which it does not.
func TestRobots(t *testing.T) {
	const own = "User-agent: ephemera\n"
	for _, tt := range []struct{ text, allowed, not string }{
		{"User-agent: *\nDisallow:", "/feed", ""},
		{"User-agent: other\nDisallow: /", "/feed", ""},
		{"User-agent: *\nDisallow: /\n\nUser-agent: Ephemera/1.0\nAllow: /", "/feed", ""},
		{"User-agent: *\nDisallow: /\n\nUser-agent: ephemera", "/feed", ""},
		{own + "Disallow: /a\nUser-agent: *\nDisallow: /b\nuser-agent: EPHEMERA\ndisallow: /c", "/b", "/a /c"},
		{"User-agent: x\nUser-agent: ephemera\nDisallow: /a", "/b", "/a"},
		{own + "# a comment\nUser-agent: x\nSitemap: /x\nDisallow: /a # here", "/x", "/a"},
		{"\xef\xbb\xbf" + own + "Disallow: /a\r\nAllow: /a/b", "/a/b/c", "/a/c"},
		{own + "Allow: /example/page/\nDisallow: /example/page/disallowed.gif",
			"/example/page/", "/example/page/disallowed.gif"},
		{own + "Disallow: /page\nAllow: /page", "/page", ""},
		{own + "Disallow: *.gif$\nAllow: /publications/", "/a/b.gif?x /publications/b", "/a/b.gif"},
		{own + "Disallow: /a*b*c$\nDisallow: /foo/bar?baz=quz", "/a-b-c-d /foo/bar", "/a-b-c-c /foo/bar?baz=quz"},
		{own + "Disallow: /foo/bar/ツ\nDisallow: /bar/%62%61%7A\nDisallow: /a%2Fb",
			"/a/b", "/foo/bar/ツ /foo/bar/%E3%83%84 /bar/baz"},
		{own + "Disallow: /foo/bar/%E3%83%84", "", "/foo/bar/ツ /foo/bar/%E3%83%84"},
		{own + "Disallow: /a-%2A.html\nDisallow: /b-%24\nDisallow: /c$d$",
			"/a-b.html /b- /c /c$de", "/a-*.html /a-%2A.html /b-$ /b-$c /b-%24 /c$d /c%24d"},
	} {
		r := Robots{Rules: ParseRobots([]byte(tt.text))}
		for _, said := range []struct {
			paths   string
			allowed bool
		}{{tt.allowed, true}, {tt.not, false}} {
			for path := range strings.FieldsSeq(said.paths) {
				u, err := url.Parse("http://h" + path)
				if err != nil || r.Allow(u) != said.allowed {
					t.Errorf("%q, %s: want %v: %+v %v", tt.text, path, said.allowed, r.Rules, err)
				}
			}
		}
	}
}

// TestCertificate: a certificate that does not hold is the reason.
func TestCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	f := &Fetcher{Timeout: time.Minute, MaxBytes: 1 << 20, Memory: newMemory(), Now: time.Now}
	f.Dial = new(net.Dialer).DialContext
	got := f.Fetch(t.Context(), Place{URL: s.URL})
	if got.Err == nil || !strings.Contains(got.Err.Error(), "its certificate does not hold: certificate signed by") {
		t.Error(got.Err)
	}
}

// far is a connection to another address than it is.
type far struct{ net.Conn }

func (far) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(1, 1, 1, 1), Port: 80} }

// TestOffline: three hosts in a row that are not reached say that none is; one that is reached, or that
// a name server does not know, says that there is a network. Hosts of a private network say neither.
func TestOffline(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	f := &Fetcher{Timeout: time.Minute, MaxBytes: 1 << 20, Memory: newMemory(), Now: time.Now}
	f.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch host, _, _ := net.SplitHostPort(address); {
		case strings.HasPrefix(host, "up"):
			c, err := net.Dial(network, server.Listener.Addr().String())
			return far{c}, err
		case strings.HasPrefix(host, "near"):
			return net.Dial(network, server.Listener.Addr().String())
		case strings.HasPrefix(host, "off"):
			at := &net.TCPAddr{IP: net.IPv4(192, 168, 1, 1), Port: 80}
			return nil, &net.OpError{Op: "dial", Net: network, Addr: at, Err: syscall.EHOSTUNREACH}
		case strings.HasPrefix(host, "unknown"):
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		case strings.HasPrefix(host, "nameless"):
			return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
		}
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
	}
	for _, tt := range []struct {
		hosts   string
		offline bool
	}{
		{"a b", false}, {"c", true}, {"a", true}, {"up1", false}, {"a a a b", false}, {"unknown", false},
		{"a nameless1", false}, {"nameless2", true}, {"up2", false},
		{"a b near1 near2 off1 off2", false}, {"c", true}, {"near1", false}, {"a", true}, {"up3", false},
		{"off1 off2 off3 off4", false},
	} {
		var got Result
		for host := range strings.FieldsSeq(tt.hosts) {
			got = f.Fetch(t.Context(), Place{URL: "http://" + host + "/feed"})
		}
		if got.Outcome != Failed || got.Offline != tt.offline {
			t.Errorf("%s: offline is %v: %v", tt.hosts, got.Offline, got.Err)
		}
	}
}

// TestCharsets: BOM before HTTP header before declaration before what the bytes are, and
// bytes that are none of the charset cost a letter.
func TestCharsets(t *testing.T) {
	doc := func(encoding, title string) string {
		return `<?xml version="1.0"` + encoding + `?><rss version="2.0"><channel><title>` + title +
			`</title></channel></rss>`
	}
	utf16 := func(text string) string { return strings.Join(strings.Split(text, ""), "\x00") + "\x00" }
	const far = 3000 // bytes before the first letter that is not ASCII
	comment := "<!--" + strings.Repeat("x", far) + "-->"
	html := `<description><meta charset="iso-8859-5"/></description>` // says nothing of the feed
	json := `{"version":"https://jsonfeed.org/version/1","home_page_url":"` + strings.Repeat("x", far) +
		`","title":"Zürich","items":[]}`
	for _, tt := range []struct{ contentType, body, want string }{
		{"text/xml; charset=utf-8", doc(` encoding="iso-8859-1"`, "Käse"), "Käse"},
		{"text/xml", doc(` encoding="ISO-8859-1"`, "K\xe4se"), "Käse"},
		{"text/xml; charset=iso-8859-1", doc(` encoding="UTF-8"`, "Käse"), "Käse"},
		{"text/xml; charset=iso-8859-1", doc(` encoding="UTF-8"`, "K\xe4se"), "Käse"},
		{"text/xml; charset=windows-1251", doc("", "\xd1\xfb\xf0"), "Сыр"},
		{"text/xml; charset=iso-8859-1", "\xef\xbb\xbf" + doc("", "Käse"), "Käse"},
		{"text/xml", "\xff\xfe" + utf16(doc(` encoding="utf-16"`, "K")), "K"},
		{"text/xml", utf16(doc(` encoding="utf-16"`, "K")), "K"},
		{"text/xml", doc(` encoding="utf-16"`, "Käse"), "Käse"}, // which no file can be that is read as ASCII
		{"", comment + doc("", "Zürich"), "Zürich"},
		{"", comment + doc("", "Z\xfcrich"), "Zürich"},
		{"", "<rss><channel>" + html + "<title>Zürich</title></channel></rss>", "Zürich"},
		{"application/json", json, "Zürich"},
		{"application/feed+json; charset=iso-8859-1", json, "Zürich"},
		{"", "\xef\xbb\xbf" + json, "Zürich"},
		{"text/xml; charset=klingon", doc("", "Käse"), "Käse"},
		{"", doc("", "K\xe4se"), "Käse"},
		{"text/xml; charset=utf-8", doc("", "K\xe4se"), "K\uFFFDse"},
		{"", "\n " + doc("", "K\x00\x08se"), "Kse"},
		{"", doc("", "K&#x1F;&#0;&#031;&#xFffe;&#65535;&#x9;&#xe4;&#228;se"), "K ääse"},
	} {
		if f, err := Parse([]byte(tt.body), tt.contentType, at); err != nil || f.Title != tt.want {
			t.Errorf("%s %q: %+v %v", tt.contentType, tt.body, f, err)
		}
	}
}

// TestItems: of each kind of feed, items have names of their own, absolute links and
// dates; and the hub is found.
func TestItems(t *testing.T) {
	date := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		file string
		hub  string
	}{
		{"rss.xml", "http://hub/x"},
		{"rdf.xml", ""},
		{"atom.xml", "http://hub/x"},
		{"feed.json", ""},
	} {
		t.Run(tt.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", "items", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			body := bytes.Replace(text, []byte("LONG"), bytes.Repeat([]byte("<p>"), 2000), 1)
			f, err := Parse(body, "", at)
			if err != nil || len(f.Items) != 2 || f.Items[0].ID == f.Items[1].ID {
				t.Fatalf("%+v %v; want two items", f, err)
			}
			it := f.Items[0]
			if it.Link != "http://h/a" || !it.Published.Equal(date) ||
				!f.Items[1].Published.IsZero() || f.Hub != tt.hub {
				t.Errorf("%+v; want the link http://h/a, the date %v, no second one and the hub %q", f, date, tt.hub)
			}
		})
	}
}

// TestLinks: an item of RSS without a link has that which its id is, if it is one, and else none. A link
// that is a script is none.
func TestLinks(t *testing.T) {
	for _, tt := range []struct{ item, want string }{
		{"<guid>http://h/1</guid><link>/2</link>", "http://h/2"},
		{"<guid>http://h/1</guid>", "http://h/1"},
		{`<guid isPermaLink="true">HTTPS://h/1</guid>`, "https://h/1"},
		{`<guid isPermaLink="false">http://h/1</guid>`, ""},
		{"<guid>1</guid>", ""},
		{"<title>x</title>", ""},
		{"<guid>1</guid><link>JavaScript://h/%0aalert(1)</link>", ""},
		{"<guid>1</guid><link>data:text/html,x</link>", ""},
		{"<guid>1</guid><link>magnet:?xt=x</link>", "magnet:?xt=x"},
	} {
		f, err := Parse([]byte(rssBegin+"<item>"+tt.item+"</item>"+rssEnd), "", at)
		if err != nil || f.Items[0].Link != tt.want {
			t.Errorf("%s: %+v, %v; want the link %q", tt.item, f, err, tt.want)
		}
	}
}

// TestBeginning: of a feed that is longer than is read, the items are found that end in what is.
func TestBeginning(t *testing.T) {
	for _, tt := range []struct{ begin, rest, end string }{
		{rssBegin, "<item><guid>1</guid></item><item><title>x</title><guid>22</guid></item>" + rssEnd, "</item>"},
		{atomBegin, "<entry><id>1</id></entry><entry><title>x</title><id>22</id></entry></feed>", "</entry>"},
		{jsonBegin, `{"id":"1"},{"id":"22","title":"x"}]}`, "}"},
	} {
		whole, err := Parse([]byte(tt.begin+tt.rest), "", at)
		if err != nil {
			t.Fatal(err)
		}
		for k := range len(tt.rest) - 1 {
			body := tt.begin + tt.rest[:k]
			f, err := parse([]byte(body), true, "", at)
			if n := strings.Count(body, tt.end); err != nil || !slices.Equal(f.Items, whole.Items[:n]) {
				t.Fatalf("%s: %+v, %v; want %d items", body, f, err, n)
			}
		}
	}
}

// TestJSON: an item of a JSON feed has its text, a number counts as a text, and what is none loses no
// other item.
func TestJSON(t *testing.T) {
	for _, tt := range []struct{ item, title, summary string }{
		{`{"id":"1","content_html":"<p>a &lt; b</p>"}`, "", "a < b"},
		{`{"id":"1","content_text":"a <b c"}`, "", "a <b c"},
		{`{"id":"1","summary":"s","content_text":"a","content_html":"b"}`, "", "s"},
		{`{"content_html":"alone"}`, "", "alone"},
		{`{"id":1,"title":1984,"date_published":7,"summary":null,"url":{},"content_text":[]}`, "1984", ""},
		{`{"id":[1],"title":"x"},7,null,"y"`, "x", ""},
	} {
		f, err := Parse([]byte(jsonBegin+tt.item+`,{"id":"last"}],"title":2}`), "", at)
		if err != nil || len(f.Items) != 2 || f.Items[0].Title != tt.title || f.Items[0].Summary != tt.summary {
			t.Errorf("%s: %+v, %v", tt.item, f, err)
		}
	}
}

// TestOdd: what people read of items whose feeds have it elsewhere, or written as HTML in HTML.
func TestOdd(t *testing.T) {
	for _, tt := range []struct{ begin, item, end, title, link string }{
		{rssBegin, `<item><title><![CDATA[Fish &amp; Chips &#8211; caf&eacute;]]></title></item>`, rssEnd,
			"Fish & Chips – café", ""},
		{rssBegin, `<item><title>AT&amp;amp;T&amp;nbsp;&lt;b></title></item>`, rssEnd, "AT&T <b>", ""},
		{rssBegin, `<item><title>a &lt; b &amp;&amp; ?c=1&amp;copy=2</title></item>`, rssEnd,
			"a < b && ?c=1&copy=2", ""},
		{atomBegin, `<entry><id>1</id><title type="html">A &amp;amp; B</title></entry>`, "</feed>", "A & B", ""},
		{atomBegin, `<entry><id>1</id><title type="html"><![CDATA[It&#8217;s]]></title></entry>`, "</feed>",
			"It’s", ""},
		{atomBegin, `<entry><title type="html">&lt;b>a&lt;/b> &amp;amp;lt;i> &amp;lt; 2</title></entry>`, "</feed>",
			"a &lt;i> < 2", ""},
		{atomBegin, `<entry><id>1</id><title type="html"><![CDATA[<em>a</em>]]> &lt;br/&gt;b</title></entry>`,
			"</feed>", "a b", ""},
		{atomBegin, `<entry><id>1</id><title type="html">a<b>b</b>&nbsp;c</title></entry>`, "</feed>", "ab c", ""},
		{atomBegin, `<entry><id>1</id><title type="xhtml"><x:div xmlns:x="http://www.w3.org/1999/xhtml">` +
			`<x:b>a</x:b> &lt;i>&nbsp;<![CDATA[<c>]]></x:div></title></entry>`, "</feed>", "a <i> <c>", ""},
		{atomBegin, `<entry><id>1</id><title type="text">&lt;b&gt;a&lt;/b&gt;</title></entry>`, "</feed>",
			"<b>a</b>", ""},
		{itunesBegin, `<item><itunes:title>Part 1</itunes:title></item>`, rssEnd, "Part 1", ""},
		{itunesBegin, `<item><itunes:title>1</itunes:title><title>A: 1</title></item>`, rssEnd, "A: 1", ""},
		{jsonBegin, `{"id":"1","title":"&amp; is an entity"}`, "]}", "&amp; is an entity", ""},
		{jsonBegin, `{"id":"1","title":"a\u001b]0;b\u0007\u009bc\u0000"}`, "]}", "a ]0;b c", ""},
		{rssBegin, `<item><title>a&amp;#27;[2Jb</title></item>`, rssEnd, "a [2Jb", ""},
		{jsonBegin, `{"id":"1","external_url":"/else"}`, "]}", "", "http://h/else"},
		{jsonBegin, `{"id":"1","external_url":"/else","url":"/here"}`, "]}", "", "http://h/here"},
		{rssBegin, `<item><enclosure url="/1.mp3" type="audio/mpeg"/></item>`, rssEnd, "", "http://h/1.mp3"},
		{rssBegin, `<item><link>/1</link><enclosure url="/1.mp3" type="audio/mpeg"/></item>`, rssEnd, "", "http://h/1"},
	} {
		f, err := Parse([]byte(tt.begin+tt.item+tt.end), "", at)
		if err != nil || len(f.Items) != 1 || f.Items[0].Title != tt.title || f.Items[0].Link != tt.link {
			t.Errorf("%s: %+v, %v; want the title %q and the link %q", tt.item, f, err, tt.title, tt.link)
		}
	}
	for _, text := range []string{
		"<rss><channel><title>Q&amp;amp;A</title></channel></rss>",
		`<feed xmlns="http://www.w3.org/2005/Atom"><title type="html">&lt;i>Q&lt;/i>&amp;amp;A</title></feed>`,
	} {
		if f, err := Parse([]byte(text), "", at); err != nil || f.Title != "Q&A" {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
}

const itunesBegin = `<rss xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>`

// TestIdentity: which items are the same, at two looks at a feed.
func TestIdentity(t *testing.T) {
	look := func(items string) []Item {
		f, err := Parse([]byte(`<rss version="2.0"><channel>`+items+`</channel></rss>`), "", at)
		if err != nil {
			t.Fatal(err)
		}
		return f.Items
	}
	const date = "<pubDate>Sun, 01 Mar 2026 13:00:00 +0100</pubDate>"
	for _, tt := range []struct {
		first, then string // an item
		same        bool
	}{
		{"<link>/a?x=1</link>", "<link>/a?x=1&amp;utm_source=rss&amp;utm_campaign=7</link>", true},
		{"<link>/a?utm_id=1&amp;x=1</link>", "<link>/a?x=1&amp;fbclid=IwAR</link>", true},
		{"<link>/a?UTM_id=1</link>", "<link>/a#xtor=RSS-3</link>", true},
		{"<link>/a?x=1</link>", "<link>/a?x=2</link>", false},
		{"<link>/a#1</link>", "<link>/a#2</link>", false},
		// A link without such parameters stays as it is.
		{"<link>/a?</link>", "<link>/a</link>", false},
		{"<guid>http://h/a?utm_id=1</guid>", "<guid>http://h/a?utm_id=2</guid>", false}, // an id is what it is
		{"<link>/a?pk_id=1</link>", "<link>/a?pk_id=2</link>", false},
		{"<link>/a?ns_page=1&amp;ncid=1</link>", "<link>/a?ns_page=1&amp;ncid=2</link>", false},
		{"<guid>1</guid><link>/a</link>", "<guid>1</guid><link>/b</link>", true},
		{"<guid>1</guid><link>/a</link><title>A</title>" + date,
			"<guid>2</guid><link>/a</link><title>A</title>" + date, false},
		{"<link>/a/s1</link><title>A</title>" + date, "<link>/a/s2</link><title> A\n</title>" + date, true},
		{"<link>/a/s1</link><title>A</title>" + date, "<link>/a/s1</link><title>B</title>", true},
		{"<link>/a/s1</link><title>A</title>" + date, "<link>/a/s2</link><title>B</title>" + date, false},
		{"<link>/a/s1</link><title>A</title>", "<link>/a/s2</link><title>A</title>", false},
	} {
		a, b := look("<item>" + tt.first + "</item>")[0], look("<item>" + tt.then + "</item>")[0]
		if same := a.ID == b.ID || a.Also != 0 && a.Also == b.Also; same != tt.same {
			t.Errorf("%s, then %s: the same is %v", tt.first, tt.then, same)
		}
	}
	// Without ids, what one look shows with one link are as many items as there are titles, and the same ones at
	// another look.
	const date2 = "<pubDate>Mon, 02 Mar 2026 13:00:00 +0100</pubDate>"
	text := func(name, date string) string {
		return "<item><link>/home</link><title>" + name + "</title>" + date + "</item>"
	}
	for _, tt := range []struct {
		first, then string
		fresh       int // items, at the second
	}{
		{text("A", ""), text("B", "") + text("A", ""), 2},
		{text("B", "") + text("A", ""), text("C", "") + text("B", "") + text("A", ""), 1},
		{text("A", date), text("B", date2) + text("A", date), 1},
		{text("B", date2) + text("A", date), text("B", date2), 0},
		{text("B", date2) + text("A", date), text("C", date2) + text("B", date2) + text("B", date2), 1},
		{text("B", date) + text("A", date), text("B", date2) + text("A", date2), 0},
		{"<item><guid>/home</guid></item>" + text("A", date), "<item><guid>/home</guid></item>", 0},
	} {
		seen, fresh := map[uint64]bool{}, 0
		for _, it := range look(tt.first) {
			seen[it.ID], seen[it.Also] = true, true
		}
		for _, it := range look(tt.then) {
			if !seen[it.ID] && (it.Also == 0 || !seen[it.Also]) {
				fresh++
			}
		}
		if fresh != tt.fresh {
			t.Errorf("%s, then %s: %d new items; want %d", tt.first, tt.then, fresh, tt.fresh)
		}
	}
	// What one look shows twice with a title and a date are two items.
	const photo = "<title>Photo</title>"
	two := look("<item><link>/1</link>" + photo + date + "</item><item><link>/2</link>" + photo + date + "</item>")
	if len(two) != 2 || two[0].Also != 0 || two[1].Also != 0 {
		t.Errorf("%+v", two)
	}
}

// TestDates: a date is none if nobody can write it down.
func TestDates(t *testing.T) {
	for _, tt := range []struct {
		text string
		year int // 0 for none
	}{
		{"Sat, 1 Jan 00:30:00 CET", 0},
		{"Fri, 2 Jan 15:04:05 GMT", 0},
		{"0000-01-01T00:00:00+01:00", 0},
		{"9999-12-31T23:59:59-01:00", 0},
		{"1970-01-01T00:00:00Z", 1970},
		{"2026-03-01", 2026},
		{"<![CDATA[ Sun, 01 Mar 2026 12:00:00 GMT ]]>", 2026},
		{"<b>2026-03-01T00:00:00Z</b>", 0},
	} {
		t.Run(tt.text, func(t *testing.T) {
			body := `<rss version="2.0"><channel><item><pubDate>` + tt.text + `</pubDate></item></channel></rss>`
			f, err := Parse([]byte(body), "", at)
			if err != nil {
				t.Fatal(err)
			}
			got := f.Items[0].Published
			if got.IsZero() != (tt.year == 0) || tt.year > 0 && got.Year() != tt.year {
				t.Errorf("%s is %v; want one of the year %d, or none if that is 0", tt.text, got, tt.year)
			}
		})
	}
}

// TestStandardDates: what standards name is read at once, as the parser reads it, and odd dates are given to
// the parser in part.
func TestStandardDates(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	parsed := func(text string) time.Time {
		f, err := gofeed.NewParser().ParseString(rssBegin + "<item><pubDate>" + text + "</pubDate></item>" + rssEnd)
		if err != nil || f.Items[0].PublishedParsed == nil {
			t.Fatalf("%q: %v", text, err)
		}
		return *f.Items[0].PublishedParsed
	}
	for _, text := range []string{
		"2026-03-01T12:00:00Z", "2026-03-01T13:00:00+01:00", "2026-03-01T12:00:00.000Z",
		"Sun, 01 Mar 2026 12:00:00 GMT", "Sun, 1 Mar 2026 12:00:00 UT", "Sun, 01 Mar 2026 14:30:00 +0230",
		"Sun, 01 Mar 2026 07:00:00 EST", "Sun, 01 Mar 2026 05:00 PDT", "1 Mar 2026 12:00:00 +0000",
		"01 Mar 26 12:00 +0000", "Sun, 01 Mar 26 12:00:00 GMT", "Sun, 01 Mar 2026 12:00 GMT",
	} {
		got, is := standardDate(text)
		if want := parsed(text); !is || !got.Equal(want) || !got.Equal(noon) {
			t.Errorf("%q is %v, %v; the parser has %v", text, got, is, want)
		}
	}
	for _, text := range []string{"", "x", "Sun, 01 Mar 2026 12:00:00 CEST", "2026-03-01 12:00:00", "GMT", ","} {
		if got, is := standardDate(text); is {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// TestOddDates: of dates in forms that no standard names the parser, which reads them slowly, is given so
// many; others are read all the same.
func TestOddDates(t *testing.T) {
	const n = mostOdd + 2000
	for _, tt := range []struct{ name, begin, item, end string }{
		{"RSS", rssBegin, `<item><guid>%d</guid><pubDate>%s</pubDate></item>`, rssEnd},
		{"within", rssBegin, `<item><guid>%d</guid><source><a:date><![CDATA[%s]]></a:date></source></item>`, rssEnd},
		{"JSON", jsonBegin, `{"id":%d,"date_published":"%s"},`, `{}]}`},
	} {
		for _, date := range []struct {
			text, has string
			n         int
		}{
			{"1.3.2026, noon", "noon", mostOdd},
			{"2026-03-01T12:00:00Z", "2026-03", n},
		} {
			var body strings.Builder
			body.WriteString(tt.begin)
			for k := range n {
				fmt.Fprintf(&body, tt.item, k, date.text)
			}
			given := 0
			_, err := inParts([]byte(body.String()+tt.end), false, func(document []byte) error {
				given += bytes.Count(document, []byte(date.has))
				return nil
			})
			if err != nil || given != date.n {
				t.Errorf("%s: of %q the parser is given %d, %v; want %d", tt.name, date.text, given, err, date.n)
			}
		}
	}
}

// TestNewest: of more items than are taken the newest are, in whatever order they come; those
// that come first, if they have no dates.
func TestNewest(t *testing.T) {
	const n = 3*maxItems + 7
	formats := []struct{ name, begin, item, end string }{
		{"RSS", `<rss version="2.0"><channel>`,
			`<item><guid>%d</guid><title>%[1]d</title><pubDate>%s</pubDate></item>`, `</channel></rss>`},
		{"RDF", `<RDF><channel></channel>`,
			`<item><title>%d</title><pubDate>%s</pubDate></item>`, `</RDF>`},
		{"Atom", `<feed>`,
			`<entry><id>%d</id><title>%[1]d</title><updated>%s</updated></entry>`, `</feed>`},
		{"JSON", `{"items":[`,
			`{"id":%d,"title":"%[1]d","date_published":"%s"},`, `{}],"version":"https://jsonfeed.org/version/1"}`},
	}
	up := make([]int, n)
	for k := range up {
		up[k] = k
	}
	down := slices.Clone(up)
	slices.Reverse(down)
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(n)
	orders := []struct {
		name string
		ks   []int
	}{{"up", up}, {"down", down}, {"shuffled", shuffled}, {"undated", shuffled}}
	for _, f := range formats {
		for _, order := range orders {
			t.Run(f.name+", "+order.name, func(t *testing.T) {
				var body strings.Builder
				var want, got []string
				for i, k := range order.ks {
					date, taken := date(k).Format(time.RFC3339), k >= n-maxItems
					if order.name == "undated" {
						date, taken = "", i < maxItems
					}
					fmt.Fprintf(&body, f.item, k, date)
					if taken {
						want = append(want, fmt.Sprint(k))
					}
				}
				feed, err := Parse([]byte(f.begin+body.String()+f.end), "", at)
				if err != nil {
					t.Fatal(err)
				}
				for _, it := range feed.Items {
					got = append(got, it.Title)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d items, from %.50v to %.50v; want %d, from %.50v",
						len(got), got, got[max(0, len(got)-3):], len(want), want)
				}
			})
		}
	}
}

var htmlTitle = regexp.MustCompile(`<(\w+:)?title [^>]*html`)

// TestPartsAsWhole: in the documents of gofeed's own tests, read in parts, is found what
// gofeed finds in them as they are.
func TestPartsAsWhole(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/mmcdole/gofeed").Output()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	documents := filepath.Join(strings.TrimSpace(string(dir)), "testdata")
	err = filepath.WalkDir(documents, func(path string, _ fs.DirEntry, _ error) error {
		body, err := os.ReadFile(path)
		if err != nil || filepath.Ext(path) != ".xml" {
			return nil
		}
		whole, bad := gofeed.NewParser().Parse(bytes.NewReader(plain(body, "")))
		got, err := Parse(body, "", at)
		if (err == nil) != (bad == nil) {
			t.Errorf("%s: %v, as a whole %v", path, err, bad)
		}
		if err != nil || bad != nil {
			return nil
		}
		compared++
		want := newNewest()
		asRead := func(title string) string { // which the parser is given as text where it is HTML
			if htmlTitle.Match(body) {
				return html.EscapeString(excerpt(asText(title), maxTitle))
			}
			return title
		}
		whole.Title = asRead(whole.Title)
		for _, it := range whole.Items {
			it.Title, it.Published = asRead(it.Title), new(dates).read(it.Published) // of which names are made
			want.add(newItem(whole, it, at))
		}
		for _, items := range [][]Item{got.Items, want.items} {
			for i := range items {
				items[i].Also = 0 // which depends on the others
				if strings.Contains(path, "variant_namespace") {
					items[i].Summary = "" // of content, which gofeed finds by a prefix, and parts have none
				}
			}
		}
		if got.Title != title(whole, whole.Title) || !slices.Equal(got.Items, want.items) {
			t.Errorf("%s: %+v, as a whole %q %+v", path, got, whole.Title, want.items)
		}
		return nil
	})
	if err != nil || compared < 500 {
		t.Errorf("%d documents were compared: %v", compared, err)
	}
}

// FuzzParse: whatever is sent, an answer is given, with items that differ.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example), "text/xml; charset=utf-16")
	f.Add([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id></entry></feed>`), "")
	f.Add([]byte(`{"version":"https://jsonfeed.org/version/1","items":[{"id":"1"}]}`), "")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		got, err := Parse(body, contentType, at)
		if err != nil {
			return
		}
		known := map[uint64]bool{}
		for _, it := range got.Items {
			if known[it.ID] || len([]rune(it.Title)) > maxTitle {
				t.Fatalf("%+v", got)
			}
			known[it.ID] = true
		}
	})
}

// TestDepth: elements as deep as is allowed are read over, and what follows a deeper one is cut.
func TestDepth(t *testing.T) {
	for _, tt := range []struct{ depth, items int }{{maxDepth - 1, 2}, {maxDepth, 2}, {maxDepth + 1, 1}} {
		within := tt.depth - 2 // the root and the channel
		text := rssBegin + "<item><guid>1</guid></item>" + strings.Repeat("<a>", within) +
			strings.Repeat("</a>", within) + "<item><guid>2</guid></item>" + rssEnd
		f, err := Parse([]byte(text), "", &url.URL{Scheme: "http", Host: "h"})
		if err != nil || len(f.Items) != tt.items {
			t.Errorf("elements %d deep: %d items, %v; want %d", tt.depth, len(f.Items), err, tt.items)
		}
	}
}
