package env

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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
// passed over. Rows may come in any order. There may be 10⁸ rows of 10⁷ sources, and
// 65 536 bytes in a line. Errors are one line that begins with the file and line.
func ReadRecording(ctx context.Context, path string) (*Recording, error) {
	f, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseRecording(ctx, path, f)
}

// ParseRecording is [ReadRecording] of an open file; errors call it path.
func ParseRecording(ctx context.Context, path string, r io.Reader) (*Recording, error) {
	return parse(ctx, path, r, [3]string{"source", "published_unix", "utility"})
}

// ReadTimes reads a file like a recording, in which the times stand in the
// named column and nothing has a utility: a log of crawls, for one.
func ReadTimes(ctx context.Context, path, column string) (*Recording, error) {
	f, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parse(ctx, path, f, [3]string{"source", column, ""})
}

// With returns the recording with those sources too, silent where they are new.
func (rec *Recording) With(names []string) *Recording {
	all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(rec.Names), names...))))
	if len(all) == len(rec.Names) {
		return rec
	}
	more := *rec
	more.Names, more.published = all, slices.Clone(rec.published)
	place := make([]int32, len(rec.Names))
	for k, name := range rec.Names {
		i, _ := slices.BinarySearch(all, name)
		place[k] = int32(i)
	}
	for k := range more.published {
		p := &more.published[k]
		p.source = place[p.source]
	}
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

func parse(ctx context.Context, path string, r io.Reader, columns [3]string) (*Recording, error) {
	rows := &rows{path: path, names: columns, buf: bufio.NewReaderSize(r, maxLine)}
	if err := rows.begin(); err != nil {
		return nil, interrupted(ctx, err)
	}
	rec := &Recording{Path: path}
	number := make(map[string]int32)
	for sorted := true; ; {
		p, err := rows.next()
		if err == io.EOF {
			if !sorted {
				slices.SortStableFunc(rec.published, func(a, b publication) int { return cmp.Compare(a.at, b.at) })
			}
			break
		}
		if err != nil {
			return nil, interrupted(ctx, err)
		}
		if len(rec.published)%checkRows == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		i, ok := number[string(p.source)]
		if !ok {
			i = int32(len(rec.Names))
			rec.Names = append(rec.Names, string(p.source))
			number[rec.Names[i]] = i
		}
		if n := len(rec.published); n > 0 && p.at < rec.published[n-1].at {
			sorted = false
		}
		rec.published = append(rec.published, publication{p.at, p.utility, i})
		if len(rec.published) > maxRows || len(rec.Names) > maxNames {
			return nil, rows.fail("there are %d rows of %d sources so far; allowed are %d rows of %d sources", len(rec.published), len(rec.Names), maxRows, maxNames)
		}
	}
	if rec.Rows = len(rec.published); rec.Rows == 0 {
		return nil, rows.fail("the recording has no row; at least one publication is needed")
	}
	rec.First, rec.Last = rec.published[0].at, rec.published[rec.Rows-1].at

	slices.Sort(rec.Names)
	place := make([]int32, len(rec.Names))
	for k, name := range rec.Names {
		place[number[name]] = int32(k)
	}
	for k := range rec.published {
		p := &rec.published[k]
		p.source = place[p.source]
	}
	return rec, nil
}

// interrupted returns why reading ended: the context, or else the error.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Each calls f for every publication, by time; i is the source's number in Names.
func (rec *Recording) Each(f func(i int, at int64, utility float64)) {
	for _, p := range rec.published {
		f(int(p.source), p.at, p.utility)
	}
}

// pipeWait is how long the first byte of a pipe that nobody has opened for
// writing is waited for.
var pipeWait = 5 * time.Second

// input is a file that is read to its end, or until the context is done.
type input struct {
	*os.File
	ctx  context.Context
	stop func() bool
	wait time.Time // until when an end without a byte is no end; zero for none
}

// openInput opens a file or a pipe. A pipe is opened without waiting for its
// writer, who may come within pipeWait.
func openInput(ctx context.Context, path string) (*input, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	in := &input{ctx: ctx, stop: func() bool { return true }}
	mode := os.O_RDONLY
	if info.Mode()&os.ModeNamedPipe != 0 {
		mode |= syscall.O_NONBLOCK
		in.wait = time.Now().Add(pipeWait)
	}
	if in.File, err = os.OpenFile(path, mode, 0); err != nil {
		return nil, err
	}
	if !in.wait.IsZero() {
		in.stop = context.AfterFunc(ctx, func() { _ = in.SetReadDeadline(time.Now()) })
	}
	return in, nil
}

// Read implements io.Reader.
func (in *input) Read(p []byte) (int, error) {
	for {
		n, err := in.File.Read(p)
		if n > 0 {
			in.wait = time.Time{}
		}
		if n > 0 || err != io.EOF || in.wait.IsZero() {
			return n, err
		}
		if time.Now().After(in.wait) {
			return 0, fmt.Errorf("nobody wrote into the pipe for %v", pipeWait)
		}
		select {
		case <-in.ctx.Done():
			return 0, in.ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Close closes the file.
func (in *input) Close() error {
	in.stop()
	return in.File.Close()
}

// Part names a part of a recording.
type Part string

// The parts of a recording.
const (
	PartMeasured Part = "measured" // after the split
	PartFitting  Part = "fitting"  // before the split
	PartWhole    Part = "whole"
)

// ReplayOptions are the settings of a [Replay]. Epoch, Decay and Budget have no
// default.
type ReplayOptions struct {
	Epoch  time.Duration // length of an epoch
	Decay  float64       // c, 1/hour
	Budget float64       // of the fitted instance, whose crawls cost 1

	// Split is the share of the recording's time span that is the fitting
	// part; 0 means one half.
	Split float64
	Part  Part // part that is played; empty means PartMeasured

	Items   bool // crawls bring back their items
	State   bool // View shows the true state of all sources
	Overrun bool // let crawls over the budget pass
}

// bounds returns the Unix times between which a part lies, and its number of
// whole epochs.
func (rec *Recording) bounds(o ReplayOptions, part Part) (from, to float64, epochs int, err error) {
	if o.Split == 0 {
		o.Split = 0.5
	}
	first, last := float64(rec.First), float64(rec.Last)
	span := last - first
	switch {
	case o.Epoch <= 0:
		err = fmt.Errorf("epoch is %v; allowed is above 0", o.Epoch)
	case !(o.Decay > 0) || math.IsInf(o.Decay, 0):
		err = fmt.Errorf("decay is %v; allowed is a finite rate per hour above 0", o.Decay)
	case !(o.Split > 0 && o.Split < 1):
		err = fmt.Errorf("split is %v; allowed is above 0 and below 1", o.Split)
	case span == 0:
		err = fmt.Errorf("%s: all publications are at one time, %d; a recording needs a span of time", rec.Path, rec.First)
	case o.Epoch.Seconds() > span:
		err = fmt.Errorf("%s: epoch is %v, longer than the recording; allowed is at most %v", rec.Path, o.Epoch, seconds(span))
	}
	if err != nil {
		return 0, 0, 0, err
	}
	split := first + o.Split*span
	switch part {
	case PartMeasured, "":
		part, from, to = PartMeasured, split, last
	case PartFitting:
		from, to = first, split
	case PartWhole:
		from, to = first, last
	default:
		return 0, 0, 0, fmt.Errorf("unknown part %q; allowed are %s, %s and %s", part, PartMeasured, PartFitting, PartWhole)
	}
	epochs = int((to - from) / o.Epoch.Seconds())
	if epochs < 1 {
		return 0, 0, 0, fmt.Errorf("%s: the %s part lasts %v and has no whole epoch of %v; allowed is a shorter epoch or another split", rec.Path, part, seconds(to-from), o.Epoch)
	}
	return from, to, epochs, nil
}

func seconds(s float64) time.Duration { return time.Duration(s) * time.Second }

// Epochs returns the number of whole epochs of the part that o names.
func (rec *Recording) Epochs(o ReplayOptions) (int, error) {
	_, _, n, err := rec.bounds(o, o.Part)
	return n, err
}

// Fit reads the fitting part and returns the sources that it suggests: the
// rate is the number of publications per epoch, the interest their mean
// utility, the decay the given one per epoch. A source that publishes nothing
// there has rate 0 and interest 0. Crawls cost 1 and there is no window.
func (rec *Recording) Fit(o ReplayOptions) (Instance, error) {
	from, to, _, err := rec.bounds(o, PartFitting)
	if err != nil {
		return Instance{}, err
	}
	count, total := make([]float64, len(rec.Names)), make([]float64, len(rec.Names))
	for _, p := range rec.published {
		if float64(p.at) >= to {
			break
		}
		count[p.source]++
		total[p.source] += p.utility
	}
	base := filepath.Base(rec.Path)
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".csv")
	in := Instance{ID: base, Budget: o.Budget, Sources: make([]Source, len(rec.Names))}
	epochs := (to - from) / o.Epoch.Seconds()
	for i, name := range rec.Names {
		var mean float64
		if count[i] > 0 {
			mean = total[i] / count[i]
		}
		in.Sources[i] = NewSource(name, count[i]/epochs, o.Decay*o.Epoch.Hours(), mean)
	}
	return in, in.Validate()
}

// row is one publication. The name is valid until the next row is read.
type row struct {
	source  []byte
	at      int64 // Unix time
	utility float64
}

// rows reads a recording row by row and allocates nothing for a row.
type rows struct {
	path   string
	line   int
	buf    *bufio.Reader
	names  [3]string // of the columns of the source, the time and the utility
	column [3]int    // their places; −1 where there is none
	width  int
	field  [][]byte
}

// maxLine is the longest line that is accepted, in bytes.
const maxLine = 1 << 16

func (r *rows) begin() error {
	if magic, err := r.buf.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		zip, err := gzip.NewReader(r.buf)
		if err != nil {
			return r.fail("cannot read gzip header: %v", readable(err))
		}
		r.buf = bufio.NewReaderSize(zip, maxLine)
	}
	line, err := r.readLine()
	if err == io.EOF {
		r.line = 1
		return r.fail("the file is empty; needed is a header with the columns %s and %s", r.names[0], r.names[1])
	}
	if err != nil {
		return err
	}
	if err := r.split(bytes.TrimPrefix(line, []byte("\ufeff"))); err != nil {
		return err
	}
	r.width = len(r.field)
	for k, name := range r.names {
		r.column[k] = slices.IndexFunc(r.field, func(f []byte) bool { return string(f) == name })
		if r.column[k] < 0 {
			if k == 2 {
				continue // the utility is 1
			}
			return r.fail("column %q is missing in the header %.120q; needed are %s and %s, separated by commas, without blanks", name, line, r.names[0], r.names[1])
		}
		if slices.ContainsFunc(r.field[r.column[k]+1:], func(f []byte) bool { return string(f) == name }) {
			return r.fail("column %q is there twice; it is allowed once", name)
		}
	}
	return nil
}

// fail returns an error about the present line.
func (r *rows) fail(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.path, r.line, fmt.Sprintf(format, args...))
}

// readable says what a decompressor's error means.
func readable(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return errors.New("the compressed data end early; the file is truncated")
	}
	return err
}

// readLine returns the next line that is not blank, without its end.
func (r *rows) readLine() ([]byte, error) {
	for {
		line, err := r.buf.ReadSlice('\n')
		if len(line) > 0 || err == nil {
			r.line++
		}
		if err == bufio.ErrBufferFull {
			return nil, r.fail("line is longer than %d bytes", maxLine)
		}
		if err != nil && err != io.EOF {
			if len(line) == 0 {
				r.line++
			}
			return nil, r.fail("cannot read: %v", readable(err))
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			return line, nil
		}
		if err == io.EOF {
			return nil, io.EOF
		}
	}
}

// split cuts a line into fields. Fields in quotes may hold commas and doubled
// quotes, but no line break.
func (r *rows) split(line []byte) error {
	r.field = r.field[:0]
	for {
		if len(line) > 0 && line[0] == '"' {
			n, k := 0, 1 // the field is unquoted in place
			for ; k < len(line); k++ {
				if line[k] == '"' {
					if k+1 >= len(line) || line[k+1] != '"' {
						break
					}
					k++
				}
				line[n] = line[k]
				n++
			}
			if k >= len(line) {
				return r.fail("a quote is not closed on its line; line breaks are not allowed in fields")
			}
			r.field = append(r.field, line[:n])
			if line = line[k+1:]; len(line) == 0 {
				return nil
			}
			if line[0] != ',' {
				return r.fail("%q follows a closing quote; allowed is a comma", line[0])
			}
			line = line[1:]
			continue
		}
		k := bytes.IndexByte(line, ',')
		if k < 0 {
			r.field = append(r.field, line)
			return nil
		}
		r.field = append(r.field, line[:k])
		line = line[k+1:]
	}
}

// maxTime bounds Unix times, to the years -1200 to 5100. What lies beyond is
// most likely milliseconds.
const maxTime = 1e11

// next returns the next publication, or io.EOF.
func (r *rows) next() (row, error) {
	line, err := r.readLine()
	if err != nil {
		return row{}, err
	}
	if err := r.split(line); err != nil {
		return row{}, err
	}
	if len(r.field) != r.width {
		return row{}, r.fail("there are %d fields; the header has %d", len(r.field), r.width)
	}
	p := row{source: r.field[r.column[0]]}
	if len(p.source) == 0 {
		return row{}, r.fail("source is empty; needed is a name")
	}
	at := bytes.TrimSpace(r.field[r.column[1]])
	if p.at, err = strconv.ParseInt(string(at), 10, 64); err != nil || p.at > maxTime || p.at < -maxTime {
		return row{}, r.fail("%s is %.40q; allowed is a whole number of seconds, at most 1e11 (milliseconds have to be divided by 1000)", r.names[1], at)
	}
	if p.utility = 1; r.column[2] < 0 {
		return p, nil
	}
	utility := bytes.TrimSpace(r.field[r.column[2]])
	p.utility, err = strconv.ParseFloat(string(utility), 64)
	if err != nil || !(p.utility >= 0) || math.IsInf(p.utility, 0) {
		return row{}, r.fail("utility is %q; allowed is a finite number, 0 or more", utility)
	}
	return p, nil
}
