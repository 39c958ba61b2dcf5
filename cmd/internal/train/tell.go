package train

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// shownSources is the number of sources up to which the thresholds are printed
// below the results.
const shownSources = 12

// tell writes the results, if -out names a directory, and prints them.
func (c *command) tell(done []experiments.Contender, left []string, stdout io.Writer) error {
	first := done[0].Records[0]
	trainee, err := c.trainee(first)
	if err != nil {
		return err
	}
	rep := experiments.Compare(done, c.Level, 1, c.Run.Seed)
	order := append([]string{"learning"}, compared...)
	slices.SortFunc(rep.Results, func(a, b result.Row) int {
		return cmp.Compare(slices.Index(order, a.Policy), slices.Index(order, b.Policy))
	})
	for k := range rep.Results { // one run says no more by these than by its shares
		row := &rep.Results[k]
		row.Diff, row.DiffLo, row.DiffHi, row.Regret = nil, nil, nil, nil
	}
	line := fmt.Sprintf("%s on %s, knowledge %s, budget %v, %d steps, seed %d", rep.Algorithm, rep.Instance, rep.Knowledge, rep.Budget, rep.Steps, rep.Seed)
	line += ", " + result.Count(first.Fallbacks, "Tikhonov fallback")
	rep.Notes = append([]string{line + rep.BoundNote() + "."}, left...)
	if first.Fitted {
		rep.Notes = append(rep.Notes, "Whittle has parameters that were fitted on the first part of the recording.")
	}
	if note := experiments.PriceNote(trainee, *c.run.Scene, c.Level); note != "" {
		rep.Notes = append(rep.Notes, note)
	}
	tables := map[string]*result.Table{"metrics.csv": metrics(first)}
	if thresholds := experiments.Thresholds(trainee, c.run.Scene.Instance); thresholds != nil {
		tables["thresholds.csv"] = thresholds
		if len(thresholds.Rows) <= shownSources {
			rep.More = thresholds
		}
	}
	return c.Tell(&rep, tables, stdout)
}

// trainee returns the learner as it ended.
func (c *command) trainee(first *experiments.Record) (learner.Learner, error) {
	if first.Trainee != nil {
		return first.Trainee, nil
	}
	saved, err := learner.Load(c.Batch.Dir)
	if err != nil {
		return nil, err
	}
	return saved.Learner(saved.Terms())
}

// metrics are the learning curve with the learner's own figures.
func metrics(r *experiments.Record) *result.Table {
	t := &result.Table{Header: append([]string{"epoch", "reward", "crawls"}, r.Metrics...)}
	for _, p := range r.Curve {
		cells := []string{strconv.Itoa(p.Epoch), result.Exact(p.Reward), result.Exact(p.Crawls)}
		for _, v := range p.Own {
			cells = append(cells, result.Exact(v))
		}
		t.Add(cells...)
	}
	return t
}
