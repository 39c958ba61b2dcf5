package crawl

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var full = flag.Bool("full", false, "play 5000 feeds for two weeks, with a crash every hour; compare with rules on recordings")

const (
	shortest = 15 * time.Minute
	simTime  = "Sim-Time" // header of the simulated clock, ms
	simNames = ".test"
)

// kinds of feeds. A feed f0017.test is of the kind 17 mod their number.
var kinds = []string{
	"etag", "modified", "both", "none", "max-age", "ttl", "moved", "found", "loop", "gone", "429", "503", "date",
	"reset", "slow", "gzip bomb", "entities", "huge", "charset", "dates", "malformed", "disallowed", "shared", "shared", "etag", "max-age", "etag", "modified",
}

// site is what the referee knows of a feed.
type site struct {
	last      time.Time // request
	allowed   time.Time // the next one, by what the last answer said
	before    time.Time // allowed, before the last answer
	etag      string    // that was sent last
	oldTag    string    // that the last request had
	gone      bool
	moved     bool
	failures  int
	requests  int
	uncertain bool // the crawler was killed, and may not have had the last answer
}

// referee is a server of feeds that scores each rule.
type referee struct {
	*httptest.Server

	mu       sync.Mutex
	sites    map[string]*site
	busy     map[string]int       // requests under way, by host
	hosts    map[string]time.Time // to be left alone until
	robots   map[string]time.Time // last request
	wrong    map[string]int       // breaches by rule
	example  map[string]string
	hour     map[int64]int // feed requests by hour
	now      time.Time     // latest seen
	requests int
}

func newReferee(t testing.TB) *referee {
	r := &referee{
		sites: map[string]*site{}, busy: map[string]int{}, hosts: map[string]time.Time{}, robots: map[string]time.Time{},
		wrong: map[string]int{}, example: map[string]string{}, hour: map[int64]int{},
	}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *referee) breach(rule, format string, args ...any) {
	if r.wrong[rule]++; r.wrong[rule] == 1 {
		r.example[rule] = fmt.Sprintf(format, args...)
	}
}

func hash(parts ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, parts...)
	return h.Sum64() * 0x9e3779b97f4a7c15 >> 8
}

// address returns the address of feed k.
func address(k int) string {
	host := fmt.Sprintf("f%04d", k)
	if kinds[k%len(kinds)] == "shared" {
		host = fmt.Sprintf("shared%d", k/200)
	}
	return fmt.Sprintf("http://%s%s/%d/feed", host, simNames, k)
}

// killed forgives the crawler what it may not know of the requests at the time of
// its death.
func (r *referee) killed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sites {
		if s.last.Equal(r.now) {
			s.uncertain = true
		}
	}
	clear(r.robots)
	for h, until := range r.hosts {
		if until.After(r.now) {
			delete(r.hosts, h) // that of the last answer, perhaps
		}
	}
}

func (r *referee) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	ms, _ := strconv.ParseInt(q.Header.Get(simTime), 10, 64)
	now := time.UnixMilli(ms)
	host := q.Host
	r.mu.Lock()
	if now.After(r.now) {
		r.now = now
	}
	r.requests++
	if r.busy[host]++; r.busy[host] > 1 {
		r.breach("parallel connections", "%s", host)
	}
	if q.Header.Get("Cookie")+q.Header.Get("Referer")+q.URL.RawQuery != "" {
		r.breach("cookie, referer or query", "%s %v", q.URL, q.Header)
	}
	if !strings.Contains(q.Header.Get("User-Agent"), "@") {
		r.breach("no contact", "%s", q.Header.Get("User-Agent"))
	}
	if now.Before(r.hosts[host]) {
		r.breach("before the Retry-After of a host", "%s%s at %v, allowed from %v", host, q.URL.Path, now, r.hosts[host])
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.busy[host]--
		r.mu.Unlock()
	}()
	if q.URL.Path == "/robots.txt" {
		r.mu.Lock()
		if last, ok := r.robots[host]; ok && now.Sub(last) < 23*time.Hour {
			r.breach("robots.txt more than daily", "%s at %v and %v", host, last, now)
		}
		r.robots[host] = now
		r.mu.Unlock()
		io.WriteString(w, "User-agent: *\nDisallow: /secret\nDisallow: /21/\n")
		return
	}
	part := strings.Split(q.URL.Path, "/")
	k, err := strconv.Atoi(part[1])
	if err != nil || len(part) < 3 {
		r.breach("unknown address", "%s", q.URL)
		return
	}
	r.feed(w, q, k, part[2], now)
}

// feed answers for feed k. What is under /new is reached by redirects.
func (r *referee) feed(w http.ResponseWriter, q *http.Request, k int, path string, now time.Time) {
	kind := kinds[k%len(kinds)]
	key := fmt.Sprint(k, path)
	r.mu.Lock()
	s := r.sites[key]
	if s == nil {
		s = &site{}
		r.sites[key] = s
	}
	at := fmt.Sprintf("feed %d (%s) %s: %v after the last request, %d failures", k, kind, path, now.Sub(s.last), s.failures)
	if path == "feed" {
		r.hour[now.Unix()/3600]++
	}
	s.requests++
	allowed, uncertain := s.allowed, s.uncertain
	if uncertain && s.before.Before(allowed) {
		allowed = s.before
	}
	if s.requests > 1 && now.Sub(s.last) < shortest {
		r.breach("shortest interval", "%s", at)
	}
	if now.Before(allowed) {
		r.breach("before max-age, Retry-After, ttl or backoff", "%s, allowed after %v", at, allowed.Sub(s.last))
	}
	if s.gone && !uncertain {
		r.breach("after 410", "%s", at)
	}
	if s.moved && !uncertain {
		r.breach("at the old address", "%s", at)
	}
	got := q.Header.Get("If-None-Match") + q.Header.Get("If-Modified-Since")
	if got != s.etag && !(uncertain && got == s.oldTag) {
		rule := "changes of validators"
		if got == "" {
			rule = "unconditional requests"
		}
		r.breach(rule, "%s: %q, sent was %q", at, got, s.etag)
	}
	s.before, s.last, s.uncertain = s.allowed, now, false
	requests := s.requests
	r.mu.Unlock()

	// The rules that the answer sets are noted before it is given.
	wait := func(d time.Duration) {
		r.mu.Lock()
		s.allowed = now.Add(d)
		r.mu.Unlock()
	}
	failed := func(d time.Duration) {
		r.mu.Lock()
		s.failures++
		s.allowed = now.Add(max(d, min(shortest<<min(s.failures, 20), 24*time.Hour)))
		r.mu.Unlock()
	}
	chance := hash(k, requests) % 8
	tag := fmt.Sprintf(`W/"%d-%d"`, k, now.Unix()/7200+int64(k)) // it changes every two hours
	show := func(validators bool) {
		r.mu.Lock()
		s.failures = 0
		s.oldTag = got // which it still has if this answer is lost
		if s.allowed = now.Add(shortest); !validators {
			tag = ""
			s.allowed = now.Add(24 * time.Hour)
		}
		if s.etag != "" && s.etag == tag {
			r.mu.Unlock()
			w.WriteHeader(http.StatusNotModified)
			return
		}
		s.etag = tag
		r.mu.Unlock()
		if tag != "" {
			if kind == "modified" {
				w.Header().Set("Last-Modified", tag)
			} else {
				w.Header().Set("ETag", tag)
			}
		}
		body := page(k, kind, now)
		if kind == "slow" || chance > 0 {
			w.Write(body)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write(body)
		z.Close()
	}
	switch {
	case kind == "none":
		show(false)
	case kind == "max-age":
		w.Header().Set("Cache-Control", "max-age=7200, public")
		show(true)
		wait(2 * time.Hour)
	case kind == "ttl":
		show(true)
		wait(shortest) // a 304 says no ttl
	case kind == "moved" && path == "feed":
		r.mu.Lock()
		s.moved = true
		r.mu.Unlock()
		w.Header().Set("Location", fmt.Sprintf("http://new%d%s/%d/new", k, simNames, k))
		w.WriteHeader(http.StatusMovedPermanently)
	case kind == "found" && path == "feed":
		http.Redirect(w, q, fmt.Sprintf("http://cdn%s/%d/new", simNames, k), http.StatusFound)
	case kind == "loop":
		failed(0)
		http.Redirect(w, q, fmt.Sprintf("/%d/%s", k, path), http.StatusFound)
	case kind == "gone" && now.Unix()/86400%7 >= 3:
		r.mu.Lock()
		s.gone = true
		r.mu.Unlock()
		w.WriteHeader(http.StatusGone)
	case kind == "429" && chance < 3, kind == "503" && chance < 3, kind == "date" && chance < 3:
		d := time.Duration(1+hash(k, requests, "wait")%36) * time.Hour
		failed(d)
		r.mu.Lock()
		r.hosts[q.Host] = now.Add(d)
		r.mu.Unlock()
		w.Header().Set("Retry-After", fmt.Sprint(int(d.Seconds())))
		status := http.StatusServiceUnavailable
		if kind == "429" {
			status = http.StatusTooManyRequests
		}
		if kind == "date" {
			w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
			w.Header().Set("Retry-After", now.Add(d).UTC().Format(http.TimeFormat))
		}
		w.WriteHeader(status)
	case kind == "reset" && chance < 4:
		failed(0)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
	case kind == "slow" && chance < 1 && k < 10*len(kinds) && (*full || k < len(kinds)):
		failed(0)
		w.Write([]byte("<rss><channel>"))
		w.(http.Flusher).Flush()
		<-q.Context().Done()
	case kind == "gzip bomb" && chance < 4:
		failed(0)
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb())
	case kind == "huge" && chance < 4:
		failed(0)
		w.Header().Set("Content-Length", fmt.Sprint(100<<20))
		for b := make([]byte, 1<<20); q.Context().Err() == nil; {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	case kind == "malformed" && chance < 4:
		failed(0)
		io.WriteString(w, "<rss><channel><item></channel>")
	case kind == "disallowed" && strings.HasPrefix(q.URL.Path, "/21/"):
		r.mu.Lock()
		r.breach("disallowed by robots.txt", "%s", q.URL)
		r.mu.Unlock()
	default:
		show(true)
	}
}

// bomb returns 50 MB of nothing in 50 KB.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 50 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	return b.Bytes()
})

// page returns what feed k shows: its last 10 items, one every k%50+1 hours.
func page(k int, kind string, now time.Time) []byte {
	var b bytes.Buffer
	every := int64(k%50+1) * 3600
	head := ""
	switch kind {
	case "charset":
		b.WriteString(`<?xml version="1.0" encoding="klingon"?>`)
		head = "\xff\xfe\x01"
	case "entities":
		b.WriteString(`<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>`)
		head = strings.Repeat("&b;", 100)
	case "ttl":
		head = "</title><ttl>180</ttl><title>"
	}
	fmt.Fprintf(&b, `<rss version="2.0"><channel><title>%s</title>`, head)
	for n := now.Unix() / every; n > now.Unix()/every-10; n-- {
		at := time.Unix(n*every, 0)
		if kind == "dates" {
			at = at.AddDate(int(hash(k, n)%100)-50, 0, 0)
		}
		fmt.Fprintf(&b, `<item><guid>%d</guid><title>item</title><link>/i/%d</link><pubDate>%s</pubDate></item>`, n, n, at.UTC().Format(time.RFC1123Z))
	}
	b.WriteString(`</channel></rss>`)
	return b.Bytes()
}

// life is what a process is told that crawls until it is killed.
type life struct {
	Server, OPML, Dir string
	Begin, End        time.Time
	PerHour           float64
	Kill              bool // at a random moment of the last minute
}

// options returns those of a crawler with a simulated clock.
func (l *life) options(now *time.Time) Options {
	return Options{
		OPML: l.OPML, Dir: l.Dir, Agent: "ephemera-test (me@example.org)", PerHour: l.PerHour,
		Timeout: time.Second, Shortest: shortest, AllowPrivate: true, MaxBytes: 1 << 20, Workers: 32,
		Now: func() time.Time { return *now },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, l.Server)
		},
		Header: func(h http.Header) { h.Set(simTime, fmt.Sprint(now.UnixMilli())) },
	}
}

// live crawls by a simulated clock.
func (l *life) live() error {
	now := l.Begin
	c, err := Open(l.options(&now))
	if err != nil {
		return err
	}
	for ; now.Before(l.End); now = now.Add(time.Minute) {
		if l.Kill && l.End.Sub(now) <= time.Minute {
			go func() {
				time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}()
		}
		for {
			n, err := c.Tick()
			if err != nil {
				return err
			}
			c.Wait()
			if n == 0 {
				break
			}
		}
	}
	if l.Kill {
		select {}
	}
	return c.Close()
}

func TestMain(m *testing.M) {
	if text := os.Getenv("EPHEMERA_TEST_LIFE"); text != "" {
		var l life
		err := json.Unmarshal([]byte(text), &l)
		if err == nil {
			err = l.live()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// memoryDir returns a directory in memory, where the system has such.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "ephemera-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func writeOPML(t testing.TB, path string, urls ...string) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`<opml version="2.0"><body>`)
	for _, u := range urls {
		fmt.Fprintf(&b, `<outline text="feed" xmlUrl=%q/>`, u)
	}
	b.WriteString(`</body></opml>`)
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReferee: no rule of politeness is broken, whatever servers do and however
// often the crawler is killed.
func TestReferee(t *testing.T) {
	if testing.Short() {
		t.Skip("answers are late where the race detector runs, and requests that were given up count as under way")
	}
	n, perHour, days, every := 112, 120.0, 2, 6*time.Hour
	if *full {
		n, perHour, days, every = 5000, 3000, 14, time.Hour
	}
	r := newReferee(t)
	dir := memoryDir(t)
	l := life{Server: r.Listener.Addr().String(), OPML: filepath.Join(dir, "feeds.opml"), Dir: filepath.Join(dir, "state"), PerHour: perHour, Kill: true}
	urls := make([]string, n)
	for k := range urls {
		urls[k] = address(k)
	}
	writeOPML(t, l.OPML, urls...)
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	end := begin.AddDate(0, 0, days)
	for now := begin; now.Before(end); now = now.Add(every) {
		if last, ok := t.Deadline(); ok && *full && time.Until(last) < time.Minute {
			end = now // -timeout says how long it plays
			break
		}
		l.Begin, l.End = now, now.Add(every)
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "EPHEMERA_TEST_LIFE="+string(text))
		out, err := cmd.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%v: %s", err, out)
		}
		r.killed()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for rule, count := range r.wrong {
		t.Errorf("%s: %d times, such as %s", rule, count, r.example[rule])
	}
	most, feeds := 0, 0
	for _, c := range r.hour {
		most, feeds = max(most, c), feeds+c
	}
	if limit := int(perHour*1.2) + 32; most > limit {
		t.Errorf("%d requests in an hour; allowed are %v", most, perHour)
	}
	allowed := perHour * end.Sub(begin).Hours()
	t.Logf("%v: %d requests, %d of them for feeds, of %.0f, and %.0f crashes", end.Sub(begin), r.requests, feeds, allowed, end.Sub(begin).Hours()/every.Hours())
	if float64(feeds) < .5*allowed {
		t.Errorf("%d requests for feeds", feeds)
	}
}
