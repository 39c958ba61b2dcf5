package crawl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/learner"
	"ephemera/learner/forecast"
	"ephemera/live/feed"
	"ephemera/live/hostname"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// record is what is kept of a feed.
type record struct {
	Place     feed.Place `json:"place"`
	Title     string     `json:"title,omitempty"`
	Last      time.Time  `json:"last,omitzero"`    // when it showed what it has, or that nothing is new
	Tried     time.Time  `json:"tried,omitzero"`   // the end of the last request
	Checked   time.Time  `json:"checked,omitzero"` // the last fetch, by the clock of the reader that made it
	NotBefore time.Time  `json:"not_before,omitzero"`
	Why       string     `json:"why,omitempty"`      // of NotBefore
	Pace      feed.Pace  `json:"pace,omitzero"`      // that the feed asked for when it was found last
	Capped    string     `json:"capped,omitempty"`   // what its publisher asked for beyond what is obeyed
	Imported  time.Time  `json:"imported,omitzero"`  // end of a recording that was imported; zero after the first look
	Failures  int        `json:"failures,omitempty"` // in a row
	Error     string     `json:"error,omitempty"`    // of the last one
	Gone      bool       `json:"gone,omitempty"`
	Push      *push      `json:"push,omitempty"` // of a feed that names a hub
	HubAsked  time.Time  `json:"hub_asked,omitzero"`
	Seen      []uint64   `json:"seen,omitempty"`   // items
	Items     int        `json:"items,omitempty"`  // found
	Missed    int        `json:"missed,omitempty"` // requests that showed nothing but new items
	Looks     []look     `json:"looks,omitempty"`  // the last ones, the last first
	Hours     [7][24]int `json:"hours,omitzero"`   // when items were published, by day from Monday and hour, UTC
	Left      *left      `json:"left,omitempty"`   // of one that was taken off the list

	Worth      float64     `json:"-"` // of an item
	Categories []Folder    `json:"-"` // of the list
	ID         schedule.ID `json:"-"`
	listed     bool        // in the OPML file
	byList     time.Time   // when the fetch that was looked at last was, by the list of the reader
	unread     *unread     // that fetch, if the reader does not say how it ended
	held       bool        // a request is under way
	pushing    bool        // a hub is sending its items
	heard      time.Time   // up to when hubs have made their requests of it
	same       *record     // that is asked for at its place: itself, or another that moved there
}

// left is what the learner knew of a feed that it no longer crawls, for the case that it comes back.
type left struct {
	State json.RawMessage `json:"state"`
	Seq   uint64          `json:"seq"` // the last entry of the journal that is in it
}

// unread is what a reader fetched of a feed and does not give, while it gives its list.
type unread struct {
	fetched time.Time // the first such fetch since the look before
	tried   time.Time // the list by which it was asked last
	err     error
}

func newRecord(address string) *record {
	host := address
	if u, err := url.Parse(address); err == nil {
		host = hostname.Of(u.Hostname())
	}
	return &record{Place: feed.Place{URL: address}, ID: schedule.ID{Crawl: crawlName, Key: host, URL: address}}
}

// look is one at a feed, and how many items it found.
type look struct {
	At      time.Time    `json:"at"`
	Outcome feed.Outcome `json:"outcome"`
	Items   int          `json:"items,omitempty"`
}

// spelled returns an address in one spelling.
func spelled(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Host = strings.Replace(u.Host, u.Hostname(), hostname.Of(u.Hostname()), 1)
	if u.Port() == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	u.Path, u.Fragment = cmp.Or(u.Path, "/"), ""
	return u.String()
}

// Outcomes of entries of the journal other than those of fetches.
const (
	pushed   feed.Outcome = "pushed"   // a hub sent the items
	imported feed.Outcome = "imported" // a recording did
)

// entry is an entry of the journal: one look at a feed and what it brought.
type entry struct {
	Feed      string       `json:"feed"`
	At        time.Time    `json:"at"`
	Outcome   feed.Outcome `json:"outcome"`
	Items     []feed.Item  `json:"items,omitempty"` // that were new; on disk without what people read
	Truncated bool         `json:"truncated,omitempty"`
	Worth     float64      `json:"worth"` // of each item
	NotBefore time.Time    `json:"not_before"`
	Previous  time.Time    `json:"previous,omitzero"`   // look at the feed; zero for the first
	ByReader  bool         `json:"by_reader,omitempty"` // it fetched the feed by its own rule, and nobody asked it to
	Unseen    bool         `json:"unseen,omitempty"`    // the reader may have fetched the feed more often since then

	seq uint64 // 1, 2, …
}

// undated returns when an item without a date was published, as far as is known: a hub sends it at once, and else it
// was between two looks.
func (e *entry) undated() time.Time {
	if e.Outcome == pushed {
		return e.At
	}
	return e.At.Add(-e.At.Sub(e.Previous) / 2)
}

const (
	journalPrefix  = "crawl/"
	learnerName    = "snapshot"
	unansweredName = "unanswered" // requests since then that are not in the journal
	saveEvery      = time.Hour
)

// worthOf returns what the learner observes that an item of a feed is worth. It counts no items that are worth
// nothing, and the page is to show how many a feed has a day.
func worthOf(feed float64) *float64 { return new(max(feed, 1e-6)) }

func journalName(seq uint64) string { return fmt.Sprintf("%s%016x", journalPrefix, seq) }

// snapshot is the learner, and the sums, as they were after an entry of the journal.
type snapshot struct {
	Seq    uint64      `json:"seq"`
	State  []byte      `json:"state"`
	Stats  stats       `json:"stats"`
	Recent []time.Time `json:"recent"` // requests
}

// load takes up the state, with the feeds of the OPML file.
func (c *Crawler) load() error {
	var bad error
	err := c.store.URLs(crawlName, "", func(kept *store.Record) bool {
		r := newRecord(kept.URL)
		r.ID = kept.ID // earlier versions had hosts in Unicode, too
		c.feeds[kept.URL] = r
		bad = json.Unmarshal(kept.Data, r)
		return bad == nil
	})
	if err != nil {
		return err
	}
	if bad != nil {
		return bad
	}
	if err := errors.Join(c.loadReading(), c.loadLearner()); err != nil {
		return err
	}
	if err := c.loadHosts(); err != nil {
		return err
	}
	c.latest = c.stats.Last
	for _, r := range c.feeds {
		for _, t := range []time.Time{r.Tried, r.Last} {
			if t.After(c.latest) {
				c.latest = t
			}
		}
	}
	for _, b := range c.blocked {
		if b.Asked.After(c.latest) {
			c.latest = b.Asked
		}
	}
	// Of a request that was under way at a kill, only the schedule knows when it was made. At an
	// earlier time it would find its clock set back, and leave that feed alone for too short.
	if now := c.store.Now(); now > c.latest.UnixMilli() && now > 0 {
		c.latest = time.UnixMilli(now)
	}
	if c.latest.IsZero() {
		c.latest = c.opt.Now().Round(0)
	}
	if err := c.loadRecent(c.latest); err != nil {
		return err
	}
	c.loadAsked()
	if err := errors.Join(c.loadItems(), c.loadHook()); err != nil {
		return err
	}
	if err := c.replay(); err != nil {
		return err
	}
	c.listing.read = c.latest
	if c.opt.Reader == nil {
		c.mu.Lock()
		err = c.reread(c.latest)
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
	c.saved = c.clock()
	return nil
}

// loadLearner takes up the learner and the sums. Where its epochs were of another length
// or its objective another, or none was kept that this program reads, it learns the journal
// anew.
func (c *Crawler) loadLearner() error {
	data, err := c.store.Value(learnerName)
	if err != nil {
		return err
	}
	if data == nil {
		return c.beginLearner()
	}
	var kept snapshot
	if err := json.Unmarshal(data, &kept); err != nil {
		return err
	}
	c.recent = kept.Recent
	l, s, err := decode(kept.State)
	epoch, budget := c.opt.epoch()
	if err != nil {
		name := learnerName + " until " + c.opt.Now().UTC().Format(time.RFC3339)
		c.opt.Log.Warn("what was learned is kept under another name, and the learner begins anew with what was found",
			"name", name, "why", err)
		if err := c.store.SetValue(name, data); err != nil {
			return err
		}
		return c.beginLearner()
	}
	if s.Length != epoch.Seconds() || s.Objective != c.opt.objective() {
		return c.beginLearner()
	}
	c.learner = l
	c.learner.Carry()
	limits := c.opt.limits()
	c.learner.SetIntervals(limits.Shortest, limits.Longest)
	c.seq, c.stats = kept.Seq, kept.Stats
	return c.learner.SetBudget(budget)
}

func decode(state []byte) (*learner.Crawler, *learner.Saved, error) {
	s, err := learner.Decode(state)
	if err != nil {
		return nil, nil, err
	}
	l, err := s.Crawler()
	return l, s, err
}

// beginLearner begins the learner anew, at the first entry of the journal.
func (c *Crawler) beginLearner() error {
	start := c.opt.Now()
	err := c.journal(0, func(e *entry) bool {
		start = e.At
		return false
	})
	if err != nil {
		return err
	}
	// Its epochs begin a minute after the hour: much is published at full hours.
	l, err := c.opt.newLearner(start.Truncate(time.Hour).Add(-59 * time.Minute))
	if err != nil {
		return err
	}
	c.learner, c.seq, c.recent, c.stats = l, 0, nil, stats{Outcome: map[feed.Outcome]int{}}
	return nil
}

// objective returns what looks are to bring about.
func (o *Options) objective() env.Objective {
	if o.Objective.Law == "" {
		return env.Delay
	}
	return o.Objective
}

// newLearner returns a learner whose first epoch begins then.
func (o *Options) newLearner(start time.Time) (*learner.Crawler, error) {
	epoch, budget := o.epoch()
	set := forecast.DefaultSettings()
	set.Horizon *= time.Hour.Hours() / epoch.Hours()
	l, err := learner.NewCrawler(start, learner.CrawlerOptions{
		Epoch: epoch, Budget: budget, Objective: o.objective(), Settings: &set,
	})
	if err == nil {
		l.Carry()
	}
	return l, err
}

// replay gives the learner and the sums the entries of the journal that they do not
// know, also of feeds that have left the list since: what they leave behind has them.
func (c *Crawler) replay() error {
	var bad error
	err := c.journal(c.seq, func(e *entry) bool {
		c.seq = e.seq
		c.stats.add(e)
		if r := c.feeds[e.Feed]; r != nil && !c.learner.Has(e.Feed) {
			bad = c.admit(r)
		}
		bad = errors.Join(bad, c.opt.learn(c.learner, e))
		return bad == nil
	})
	if err != nil {
		return err
	}
	return bad
}

// journal calls yield with the entries after one of them.
func (c *Crawler) journal(after uint64, yield func(*entry) bool) error {
	var bad error
	err := c.store.Values(journalPrefix, journalName(after+1), func(name string, value []byte) bool {
		var e entry
		if _, bad = fmt.Sscanf(name, journalPrefix+"%x", &e.seq); bad == nil {
			bad = json.Unmarshal(value, &e)
		}
		return bad == nil && yield(&e)
	})
	if err != nil {
		return err
	}
	return bad
}

// keepHeld puts on disk what is known of a feed, and leaves the end of its request open, if one was made.
func (c *Crawler) keepHeld(r *record) error {
	data, err := json.Marshal(r)
	if err == nil {
		_, err = c.store.SetData(r.ID, data)
	}
	return err
}

// save keeps the learner, once an hour or at the end.
func (c *Crawler) save(now time.Time, end bool) error {
	if !end && now.Sub(c.saved) < saveEvery {
		return nil
	}
	c.saved = now
	if err := errors.Join(c.sweep(now), c.ebb(now)); err != nil {
		return err
	}
	values, err := c.snapshot()
	if err == nil {
		err = c.store.Set(values...)
	}
	if err == nil {
		c.unanswered = nil
	}
	return err
}

// snapshot returns the learner and the sums as they are kept, and that there are no unanswered requests since.
func (c *Crawler) snapshot() ([]store.Value, error) {
	var state bytes.Buffer
	if err := c.learner.Save(&state); err != nil {
		return nil, err
	}
	data, err := json.Marshal(snapshot{c.seq, state.Bytes(), c.stats, c.recent})
	return []store.Value{{Name: learnerName, Data: data}, {Name: unansweredName}}, err
}
