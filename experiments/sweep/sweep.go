// Package sweep runs a grid of settings over seeds and says what came out.
//
//  1. [Load] reads a configuration: TOML with the settings of runs, each with one
//     value or a list. The product of the lists is a [Config] of cells, each
//     with a readable id.
//  2. [Run] has the engine of package experiments perform each cell under each
//     seed. Each run that is done is a file; called again, it performs what is
//     missing. Several processes may work on one directory, a shard each.
//  3. When all runs are done it writes what they say: runs.csv, curves.csv and
//     learned.csv, and their [Summary] as summary.json, summary.csv and
//     summary.md.
package sweep

import (
	"context"
	"fmt"
	"slices"

	"ephemera/experiments"
	"ephemera/experiments/result"
)

// Run performs the runs of a shard that are missing. When no run is missing, or
// when all of the work is this process's own, it writes what the runs say. Runs
// that fail do not stop it; the summary names them.
func Run(ctx context.Context, c *Config, b experiments.Batch) (*Summary, error) {
	done, err := c.engine.PerformAll(ctx, c.Runs(), b)
	if err != nil {
		return nil, err
	}
	return Summarize(c, done, b)
}

// Runs returns all runs, those of one cell one after the other.
func (c *Config) Runs() (runs []experiments.Run) {
	for _, cell := range c.Cells {
		for k := range c.Seeds {
			r := cell.Run
			r.Seed = uint64(k) + 1
			runs = append(runs, r)
		}
	}
	return runs
}

// Summarize is the second half of Run: it writes what the runs say that are done.
func Summarize(c *Config, done *experiments.Performed[experiments.Record], b experiments.Batch) (*Summary, error) {
	s := &Summary{Head: c.Head, Figures: experiments.FiguresOfRuns, Ran: done.Ran}
	for job, r := range done.Records {
		if r == nil {
			s.Missing++
		} else {
			s.Runs++
		}
		if err := done.Errors[job]; err != nil {
			s.Failures = append(s.Failures, fmt.Sprintf("%s: %v", c.Cells[job/c.Seeds].ID, err))
		}
	}
	if s.Missing > 0 && !b.Shard.IsAll() {
		return s, nil
	}
	s.Final = true
	s.summarize(c, done.Records)
	return s, s.write(c, done.Records, b.Dir)
}

// write writes the files of a sweep.
func (s *Summary) write(c *Config, records []*experiments.Record, dir string) error {
	runs := &result.Table{Header: slices.Concat([]string{"cell", "seed"}, c.Axes, figureNames(s.Figures))}
	curves := &result.Table{Header: []string{"cell", "seed", "epoch", "ratio", "reward", "crawls"}}
	learned := &result.Table{Header: []string{"cell", "seed", "source", "learned", "exact"}}
	for job, r := range records {
		if r == nil {
			continue
		}
		cell, seed := &c.Cells[job/c.Seeds], r.Run.Seed
		run := []any{cell.ID, seed}
		for _, key := range c.Axes {
			run = append(run, cell.text(key))
		}
		for _, f := range s.Figures {
			run = append(run, f.Of(r))
		}
		runs.Add(run...)
		for _, p := range r.Curve {
			curves.Add(cell.ID, seed, p.Epoch, p.OfWhittle, p.Reward, p.Crawls)
		}
		for _, p := range r.Beside {
			learned.Add(cell.ID, seed, p.Source, p.Learned, p.Exact)
		}
	}
	return result.Put(dir, map[string]result.Printed{
		"runs.csv": runs, "curves.csv": curves, "learned.csv": learned, "summary.csv": s, "summary.md": s, SummaryFile: s,
	})
}
