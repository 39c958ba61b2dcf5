package env

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Recording is what a first pass over a recording of publications tells: it
// does not hold the publications.
type Recording struct {
	Path  string
	First int64    // Unix time of the first publication
	Last  int64    // of the last
	Rows  int      // publications
	Names []string // sources, sorted

	open func() (io.ReadCloser, error)
}

// Survey reads a recording once, checks every row, and returns what it is
// about. A recording is CSV or gzip-compressed CSV with a header. It needs the
// columns source, published_unix (whole seconds UTC) and utility (initial
// interest, a finite number, 0 or more); other columns are passed over. Rows
// are sorted by time. Errors are one line that begins with the file and line.
func Survey(path string) (*Recording, error) {
	return survey(path, func() (io.ReadCloser, error) { return os.Open(path) })
}

// SurveyBytes is [Survey] of a recording in memory; errors call it path.
func SurveyBytes(path string, data []byte) (*Recording, error) {
	return survey(path, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
}

func survey(path string, open func() (io.ReadCloser, error)) (*Recording, error) {
	rec := &Recording{Path: path, open: open}
	r, err := rec.rows()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	seen := make(map[string]bool)
	for {
		p, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if rec.Rows == 0 {
			rec.First = p.at
		}
		rec.Last = p.at
		rec.Rows++
		if !seen[string(p.source)] {
			name := string(p.source)
			seen[name] = true
			rec.Names = append(rec.Names, name)
		}
	}
	if rec.Rows == 0 {
		return nil, fmt.Errorf("%s:%d: the recording has no row; at least one publication is needed", path, r.line)
	}
	slices.Sort(rec.Names)
	return rec, nil
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
	r, err := rec.rows()
	if err != nil {
		return Instance{}, err
	}
	defer r.Close()
	index := rec.index()
	count, total := make([]float64, len(rec.Names)), make([]float64, len(rec.Names))
	for {
		p, err := r.next()
		if err == io.EOF || err == nil && float64(p.at) >= to {
			break
		}
		if err != nil {
			return Instance{}, err
		}
		i, ok := index[string(p.source)]
		if !ok {
			return Instance{}, r.changed()
		}
		count[i]++
		total[i] += p.utility
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

func (rec *Recording) index() map[string]int {
	index := make(map[string]int, len(rec.Names))
	for i, name := range rec.Names {
		index[name] = i
	}
	return index
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
	file   io.Closer
	zip    *gzip.Reader
	buf    *bufio.Reader
	column [3]int // of source, published_unix, utility
	width  int
	field  [][]byte
	last   int64
	any    bool
}

var columnNames = [3]string{"source", "published_unix", "utility"}

// maxLine is the longest line that is accepted, in bytes.
const maxLine = 1 << 16

// rows opens the recording and reads its header.
func (rec *Recording) rows() (*rows, error) {
	f, err := rec.open()
	if err != nil {
		return nil, err
	}
	r := &rows{path: rec.Path, file: f, buf: bufio.NewReaderSize(f, maxLine)}
	if err := r.begin(); err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func (r *rows) begin() error {
	if magic, err := r.buf.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if r.zip, err = gzip.NewReader(r.buf); err != nil {
			return r.fail("cannot read gzip header: %v", readable(err))
		}
		r.buf = bufio.NewReaderSize(r.zip, maxLine)
	}
	line, err := r.readLine()
	if err == io.EOF {
		r.line = 1
		return r.fail("the file is empty; needed is a header with the columns %s", strings.Join(columnNames[:], ", "))
	}
	if err != nil {
		return err
	}
	if err := r.split(bytes.TrimPrefix(line, []byte("\ufeff"))); err != nil {
		return err
	}
	r.width = len(r.field)
	for k, name := range columnNames {
		r.column[k] = slices.IndexFunc(r.field, func(f []byte) bool { return string(f) == name })
		if r.column[k] < 0 {
			return r.fail("column %q is missing in the header %.120q; needed are %s, separated by commas, without blanks", name, line, strings.Join(columnNames[:], ", "))
		}
		if slices.ContainsFunc(r.field[r.column[k]+1:], func(f []byte) bool { return string(f) == name }) {
			return r.fail("column %q is there twice; each of %s is allowed once", name, strings.Join(columnNames[:], ", "))
		}
	}
	return nil
}

// Close closes the file.
func (r *rows) Close() error { return r.file.Close() }

// fail returns an error about the present line.
func (r *rows) fail(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.path, r.line, fmt.Sprintf(format, args...))
}

func (r *rows) changed() error {
	return r.fail("the recording has changed since it was surveyed")
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
		return row{}, r.fail("published_unix is %q; allowed is a whole number of seconds, at most 1e11 (milliseconds have to be divided by 1000)", at)
	}
	utility := bytes.TrimSpace(r.field[r.column[2]])
	p.utility, err = strconv.ParseFloat(string(utility), 64)
	if err != nil || !(p.utility >= 0) || math.IsInf(p.utility, 0) {
		return row{}, r.fail("utility is %q; allowed is a finite number, 0 or more", utility)
	}
	if r.any && p.at < r.last {
		return row{}, r.fail("published_unix is %d, before the %d of the row above; rows must be sorted by time", p.at, r.last)
	}
	r.last, r.any = p.at, true
	return p, nil
}
