package crawl

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/learner"
	"ephemera/live/feed"
)

// imported is the outcome of a journal entry that stands for a recording.
const imported feed.Outcome = "imported"

// Export writes what was found as a recording: source, published_unix and, if
// feeds differ in it, utility. It is compressed where the name ends in .gz.
func (c *Crawler) Export(w io.Writer, name string) (rows int, err error) {
	worth := false
	err = c.journal(0, func(_ uint64, e *entry) bool {
		worth = worth || e.Worth != 1 && len(e.Items) > 0
		return !worth
	})
	if err != nil {
		return 0, err
	}
	buffered := bufio.NewWriter(w)
	w = buffered
	var z *gzip.Writer
	if strings.HasSuffix(name, ".gz") {
		z = gzip.NewWriter(buffered)
		w = z
	}
	out := csv.NewWriter(w)
	row := []string{"source", "published_unix", "utility"}
	columns := 2
	if worth {
		columns = 3
	}
	out.Write(row[:columns])
	err = c.journal(0, func(_ uint64, e *entry) bool {
		for _, it := range e.Items {
			at := it.Published
			if at.IsZero() {
				at = e.At
			}
			if e.Outcome == imported || e.First && it.Published.IsZero() {
				continue // it is in the other recording; nobody knows when it was
			}
			row[0], row[1], row[2] = e.Feed, strconv.FormatInt(at.Unix(), 10), strconv.FormatFloat(e.Worth, 'g', -1, 64)
			out.Write(row[:columns])
			rows++
		}
		return true
	})
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	if z != nil {
		err = cmp.Or(err, z.Close())
	}
	return rows, cmp.Or(err, buffered.Flush())
}

// Import tells the learner of a recording, whose sources are addresses or titles
// of feeds. It returns how many feeds were found in it. A feed that was looked at
// before learns nothing.
func (c *Crawler) Import(rec *env.Recording) (feeds int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opt.Now()
	byName := map[string]*record{}
	for address, o := range c.listed {
		if r := c.feeds[address]; r.Last.IsZero() {
			byName[address] = r
			if o.Title != "" {
				byName[o.Title] = r
			}
		}
	}
	// Whole weeks that have passed are left out, so that hours and days stay.
	const week = 7 * 24 * time.Hour
	end := time.Unix(rec.Last, 0)
	shift := max(0, now.Sub(end)) / week * week
	entries := make([]*entry, len(rec.Names))
	rec.Each(func(i int, at int64, _ float64) {
		r := byName[rec.Names[i]]
		if r == nil {
			return
		}
		if entries[i] == nil {
			entries[i] = &entry{Feed: r.url, At: now, Outcome: imported, First: true, Worth: c.listed[r.url].Worth, NotBefore: now}
		}
		entries[i].Items = append(entries[i].Items, item{Published: time.Unix(at, 0).Add(shift)})
	})
	for _, e := range entries {
		if e == nil {
			continue
		}
		feeds++
		r := c.feeds[e.Feed]
		r.Last, r.Imported = end, end
		if err := c.learn(e); err != nil {
			return feeds, err
		}
		c.stats.add(e)
		commit, err := c.keep(r, e)
		if err != nil {
			return feeds, err
		}
		commit.Wait()
	}
	if feeds == 0 {
		return 0, fmt.Errorf("%s: no source of it is the address or the title of a feed that was not looked at yet", rec.Path)
	}
	return feeds, nil
}

// Planned is a look that is planned.
type Planned struct {
	At   time.Time
	Feed string
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
			if !r.Last.IsZero() && !r.Place.HasValidators() {
				wait = max(wait, c.opt.Unvalidated)
			}
			crawl := learner.Crawl{Source: name, At: at, NotBefore: at.Add(wait)}
			if until := c.free(r); until.After(at) {
				crawl.Outcome, crawl.NotBefore = learner.Failed, until
			} else {
				plan = append(plan, Planned{at, name})
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
		}
		time.Sleep(time.Second)
	}
	return requests, err
}

// Titles returns the name of each feed of the list, by address.
func (c *Crawler) Titles() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string]string{}
	for address := range c.listed {
		names[address] = cmp.Or(c.feeds[address].Title, address)
	}
	return names
}

// Unlisted returns the addresses of -worth that are not in the list, sorted.
func (c *Crawler) Unlisted() (addresses []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for address := range c.opt.Worth {
		if _, in := c.listed[address]; !in {
			addresses = append(addresses, address)
		}
	}
	slices.Sort(addresses)
	return addresses
}
