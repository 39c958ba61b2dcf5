package crawl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"ephemera/learner"
	"ephemera/learner/forecast"
	"ephemera/live/feed"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// entry is an entry of the journal: one request and what it brought.
type entry struct {
	Feed      string       `json:"feed"`
	At        time.Time    `json:"at"`
	Outcome   feed.Outcome `json:"outcome"`
	Status    int          `json:"status,omitempty"`
	Error     string       `json:"error,omitempty"`
	Items     []item       `json:"items,omitempty"` // that were new
	First     bool         `json:"first,omitempty"` // first look at the feed
	Truncated bool         `json:"truncated,omitempty"`
	Pushed    bool         `json:"pushed,omitempty"`   // by a hub: there was no request
	Imported  bool         `json:"imported,omitempty"` // from a recording: nor here
	Worth     float64      `json:"worth"`              // of each item
	NotBefore time.Time    `json:"not_before"`
	Previous  time.Time    `json:"previous,omitzero"` // look at the feed
}

// item is an item that was found.
type item struct {
	Title     string        `json:"title,omitempty"`
	Link      string        `json:"link,omitempty"`
	Published time.Time     `json:"published,omitzero"` // zero where it is not known
	Delay     time.Duration `json:"delay,omitempty"`    // from there until it was found, ns; 0 at a first look
}

const (
	journalPrefix = "crawl/"
	learnerName   = "learner"
	saveEvery     = time.Hour
)

func journalName(seq uint64) string { return fmt.Sprintf("%s%016x", journalPrefix, seq) }

// snapshot is the learner, and the sums, as they were after an entry of the journal.
type snapshot struct {
	Seq   uint64 `json:"seq"`
	State []byte `json:"state"`
	Stats stats  `json:"stats"`
}

// load takes up the state.
func (c *Crawler) load(listed []Outline) error {
	var bad error
	err := c.store.URLs(crawlName, "", func(kept *store.Record) bool {
		r := newRecord(kept.URL)
		if bad = json.Unmarshal(kept.Data, r); bad != nil {
			return false
		}
		c.feeds[kept.URL] = r
		return true
	})
	if err := cmp.Or(err, bad); err != nil {
		return err
	}
	from, err := c.loadLearner()
	if err != nil {
		return err
	}
	if err := c.list(listed); err != nil {
		return err
	}
	if c.learner == nil {
		if err := c.begin(); err != nil {
			return err
		}
	}
	c.saved = c.opt.Now()
	return c.replay(from)
}

// replay tells the learner of the entries of the journal after one of them, and takes
// those into the sums that are not in them yet.
func (c *Crawler) replay(from uint64) error {
	var bad error
	summed := c.seq
	err := c.journal(min(from, summed), func(seq uint64, e *entry) bool {
		if c.seq = max(c.seq, seq); seq > summed {
			c.stats.add(e)
		}
		if seq > from {
			bad = c.learn(e)
		}
		return bad == nil
	})
	return cmp.Or(err, bad)
}

// loadLearner takes up the sums and the learner, and returns the last entry of the
// journal that it was told. One whose epochs were of another length is not taken up.
func (c *Crawler) loadLearner() (from uint64, err error) {
	data, err := c.store.Value(learnerName)
	if err != nil || data == nil {
		return 0, err
	}
	var kept snapshot
	if err := json.Unmarshal(data, &kept); err != nil {
		return 0, err
	}
	c.seq, c.stats = kept.Seq, kept.Stats
	s, err := learner.Decode(kept.State)
	if err != nil {
		return 0, err
	}
	epoch, budget := c.opt.epoch()
	if s.Length != epoch.Seconds() || s.Crawls == nil || s.Crawls.HalfLife != c.opt.HalfLife {
		return 0, nil
	}
	if c.learner, err = s.Crawler(); err != nil {
		return 0, err
	}
	return kept.Seq, c.learner.SetBudget(budget)
}

// begin begins the learner anew, at the first entry of the journal.
func (c *Crawler) begin() error {
	start := c.opt.Now()
	err := c.journal(0, func(_ uint64, e *entry) bool {
		start = e.At
		return false
	})
	if err != nil {
		return err
	}
	if c.learner, err = learner.NewCrawler(start, c.opt.learner()); err != nil {
		return err
	}
	return c.enroll()
}

// learner returns how the learner is set.
func (o *Options) learner() learner.CrawlerOptions {
	epoch, budget := o.epoch()
	set := forecast.DefaultSettings()
	set.Horizon *= time.Hour.Hours() / epoch.Hours()
	return learner.CrawlerOptions{Epoch: epoch, Budget: budget, HalfLife: o.HalfLife, Settings: &set}
}

// journal calls yield with the entries after one of them.
func (c *Crawler) journal(after uint64, yield func(seq uint64, e *entry) bool) error {
	var bad error
	err := c.store.Values(journalPrefix, journalName(after+1), func(name string, value []byte) bool {
		var seq uint64
		var e entry
		if _, bad = fmt.Sscanf(name[len(journalPrefix):], "%x", &seq); bad == nil {
			bad = json.Unmarshal(value, &e)
		}
		return bad == nil && yield(seq, &e)
	})
	return cmp.Or(err, bad)
}

// keep puts on disk what is known of a feed and, if there is one, an entry of the
// journal: both or neither, when the commit is done.
func (c *Crawler) keep(r *record, e *entry) (*store.Commit, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	due := later
	if r.Gone {
		due = schedule.Completed
	}
	if e == nil {
		return c.store.Put(r.id, due, r.Added.UnixMilli(), data)
	}
	value, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	c.seq++
	return c.store.Put(r.id, due, r.Added.UnixMilli(), data, store.Value{Name: journalName(c.seq), Data: value})
}

// save keeps the learner, once an hour or at the end.
func (c *Crawler) save(now time.Time, end bool) error {
	if !end && now.Sub(c.saved) < saveEvery {
		return nil
	}
	c.saved = now
	state, err := c.learner.Save()
	if err != nil {
		return err
	}
	value, err := json.Marshal(snapshot{c.seq, state, c.stats})
	if err != nil {
		return err
	}
	return c.store.SetValue(learnerName, value)
}

// leastWorth is what the learner is told for 0, which would stand for 1.
const leastWorth = 1e-6

// learn tells the learner of a request.
func (c *Crawler) learn(e *entry) error {
	if !c.learner.Has(e.Feed) {
		return nil
	}
	if e.Outcome == feed.Gone {
		return c.learner.Remove(e.Feed)
	}
	crawl := learner.Crawl{Source: e.Feed, At: e.At, NotBefore: e.NotBefore, Truncated: e.Truncated}
	switch e.Outcome {
	case feed.Failed:
		crawl.Outcome = learner.Failed
	case feed.Unchanged:
		crawl.Outcome = learner.Unchanged
	}
	worth := max(e.Worth, leastWorth)
	for _, it := range e.Items {
		if it.Published.IsZero() {
			if e.First {
				continue // it may be of any time
			}
			it.Published = e.At.Add(-e.At.Sub(e.Previous) / 2)
		}
		crawl.Items = append(crawl.Items, learner.Item{Published: it.Published, Worth: worth})
	}
	return c.learner.Update(crawl)
}
