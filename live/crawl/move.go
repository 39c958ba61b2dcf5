package crawl

import (
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/internal/files"
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
