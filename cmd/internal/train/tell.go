package train

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// shownSources is the number of sources up to which the thresholds are printed
// below the results.
const shownSources = 12

// tell writes the results, if -out names a directory, and prints them.
func (c *command) tell(done *experiments.Performed[experiments.Record], stdout io.Writer) error {
	first := done.Records[0]
	trainee, err := c.trainee(first)
	if err != nil {
		return err
	}
	thresholds := experiments.Thresholds(trainee, c.run.Scene.Instance)
	rep := c.report(done, trainee, thresholds)
	tables := map[string]*result.Table{"metrics.csv": metrics(first)}
	if thresholds != nil {
		tables["thresholds.csv"] = thresholds
	}
	return errors.Join(cli.Tell(rep, c.batch.Dir, tables, c.format, stdout), errors.Join(done.Errors...))
}

// trainee returns the learner as it ended.
func (c *command) trainee(first *experiments.Record) (learner.Learner, error) {
	if first.Trainee != nil {
		return first.Trainee, nil
	}
	saved, err := learner.Load(c.batch.Dir)
	if err != nil {
		return nil, err
	}
	return saved.Learner(saved.Terms())
}

// report returns what is printed.
func (c *command) report(done *experiments.Performed[experiments.Record], trainee learner.Learner, thresholds *result.Table) *result.Report {
	first := done.Records[0]
	contenders := []experiments.Contender{{Learns: true, Records: done.Records[:1]}}
	order := []string{"learning", "learned"}
	for k, name := range compared {
		if done.Records[k+1] != nil {
			contenders = append(contenders, experiments.Contender{Name: name, Records: done.Records[k+1 : k+2]})
			order = append(order, name)
		}
	}
	rep := experiments.Compare(contenders, c.level, 1, c.run.Seed)
	slices.SortFunc(rep.Results, func(a, b result.Row) int {
		return cmp.Compare(slices.Index(order, a.Policy), slices.Index(order, b.Policy))
	})
	for k := range rep.Results { // one run says no more by these than by its shares
		row := &rep.Results[k]
		row.Diff, row.DiffLo, row.DiffHi, row.Regret = nil, nil, nil, nil
	}
	line := fmt.Sprintf("%s on %s, knowledge %s, budget %v, %d steps, seed %d", rep.Algorithm, rep.Instance, rep.Knowledge, rep.Budget, rep.Steps, rep.Seed)
	line += ", " + result.Count(first.Fallbacks, "Tikhonov fallback")
	rep.Notes = []string{line + rep.BoundNote() + "."}
	if first.Fitted {
		rep.Notes = append(rep.Notes, "Whittle has parameters that were fitted on the first part of the recording.")
	}
	if note := experiments.PriceNote(trainee, *c.run.Scene, c.level); note != "" {
		rep.Notes = append(rep.Notes, note)
	}
	if thresholds != nil && len(thresholds.Rows) <= shownSources {
		rep.More = thresholds
	}
	return &rep
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
