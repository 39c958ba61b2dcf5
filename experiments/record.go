package experiments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"ephemera/learner"
)

// Record is what is kept of a run: one JSON object. Its numbers are finite; what
// has no finite value is left out.
type Record struct {
	Run      Run      `json:"run"`              // every setting, resolved
	Instance string   `json:"instance"`         // its ID
	Fitted   bool     `json:"fitted,omitempty"` // policies that know the model were given one that was fitted on a recording
	Bound    *float64 `json:"bound,omitempty"`  // interest per epoch that no policy exceeds that keeps the budget, where one is known

	Learning  Figures      `json:"learning"`            // of the learner while it learned, or of the policy
	Learned   Figures      `json:"learned"`             // of what was learned, or of the policy
	Fallbacks int          `json:"fallbacks,omitempty"` // how often an incremental inverse was not trusted
	Curve     []CurvePoint `json:"curve"`               // while learning, at the Milestones
	Beside    []Pair       `json:"beside,omitempty"`    // what was learned beside what is exact

	Trainee learner.Learner `json:"-"` // as it ended; nil where nothing learns, and of a record that was read
}

// Figures are what one part of a run earned.
type Figures struct {
	Outcome
	Whittle   float64   `json:"whittle"`              // what exact Whittle earns in the same epochs, interest per epoch
	OfWhittle *float64  `json:"of_whittle,omitempty"` // the reward over that
	OfBound   *float64  `json:"of_bound,omitempty"`   // the reward over the bound
	Days      []float64 `json:"days,omitempty"`       // interest per epoch of each whole day, in worlds with dates
}

// CurvePoint is one point of a learning curve: means over the epochs since the
// point before.
type CurvePoint struct {
	Epoch     int      `json:"epoch"`
	Reward    float64  `json:"reward"`               // interest per epoch
	Crawls    float64  `json:"crawls"`               // crawls per epoch
	Whittle   float64  `json:"whittle"`              // of exact Whittle in the same epochs, interest per epoch
	OfWhittle *float64 `json:"of_whittle,omitempty"` // the reward over that
}

// Pair is one learned quantity and the exact one.
type Pair struct {
	What    string  `json:"what"` // threshold or index
	Source  string  `json:"source"`
	At      int     `json:"at,omitempty"` // age at which an index is taken, epochs; 0 of thresholds
	Learned float64 `json:"learned"`      // interest
	Exact   float64 `json:"exact"`        // interest
}

// recordsDir holds one file per run that is done, HASH-SEED.json, in a directory
// of results.
const recordsDir = "runs"

// recordPath returns the file of a resolved run.
func (e *Engine) recordPath(dir string, r Run) (string, error) {
	hash, err := e.Hash(r)
	return recordPath(dir, hash, r.Seed), err
}

func recordPath(dir, hash string, seed uint64) string {
	return filepath.Join(dir, recordsDir, fmt.Sprintf("%s-%d.json", hash, seed))
}

// ReadRecord reads the record that a directory of results has of a run, by its
// [Engine.Hash] and seed.
func ReadRecord(dir, hash string, seed uint64) (*Record, error) {
	return readRecord(recordPath(dir, hash, seed))
}

func readRecord(path string) (*Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rec := &Record{}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rec, nil
}

// ReadRecords reads the records of all runs that a directory of results keeps, by
// seed.
func ReadRecords(dir string) ([]*Record, error) {
	paths, err := filepath.Glob(filepath.Join(dir, recordsDir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*Record
	for _, path := range paths {
		rec, err := readRecord(path)
		if err != nil {
			return nil, err
		}
		all = append(all, rec)
	}
	slices.SortStableFunc(all, func(a, b *Record) int { return cmp.Compare(a.Run.Seed, b.Run.Seed) })
	return all, nil
}

// writeRecord writes a record beside its place and then renames it, so that it
// is there whole or not at all.
func writeRecord(path string, rec *Record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Batch says how runs are performed. Nothing of it changes what they bring.
type Batch struct {
	Dir      string // keeps a record of each run in its directory runs; "" keeps none
	Workers  int    // runs at once, 1 or more
	Shard    Shard  // the part of the runs that this process performs; the zero value is all
	ReadOnly bool   // performs none
	// Progress, if not nil, is told how many of the runs to be performed are
	// done, and how many of these failed.
	Progress func(done, failed, total int)
}

// Performed is what runs bring, in their order.
type Performed struct {
	Records []*Record // nil where a run failed or is another shard's and not done
	Errors  []error   // of the runs that failed
	Ran     int       // runs that were performed now
}

// PerformAll performs the runs of a shard that have no record, and returns the
// records of all that are done. A run is done when its file is there and can be
// read. A run that fails does not stop the others. Several processes may work on
// one directory at once: they write the same bytes.
func (e *Engine) PerformAll(ctx context.Context, runs []Run, b Batch) (*Performed, error) {
	out := &Performed{Records: make([]*Record, len(runs)), Errors: make([]error, len(runs))}
	paths := make([]string, len(runs))
	var todo []int
	for i, r := range runs {
		if b.Dir != "" {
			r, err := e.Resolve(ctx, r)
			if err == nil {
				paths[i], err = e.recordPath(b.Dir, r)
			}
			if err != nil {
				return nil, err
			}
			if out.Records[i], err = readRecord(paths[i]); err == nil {
				continue
			}
		}
		if !b.ReadOnly && b.Shard.has(i) {
			todo = append(todo, i)
		}
	}
	var mu sync.Mutex
	failed := 0
	progress := func() {
		if b.Progress != nil {
			b.Progress(out.Ran+failed, failed, len(todo))
		}
	}
	progress()
	name := func(k int) string {
		r := runs[todo[k]]
		return fmt.Sprintf("%s, seed %d", r.Algorithm(), r.Seed)
	}
	err := Each(ctx, len(todo), b.Workers, nil, name, func(ctx context.Context, k int) error {
		i := todo[k]
		rec, err := e.Perform(ctx, runs[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && b.Dir != "" {
			if err := writeRecord(paths[i], rec); err != nil {
				return err
			}
			rec.Trainee = nil // many would fill the memory
		}
		mu.Lock()
		defer mu.Unlock()
		if out.Records[i], out.Errors[i] = rec, err; err != nil {
			failed++
		} else {
			out.Ran++
		}
		progress()
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, rec := range out.Records { // what other processes did meanwhile
		if rec == nil && out.Errors[i] == nil && b.Dir != "" {
			out.Records[i], _ = readRecord(paths[i])
		}
	}
	return out, nil
}
