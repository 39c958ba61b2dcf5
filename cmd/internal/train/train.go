// Package train is the command train.
package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/pelletier/go-toml/v2"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/comparison"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/internal/files"
	"ephemera/internal/plain"
	"ephemera/learner"
)

const about = `Train trains a learner that decides which sources to crawl, and compares what
it earns with exact Whittle and simple policies in the same world. Without a
flag: Table I of the papers, budget 1, 10 000 steps. With -out the same command
runs what an earlier one left to do.`

// compared are the learner and the policies that it is compared with, in the order of the table.
var compared = []string{"learned", "whittle", "greedy", "myopic", "round-robin", "best-source"}

// Run is the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c := comparison.New("train", about, "`directory` that is made for the learner, the runs and their results")
	if done, err := c.Parse(args, stdout); done || err != nil {
		return err
	}
	contenders, err := c.Choose(ctx, compared)
	if err != nil {
		return err
	}
	run := contenders[0].Jobs[0] // of the learner
	if dir := c.Batch.Dir; dir != "" {
		c.Batch.Saved = filepath.Join(dir, learner.StateFile)
	}
	show, clear := cli.Progress(stderr, "epochs")
	var played atomic.Int64
	c.Batch.Watch = func(learner.Learner) experiments.Watcher {
		return func(epoch int, _ float64, _ []env.Crawled) error {
			const every = 256 // it costs more than an epoch of few sources
			if epoch%every == every-1 {
				show(int(played.Add(every)), (len(contenders)+1)*run.Steps) // the learner twice
			}
			return nil
		}
	}
	done, rep, err := c.Perform(ctx, contenders, stderr)
	clear()
	if err != nil || done == nil {
		return err
	}
	return tell(c, run, rep, done[0].Records[0], stdout)
}

// shownSources is the number of sources up to which the thresholds are printed
// below the results.
const shownSources = 12

// tell writes the results of a run with its record, if -out names a directory, and
// prints them.
func tell(
	c *comparison.Comparison, run *experiments.Job, rep *result.Report, first *experiments.Record, stdout io.Writer,
) error {
	trainee := first.Trainee // as it ended
	if trainee == nil {
		saved, err := learner.Load(c.Batch.Dir)
		if err == nil {
			trainee, err = saved.Learner(saved.Terms())
		}
		if err != nil {
			return err
		}
	}
	order := []string{"learning"}
	for _, name := range compared[1:] { // in worlds that change
		order = append(order, name+"/learning")
	}
	order = append(order, compared...)
	slices.SortFunc(rep.Results, func(a, b result.Row) int {
		return cmp.Compare(slices.Index(order, a.Policy), slices.Index(order, b.Policy))
	})
	for k := range rep.Results { // one run says no more by these than by its shares
		row := &rep.Results[k]
		row.Diff, row.DiffLo, row.DiffHi, row.Regret = result.Ratio{}, result.Ratio{}, result.Ratio{}, result.Ratio{}
	}
	if first.Fallbacks > 0 {
		rep.Notes = append(rep.Notes,
			plain.Count(first.Fallbacks, "time")+" the learner did not trust its incremental inverse.")
	}
	after := run.Scene.After(run.Steps)
	rep.Notes = append(rep.Notes, experiments.PriceNote(trainee, after, c.Level))
	thresholds := experiments.Thresholds(trainee, after.Instance, c.Level)
	kept := map[string]result.Printed{"metrics.csv": metrics(first)}
	if thresholds != nil {
		kept["thresholds.csv"] = thresholds
		if len(thresholds.Rows) <= shownSources {
			rep.More = thresholds
		}
	}
	var unkept error
	if c.Batch.Dir != "" {
		text, err := toml.Marshal(run.Run)
		if err == nil {
			err = files.Put(filepath.Join(c.Batch.Dir, "config.toml"), text)
		}
		if err != nil {
			unkept = fmt.Errorf("-out: %w", err)
		}
	}
	return errors.Join(c.Tell(rep, kept, stdout), unkept)
}

// metrics are the learning curve with the learner's own figures.
func metrics(r *experiments.Record) *result.Table {
	t := &result.Table{Header: append([]string{"epoch", "reward", "crawls"}, r.Metrics...)}
	for _, p := range r.Curve {
		cells := []any{p.Epoch, p.Reward, p.Crawls}
		for _, v := range p.Own {
			cells = append(cells, v)
		}
		t.Add(cells...)
	}
	return t
}
