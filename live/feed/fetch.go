// Package feed fetches feeds as their publishers ask for.
//
//  1. [Fetcher.Fetch] makes a conditional request and follows redirects. Each request
//     is one that robots.txt allows (RFC 9309, robots.go).
//  2. [Fetcher.RoundTrip] makes one request of these, over the only connection to a
//     host, to an address that is public, within limits of time and size.
//  3. [Parse] reads RSS, Atom and JSON feeds of any charset (parse.go).
//
// It keeps nothing but what its caller hands in.
package feed

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"code.dny.dev/ssrf"

	"ephemera/live/hostname"
)

// Limits of one fetch.
const (
	maxRedirects = 5
	maxTimeouts  = 4 // of one request, for a fetch with its redirects and what it asks of robots.txt

	// MaxRetry is how long a Retry-After is obeyed at most.
	MaxRetry = 7 * 24 * time.Hour
	// maxWait is the longest wish that is kept as it is.
	maxWait = 100 * 365 * 24 * time.Hour
)

// Outcome is how a fetch ended.
type Outcome string

const (
	Found     Outcome = "found"     // 200, and what it shows
	Unchanged Outcome = "unchanged" // 304, or without validators the same body
	Gone      Outcome = "gone"      // 410, at its address or where it moved for good: it is not asked for again
	Failed    Outcome = "failed"
)

// Place is where a feed is, and the validators of what it showed last.
type Place struct {
	URL          string    `json:"url"`   // first request, after permanent redirects
	Final        string    `json:"final"` // that sent the validators, after all redirects
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	After        int64     `json:"after,omitempty"`   // last entry that is known, where another reader fetches it
	AfterAt      time.Time `json:"after_at,omitzero"` // when that reader found it

	MaxAge time.Duration `json:"max_age,omitempty"` // of the last answer that said one; a 304 need not repeat it

	// Of the body that was read last, if it came without validators.
	Hash  uint64 `json:"hash,omitempty"`
	Bytes int    `json:"bytes,omitempty"`
}

// Result is what one fetch brought.
type Result struct {
	Outcome Outcome
	Place   Place         // of the next fetch
	Retry   time.Duration // the server's wish, by Retry-After: not again before; it may be beyond MaxRetry
	Fresh   time.Duration // for which the answer stays fresh, by max-age or Expires
	Feed    *Feed         // if found
	Err     error         // if failed or gone, a reason of a few words
	Offline bool          // if failed, no host is reached from here, this one neither
	Held    bool          // if failed, its host, or one it redirects to, asked to be left alone, and was not asked
}

// Fetcher fetches feeds. Its methods may be called at once.
type Fetcher struct {
	Agent    string        // User-Agent, with a contact
	Timeout  time.Duration // of one request, its body included; a fetch of several takes up to four times as long
	MaxBytes int64         // of a body, unpacked
	Memory   Memory
	Now      func() time.Time
	// Dial is that of a net.Dialer, with Public as its Control unless private networks
	// are allowed.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DialHub is that of a net.Dialer with Public as its Control.
	DialHub func(ctx context.Context, network, address string) (net.Conn, error)

	mu        sync.Mutex
	busy      map[string]*turn // by name, as long as anybody locks it
	unreached map[string]bool  // hosts since one was reached
}

// Memory keeps what servers ask for. It has the clock, and is given how long things last.
// Its methods may be called at once.
type Memory interface {
	// Left is for how long a host is still to be left alone.
	Left(host string) time.Duration
	// Leave has a host left alone for so long from now on.
	Leave(host string, wait time.Duration) error
	// Robots returns the rules of an origin (scheme, host and port) that were kept in the
	// last 24 hours, or nil.
	Robots(origin *url.URL) (*Robots, error)
	KeepRobots(origin *url.URL, rules *Robots) error
}

// turn is a mutex, and how many hold it or wait for it.
type turn struct {
	sync.Mutex
	n int
}

// lock waits until nobody else has locked that name.
func (f *Fetcher) lock(name string) (unlock func()) {
	f.mu.Lock()
	t := f.busy[name]
	if t == nil {
		t = new(turn)
		if f.busy == nil {
			f.busy = map[string]*turn{}
		}
		f.busy[name] = t
	}
	t.n++
	f.mu.Unlock()
	t.Lock()
	return func() {
		t.Unlock()
		f.mu.Lock()
		if t.n--; t.n == 0 {
			delete(f.busy, name)
		}
		f.mu.Unlock()
	}
}

// Public refuses to dial an address that is not one of the public network. It sees
// what is dialled, whatever a name or a redirect said before.
var Public = ssrf.New(ssrf.WithAnyPort()).Safe

// failure is a reason for which a fetch failed, for people.
type failure struct {
	text    string
	retry   time.Duration // the server's wish
	offline bool          // see [Result]
	held    bool          // likewise
}

func (e *failure) Error() string { return e.text }

func failf(format string, args ...any) *failure { return &failure{text: fmt.Sprintf(format, args...)} }

// reason says an error in a few words.
func (f *Fetcher) reason(err error) *failure {
	var e *failure
	var network net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, ssrf.ErrProhibitedIP):
		return failf("its address is not of the public network (-allow-private allows it)")
	case errors.As(err, &certificate):
		return failf("its certificate does not hold: %.100s", strings.TrimPrefix(certificate.Err.Error(), "x509: "))
	case errors.As(err, &network) && network.Timeout():
		return failf("no answer within %v", f.Timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failf("its server closed the connection before the end of its answer")
	}
	text := err.Error()
	return failf("%.100s", strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:]))
}

// RoundTrip makes one request, over the only connection to its host, which is closed
// when it returns. It implements [http.RoundTripper].
func (f *Fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	return f.ask(r, f.MaxBytes)
}

// ask is RoundTrip with no more than the beginning of a body.
func (f *Fetcher) ask(r *http.Request, most int64) (*http.Response, error) {
	host := hostname.Of(r.URL.Hostname())
	defer f.lock(host)()
	if d := f.Memory.Left(host); d > 0 {
		return nil, &failure{text: host + " asked to be left alone", retry: d, held: true}
	}
	ctx, cancel := context.WithTimeout(r.Context(), f.Timeout)
	defer cancel()
	r = r.Clone(ctx)
	r.Header.Set("User-Agent", f.Agent)
	r.Header.Set("Accept",
		"application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=.9, */*;q=.5")
	r.Header.Del("Referer")
	dial := f.Dial
	if r.Context().Value(forHub{}) != nil {
		dial = f.DialHub
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(host, cmp.Or(r.URL.Port(), r.URL.Scheme)))
	if !f.reaches(host, conn, err) {
		e := *f.reason(err)
		e.offline = true
		return nil, &e
	}
	if err != nil {
		return nil, err
	}
	defer conn.Close() // before the next request to the host
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		if wait := min(f.retry(res.Header), MaxRetry); wait > 0 {
			if err := f.Memory.Leave(host, wait); err != nil {
				return nil, err
			}
		}
	}
	var body []byte
	if res.StatusCode == http.StatusOK { // what others say is for people
		if body, err = io.ReadAll(io.LimitReader(res.Body, most+1)); err != nil {
			return nil, err
		}
	}
	cut := int64(len(body)) > most
	body = body[:min(int64(len(body)), most)]
	res.Body = received{bytes.NewReader(body), body, cut}
	return res, nil
}

// received is a body that is in memory.
type received struct {
	io.Reader
	bytes []byte
	cut   bool // it is the beginning of a longer one
}

func (received) Close() error { return nil }

// forHub marks the context of requests to hubs.
type forHub struct{}

// Subscribe asks a WebSub hub for what is said in a form. Any feed can name any address as
// its hub, so it must be one of the public network, without credentials, and robots.txt
// must allow it. A redirect is followed if it asks for the same request elsewhere.
func (f *Fetcher) Subscribe(ctx context.Context, hub string, form url.Values) error {
	ctx = context.WithValue(ctx, forHub{}, true)
	allowed := func(u *url.URL) error {
		if u.User != nil {
			return failf("its address has credentials")
		}
		return f.allowed(ctx, u)
	}
	client := http.Client{Transport: f, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.Method != http.MethodPost || len(via) > maxRedirects {
			return http.ErrUseLastResponse
		}
		return allowed(r.URL)
	}}
	u, err := url.Parse(hub)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return failf("its address is %q; allowed is an address with http or https", hub)
	}
	if err := allowed(u); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, hub, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(r)
	switch {
	case err != nil:
		return f.reason(err)
	case res.StatusCode/100 != 2:
		return failf("it answers %s", res.Status)
	}
	return nil
}

// Fetch asks for a feed. When the context ends it is broken off, and has failed.
func (f *Fetcher) Fetch(ctx context.Context, p Place) Result {
	out := Result{Outcome: Failed, Place: p}
	ctx, cancel := context.WithTimeout(ctx, maxTimeouts*f.Timeout)
	defer cancel()
	permanent := true
	ask := func(r *http.Request) error {
		r.Header = http.Header{}
		for name, validator := range map[string]string{"If-None-Match": p.ETag, "If-Modified-Since": p.LastModified} {
			if validator != "" && p.Final == r.URL.String() {
				r.Header.Set(name, validator)
			}
		}
		return f.allowed(r.Context(), r.URL)
	}
	client := http.Client{Transport: f, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		r.URL.Fragment = ""
		if r.URL.Host == "" || r.URL.Scheme != "http" && r.URL.Scheme != "https" {
			r.URL.User = nil
			return failf("it redirects to %.100q; allowed is an address with http or https", r.URL)
		}
		if len(via) > maxRedirects {
			return failf("more than %d redirects", maxRedirects)
		}
		if last := via[len(via)-1].URL; r.URL.User == nil && trusts(last, r.URL) {
			r.URL.User = last.User
		}
		again := func(earlier *http.Request) bool { return earlier.URL.String() == r.URL.String() }
		if slices.ContainsFunc(via, again) {
			return failf("it redirects in a circle")
		}
		status := r.Response.StatusCode
		permanent = permanent && (status == http.StatusMovedPermanently || status == http.StatusPermanentRedirect)
		return ask(r)
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err == nil {
		err = ask(r)
	}
	var res *http.Response
	if err == nil {
		res, err = client.Do(r)
	}
	if err != nil {
		e := f.reason(err)
		out.Err, out.Retry, out.Offline, out.Held = e, e.retry, e.offline, e.held
		return out
	}
	f.conclude(&out, res)
	if out.Outcome == Gone && !permanent {
		out.Outcome, out.Err = Failed, failf("for now it redirects to an address that is gone")
	}
	if permanent && (out.Outcome == Found || out.Outcome == Unchanged) {
		out.Place.URL = res.Request.URL.String()
	}
	return out
}

// trusts reports whether name and password of an address are also for one to which it redirects: that of the same
// host, unless it would send them unencrypted.
func trusts(from, to *url.URL) bool {
	return from.Host == to.Host && (to.Scheme == "https" || from.Scheme == to.Scheme)
}

// conclude reads the last answer.
func (f *Fetcher) conclude(out *Result, r *http.Response) {
	out.Retry = f.retry(r.Header)
	maxAge, said := maxAge(r.Header)
	if said {
		out.Place.MaxAge = maxAge
	}
	out.Fresh = maxAge
	if at, err := http.ParseTime(r.Header.Get("Expires")); err == nil && !said {
		out.Fresh = f.until(at, r.Header)
	}
	switch r.StatusCode {
	case http.StatusOK:
		received := r.Body.(received)
		body, before := received.bytes, out.Place.Hash
		etag, modified := r.Header.Get("ETag"), r.Header.Get("Last-Modified")
		var hashed uint64
		if etag == "" && modified == "" {
			hashed = Hash(string(body))
		}
		out.Place.MaxAge = maxAge
		if hashed != 0 && hashed == before && out.Place.Final == r.Request.URL.String() {
			out.Outcome = Unchanged
			return
		}
		feed, err := parse(body, received.cut, r.Header.Get("Content-Type"), r.Request.URL)
		if coding := r.Header.Get("Content-Encoding"); err != nil && coding != "" {
			err = failf("it is packed as %.20q, which was not asked for", coding)
		}
		if err != nil {
			out.Err = err
			return
		}
		for _, m := range linkHeader.FindAllStringSubmatch(strings.Join(r.Header.Values("Link"), ","), -1) {
			feed.link(r.Request.URL, m[2], m[1])
		}
		out.Outcome, out.Feed = Found, feed
		out.Place.Final = r.Request.URL.String()
		out.Place.ETag, out.Place.LastModified = etag, modified
		if out.Place.Hash, out.Place.Bytes = hashed, 0; hashed != 0 {
			out.Place.Bytes = len(body)
		}
	case http.StatusNotModified:
		if sent := r.Request.Header; sent.Get("If-None-Match")+sent.Get("If-Modified-Since") == "" {
			out.Err = failf("its server answers %s, and was not asked for changes", r.Status)
			return
		}
		out.Outcome, out.Fresh = Unchanged, max(out.Fresh, out.Place.MaxAge)
	case http.StatusGone:
		out.Outcome, out.Err = Gone, failf("its server says that it is gone")
	default:
		out.Err = failf("its server answers %s", r.Status)
	}
}

var maxAges = regexp.MustCompile(`(?i)(?:^|[,\s])max-age="?(\d+)`)

// maxAge returns how long an answer stays fresh by its max-age, if it says so.
func maxAge(h http.Header) (d time.Duration, said bool) {
	for _, m := range maxAges.FindAllStringSubmatch(strings.Join(h.Values("Cache-Control"), ","), -1) {
		d, said = max(d, seconds(m[1])), true
	}
	return d, said
}

// retry returns how long an answer asks to wait by Retry-After.
func (f *Fetcher) retry(h http.Header) time.Duration {
	after := h.Get("Retry-After")
	if at, err := http.ParseTime(after); err == nil {
		return f.until(at, h)
	}
	return seconds(after)
}

// until returns the time from an answer until a date that it names.
func (f *Fetcher) until(at time.Time, h http.Header) time.Duration {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		date = f.Now()
	}
	return max(0, min(at.Sub(date), maxWait))
}

// seconds reads a number of seconds, 0 if it is none.
func seconds(text string) time.Duration {
	n, _ := strconv.ParseUint(text, 10, 64) // the greatest if it is too large
	return time.Duration(min(n, uint64(maxWait/time.Second))) * time.Second
}
