package replay

import (
	"cmp"
	"encoding/csv"
	"io"
	"math"
	"slices"
)

// timetable is the crawls of a week, by time; it is meant to be repeated.
type timetable []crawl

// between returns the crawls of the repeated week after one time and up to
// another.
func (t timetable) between(from, to float64) []crawl {
	var all []crawl
	for _, c := range t {
		at := c.At + week*math.Ceil((from-c.At)/week)
		if at == from {
			at += week
		}
		for ; at <= to; at += week {
			all = append(all, crawl{c.Source, at})
		}
	}
	slices.SortStableFunc(all, func(a, b crawl) int { return cmp.Compare(a.At, b.At) })
	return all
}

// WriteTimetable writes the week as CSV, from Monday on: weekday, time (UTC),
// source.
func (a *Answer) WriteTimetable(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"weekday", "time_utc", "source"}) // errors are kept for Flush
	rows := slices.Clone(a.Timetable)
	// Unix time began on a Thursday.
	since := func(c crawl) float64 { return math.Mod(c.At-4*day, week) }
	slices.SortStableFunc(rows, func(a, b crawl) int { return cmp.Compare(since(a), since(b)) })
	for _, c := range rows {
		at := unix(c.At)
		_ = out.Write([]string{at.Weekday().String(), at.Format("15:04:05"), a.Log.Names[c.Source]})
	}
	out.Flush()
	return out.Error()
}
