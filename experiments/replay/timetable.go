package replay

import (
	"cmp"
	"encoding/csv"
	"io"
	"math"
	"slices"
	"time"
)

// Timetable is the crawls of a week, by time; it is meant to be repeated.
type Timetable []Crawl

// Schedule is what the learner leaves to be used without it.
type Schedule struct {
	Timetable Timetable // of what it has learned in the end

	// What was learned by the middle of the recording, in its second half: by
	// the frozen learner, and by its timetable replayed as told.
	Frozen, Replayed Measures
}

// between returns the crawls of the repeated week after one time and up to
// another.
func (t Timetable) between(from, to float64) []Crawl {
	var all []Crawl
	for _, c := range t {
		at := c.At + week*math.Ceil((from-c.At)/week)
		if at == from {
			at += week
		}
		for ; at <= to; at += week {
			all = append(all, Crawl{c.Source, at})
		}
	}
	slices.SortStableFunc(all, func(a, b Crawl) int { return cmp.Compare(a.At, b.At) })
	return all
}

// Write writes the week as CSV, from Monday on: weekday, time (UTC), source.
func (t Timetable) Write(w io.Writer, names []string) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"weekday", "time_utc", "source"}) // errors are kept for Flush
	rows := slices.Clone(t)
	// Unix time began on a Thursday.
	since := func(c Crawl) float64 { return math.Mod(c.At-4*day, week) }
	slices.SortStableFunc(rows, func(a, b Crawl) int { return cmp.Compare(since(a), since(b)) })
	for _, c := range rows {
		at := time.Unix(int64(c.At), 0).UTC()
		_ = out.Write([]string{at.Weekday().String(), at.Format("15:04:05"), names[c.Source]})
	}
	out.Flush()
	return out.Error()
}

// Visits returns how often a source is crawled in the week.
func (t Timetable) Visits(sources int) []int {
	n := make([]int, sources)
	for _, c := range t {
		n[c.Source]++
	}
	return n
}
