package crawl

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ephemera/live/store"
)

// Each new item is posted to a program. What is still to be posted is kept with the journal,
// and is forgotten when the program has taken it: so the program receives each item at least
// once, and after a kill perhaps twice, with the same id.
const (
	hookPrefix  = "hook/"
	hookTimeout = 10 * time.Second
	longestWait = time.Hour // after failures
)

// hook is a program to which new items are posted.
type hook struct {
	url    string
	secret []byte
	wait   time.Duration // after the first failure

	// These are locked by the crawler's lock.
	waiting  []place // items that are to be posted, the next one first
	failures int     // in a row
	since    time.Time
	error    string // of the last failure
}

func (o *Options) newHook() *hook {
	return &hook{url: o.Hook, secret: o.HookSecret, wait: time.Second}
}

// values returns what has the items of an entry be posted. Those of a first look at a feed
// are not new.
func (h *hook) values(e *entry, seq uint64) (values []store.Value) {
	if h.url == "" || e.Outcome == imported || e.Previous.IsZero() {
		return nil
	}
	for k := range e.Items {
		values = append(values, store.Value{Name: hookPrefix + place{seq, k}.String(), Data: []byte("1")})
	}
	return values
}

// take takes up what values returned, when it was kept.
func (h *hook) take(values []store.Value) {
	for _, v := range values {
		p, _ := parsePlace(strings.TrimPrefix(v.Name, hookPrefix)) // as they were written
		h.waiting = append(h.waiting, p)
	}
}

// loadHook takes up which items are still to be posted.
func (c *Crawler) loadHook() error {
	c.hook = c.opt.newHook()
	return c.store.Values(hookPrefix, "", func(name string, data []byte) bool {
		c.hook.take([]store.Value{{Name: name, Data: data}})
		return true
	})
}

// notice is what is posted of an item.
type notice struct {
	Event string     `json:"event"`
	ID    string     `json:"id"` // of the item, the same if it is posted again
	Found time.Time  `json:"found"`
	Feed  noticeFeed `json:"feed"`
	Item  jsonItem   `json:"item"` // as in the JSON Feed
}

type noticeFeed struct {
	Title      string   `json:"title"`
	URL        string   `json:"url"`
	Categories []string `json:"categories,omitempty"`
}

// nextNotice returns the next item that is to be posted, and its notice. It is none if there is
// no item, or if the item has not reached the disk yet.
func (c *Crawler) nextNotice() (p place, body []byte, id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := c.hook; len(h.waiting) > 0; {
		p = h.waiting[0]
		mark, err := c.store.Value(hookPrefix + p.String())
		if err != nil || mark == nil {
			return p, nil, "", err
		}
		it, err := c.kept(&drop{place: p})
		if err != nil {
			return p, nil, "", err
		}
		if it == nil || c.feeds[it.Feed] == nil { // it is too old to be kept
			if err := c.store.SetValue(hookPrefix+p.String(), nil); err != nil {
				return p, nil, "", err
			}
			h.waiting = h.waiting[1:]
			continue
		}
		it.from = c.feeds[it.Feed]
		r := it.from
		of := noticeFeed{r.Name(), r.Address(), r.Categories}
		body, err = json.Marshal(notice{"item", it.Key(), it.At.UTC(), of, it.asJSON()})
		return p, body, it.Key(), err
	}
	return p, nil, "", nil
}

// post makes the request, and returns why the program has not taken it.
func (h *hook) post(ctx context.Context, agent string, body []byte, id string) error {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, h.secret)
	mac.Write(body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", agent)
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	r.Header.Set("X-Ephemera-Delivery", id)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	var in *url.Error
	if errors.As(err, &in) {
		return in.Err // without the address, which may be a secret
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	io.CopyN(io.Discard, res.Body, 64<<10)
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return nil
}

// postNext posts the next item, and returns whether there was one, and for how long to wait
// before the next. After a failure the others come first, so that one item which the program
// cannot take holds up no other.
func (c *Crawler) postNext(ctx context.Context) (was bool, wait time.Duration) {
	h := c.hook
	p, body, id, err := c.nextNotice()
	if err == nil && body == nil {
		return false, time.Second
	}
	if err == nil {
		err = h.post(ctx, c.opt.Agent, body, id)
	}
	if err == nil {
		err = c.store.SetValue(hookPrefix+p.String(), nil)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil: // it says nothing of the program
		return true, 0
	case err == nil:
		h.waiting, h.failures, h.error = h.waiting[1:], 0, ""
		return true, 0
	}
	if h.failures == 0 {
		h.since = c.clock()
		c.opt.Log.Warn("the program of -hook does not take an item; it is posted again", "error", err)
	}
	wait = h.wait
	for range min(h.failures, 20) {
		wait = min(2*wait, longestWait)
	}
	h.failures++
	h.error = err.Error()
	h.waiting = append(h.waiting[1:], p)
	return true, wait + rand.N(wait/2+1)
}

// postAll posts items until the context ends.
func (c *Crawler) postAll(ctx context.Context) {
	if c.hook.url == "" {
		return
	}
	for {
		_, wait := c.postNext(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// postWaiting posts the items that wait, up to the first failure.
func (c *Crawler) postWaiting(ctx context.Context) {
	for was, wait := c.hook.url != "", time.Duration(0); was && wait == 0 && ctx.Err() == nil; {
		was, wait = c.postNext(ctx)
	}
}
