package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"ephemera/env"
)

// contents is what a recording holds.
type contents struct {
	Sources, Items int
	Days           float64
	Never          int      // sources without any item
	Silent         int      // sources with items, but none in the last quarter of the time
	Gaps           int      // times without any item that are far longer than usual
	Longest        hours    // the longest of them
	Uneven         bool     // items differ in utility
	Outliers       []string // date and source of the items that are left out, since they are dated far from the rest
}

// cut limits the log to the times that the question names, and to items that are
// not dated far from the rest if it names none there. It returns those that are.
func (q *Question) cut() (outliers []string) {
	all, first, last := q.Log, q.First, q.Last
	q.Log = all.Plausible()
	if first != nil && *first < q.Log.First || last != nil && *last > q.Log.Last {
		q.Log = all
	}
	from, to := q.Log.First, q.Log.Last
	if q.Log != all {
		all.Each(func(i int, at int64, _ float64) {
			if at < from && first == nil || at > to && last == nil {
				outliers = append(outliers, fmt.Sprintf("%v of %s", unix(float64(at)).Format(time.DateOnly), all.Names[i]))
			}
		})
	}
	if first != nil || last != nil {
		q.Log = q.Log.Between(*cmp.Or(first, &from), *cmp.Or(last, &to))
	}
	return outliers
}

// contentsOf tells what a recording holds. A gap is a time without an item of at
// least six hours and ten times what nine in ten waits for the next item last.
func contentsOf(rec *env.Recording) contents {
	c := contents{Sources: len(rec.Names), Items: rec.Rows, Days: float64(rec.Last-rec.First) / day}
	quarter := rec.Last - (rec.Last-rec.First)/4
	items, late := make([]int, c.Sources), make([]int, c.Sources) // of each source, in all and in the last quarter
	var waits []int64
	low, high := math.Inf(1), 0. // utility
	before := rec.First
	rec.Each(func(i int, at int64, utility float64) {
		waits, before = append(waits, at-before), at
		low, high = min(low, utility), max(high, utility)
		items[i]++
		if at >= quarter {
			late[i]++
		}
	})
	for i, n := range items {
		switch {
		case n == 0:
			c.Never++
		case late[i] == 0:
			c.Silent++
		}
	}
	c.Uneven = low < high
	slices.Sort(waits)
	least := max(6*3600, 10*waits[len(waits)*9/10])
	if first, _ := slices.BinarySearch(waits, least); first < len(waits) {
		c.Gaps, c.Longest = len(waits)-first, hours(waits[len(waits)-1])/3600
	}
	return c
}
