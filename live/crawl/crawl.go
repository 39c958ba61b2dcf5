package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"ephemera/learner"
	"ephemera/live/feed"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// Options are the settings of a [Crawler]. Zero stands for the default.
type Options struct {
	OPML    string  // file of the feeds
	Dir     string  // of the state
	Agent   string  // User-Agent, with a contact
	PerHour float64 // requests for feeds

	Worth       map[string]float64 // of an item, by the feed's address; before that of the OPML file
	HalfLife    time.Duration      // in which an item loses half of its interest; 2 h
	Shortest    time.Duration      // between two requests for a feed; 15 min
	Longest     time.Duration      // as far as requests are allowed; 24 h
	Unvalidated time.Duration      // shortest, for feeds that cannot be asked for changes alone; 24 h

	PublicURL    string // under which hubs reach the handler's /websub/; empty for no subscriptions
	AllowPrivate bool
	Timeout      time.Duration // of a request; 30 s
	MaxBytes     int64         // of a feed, unpacked; 10 MB
	Workers      int           // requests under way; 16

	Now func() time.Time // time.Now
	Log *slog.Logger

	// For tests, as in feed.Fetcher.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Header func(http.Header)
}

const crawlName = "feeds" // in the store

// later is when a feed is due that nobody asked for.
const later = int64(1) << 52

// Crawler crawls the feeds of an OPML file. Its methods may be called at once.
type Crawler struct {
	opt     Options
	store   *store.Store
	fetcher *feed.Fetcher
	running sync.WaitGroup

	mu       sync.Mutex
	learner  *learner.Crawler
	feeds    map[string]*record // by address in the OPML file
	listed   map[string]Outline // feeds of the OPML file
	file     os.FileInfo        // of the OPML file, as it was read
	fileErr  error              // of the last reading
	looked   time.Time          // at the file
	underWay int
	seq      uint64 // of the last entry of the journal
	saved    time.Time
	stats    stats
}

// record is what is kept of a feed.
type record struct {
	Place     feed.Place `json:"place"`
	Title     string     `json:"title,omitempty"`
	Added     time.Time  `json:"added"`
	Last      time.Time  `json:"last,omitzero"` // when it showed what it has, or that nothing is new
	NotBefore time.Time  `json:"not_before,omitzero"`
	Why       string     `json:"why,omitempty"`      // of NotBefore
	Imported  time.Time  `json:"imported,omitzero"`  // end of a recording that was imported; zero after the first look
	Failures  int        `json:"failures,omitempty"` // in a row
	Error     string     `json:"error,omitempty"`    // of the last one
	Gone      bool       `json:"gone,omitempty"`
	Push      *push      `json:"push,omitempty"`   // of a feed that names a hub
	Seen      []uint64   `json:"seen,omitempty"`   // items
	Looks     int        `json:"looks,omitempty"`  // successful requests
	Empty     int        `json:"empty,omitempty"`  // of these without anything new
	Items     int        `json:"items,omitempty"`  // found
	Missed    int        `json:"missed,omitempty"` // requests that showed nothing but new items

	url  string
	id   schedule.ID
	held bool // a request is under way
}

// hostOf returns the key of a feed's queue.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

func newRecord(address string) *record {
	return &record{url: address, Place: feed.Place{URL: address}, id: schedule.ID{Crawl: crawlName, Key: hostOf(address), URL: address}}
}

// Open takes up the state of a directory, or begins one.
func Open(o Options) (*Crawler, error) {
	o.HalfLife = cmp.Or(o.HalfLife, 2*time.Hour)
	o.Shortest = cmp.Or(o.Shortest, 15*time.Minute)
	o.Longest = cmp.Or(o.Longest, 24*time.Hour)
	o.Unvalidated = cmp.Or(o.Unvalidated, 24*time.Hour)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.MaxBytes = cmp.Or(o.MaxBytes, 10<<20)
	o.Workers = cmp.Or(o.Workers, 16)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Crawler{opt: o, feeds: map[string]*record{}, listed: map[string]Outline{}}
	listed, err := ReadOPML(o.OPML)
	if err != nil {
		return nil, err
	}
	c.store, err = store.Open(o.Dir, &store.Options{Delay: 1000, Cache: 16 << 20, Log: o.Log})
	if errors.Is(err, syscall.EAGAIN) {
		return nil, fmt.Errorf("%s is in use by another crawl; end that one first", o.Dir)
	}
	if err != nil {
		return nil, err
	}
	c.fetcher = &feed.Fetcher{
		Agent: o.Agent, Timeout: o.Timeout, MaxBytes: o.MaxBytes, AllowPrivate: o.AllowPrivate,
		Memory: c.store, Now: o.Now, Dial: o.Dial, Header: o.Header,
	}
	if err := c.load(listed); err != nil {
		c.store.Close()
		return nil, fmt.Errorf("%s: %w", o.Dir, err)
	}
	return c, nil
}

// epoch returns how long an epoch lasts, about five minutes, and how many requests
// there are in it, a whole number.
func (o *Options) epoch() (length time.Duration, requests float64) {
	requests = math.Ceil(o.PerHour / 12)
	return time.Duration(math.Ceil(3600*requests/o.PerHour)) * time.Second, requests
}

// free returns from when a feed may be asked for.
func (c *Crawler) free(r *record) time.Time {
	if host, _ := c.fetcher.Blocked(r.id.Key); host.After(r.NotBefore) {
		return host // if it cannot be read, the fetcher refuses
	}
	return r.NotBefore
}

// list takes up the feeds of the OPML file.
func (c *Crawler) list(feeds []Outline) error {
	clear(c.listed)
	for _, o := range feeds {
		if w, ok := c.opt.Worth[o.URL]; ok {
			o.Worth = w
		}
		c.listed[o.URL] = o
		r := c.feeds[o.URL]
		if r == nil {
			r = newRecord(o.URL)
			r.Title, r.Added = o.Title, c.opt.Now()
			c.feeds[o.URL] = r
			if _, err := c.keep(r, nil); err != nil {
				return err
			}
		}
	}
	for address := range c.opt.Worth {
		if _, in := c.listed[address]; !in {
			c.opt.Log.Warn("a worth is given of a feed that is not in the list", "feed", address)
		}
	}
	return c.enroll()
}

// enroll has the learner know the feeds that are to be crawled, and no others.
func (c *Crawler) enroll() error {
	if c.learner == nil {
		return nil
	}
	for _, address := range slices.Sorted(maps.Keys(c.feeds)) {
		r := c.feeds[address]
		_, in := c.listed[address]
		var err error
		switch has := c.learner.Has(address); {
		case in && !r.Gone && !has:
			err = c.learner.Add(address, learner.Source{Shortest: c.opt.Shortest, Longest: c.opt.Longest})
		case (!in || r.Gone) && has:
			err = c.learner.Remove(address)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reread reads the OPML file again if it was changed. One that cannot be read
// changes nothing.
func (c *Crawler) reread(now time.Time) {
	if now.Sub(c.looked) < 10*time.Second {
		return
	}
	c.looked = now
	info, err := os.Stat(c.opt.OPML)
	if err == nil {
		if c.file != nil && info.ModTime().Equal(c.file.ModTime()) && info.Size() == c.file.Size() {
			return
		}
		c.file = info
		var feeds []Outline
		if feeds, err = ReadOPML(c.opt.OPML); err == nil {
			err = c.list(feeds)
		}
	}
	if err != nil && (c.fileErr == nil || c.fileErr.Error() != err.Error()) {
		c.opt.Log.Error("the list of feeds stays as it was", "error", err)
	}
	c.fileErr = err
}

// Tick begins the requests for which it is time, and returns how many.
func (c *Crawler) Tick() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opt.Now()
	c.reread(now)
	room := c.opt.Workers - c.underWay
	var due []schedule.ID
	for len(due) < room {
		names := c.learner.Select(now, room-len(due))
		if len(names) == 0 {
			break
		}
		for _, name := range names {
			r := c.feeds[name]
			if until := c.free(r); until.After(now) {
				if err := c.learner.Update(learner.Crawl{Source: name, At: now, Outcome: learner.Failed, NotBefore: until}); err != nil {
					return 0, err
				}
				continue
			}
			due = append(due, r.id)
		}
	}
	c.store.Hasten(due, now.UnixMilli())
	taken, _, err := c.store.Take(schedule.Request{
		Now: now.UnixMilli(), Crawl: crawlName, PerQueue: 1, Enough: max(room, 1), Hold: max(c.opt.Shortest, time.Hour).Milliseconds(),
	})
	if err != nil {
		return 0, err
	}
	begun := 0
	for _, t := range taken {
		r := c.feeds[t.URL]
		if _, in := c.listed[t.URL]; !in || r == nil || r.Gone || c.free(r).After(now) {
			if r != nil {
				if _, err := c.keep(r, nil); err != nil {
					return begun, err
				}
			}
			continue
		}
		begun++
		c.underWay++
		r.held = true
		place := r.Place
		c.running.Go(func() {
			res := c.fetcher.Fetch(place)
			if err := c.take(r, &res); err != nil {
				c.opt.Log.Error("an answer was not kept", "feed", r.url, "error", err)
			}
		})
	}
	return begun, c.save(now, false)
}

// Wait returns when no request is under way.
func (c *Crawler) Wait() { c.running.Wait() }

// Run ticks every second until the context ends, and then waits for the requests
// under way.
func (c *Crawler) Run(ctx context.Context) error {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	var last string
	for {
		_, err := c.Tick()
		if err != nil && err.Error() != last { // such as a full disk
			c.opt.Log.Error("no request is made", "error", err)
			last = err.Error()
		} else if err == nil {
			last = ""
		}
		select {
		case <-ctx.Done():
			c.Wait()
			return nil
		case <-t.C:
		}
	}
}

// Close waits for the requests under way, and closes the state.
func (c *Crawler) Close() error {
	c.Wait()
	c.mu.Lock()
	err := c.save(c.opt.Now(), true)
	c.mu.Unlock()
	if e := c.store.Close(); err == nil {
		err = e
	}
	return err
}

// take takes up what a fetch brought.
func (c *Crawler) take(r *record, res *feed.Result) error {
	now := c.opt.Now()
	e := entry{Feed: r.url, At: now, Outcome: res.Outcome, Status: res.Status, Previous: r.Last}
	c.mu.Lock()
	c.underWay--
	r.held = false
	wait, why := c.opt.Shortest, ""
	if res.Wait > wait {
		wait, why = res.Wait, "its server asks to wait"
	}
	r.Error = ""
	if res.Err != nil {
		r.Error = res.Err.Error()
		e.Error = r.Error
	}
	switch res.Outcome {
	case feed.Failed:
		r.Failures++
		if d := c.backoff(r); d > wait {
			wait, why = d, "it failed"
		}
	case feed.Gone:
		r.Gone = true
	case feed.Found:
		if res.Feed.Title != "" {
			r.Title = res.Feed.Title
		}
		e.Items, e.Truncated = r.news(res.Feed.Items, now)
		e.First = e.Previous.IsZero()
		r.hub(res.Feed)
		fallthrough
	case feed.Unchanged:
		r.Place, r.Failures, r.Last = res.Place, 0, now
		if d, reason := c.usual(r, now); d > wait {
			wait, why = d, reason
		}
		r.Looks++
		r.Items += len(e.Items)
		if len(e.Items) == 0 {
			r.Empty++
		}
		if e.Truncated {
			r.Missed++
		}
	}
	r.NotBefore, r.Why = now.Add(wait), why
	subscribe := c.renew(r, now)
	commit, err := c.note(r, &e)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	commit.Wait()
	if subscribe != nil {
		if err := subscribe(); err != nil {
			c.opt.Log.Warn("a hub did not take the subscription", "feed", r.url, "error", err)
		}
	}
	return nil
}

// note tells the learner and the sums of an entry, and puts it on disk.
func (c *Crawler) note(r *record, e *entry) (*store.Commit, error) {
	e.NotBefore = r.NotBefore
	if o, in := c.listed[r.url]; in {
		e.Worth = o.Worth
	}
	if err := c.learn(e); err != nil {
		return nil, err
	}
	c.stats.add(e)
	return c.keep(r, e)
}

// usual returns how long a feed that showed what it has is left alone.
func (c *Crawler) usual(r *record, now time.Time) (wait time.Duration, why string) {
	wait = c.opt.Shortest
	if !r.Place.HasValidators() && c.opt.Unvalidated > wait {
		wait, why = c.opt.Unvalidated, "it cannot be asked for changes alone"
	}
	if c.opt.PublicURL != "" && r.Push != nil && r.Push.Until.After(now) && pushedWait > wait {
		wait, why = pushedWait, "its hub tells what is new"
	}
	return wait, why
}

// backoff returns how long a feed that failed n times is left alone: twice as long
// each time up to the longest interval, and up to half of it more, which differs
// from feed to feed.
func (c *Crawler) backoff(r *record) time.Duration {
	d := min(c.opt.Shortest<<min(r.Failures, 20), c.opt.Longest)
	if d <= 0 {
		d = c.opt.Longest
	}
	h := fnv.New32a()
	fmt.Fprint(h, r.url, r.Failures)
	return d + time.Duration(float64(d)/2*float64(h.Sum32())/(1<<32))
}

// seenTimes is how many times as many items are remembered as a feed shows.
const seenTimes = 5

// news returns the items that were not seen before, with times at which they can
// have appeared, and whether there are no others.
func (r *record) news(shown []feed.Item, now time.Time) (items []item, all bool) {
	known := make(map[uint64]bool, len(r.Seen))
	for _, id := range r.Seen {
		known[id] = true
	}
	seen := make([]uint64, 0, len(shown))
	for _, it := range shown {
		seen = append(seen, it.ID)
		if !known[it.ID] {
			items = append(items, item{Title: it.Title, Link: it.Link, Published: it.Published})
		}
		delete(known, it.ID)
	}
	room := max(seenTimes*len(shown), len(r.Seen)) // a hub may tell of one item alone
	for _, id := range r.Seen {
		if known[id] && len(seen) < room {
			seen = append(seen, id)
		}
	}
	first := r.Last.IsZero()
	if !r.Imported.IsZero() {
		items = slices.DeleteFunc(items, func(it item) bool { return !it.Published.After(r.Imported) })
		r.Imported = time.Time{}
	}
	r.Seen = seen
	for k := range items {
		it := &items[k]
		if it.Published.After(now) || !first && it.Published.Before(r.Last) {
			it.Published = time.Time{} // it cannot have been then
		}
		if !it.Published.IsZero() && !first {
			it.Delay = now.Sub(it.Published)
		}
	}
	return items, !first && len(items) > 0 && len(items) == len(shown)
}
