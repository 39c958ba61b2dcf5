package crawl

import (
	"fmt"
	"strings"
	"time"

	"ephemera/live/feed"
)

// advice are what people can do of a failure, by words of its reason.
var advice = []struct{ says, do string }{
	{"-allow-private", "add -allow-private if it is yours"},
	{"not allow it", "its publisher does not want it to be asked for: take it off the list, or ask the publisher"},
	{"answers 401", "put a name and a password that are right into its address"},
	{"answers 403", "its publisher refuses this crawler: write to the publisher, or take it off the list"},
	{"answers 404", "it is not there any more: look for its new address on its site"},
	{"says that it is gone", "it is gone for good: take it off the list"},
	{"neither RSS", "its address shows no feed: look for one on its site"},
	{"malformed", "its publisher has to mend it: it is asked for again, less and less often"},
	{"no such host", "its site has no address any more: take it off the list if that lasts"},
	{"certificate does not hold", "its certificate is not right: wait for its publisher"},
	{"in a circle", "its address leads in a circle: look for its new one on its site"},
	{"; allowed is an address", "its address leads to no feed: look for its new one on its site"},
	{"more than", "its address leads in a circle: look for its new one on its site"},
}

// Advice returns what can be done of the last failure, or nothing if that is to wait.
func (r *record) Advice() string {
	for _, a := range advice {
		if strings.Contains(r.Error, a.says) {
			return a.do
		}
	}
	return ""
}

// Later is what can be done of a failure for which there is no advice.
func (v *view) Later() string {
	if v.opt.Shadow {
		return "nothing for now: " + v.Shadow() + " asks for it again"
	}
	return "nothing for now: it is asked for again, less and less often"
}

// heldRow is a feed that somebody holds up, with others of its host that wait for the same.
type heldRow struct {
	*record
	Who    string // empty if nobody does any more
	Until  time.Time
	Others []*record
}

// held says who holds a feed back, the publisher or its server, and until when. A wait that is no
// longer than the shortest interval does not count.
func (c *Crawler) held(r *record) heldRow {
	at, why := c.free(r, c.latest)
	if r.Gone || why != published && why != asked || !at.After(r.Tried.Add(c.opt.Shortest)) || !at.After(c.latest) {
		return heldRow{record: r}
	}
	return heldRow{record: r, Who: why, Until: at}
}

// heldRows returns those of feeds that a publisher or a server holds up, or wants to for longer
// than is obeyed. A server that asks to wait holds up all feeds of its host: they are one row.
func (c *Crawler) heldRows(feeds []*record) (rows []heldRow) {
	servers := map[string]int{} // the rows, by host
	for _, r := range feeds {
		row := c.held(r)
		if r.Capped == "" && row.Who == "" {
			continue
		}
		if r.Capped == "" && row.Who == asked && row.Until.Equal(c.blocked[r.ID.Key].Until) {
			if k, ok := servers[r.ID.Key]; ok {
				rows[k].Others = append(rows[k].Others, r)
				continue
			}
			servers[r.ID.Key] = len(rows)
		}
		rows = append(rows, row)
	}
	return rows
}

// HeldFeeds returns how many feeds the rows of Held are about.
func (v *view) HeldFeeds() (n int) {
	for _, row := range v.Held {
		n += 1 + len(row.Others)
	}
	return n
}

// used is what some requests were for.
type used struct {
	Text  string
	N     int
	Share float64 // %
}

// Used returns what requests brought since the first.
func (v *view) Used() (all []used) {
	total := 0
	for _, n := range v.Stats.Outcome {
		total += n
	}
	for _, o := range []struct {
		outcome feed.Outcome
		text    string
	}{
		{feed.Found, "brought the feed"}, {feed.Unchanged, "brought that nothing has changed"}, {feed.Failed, "failed"},
		{feed.Gone, "brought that it is gone"},
	} {
		if n := v.Stats.Outcome[o.outcome]; n > 0 {
			all = append(all, used{o.text, n, 100 * float64(n) / float64(total)})
		}
	}
	return all
}

// Text says what a look found.
func (l look) Text() string {
	text := fmt.Sprintf("%d new items", l.Items)
	switch {
	case l.Outcome == feed.Failed || l.Outcome == feed.Gone:
		return string(l.Outcome)
	case l.Items == 0:
		return "nothing new"
	case l.Items == 1:
		text = "a new item"
	}
	if l.Outcome == pushed {
		text += ", sent by its hub"
	}
	return text
}
