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

// A record file is text that only grows, one line per event:
//
//	<crc32> config <hash> <revision>
//	<crc32> run <cell> <seed> <result as JSON>
//	<crc32> error <cell> <seed> <message as JSON>
//
// A line counts if its checksum is right and its newline is there, so a line
// that was being written when the process died does not exist. Each process
// has a file of its own; readers need no coordination with writers.

// location is where a record stands; size 0 is nowhere.
type location struct {
	file int32
	size int32
	off  int64
}

// store is what the record files of a directory hold.
type store struct {
	cfg       *Config
	files     []string
	at        []location     // of each job; see Config.job
	failed    map[int]string // last error of jobs that have no result
	revisions []string       // of the programs that wrote the records, sorted
	bad       []string       // damaged lines, to be reported
	cells     map[string]int
	seeds     map[uint64]int
	ends      map[string]int64 // of each file's whole lines, by base name

	mu   sync.Mutex // of open
	open []*os.File // by file, where one was read from; at most maxOpen
}

// maxOpen bounds the record files that are open at once, as systems do; those
// beyond it are opened for each record.
const maxOpen = 200

// job numbers run k of a cell; k counts the seeds.
func (c *Config) job(cell, k int) int { return cell*len(c.Seeds) + k }

func newStore(c *Config) *store {
	s := &store{
		cfg:    c,
		at:     make([]location, c.Jobs()),
		failed: map[int]string{},
		cells:  make(map[string]int, len(c.Cells)),
		seeds:  make(map[uint64]int, len(c.Seeds)),
		ends:   map[string]int64{},
	}
	for i := range c.Cells {
		s.cells[c.Cells[i].ID] = i
	}
	for k, seed := range c.Seeds {
		s.seeds[seed] = k
	}
	return s
}

// scanAll reads the record files of a directory.
func (s *store) scanAll(ctx context.Context, dir string) error {
	files, err := recordFiles(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if s.ends[filepath.Base(f)], err = s.scan(ctx, f); err != nil {
			return err
		}
	}
	slices.Sort(s.revisions)
	s.revisions = slices.Compact(s.revisions)
	return nil
}

// recordFiles lists the record files of a directory, sorted.
func recordFiles(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(escapeGlob(dir), "records", "*.log"))
	slices.Sort(files)
	return files, err
}

func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// scan reads one record file and returns how many of its bytes are whole
// lines.
func (s *store) scan(ctx context.Context, file string) (good int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n := int32(len(s.files))
	s.files = append(s.files, file)
	r := bufio.NewReaderSize(f, 1<<16)
	var line []byte
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return good, err
		}
		line, err = readLine(r, line[:0])
		if err == io.EOF { // what is left has no newline: it was never finished
			return good, nil
		}
		if err != nil {
			return good, fmt.Errorf("%s: %w", file, err)
		}
		size := int64(len(line))
		kind, rest, err := checkLine(line)
		if err == nil {
			err = s.take(kind, rest, location{file: n, size: int32(size), off: good})
		}
		if err != nil {
			if errors.Is(err, errOther) {
				return good, fmt.Errorf("%s:%d: %w", file, number, err)
			}
			s.bad = append(s.bad, fmt.Sprintf("%s:%d: %v; it is left out, and running the sweep repeats its run", file, number, err))
		}
		good += size
	}
}

var errOther = errors.New("the records belong to another configuration than config.toml; put back the config.toml and inputs/ that they were made with, or name another directory with -out")

// take books one line.
func (s *store) take(kind string, rest []byte, at location) error {
	first, rest, _ := bytes.Cut(rest, []byte(" "))
	if kind == "config" {
		if string(first) != s.cfg.Hash() {
			return errOther
		}
		s.revisions = append(s.revisions, string(rest))
		return nil
	}
	second, rest, _ := bytes.Cut(rest, []byte(" "))
	cell, ok := s.cells[string(first)]
	if !ok {
		return fmt.Errorf("cell %q is not of this configuration", first)
	}
	seed, err := strconv.ParseUint(string(second), 10, 64)
	if err != nil {
		return fmt.Errorf("seed %q is no number", second)
	}
	k, ok := s.seeds[seed]
	if !ok {
		return fmt.Errorf("seed %d is not of this configuration", seed)
	}
	job := s.cfg.job(cell, k)
	switch kind {
	case "run":
		s.at[job] = at
		delete(s.failed, job)
	case "error":
		if s.at[job].size == 0 {
			var msg string
			if err := json.Unmarshal(rest, &msg); err != nil {
				return err
			}
			s.failed[job] = msg
		}
	default:
		return fmt.Errorf("unknown record %q", kind)
	}
	return nil
}

// use calls f with a record file. Files stay open until close; they may be read
// from several goroutines at once.
func (s *store) use(n int32, f func(*os.File) error) error {
	if n >= maxOpen {
		file, err := os.Open(s.files[n])
		if err != nil {
			return err
		}
		defer file.Close()
		return f(file)
	}
	s.mu.Lock()
	if s.open == nil {
		s.open = make([]*os.File, min(len(s.files), maxOpen))
	}
	file := s.open[n]
	var err error
	if file == nil {
		file, err = os.Open(s.files[n])
		s.open[n] = file
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return f(file)
}

func (s *store) close() {
	for _, f := range s.open {
		f.Close() // of nil it does nothing
	}
}

// reader reads the results that a store knows of. Several may be at work.
type reader struct {
	store *store
	line  []byte
}

// read returns the result of a job that is there.
func (r *reader) read(job int) (Result, error) {
	at := r.store.at[job]
	name := r.store.files[at.file]
	r.line = slices.Grow(r.line[:0], int(at.size))[:at.size]
	err := r.store.use(at.file, func(f *os.File) error {
		_, err := f.ReadAt(r.line, at.off)
		return err
	})
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, err)
	}
	_, rest, err := checkLine(r.line)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, err)
	}
	for range 2 { // cell and seed
		_, rest, _ = bytes.Cut(rest, []byte(" "))
	}
	return decodeResult(rest)
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

// checkLine verifies a line and returns its kind and the rest.
func checkLine(line []byte) (kind string, rest []byte, err error) {
	if len(line) < 10 || line[8] != ' ' || line[len(line)-1] != '\n' {
		return "", nil, errors.New("damaged record")
	}
	sum, err := strconv.ParseUint(string(line[:8]), 16, 32)
	body := line[9 : len(line)-1]
	if err != nil || uint32(sum) != crc32.ChecksumIEEE(body) {
		return "", nil, errors.New("damaged record: its checksum is wrong")
	}
	first, rest, _ := bytes.Cut(body, []byte(" "))
	return string(first), rest, nil
}

// seal puts the checksum before a line and the newline behind it.
func seal(body []byte) []byte {
	line := make([]byte, 0, len(body)+10)
	line = fmt.Appendf(line, "%08x ", crc32.ChecksumIEEE(body))
	return append(append(line, body...), '\n')
}

func configLine(hash, revision string) []byte {
	return seal(fmt.Appendf(nil, "config %s %s", hash, revision))
}

func runLine(cell string, seed uint64, r Result) []byte {
	b := make([]byte, 0, 256+64*len(r.Curve)+48*len(r.Learned))
	return seal(appendResult(fmt.Appendf(b, "run %s %d ", cell, seed), r))
}

func errorLine(cell string, seed uint64, msg string) []byte {
	text, _ := json.Marshal(msg) // a string always marshals
	return seal(fmt.Appendf(nil, "error %s %d %s", cell, seed, text))
}

// number is a float64 that JSON can carry whatever its value is.
type number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	v, err := strconv.ParseFloat(text, 64)
	*n = number(v)
	return err
}

func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Appendf(b, "%q", strconv.FormatFloat(v, 'g', -1, 64))
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

func appendNumbers(b []byte, v []float64) []byte {
	b = append(b, '[')
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(b, x)
	}
	return append(b, ']')
}

// appendResult writes a result as JSON by hand: it is the larger part of what
// a short run costs.
func appendResult(b []byte, r Result) []byte {
	b = append(b, `{"row":`...)
	b = appendNumbers(b, r.Row)
	b = append(b, `,"curve":[`...)
	for i, p := range r.Curve {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"n":%d,"v":`, p.Epoch)
		b = append(appendNumbers(b, p.Values), '}')
	}
	b = append(b, `],"learned":[`...)
	for i, p := range r.Learned {
		if i > 0 {
			b = append(b, ',')
		}
		what, _ := json.Marshal(p.What)
		source, _ := json.Marshal(p.Source)
		b = fmt.Appendf(b, `{"what":%s,"source":%s,"v":`, what, source)
		b = append(appendNumbers(b, []float64{p.At, p.Learned, p.Exact}), '}')
	}
	return append(b, "]}"...)
}

func decodeResult(b []byte) (Result, error) {
	var in struct {
		Row   []number `json:"row"`
		Curve []struct {
			N int      `json:"n"`
			V []number `json:"v"`
		} `json:"curve"`
		Learned []struct {
			What   string    `json:"what"`
			Source string    `json:"source"`
			V      [3]number `json:"v"`
		} `json:"learned"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return Result{}, err
	}
	out := Result{Row: floats(in.Row)}
	for _, p := range in.Curve {
		out.Curve = append(out.Curve, Point{Epoch: p.N, Values: floats(p.V)})
	}
	for _, p := range in.Learned {
		out.Learned = append(out.Learned, Pair{p.What, p.Source, float64(p.V[0]), float64(p.V[1]), float64(p.V[2])})
	}
	return out, nil
}

func floats(in []number) []float64 {
	out := make([]float64, len(in))
	for i, v := range in {
		out[i] = float64(v)
	}
	return out
}
