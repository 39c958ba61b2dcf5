package replay

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"ephemera/env"
)

// contents is what a recording holds.
type contents struct {
	Sources, Items int
	Days           float64
	Never          int      // sources without any item
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

// contentsOf tells what a recording holds.
func contentsOf(rec *env.Recording) contents {
	c := contents{Sources: len(rec.Names), Items: rec.Rows, Days: float64(rec.Last-rec.First) / day, Never: len(rec.Names)}
	published := make([]bool, c.Sources)
	low, high := math.Inf(1), 0. // utility
	rec.Each(func(i int, _ int64, utility float64) {
		low, high = min(low, utility), max(high, utility)
		if !published[i] {
			published[i] = true
			c.Never--
		}
	})
	c.Uneven = low < high
	return c
}
