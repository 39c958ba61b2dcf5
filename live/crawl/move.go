package crawl

import (
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/learner"
	"ephemera/live/feed"
	"ephemera/live/store"
)

// Export writes what was found as a recording: source, published_unix and utility.
// It is compressed where the name ends in .gz.
func (c *Crawler) Export(w io.Writer, name string) (rows int, err error) {
	z := gzip.NewWriter(w)
	if strings.HasSuffix(name, ".gz") {
		w = z
	}
	out := csv.NewWriter(w)
	out.Write([]string{"source", "published_unix", "utility"})
	err = c.journal(0, func(_ uint64, e *entry) bool {
		for _, it := range e.Items {
			at := it.Published
			if at.IsZero() {
				at = e.At
			}
			if e.First && it.Published.IsZero() {
				continue // nobody knows when it was
			}
			out.Write([]string{e.Feed, strconv.FormatInt(at.Unix(), 10), strconv.FormatFloat(e.Worth, 'g', -1, 64)})
			rows++
		}
		return true
	})
	out.Flush()
	err = cmp.Or(err, out.Error())
	if w == z {
		err = cmp.Or(err, z.Close())
	}
	return rows, err
}

// Import has the learner begin with a recording, whose sources are addresses or
// titles of feeds. It returns how many feeds are in it.
func (c *Crawler) Import(rec *env.Recording) (feeds int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seq > 0 {
		return 0, fmt.Errorf("%s: the learner knows of crawls already; a recording is imported before the first", c.opt.Dir)
	}
	address := map[string]string{}
	for url, o := range c.listed {
		address[o.Title] = url
		address[url] = url
	}
	delete(address, "")
	// Whole weeks that have passed are left out, so that hours and days stay.
	const week = 7 * 24 * 3600
	shift := max(0, c.opt.Now().Unix()-rec.Last) / week * week
	items := map[string][]int64{}
	rec.Each(func(i int, at int64, _ float64) {
		if url := address[rec.Names[i]]; url != "" {
			items[url] = append(items[url], at+shift)
		}
	})
	if len(items) == 0 {
		return 0, fmt.Errorf("%s: no source of it is the address or the title of a feed", rec.Path)
	}
	// Each feed is as if it had been looked at every six hours.
	begin, end := rec.First+shift, rec.Last+shift
	step := max(6*3600, (end-begin)/1000)
	var commit *store.Commit
	for at := begin; at < end; at += step {
		until := min(at+step, end)
		for _, url := range slices.Sorted(maps.Keys(items)) {
			times := items[url]
			e := entry{Feed: url, At: time.Unix(until, 0), Outcome: feed.Found, Imported: true, Worth: c.listed[url].Worth}
			for len(times) > 0 && (times[0] < until || until == end) {
				e.Items = append(e.Items, item{Published: time.Unix(times[0], 0)})
				times = times[1:]
			}
			items[url] = times
			r := c.feeds[url]
			r.Imported = time.Unix(rec.Last, 0)
			if commit, err = c.keep(r, &e); err != nil {
				return 0, err
			}
		}
	}
	commit.Wait()
	if err := c.begin(); err != nil {
		return 0, err
	}
	return len(items), c.replay(0)
}

// Planned is a look that is planned.
type Planned struct {
	At    time.Time
	Feed  string // address
	Title string
}

// Plan returns the looks of the time to come, as they come if each finds what is
// thought to be there. It asks for nothing and changes nothing.
func (c *Crawler) Plan(length time.Duration) ([]Planned, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, err := c.learner.Save()
	if err != nil {
		return nil, err
	}
	s, err := learner.Decode(data)
	if err != nil {
		return nil, err
	}
	l, err := s.Crawler()
	if err != nil {
		return nil, err
	}
	epoch, _ := c.opt.epoch()
	now := c.opt.Now()
	var plan []Planned
	for at := now; at.Before(now.Add(length)); at = at.Add(epoch) {
		for _, name := range l.Select(at, math.MaxInt) {
			r := c.feeds[name]
			wait := c.opt.Shortest
			if !r.Last.IsZero() {
				wait, _ = c.usual(r, at)
			}
			crawl := learner.Crawl{Source: name, At: at, NotBefore: at.Add(wait)}
			if until := c.free(r); until.After(at) {
				crawl.Outcome, crawl.NotBefore = learner.Failed, until
			} else {
				plan = append(plan, Planned{at, name, cmp.Or(r.Title, name)})
				b, err := l.Belief(name)
				if err != nil {
					return nil, err
				}
				if !b.Last.IsZero() {
					n := int(math.Round(b.Items * at.Sub(b.Last).Hours()))
					for k := range n {
						age := at.Sub(b.Last) * time.Duration(2*k+1) / time.Duration(2*n)
						crawl.Items = append(crawl.Items, learner.Item{Published: at.Add(-age), Worth: max(c.listed[name].Worth, leastWorth)})
					}
				}
			}
			if err := l.Update(crawl); err != nil {
				return nil, err
			}
		}
	}
	return plan, nil
}

// Once makes one round: the requests of the time since the last round, of a day at
// most, or of an hour if there was none.
func (c *Crawler) Once() (requests int, err error) {
	c.mu.Lock()
	epoch, _ := c.opt.epoch()
	since := time.Hour
	if !c.stats.Last.IsZero() {
		since = min(max(c.opt.Now().Sub(c.stats.Last), epoch), 24*time.Hour)
	}
	err = c.learner.SetBudget(math.Ceil(c.opt.PerHour * since.Hours()))
	c.mu.Unlock()
	// A host that is asked for several feeds has a second between them.
	for idle := 0; err == nil && idle < 3; {
		var n int
		n, err = c.Tick()
		c.Wait()
		requests += n
		if idle++; n > 0 {
			idle = 0
			continue
		}
		time.Sleep(time.Second)
	}
	return requests, err
}
