package env

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Recording holds what was published where and when.
type Recording struct {
	Path     string
	First    int64    // Unix time of the first publication
	Last     int64    // of the last
	Rows     int      // publications
	Repeated int      // rows of the file that were there before, field by field, and do not count
	Names    []string // sources, sorted

	of     [][]Publication // each source's rows, by time
	order  []place         // of all rows, by time; those of one time in the order of the file
	from   int             // order[from:to] lies in the recording's time,
	to     int             // and sources show at first what lies before
	oldest int64           // nothing before that time is shown
}

// Publication is one item that a source published.
type Publication struct {
	At      int64 // Unix time
	Utility float64
}

// place is where a row is found, of[source][k].
type place struct{ source, k int32 }

// at returns the time of the k-th row.
func (rec *Recording) at(k int) int64 {
	p := rec.order[k]
	return rec.of[p.source][p.k].At
}

// Of returns what source i published, by time: the items between First and Last and
// those before, which it shows at its first crawl.
func (rec *Recording) Of(i int) []Publication {
	of := rec.of[i]
	if rec.to < len(rec.order) {
		of = of[:before(of, float64(rec.at(rec.to)))]
	}
	return of[before(of, float64(rec.oldest)):]
}

// before returns how many of a source's items are from before a time.
func before(of []Publication, at float64) int {
	return sort.Search(len(of), func(k int) bool { return float64(of[k].At) >= at })
}

// row is one row of a file. Its source is a number.
type row struct {
	Publication
	source int32
	hash   uint32 // of all fields
}

// Columns names the columns of a recording. Where "a or b" stands for a name, the
// column may be called either.
type Columns struct {
	Source, Time string
	Utility      string // "utility" may be missing: items are worth 1. Another name has to be there
}

// PublishedColumns are the columns of a log of what was published.
var PublishedColumns = Columns{"source", "published_unix or published", "utility"}

// ReadRecording reads a recording with [PublishedColumns].
func ReadRecording(ctx context.Context, path string) (*Recording, error) {
	return PublishedColumns.Read(ctx, path)
}

// Read reads a recording once: a file, or a pipe such as /dev/stdin. A recording
// is CSV or gzip-compressed CSV with a header. Times are those of [ParseTime],
// utilities (initial interest) are finite numbers, 0 or more. Other columns tell rows
// apart: one that is there twice, field by field, counts once. Rows may come in any
// order, and take 24 bytes each in memory.
// Errors are one line that begins with the file and line.
func (c Columns) Read(ctx context.Context, path string) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return c.Parse(ctx, path, f)
}

// Parse is [Columns.Read] of an open file; errors call it path.
func (c Columns) Parse(ctx context.Context, path string, r io.Reader) (*Recording, error) {
	needed, others := []string{c.Source, c.Time}, []string(nil)
	switch c.Utility {
	case "":
	case PublishedColumns.Utility:
		others = []string{c.Utility}
	default:
		needed = append(needed, c.Utility)
	}
	rec := &Recording{Path: path}
	var rows []row
	number := make(map[string]int32)
	if err := ReadTable(path, r, needed, others, func(names, fields, all []string) error {
		p, err := parsePublication(names, fields)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		i, ok := number[fields[0]]
		if !ok {
			i = int32(len(rec.Names))
			rec.Names = append(rec.Names, strings.Clone(fields[0]))
			number[rec.Names[i]] = i
		}
		rows = append(rows, row{p, i, hashRow(all)})
		return nil
	}); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s:1: the recording has no row; at least one publication is needed", path)
	}
	byTime := func(a, b row) int { return cmp.Compare(a.At, b.At) }
	if !slices.IsSortedFunc(rows, byTime) {
		slices.SortStableFunc(rows, byTime)
	}
	once := dropRepeated(rows)
	rec.Repeated = len(rows) - len(once)
	rec.fill(once)
	return rec, nil
}

// fill takes up rows, by time, whose sources are numbers in Names, and sorts these.
func (rec *Recording) fill(rows []row) {
	byName := make([]int, len(rec.Names))
	for i := range byName {
		byName[i] = i
	}
	slices.SortFunc(byName, func(i, j int) int { return cmp.Compare(rec.Names[i], rec.Names[j]) })
	names, number, count := make([]string, len(byName)), make([]int32, len(byName)), make([]int, len(byName))
	for i, old := range byName {
		names[i], number[old] = rec.Names[old], int32(i)
	}
	for _, r := range rows {
		count[number[r.source]]++
	}
	all := make([]Publication, len(rows))
	rec.Names, rec.of, rec.order = names, make([][]Publication, len(names)), make([]place, len(rows))
	for i, n := range count {
		rec.of[i], all = all[:0:n], all[n:]
	}
	for k, r := range rows {
		i := number[r.source]
		rec.order[k] = place{i, int32(len(rec.of[i]))}
		rec.of[i] = append(rec.of[i], r.Publication)
	}
	rec.take(0, len(rows))
}

// parsePublication reads the columns of the source, the time and, if it is there,
// the utility.
func parsePublication(names, row []string) (p Publication, err error) {
	if row[0] == "" {
		return p, fmt.Errorf("%s is empty; needed is a name", names[0])
	}
	if p.At, err = ParseTime(row[1]); err != nil {
		return p, fmt.Errorf("%s %w", names[1], err)
	}
	if p.Utility = 1; len(row) > 2 && names[2] != "" {
		text := strings.TrimSpace(row[2])
		if p.Utility, err = strconv.ParseFloat(text, 64); err != nil || !(p.Utility >= 0) || math.IsInf(p.Utility, 0) {
			return p, fmt.Errorf("%s is %q; allowed is a finite number, 0 or more", names[2], text)
		}
	}
	return p, nil
}

// hashRow returns a hash of the fields of a row (FNV-1a).
func hashRow(fields []string) (hash uint32) {
	hash = 2166136261
	for _, field := range fields {
		for k := range len(field) {
			hash = (hash ^ uint32(field[k])) * 16777619
		}
		hash = (hash ^ 0xFF) * 16777619 // a byte that is in no text of UTF-8 ends a field
	}
	return hash
}

// dropRepeated returns rows, in the order of time, without those that are there before.
func dropRepeated(all []row) []row {
	once := all[:0]
	for len(all) > 0 {
		n := 1 // of one time
		for n < len(all) && all[n].At == all[0].At {
			n++
		}
		if n == 1 {
			once = append(once, all[0])
		} else {
			seen := make(map[row]bool, n)
			for _, p := range all[:n] {
				if !seen[p] {
					seen[p] = true
					once = append(once, p)
				}
			}
		}
		all = all[n:]
	}
	return once
}

// take makes some of the rows all that the recording holds.
func (rec *Recording) take(from, to int) {
	rec.from, rec.to, rec.Rows = from, to, to-from
	rec.First, rec.Last, rec.oldest = rec.at(from), rec.at(to-1), rec.at(from)
}

// maxTime bounds Unix times, to the years -1200 to 5100. What lies beyond is
// most likely milliseconds.
const maxTime = 1e11

// ParseTime returns the Unix time of whole seconds or of a date and time of day
// such as 2026-11-20T10:00:00Z. It may have a blank for the T; without a zone it is UTC.
func ParseTime(text string) (int64, error) {
	text = strings.TrimSpace(text)
	at, err := strconv.ParseInt(text, 10, 64)
	date := strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05"} {
		if err != nil {
			var t time.Time
			t, err = time.Parse(layout, date)
			at = t.Unix()
		}
	}
	if err != nil || at > maxTime || at < -maxTime {
		return 0, fmt.Errorf("is %.40q; allowed is a date such as 2026-11-20T10:00:00Z, "+
			"or a whole number of seconds, at most 1e11 (milliseconds have to be divided by 1000)",
			text)
	}
	return at, nil
}

// With returns the recording with those sources too, silent where they are new.
func (rec *Recording) With(names []string) *Recording {
	all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(rec.Names), names...))))
	if len(all) == len(rec.Names) {
		return rec
	}
	more := *rec
	more.Names, more.of = all, make([][]Publication, len(all))
	number := make([]int32, len(rec.Names)) // of each source that was there before
	for i, name := range rec.Names {
		k, _ := slices.BinarySearch(all, name)
		number[i], more.of[k] = int32(k), rec.of[i]
	}
	more.order = slices.Clone(rec.order)
	for k := range more.order {
		p := &more.order[k]
		p.source = number[p.source]
	}
	return &more
}

// Between returns the recording of the time from one Unix time to another, with
// the same sources. What was published before is not forgotten: sources show it at
// their first crawl.
func (rec *Recording) Between(from, to int64) *Recording {
	part := *rec
	part.First, part.Last, part.oldest = from, to, min(rec.oldest, from)
	place := func(t int64) int { return sort.Search(len(rec.order), func(k int) bool { return rec.at(k) >= t }) }
	part.from, part.to = place(from), place(max(from, to))
	part.Rows = part.to - part.from
	return &part
}

// Plausible returns the recording without items that are most likely dated wrongly:
// at most one in ten, before a gap that is longer than the rest of the recording, or
// after one longer than a tenth of it.
func (rec *Recording) Plausible() *Recording {
	from, to := rec.from, rec.to
	for cut := true; cut; {
		cut = false
		few := (to - from) / 10
		for k := to - few; k < to && !cut; k++ {
			if gap := rec.at(k) - rec.at(k-1); gap > (rec.at(k-1)-rec.at(from))/10 {
				to, cut = k, true
			}
		}
		for k := from + few; k > from && !cut; k-- {
			if gap := rec.at(k) - rec.at(k-1); gap > rec.at(to-1)-rec.at(k) {
				from, cut = k, true
			}
		}
	}
	part := *rec
	part.take(from, to)
	return &part
}

// Uneven reports whether items differ in utility.
func (rec *Recording) Uneven() (uneven bool) {
	first := math.NaN()
	rec.Each(func(_ int, _ int64, utility float64) {
		if math.IsNaN(first) {
			first = utility
		}
		uneven = uneven || utility != first
	})
	return uneven
}

// Even returns the recording with all items worth 1.
func (rec *Recording) Even() *Recording {
	same := *rec
	same.of = make([][]Publication, len(rec.of))
	for i, of := range rec.of {
		same.of[i] = slices.Clone(of)
		for k := range same.of[i] {
			same.of[i][k].Utility = 1
		}
	}
	return &same
}

// Each calls f for every publication, by time; i is the source's number in Names.
func (rec *Recording) Each(f func(i int, at int64, utility float64)) {
	for _, p := range rec.order[rec.from:rec.to] {
		of := &rec.of[p.source][p.k]
		f(int(p.source), of.At, of.Utility)
	}
}
