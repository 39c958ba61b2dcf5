package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"ephemera/experiments"
)

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
	// Log is told the error of a run, one at a time; nil for nobody.
	Log func(line string)

	// openLog replaces the record file in tests of failing disks.
	openLog func(path string) (logFile, error)
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

// Run runs what is missing of a shard, records each result as it is there, and
// writes the final files when the whole sweep is complete. Failing runs do not
// stop it; the Report names them.
func Run(ctx context.Context, c *Config, o Options) (rep Report, err error) {
	defer func() { err = advise(err) }()
	if o.Shard.Count == 0 {
		o.Shard = whole
	}
	if o.openLog == nil {
		o.openLog = appendTo
	}
	rep.Total = c.Jobs()
	unlock, err := enter(ctx, c, o)
	if err != nil {
		return rep, err
	}
	defer unlock()
	s, err := scan(ctx, c, o.Dir)
	if err != nil {
		return rep, err
	}
	defer s.close()
	if rep.Ran, err = work(ctx, s, o); err != nil {
		return rep, err
	}
	merged, err := merge(ctx, c, o, o.Shard == whole)
	if merged.Ran = rep.Ran; rep.Ran > 0 {
		merged.Damaged = s.bad // also where the runs are there again by now
	}
	return merged, err
}

// Merge reads all records and writes the final files, complete or not.
func Merge(ctx context.Context, c *Config, o Options) (Report, error) {
	o.Shard = whole
	rep, err := merge(ctx, c, o, true)
	return rep, advise(err)
}

// advise adds what to do about errors that are not the program's.
func advise(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w; every run that was recorded is safe: make room and start again", err)
	case errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w; the directory of a sweep must be writable: make it so or take another", err)
	}
	return err
}

// cores is how many runs there are at once.
func cores(workers int) int {
	if workers > 0 {
		return workers
	}
	return runtime.GOMAXPROCS(0)
}

// work runs the jobs of the shard that are missing and returns how many it
// finished.
func work(ctx context.Context, s *store, o Options) (ran int, err error) {
	var todo []int
	for job, at := range s.at {
		if at.file == nil && job%o.Shard.Count == o.Shard.Index {
			todo = append(todo, job)
		}
	}
	if len(todo) == 0 {
		return 0, nil
	}
	path := filepath.Join(o.Dir, recordsDir, o.Shard.file()+".jsonl")
	f, err := o.openLog(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	log := recordLog{f: f, size: s.ends[path]}
	// A line that was never finished is cut off.
	if err := f.Truncate(log.size); err != nil {
		return 0, err
	}
	if err := log.write(record{Program: o.Revision, Arithmetic: arithmetic()}.line()); err != nil {
		return 0, err
	}

	var mu sync.Mutex // of what follows, and the log
	failed := 0
	progress := func() {
		if o.Progress != nil {
			o.Progress(ran, failed, len(todo))
		}
	}
	progress()
	err = experiments.Each(ctx, len(todo), cores(o.Workers), nil, nil, func(ctx context.Context, i int) error {
		cell, seed := s.cfg.at(todo[i])
		r := record{Cell: cell.ID, Hash: cell.Hash, Seed: seed}
		res, failure := runOne(ctx, s.cfg.x, cell, seed)
		if failure == nil {
			r.Result = &res
		} else if ctx.Err() != nil {
			return ctx.Err() // stopped, not failed
		} else {
			r.Error = failure.Error()
		}
		line := r.line()
		mu.Lock()
		defer mu.Unlock()
		if err := log.write(line); err != nil {
			return err
		}
		if failure == nil {
			ran++
		} else if failed++; o.Log != nil {
			o.Log(fmt.Sprintf("%s, seed %d: %v", cell.ID, seed, failure))
		}
		progress()
		return nil
	})
	return ran, errors.Join(err, f.Sync())
}

// runOne runs one cell with one seed and turns a panic into an error.
func runOne(ctx context.Context, x Experiment, c *Cell, seed uint64) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v (%s)", p, panicSite())
		}
	}()
	if res, err = x.Run(ctx, c, seed); err == nil {
		err = res.fits(x)
	}
	return res, err
}

// panicSite returns file and line of the panic that is being recovered, without
// the path: the message ends up in files that must not depend on where the
// program was built.
func panicSite() string {
	pc := make([]uintptr, 32)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") || !more {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
	}
}
