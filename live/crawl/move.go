package crawl

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/internal/files"
	"ephemera/learner"
	"ephemera/live/feed"
	"ephemera/live/store"
)

// Export writes what was found to a file, as a recording. It is compressed where the name
// ends in .gz.
func (c *Crawler) Export(path string) (rows int, err error) {
	return ExportTo(path, c.WriteRecording)
}

// ExportTo writes a recording to a file. It is compressed where the name ends in .gz.
func ExportTo(path string, write func(io.Writer) (rows int, err error)) (rows int, err error) {
	err = files.Write(path, func(w io.Writer) (err error) {
		if !strings.HasSuffix(path, ".gz") {
			rows, err = write(w)
			return err
		}
		z := gzip.NewWriter(w)
		if rows, err = write(z); err != nil {
			return err
		}
		return z.Close()
	})
	return rows, err
}

// WriteRecording writes what was found as a recording: source, published_unix and utility,
// with title and link of items that are kept. It may be called while the crawler runs.
func (c *Crawler) WriteRecording(w io.Writer) (rows int, err error) {
	out := csv.NewWriter(w)
	out.Write([]string{"source", "published_unix", "utility", "title", "link"})
	var bad error
	err = c.journal(0, func(e *entry) bool {
		for i, shows := range e.Items {
			at := shows.Published
			if at.IsZero() && e.Previous.IsZero() {
				continue // nobody knows when it was
			}
			if at.IsZero() {
				at = e.At
			}
			it := &item{Item: shows} // as earlier versions kept it
			p := place{e.seq, len(e.Items) - 1 - i}
			if kept, err := c.kept(&drop{place: p}); err != nil {
				bad = err
				return false
			} else if kept != nil {
				it = kept
			}
			out.Write([]string{
				shown(e.Feed), strconv.FormatInt(at.Unix(), 10), strconv.FormatFloat(e.Worth, 'g', -1, 64),
				it.Title, it.Link,
			})
			rows++
		}
		return out.Error() == nil
	})
	out.Flush()
	return rows, errors.Join(err, bad, out.Error())
}

// Import has the learner begin with a recording, whose sources are addresses or
// titles of feeds. It returns how many feeds are in it.
func (c *Crawler) Import(rec *env.Recording) (feeds int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reread(c.clock()); err != nil {
		return 0, err
	}
	if c.seq > 0 {
		return 0, fmt.Errorf("%s: the learner knows of crawls already, or of an import that was broken off; "+
			"a recording is imported before the first: give another -dir", c.opt.Dir)
	}
	named := map[string]*record{}
	for address, r := range c.feeds {
		if r.listed {
			named[cmp.Or(r.Title, address)], named[address], named[r.Address()] = r, r, r
		}
	}
	// Whole weeks that have passed are left out, so that hours and days stay.
	const week = 7 * 24 * 3600
	shift := max(0, c.opt.Now().Unix()-rec.Last) / week * week
	items := map[*record][]feed.Item{}
	rec.Each(func(i int, at int64, _ float64) {
		if r := named[rec.Names[i]]; r != nil {
			published := time.Unix(at+shift, 0)
			items[r] = append(items[r], feed.Item{Published: published})
			r.count(published)
		}
	})
	if len(items) == 0 {
		return 0, fmt.Errorf("%s: no source of it is the address or the title of a feed", rec.Path)
	}
	all := slices.SortedFunc(maps.Keys(items), func(a, b *record) int { return cmp.Compare(a.ID.URL, b.ID.URL) })
	// Each feed is as if it had been looked at every six hours.
	end := rec.Last + shift + 1
	step := max(6*3600, (rec.Last-rec.First)/1000)
	var commit *store.Commit
	for until := rec.First + shift; until < end; {
		until = min(until+step, end)
		for _, r := range all {
			e := entry{Feed: r.ID.URL, At: time.Unix(until, 0), Outcome: imported, Worth: r.Worth}
			n := sort.Search(len(items[r]), func(k int) bool { return !items[r][k].Published.Before(e.At) })
			e.Items, items[r] = items[r][:n], items[r][n:]
			r.Imported = time.Unix(rec.Last, 0)
			if commit, err = c.keep(r, &e); err != nil {
				return 0, err
			}
		}
	}
	commit.Wait()
	if err := c.beginLearner(); err != nil {
		return 0, err
	}
	if err := c.enroll(); err != nil {
		return 0, err
	}
	return len(items), c.replay()
}

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
			crawl := learner.Crawl{Source: address, At: at}
			if free, _ := c.free(r, at); free.Sub(at) > c.opt.lead() {
				crawl.Outcome, crawl.NotBefore = learner.Failed, free.Add(-c.opt.lead())
			} else {
				looks++
				fmt.Fprintf(w, "%s  %s\n", at.Local().Format("Mon 2 Jan 2006 15:04"), r.Name())
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
						published, worth := at.Add(-age), max(r.Worth, leastWorth)
						crawl.Items = append(crawl.Items, learner.Item{Published: published, Worth: worth})
					}
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
