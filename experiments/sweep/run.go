package sweep

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"ephemera/experiments/files"
)

// Shard is one part of the work: the runs whose number leaves the remainder
// Index when divided by Count.
type Shard struct{ Index, Count int }

// Whole is all of the work.
var Whole = Shard{0, 1}

// ParseShard reads i/n with 0 ≤ i < n.
func ParseShard(text string) (Shard, error) {
	i, n, ok := strings.Cut(text, "/")
	a, err1 := strconv.Atoi(i)
	b, err2 := strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || b < 1 || a < 0 || a >= b {
		return Shard{}, fmt.Errorf("shard is %q; allowed is i/n with 0 ≤ i < n, such as 0/8", text)
	}
	return Shard{a, b}, nil
}

// ShardFromSlurm returns the shard that the environment of a Slurm array job
// names, Whole outside of one. Arrays may begin anywhere and leave gaps only at
// SLURM_ARRAY_TASK_STEP.
func ShardFromSlurm(env func(string) string) (Shard, error) {
	id, count := env("SLURM_ARRAY_TASK_ID"), env("SLURM_ARRAY_TASK_COUNT")
	if id == "" || count == "" {
		return Whole, nil
	}
	num := func(name, text string, otherwise int) (int, error) {
		if text == "" {
			return otherwise, nil
		}
		v, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("%s is %q; a whole number is needed", name, text)
		}
		return v, nil
	}
	i, err1 := num("SLURM_ARRAY_TASK_ID", id, 0)
	n, err2 := num("SLURM_ARRAY_TASK_COUNT", count, 1)
	first, err3 := num("SLURM_ARRAY_TASK_MIN", env("SLURM_ARRAY_TASK_MIN"), 0)
	step, err4 := num("SLURM_ARRAY_TASK_STEP", env("SLURM_ARRAY_TASK_STEP"), 1)
	last, err5 := num("SLURM_ARRAY_TASK_MAX", env("SLURM_ARRAY_TASK_MAX"), first+(n-1)*step)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return Shard{}, err
	}
	if step < 1 || n < 1 || i < first || (i-first)%step != 0 || (i-first)/step >= n || last != first+(n-1)*step {
		return Shard{}, fmt.Errorf("task %d of an array of %d from %d to %d by %d: it has gaps, so its numbers do not say which shards are meant; to repeat single tasks of an array, name the shard with -shard i/n", i, n, first, last, step)
	}
	return Shard{(i - first) / step, n}, nil
}

// String returns i/n.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// Options say how a sweep is run. None of them changes its results.
type Options struct {
	Dir      string
	Workers  int // goroutines; 0 for one per core
	Shard    Shard
	Revision string // of the program, for the records
	Command  string // that repeats the sweep, for the files
	// Progress is called before the first run and when one ends, from one
	// goroutine at a time: done and failed runs of this process, of how many.
	Progress func(done, failed, total int)
	// Log receives the errors of single runs; nil for none.
	Log io.Writer

	// openLog replaces the record file in tests of failing disks.
	openLog func(path string) (logFile, error)
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

type logFile interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// Report is what a call of Run or Merge did.
type Report struct {
	Total    int      // runs of the whole sweep
	Ran      int      // runs that this call finished
	Missing  int      // runs of the whole sweep that have no result yet
	Failed   int      // of these, runs that ended with an error
	Failures []string // cell, seed and error; at most 20
	Gaps     []string // missing runs, grouped by cell; at most 20
	Damaged  []string // damaged records that were left out
	Final    bool     // the final files were written
}

// ErrInterrupted says that the context ended before the work did.
var ErrInterrupted = errors.New("interrupted")

// Run runs what is missing of a shard, records each result as it is there, and
// writes the final files when the whole sweep is complete. Failing runs do not
// stop it; the Report names them.
func Run(ctx context.Context, c *Config, r Runner, o Options) (Report, error) {
	if o.Shard.Count == 0 {
		o.Shard = Whole
	}
	o.Workers = o.workers()
	unlock, err := enter(ctx, c, r, o)
	if err != nil {
		return Report{}, explain(err)
	}
	defer unlock()

	s := newStore(c)
	if err := s.scanAll(ctx, o.Dir); err != nil {
		return Report{}, explain(err)
	}
	ran, err := work(ctx, c, r, o, s)
	if err != nil {
		return Report{Ran: ran, Total: c.Jobs()}, explain(err)
	}
	rep, err := merge(ctx, c, r, o, o.Shard == Whole)
	rep.Ran = ran
	if ran > 0 {
		rep.Damaged = s.bad // also where the runs are there again by now
	}
	return rep, explain(err)
}

// Merge reads all records and writes the final files, complete or not.
func Merge(ctx context.Context, c *Config, r Runner, o Options) (Report, error) {
	o.Shard = Whole
	rep, err := merge(ctx, c, r, o, true)
	return rep, explain(err)
}

// explain adds what to do about errors that are not the program's.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return ErrInterrupted
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w; every run that was recorded is safe: make room and start again", err)
	case errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w; the directory of a sweep must be writable: make it so or take another", err)
	}
	return err
}

// enter makes the directory this sweep's own: it locks it against other
// processes and refuses one that holds something else, leaving that as it is.
func enter(ctx context.Context, c *Config, r Runner, o Options) (unlock func(), err error) {
	if _, err := inspect(c, o.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "records"), 0o777); err != nil {
		return nil, err
	}
	var held []*os.File
	unlock = func() {
		for _, f := range held {
			f.Close()
		}
	}
	// One process may have all of the work, or several one shard each.
	take := func(name string, exclusive bool, on string) error {
		f, err := files.Lock(filepath.Join(o.Dir, "records", name), exclusive)
		if errors.Is(err, files.ErrLocked) {
			return fmt.Errorf("%s: another process is at work here on %s; wait for it or stop it", o.Dir, on)
		}
		if err == nil {
			held = append(held, f)
		}
		return err
	}
	if o.Shard == Whole {
		err = take("lock", true, "all of the sweep or a shard of it")
	} else if err = take("lock", false, "all of the sweep"); err == nil {
		err = take(o.Shard.file()+".lock", true, "shard "+o.Shard.String())
	}
	if err == nil {
		err = claim(ctx, c, r, o)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

func (s Shard) file() string { return fmt.Sprintf("%04d-of-%04d", s.Index, s.Count) }

// hashLine is the line of config.toml that says whose configuration it is.
var hashLine = regexp.MustCompile(`^# Configuration ([0-9a-f]{16}), every setting spelt out\.$`)

// writtenFor returns the hash in a config.toml that a sweep wrote, "" for other
// text.
func writtenFor(config []byte) string {
	for line := range strings.Lines(string(config)) {
		if m := hashLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			return m[1]
		}
	}
	return ""
}

// other is the error for a directory that holds the configuration have.
func (c *Config) other(dir, have string, config []byte) error {
	what := ""
	if key := c.differs(dir, config); key != "" {
		what = ", which differs in " + key
	}
	return fmt.Errorf("%s: holds configuration %s%s, not %s of %s; name another directory with -out", dir, have, what, c.Hash(), c.Name)
}

// differs names what a config.toml has otherwise than this one, as far as that
// is told by its lines and the files beside it.
func (c *Config) differs(dir string, config []byte) string {
	settings := func(text []byte) map[string]int {
		lines := map[string]int{}
		for line := range strings.Lines(string(text)) {
			if line, _, _ = strings.Cut(strings.TrimSpace(line), " # "); strings.Contains(line, " = ") && line[0] != '#' {
				lines[line]++
			}
		}
		return lines
	}
	have, want := settings(config), settings(c.Resolved(""))
	var keys []string
	for _, pair := range [][2]map[string]int{{have, want}, {want, have}} {
		for line, n := range pair[0] {
			key, _, _ := strings.Cut(line, " = ")
			if n != pair[1][line] && !slices.Contains(keys, key) && !slices.Contains([]string{"metric", "show", "name", "reference", "group"}, key) {
				keys = append(keys, key)
			}
		}
	}
	if len(have) == 0 {
		return ""
	}
	slices.Sort(keys)
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		if old, err := os.ReadFile(filepath.Join(dir, inputsDir, inputFile(name))); err == nil && !bytes.Equal(old, c.Inputs[name].Data) {
			keys = append(keys, "what "+name+" holds")
		}
	}
	return some(keys)
}

// await takes a lock that others hold for a short time.
func await(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := files.Lock(path, true)
		if !errors.Is(err, files.ErrLocked) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// inspect refuses a directory that holds something else than this sweep. It
// returns config.toml, nil if there is none yet.
func inspect(c *Config, dir string) (config []byte, err error) {
	config, err = os.ReadFile(filepath.Join(dir, "config.toml"))
	switch {
	case err == nil:
		have := writtenFor(config)
		if have == "" {
			have = "that no sweep wrote"
		}
		if have != c.Hash() {
			return nil, c.other(dir, have, config)
		}
		return config, nil
	case errors.Is(err, os.ErrNotExist):
		if logs, err := recordFiles(dir); err != nil || len(logs) > 0 {
			return nil, errors.Join(err, c.recorded(logs, dir))
		}
		for _, name := range []string{"runs.csv", "curves.csv", "summary.json", "summary.csv", "summary.md"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return nil, fmt.Errorf("%s: holds %s but neither config.toml nor records, so it is not of a sweep; name another directory with -out", dir, name)
			}
		}
		return nil, nil
	}
	return nil, err
}

// recorded refuses a directory whose records are of another sweep.
func (c *Config) recorded(logs []string, dir string) error {
	for _, path := range logs {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		line, err := readLine(bufio.NewReader(f), nil)
		f.Close()
		if err != nil {
			continue // not a whole line yet
		}
		kind, rest, err := checkLine(line)
		if hash, _, _ := bytes.Cut(rest, []byte(" ")); err == nil && kind == "config" && string(hash) != c.Hash() {
			return c.other(dir, string(hash), nil)
		}
	}
	return nil
}

// claim writes config.toml and meta.json or compares the one that is there. Shards that
// begin together take turns, so that all are of one configuration.
func claim(ctx context.Context, c *Config, r Runner, o Options) error {
	held, err := await(ctx, filepath.Join(o.Dir, "records", "claim.lock"))
	if err != nil {
		return err
	}
	defer held.Close()
	old, err := inspect(c, o.Dir)
	if err != nil {
		return err
	}
	if err := c.writeInputs(o.Dir); err != nil {
		return err
	}
	if err := c.writeMeta(r, o); err != nil {
		return err
	}
	text := c.Resolved(c.provenance(o))
	if bytes.Equal(text, old) {
		return nil
	}
	return replaceVia(filepath.Join(o.Dir, "records"), o.Dir, "config.toml", func(w *bufio.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func (c *Config) provenance(o Options) string {
	text := fmt.Sprintf("Configuration %s, every setting spelt out.\nProgram %s.\n", c.Hash(), o.Revision)
	if o.Command != "" {
		text += "Repeat with: " + o.Command + "\n"
	}
	return text
}

// work runs the jobs of the shard that are missing and returns how many it
// finished.
func work(ctx context.Context, c *Config, r Runner, o Options, s *store) (int, error) {
	var todo []int
	for job, at := range s.at {
		if at.size == 0 && job%o.Shard.Count == o.Shard.Index {
			todo = append(todo, job)
		}
	}
	if len(todo) == 0 {
		return 0, nil
	}
	log, err := openRecords(c, o, s)
	if err != nil {
		return 0, err
	}

	var (
		next  atomic.Int64
		width = len(r.Figures())
		curve = len(r.CurveFigures())
		dirty atomic.Bool // lines were written that the disk may not have
		mu    sync.Mutex  // of the log and of what follows
		ran   int
		bad   int
	)
	// A line goes out with one write as soon as it is there, so that it
	// survives the process.
	book := func(line []byte, failed string) error {
		mu.Lock()
		defer mu.Unlock()
		if err := log.write(line); err != nil {
			return err
		}
		dirty.Store(true)
		if failed == "" {
			ran++
		} else {
			bad++
			if o.Log != nil {
				fmt.Fprintln(o.Log, failed)
			}
		}
		if o.Progress != nil {
			o.Progress(ran, bad, len(todo))
		}
		return nil
	}
	if o.Progress != nil {
		o.Progress(0, 0, len(todo))
	}
	group, gctx := errgroup.WithContext(ctx)
	var workers sync.WaitGroup
	for range min(o.Workers, len(todo)) {
		workers.Add(1)
		group.Go(func() error {
			defer workers.Done()
			w := r.Worker()
			for {
				n := int(next.Add(1)) - 1
				if n >= len(todo) || gctx.Err() != nil {
					return nil
				}
				cell, seed := &c.Cells[todo[n]/len(c.Seeds)], c.Seeds[todo[n]%len(c.Seeds)]
				res, broken, err := runOne(gctx, w, cell, seed, width, curve)
				if err != nil && gctx.Err() != nil {
					return nil // stopped, not failed
				}
				if broken { // a worker that panicked is not used again
					w = r.Worker()
				}
				if err != nil {
					err = book(errorLine(cell.ID, seed, err.Error()), fmt.Sprintf("%s, seed %d: %v", cell.ID, seed, err))
				} else {
					err = book(runLine(cell.ID, seed, res), "")
				}
				if err != nil {
					return err
				}
			}
		})
	}
	idle := make(chan struct{})
	go func() { workers.Wait(); close(idle) }()
	// The disk is made to follow five times a second, so that the lines survive
	// the machine.
	group.Go(func() error {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-idle:
				return log.sync()
			case <-tick.C:
				if dirty.Swap(false) {
					if err := log.sync(); err != nil {
						return err
					}
				}
			}
		}
	})
	err = group.Wait()
	if cerr := log.f.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err == nil && ctx.Err() != nil {
		err = ErrInterrupted
	}
	return ran, err
}

// runOne runs one cell with one seed and turns a panic into an error.
func runOne(ctx context.Context, w Worker, cell *Cell, seed uint64, width, curve int) (res Result, broken bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			broken = true
			err = fmt.Errorf("panic: %v (%s)", p, panicSite(debug.Stack()))
		}
	}()
	res, err = w.Run(ctx, cell, seed)
	if err != nil {
		return res, false, err
	}
	if len(res.Row) != width {
		return res, false, fmt.Errorf("the runner returned %d figures; it announced %d", len(res.Row), width)
	}
	for _, p := range res.Curve {
		if len(p.Values) != curve {
			return res, false, fmt.Errorf("the runner returned curve points of %d figures; it announced %d", len(p.Values), curve)
		}
	}
	return res, false, nil
}

// panicSite returns file and line of the panic, without the path: the message
// ends up in files that must not depend on where the program was built.
func panicSite(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, l := range lines {
		if !strings.HasPrefix(l, "panic(") {
			continue
		}
		// The frames behind panic: the runtime's own are passed over.
		for j := i + 3; j < len(lines); j += 2 {
			at := strings.TrimSpace(lines[j])
			if strings.Contains(at, "/src/runtime/") {
				continue
			}
			at, _, _ = strings.Cut(at, " ")
			return filepath.Base(at)
		}
	}
	return "unknown place"
}

// recordLog is the record file of this process.
type recordLog struct {
	f    logFile
	path string
	size int64 // bytes that are whole lines
	err  error // of the first write that failed; none is tried after it
}

// openRecords opens the shard's record file, cuts off a line that was never
// finished, and notes the program's revision.
func openRecords(c *Config, o Options, s *store) (*recordLog, error) {
	l := &recordLog{path: filepath.Join(o.Dir, "records", o.Shard.file()+".log")}
	l.size = s.ends[filepath.Base(l.path)]
	open := o.openLog
	if open == nil {
		open = func(path string) (logFile, error) {
			return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
		}
	}
	f, err := open(l.path)
	if err != nil {
		return nil, err
	}
	l.f = f
	if err := f.Truncate(l.size); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	if err := l.write(configLine(c.Hash(), o.Revision)); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// write appends one line, or takes back what part of it was written.
func (l *recordLog) write(line []byte) error {
	if l.err != nil {
		return l.err
	}
	if _, err := l.f.Write(line); err != nil {
		l.f.Truncate(l.size) // if this fails too, the next start cuts the line off
		l.err = fmt.Errorf("%s: %w", l.path, err)
		return l.err
	}
	l.size += int64(len(line))
	return nil
}

func (l *recordLog) sync() error {
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("%s: %w", l.path, err)
	}
	return nil
}

// Estimate returns the time that the sweep would take on that many workers,
// from short runs of one cell per class: probe returns a copy of a
// cell that is cheap to run and how many times longer the cell itself takes.
// Setting up a run counts as if it grew with it, so that the estimate is high
// rather than low. It measures for about limit.
func Estimate(ctx context.Context, c *Config, r Runner, workers int, limit time.Duration, class func(*Cell) string, probe func(*Cell) (*Cell, float64)) (time.Duration, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	w := r.Worker()
	per := map[string]float64{}
	var sum float64
	begin := time.Now()
	known := 0.0
	for i := range c.Cells {
		k := class(&c.Cells[i])
		if _, ok := per[k]; !ok {
			if time.Since(begin) > limit && len(per) > 0 {
				per[k] = known / float64(len(per)) // no time left: as the others
			} else {
				cell, times := probe(&c.Cells[i])
				t := time.Now()
				if _, _, err := runOne(ctx, w, cell, c.Seeds[0], len(r.Figures()), len(r.CurveFigures())); err != nil {
					return 0, fmt.Errorf("%s: %w", cell.ID, err)
				}
				per[k] = time.Since(t).Seconds() * times
			}
			known += per[k]
		}
		sum += per[k]
	}
	sum *= float64(len(c.Seeds)) / float64(workers)
	return time.Duration(math.Min(sum, 1e9) * float64(time.Second)), nil
}
