package crawl

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"time"

	"ephemera/learner"
)

// Plan writes the looks of the time to come, as they come if each finds what is
// thought to be there, and returns how many they are. It asks for nothing and changes
// nothing.
func (c *Crawler) Plan(w io.Writer, length time.Duration) (looks int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reread(c.clock()); err != nil {
		return 0, err
	}
	var state bytes.Buffer
	if err := c.learner.Save(&state); err != nil {
		return 0, err
	}
	l, _, err := decode(state.Bytes())
	if err != nil {
		return 0, err
	}
	now := c.clock()
	for at := now; at.Before(now.Add(length)); at = l.Next() {
		for _, address := range l.Select(at, math.MaxInt) {
			r := c.feeds[address]
			if free, _ := c.free(r, at); free.Sub(at) > c.opt.lead() {
				if err := l.Defer(address, at, free.Add(-c.opt.lead())); err != nil {
					return looks, err
				}
				continue
			}
			looks++
			fmt.Fprintf(w, "%s  %s\n", at.Local().Format("Mon 2 Jan 2006 15:04"), r.Name())
			crawl := learner.Crawl{Source: address, At: at}
			b, _ := l.Belief(address) // it knows those that it names
			if !r.Last.IsZero() {
				wait, _ := c.usual(r, at)
				if r.Why == published { // so it asks again
					wait = max(wait, r.NotBefore.Sub(r.Tried))
				}
				crawl.NotBefore = at.Add(wait - c.opt.lead())
			}
			if !b.Last.IsZero() {
				since := at.Sub(b.Last)
				n := int(math.Round(b.Items * since.Hours()))
				for k := range n {
					age := since * time.Duration(2*k+1) / time.Duration(2*n)
					item := learner.Item{Published: at.Add(-age), Worth: worthOf(r.Worth)}
					crawl.Items = append(crawl.Items, item)
				}
			}
			if err := l.Update(crawl); err != nil {
				return looks, err
			}
		}
	}
	return looks, nil
}

// patience is for how long a round waits until requests of the one before are an hour old, so that a
// timer may begin it a little early.
const patience = 10 * time.Minute

// Once makes one round: the requests that are left of this hour, with those that patience brings. It ends
// early with the crawler's context.
func (c *Crawler) Once() (requests int, err error) {
	c.mu.Lock()
	end, before := c.clock().Add(patience), c.seq
	err = c.learner.SetBudget(float64(max(1, c.allowance(end))))
	c.mu.Unlock()
	waits := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := c.clock()
		return now.Before(end) && c.allowance(now) == 0 && c.allowance(end) > 0
	}
	// A host that is asked for several feeds has a second between them.
	for n, idle := 0, 0; err == nil && idle < 3 && c.ending.Err() == nil; idle++ {
		n, err = c.Tick()
		c.Wait()
		if n > 0 || waits() {
			idle = -1
		}
		if n == 0 {
			c.opt.pause(c.ending, time.Second)
		}
	}
	c.postWaiting(c.ending)
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.seq - before), err // not those that reached nobody
}
