// Package feed fetches feeds as their publishers ask for.
//
//  1. [Fetcher.Fetch] makes one conditional request, follows redirects, and reads
//     what comes within limits of time and size. It holds one connection to a host.
//  2. Every request is one that robots.txt allows (RFC 9309, robots.go), to an
//     address that is public (address.go).
//  3. [Parse] reads RSS, Atom and JSON feeds of any charset (parse.go).
//
// It keeps nothing but what its caller hands in.
package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/idna"
)

// Limits of one fetch.
const (
	maxRedirects = 5
	maxWait      = 365 * 24 * time.Hour
)

// Outcome is how a fetch ended.
type Outcome string

const (
	Found     Outcome = "found"     // 200, and what it shows
	Unchanged Outcome = "unchanged" // 304
	Gone      Outcome = "gone"      // 410: it is not asked for again
	Failed    Outcome = "failed"
)

// Place is where a feed is, and the validators of what it showed last.
type Place struct {
	URL          string `json:"url"`   // first request, after permanent redirects
	Final        string `json:"final"` // that sent the validators, after all redirects
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// HasValidators reports whether the feed can be asked for changes alone.
func (p *Place) HasValidators() bool { return p.ETag != "" || p.LastModified != "" }

// Result is what one fetch brought.
type Result struct {
	Outcome Outcome
	Place   Place         // of the next fetch
	Status  int           // HTTP status; 0 if no server answered
	Wait    time.Duration // the publisher's wish: not again before
	Feed    *Feed         // if found
	Err     error         // if failed, a reason of a few words
}

// Fetcher fetches feeds. Its methods may be called at once.
type Fetcher struct {
	Agent        string        // User-Agent, with a contact
	Timeout      time.Duration // of one request, its body included
	MaxBytes     int64         // of a body, unpacked
	AllowPrivate bool          // addresses of private networks too
	Memory       Memory
	Now          func() time.Time
	// Dial is used in place of the network's, for tests. It may be nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Header is called with each request, for tests. It may be nil.
	Header func(http.Header)

	busy sync.Map // of a name, a channel that is full while the name is locked
}

// Memory keeps what servers ask for. Its methods may be called at once.
type Memory interface {
	Value(name string) ([]byte, error) // nil if there is none
	SetValue(name string, value []byte) error
}

func (f *Fetcher) recall(name string, into any) error {
	data, err := f.Memory.Value(name)
	if err == nil && data != nil {
		err = json.Unmarshal(data, into)
	}
	return err
}

func (f *Fetcher) keep(name string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		err = f.Memory.SetValue(name, data)
	}
	return err
}

// Blocked returns until when a host is to be left alone.
func (f *Fetcher) Blocked(host string) (until time.Time, err error) {
	err = f.recall("blocked/"+host, &until)
	return until, err
}

// lock waits until nobody else has locked that name: commonly a host, to which no
// other request is under way then.
func (f *Fetcher) lock(ctx context.Context, name string) (unlock func(), err error) {
	v, _ := f.busy.LoadOrStore(name, make(chan struct{}, 1))
	lock := v.(chan struct{})
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial connects to the server of an address.
func (f *Fetcher) dial(ctx context.Context, u *url.URL) (net.Conn, error) {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if !f.AllowPrivate {
		d.Control = refusePrivate
	}
	dial := d.DialContext
	if f.Dial != nil {
		dial = f.Dial
	}
	name := u.Hostname()
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		name = ascii
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	return dial(ctx, "tcp", net.JoinHostPort(name, port))
}

// response is an answer whose body was read.
type response struct {
	status int
	header http.Header
	body   []byte
}

// failure is a reason for which a fetch failed, for people.
type failure struct {
	text string
	wait time.Duration // the publisher's wish
}

func (e *failure) Error() string { return e.text }

func failf(format string, args ...any) error { return &failure{text: fmt.Sprintf(format, args...)} }

// Subscribe asks a WebSub hub for what is said in a form.
func (f *Fetcher) Subscribe(ctx context.Context, hub string, form url.Values) error {
	u, err := url.Parse(hub)
	if err != nil {
		return failf("%.80q is no address", hub)
	}
	r, err := f.request(ctx, u, strings.NewReader(form.Encode()), nil, 0)
	if err == nil && r.status/100 != 2 {
		err = failf("the hub answers %d %s", r.status, http.StatusText(r.status))
	}
	return err
}

// request makes one request, without redirects: a POST of a form, or a GET if that
// is nil.
func (f *Fetcher) request(ctx context.Context, u *url.URL, form io.Reader, p *Place, limit int64) (*response, error) {
	host := strings.ToLower(u.Hostname())
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, failf("the address %q is neither http nor https", u.Redacted())
	case host == "":
		return nil, failf("the address %q has no host", u.Redacted())
	}
	unlock, err := f.lock(ctx, host)
	if err != nil {
		return nil, err
	}
	defer unlock()
	until, err := f.Blocked(host)
	if err != nil {
		return nil, err
	}
	if d := until.Sub(f.Now()); d > 0 {
		return nil, &failure{text: host + " asked to be left alone", wait: d}
	}
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), form)
	if err != nil {
		return nil, failf("the address %q cannot be asked for", u.Redacted())
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("User-Agent", f.Agent)
	req.Header.Set("Accept", "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=.9, */*;q=.5")
	if p != nil && p.Final == u.String() {
		if p.ETag != "" {
			req.Header.Set("If-None-Match", p.ETag)
		}
		if p.LastModified != "" {
			req.Header.Set("If-Modified-Since", p.LastModified)
		}
	}
	if f.Header != nil {
		f.Header(req.Header)
	}
	conn, err := f.dial(ctx, u)
	if err != nil {
		return nil, reason(err, f.Timeout)
	}
	defer conn.Close() // before the next request to the host
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return nil, reason(err, f.Timeout)
	}
	defer res.Body.Close()
	r := &response{status: res.StatusCode, header: res.Header}
	if r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable {
		if err := f.keep("blocked/"+host, f.Now().Add(f.wait(r))); err != nil {
			return nil, err
		}
	}
	if r.status != http.StatusOK {
		return r, nil // what it says besides is for people
	}
	if r.body, err = io.ReadAll(io.LimitReader(res.Body, limit+1)); err != nil {
		return nil, reason(err, f.Timeout)
	}
	if int64(len(r.body)) > limit {
		return nil, failf("it is larger than %d MB", limit>>20)
	}
	return r, nil
}

// reason says an error of the network in a few words.
func reason(err error, limit time.Duration) error {
	var dns *net.DNSError
	var private *privateError
	var network net.Error
	switch {
	case errors.As(err, &private):
		return private
	case errors.As(err, &dns):
		return failf("its host is not known")
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return failf("no answer within %v", limit)
	}
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return failf("%.100s", text)
}

// Fetch asks for a feed.
func (f *Fetcher) Fetch(ctx context.Context, p Place) Result {
	out := Result{Outcome: Failed, Place: p}
	u, err := url.Parse(p.URL)
	if err != nil {
		out.Err = failf("%q is no address", p.URL)
		return out
	}
	permanent := true
	var visited []string
	for hop := 0; ; hop++ {
		visited = append(visited, u.String())
		r, err := f.get(ctx, u, &p)
		if err != nil {
			out.Err = err
			var e *failure
			if errors.As(err, &e) {
				out.Wait = e.wait
			}
			return out
		}
		out.Status = r.status
		next := r.header.Get("Location")
		if !redirects(r.status) || next == "" {
			f.conclude(&out, u, r)
			if permanent && (out.Outcome == Found || out.Outcome == Unchanged) {
				out.Place.URL = u.String()
			}
			return out
		}
		if hop == maxRedirects {
			out.Err = failf("more than %d redirects", maxRedirects)
			return out
		}
		permanent = permanent && (r.status == http.StatusMovedPermanently || r.status == http.StatusPermanentRedirect)
		to, err := u.Parse(next)
		if err != nil {
			out.Err = failf("it redirects to %.80q, which is no address", next)
			return out
		}
		to.Fragment = ""
		u = to
		if slices.Contains(visited, u.String()) {
			out.Err = failf("it redirects in a circle")
			return out
		}
	}
}

func redirects(status int) bool { return status/100 == 3 && status != http.StatusNotModified }

// get makes one request that robots.txt allows.
func (f *Fetcher) get(ctx context.Context, u *url.URL, p *Place) (*response, error) {
	rules, err := f.robots(ctx, u)
	if err != nil {
		return nil, err
	}
	if !rules.Allow(u) {
		return nil, failf("its robots.txt does not allow it")
	}
	return f.request(ctx, u, nil, p, f.MaxBytes)
}

// conclude reads the last answer.
func (f *Fetcher) conclude(out *Result, u *url.URL, r *response) {
	out.Wait = f.wait(r)
	switch r.status {
	case http.StatusOK:
		feed, err := Parse(r.body, r.header.Get("Content-Type"), u)
		if err != nil {
			out.Err = err
			return
		}
		for _, v := range r.header.Values("Link") {
			for _, m := range linkHeader.FindAllStringSubmatch(v, -1) {
				feed.link(u, m[2], m[1])
			}
		}
		out.Outcome, out.Feed = Found, feed
		out.Wait = max(out.Wait, feed.TTL)
		out.Place.Final = u.String()
		out.Place.ETag, out.Place.LastModified = r.header.Get("ETag"), r.header.Get("Last-Modified")
	case http.StatusNotModified:
		out.Outcome = Unchanged
	case http.StatusGone:
		out.Outcome, out.Err = Gone, failf("its server says that it is gone")
	default:
		out.Err = failf("its server answers %d %s", r.status, http.StatusText(r.status))
	}
}

// wait returns how long the answer asks to wait: Retry-After, and max-age.
func (f *Fetcher) wait(r *response) (d time.Duration) {
	seconds := func(s string) {
		if n, err := strconv.ParseInt(strings.Trim(s, `" `), 10, 64); err == nil && n > 0 {
			d = max(d, time.Duration(min(n, int64(maxWait/time.Second)))*time.Second)
		}
	}
	for _, v := range r.header.Values("Cache-Control") {
		for part := range strings.SplitSeq(v, ",") {
			if name, value, _ := strings.Cut(strings.TrimSpace(part), "="); strings.EqualFold(name, "max-age") {
				seconds(value)
			}
		}
	}
	after := r.header.Get("Retry-After")
	seconds(after)
	if at, err := http.ParseTime(after); err == nil {
		now := f.Now()
		if date, err := http.ParseTime(r.header.Get("Date")); err == nil {
			now = date
		}
		d = max(d, min(at.Sub(now), maxWait))
	}
	return d
}
