package experiments

import (
	"path/filepath"

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
	Beside    []Pair       `json:"beside,omitempty"`    // learned thresholds beside exact ones

	Speed   float64         `json:"-"` // epochs per second while it learned; 0 of a record that was read
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
	// Own are the learner's own figures after the epoch.
	Own []float64 `json:"own,omitempty"`
}

// Pair is the learned threshold of a source and the exact one, as states.
type Pair struct {
	Source  string  `json:"source"`
	Learned float64 `json:"learned"` // interest
	Exact   float64 `json:"exact"`   // interest
}

// ReadRecord reads the record that a directory of results has of a run, by its
// [Engine.Hash] and seed.
func ReadRecord(dir, hash string, seed uint64) (*Record, error) {
	return files.ReadJSON[Record](keptAt(dir, keptName(hash, seed)))
}

// RunsFile lists the runs of the last comparison that a directory of results keeps: the
// names of their files, by contender.
const RunsFile = "runs.json"

// ReadRuns reads the records of the last comparison, by contender.
func ReadRuns(dir string) (map[string][]*Record, error) {
	names, err := files.ReadJSON[map[string][]string](filepath.Join(dir, RunsFile))
	if err != nil {
		return nil, err
	}
	of := map[string][]*Record{}
	for contender, names := range *names {
		for _, name := range names {
			rec, err := files.ReadJSON[Record](keptAt(dir, name))
			if err != nil {
				return nil, err
			}
			of[contender] = append(of[contender], rec)
		}
	}
	return of, nil
}
