package replay

import (
	"math"
	"slices"

	"ephemera/env"
)

// contents is what a recording holds.
type contents struct {
	Sources, Items int
	Days           float64
	Silent         int    // sources that published nothing in the last quarter of the time
	Gaps           int    // times without any item that are far longer than usual
	Longest        hours  // the longest of them
	Never          int    // sources without any item
	Dearest        string // the source with the most utility, and its share of all
	Share          float64
	PerHour        float64 // utility published per hour
}

// contentsOf tells what a recording holds. A gap is a time without an item of at
// least six hours and ten times what nine in ten waits for the next item last.
func contentsOf(rec *env.Recording) contents {
	s := contents{Sources: len(rec.Names), Items: rec.Rows, Days: float64(rec.Last-rec.First) / day}
	last := slices.Repeat([]int64{math.MinInt64}, len(rec.Names))
	sum := make([]float64, len(rec.Names))
	var waits []int64
	before := rec.First
	var all float64
	rec.Each(func(i int, at int64, utility float64) {
		waits = append(waits, at-before)
		before, last[i] = at, at
		sum[i] += utility
		all += utility
	})
	s.PerHour = all / (s.Days * 24)
	quarter := rec.Last - (rec.Last-rec.First)/4
	for i, at := range last {
		switch {
		case at == math.MinInt64:
			s.Never++
		case at < quarter:
			s.Silent++
		}
		if sum[i] > s.Share*all {
			s.Dearest, s.Share = rec.Names[i], sum[i]/all
		}
	}
	slices.Sort(waits)
	least := max(6*3600, 10*waits[len(waits)*9/10])
	if first, _ := slices.BinarySearch(waits, least); first < len(waits) {
		s.Gaps, s.Longest = len(waits)-first, hours(waits[len(waits)-1])/3600
	}
	return s
}
