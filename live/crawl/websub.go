package crawl

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
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
	pushedWait = 24 * time.Hour      // between two looks at a feed whose hub tells what is new
	lease      = 10 * 24 * time.Hour // that a hub is asked for
)

// push is the subscription of a feed at its hub, by WebSub
// (https://www.w3.org/TR/websub).
type push struct {
	Hub    string    `json:"hub"`
	Topic  string    `json:"topic"`
	Token  string    `json:"token"` // of the address that the hub is given
	Secret string    `json:"secret"`
	Asked  time.Time `json:"asked,omitzero"`
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

// renew asks the hub of a feed for a subscription: after looks, at most once a day,
// from two days before the lease ends on.
func (c *Crawler) renew(r *record, now time.Time) {
	p := r.Push
	if c.opt.PublicURL == "" || p == nil || now.Sub(p.Asked) < 24*time.Hour || p.Until.Sub(now) > 48*time.Hour {
		return
	}
	p.Asked = now
	hub, form := p.Hub, url.Values{
		"hub.mode": {"subscribe"}, "hub.topic": {p.Topic}, "hub.secret": {p.Secret},
		"hub.callback":      {strings.TrimSuffix(c.opt.PublicURL, "/") + "/websub/" + p.Token},
		"hub.lease_seconds": {fmt.Sprint(int(lease.Seconds()))},
	}
	c.running.Go(func() {
		if err := c.fetcher.Subscribe(hub, form); err != nil {
			c.opt.Log.Warn("a hub did not take the subscription", "feed", r.ID.URL, "error", err)
		}
	})
}

// websub answers a hub.
func (c *Crawler) websub(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	status := http.StatusGone // nobody here subscribes to it
	for _, r := range c.feeds {
		switch {
		case !r.listed || r.Push == nil || r.Push.Token != q.PathValue("token"):
			continue
		case r.held:
			status = http.StatusServiceUnavailable // it is being asked for
		case q.Method == http.MethodGet:
			status = c.verify(r, q)
		default:
			status = c.pushed(r, q, body)
		}
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	if status == http.StatusOK {
		io.WriteString(w, q.FormValue("hub.challenge"))
	}
}

// verify takes up what the hub says of the subscription, if it is wanted.
func (c *Crawler) verify(r *record, q *http.Request) (status int) {
	seconds, _ := strconv.ParseInt(q.FormValue("hub.lease_seconds"), 10, 32)
	switch mode := q.FormValue("hub.mode"); {
	case q.FormValue("hub.topic") != r.Push.Topic:
		return http.StatusNotFound
	case mode == "subscribe":
		r.Push.Until = c.opt.Now().Add(min(time.Duration(seconds)*time.Second, lease))
	case mode == "denied":
		r.Push.Until = time.Time{}
	default:
		return http.StatusNotFound // nobody asked for the end of it
	}
	if _, err := c.keep(r, nil); err != nil {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// pushed takes up what a hub tells, as if it had been found by a request. What is not
// signed with the secret is ignored.
func (c *Crawler) pushed(r *record, q *http.Request, body []byte) (status int) {
	at, err := url.Parse(r.Push.Topic)
	if err != nil || !signed(body, q.Header.Get("X-Hub-Signature"), r.Push.Secret) {
		return http.StatusOK
	}
	told, err := feed.Parse(body, q.Header.Get("Content-Type"), at)
	if err != nil {
		c.opt.Log.Warn("what a hub tells cannot be read", "feed", r.ID.URL, "error", err)
		return http.StatusOK
	}
	now := c.opt.Now()
	e := entry{Outcome: pushed, Previous: r.Last, Items: r.news(told.Items, now)}
	r.Last = now
	commit, err := c.note(r, &e)
	if err != nil {
		return http.StatusServiceUnavailable
	}
	commit.Wait()
	return http.StatusOK
}

// signed reports whether a body is signed with a secret: method=hex of its HMAC.
func signed(body []byte, signature, secret string) bool {
	method, sum, _ := strings.Cut(signature, "=")
	makeHash := map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}[method]
	want, err := hex.DecodeString(sum)
	if makeHash == nil || err != nil {
		return false
	}
	mac := hmac.New(makeHash, []byte(secret))
	mac.Write(body)
	return hmac.Equal(mac.Sum(nil), want)
}
