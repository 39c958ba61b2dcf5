package sweep

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ephemera/env"
)

// A record file is text that only grows, one JSON object a line. Each process
// has a file of its own, so readers need no coordination with writers. A line
// counts if its newline is there and its checksum right: one that was being
// written when the process died does not exist. It begins with the checksum of
// what stands behind that.
type record struct {
	Cell string `json:"cell,omitempty"` // its id when it ran
	Hash string `json:"hash,omitempty"` // of its settings, which says what ran
	Seed uint64 `json:"seed,omitempty"`
	// In place of a result:
	Error string `json:"error,omitempty"`
	// Of the lines that follow, in a line of their own:
	Program    string `json:"program,omitempty"`
	Arithmetic string `json:"arithmetic,omitempty"`
	*Result
}

// line writes a record with its checksum.
func (r record) line() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("sweep: " + err.Error()) // strings and Numbers can always be written
	}
	return fmt.Appendf(nil, "{\"crc32\":\"%08x\",%s\n", crc32.ChecksumIEEE(b[1:]), b[1:])
}

// parse reads a line into a record, or into that part of one that into has.
func parse(line []byte, into any) error {
	head, body, _ := bytes.Cut(line, []byte(","))
	body, whole := bytes.CutSuffix(body, []byte("\n"))
	if !whole || string(head) != fmt.Sprintf("{\"crc32\":\"%08x\"", crc32.ChecksumIEEE(body)) {
		return errors.New("damaged record: its checksum is wrong")
	}
	return json.Unmarshal(line, into)
}

// Numbers are written as JSON can hold them: text where one is not finite.
type Numbers []float64

// MarshalJSON implements json.Marshaler.
func (n Numbers) MarshalJSON() ([]byte, error) {
	out := make([]any, len(n))
	for i, v := range n {
		if out[i] = v; math.IsNaN(v) || math.IsInf(v, 0) {
			out[i] = FormatValue(v)
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Numbers) UnmarshalJSON(b []byte) (err error) {
	var in []json.RawMessage
	if err = json.Unmarshal(b, &in); err != nil {
		return err
	}
	*n = make(Numbers, len(in))
	for i, v := range in {
		if (*n)[i], err = strconv.ParseFloat(strings.Trim(string(v), `"`), 64); err != nil {
			return err
		}
	}
	return nil
}

// arithmetic tells programs apart whose results differ in the last digits.
// Processors other than amd64 fuse multiplications with additions; exponentials
// take other steps where there are no FMA instructions.
var arithmetic = sync.OnceValue(func() string {
	var exp []byte
	for k := range 64 {
		exp = binary.LittleEndian.AppendUint64(exp, math.Float64bits(math.Exp(float64(k)/7)))
	}
	return fmt.Sprintf("%s (exp %08x)", runtime.GOARCH, crc32.ChecksumIEEE(exp))
})

// location is where a record stands; without a file it is nowhere.
type location struct {
	file *os.File
	off  int64
	size int
}

// store is what the record files of a directory hold.
type store struct {
	cfg        *Config
	files      []*os.File
	ends       map[string]int64  // of each file's whole lines
	at         []location        // of each job
	failed     map[int]string    // last error of jobs that have no result
	programs   []string          // that wrote the records, sorted
	arithmetic map[string]string // in which they computed, with a file of each
	bad        []string          // damaged lines, to be reported
	jobs       map[run]int
}

// run names a run whatever else its sweep has.
type run struct {
	hash string
	seed uint64
}

// scan reads the record files of a directory, which stay open.
func scan(ctx context.Context, c *Config, dir string) (*store, error) {
	s := &store{cfg: c, ends: map[string]int64{}, at: make([]location, c.Jobs()), failed: map[int]string{}, arithmetic: map[string]string{}, jobs: map[run]int{}}
	for job := range s.at {
		cell, seed := c.at(job)
		s.jobs[run{cell.Hash, seed}] = job
	}
	for _, path := range recordFiles(dir) {
		if err := s.scan(ctx, path); err != nil {
			s.close()
			return nil, err
		}
	}
	slices.Sort(s.programs)
	s.programs = slices.Compact(s.programs)
	return s, nil
}

func (s *store) close() {
	for _, f := range s.files {
		f.Close()
	}
}

// recordFiles lists the record files of a directory, sorted.
func recordFiles(dir string) []string {
	names, _ := fs.Glob(os.DirFS(dir), recordsDir+"/*.jsonl")
	for i, name := range names {
		names[i] = filepath.Join(dir, filepath.FromSlash(name))
	}
	return names
}

// scan reads one record file.
func (s *store) scan(ctx context.Context, path string) error {
	f, err := env.OpenRegular(path)
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	in := bufio.NewReaderSize(f, 1<<16)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF { // what is left has no newline: it was never finished
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		err = s.take(line, location{f, s.ends[path], len(line)})
		if errors.Is(err, errOther) {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
		if err != nil {
			s.bad = append(s.bad, fmt.Sprintf("%s:%d: %v; it is left out, and running the sweep repeats its run", path, number, err))
		}
		s.ends[path] += int64(len(line))
	}
}

var errOther = errors.New("is of another configuration, or of a program with other settings: name another directory with -out, or put back the config.toml and the program that the records were made with")

// take books one line.
func (s *store) take(line []byte, at location) error {
	var r struct { // without the result, which is read when it is needed
		Cell, Hash, Error, Program, Arithmetic string
		Seed                                   uint64
	}
	if err := parse(line, &r); err != nil {
		return err
	}
	if r.Hash == "" {
		s.programs = append(s.programs, r.Program)
		s.arithmetic[r.Arithmetic] = at.file.Name()
		return nil
	}
	job, ok := s.jobs[run{r.Hash, r.Seed}]
	if !ok {
		return fmt.Errorf("cell %.80q with seed %d %w", r.Cell, r.Seed, errOther)
	}
	switch {
	case r.Error == "":
		s.at[job] = at
		delete(s.failed, job)
	case s.at[job].file == nil:
		s.failed[job] = r.Error
	}
	return nil
}

// result reads the result of a job that is there.
func (s *store) result(job int) (Result, error) {
	at := s.at[job]
	line := make([]byte, at.size)
	if _, err := at.file.ReadAt(line, at.off); err != nil {
		return Result{}, err
	}
	r := record{Result: &Result{}}
	err := parse(line, &r)
	if err == nil {
		err = r.fits(s.cfg.x)
	}
	if err != nil {
		cell, seed := s.cfg.at(job)
		return Result{}, fmt.Errorf("%s: cell %s, seed %d: %w", at.file.Name(), cell.ID, seed, err)
	}
	return *r.Result, nil
}

// recordLog is the record file of this process.
type recordLog struct {
	f      logFile
	size   int64 // bytes that are whole lines
	err    error // of the first write that failed; none is tried after it
	synced time.Time
}

type logFile interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

func appendTo(path string) (logFile, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
}

// syncEvery is how long lines may be missing on the disk while others follow.
const syncEvery = 200 * time.Millisecond

// write appends one line with one write, so that it survives the process, or
// takes back what part of it was written.
func (l *recordLog) write(line []byte) error {
	if l.err != nil {
		return l.err
	}
	if _, l.err = l.f.Write(line); l.err != nil {
		l.f.Truncate(l.size) // if this fails too, the next start cuts the line off
		return l.err
	}
	l.size += int64(len(line))
	if time.Since(l.synced) < syncEvery {
		return nil
	}
	l.synced = time.Now()
	return l.f.Sync() // the disk follows, so that the lines survive the machine
}
