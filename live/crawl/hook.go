package crawl

import (
	"bytes"
	"cmp"
	"container/heap"
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
	"slices"
	"strings"
	"time"

	"ephemera/live/store"
)

// Each new item is posted to a program. What is still to be posted is kept with the journal,
// and is forgotten when the program has taken it: so the program receives each item at least
// once, and after a kill perhaps twice, with the same id. An item that it does not take has a wait of
// its own, which is kept too.
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
	waiting postings
	failing int  // of them have failed
	silent  int  // times in a row that it did not answer
	said    bool // that it does not take all
}

// posting is an item that is to be posted, as it is kept.
type posting struct {
	place
	Failures int       `json:"failures,omitempty"`
	Since    time.Time `json:"since,omitzero"` // the first failure
	Again    time.Time `json:"again,omitzero"` // not before
	Error    string    `json:"error,omitempty"`

	k int // among those that wait
}

// postings are items that are to be posted, as a heap of package container/heap: the first is that which is
// posted next. Those that have failed come after those that have not, by when their waits are over.
type postings []*posting

func (q postings) Len() int { return len(q) }

func (q postings) Less(i, j int) bool {
	a, b := q[i], q[j]
	if (a.Failures > 0) != (b.Failures > 0) {
		return b.Failures > 0
	}
	return cmp.Or(a.Again.Compare(b.Again), a.compare(b.place)) < 0
}

func (q postings) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].k, q[j].k = i, j
}

func (q *postings) Push(p any) {
	*q = append(*q, p.(*posting))
	(*q)[len(*q)-1].k = len(*q) - 1
}

func (q *postings) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return p
}

func (p *posting) name() string { return hookPrefix + p.String() }

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
		values = append(values, store.Value{Name: hookPrefix + place{seq, k}.String(), Data: []byte("{}")})
	}
	return values
}

// take takes up what values returned, when it was kept.
func (h *hook) take(values []store.Value) {
	for _, v := range values {
		p := new(posting)
		// Earlier versions wrote a number for one that had not failed.
		json.Unmarshal(v.Data, p)
		p.place, _ = parsePlace(strings.TrimPrefix(v.Name, hookPrefix)) // as they were written
		heap.Push(&h.waiting, p)
		if p.Failures > 0 {
			h.failing++
		}
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
	Categories []Folder `json:"categories,omitempty"`
}

// due reports whether no wait holds the item back.
func (p *posting) due(now time.Time) bool {
	left := p.Again.Sub(now) // more than any wait after the clock was set back
	return left <= 0 || left > 2*longestWait
}

// next returns the item that is posted next, or nil if none waits that is due: the first, or after the
// clock was set back one whose wait is longer than any, which stands behind all others.
func (h *hook) next(now time.Time) *posting {
	k := slices.IndexFunc(h.waiting, func(p *posting) bool { return p.due(now) })
	if k < 0 {
		return nil
	}
	return h.waiting[k]
}

// drop forgets an item.
func (h *hook) drop(p *posting) {
	heap.Remove(&h.waiting, p.k)
	if p.Failures > 0 {
		h.failing--
	}
}

// nextNotice returns the item that is next, and its notice. The notice is none if there is no item, or
// if the item has not reached the disk yet.
func (c *Crawler) nextNotice(next func(now time.Time) *posting) (p *posting, body []byte, id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if p = next(c.clock()); p == nil {
			return nil, nil, "", nil
		}
		mark, err := c.store.Value(p.name())
		if err != nil || mark == nil {
			return p, nil, "", err
		}
		it, err := c.kept(&drop{place: p.place})
		if err != nil {
			return p, nil, "", err
		}
		if it == nil || c.feeds[it.Feed] == nil { // it is too old to be kept
			if err := c.store.SetValue(p.name(), nil); err != nil {
				return p, nil, "", err
			}
			c.hook.drop(p)
			continue
		}
		it.from = c.feeds[it.Feed]
		r := it.from
		of := noticeFeed{r.Name(), r.Address(), r.Categories}
		body, err = json.Marshal(notice{"item", it.Key(), it.At.UTC(), of, it.asJSON()})
		return p, body, it.Key(), err
	}
}

// post makes the request, and returns whether the program answers, and why it has not taken the item.
func (h *hook) post(ctx context.Context, agent string, body []byte, id string) (answers bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return false, err
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
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return false, fmt.Errorf("no answer within %v", hookTimeout)
	case errors.As(err, &in):
		return false, in.Err // without the address, which may be a secret
	case err != nil:
		return false, err
	}
	defer res.Body.Close()
	io.CopyN(io.Discard, res.Body, 64<<10)
	if res.StatusCode/100 != 2 {
		return true, fmt.Errorf("it answers %s", res.Status)
	}
	return true, nil
}

// after returns how long to wait after failures in a row.
func (h *hook) after(failures int) time.Duration {
	wait := h.wait
	for range min(failures-1, 20) {
		wait = min(2*wait, longestWait)
	}
	return wait + rand.N(wait/2+1)
}

// postNext posts the item that is next, and returns whether there was one, and for how long to wait before
// the next: the least wait after one that the program refused, and longer each time while it does not
// answer.
func (c *Crawler) postNext(ctx context.Context, next func(now time.Time) *posting) (was bool, wait time.Duration) {
	h := c.hook
	p, body, id, err := c.nextNotice(next)
	if err != nil {
		c.opt.Log.Error("an item that is to be posted was not read", "error", err)
		return false, time.Minute
	}
	if body == nil {
		return false, time.Second
	}
	answers, err := h.post(ctx, c.opt.Agent, body, id)
	if err != nil && ctx.Err() != nil { // it says nothing of the program
		return true, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.silent++; answers {
		h.silent = 0
	}
	if err == nil {
		h.drop(p)
		h.said = h.said && h.failing > 0
		if err := c.store.SetValue(p.name(), nil); err != nil {
			c.opt.Log.Error("an item was posted, and is posted again after the next start", "error", err)
		}
		return true, 0
	}
	if !h.said {
		c.opt.Log.Warn("the program of -hook does not take an item; it is posted again", "error", err)
	}
	h.said = true
	now := c.clock()
	if p.Failures++; p.Failures == 1 {
		p.Since = now
		h.failing++
	}
	p.Again, p.Error = now.Add(h.after(p.Failures)), err.Error()
	heap.Fix(&h.waiting, p.k)
	data, err := json.Marshal(p)
	if err == nil {
		err = c.store.SetValue(p.name(), data)
	}
	if err != nil {
		c.opt.Log.Error("the wait of an item was not kept", "error", err)
	}
	return true, h.after(h.silent)
}

// failed returns the items that wait after a failure.
func (h *hook) failed() (all []*posting) {
	for _, p := range h.waiting {
		if p.Failures > 0 {
			all = append(all, p)
		}
	}
	return all
}

// postAll posts items until the context ends.
func (c *Crawler) postAll(ctx context.Context) {
	if c.hook.url == "" {
		return
	}
	for {
		_, wait := c.postNext(ctx, c.hook.next)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// postWaiting posts each of the items that wait once, those that have failed before last. Where two in a
// row get no answer, it leaves the others for later.
func (c *Crawler) postWaiting(ctx context.Context) {
	c.mu.Lock()
	now := c.clock()
	left := slices.DeleteFunc(slices.Clone(c.hook.waiting), func(p *posting) bool { return !p.due(now) })
	c.mu.Unlock()
	slices.SortFunc(left, func(a, b *posting) int { return cmp.Or(a.Again.Compare(b.Again), a.compare(b.place)) })
	next := func(time.Time) (p *posting) {
		if len(left) > 0 {
			p, left = left[0], left[1:]
		}
		return p
	}
	for was := c.hook.url != ""; was && c.hook.silent < 2 && ctx.Err() == nil; {
		was, _ = c.postNext(ctx, next)
	}
}
