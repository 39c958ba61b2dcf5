package crawl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"ephemera/live/feed"
	"ephemera/live/store"
)

// Items that were found are kept for readers. The journal is for the learner, and holds of
// an item when it was published alone.
const (
	itemPrefix = "item/"
	itemsMark  = "items" // is kept as soon as the items of earlier versions are
	itemsAge   = 90 * 24 * time.Hour
	itemsMost  = 100_000
	shownItems = 100 // on a page
)

// item is an item as it is kept.
type item struct {
	feed.Item
	Feed  string    `json:"feed"` // its address
	At    time.Time `json:"at"`   // when it was found
	First bool      `json:"first,omitempty"`

	place place
	from  *record
}

// Delay is how long it was there before it was found, or 0 if that is not known: that of
// items of the first look at a feed is none.
func (it *item) Delay() time.Duration {
	if it.First || it.Published.IsZero() {
		return 0
	}
	return it.At.Sub(it.Published)
}

// place is that of an item in the river: by the entry of the journal that it came with, and
// those of an entry by their order, the first of the feed last.
type place struct {
	seq uint64
	k   int
}

func (p place) String() string { return fmt.Sprintf("%016x.%04x", p.seq, p.k) }

func parsePlace(s string) (p place, err error) {
	if _, err := fmt.Sscanf(s, "%16x.%x", &p.seq, &p.k); err != nil || p.String() != s {
		return p, errors.New("it is no place among the items; allowed is what a page of items names")
	}
	return p, nil
}

func (p place) compare(q place) int { return cmp.Or(cmp.Compare(p.seq, q.seq), cmp.Compare(p.k, q.k)) }

// drop is an item in memory: where it is and whose.
type drop struct {
	place
	from  *record
	at    int64 // when it was found, Unix time
	first bool
}

// loadItems takes up which items are kept.
func (c *Crawler) loadItems() error {
	mark, err := c.store.Value(itemsMark)
	if err == nil && mark == nil {
		err = c.keepJournal()
	}
	if err != nil {
		return err
	}
	var bad error
	err = c.store.Values(itemPrefix, "", func(name string, data []byte) bool {
		var it item
		if it.place, bad = parsePlace(strings.TrimPrefix(name, itemPrefix)); bad == nil {
			bad = json.Unmarshal(data, &it)
		}
		if r := c.feeds[it.Feed]; bad == nil && r != nil {
			c.river = append(c.river, drop{it.place, r, it.At.Unix(), it.First})
		}
		return bad == nil
	})
	// By name, the items of an entry that come after 65 536 others stand among those.
	slices.SortFunc(c.river, func(a, b drop) int { return a.compare(b.place) })
	return errors.Join(err, bad)
}

// keepJournal keeps the items of a journal that an earlier version wrote.
func (c *Crawler) keepJournal() error {
	var values []store.Value
	var bad error
	oldest := c.opt.Now().Add(-itemsAge)
	err := c.journal(0, func(e *entry) bool {
		var some []store.Value
		if e.At.After(oldest) {
			some, bad = e.items(e.seq)
		}
		if values = append(values, some...); bad == nil && len(values) >= 1000 {
			bad = c.store.Set(values...)
			values = values[:0]
		}
		return bad == nil
	})
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	return c.store.Set(append(values, store.Value{Name: itemsMark, Data: []byte("1")})...)
}

// items returns the items of an entry as they are kept. Those of a recording have nothing
// that anybody reads.
func (e *entry) items(seq uint64) (values []store.Value, err error) {
	if e.Outcome == imported {
		return nil, nil
	}
	for i, it := range e.Items {
		name := itemPrefix + place{seq, len(e.Items) - 1 - i}.String()
		data, err := json.Marshal(item{Item: it, Feed: e.Feed, At: e.At, First: e.Previous.IsZero()})
		if err != nil {
			return nil, err
		}
		values = append(values, store.Value{Name: name, Data: data})
	}
	return values, nil
}

// flow has the items of an entry in the river.
func (c *Crawler) flow(r *record, e *entry) {
	if e.Outcome == imported {
		return
	}
	for k := range e.Items {
		c.river = append(c.river, drop{place{c.seq, k}, r, e.At.Unix(), e.Previous.IsZero()})
	}
}

// ebb forgets items that are too old or too many. Of too many go the oldest of the feeds that
// have most: one that shows fresh ids at each look takes no place from others.
func (c *Crawler) ebb(now time.Time) error {
	oldest := now.Add(-itemsAge).Unix()
	begin := slices.IndexFunc(c.river, func(d drop) bool { return d.at >= oldest })
	if begin < 0 {
		begin = len(c.river)
	}
	surplus := map[*record]int{} // how many of a feed's oldest go
	for _, d := range c.river[begin:] {
		surplus[d.from]++
	}
	share := share(slices.Collect(maps.Values(surplus)), itemsMost)
	for r := range surplus {
		surplus[r] -= min(share, surplus[r])
	}
	var values []store.Value
	stay := make([]drop, 0, len(c.river)-begin)
	for i, d := range c.river {
		if i >= begin {
			if surplus[d.from]--; surplus[d.from] < 0 {
				stay = append(stay, d)
				continue
			}
		}
		values = append(values, store.Value{Name: itemPrefix + d.place.String()})
	}
	if err := c.store.Set(values...); err != nil {
		return err
	}
	c.river = stay
	return nil
}

// share returns the greatest share of which each can take as much as it needs and all together
// no more than there is, if one that needs more takes just the share.
func share(needs []int, all int) int {
	slices.Sort(needs)
	for i, need := range needs {
		if equal := all / (len(needs) - i); need > equal {
			return equal
		}
		all -= need
	}
	return math.MaxInt
}

// setItemsBack has items that were found later than now be found as long before it as they
// were, and returns these as they are kept. One that cannot be read stays as it is.
func (c *Crawler) setItemsBack(s shift) (values []store.Value, err error) {
	for i := range c.river {
		d := &c.river[i]
		at := time.Unix(d.at, 0)
		if !s.move(&at) {
			continue
		}
		it, bad := c.kept(d)
		if bad == nil && it == nil {
			continue
		}
		var data []byte
		if bad == nil {
			it.At, d.at = at, at.Unix()
			data, bad = json.Marshal(it)
		}
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("item %s: %w", d.place, bad))
			continue
		}
		values = append(values, store.Value{Name: itemPrefix + d.place.String(), Data: data})
	}
	return values, err
}

// kept returns an item, or nil if it has not reached the disk yet.
func (c *Crawler) kept(d *drop) (*item, error) {
	data, err := c.store.Value(itemPrefix + d.place.String())
	if err != nil || data == nil {
		return nil, err
	}
	it := &item{place: d.place, from: d.from}
	return it, json.Unmarshal(data, it)
}

// find returns items before a place, the last found first, of the feeds that are wanted and on
// the list, and the place after which there are more of them, nil if there are not.
func (c *Crawler) find(before *place, n int, wanted func(d *drop) bool) (items []*item, next *place, err error) {
	end := len(c.river)
	if before != nil {
		end, _ = slices.BinarySearchFunc(c.river, *before, func(d drop, p place) int { return d.compare(p) })
	}
	for _, d := range slices.Backward(c.river[:end]) {
		if !d.from.listed || !wanted(&d) {
			continue
		}
		if len(items) == n {
			return items, &items[n-1].place, nil
		}
		it, err := c.kept(&d)
		if err != nil {
			return nil, nil, err
		}
		if it != nil {
			items = append(items, it)
		}
	}
	return items, nil, nil
}
