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
	"encoding/json"
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
	Gone      Outcome = "gone"      // 410, at its address or where it moved for good: it is not asked for again
	Failed    Outcome = "failed"
)

// Place is where a feed is, and the validators of what it showed last.
type Place struct {
	URL          string `json:"url"`   // first request, after permanent redirects
	Final        string `json:"final"` // that sent the validators, after all redirects
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// Result is what one fetch brought.
type Result struct {
	Outcome Outcome
	Place   Place         // of the next fetch
	Wait    time.Duration // the publisher's wish: not again before
	Feed    *Feed         // if found
	Err     error         // if failed or gone, a reason of a few words
}

// Fetcher fetches feeds. Its methods may be called at once.
type Fetcher struct {
	Agent    string        // User-Agent, with a contact
	Timeout  time.Duration // of one request, its body included
	MaxBytes int64         // of a body, unpacked
	Memory   Memory
	Now      func() time.Time
	// Dial is that of a net.Dialer, with Public as its Control unless private networks
	// are allowed.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DialHub is that of a net.Dialer with Public as its Control.
	DialHub func(ctx context.Context, network, address string) (net.Conn, error)

	busy sync.Map // of a name, its mutex
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

// lock waits until nobody else has locked that name.
func (f *Fetcher) lock(name string) (unlock func()) {
	m, _ := f.busy.LoadOrStore(name, new(sync.Mutex))
	m.(*sync.Mutex).Lock()
	return m.(*sync.Mutex).Unlock
}

// Public refuses to dial an address that is not one of the public network. It sees
// what is dialled, whatever a name or a redirect said before.
var Public = ssrf.New(ssrf.WithAnyPort()).Safe

// failure is a reason for which a fetch failed, for people.
type failure struct {
	text string
	wait time.Duration // the publisher's wish
}

func (e *failure) Error() string { return e.text }

func failf(format string, args ...any) *failure { return &failure{text: fmt.Sprintf(format, args...)} }

// reason says an error in a few words.
func (f *Fetcher) reason(err error) *failure {
	var e *failure
	var network net.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, ssrf.ErrProhibitedIP):
		return failf("its address is not of the public network (-allow-private allows it)")
	case errors.As(err, &network) && network.Timeout():
		return failf("no answer within %v", f.Timeout)
	}
	text := err.Error()
	return failf("%.100s", strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:]))
}

// RoundTrip makes one request, over the only connection to its host, which is closed
// when it returns. It implements [http.RoundTripper].
func (f *Fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	host := strings.ToLower(r.URL.Hostname())
	defer f.lock(host)()
	until, err := f.Blocked(host)
	if err != nil {
		return nil, err
	}
	if d := until.Sub(f.Now()); d > 0 {
		return nil, &failure{host + " asked to be left alone", d}
	}
	ctx, cancel := context.WithTimeout(r.Context(), f.Timeout)
	defer cancel()
	r = r.Clone(ctx)
	r.Header.Set("User-Agent", f.Agent)
	r.Header.Set("Accept", "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=.9, */*;q=.5")
	r.Header.Del("Referer")
	name := host
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		name = ascii
	}
	dial := f.Dial
	if r.Context().Value(forHub{}) != nil {
		dial = f.DialHub
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(name, cmp.Or(r.URL.Port(), r.URL.Scheme)))
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
		if err := f.keep("blocked/"+host, f.Now().Add(f.wait(res.Header))); err != nil {
			return nil, err
		}
	}
	var body []byte
	if res.StatusCode == http.StatusOK { // what others say is for people
		if body, err = io.ReadAll(io.LimitReader(res.Body, f.MaxBytes+1)); err != nil {
			return nil, err
		}
		if int64(len(body)) > f.MaxBytes {
			return nil, failf("it is larger than %d MB", f.MaxBytes>>20)
		}
	}
	res.Body = received{bytes.NewReader(body), body}
	return res, nil
}

// received is a body that is in memory.
type received struct {
	io.Reader
	whole []byte
}

func (received) Close() error { return nil }

// forHub marks the context of requests to hubs.
type forHub struct{}

// Subscribe asks a WebSub hub for what is said in a form. Any feed can name any address as
// its hub, so it must be one of the public network, without credentials, and robots.txt
// must allow it. A redirect is followed if it asks for the same request elsewhere.
func (f *Fetcher) Subscribe(hub string, form url.Values) error {
	ctx := context.WithValue(context.Background(), forHub{}, true)
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

// Fetch asks for a feed.
func (f *Fetcher) Fetch(p Place) Result {
	out := Result{Outcome: Failed, Place: p}
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
		if len(via) > maxRedirects {
			return failf("more than %d redirects", maxRedirects)
		}
		if slices.ContainsFunc(via, func(earlier *http.Request) bool { return earlier.URL.String() == r.URL.String() }) {
			return failf("it redirects in a circle")
		}
		status := r.Response.StatusCode
		permanent = permanent && (status == http.StatusMovedPermanently || status == http.StatusPermanentRedirect)
		return ask(r)
	}}
	r, err := http.NewRequest(http.MethodGet, p.URL, nil)
	if err == nil {
		err = ask(r)
	}
	var res *http.Response
	if err == nil {
		res, err = client.Do(r)
	}
	if err != nil {
		e := f.reason(err)
		out.Err, out.Wait = e, e.wait
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

// conclude reads the last answer.
func (f *Fetcher) conclude(out *Result, r *http.Response) {
	out.Wait = f.wait(r.Header)
	switch r.StatusCode {
	case http.StatusOK:
		feed, err := Parse(r.Body.(received).whole, r.Header.Get("Content-Type"), r.Request.URL)
		if err != nil {
			out.Err = err
			return
		}
		for _, m := range linkHeader.FindAllStringSubmatch(strings.Join(r.Header.Values("Link"), ","), -1) {
			feed.link(r.Request.URL, m[2], m[1])
		}
		out.Outcome, out.Feed, out.Wait = Found, feed, max(out.Wait, feed.TTL)
		out.Place.Final = r.Request.URL.String()
		out.Place.ETag, out.Place.LastModified = r.Header.Get("ETag"), r.Header.Get("Last-Modified")
	case http.StatusNotModified:
		out.Outcome = Unchanged
	case http.StatusGone:
		out.Outcome, out.Err = Gone, failf("its server says that it is gone")
	default:
		out.Err = failf("its server answers %s", r.Status)
	}
}

var maxAge = regexp.MustCompile(`(?i)(?:^|[,\s])max-age="?(\d+)`)

// wait returns how long an answer asks to wait: by max-age and Retry-After.
func (f *Fetcher) wait(h http.Header) time.Duration {
	after := h.Get("Retry-After")
	wishes := []string{after}
	for _, m := range maxAge.FindAllStringSubmatch(strings.Join(h.Values("Cache-Control"), ","), -1) {
		wishes = append(wishes, m[1])
	}
	var d time.Duration
	for _, seconds := range wishes {
		n, _ := strconv.ParseUint(seconds, 10, 64) // 0 if it is no number
		d = max(d, time.Duration(min(n, uint64(maxWait/time.Second)))*time.Second)
	}
	if at, err := http.ParseTime(after); err == nil {
		date, err := http.ParseTime(h.Get("Date"))
		if err != nil {
			date = f.Now()
		}
		d = max(d, min(at.Sub(date), maxWait))
	}
	return d
}
