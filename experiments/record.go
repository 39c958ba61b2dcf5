package experiments

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"ephemera/experiments/result"
	"ephemera/internal/files"
	"ephemera/learner"
)

// Record is what is kept of a run: one JSON object. Its numbers are finite; what
// has no finite value is left out.
type Record struct {
	Run      Run    `json:"run"`      // every setting, resolved
	Instance string `json:"instance"` // its ID
	// Policies that know the model were given one that was fitted on a recording.
	Fitted bool `json:"fitted,omitempty"`
	// Interest per epoch that no policy exceeds that keeps the budget, where one is known. Of a
	// recording it holds for the epochs that were played, also for those who know what will come.
	Bound result.Ratio `json:"bound,omitzero"`

	Learning  Figures      `json:"learning"`             // of the learner while it learned, or of the policy
	Learned   Figures      `json:"learned"`              // of what was learned, or of the policy
	Fallbacks int          `json:"fallbacks,omitempty"`  // how often an incremental inverse was not trusted
	Metrics   []string     `json:"metrics,omitempty"`    // names of the learner's own figures
	Curve     []CurvePoint `json:"curve"`                // while learning, at the Milestones and after changes
	Changes   []int        `json:"changes,omitempty"`    // epochs at which the world changed while learning
	Pairs     []Pair       `json:"thresholds,omitempty"` // learned next to exact ones

	Speed   float64         `json:"-"` // epochs per second while it learned; 0 of a record that was read
	Trainee learner.Learner `json:"-"` // as it ended; nil where nothing learns, and of a record that was read
}

// UnmarshalJSON implements json.Unmarshaler. A record without one of today's measures is
// refused, as another version kept it: the figure would be 0. Earlier versions wrote the
// thresholds as "beside".
func (r *Record) UnmarshalJSON(text []byte) error {
	type plain Record
	parts := []struct {
		name string
		of   *Figures
	}{{"learning", &r.Learning}, {"learned", &r.Learned}}
	for _, part := range parts {
		for _, m := range result.Measures {
			*m.Of(&part.of.Outcome) = math.NaN() // which JSON cannot hold
		}
	}
	read := struct {
		*plain
		Earlier []Pair `json:"beside"`
	}{plain: (*plain)(r)}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	for _, part := range parts {
		for _, m := range result.Measures {
			if math.IsNaN(*m.Of(&part.of.Outcome)) {
				return fmt.Errorf("%s has no %s: another version kept this run, and the command that made it "+
					"makes it again", part.name, m.Name)
			}
		}
	}
	if r.Pairs == nil {
		r.Pairs = read.Earlier
	}
	return nil
}

// Figures are what one part of a run earned.
type Figures struct {
	result.Outcome
	Whittle   float64      `json:"whittle"`             // of exact Whittle in the same epochs, interest per epoch
	OfWhittle result.Ratio `json:"of_whittle,omitzero"` // the reward over that
	OfBound   result.Ratio `json:"of_bound,omitzero"`   // the reward over the bound
	Days      []float64    `json:"days,omitempty"`      // interest per epoch of each whole day, in worlds with dates
}

// CurvePoint is one point of a learning curve: means over the epochs since the
// point before.
type CurvePoint struct {
	Epoch     int          `json:"epoch"`
	Reward    float64      `json:"reward"`              // interest per epoch
	Crawls    float64      `json:"crawls"`              // crawls per epoch
	Whittle   float64      `json:"whittle"`             // of exact Whittle in the same epochs, interest per epoch
	OfWhittle result.Ratio `json:"of_whittle,omitzero"` // the reward over that
	// Own are the learner's own figures after the epoch.
	Own []float64 `json:"own,omitempty"`
}

// Pair is the learned threshold of a source and the exact one, as states.
type Pair struct {
	Source  string       `json:"source"`
	Learned float64      `json:"learned"`        // interest
	Exact   result.Ratio `json:"exact,omitzero"` // interest, where one is known
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

// Figure is a figure of a run.
type Figure struct {
	Name  string `json:"name"`
	Words string `json:"words,omitempty"` // what it is, as the axis of a picture says it, with the unit
	Less  bool   `json:"less,omitempty"`  // lower values are better

	Of   func(r *Record) float64   `json:"-"` // NaN where a run has none
	Days func(r *Record) []float64 `json:"-"` // the figure of each whole day, of a reward
}

// FiguresOfRuns are the figures of a run, in the order of sweeps. Those with a name alone are
// of the measures; measures that are not named here stand behind the others.
var FiguresOfRuns = withMeasures([]Figure{
	{
		Name: "learned_ratio", Words: "share of what exact Whittle earns, as learned",
		Of: func(r *Record) float64 { return r.Learned.OfWhittle.Value() },
	},
	{
		Name: "learning_ratio", Words: "share of what exact Whittle earns, while learning",
		Of: func(r *Record) float64 { return r.Learning.OfWhittle.Value() },
	},
	{Name: "learning_crawls"},
	{Name: "learned_crawls"},
	{Name: "learning_reward"},
	{Name: "learned_reward"},
	{
		Name: "whittle_reward", Words: "interest per epoch, exact Whittle",
		Of: func(r *Record) float64 { return r.Learned.Whittle },
	},
	{Name: result.OverBudget},
	{
		Name: "fallbacks", Words: "times that an incremental inverse was not trusted", Less: true,
		Of: func(r *Record) float64 { return float64(r.Fallbacks) },
	},
	{Name: "regret", Words: "interest lost against the bound, while learning", Less: true, Of: (*Record).Regret},
	{Name: "regret_exponent", Words: "power by which the regret grows", Less: true, Of: (*Record).RegretExponent},
	{Name: "recovery", Words: "epochs from a change until 95 % of Whittle again", Less: true, Of: (*Record).Recovery},
})

// withMeasures completes figures of runs by the table of measures.
func withMeasures(all []Figure) []Figure {
	put := func(f Figure) {
		k := slices.IndexFunc(all, func(x Figure) bool { return x.Name == f.Name })
		switch {
		case f.Name == "":
		case k < 0:
			all = append(all, f)
		default:
			all[k] = f
		}
	}
	for _, m := range result.Measures {
		put(figureOf(m, m.Learning, ", while learning", true))
		put(figureOf(m, m.Learned, ", as learned", false))
	}
	return all
}

// part returns what the run earned while learning, or as learned.
func (r *Record) part(learning bool) *Figures {
	if learning {
		return &r.Learning
	}
	return &r.Learned
}

// figureOf returns a measure as a figure of runs, while learning or as learned.
func figureOf(m result.Measure, name, when string, learning bool) Figure {
	f := Figure{
		Name: name, Words: m.Words + when, Less: m.Less,
		Of: func(r *Record) float64 { return *m.Of(&r.part(learning).Outcome) },
	}
	if m.Name == "reward" {
		f.Days = func(r *Record) []float64 { return r.part(learning).Days }
	}
	return f
}

// Regret returns what the bound is above the reward while learning, over all
// epochs, interest; NaN where no bound is known.
func (r *Record) Regret() float64 {
	return (r.Bound.Value() - r.Learning.Reward) * float64(r.Learning.Epochs)
}

// RegretExponent returns the power β of the fit of the regret up to epoch n by
// c n^β, by least squares of the logarithms over the last two factors of ten of
// the curve; NaN where no bound is known or less than nothing is lost, and of a
// recording, whose bound is of all its epochs and not of those up to n.
func (r *Record) RegretExponent() float64 {
	if r.Fitted {
		return math.NaN()
	}
	var regret, n, sx, sy, sxx, sxy float64
	last := 0
	for _, p := range r.Curve {
		regret += (r.Bound.Value() - p.Reward) * float64(p.Epoch-last)
		last = p.Epoch
		if 100*p.Epoch < r.Learning.Epochs {
			continue
		}
		x, y := math.Log(float64(p.Epoch)), math.Log(regret)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// recovered is the share of what exact Whittle earns that is a recovery.
const recovered = 0.95

// Recovery returns how many epochs pass from a change of the world until the
// first point of the curve, ten epochs later or more, that is recovered, or until
// the next change or the end: the mean over the changes, NaN where there are none.
func (r *Record) Recovery() float64 {
	var sum float64
	for k, at := range r.Changes {
		until := r.Learning.Epochs
		if k+1 < len(r.Changes) {
			until = r.Changes[k+1]
		}
		for _, p := range r.Curve {
			if p.Epoch >= at+10 && p.Epoch < until && p.OfWhittle.Value() >= recovered {
				until = p.Epoch
			}
		}
		sum += float64(until - at)
	}
	return sum / float64(len(r.Changes))
}
