package learner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"ephemera/baselines/ring"
	"ephemera/env"
)

// Select returns the names of at most n sources to crawl now. A source whose crawl
// is not reported counts as failed: it is handed out again after an epoch, then after two,
// four and so on, and its longest interval at most.
//
// Now is what the clock says. Where that lies before the latest time, by more than a
// minute or an epoch, the clock was set back, and the crawler goes back too. One that was
// set by half a year or more was wrong, before or after, and no time has passed.
func (c *Crawler) Select(now time.Time, n int) (names []string) {
	now = now.Round(0) // as a saved time: by the wall clock
	if c.now.Sub(now) > min(time.Minute, c.opt.Epoch) {
		if c.now.Sub(now) > leap || now.Before(c.at(1)) {
			c.setClock(now)
		} else {
			c.goBack(now)
		}
	}
	c.turn(now)
	for len(c.plan) > 0 && len(names) < n {
		i := c.plan[0]
		c.plan = c.plan[1:]
		if !c.view.Allowed(i) {
			continue // crawled since the epoch began
		}
		c.hand(i)
		names = append(names, c.src[i].Name)
	}
	return names
}

// hand has source i wait that is handed out, as if its crawl failed.
func (c *Crawler) hand(i int) {
	p := &c.src[i]
	most := cmp.Or(p.Rules.Longest, longestWait)
	wait := min(c.opt.Epoch, most)
	for range min(p.Tries, 12) {
		wait = min(2*wait, most)
	}
	p.Tries++
	c.putOff(i, c.now.Add(max(wait, p.Rules.Shortest)))
}

// Defer has a source wait, from a time on, whose crawl was handed out and not made, or of whose crawl nobody
// knows what became. Its longest interval goes on: if it has ended by then, the source comes first when
// the wait ends. A crawl that failed begins it anew.
func (c *Crawler) Defer(source string, now, until time.Time) error {
	i, err := c.find(source)
	if err != nil {
		return err
	}
	c.turn(now)
	c.src[i].Tries = 0
	c.putOff(i, until)
	return nil
}

// putOff has source i wait until a time, while its longest interval goes on.
func (c *Crawler) putOff(i int, until time.Time) {
	if c.wait(i, until); c.src[i].Rules.Longest > 0 {
		c.remind(i)
	}
}

// remind has source i be among the overdue ones from the end of its longest interval on, but not while it waits.
// Its place among them is by that end.
func (c *Crawler) remind(i int) { c.overdue.Add(i, max(c.src[i].Due, c.limits.NotBefore[i])) }

// lastEpoch is as far ahead as anything is planned; with epochs of a second it is 68
// years.
const lastEpoch = math.MaxInt32

// epochFrom returns the first epoch that begins at a time or later. The difference of
// two times is 292 years at most.
func (c *Crawler) epochFrom(at time.Time) int {
	d := at.Sub(c.start)
	epoch := d / c.opt.Epoch
	if d > epoch*c.opt.Epoch {
		epoch++
	}
	return int(min(epoch, lastEpoch))
}

// wait has source i wait until a time, and at least for the next epoch.
func (c *Crawler) wait(i int, until time.Time) {
	c.limits.NotBefore[i] = max(c.view.Epoch+1, c.epochFrom(until))
	c.src[i].Feedback = max(0, c.view.Epoch)
}

// bar has source i wait until a time, and begins its longest interval anew.
func (c *Crawler) bar(i int, until time.Time) {
	c.wait(i, until)
	c.postpone(i)
}

// postpone begins the longest interval of source i anew.
func (c *Crawler) postpone(i int) {
	p := &c.src[i]
	p.Feedback = max(0, c.view.Epoch)
	if p.Rules.Longest == 0 {
		return
	}
	longest := int(c.now.Add(p.Rules.Longest).Sub(c.start) / c.opt.Epoch)
	p.Due = max(min(longest, lastEpoch), c.view.Epoch+1, c.limits.NotBefore[i])
	c.overdue.Add(i, p.Due)
}

// turn goes on to the epoch of a time.
func (c *Crawler) turn(now time.Time) {
	c.forward(now)
	epoch := c.epochOf(c.now)
	if epoch <= c.view.Epoch {
		return
	}
	c.learn()
	c.begin(epoch)
}

// Next returns when the next epoch begins.
func (c *Crawler) Next() time.Time { return c.at(c.view.Epoch + 1) }

// epochOf returns the epoch of a time.
func (c *Crawler) epochOf(t time.Time) int { return int(t.Sub(c.start) / c.opt.Epoch) }

// begin picks the sources of an epoch.
func (c *Crawler) begin(epoch int) {
	c.view.Epoch = epoch
	c.pick()
}

// pick plans the epoch.
func (c *Crawler) pick() {
	if c.carries {
		c.limits.Budget = c.opt.Budget + c.left
	}
	c.limits.First = c.first(c.limits.First[:0])
	c.plan = c.open.Select(c.plan[:0], &c.view)
	if c.carries {
		c.left = c.limits.Budget
		for _, i := range c.plan {
			c.left -= c.src[i].Rules.Cost
		}
		_, c.left = math.Modf(max(0, c.left) + 1e-9)
	}
}

// longestWait is that of a source whose crawls are never reported, where it has no longest
// interval.
const longestWait = 365 * 24 * time.Hour

// leap is by how much a clock is set that was wrong altogether.
const leap = 180 * 24 * time.Hour

// forward goes on to a time, if that is later.
func (c *Crawler) forward(now time.Time) {
	if now = now.Round(0); now.Sub(c.now) > leap {
		c.setClock(now)
	} else if now.After(c.now) {
		c.now = now
	}
}

// Shift says that the clock was set forward by so much, or back, and no time has passed.
func (c *Crawler) Shift(by time.Duration) { c.setClock(c.now.Add(by)) }

// setClock goes on at a time as if it were the latest one: the first epoch was earlier or
// later by as much.
func (c *Crawler) setClock(now time.Time) {
	c.start = now.Add(-c.now.Sub(c.start)).Truncate(time.Second) // as it is saved
	c.now = now
	if c.items != nil {
		c.items.SetStart(c.start.Unix())
	}
}

// goBack goes back to an epoch of before. What was reported up to then stays as it is, and is
// as old as it was then. What was reported later was reported just now, and what was left of a wait
// is left.
func (c *Crawler) goBack(now time.Time) {
	c.now = now
	latest, epoch := c.view.Epoch, c.epochOf(now)
	if epoch == latest {
		return // what it has planned goes on
	}
	c.learn()
	c.overdue = ring.New(len(c.src), 1024)
	c.overdue.Due(nil, epoch-1)
	for i := range c.src {
		c.goBackAt(i, latest, epoch)
	}
	c.begin(epoch)
}

// goBackAt has source i go back from the latest epoch to one of before.
func (c *Crawler) goBackAt(i, latest, epoch int) {
	p := &c.src[i]
	c.view.Last[i], p.Added = min(c.view.Last[i], epoch-1), min(p.Added, epoch)
	if p.Feedback > epoch {
		p.Feedback = epoch
		p.Due = max(epoch, p.Due-latest+epoch)
		c.limits.NotBefore[i] = max(epoch, c.limits.NotBefore[i]-latest+epoch)
	}
	if p.Name != "" && p.Rules.Longest > 0 {
		p.Due = min(p.Due, max(epoch, p.Feedback+int(p.Rules.Longest/c.opt.Epoch), c.limits.NotBefore[i]))
		c.remind(i)
	}
}

// learn has the learner take up the crawls of this epoch.
func (c *Crawler) learn() {
	if c.view.Epoch < 0 {
		return
	}
	for _, d := range c.done {
		c.view.Last[d.Source] = c.view.Epoch
		c.src[d.Source].Done = 0
		for j := range d.Items {
			if it := &d.Items[j]; it.Interest < 0 {
				it.Interest = math.NaN()
			}
		}
	}
	c.view.Epoch++
	c.open.Update(c.done, &c.view)
	for _, d := range c.done {
		for p := &c.src[d.Source]; p.Pings > 0; p.Pings-- {
			c.items.Ping(d.Source)
		}
	}
	c.done = c.done[:0]
}

// first returns the sources that have waited for their longest interval, the longest
// waiting as many as the limits allow, in rising order.
func (c *Crawler) first(dst []int) []int {
	due := c.overdue.Due(nil, c.view.Epoch)
	slices.SortStableFunc(due, func(i, j int32) int { return cmp.Compare(c.src[i].Due, c.src[j].Due) })
	var cost float64
	crawls := map[int32]int{} // by group
	for _, i := range due {
		c.overdue.Add(int(i), c.view.Epoch+1) // until it is crawled
		group, with := c.limits.Group[i], cost+c.src[i].Rules.Cost
		full := c.limits.PerGroup > 0 && group != 0 && crawls[group] == c.limits.PerGroup
		if full || !env.Fits(with, c.limits.Budget) {
			continue // those behind it do not wait for it
		}
		cost = with
		crawls[group]++
		dst = append(dst, int(i))
	}
	slices.Sort(dst)
	return dst
}

// MostWorth is what an item is worth at most, so that interest can be added up and
// squared.
const MostWorth = 1e100

func errWorth(source string, worth float64) error {
	return fmt.Errorf("source %q has an item worth %v; allowed is 0 to %g", source, worth, MostWorth)
}

// Update takes in a crawl. After an error nothing is learned of it.
func (c *Crawler) Update(crawl Crawl) error {
	i, err := c.find(crawl.Source)
	if err != nil {
		return err
	}
	for _, it := range crawl.Items {
		if worth := it.worth(); worth < 0 || worth > MostWorth {
			return errWorth(crawl.Source, worth)
		}
	}
	if crawl.Changed && (crawl.Outcome != Found || !c.pages()) {
		return fmt.Errorf("the crawl of source %q says that it has changed; "+
			"allowed is that with the outcome Found, under the objective freshness", crawl.Source)
	}
	if crawl.Outcome != Found && len(crawl.Items) > 0 {
		return fmt.Errorf("the crawl of source %q found %d items, and the outcome is not Found",
			crawl.Source, len(crawl.Items))
	}
	c.turn(crawl.At)
	p := &c.src[i]
	if crawl.Outcome == Failed {
		if !crawl.NotBefore.IsZero() { // the caller says when to try again, and counts itself
			p.Tries = 0
			c.bar(i, crawl.NotBefore)
		}
		return nil
	}
	if !crawl.Sent {
		p.Tries = 0
		if until := crawl.At.Add(p.Rules.Shortest); until.After(crawl.NotBefore) {
			crawl.NotBefore = until
		}
		c.bar(i, crawl.NotBefore)
	}
	if p.Done == 0 {
		age := c.view.Epoch - c.view.Last[i]
		switch first := c.view.Last[i] < 0; {
		case first && c.pages():
			age = 0 // there was no copy to compare
		case first:
			age = c.view.Epoch - p.Added + 1
		}
		c.done = append(c.done, env.Crawled{Source: i, Age: age})
		p.Done = len(c.done)
	}
	d := &c.done[p.Done-1]
	if c.pages() {
		d.Changed = d.Changed || crawl.Changed || len(crawl.Items) > 0
		return nil
	}
	d.Truncated = d.Truncated || crawl.Truncated
	c.found(d, crawl.Items, crawl.At)
	return nil
}

// found adds the items that a crawl at a time has found.
func (c *Crawler) found(d *env.Crawled, items []Item, at time.Time) {
	for _, it := range items {
		found := c.item(it, at)
		if math.IsNaN(found.Interest) {
			found.Interest = -1
		} else {
			d.Interest += c.harvest(found)
		}
		d.Items = append(d.Items, found)
	}
	slices.SortFunc(d.Items, func(a, b env.Item) int { return cmp.Compare(b.Age, a.Age) })
}

// harvest returns what an item that was found earns: under a deadline nothing that was found
// too late.
func (c *Crawler) harvest(it env.Item) float64 {
	if o := c.opt.Objective; o.Law == env.LawDeadline && it.Age*c.opt.Epoch.Seconds() > o.Time.Seconds() {
		return 0
	}
	return it.Interest
}

// item returns an item as a crawl at that time finds it.
func (c *Crawler) item(it Item, at time.Time) env.Item {
	age := max(0, at.Sub(it.Published))
	found := env.Item{Age: c.epochs(age), Interest: it.worth()}
	if o := c.opt.Objective; o.Law == env.LawExponential {
		found.Interest *= math.Exp2(-age.Seconds() / o.Time.Seconds())
	}
	return found
}

// epochs returns how many epochs a time lasts.
func (c *Crawler) epochs(d time.Duration) float64 { return d.Seconds() / c.opt.Epoch.Seconds() }

// Report takes in what items are worth, by now, that a crawl at that time found with
// their worth unknown.
func (c *Crawler) Report(source string, at time.Time, items ...Item) error {
	i, err := c.find(source)
	switch {
	case err != nil:
		return err
	case c.items == nil:
		return fmt.Errorf("the learner %q takes up no worth later", c.opt.Learner)
	}
	for _, it := range items {
		if worth := it.worth(); !(worth >= 0 && worth <= MostWorth) {
			return errWorth(source, worth)
		}
		c.items.Report(i, c.item(it, at))
	}
	return nil
}

// Ping says that a source may have changed, as a sitemap or a hub does: under the objective
// freshness, and right or wrong. What pings are worth is learned from the crawls after them.
func (c *Crawler) Ping(source string, at time.Time) error {
	i, err := c.find(source)
	switch {
	case err != nil:
		return err
	case !c.pages():
		return fmt.Errorf("a ping of source %q: the objective is %v; allowed is freshness", source, c.opt.Objective)
	}
	c.turn(at)
	if p := &c.src[i]; p.Done > 0 { // the learner has yet to take up the crawl before it
		p.Pings++
	} else {
		c.items.Ping(i)
	}
	return nil
}
