package crawl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"ephemera/learner"
	"ephemera/live/feed"
	"ephemera/live/store"
)

// take takes up what a fetch brought.
func (c *Crawler) take(r *record, l *Look) error {
	c.mu.Lock()
	now, res := c.clock(), &l.Result
	c.underWay--
	r.held = false
	if c.ending.Err() != nil && res.Outcome == feed.Failed { // it was broken off
		defer c.mu.Unlock()
		return c.brokenOff(r, now)
	}
	if a := away(res.Err); a != nil {
		defer c.mu.Unlock()
		return c.absent(r, a, now)
	}
	if res.Held {
		defer c.mu.Unlock()
		return c.heldUp(r, res, now)
	}
	if l.unread {
		defer c.mu.Unlock()
		c.missed(r, l)
		return nil
	}
	if c.opt.Reader == nil {
		c.away = nil
	}
	before := *r
	r.byList = l.byList
	if r.unread != nil {
		l.unseen = l.unseen || !r.unread.fetched.Equal(l.At)
		r.unread = nil
	}
	if r.Checked = l.At; c.opt.Shadow { // by the reader's clock, which may be another
		if at := l.At.Round(0); at.Before(now) {
			now = at
		}
		if now.Before(r.Last) {
			now = r.Last
		}
	}
	r.Tried, r.NotBefore, r.Why, r.Error, r.Capped = now, now.Add(c.opt.Shortest), "", "", ""
	if res.Err != nil {
		r.Error = res.Err.Error()
	}
	asks := false // its hub
	e := entry{At: now, Outcome: res.Outcome, Previous: r.Last}
	e.ByReader, e.Unseen = c.opt.Shadow, c.opt.Shadow && l.unseen
	switch res.Outcome {
	case feed.Gone:
		r.Gone = true
	case feed.Failed: // twice as long each time, and up to half of it more
		r.Failures++
		d := c.opt.Shortest
		for range min(r.Failures, 12) {
			d = min(2*d, c.opt.Longest*2/3)
		}
		r.wait(now.Add(d+rand.N(d/2)), "it failed")
	case feed.Found:
		r.Pace = res.Feed.Pace
		r.Title = cmp.Or(res.Feed.Title, r.Title)
		known := !r.Last.IsZero() || !r.Imported.IsZero()
		e.Items = r.news(res.Feed.Items, now)
		e.Truncated = known && !res.Feed.Whole && len(e.Items) > 0 && len(e.Items) == len(res.Feed.Items)
		r.hub(res.Feed)
		fallthrough
	case feed.Unchanged:
		r.Place, r.Failures, r.Last = res.Place, 0, now
		if e.Truncated {
			r.Missed++
		}
		usual, why := c.usual(r, now)
		r.wait(now.Add(usual), why)
		asks = c.renew(r, now)
	}
	if !c.opt.Shadow { // where a reader waits by its own rule, that is nobody's wish
		c.obey(r, res, now)
	}
	commit, err := c.note(r, &e)
	switch {
	case commit == nil && c.opt.Shadow: // it is read again
		*r, l.Err = before, err
		c.missed(r, l)
	case commit == nil: // it is as if it had not been asked, but for the time of the next request
		before.Tried, before.NotBefore, before.Why, before.Checked = r.Tried, r.NotBefore, r.Why, r.Checked
		*r = before
	}
	if err == nil && (r.Gone || r.Place.URL != before.Place.URL) {
		err = c.enroll()
	}
	var hub push
	if asks && commit != nil {
		hub = *r.Push
	}
	c.mu.Unlock()
	commit.Wait()
	if hub.Hub != "" {
		c.subscribe(r.Address(), hub)
	}
	return err
}

// absent takes up that the reader does not answer, or that there is no network: nothing is known of the
// feed. A minute later the reader is asked for its list, or one of the feeds that are due is tried.
func (c *Crawler) absent(r *record, away *Away, now time.Time) error {
	if c.away == nil {
		c.opt.Log.Error("no request is made", "error", away)
	}
	c.away, c.again = away, now.Add(rereading)
	next := c.again
	if c.opt.Reader == nil { // it may be that just these servers are away
		r.Tried = now
		r.wait(now.Add(c.opt.Shortest), "no server was reached")
		next = r.NotBefore.Add(-c.opt.lead())
	}
	return c.unmade(r, now, next)
}

// missed takes up that a reader, which fetches by itself, does not say how the fetch of a feed ended.
func (c *Crawler) missed(r *record, l *Look) {
	if r.unread == nil {
		c.opt.Log.Error("what the reader fetched is not read", "feed", r.Address(), "error", l.Err)
		r.unread = &unread{fetched: l.byList}
	}
	r.unread.tried, r.unread.err = c.listing.tried, l.Err
}

// brokenOff takes up that the crawler ends before there is an answer: nothing is known of the feed, which may
// have been asked for.
func (c *Crawler) brokenOff(r *record, now time.Time) error {
	if !c.opt.Shadow { // else the reader's list still says at the next start that it was fetched
		r.Tried = now
		r.wait(now.Add(c.opt.Shortest), "the crawler ended before it was answered")
	}
	return c.unmade(r, now, r.NotBefore.Add(-c.opt.lead()))
}

// heldUp takes up that the host to which a feed has moved, or redirects, is left alone, as it asked for that when
// another feed was asked for: nothing is known of the feed.
func (c *Crawler) heldUp(r *record, res *feed.Result, now time.Time) error {
	r.Tried = now
	r.wait(now.Add(max(res.Retry, c.opt.Shortest)), asked)
	return c.unmade(r, now, r.NotBefore.Add(-c.opt.lead()))
}

// unmade takes up that nothing was learned of a feed that the schedule handed out, which the learner hands out
// again from a time on.
func (c *Crawler) unmade(r *record, now, next time.Time) error {
	if _, err := c.keep(r, nil); err != nil {
		return err
	}
	return c.postpone(r, now, next)
}

// postpone has the learner hand out a feed again from a time on, if it still crawls it.
func (c *Crawler) postpone(r *record, now, next time.Time) error {
	if !c.learner.Has(r.ID.URL) {
		return nil
	}
	return c.learner.Defer(r.ID.URL, now, next)
}

// mostSeen is how many items a feed is remembered for that shows few of them: as many as are remembered
// of one that shows as many as are read of any.
const mostSeen = 10_000

// leastSeen is how many items each feed is remembered for.
const leastSeen = firstEntries

// news returns the items that were not seen before, with times at which they can have
// appeared.
func (r *record) news(shown []feed.Item, now time.Time) (items []feed.Item) {
	seen := map[uint64]bool{}
	for _, id := range r.Seen {
		seen[id] = true
	}
	var ids []uint64
	// One that dates items beyond tomorrow does not say when they were published.
	ahead := func(it feed.Item) bool { return it.Published.After(now.Add(24 * time.Hour)) }
	dateless := r.Last.IsZero() && slices.ContainsFunc(shown, ahead)
	for _, it := range shown {
		if ids = append(ids, it.ID); it.Also != 0 {
			ids = append(ids, it.Also)
		}
		if seen[it.ID] || it.Also != 0 && seen[it.Also] || !r.Imported.IsZero() && !it.Published.After(r.Imported) {
			continue
		}
		if dateless || it.Published.After(now) || !r.Last.IsZero() && it.Published.Before(r.Last) {
			it.Published = time.Time{} // it cannot have been then
		}
		r.count(it.Published)
		r.Items++
		items = append(items, it)
		seen[it.ID] = true // two that nothing tells apart are one
	}
	// It remembers five times what it shows, and more of what it has shown, since it may show less for a while,
	// and a hub sends one item alone, as a reader does.
	room := max(5*len(ids), min(len(r.Seen), mostSeen), leastSeen)
	for _, id := range ids {
		delete(seen, id)
	}
	for _, id := range r.Seen {
		if len(ids) < room && seen[id] {
			ids = append(ids, id)
		}
	}
	r.Seen, r.Imported = ids, time.Time{}
	return items
}

// count takes up when an item was published, if that is known.
func (r *record) count(published time.Time) {
	if at := published.UTC(); !at.IsZero() {
		r.Hours[(at.Weekday()+6)%7][at.Hour()]++
	}
}

// usual returns how long a feed that showed what it has is left alone.
func (c *Crawler) usual(r *record, now time.Time) (wait time.Duration, why string) {
	switch {
	case c.opt.PublicURL != "" && r.Push != nil && r.Push.Until.After(now):
		return pushedWait, "its hub sends what is new"
	case r.Place.ETag == "" && r.Place.LastModified == "":
		// It sends all that it has, each time: one that has more is asked less often.
		times := max(1, float64(r.Place.Bytes)/wholeSize)
		wait = time.Duration(times * float64(c.opt.Unvalidated))
		return min(wait, max(c.opt.Unvalidated, c.opt.Longest)), "it cannot be asked for changes alone"
	}
	return 0, ""
}

// wait has a feed not be asked for before a time.
func (r *record) wait(until time.Time, why string) {
	if until.After(r.NotBefore) {
		r.NotBefore, r.Why = until, why
	}
}

// obey has a feed wait for as long as its publisher asks, up to the longest interval, and
// as its server asks by Retry-After, up to a week.
func (c *Crawler) obey(r *record, res *feed.Result, now time.Time) {
	longest := now.Add(c.opt.Longest)
	fresh := now.Add(max(res.Fresh, r.Pace.Every))
	if fresh.After(longest) {
		r.Capped = fmt.Sprintf("its publisher asks to wait %s; obeyed are %s, the longest interval",
			span(fresh.Sub(now)), span(c.opt.Longest))
		fresh = longest
	}
	r.wait(fresh, published)
	retry := min(res.Retry, feed.MaxRetry)
	if retry < res.Retry {
		r.Capped = fmt.Sprintf("its server asks to wait %s; obeyed are %s", span(res.Retry), span(retry))
	}
	r.wait(now.Add(retry), asked)
}

// note puts a look at a feed on disk, and then gives it to the learner and the sums: they
// know of nothing that a restart would not find.
func (c *Crawler) note(r *record, e *entry) (*store.Commit, error) {
	if e.At.IsZero() {
		e.At = c.clock()
	}
	e.Feed, e.NotBefore, e.Worth = r.ID.URL, r.NotBefore, r.Worth
	before := r.Looks
	r.saw(e)
	commit, err := c.keep(r, e)
	if err != nil {
		r.Looks = before
		return nil, err
	}
	c.stats.add(e)
	return commit, c.opt.learn(c.learner, e)
}

const shownLooks = 20 // of a feed

// saw takes up a look.
func (r *record) saw(e *entry) {
	last := r.Looks[:min(len(r.Looks), shownLooks-1)]
	r.Looks = append([]look{{e.At, e.Outcome, len(e.Items)}}, last...)
}

// keep puts on disk what is known of a feed and, if there is one, an entry of the
// journal: both or neither, when the commit is done. The feed is not due before
// somebody asks for it.
func (c *Crawler) keep(r *record, e *entry) (*store.Commit, error) {
	const never = int64(1) << 52
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	last, done, err := c.ends(r, e != nil && e.Outcome != pushed)
	if err != nil {
		return nil, err
	}
	if e == nil {
		commit, err := c.store.Put(r.ID, never, c.latest.UnixMilli(), data, last...)
		if err == nil {
			done()
		}
		return commit, err
	}
	values, err := e.items(c.seq + 1)
	if err != nil {
		return nil, err
	}
	bare := *e
	bare.Items = nil
	for _, it := range e.Items {
		bare.Items = append(bare.Items, feed.Item{ID: it.ID, Published: it.Published})
	}
	value, err := json.Marshal(bare)
	if err != nil {
		return nil, err
	}
	values = append(values, store.Value{Name: journalName(c.seq + 1), Data: value})
	news := c.hook.values(e, c.seq+1)
	commit, err := c.store.Put(r.ID, never, c.latest.UnixMilli(), data, slices.Concat(last, values, news)...)
	if err == nil {
		done()
		c.seq++
		c.flow(r, e)
		c.hook.take(news)
	}
	return commit, err
}

// learn lets a learner observe a look at a feed.
func (o *Options) learn(l *learner.Crawler, e *entry) error {
	if !l.Has(e.Feed) {
		return nil
	}
	crawl := learner.Crawl{
		Source: e.Feed, At: e.At, NotBefore: e.NotBefore.Add(-o.lead()), Truncated: e.Truncated,
		Sent: e.Outcome == pushed,
	}
	switch e.Outcome {
	case feed.Gone: // and not enrolled, unless it was put on the list again since
		return nil
	case feed.Failed:
		crawl.Outcome = learner.Failed
	case feed.Unchanged:
		crawl.Outcome = learner.Unchanged
	}
	for _, it := range e.Items {
		if it.Published.IsZero() {
			if e.Previous.IsZero() {
				continue // it may be of any time
			}
			it.Published = e.undated()
		}
		crawl.Items = append(crawl.Items, learner.Item{Published: it.Published, Worth: worthOf(e.Worth)})
	}
	return l.Update(crawl)
}
