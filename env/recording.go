package env

import (
	"cmp"
	"context"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Recording holds what was published where and when.
type Recording struct {
	Path  string
	First int64    // Unix time of the first publication
	Last  int64    // of the last
	Rows  int      // publications
	Names []string // sources, sorted

	published []publication // by time; those of one time in the order of the file
}

// publication is one row. Its source is a number in Names.
type publication struct {
	at      int64 // Unix time
	utility float64
	source  int32
}

const (
	maxRows   = 100_000_000 // 2.4 GB
	maxNames  = 10_000_000
	checkRows = 4096 // rows between looks at the context
)

// ReadRecording reads a recording once: a file, or a pipe such as /dev/stdin. A
// recording is CSV or gzip-compressed CSV with a header. It needs the columns
// source and published_unix (whole seconds UTC); utility (initial interest, a
// finite number, 0 or more) is 1 for all if it is left out, and other columns are
// passed over. Rows may come in any order. There may be 10⁸ rows of 10⁷ sources.
// Errors are one line that begins with the file and line.
func ReadRecording(ctx context.Context, path string) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseRecording(ctx, path, f)
}

// ParseRecording is [ReadRecording] of an open file; errors call it path.
func ParseRecording(ctx context.Context, path string, r io.Reader) (*Recording, error) {
	t, err := newTable(path, r, []string{"source", "published_unix"}, "utility")
	if err != nil {
		return nil, err
	}
	return t.recording(ctx, "published_unix")
}

// ReadTimes reads a file like a recording, in which the times stand in the
// named column and nothing has a utility: a log of crawls, for one.
func ReadTimes(ctx context.Context, path, column string) (*Recording, error) {
	t, err := OpenTable(path, []string{"source", column})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return t.recording(ctx, column)
}

// With returns the recording with those sources too, silent where they are new.
func (rec *Recording) With(names []string) *Recording {
	all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(rec.Names), names...))))
	if len(all) == len(rec.Names) {
		return rec
	}
	more := *rec
	more.Names, more.published = all, slices.Clone(rec.published)
	more.renumber(rec.Names)
	return &more
}

// Between returns the recording of the time from one Unix time to another, with
// the same sources.
func (rec *Recording) Between(from, to int64) *Recording {
	place := func(at int64) int {
		k, _ := slices.BinarySearchFunc(rec.published, at, func(p publication, at int64) int { return cmp.Compare(p.at, at) })
		return k
	}
	part := *rec
	part.First, part.Last = from, to
	part.published = rec.published[place(from):place(to)]
	part.Rows = len(part.published)
	return &part
}

// recording reads the columns of the source, the time, which is called so, and,
// if it is there, the utility.
func (t *Table) recording(ctx context.Context, time string) (*Recording, error) {
	rec := &Recording{Path: t.path}
	number := make(map[string]int32)
	for {
		name, p, err := t.publication(time)
		if err == io.EOF {
			break
		}
		if err == nil && rec.Rows%checkRows == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		i, ok := number[name]
		if !ok {
			i = int32(len(rec.Names))
			rec.Names = append(rec.Names, strings.Clone(name))
			number[rec.Names[i]] = i
		}
		p.source = i
		rec.published = append(rec.published, p)
		if rec.Rows++; rec.Rows > maxRows || len(rec.Names) > maxNames {
			return nil, t.Errorf("there are %d rows of %d sources so far; allowed are %d rows of %d sources", rec.Rows, len(rec.Names), maxRows, maxNames)
		}
	}
	if rec.Rows == 0 {
		return nil, t.Errorf("the recording has no row; at least one publication is needed")
	}
	byTime := func(a, b publication) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(rec.published, byTime) {
		slices.SortStableFunc(rec.published, byTime)
	}
	rec.First, rec.Last = rec.published[0].at, rec.published[rec.Rows-1].at
	old := slices.Clone(rec.Names)
	slices.Sort(rec.Names)
	rec.renumber(old)
	return rec, nil
}

// maxTime bounds Unix times, to the years -1200 to 5100. What lies beyond is
// most likely milliseconds.
const maxTime = 1e11

// publication returns the next row of a recording, or io.EOF. The name is valid
// until the row after.
func (t *Table) publication(time string) (source string, p publication, err error) {
	row, err := t.Next()
	if err != nil {
		return "", p, err
	}
	if row[0] == "" {
		return "", p, t.Errorf("source is empty; needed is a name")
	}
	text := strings.TrimSpace(row[1])
	if p.at, err = strconv.ParseInt(text, 10, 64); err != nil || p.at > maxTime || p.at < -maxTime {
		return "", p, t.Errorf("%s is %.40q; allowed is a whole number of seconds, at most 1e11 (milliseconds have to be divided by 1000)", time, text)
	}
	if p.utility = 1; len(row) > 2 && t.Has(2) {
		text = strings.TrimSpace(row[2])
		if p.utility, err = strconv.ParseFloat(text, 64); err != nil || !(p.utility >= 0) || math.IsInf(p.utility, 0) {
			return "", p, t.Errorf("utility is %q; allowed is a finite number, 0 or more", text)
		}
	}
	return row[0], p, nil
}

// renumber turns the sources of publications from places in old to places in
// Names.
func (rec *Recording) renumber(old []string) {
	place := make([]int32, len(old))
	for k, name := range old {
		i, _ := slices.BinarySearch(rec.Names, name)
		place[k] = int32(i)
	}
	for k := range rec.published {
		p := &rec.published[k]
		p.source = place[p.source]
	}
}

// Each calls f for every publication, by time; i is the source's number in Names.
func (rec *Recording) Each(f func(i int, at int64, utility float64)) {
	for _, p := range rec.published {
		f(int(p.source), p.at, p.utility)
	}
}
