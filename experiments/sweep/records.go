package sweep

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A record file is text that only grows, one JSON object a line. Each process
// has a file of its own, so readers need no coordination with writers. A line
// counts if its newline is there and its checksum right: one that was being
// written when the process died does not exist.
type record struct {
	Sum     string    `json:"crc32"`             // of all behind it in the line
	Cell    string    `json:"cell,omitempty"`    // its id when it ran
	Hash    string    `json:"hash,omitempty"`    // of its settings, which says what ran
	Seed    uint64    `json:"seed,omitempty"`    //
	Error   string    `json:"error,omitempty"`   // in place of a result
	Program string    `json:"program,omitempty"` // of the lines that follow; alone in its line
	Row     floats    `json:"row,omitempty"`
	Curve   []floats  `json:"curve,omitempty"` // epoch and values of each point
	Learned []learned `json:"learned,omitempty"`
}

type learned struct {
	What   string `json:"what"`
	Source string `json:"source"`
	Values floats `json:"values"` // age, learned, exact
}

// floats are numbers as JSON can hold them: text where one is not finite.
type floats []float64

// MarshalJSON implements json.Marshaler.
func (n floats) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 24*len(n)+2)
	b = append(b, '[')
	for i, v := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = fmt.Appendf(b, "%q", FormatValue(v))
		} else {
			b = strconv.AppendFloat(b, v, 'g', -1, 64)
		}
	}
	return append(b, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *floats) UnmarshalJSON(b []byte) error {
	inside, ok := bytes.CutPrefix(b, []byte("["))
	inside, ok2 := bytes.CutSuffix(inside, []byte("]"))
	if !ok || !ok2 {
		return fmt.Errorf("found %.20s; want a list of numbers", b)
	}
	*n = floats{}
	if len(inside) == 0 {
		return nil
	}
	for text := range bytes.SplitSeq(inside, []byte(",")) {
		v, err := strconv.ParseFloat(string(bytes.Trim(text, "\" \t\r\n")), 64)
		if err != nil {
			return err
		}
		*n = append(*n, v)
	}
	return nil
}

// head is how a line begins: {"crc32":"00000000",
const (
	sumAt  = len(`{"crc32":"`)
	headTo = sumAt + len(`00000000",`)
)

// line writes a record with its checksum.
func (r record) line() []byte {
	r.Sum = "00000000"
	b, err := json.Marshal(r)
	if err != nil {
		panic("sweep: " + err.Error()) // strings and floats can always be written
	}
	copy(b[sumAt:], fmt.Sprintf("%08x", crc32.ChecksumIEEE(b[headTo:])))
	return append(b, '\n')
}

// parse reads a line into a record, or into that part of one that into has.
func parse(line []byte, into any) error {
	if len(line) <= headTo || line[len(line)-1] != '\n' {
		return errors.New("damaged record")
	}
	line = line[:len(line)-1]
	if sum, err := strconv.ParseUint(string(line[sumAt:sumAt+8]), 16, 32); err != nil || uint32(sum) != crc32.ChecksumIEEE(line[headTo:]) {
		return errors.New("damaged record: its checksum is wrong")
	}
	return json.Unmarshal(line, into)
}

// resultRecord and result convert what is recorded.
func resultRecord(c *Cell, seed uint64, r Result) record {
	rec := record{Cell: c.ID, Hash: c.Hash, Seed: seed, Row: r.Row}
	for _, p := range r.Curve {
		rec.Curve = append(rec.Curve, append(floats{float64(p.Epoch)}, p.Values...))
	}
	for _, p := range r.Learned {
		rec.Learned = append(rec.Learned, learned{p.What, p.Source, floats{p.At, p.Learned, p.Exact}})
	}
	return rec
}

func (r record) result() (Result, error) {
	out := Result{Row: r.Row}
	for _, p := range r.Curve {
		if len(p) == 0 {
			return Result{}, errors.New("a point of the curve is empty")
		}
		out.Curve = append(out.Curve, Point{int(p[0]), p[1:]})
	}
	for _, p := range r.Learned {
		if len(p.Values) != 3 {
			return Result{}, fmt.Errorf("%d values of %s; want 3", len(p.Values), p.What)
		}
		out.Learned = append(out.Learned, Pair{p.What, p.Source, p.Values[0], p.Values[1], p.Values[2]})
	}
	return out, nil
}

// location is where a record stands; size 0 is nowhere.
type location struct {
	file int32
	size int32
	off  int64
}

// store is what the record files of a directory hold.
type store struct {
	cfg      *Config
	files    []string
	at       []location       // of each job
	failed   map[int]string   // last error of jobs that have no result
	programs []string         // that wrote the records, sorted
	bad      []string         // damaged lines, to be reported
	cells    map[string]int   // by hash
	seeds    map[uint64]int   //
	ends     map[string]int64 // of each file's whole lines
}

// scan reads the record files of a directory.
func scan(ctx context.Context, c *Config, dir string) (*store, error) {
	s := &store{cfg: c, at: make([]location, c.Jobs()), failed: map[int]string{}, cells: map[string]int{}, seeds: map[uint64]int{}, ends: map[string]int64{}}
	for i := range c.Cells {
		s.cells[c.Cells[i].Hash] = i
	}
	for k, seed := range c.Seeds {
		s.seeds[seed] = k
	}
	paths, err := recordFiles(dir)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if err := s.read(ctx, path); err != nil {
			return nil, err
		}
	}
	slices.Sort(s.programs)
	s.programs = slices.Compact(s.programs)
	return s, nil
}

// recordFiles lists the record files of a directory, sorted.
func recordFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, recordsDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".jsonl") {
			paths = append(paths, filepath.Join(dir, recordsDir, e.Name()))
		}
	}
	return paths, err
}

// read reads one record file.
func (s *store) read(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	n := s.file(path)
	in := bufio.NewReaderSize(f, 1<<16)
	var line []byte
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err = readLine(in, line[:0])
		if err == io.EOF { // what is left has no newline: it was never finished
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		err = s.take(line, location{n, int32(len(line)), s.ends[path]})
		if errors.Is(err, errOther) {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
		if err != nil {
			s.bad = append(s.bad, fmt.Sprintf("%s:%d: %v; it is left out, and running the sweep repeats its run", path, number, err))
		}
		s.ends[path] += int64(len(line))
	}
}

func readLine(r *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		buf = append(buf, part...)
		if err != bufio.ErrBufferFull {
			return buf, err
		}
	}
}

// file returns the number of a record file.
func (s *store) file(path string) int32 {
	if i := slices.Index(s.files, path); i >= 0 {
		return int32(i)
	}
	s.files = append(s.files, path)
	return int32(len(s.files) - 1)
}

var errOther = errors.New("is of another configuration, or of a program with other settings: name another directory with -out, or put back the config.toml and the program that the records were made with")

// take books one line.
func (s *store) take(line []byte, at location) error {
	var r struct {
		Cell, Hash, Error, Program string
		Seed                       uint64
	}
	if err := parse(line, &r); err != nil {
		return err
	}
	if r.Hash == "" {
		s.programs = append(s.programs, r.Program)
		return nil
	}
	cell, ok1 := s.cells[r.Hash]
	k, ok2 := s.seeds[r.Seed]
	if !ok1 || !ok2 {
		return fmt.Errorf("cell %.80q with seed %d %w", r.Cell, r.Seed, errOther)
	}
	job := cell*len(s.cfg.Seeds) + k
	switch {
	case r.Error == "":
		s.at[job] = at
		delete(s.failed, job)
	case s.at[job].size == 0:
		s.failed[job] = r.Error
	}
	return nil
}

// reader reads the results that a store knows of. Its file stays open until the
// next one is needed. Each goroutine has its own.
type reader struct {
	store *store
	file  *os.File
	line  []byte
}

// read returns the result of a job that is there.
func (r *reader) read(job int) (Result, error) {
	at := r.store.at[job]
	name := r.store.files[at.file]
	if r.file == nil || r.file.Name() != name {
		r.close()
		var err error
		if r.file, err = os.Open(name); err != nil {
			return Result{}, err
		}
	}
	r.line = slices.Grow(r.line[:0], int(at.size))[:at.size]
	if _, err := r.file.ReadAt(r.line, at.off); err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, err)
	}
	var rec record
	err := parse(r.line, &rec)
	var out Result
	if err == nil {
		out, err = rec.result()
	}
	if err == nil {
		err = out.fits(r.store.cfg.x)
	}
	if err != nil {
		cell, seed := r.store.cfg.at(job)
		return Result{}, fmt.Errorf("%s: cell %s, seed %d: %w", name, cell.ID, seed, err)
	}
	return out, nil
}

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
	}
}

// recordLog is the record file of this process. It is safe for concurrent use.
type recordLog struct {
	mu    sync.Mutex
	f     logFile
	path  string
	size  int64 // bytes that are whole lines
	err   error // of the first write that failed; none is tried after it
	dirty bool  // lines were written that the disk may not have
}

type logFile interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

func appendTo(path string) (logFile, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
}

// openLog opens a record file, of which a line that was never finished is cut
// off, and notes the program.
func openLog(path string, size int64, program string, open func(string) (logFile, error)) (*recordLog, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	l := &recordLog{f: f, path: path, size: size}
	if err = f.Truncate(size); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	} else {
		err = l.write(record{Program: program}.line())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// write appends one line with one write, so that it survives the process, or
// takes back what part of it was written.
func (l *recordLog) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if _, err := l.f.Write(line); err != nil {
		l.f.Truncate(l.size) // if this fails too, the next start cuts the line off
		l.err = fmt.Errorf("%s: %w", l.path, err)
		return l.err
	}
	l.size += int64(len(line))
	l.dirty = true
	return nil
}

// sync makes the disk follow, so that the lines survive the machine.
func (l *recordLog) sync() error {
	l.mu.Lock()
	dirty := l.dirty
	l.dirty = false
	l.mu.Unlock()
	if !dirty {
		return nil
	}
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("%s: %w", l.path, err)
	}
	return nil
}
