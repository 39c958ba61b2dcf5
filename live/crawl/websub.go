package crawl

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ephemera/live/feed"
)

const (
	pushedWait = 24 * time.Hour      // between two looks at a feed whose hub sends what is new
	lease      = 10 * 24 * time.Hour // that a hub is asked for

	maxPush     = 1 << 20          // bytes that a hub sends at once
	pushTimeout = 10 * time.Second // in which it sends them

	hubEvery = time.Minute // between two requests for a feed that a hub is answered, in the mean
	hubAhead = 20          // of which it can make so many at once
)

// push is the subscription of a feed at its hub, by WebSub
// (https://www.w3.org/TR/websub).
type push struct {
	Hub    string    `json:"hub"`
	Topic  string    `json:"topic"`
	Token  string    `json:"token"` // of the address that the hub is given
	Secret string    `json:"secret"`
	Until  time.Time `json:"until,omitzero"` // end of the lease; zero before the hub confirmed it
}

// hub takes up which hub a feed names.
func (r *record) hub(f *feed.Feed) {
	switch {
	case f.Hub == "":
		r.Push = nil
	case r.Push == nil || r.Push.Hub != f.Hub || r.Push.Topic != f.Topic:
		r.Push = &push{Hub: f.Hub, Topic: f.Topic, Token: rand.Text(), Secret: rand.Text()}
	}
}

// renew reports whether the hub of a feed is to be asked for a subscription: after looks, from
// two days before the lease ends on. A feed can name another hub at each look; one request a
// day is made all the same.
func (c *Crawler) renew(r *record, now time.Time) bool {
	since := now.Sub(r.HubAsked)
	if c.opt.PublicURL == "" || r.Push == nil || r.Push.Until.Sub(now) > 48*time.Hour ||
		since >= 0 && since < 24*time.Hour {
		return false
	}
	r.HubAsked = now
	return true
}

// subscribe asks a hub for a subscription.
func (c *Crawler) subscribe(feed string, p push) {
	err := c.fetcher.Subscribe(c.ending, p.Hub, url.Values{
		"hub.mode": {"subscribe"}, "hub.topic": {p.Topic}, "hub.secret": {p.Secret},
		"hub.callback":      {strings.TrimSuffix(c.opt.PublicURL, "/") + "/websub/" + p.Token},
		"hub.lease_seconds": {fmt.Sprint(int(lease.Seconds()))},
	})
	if err != nil && c.ending.Err() == nil {
		c.opt.Log.Warn("a hub did not take the subscription", "feed", feed, "hub", p.Hub, "error", err)
	}
}

// websub answers a hub. What comes without the token of a subscription is not read.
func (c *Crawler) websub(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	status, challenge := c.answer(w, q)
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", fmt.Sprint(int(hubEvery.Seconds())))
	}
	w.WriteHeader(status)
	io.WriteString(w, challenge)
}

func (c *Crawler) answer(w http.ResponseWriter, q *http.Request) (status int, challenge string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var r *record
	for _, one := range c.feeds {
		if one.listed && one.Push != nil && one.Push.Token == q.PathValue("token") {
			r = one
		}
	}
	switch {
	case r == nil:
		return http.StatusGone, "" // nobody here subscribes to it
	case r.held || r.pushing:
		return http.StatusServiceUnavailable, "" // it is being asked for, or a hub is sending it
	case !r.hear(c.clock()):
		return http.StatusTooManyRequests, ""
	case q.Method == http.MethodGet:
		if status = c.verify(r, q.URL.Query()); status == http.StatusOK {
			challenge = q.URL.Query().Get("hub.challenge")
		}
		return status, challenge
	}
	p := *r.Push
	r.pushing = true
	c.mu.Unlock()
	sent, status := c.readPush(w, q, &p)
	c.mu.Lock()
	r.pushing = false
	switch {
	case sent == nil:
		return status, ""
	case !r.listed || r.Push == nil || r.Push.Token != p.Token:
		return http.StatusGone, ""
	case r.held:
		return http.StatusServiceUnavailable, ""
	}
	return c.pushed(r, sent), ""
}

// hear reports whether a hub is heard: of each feed it makes as much work and fills as much of the
// disk as it wants. What it sends in vain is found by the next look, or sent again.
func (r *record) hear(now time.Time) bool {
	const ahead = (hubAhead - 1) * hubEvery
	if since := now.Sub(r.heard); since > 0 || since < -ahead-hubEvery { // the clock was set back
		r.heard = now
	}
	if r.heard.Sub(now) > ahead {
		return false
	}
	r.heard = r.heard.Add(hubEvery)
	return true
}

// verify takes up what the hub says of the subscription, if it is wanted.
func (c *Crawler) verify(r *record, says url.Values) (status int) {
	before := *r.Push
	seconds, _ := strconv.ParseInt(says.Get("hub.lease_seconds"), 10, 32)
	switch mode := says.Get("hub.mode"); {
	case says.Get("hub.topic") != r.Push.Topic:
		return http.StatusNotFound
	case mode == "subscribe":
		r.Push.Until = c.clock().Add(min(time.Duration(seconds)*time.Second, lease))
	case mode == "denied":
		r.Push.Until = time.Time{}
	default:
		return http.StatusNotFound // nobody asked for the end of it
	}
	if err := c.keepHeld(r); err != nil {
		*r.Push = before
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// readPush reads what a hub sends of a feed. What is not signed with the secret is ignored, and so
// is what is no feed.
func (c *Crawler) readPush(w http.ResponseWriter, q *http.Request, p *push) (sent *feed.Feed, status int) {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(pushTimeout)) // if it is a connection
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxPush))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, http.StatusRequestTimeout
	}
	at, err := url.Parse(p.Topic)
	if err != nil || !signed(body, q.Header.Get("X-Hub-Signature"), p.Secret) {
		return nil, http.StatusOK
	}
	sent, err = feed.Parse(body, q.Header.Get("Content-Type"), at)
	if err != nil {
		c.opt.Log.Warn("what a hub sent cannot be read", "hub", p.Hub, "error", err)
	}
	return sent, http.StatusOK
}

// pushed takes up what a hub sent, as if it had been found by a request, but for what the feed shows besides.
func (c *Crawler) pushed(r *record, sent *feed.Feed) (status int) {
	before, now := *r, c.clock()
	e := entry{Outcome: pushed, Previous: r.Last, Items: r.news(sent.Items, now)}
	commit, err := c.note(r, &e)
	if commit == nil {
		*r = before
	}
	if err != nil {
		c.opt.Log.Error("what a hub sent was not kept", "feed", r.ID.URL, "error", err)
		return http.StatusServiceUnavailable
	}
	commit.Wait()
	return http.StatusOK
}

// signed reports whether a body is signed with a secret: method=hex of its HMAC.
func signed(body []byte, signature, secret string) bool {
	method, sum, _ := strings.Cut(signature, "=")
	makeHash := map[string]func() hash.Hash{
		"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
	}[method]
	want, err := hex.DecodeString(sum)
	if makeHash == nil || err != nil {
		return false
	}
	mac := hmac.New(makeHash, []byte(secret))
	mac.Write(body)
	return hmac.Equal(mac.Sum(nil), want)
}
