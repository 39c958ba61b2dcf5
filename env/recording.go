package env

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
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

	all      []publication // by time; those of one time in the order of the file
	from, to int           // what lies in the recording's time; sources show at first what lies before
}

// published returns what was published from First to Last.
func (rec *Recording) published() []publication { return rec.all[rec.from:rec.to] }

// publication is one row. Its source is a number in Names.
type publication struct {
	at      int64 // Unix time
	utility float64
	source  int32
	row     uint32 // a hash of all fields
}

// Columns names the columns of a recording. Where "a or b" stands for a name, the
// column may be called either.
type Columns struct {
	Source, Time string
	Utility      string // may be missing: items are worth 1
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
	var others []string
	if c.Utility != "" {
		others = []string{c.Utility}
	}
	rec := &Recording{Path: path}
	number := make(map[string]int32)
	if err := ReadTable(path, r, []string{c.Source, c.Time}, others, func(names, row, all []string) error {
		p, err := parsePublication(names, row)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		i, ok := number[row[0]]
		if !ok {
			i = int32(len(rec.Names))
			rec.Names = append(rec.Names, strings.Clone(row[0]))
			number[rec.Names[i]] = i
		}
		p.source, p.row = i, hashRow(all)
		rec.all = append(rec.all, p)
		return nil
	}); err != nil {
		return nil, err
	}
	if len(rec.all) == 0 {
		return nil, fmt.Errorf("%s:1: the recording has no row; at least one publication is needed", path)
	}
	byTime := func(a, b publication) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(rec.all, byTime) {
		slices.SortStableFunc(rec.all, byTime)
	}
	once := dropRepeated(rec.all)
	rec.Repeated = len(rec.all) - len(once)
	rec.take(once)
	old := slices.Clone(rec.Names)
	slices.Sort(rec.Names)
	rec.renumber(old)
	return rec, nil
}

// parsePublication reads the columns of the source, the time and, if it is there,
// the utility.
func parsePublication(names, row []string) (p publication, err error) {
	if row[0] == "" {
		return p, fmt.Errorf("%s is empty; needed is a name", names[0])
	}
	if p.at, err = ParseTime(row[1]); err != nil {
		return p, fmt.Errorf("%s %w", names[1], err)
	}
	if p.utility = 1; len(row) > 2 && names[2] != "" {
		text := strings.TrimSpace(row[2])
		if p.utility, err = strconv.ParseFloat(text, 64); err != nil || !(p.utility >= 0) || math.IsInf(p.utility, 0) {
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

// dropRepeated returns publications, in the order of time, without rows that are there
// before.
func dropRepeated(all []publication) []publication {
	once := all[:0]
	for len(all) > 0 {
		n := 1 // of one time
		for n < len(all) && all[n].at == all[0].at {
			n++
		}
		if n == 1 {
			once = append(once, all[0])
		} else {
			seen := make(map[publication]bool, n)
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

// take makes publications, in the order of time, all that the recording holds.
func (rec *Recording) take(all []publication) {
	rec.all, rec.from, rec.to, rec.Rows = all, 0, len(all), len(all)
	rec.First, rec.Last = all[0].at, all[len(all)-1].at
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
		return 0, fmt.Errorf("is %.40q; allowed is a date such as 2026-11-20T10:00:00Z, or a whole number of seconds, at most 1e11 (milliseconds have to be divided by 1000)", text)
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
	more.Names, more.all = all, slices.Clone(rec.all)
	more.renumber(rec.Names)
	return &more
}

// Between returns the recording of the time from one Unix time to another, with
// the same sources. What was published before is not forgotten: sources show it at
// their first crawl.
func (rec *Recording) Between(from, to int64) *Recording {
	part := *rec
	part.First, part.Last = from, to
	part.from, part.to = before(rec.all, float64(from)), before(rec.all, float64(max(from, to)))
	part.Rows = part.to - part.from
	return &part
}

// Plausible returns the recording without items that are most likely dated wrongly:
// at most one in ten, before a gap that is longer than the rest of the recording, or
// after one longer than a tenth of it.
func (rec *Recording) Plausible() *Recording {
	all := rec.published()
	for cut := true; cut; {
		cut = false
		few := len(all) / 10
		for k := len(all) - few; k < len(all) && !cut; k++ {
			if gap := all[k].at - all[k-1].at; gap > (all[k-1].at-all[0].at)/10 {
				all, cut = all[:k], true
			}
		}
		for k := few; k > 0 && !cut; k-- {
			if gap := all[k].at - all[k-1].at; gap > all[len(all)-1].at-all[k].at {
				all, cut = all[k:], true
			}
		}
	}
	part := *rec
	part.take(all)
	return &part
}

// renumber turns the sources of publications from places in old to places in
// Names.
func (rec *Recording) renumber(old []string) {
	place := make([]int32, len(old))
	for k, name := range old {
		i, _ := slices.BinarySearch(rec.Names, name)
		place[k] = int32(i)
	}
	for k := range rec.all {
		p := &rec.all[k]
		p.source = place[p.source]
	}
}

// Uneven reports whether items differ in utility.
func (rec *Recording) Uneven() bool {
	all := rec.published()
	return slices.ContainsFunc(all, func(p publication) bool { return p.utility != all[0].utility })
}

// Even returns the recording with all items worth 1.
func (rec *Recording) Even() *Recording {
	same := *rec
	same.all = slices.Clone(rec.all)
	for k := range same.all {
		same.all[k].utility = 1
	}
	return &same
}

// Each calls f for every publication, by time; i is the source's number in Names.
func (rec *Recording) Each(f func(i int, at int64, utility float64)) {
	for _, p := range rec.published() {
		f(int(p.source), p.at, p.utility)
	}
}
