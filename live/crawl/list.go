package crawl

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ephemera/live/feed"
)

const (
	rereading = time.Minute   // of the list
	blink     = 5 * rereading // without the list of a reader, in which it fetches no feed twice
)

// listing is the list of feeds, of a file or of a reader, which is read each minute.
type listing struct {
	feeds  []Outline // as they were read last when they were others than before; nil before the first time
	left   []error   // outlines of that list that name no feed
	latest []Outline // as they were read last, with what the reader fetched since; they are known
	read   time.Time // when that was
	unseen bool      // so long after the time before that the reader may have made fetches that nobody saw
	tried  time.Time // when it was read last, or could not be
	err    error     // of that
}

// reread reads the list of feeds again. One that cannot be read changes nothing. Whether a reader gives its list
// says whether it is away. The lock is given up while it answers.
func (c *Crawler) reread(now time.Time) (err error) {
	if now.Sub(c.listing.tried) < rereading {
		return nil
	}
	c.mu.Unlock()
	outlines, left, err := c.reader.Feeds(c.ending)
	c.mu.Lock()
	defer func() { c.listing.err = err }()
	c.listing.tried = c.clock()
	if c.opt.Reader != nil {
		c.away = away(err)
	}
	if err != nil {
		return err
	}
	same := slices.EqualFunc(left, c.listing.left, func(a, b error) bool { return a.Error() == b.Error() })
	known := c.listing.feeds != nil && same && slices.EqualFunc(outlines, c.listing.feeds, Outline.equal)
	if !known {
		if err := c.enlist(outlines); err != nil {
			return err
		}
	}
	c.listing.latest = outlines // whose feeds are known
	c.listing.unseen, c.listing.read = now.Sub(c.listing.read) > blink, now
	if known {
		return nil
	}
	for _, err := range left {
		c.opt.Log.Warn("an outline is left out", "file", c.opt.OPML, "error", err)
	}
	c.listing.feeds, c.listing.left = append([]Outline{}, outlines...), left // a reader may have no feeds
	var unknown []string
	for address := range c.opt.Worth {
		if r := c.feeds[address]; r == nil || !r.listed {
			unknown = append(unknown, shown(address))
		}
	}
	if len(unknown) > 0 {
		c.opt.Log.Warn("-worth names addresses that the list of feeds does not have",
			"addresses", len(unknown), "first", slices.Min(unknown))
	}
	return nil
}

// enlist takes up the feeds of the list. What is not kept yet is kept first, so that a full disk leaves the
// list as it was.
func (c *Crawler) enlist(outlines []Outline) error {
	listed := make(map[*record]Outline, len(outlines))
	for _, o := range outlines {
		r := c.feeds[o.URL]
		if r == nil {
			r = newRecord(o.URL)
			r.Title = feed.Line(o.Title)
			if _, err := c.keep(r, nil); err != nil {
				return err
			}
			c.feeds[o.URL] = r
		}
		listed[r] = o
	}
	for _, r := range c.feeds {
		if _, on := listed[r]; r.Gone && !on { // it is asked for again when it is back on the list
			r.Gone = false
			if _, err := c.keep(r, nil); err != nil {
				r.Gone = true
				return err
			}
		}
	}
	for _, r := range c.feeds {
		o, on := listed[r]
		if r.listed = on; !on {
			continue
		}
		r.Worth, r.Categories = o.Worth, o.Categories
		if c.opt.Reader != nil { // where people rename feeds
			r.Title = cmp.Or(feed.Line(o.Title), r.Title)
		}
		if w, ok := c.opt.Worth[o.URL]; ok {
			r.Worth = w
		}
	}
	return c.enroll()
}

// enroll has the learner know the feeds that are to be crawled, and no others. Of several
// at one address, to which they moved or which the list spells in several ways, it is one: that which
// the list names so, of these one that was looked at, or else the first by its own address.
func (c *Crawler) enroll() (err error) {
	addresses := slices.Sorted(maps.Keys(c.feeds))
	first := map[string]*record{} // by where they are
	for _, address := range addresses {
		r := c.feeds[address]
		is := spelled(r.Place.URL)
		before := func(other *record) bool {
			if named := spelled(address) == is; named != (spelled(other.ID.URL) == is) {
				return named
			}
			return other.Last.IsZero() && !r.Last.IsZero()
		}
		if r.listed && !r.Gone && (first[is] == nil || before(first[is])) {
			first[is] = r
		}
	}
	for _, address := range addresses {
		r := c.feeds[address]
		r.same = first[spelled(r.Place.URL)]
		wanted, has := r.same == r, c.learner.Has(address)
		switch {
		case err != nil:
		case wanted && !has:
			err = c.admit(r)
		case !wanted && has:
			err = c.dismiss(r)
		}
	}
	return err
}

// dismiss has the learner crawl a feed no longer, and keeps what it knows of it.
func (c *Crawler) dismiss(r *record) error {
	state, err := c.learner.SourceState(r.ID.URL)
	if err != nil {
		return err
	}
	r.Left = &left{state, c.seq}
	if !r.held { // else it is kept at the end of what is under way
		if _, err := c.keep(r, nil); err != nil {
			return err
		}
	}
	return c.learner.Remove(r.ID.URL)
}

// admit has the learner crawl a feed, with what it knew of it before. What is left to be learned of the
// journal, after a start, may have that: then the feed is a new one.
func (c *Crawler) admit(r *record) (err error) {
	if r.Left == nil || r.Left.Seq > c.seq {
		return c.learner.Add(r.ID.URL, c.opt.limits())
	}
	_, err = c.learner.AddAgain(r.ID.URL, c.opt.limits(), r.Left.State)
	return err
}
