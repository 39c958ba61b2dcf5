package learner

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
)

// CrawlerState is what a [Crawler] holds in addition to its learner and its sources, as data.
type CrawlerState struct {
	PerGroup int           `json:"per_group"`
	Budget   float64       `json:"budget"`
	Now      time.Time     `json:"now"`              // latest time
	Origin   int64         `json:"origin,omitempty"` // first epoch at the start, Unix seconds; 0 in older versions
	Epoch    int           `json:"epoch"`
	Sources  int           `json:"sources"`
	Free     []int         `json:"free"`
	Plan     []int         `json:"plan"`
	Done     []env.Crawled `json:"done"` // interest that is not known yet is −1
	Carries  bool          `json:"carries,omitempty"`
	Left     float64       `json:"left,omitempty"` // of the budget, for the next epoch
}

// placeState is one source, as data.
type placeState struct {
	place
	Last      int `json:"last"`       // epoch
	NotBefore int `json:"not_before"` // epoch
}

// bySource is a learner whose state is mostly what it keeps of each source.
type bySource interface {
	Common() any      // its State without that, for SetState
	Pooled() any      // Common without anything that names a source
	Source(i int) any // that of source i, a pointer that encoding/json reads and writes
	// Restored takes up what was written to Source(i), in epochs that last as long as k of the
	// learner's. Of items, k is 1.
	Restored(i int, k float64)
}

// header returns the first line of a state file, without places of sources.
func (c *Crawler) header(state any) (s Saved, err error) {
	config, err := toml.Marshal(map[string]any{
		"algorithm": c.kind.Name, "knowledge": string(env.LevelOnline), "settings": c.opt.Settings,
	})
	if err != nil {
		return s, err
	}
	s = Saved{
		Format:    format,
		Version:   c.kind.version(env.LevelOnline),
		Config:    string(config),
		Start:     c.start.Unix(),
		Length:    c.opt.Epoch.Seconds(),
		Objective: c.opt.Objective,
	}
	s.Crawls = &CrawlerState{
		PerGroup: c.opt.PerGroup, Budget: c.opt.Budget, Now: c.now, Epoch: c.view.Epoch, Origin: c.origin,
	}
	s.State, err = json.Marshal(state)
	return s, err
}

// Save writes a state file: the line that [Saved] describes, one for each source, and
// one for what a learner like forecast keeps of each, since encoding/json holds all of
// a line. [Decode] and [Saved.Crawler] read it.
func (c *Crawler) Save(w io.Writer) error {
	parts, _ := c.learner.(bySource)
	state := c.learner.State
	if parts != nil {
		state = parts.Common
	}
	s, err := c.header(state())
	if err != nil {
		return err
	}
	s.Crawls.Sources, s.Crawls.Free, s.Crawls.Plan, s.Crawls.Done = len(c.src), c.free, c.plan, c.done
	s.Crawls.Carries, s.Crawls.Left = c.carries, c.left
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	err = e.Encode(s)
	for i := 0; i < len(c.src) && err == nil; i++ {
		err = e.Encode(placeState{c.src[i], c.view.Last[i], c.limits.NotBefore[i]})
	}
	for i := 0; parts != nil && i < len(c.src) && err == nil; i++ {
		err = e.Encode(parts.Source(i))
	}
	if err != nil {
		return err
	}
	return b.Flush()
}

// Crawler returns the crawler that was saved; it goes on as if it had not been
// interrupted.
func (s *Saved) Crawler() (*Crawler, error) {
	d := s.Crawls
	switch {
	case d == nil:
		return nil, fmt.Errorf("the learner %q was not saved by a program that crawls", s.config.Algorithm)
	case s.Objective.Law == "":
		return nil, errors.New("it was saved by a version that had a half-life in place of an objective")
	}
	c, err := newCrawler(time.Unix(s.Start, 0), CrawlerOptions{
		Learner: s.config.Algorithm, Settings: s.settings, Epoch: lasting(s.Length),
		Budget: d.Budget, PerGroup: d.PerGroup, Objective: s.Objective,
	})
	if err != nil {
		return nil, err
	}
	if d.Epoch < -1 || d.Epoch > int(max(0, d.Now.Sub(c.start))/c.opt.Epoch)+1 || d.Epoch > math.MaxInt32 {
		return nil, fmt.Errorf("epoch is %d; allowed are those from %v to %v", d.Epoch, c.start, d.Now)
	}
	c.view.Epoch, c.now, c.origin = d.Epoch, d.Now, cmp.Or(d.Origin, s.Start)
	c.carries, c.left = d.Carries, min(max(0, d.Left), 1)
	c.overdue.Due(nil, d.Epoch)
	lines := json.NewDecoder(bytes.NewReader(s.sources))
	lines.DisallowUnknownFields()
	for i := range d.Sources {
		var p placeState
		err := lines.Decode(&p)
		if err == nil {
			err = c.restore(p)
		}
		if err != nil {
			return nil, fmt.Errorf("source %d of %d: %w", i, d.Sources, err)
		}
	}
	if err := c.restoreLists(d); err != nil {
		return nil, err
	}
	if err := c.build(nil); err != nil {
		return nil, err
	}
	if parts, ok := c.learner.(bySource); ok {
		for i := range d.Sources {
			if err := lines.Decode(parts.Source(i)); err != nil {
				return nil, fmt.Errorf("what was learned of source %d of %d: %w", i, d.Sources, err)
			}
		}
	}
	if lines.More() {
		return nil, fmt.Errorf("there are more lines than those of %d sources", d.Sources)
	}
	return c, c.learner.SetState(s.State)
}

// lasting returns the epoch of a length that was written in seconds.
func lasting(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// restore takes up the next source.
func (c *Crawler) restore(p placeState) error {
	if p.Last < -1 || p.Last > c.view.Epoch || min(p.Added, p.Feedback) < 0 || p.Added > c.view.Epoch+1 {
		return fmt.Errorf("it was added at epoch %d and crawled at %d, of %d", p.Added, p.Last, c.view.Epoch)
	}
	p.Due, p.NotBefore, p.Feedback = min(p.Due, lastEpoch), min(p.NotBefore, lastEpoch), min(p.Feedback, lastEpoch)
	if p.Feedback == 0 { // it was saved by a version that did not keep it
		p.Feedback = max(0, c.view.Epoch)
	}
	i := len(c.src)
	c.grow()
	if p.Name == "" {
		return nil
	}
	if p.Rules == nil {
		p.Rules = free
	}
	if err := c.check(p.Name, *p.Rules); err != nil {
		return err
	}
	p.Rules = c.share(*p.Rules)
	c.src[i], c.view.Last[i], c.limits.NotBefore[i] = p.place, p.Last, p.NotBefore
	c.enlist(i)
	if p.Rules.Longest > 0 {
		c.remind(i)
	}
	return nil
}

// restoreLists takes up places that are free, and sources to be crawled and crawled.
func (c *Crawler) restoreLists(d *CrawlerState) error {
	n := len(c.src)
	for _, i := range slices.Concat(d.Free, d.Plan) {
		if i < 0 || i >= n {
			return fmt.Errorf("there is no source %d; allowed are 0 to %d", i, n-1)
		}
	}
	for k, crawl := range d.Done {
		i := crawl.Source
		if i < 0 || i >= n || c.src[i].Done > 0 {
			return fmt.Errorf("crawl %d is of source %d, of %d", k, i, n)
		}
		c.src[i].Done = k + 1
		if err := c.checkCrawled(&crawl); err != nil {
			return err
		}
	}
	// Older versions left removed sources in the plan.
	d.Plan = slices.DeleteFunc(d.Plan, func(i int) bool { return c.src[i].Name == "" })
	c.free, c.plan, c.done = d.Free, d.Plan, d.Done
	return nil
}

// checkCrawled reports what cannot be in a crawl that was saved.
func (c *Crawler) checkCrawled(crawl *env.Crawled) error {
	if crawl.Age < 0 || crawl.Age > lastEpoch {
		return fmt.Errorf("a crawl was %d epochs after the one before; allowed are 0 to %d", crawl.Age, lastEpoch)
	}
	oldest := c.epochs(math.MaxInt64) // item of which a [time.Duration] tells the age
	for _, it := range crawl.Items {
		if !(it.Age >= 0 && it.Age <= oldest) {
			return fmt.Errorf("an item has the age %v; allowed are 0 to %v epochs", it.Age, oldest)
		}
	}
	return nil
}

// Continue returns a crawler that goes on with a learner which was run on the sources
// of the terms, up to a view. Epochs and budget are those of the terms.
func Continue(o CrawlerOptions, t env.Terms, l Learner, v *env.Online) (*Crawler, error) {
	o.Epoch, o.Budget = lasting(t.Length), t.Budget
	c, err := newCrawler(time.Unix(t.Start, 0), o)
	if err != nil {
		return nil, err
	}
	c.view.Epoch, c.now = v.Epoch-1, c.at(v.Epoch-1)
	for i, name := range t.Names {
		c.grow()
		c.src[i] = place{Name: name, Rules: c.share(Source{Cost: t.Costs[i]})}
		c.view.Last[i], c.limits.NotBefore[i] = v.Last[i], v.Last[i]+1
		c.enlist(i)
	}
	return c, c.build(l)
}

// Belief is what a [Crawler] thinks of a source.
type Belief struct {
	Items    float64   // per hour
	Interest float64   // published per hour
	Last     time.Time // epoch of its last crawl; zero before
	Due      time.Time // when a crawl is worth its price; zero for never
	Free     time.Time // when it may be crawled, worth it or not
	Price    float64   // of a crawl: what it has to bring, or save, beyond what waiting would

	// Under freshness, where there are no items: changes per hour, and the probability that
	// the copy is as the page is, by the latest time; 0 before the first crawl.
	Changes, Fresh float64
}

// Belief returns what the learner thinks of a source. Items and interest are 0 where it
// does not estimate them.
func (c *Crawler) Belief(source string) (b Belief, err error) {
	i, err := c.find(source)
	if err != nil {
		return b, err
	}
	b.Price = c.open.Price() * c.src[i].Rules.Cost
	if c.items != nil {
		items, inflow, _ := c.items.Estimate(i)
		b.Items, b.Interest = items/c.opt.Epoch.Hours(), inflow/c.opt.Epoch.Hours()
	}
	last := c.view.Last[i]
	if c.src[i].Done > 0 {
		last = c.view.Epoch
	}
	b.Free = c.at(c.limits.NotBefore[i])
	due := float64(c.limits.NotBefore[i])
	if c.pages() {
		changes, unseen, ahead := c.items.EstimatePage(i)
		b.Changes = changes / c.opt.Epoch.Hours()
		if c.src[i].Done > 0 { // the learner has yet to take up the crawl, and counts pings before it
			ahead = 0
		}
		if last >= 0 {
			age := c.now.Sub(c.at(last)).Seconds() / c.opt.Epoch.Seconds()
			b.Fresh = math.Exp(-unseen * (age + ahead))
		}
	}
	if last >= 0 {
		b.Last = c.at(last)
		due = max(due, float64(last)+math.Ceil(c.open.Threshold(i)))
	}
	if p := &c.src[i]; p.Rules.Longest > 0 {
		due = min(due, float64(max(p.Due, c.limits.NotBefore[i])))
	}
	if due <= float64(math.MaxInt64/c.opt.Epoch) { // as far as a [time.Duration] reaches
		b.Due = c.at(int(due))
	}
	return b, nil
}

// at returns the time at which an epoch begins, 292 years after the start at most.
func (c *Crawler) at(epoch int) time.Time {
	return c.start.Add(min(time.Duration(epoch), math.MaxInt64/c.opt.Epoch) * c.opt.Epoch)
}
