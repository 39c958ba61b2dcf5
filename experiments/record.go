package experiments

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"ephemera/experiments/files"
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
	Metrics   []string     `json:"metrics,omitempty"`   // names of the learner's own figures
	Curve     []CurvePoint `json:"curve"`               // while learning, at the Milestones and after changes
	Changes   []int        `json:"changes,omitempty"`   // epochs at which the world changed while learning
	Beside    []Pair       `json:"beside,omitempty"`    // what was learned beside what is exact
	Crawls    [][2]int     `json:"crawls,omitempty"`    // epoch and source of the last crawls of what was learned, if Batch asks for them

	// These are of a run that was performed now, and not of a record that was read.
	Trainee        learner.Learner `json:"-"` // as it ended; nil where nothing learns
	StepsPerSecond float64         `json:"-"` // of the learner while it learned
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
	// Own are the learner's own figures after the epoch.
	Own []float64 `json:"own,omitempty"`
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

// id names a resolved run: what it depends on, and its seed.
func (e *Engine) id(r Run) (string, error) {
	hash, err := e.Hash(r)
	return fmt.Sprintf("%s-%d", hash, r.Seed), err
}

// ReadRecord reads the record that a directory of results has of a run, by its
// [Engine.Hash] and seed.
func ReadRecord(dir, hash string, seed uint64) (*Record, error) {
	return readRecord(filepath.Join(dir, recordsDir, fmt.Sprintf("%s-%d.json", hash, seed)))
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

func writeRecord(path string, rec *Record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return files.Put(path, append(data, '\n'))
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
	// Played, if not nil, is told now and then how many epochs of any run were
	// played since it was told before.
	Played func(epochs int)

	// While a learner learns, Checkpoint is after how many epochs it is saved; 0 is
	// for every ten seconds. It is saved beside the record that is to come, until
	// that is there.
	Checkpoint int
	// Saved is the file in which the learner of the first run is saved instead. It
	// stays.
	Saved string
	// Crawls keeps the last crawls of each run.
	Crawls bool
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
	contests := make([]*contest, len(runs))
	hows := make([]follow, len(runs))
	paths := make([]string, len(runs))
	var todo []int
	for i, r := range runs {
		c, err := e.resolve(ctx, r)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			out.Errors[i] = err
			continue
		}
		contests[i], hows[i] = c, follow{every: b.Checkpoint, crawls: b.Crawls, played: b.Played}
		if b.Dir != "" {
			id, err := e.id(c.Run)
			if err != nil {
				return nil, err
			}
			base := filepath.Join(b.Dir, recordsDir, id)
			paths[i], hows[i].id, hows[i].state = base+".json", id, base+".state"
			saved := true
			if i == 0 && b.Saved != "" {
				hows[i].state, hows[i].keeps = b.Saved, true
				at, err := readCheckpoint(b.Saved)
				if err != nil {
					return nil, err
				}
				saved = at != nil && at.ID == id
			}
			if out.Records[i], err = readRecord(paths[i]); err == nil && saved {
				continue
			}
			out.Records[i] = nil
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
		c := contests[todo[k]]
		return fmt.Sprintf("%s on %s, seed %d", c.Algorithm(), c.at.Instance.ID, c.Seed)
	}
	err := Each(ctx, len(todo), b.Workers, nil, name, func(ctx context.Context, k int) error {
		i := todo[k]
		rec, err := e.perform(ctx, contests[i], hows[i])
		if ctx.Err() != nil {
			return err
		}
		if err == nil && b.Dir != "" {
			if err := writeRecord(paths[i], rec); err != nil {
				return err
			}
			if state := hows[i].state; state != b.Saved {
				os.Remove(state) // where there was time for one
			}
		}
		if err == nil && i > 0 {
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
