package crawl

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/live/clock"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

var (
	full = flag.Bool("full", false,
		"play many feeds for a week, with a crash every hour; compare with rules on recordings")
	feeds = flag.Int("feeds", 5000, "how many those are")
)

const (
	shortest = 15 * time.Minute
	longest  = 24 * time.Hour
	simNames = ".test"

	// Headers of the simulated network.
	simTime  = "Sim-Time"  // ms
	simClock = "Sim-Clock" // ms, what the crawler's clock shows
	simAlone = "Sim-Alone" // true if no other connection to the host is open
	simSlow  = "Sim-Slow"  // the server sends no more than a part
)

// kinds of feeds. A feed f0017.test is of the kind 17 mod their number.
var kinds = []string{
	"etag", "modified", "both", "none", "max-age", "ttl", "moved", "found", "loop", "gone", "429", "503", "date",
	"reset", "slow", "gzip bomb", "entities", "huge", "charset", "dates", "malformed", "disallowed",
	"shared", "shared", "etag", "max-age", "etag", "hub",
	"year", "month", "404", "retry", "expires", "hourly", "skip",
	"deep", "endless", "year 0", "tracked", "letters", "JSON", "gone for now", "hubs",
}

// site is what the referee knows of the address of a feed, of a robots.txt, or of a host.
type site struct {
	feed     string // its address on the list; empty for hosts and robots.txt
	requests int
	rules
	before  rules     // the last request
	unsure  bool      // a crash may have lost the last answer
	behind  *site     // the host that it redirects to, if it does
	delayed time.Time // allowed, where the clock was set back and nobody could tell
}

// rules are what the answers of a site ask for.
type rules struct {
	last     time.Time // request
	allowed  time.Time // the next request
	why      string    // the rule for that
	must     time.Time // the next request is made by then; zero for never
	tag      string    // the validators that it has
	failures int
	newest   int64 // item that it was shown
	items    int64 // that it was shown
}

// broken returns the rule that a request breaks, or nothing. Between two there is a
// shortest time, by a rule that has a name.
func (s *rules) broken(now time.Time, tag string, shortest time.Duration, name string) string {
	switch {
	case now.Sub(s.last) < shortest:
		return name
	case now.Before(s.allowed):
		return s.why
	case tag == "" && s.tag != "":
		return "unconditional requests"
	case tag != s.tag:
		return "changes of validators"
	}
	return ""
}

// referee is a server of feeds that scores each rule.
type referee struct {
	*httptest.Server
	perHour float64

	mu       sync.Mutex
	begin    time.Time // of the life that lasts
	sites    map[string]*site
	wrong    map[string][]string // breaches by rule
	recent   []time.Time         // feed requests, as many as are allowed in an hour
	requests int
	looks    int // requests for feeds
	unsure   int // sites whose last answer a crash may have lost
	lost     int // of these, those that were taken up as before the answer

	forms []url.Values // that hubs were sent
	tell  bool         // hubs tell what is new, so that feeds need one look a day
	exact bool         // validators change when there is an item, and not each two hours
}

func newReferee(t testing.TB, perHour float64) *referee {
	r := &referee{perHour: perHour, sites: map[string]*site{}, wrong: map[string][]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// rest waits for the requests under way, so that what was noted of them can be read.
func (r *referee) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
}

// breach notes that a rule is broken, if it is.
func (r *referee) breach(broken bool, rule, format string, args ...any) {
	if broken {
		r.wrong[rule] = append(r.wrong[rule], fmt.Sprintf(format, args...))
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func draw(parts ...any) uint64 {
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

// crashed notes that the answers may be lost that were not on disk at a time: those of the
// requests that were under way. The crawler may hold to them, or to what was before, and
// then leaves those feeds alone for an hour, also where it did not come to send a request.
// The next life begins at a time.
func (r *referee) crashed(onDisk, begin time.Time, held map[string]bool) {
	r.CloseClientConnections()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin = begin
	for key, s := range r.sites {
		for _, of := range []*rules{&s.rules, &s.before} { // by one of which the next request is judged
			if held[s.feed] && !of.must.IsZero() {
				of.must = later(of.must, begin.Add(time.Hour))
			}
		}
		if s.last.After(onDisk) {
			s.unsure = true
			r.unsure++
			if strings.HasPrefix(key, "feed") {
				s.before.allowed = s.last.Add(max(time.Hour, s.before.allowed.Sub(s.last)))
				s.before.why = "soon after a crash"
			}
		}
	}
}

// visit judges a request, and returns what is known of where it goes.
func (r *referee) visit(key string, now time.Time, tag string, shortest time.Duration, name string) *site {
	s := r.sites[key]
	if s == nil {
		s = &site{}
		r.sites[key] = s
	}
	rule := s.broken(now, tag, shortest, name)
	if s.unsure && rule != "" && s.before.broken(now, tag, shortest, name) == "" {
		s.rules, rule = s.before, ""
		r.lost++
	}
	r.breach(rule != "", rule, "%s: %v after the last request, %d failures, allowed after %v: %q, sent was %q",
		key, now.Sub(s.last), s.failures, s.allowed.Sub(s.last), tag, s.tag)
	if s.unsure {
		s.failures = min(s.failures, s.before.failures)
	}
	r.silent(key, s, now)
	s.requests++
	s.before, s.unsure, s.last = s.rules, false, now
	return s
}

// delay has all sites be asked for later than they had to be, and also than hosts wanted.
func (r *referee) delay(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sites {
		s.delayed = s.allowed.Add(by)
		for _, of := range []*rules{&s.rules, &s.before} {
			if !of.must.IsZero() {
				of.must = of.must.Add(by)
			}
		}
	}
}

// silent notes that a site was not asked for in too long, if it was not. What is due waits for
// its turn, and an epoch may be late. The host that it redirects to may ask again and again, at
// requests for its other feeds, to be left alone.
func (r *referee) silent(key string, s *site, now time.Time) {
	must := s.must
	if s.behind != nil {
		must = later(later(must, s.behind.allowed), s.behind.delayed)
	}
	late := now.Sub(must)
	r.breach(!s.must.IsZero() && late > time.Hour, "silence",
		"%s: at %v %v later than %v after the last request, %d failures, an answer lost: %v",
		key, now.UTC(), late, must.Sub(s.last), s.failures, s.unsure)
}

func (r *referee) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	ms, _ := strconv.ParseInt(q.Header.Get(simTime), 10, 64)
	now := time.UnixMilli(ms)
	part := append(strings.Split(q.URL.Path, "/"), "", "")
	k, err := strconv.Atoi(part[1])
	answer := func() {}
	r.mu.Lock()
	if now.Before(r.begin) { // a busy machine hands it over when who sent it is dead
		r.mu.Unlock()
		return
	}
	r.requests++
	private := q.Header.Get("Cookie") + q.Header.Get("Referer") + q.URL.RawQuery
	r.breach(private != "", "cookie, referer or query", "%s %v", q.URL, q.Header)
	r.breach(!strings.Contains(q.Header.Get("User-Agent"), "@"), "no contact", "%s", q.Header.Get("User-Agent"))
	r.breach(q.Header.Get(simAlone) != "true", "parallel connections", "%s", q.URL)
	host := r.visit("host "+q.Host, now, "", 0, "")
	switch {
	case q.URL.Path == "/robots.txt":
		r.visit("robots.txt of "+q.Host, now, "", 23*time.Hour, "robots.txt more than daily")
		answer = func() { io.WriteString(w, "User-agent: *\nDisallow: /secret\nDisallow: /21/\n") }
	case q.URL.Path == "/hub":
		q.ParseForm()
		topic := q.PostForm.Get("hub.topic")
		r.visit("hub of "+topic, now, "", 23*time.Hour, "hubs more than daily")
		r.breach(q.Header.Get("Authorization") != "", "credentials of a hub", "%s", topic)
		r.forms = append(r.forms, q.PostForm)
	default:
		r.breach(err != nil, "unknown address", "%s", q.URL)
		r.breach(k == 21, "disallowed by robots.txt", "%s", q.URL)
		answer = r.feed(w, q, host, k, part[2], now)
	}
	r.mu.Unlock()
	answer()
}

// feed judges a request for feed k, notes what the answer asks for, and returns the
// answer. What is under /new is reached by redirects.
func (r *referee) feed(
	w http.ResponseWriter, q *http.Request, host *site, k int, path string, now time.Time,
) (answer func()) {
	kind := kinds[k%len(kinds)]
	if path == "feed" {
		r.looks++
		if n := int(r.perHour); len(r.recent) == n {
			r.breach(now.Sub(r.recent[0]) < time.Hour, "requests an hour", "%d in %v", n+1, now.Sub(r.recent[0]))
			r.recent = r.recent[1:]
		}
		r.recent = append(r.recent, now)
	}
	tag := q.Header.Get("If-None-Match") + q.Header.Get("If-Modified-Since")
	s := r.visit(fmt.Sprintf("feed %d (%s) %s", k, kind, path), now, tag, shortest, "shortest interval")
	s.feed, s.why = address(k), "before max-age, Retry-After, ttl or backoff"

	head := w.Header()
	status := func(code int) func() { return func() { w.WriteHeader(code) } }
	fail := func(wait time.Duration) {
		s.failures++
		s.must = now.Add(max(wait, longest))
		s.allowed = now.Add(max(wait, min(shortest<<min(s.failures, 20), 16*time.Hour)))
	}
	// show answers with the feed, or that it has not changed, not to be asked for
	// again for that long.
	chance := draw(k, s.requests) % 8
	show := func(tag string, wait, unchanged time.Duration) func() {
		s.failures, s.allowed, s.must = 0, now.Add(wait), now.Add(longest)
		newest := now.Unix() / every(k)
		if s.tag != "" && s.tag == tag {
			s.allowed = now.Add(unchanged)
			return status(http.StatusNotModified)
		}
		s.tag, s.items, s.newest = tag, s.items+min(pageItems, newest-s.newest), newest
		etag, modified := tag, ""
		switch kind {
		case "modified":
			etag, modified = "", tag
		case "both":
			etag, modified = tag[:5], tag[5:]
		}
		head["Etag"], head["Last-Modified"] = []string{etag}, []string{modified}
		return func() {
			body := page(k, kind, newest)
			if chance == 0 {
				head.Set("Content-Encoding", "gzip")
				body = zipped(body)
			}
			w.Write(body)
		}
	}
	defer func() {
		if kind == "found" && path != "feed" { // it is behind the other, which waits for as long
			before := r.sites[fmt.Sprintf("feed %d (found) feed", k)]
			before.must = later(before.must, s.must)
			s.must = time.Time{}
		}
	}()
	lasts := int64(7200) // until validators change; what appears meanwhile is hidden from who was there before
	if r.exact {
		lasts = every(k)
	}
	tag = fmt.Sprintf(`W/"%d-%d"`, k, now.Unix()/lasts+int64(k))
	switch {
	case kind == "none":
		s.why = "whole feeds more than hourly"
		return show("", time.Hour, 0)
	case kind == "max-age":
		head.Set("Cache-Control", "max-age=7200, public")
		return show(tag, 2*time.Hour, 2*time.Hour)
	case kind == "ttl":
		return show(tag, 3*time.Hour, 3*time.Hour) // also after a 304, which does not repeat it
	case kind == "year":
		head.Set("Cache-Control", "max-age=31536000")
		return show(tag, longest, longest)
	case kind == "month":
		return show(tag, longest, longest)
	case kind == "404" && chance < 4:
		head.Set("Cache-Control", "max-age=31536000")
		fail(longest)
		return status(http.StatusNotFound)
	case kind == "retry" && chance < 1:
		const week = 7 * 24 * time.Hour
		fail(week)
		host.allowed, host.why = now.Add(week), "before the Retry-After of a host"
		head.Set("Retry-After", "31536000")
		return status(http.StatusServiceUnavailable)
	case kind == "expires":
		head.Set("Date", now.UTC().Format(http.TimeFormat))
		head.Set("Expires", now.Add(5*time.Hour).UTC().Format(http.TimeFormat))
		return show(tag, 5*time.Hour-time.Second, 5*time.Hour-time.Second)
	case kind == "hourly":
		return show(tag, time.Hour, time.Hour)
	case kind == "skip":
		ms, _ := strconv.ParseInt(q.Header.Get(simClock), 10, 64)
		r.breach(time.UnixMilli(ms).UTC().Hour() >= 6 && s.tag != "", "hours that are skipped",
			"%s: %v after %v, sent %q of %q", q.URL, now, now.Sub(s.before.last), tag, s.tag)
	case kind == "hub":
		head.Set("Link", fmt.Sprintf(`<http://hub%s/hub>; rel="hub", <http://%s/topic>; rel="self"`, simNames, q.Host))
		if r.tell {
			return show(tag, 24*time.Hour, 24*time.Hour)
		}
	case kind == "hubs": // another one each time, some of them with credentials
		head.Set("Link", fmt.Sprintf(`<http://%shub%d%s/hub>; rel="hub", <http://%s/topic>; rel="self"`,
			[]string{"", "user:password@"}[chance%2], draw(k, s.requests)%100, simNames, q.Host))
	case kind == "gone for now":
		s.why = "before the backoff"
		if fail(0); path == "feed" {
			head.Set("Location", fmt.Sprintf("http://new%d%s/%d/new", k, simNames, k))
			return status(http.StatusFound)
		}
		s.must = time.Time{} // it is behind the other
		return status(http.StatusGone)
	case kind == "moved" && path == "feed":
		s.allowed, s.why = now.AddDate(9, 0, 0), "at the old address"
		head.Set("Location", fmt.Sprintf("http://new%d%s/%d/new", k, simNames, k))
		return status(http.StatusMovedPermanently)
	case kind == "found" && path == "feed":
		s.must, s.behind = now.Add(longest), r.sites["host cdn"+simNames]
		head.Set("Location", fmt.Sprintf("http://cdn%s/%d/new", simNames, k))
		return status(http.StatusFound)
	case kind == "loop":
		fail(0)
		head.Set("Location", fmt.Sprintf("/%d/%s", k, path))
		return status(http.StatusFound)
	case kind == "gone" && now.Unix()/86400%7 >= 3:
		s.allowed, s.why = now.AddDate(9, 0, 0), "after 410"
		return status(http.StatusGone)
	case (kind == "429" || kind == "503" || kind == "date") && chance < 3,
		kind == "found" && draw(k, s.requests)%20 == 0:
		wait := time.Duration(1+draw(k, s.requests, "wait")%36) * time.Hour
		fail(wait)
		host.allowed, host.why = now.Add(wait), "before the Retry-After of a host"
		head.Set("Retry-After", fmt.Sprint(int(wait.Seconds())))
		if kind == "date" {
			head.Set("Date", now.UTC().Format(http.TimeFormat))
			head.Set("Retry-After", now.Add(wait).UTC().Format(http.TimeFormat))
		}
		if kind == "503" {
			return status(http.StatusServiceUnavailable)
		}
		return status(http.StatusTooManyRequests)
	case badAnswers[kind] != nil && chance < 4:
		fail(0)
		return func() { badAnswers[kind](w, q) }
	}
	return show(tag, shortest, shortest)
}

// badAnswers are those of feeds that fail half of the time.
var badAnswers = map[string]http.HandlerFunc{
	"malformed": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<rss><channel><item></channel>") },
	"reset": func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		check(err)
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	},
	"slow": func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set(simSlow, "yes")
		io.WriteString(w, "<rss><channel>")
		w.(http.Flusher).Flush()
		<-q.Context().Done()
	},
	"gzip bomb": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb())
	},
	"huge": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(100<<20))
		io.CopyN(w, rand.NewChaCha8([32]byte{}), 100<<20)
	},
}

var bomb = sync.OnceValue(func() []byte { return zipped(make([]byte, 2*maxBytes)) })

func zipped(text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(text)
	z.Close()
	return b.Bytes()
}

const pageItems = 10 // that a feed shows

// every returns the seconds from one item of feed k to the next.
func every(k int) int64 { return int64(k%50+1) * 3600 }

// What feeds of some kinds have before the feed, and as its title.
var (
	prologs = map[string]string{
		"charset":  `<?xml version="1.0" encoding="klingon"?>`,
		"entities": `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>`,
	}
	titles = map[string]string{
		"charset": "\xff\xfe\x01", "entities": strings.Repeat("&b;", 100), "ttl": "</title><ttl>180</ttl><title>",
		"month": "</title><ttl>43200</ttl><title>",
		"hourly": `</title><updatePeriod xmlns="http://purl.org/rss/1.0/modules/syndication/">hourly</updatePeriod>` +
			`<title>`,
		"skip": "</title><skipHours><hour>6</hour><hour>7</hour><hour>8</hour><hour>9</hour><hour>10</hour>" +
			"<hour>11</hour><hour>12</hour><hour>13</hour><hour>14</hour><hour>15</hour><hour>16</hour>" +
			"<hour>17</hour><hour>18</hour><hour>19</hour><hour>20</hour><hour>21</hour><hour>22</hour>" +
			"<hour>23</hour></skipHours><title>",
	}
)

// page returns what feed k shows: its last items, and what breaks readers.
func page(k int, kind string, newest int64) []byte {
	var b bytes.Buffer
	begin, end := `<rss version="2.0"><channel><title>%s</title>`, `</channel></rss>`
	each := `<item><guid>%[1]d</guid><title>item</title><link>/i/%[1]d</link><pubDate>%[2]s</pubDate></item>`
	title := titles[kind]
	far := strings.Repeat("far ", 400*int(newest%2)) // where a letter is the first one beyond US-ASCII
	switch kind {
	case "tracked":
		each = fmt.Sprintf("<item><title>item</title><link>/i/%%[1]d?utm_source=%d</link>"+
			"<pubDate>%%[2]s</pubDate></item>", newest)
	case "year 0":
		each = `<item><guid>%[1]d</guid><title>item</title>` +
			`<pubDate>Sat, 1 Jan 00:30:00 CET</pubDate><link>%.0[2]s</link></item>`
	case "letters":
		title, each = far, strings.ReplaceAll(each, "<guid>", "<guid>Zürich ")
	case "JSON":
		begin, end, title = `{"title":"%s","items":[`, `{}]}`, far
		each = `{"id":"Zürich %[1]d","date_published":"%[2]s"},`
	case "deep":
		end = "\x08" + strings.Repeat("<a:b>", size(k, newest)/5)
	case "endless":
		end = strings.Repeat("<item/>", size(k, newest)/7) + end
	}
	fmt.Fprintf(&b, "%s"+begin, prologs[kind], title)
	for n := newest; n > newest-pageItems; n-- {
		at := time.Unix(n*every(k), 0)
		if kind == "dates" {
			at = at.AddDate(int(draw(k, n)%100)-50, 0, 0)
		}
		layout := time.RFC1123Z
		if kind == "JSON" {
			layout = time.RFC3339
		}
		fmt.Fprintf(&b, each, n, at.UTC().Format(layout))
	}
	b.WriteString(end)
	return b.Bytes()
}

// size returns how many bytes a hostile feed has: now and then as many as are read.
func size(k int, newest int64) int {
	switch {
	case draw(k, newest)%100 > 0:
		return 20_000
	case *full:
		return maxBytes - 100_000
	}
	return maxBytes/10 - 10_000
}

// life is what a process is given that crawls until it is killed.
type life struct {
	Server, OPML, Dir string
	Begin, End        time.Time
	PerHour           float64
	Shortest          time.Duration // 15 minutes if it is 0
	Ahead             time.Duration // of the crawler's clock
	Boot              string        // of the machine; without one no step of the clock is found
	Fault             string        // in the table of faults
	Miniflux, Token   string        // of the reader that fetches the feeds, which Server serves; empty for this program
	Full              bool
	Step              time.Duration // by which its clock is set while it lives
	Reader            Reader        `json:"-"`
	Shadow            bool
	disk              vfs.FS // of the state; nil for that of the machine
	rest              func() // waits until the referee notes nothing more; nil without one
}

// network is how a crawler under test reaches the referee. It sees which connections are
// open at once, and time passes at once where a server sends no more.
type network struct {
	server string
	fault  fault
	now    func() time.Time
	shown  func() time.Time // by the crawler's clock
	open   sync.Map         // of a host, its connection
}

func (n *network) dial(ctx context.Context, name, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, name, n.server)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: c, network: n, address: address}
	_, w.parallel = n.open.LoadOrStore(address, w)
	return w, nil
}

// wire is a connection to the referee.
type wire struct {
	net.Conn
	*network
	address  string
	parallel bool // another one to that host was open
	slow     bool
}

func (w *wire) Read(b []byte) (int, error) {
	if w.slow {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := w.Conn.Read(b)
	w.slow = bytes.Contains(b[:n], []byte(simSlow))
	copy(b, w.fault.change(b[:n]))
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	b = w.fault.change(b)
	first := fmt.Sprintf("%s: %d\r\n%s: %d\r\n%s: %v\r\nUser-Agent:",
		simTime, w.now().UnixMilli(), simClock, w.shown().UnixMilli(), simAlone, !w.parallel)
	_, err := w.Conn.Write(bytes.Replace(b, []byte("User-Agent:"), []byte(first), 1))
	return len(b), err
}

// RemoteAddr implements [net.Conn]: it is of the public network.
func (w *wire) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(1, 1, 1, 1), Port: 80} }

func (w *wire) Close() error {
	w.open.CompareAndDelete(string(w.fault.change([]byte(w.address))), w)
	return w.Conn.Close()
}

// newLife returns a life that begins with a list of feeds.
func newLife(t testing.TB, server *httptest.Server, perHour float64, urls ...string) life {
	dir := t.TempDir()
	l := life{
		Server: server.Listener.Addr().String(),
		OPML:   filepath.Join(dir, "feeds.opml"), Dir: filepath.Join(dir, "state"),
		Begin: time.Date(2026, 3, 2, 0, 1, 0, 0, time.UTC), PerHour: perHour,
	}
	if r, ok := server.Config.Handler.(*referee); ok {
		l.rest = r.rest
	}
	check(os.WriteFile(l.OPML, []byte(opml(urls...)), 0o644))
	return l
}

// sim is a crawler with a simulated clock.
type sim struct {
	*Crawler
	life
	now    time.Time
	took   atomic.Int64 // how long the answers of this round have taken
	onDisk io.Writer    // takes up to when the answers are
}

func (l life) open(onDisk io.Writer) *sim {
	s := &sim{life: l, now: l.Begin, onDisk: onDisk}
	n := &network{
		server: l.Server, fault: faults[l.Fault],
		now:   func() time.Time { return s.now.Add(time.Duration(s.took.Load())) },
		shown: func() time.Time { return s.now.Add(s.Ahead + time.Duration(s.took.Load())) },
	}
	o := Options{
		OPML: l.OPML, Dir: l.Dir, Agent: "ephemera-test (me@example.org)", PerHour: l.PerHour,
		Shortest: cmp.Or(l.Shortest, shortest), Longest: 24 * time.Hour, Unvalidated: time.Hour,
		Now:    n.shown,
		Uptime: func() clock.Uptime { return clock.Uptime{Boot: s.Boot, Up: time.Duration(n.now().UnixNano())} },
		Log:    slog.New(slog.DiscardHandler), disk: l.disk,
		pause: func(_ context.Context, d time.Duration) { s.now = s.now.Add(d) },
	}
	o.Reader, o.Shadow = l.Reader, l.Shadow
	if l.Miniflux != "" {
		o.Reader = &paced{NewMiniflux(l.Miniflux, l.Token), s}
	}
	if n.fault.options != nil {
		n.fault.options(&o)
	}
	s.Crawler = must(Open(context.Background(), o))
	s.fetcher.MaxBytes, s.fetcher.Dial, s.fetcher.DialHub = l.most(), n.dial, n.dial
	s.fetcher.Timeout = time.Hour // a server that sends no more is late at once; a busy machine is not a late server
	return s
}

// round makes the requests of a moment.
func (s *sim) round() (begun int) {
	begun = must(s.Tick())
	if s.Wait(); begun > 0 {
		fmt.Fprintln(s.onDisk, s.now.UnixMilli())
	}
	s.now = s.now.Add(time.Millisecond + time.Duration(s.took.Swap(0)))
	return begun
}

// hold goes on to when the first feed may be asked for that was handed out early, if that is within the
// minute, and reports whether there is one.
func (s *sim) hold() bool {
	next := s.now.Truncate(time.Minute).Add(time.Minute)
	for _, address := range s.early {
		at, _ := s.free(s.feeds[address], s.now.Add(s.Ahead))
		if at = at.Add(-s.Ahead); at.After(s.now) && at.Before(next) {
			next = at
		}
	}
	if next.Equal(s.now.Truncate(time.Minute).Add(time.Minute)) {
		return false
	}
	s.now = next
	return true
}

func (s *sim) pass(d time.Duration) *sim {
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Truncate(time.Minute).Add(time.Minute) {
		for s.round() > 0 || s.hold() {
		}
	}
	if s.rest != nil {
		s.rest()
	}
	return s
}

// most returns how many bytes of a feed are read, which is a tenth unless all is played.
func (l life) most() int64 {
	if l.Full {
		return maxBytes
	}
	return maxBytes / 10
}

// peak returns the most memory that this process has held, in MB, or 0 where the system does not
// say. The one that waits for it would see its own, which a child begins with.
func peak() (mb int64) {
	status, _ := os.ReadFile("/proc/self/status")
	if _, text, ok := strings.Cut(string(status), "VmHWM:"); ok {
		fmt.Sscan(text, &mb)
	}
	return mb >> 10
}

// live dies by SIGKILL at a random moment of the last epoch.
func (l life) live() {
	s := l.open(os.Stdout)
	s.LimitMemory()
	s.opt.PublicURL = "https://me.example.org"
	length, _ := s.opt.epoch()
	whole := l.End.Sub(l.Begin) - length
	first := time.Duration(rand.Float64() * float64(whole)).Truncate(time.Minute)
	s.pass(first)
	s.Ahead += l.Step
	s.pass(whole - first)
	wait := time.Duration(rand.Float64() * l.PerHour / 12 * float64(time.Millisecond))
	fmt.Fprintln(os.Stderr, peak())
	time.AfterFunc(wait, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	for {
		s.round()
	}
}

func TestMain(m *testing.M) {
	if text := os.Getenv("EPHEMERA_TEST_LIFE"); text != "" {
		var l life
		json.Unmarshal([]byte(text), &l)
		if l.Shadow {
			l.watch()
		}
		l.live()
	}
	if _, err := os.Stat("/dev/shm"); err == nil {
		os.Setenv("TMPDIR", "/dev/shm") // weeks of disk are played in minutes
	}
	os.Exit(m.Run())
}

// must returns a value without which the tests do not go on.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func opml(feeds ...string) string {
	return `<opml><body><outline xmlUrl="` + strings.Join(feeds, `"/><outline xmlUrl="`) + `"/></body></opml>`
}

// set has the clock be set by the next of some steps, spread over so many lives, if it is time:
// while the crawler lives, or before, and then back also while the machine is off. It returns
// by how much it was set back so that nobody can tell, as what was kept was before that too.
func (l *life) set(steps []time.Duration, life, lives int) (untold time.Duration) {
	l.Step = 0
	for j, step := range steps {
		switch {
		case life != (2*j+1)*lives/(2*len(steps)):
		case j%2 == 0:
			l.Step = step
		default:
			if l.Ahead += step; step < -time.Minute {
				if l.Boot += "1"; -step < longest {
					untold = -step
				}
			}
		}
	}
	return untold
}

// held returns the feeds that were being asked for at a kill.
func (l life) held() map[string]bool {
	now := func() time.Time { return l.End.Add(l.Ahead) }
	s := must(store.Open(l.Dir, &store.Options{Memory: 1 << 20, Now: now}))
	defer s.Close()
	feeds := map[string]bool{}
	s.View(func(s *schedule.Schedule) {
		for t := range s.Held {
			feeds[t.URL.Name] = true
		}
	})
	return feeds
}

// play has a crawler of n feeds killed again and again for some days, and its clock set. One with
// a fault is played until that is noticed.
func play(t *testing.T, r *referee, fault string, n, days int, every time.Duration, steps ...time.Duration) {
	urls := []string{"none.xml", "feed:", "gopher://a.test/feed"}
	for k := range n {
		url := address(k)
		if k%10 == 3 {
			url = strings.Replace(url, "http:", "feed:", 1)
		}
		urls = append(urls, url)
	}
	l := newLife(t, r.Server, r.perHour, urls...)
	l.Fault, l.Boot, l.Full = fault, "1", *full
	begin, lives, memory := l.Begin, 0, int64(0)
	for end := begin.AddDate(0, 0, days); l.Begin.Before(end); l.Begin = l.End {
		if last, ok := t.Deadline(); ok && *full && time.Until(last) < time.Minute {
			break // -timeout says how long it plays
		}
		l.End = l.Begin.Add(every)
		if d := l.set(steps, lives, days*24/int(every.Hours())); d > 0 {
			r.delay(d)
		}
		if *full && lives%10 == 0 {
			t.Logf("%v: %d lives, %d requests", time.Now().Format(time.TimeOnly), lives, r.requests)
		}
		text := must(json.Marshal(l))
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "EPHEMERA_TEST_LIFE="+string(text))
		out, err := cmd.Output()
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%v: %s", err, exit.Stderr)
		}
		held, _ := strconv.ParseInt(strings.TrimSpace(string(exit.Stderr)), 10, 64)
		memory = max(memory, held)
		l.Ahead += l.Step
		lives++
		times := strings.Fields(string(out))
		ms, _ := strconv.ParseInt(times[len(times)-1], 10, 64)
		r.crashed(time.UnixMilli(ms), l.End, l.held())
		r.mu.Lock()
		noticed := len(r.wrong[fault]) > 0
		r.mu.Unlock()
		if noticed {
			return
		}
	}
	allowed := r.perHour * l.End.Sub(begin).Hours()
	t.Logf("%v: %d requests, %d of them for feeds, of %.0f; "+
		"%d crashes, in which %d answers may be lost and %d were; %d MB",
		l.End.Sub(begin), r.requests, r.looks, allowed, lives, r.unsure, r.lost, memory)
	r.breach(memory == 0 && runtime.GOOS == "linux" || memory > 400, "memory", "%d MB", memory)
	r.breach(float64(r.looks) < .5*allowed, "too few requests", "%d", r.looks)
	for key, s := range r.sites {
		r.silent(key, s, l.End)
	}
	r.compare(l)
	if len(steps) > 0 {
		delete(r.wrong, "impossible dates") // which they are by the clock of then
	}
}

// compare notes items that a crawler was shown and has not kept, or kept twice, and
// dates at which they cannot have appeared.
func (r *referee) compare(l life) {
	c := l.open(io.Discard)
	defer c.Close()
	missing, believed := map[string]int64{}, map[bool]int{}
	for key, s := range r.sites {
		var k int
		if n, _ := fmt.Sscanf(key, "feed %d", &k); n == 0 {
			continue
		}
		if missing[address(k)] += s.items; s.unsure {
			missing[address(k)] = math.MinInt32 // nobody knows
		}
	}
	err := c.journal(0, func(e *entry) bool {
		missing[e.Feed] -= int64(len(e.Items))
		for _, it := range e.Items {
			at := it.Published
			believed[!at.IsZero()]++
			r.breach(!at.IsZero() && (at.After(e.At) || at.Before(e.Previous)), "impossible dates",
				"%s: %v, found at %v after a look at %v", e.Feed, at, e.At, e.Previous)
		}
		return true
	})
	for feed, n := range missing {
		r.breach(n != 0 && n > math.MinInt32/2, "missing items", "%s: %d", feed, n)
	}
	dated, undated := believed[true], believed[false]
	r.breach(err != nil || dated == 0 || undated == 0 || dated+undated != c.stats.Items, "wrong sums",
		"%d items have dates, %d have none, and the sum is %d: %v", dated, undated, c.stats.Items, err)
}

// TestReferee: no rule of politeness is broken, no feed is forgotten and no item lost, whatever
// servers do, however often the crawler is killed, and whatever its clock is set to.
func TestReferee(t *testing.T) {
	const year = 365 * 24 * time.Hour
	n, perHour, days, every := 129, 120.0, 2, 4*time.Hour
	switch {
	case *full:
		n, perHour, days, every = *feeds, 1.6*float64(*feeds), 7, time.Hour
	case testing.Short():
		n, perHour, days, every = 43, 40, 1, 2*time.Hour
	}
	r := newReferee(t, perHour)
	play(t, r, "", n, days, every,
		time.Second, -time.Second, time.Hour, -time.Hour, year/12, -year/12, -year, year, 30*year, -30*year)
	for rule, breaches := range r.wrong {
		first := strings.Join(breaches[:min(10, len(breaches))], "\n")
		t.Errorf("%s: %d times, such as\n%s", rule, len(breaches), first)
	}
}

// fault is what a crawler does wrong: what it sends and hears is changed, or its
// options are.
type fault struct {
	from, to string // equally long
	options  func(*Options)
	days     int // until it shows; 0 stands for 1
}

func (f *fault) change(b []byte) []byte {
	if f.from == "" {
		return b
	}
	return bytes.ReplaceAll(b, []byte(f.from), []byte(f.to))
}

// faults are named after the rules that they break.
var faults = map[string]fault{
	"before max-age, Retry-After, ttl or backoff": {from: "max-age=7200", to: "max-age=0000"},
	"before the Retry-After of a host":            {from: "Retry-After", to: "Retry-Aftex"},
	"after 410":                                   {from: "410 Gone", to: "404 Gone"},
	"at the old address":                          {from: "301 Moved", to: "302 Moved"},
	"disallowed by robots.txt":                    {from: "Disallow: /21/", to: "Disallow: /99/"},
	"robots.txt more than daily":                  {from: "200 OK", to: "500 OK"},
	"unconditional requests":                      {from: "If-None-Match", to: "Xf-None-Match"},
	"changes of validators":                       {from: `W/"`, to: `V/"`},
	"no contact":                                  {from: "me@example", to: "me.example"},
	"cookie, referer or query":                    {from: "Accept:", to: "Cookie:"},
	"parallel connections":                        {from: ".test:http", to: ".test:open"}, // it leaves connections open
	"shortest interval":                           {options: func(o *Options) { o.Shortest = time.Minute }},
	"requests an hour":                            {options: func(o *Options) { o.PerHour *= 4 }},
	"hours that are skipped":                      {from: "skipHours>", to: "skipHxurs>"},
	"missing items":                               {from: "<item>", to: "<itex>"},
	"whole feeds more than hourly":                {options: func(o *Options) { o.Unvalidated = 0 }},
	"silence":                                     {options: func(o *Options) { o.Unvalidated *= 72 }, days: 2},
}

// TestFaults: the referee notices each kind of fault, although the crawler is killed
// again and again.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	for _, rule := range slices.Sorted(maps.Keys(faults)) {
		t.Run(rule, func(t *testing.T) {
			r := newReferee(t, 120)
			play(t, r, rule, 112, max(1, faults[rule].days), 2*time.Hour)
			if len(r.wrong[rule]) == 0 {
				t.Error("it was not noticed")
			}
		})
	}
}

// TestRefereeAgainstRules compares the crawler over two weeks of the referee's feeds, bad ones
// among them, with the rules of readers, with as many requests, from as many beginnings as -worlds
// says. The rules are played over what was found, as if each item could be found from its date on, so
// validators change with the items. They wait where a publisher asks for it, as the page has them.
// None has a mean that is less by more than 4 % in one run, or 2 % over six.
func TestRefereeAgainstRules(t *testing.T) {
	if !*full {
		t.Skip("it takes minutes; -full runs it")
	}
	for text := range strings.SplitSeq(*perHours, ",") {
		perHour := must(strconv.ParseFloat(text, 64))
		over := map[string][3][]float64{} // of a schedule, ln of each figure over that of the crawler
		for world := range *seeds {
			for who, figures := range refereeAgainst(t, perHour, world) {
				all := over[who]
				for k, x := range figures {
					all[k] = append(all[k], x)
				}
				over[who] = all
			}
		}
		for _, who := range slices.Sorted(maps.Keys(over)) {
			line := ""
			for k, name := range []string{"median", "90 %", "mean"} {
				mean, of := stat.MeanStdDev(over[who][k], nil)
				half := 0.
				if n := float64(*seeds); n > 1 {
					half = distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(.975) * of / math.Sqrt(n)
				}
				line += fmt.Sprintf(", %s %.3f (%.3f to %.3f)", name,
					math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half))
				most := 1.04
				if *seeds >= 6 {
					most = 1.02
				}
				if name == "mean" && who != "the learner" && most*math.Exp(mean) < 1 {
					t.Errorf("%v requests an hour, %d beginnings: the mean of %s is %.3f of the crawler's",
						perHour, *seeds, who, math.Exp(mean))
				}
			}
			t.Logf("%v requests an hour, %d beginnings, over the crawler: %s%s", perHour, *seeds, who, line)
		}
	}
}

// refereeAgainst plays one beginning, and returns the logarithms of median, nine tenths and mean of
// each rule, and of the crawler's learner when that is played like them, over those of the crawler.
func refereeAgainst(t *testing.T, perHour float64, world int) map[string][3]float64 {
	r := newReferee(t, perHour)
	r.exact = true
	defer r.Close()
	var urls []string
	for k := range 129 {
		urls = append(urls, address(k))
	}
	l := newLife(t, r.Server, perHour, urls...)
	l.Full = true
	l.Begin = l.Begin.Add(time.Duration(world) * (7*time.Hour + 13*time.Minute)) // other hours, and another phase
	s := l.open(io.Discard).pass(14 * 24 * time.Hour)
	defer s.Close()
	s.opt.Shadow, s.opt.Reader = true, s.reader // so that the learner is played too
	s.recompare(s.now)
	s.comparisons.Wait()
	got := s.compared
	if got.Why != "" {
		t.Fatal(got.Why)
	}
	t.Logf("%v requests an hour, beginning %d: %d items of %d feeds, of the last %v; left out are %v", perHour, world,
		got.Items, got.Feeds, got.To.Sub(got.From), got.Left)
	mine, over := got.Rivals[0], map[string][3]float64{}
	mine.Name, got.Rivals[1].Name = "the crawler", "the learner"
	for _, one := range append([]rival{mine, got.Rivals[1]}, got.Rules...) {
		t.Logf("%-36s %5d requests: median %5.1f min, 90 %% %6.1f, mean %6.1f", one.Name, one.Requests,
			one.Half.Minutes(), one.Ninety.Minutes(), one.Mean.Minutes())
		of := func(x, y time.Duration) float64 { return math.Log(x.Minutes() / y.Minutes()) }
		over[one.Name] = [3]float64{of(one.Half, mine.Half), of(one.Ninety, mine.Ninety), of(one.Mean, mine.Mean)}
	}
	delete(over, mine.Name)
	for k := range kinds {
		site := r.sites[fmt.Sprintf("feed %d (none) feed", k)]
		if site != nil {
			size := len(page(k, "none", s.now.Unix()/every(k)))
			t.Logf("feed %d without validators, %d bytes, an item in %d hours: %.1f looks a day, %.0f kB",
				k, size, every(k)/3600, float64(site.requests)/14, float64(site.requests*size)/14e3)
		}
	}
	return over
}
