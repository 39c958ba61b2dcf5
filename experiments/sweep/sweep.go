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
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/experiments/result"
)

// Files in the directory of a sweep that others read.
const (
	SummaryFile = "summary.json"
	CurvesFile  = "curves.csv"
	LearnedFile = "learned.csv"
)

// Figure is a figure of a run, and a column of the results.
type Figure struct {
	Name  string `json:"name"`
	Unit  string `json:"unit,omitempty"`
	Help  string `json:"help,omitempty"`  // what it is, in a few words
	Words string `json:"words,omitempty"` // as the axis of a picture says it, with the unit
	Less  bool   `json:"less,omitempty"`  // lower values are better

	of func(*experiments.Record) float64
}

// Label is the name with the unit.
func (f Figure) Label() string {
	if f.Unit == "" {
		return f.Name
	}
	return f.Name + ", " + f.Unit
}

const overBudget = "over_budget"

// figures are the figures of a run.
var figures = []Figure{
	{Name: "learned_ratio", Words: "share of what exact Whittle earns, as learned", Help: "reward of the learned policy over that of exact Whittle in the same epochs", of: func(r *experiments.Record) float64 { return orNaN(r.Learned.OfWhittle) }},
	{Name: "learning_ratio", Words: "share of what exact Whittle earns, while learning", Help: "reward while learning over that of exact Whittle in the same epochs", of: func(r *experiments.Record) float64 { return orNaN(r.Learning.OfWhittle) }},
	{Name: "learning_crawls", Words: "crawls per epoch, while learning", Unit: "crawls per epoch", Help: "while learning", of: func(r *experiments.Record) float64 { return r.Learning.Crawls }},
	{Name: "learned_crawls", Words: "crawls per epoch, as learned", Unit: "crawls per epoch", Help: "of the learned policy", of: func(r *experiments.Record) float64 { return r.Learned.Crawls }},
	{Name: "learning_reward", Words: "interest per epoch, while learning", Unit: "interest per epoch", Help: "while learning, exploration and all", of: func(r *experiments.Record) float64 { return r.Learning.Reward }},
	{Name: "learned_reward", Words: "interest per epoch, as learned", Unit: "interest per epoch", Help: "of the policy as it is at the end, in the same world from its beginning", of: func(r *experiments.Record) float64 { return r.Learned.Reward }},
	{Name: "whittle_reward", Words: "interest per epoch, exact Whittle", Unit: "interest per epoch", Help: "of exact Whittle in the epochs of the learned policy", of: func(r *experiments.Record) float64 { return r.Learned.Whittle }},
	{Name: overBudget, Words: "share of the learning epochs over the budget", Help: "share of the learning epochs whose crawls cost more than the budget", Less: true, of: func(r *experiments.Record) float64 { return r.Learning.Over }},
	{Name: "fallbacks", Words: "times that an incremental inverse was not trusted", Help: "how often an incremental inverse was not trusted", Less: true, of: func(r *experiments.Record) float64 { return float64(r.Fallbacks) }},
}

func figureNames(f []Figure) []string {
	names := make([]string, len(f))
	for i := range f {
		names[i] = f[i].Name
	}
	return names
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// Options say how a sweep is run. None of them changes its results.
type Options struct {
	experiments.Batch
	Program string // revision of the program, for the files
	Command string // that repeats the sweep, for the files
}

// Run performs the runs of a shard that are missing. When no run is missing, or
// when all of the work is this process's own, it writes what the runs say. Runs
// that fail do not stop it; the summary names them.
func Run(ctx context.Context, c *Config, o Options) (*Summary, error) {
	done, err := c.engine.PerformAll(ctx, c.Runs(), o.Batch)
	if err != nil {
		return nil, err
	}
	return Summarize(ctx, c, done, o)
}

// Runs returns all runs, those of one cell one after the other.
func (c *Config) Runs() (runs []experiments.Run) {
	for _, cell := range c.Cells {
		for _, seed := range c.Seeds {
			r := cell.Run
			r.Seed = seed
			runs = append(runs, r)
		}
	}
	return runs
}

// Summarize is the second half of Run: it writes what the runs say that are done.
func Summarize(ctx context.Context, c *Config, done *experiments.Performed, o Options) (*Summary, error) {
	s := &Summary{Head: c.Head, Program: o.Program, Command: o.Command, Figures: figures, Ran: done.Ran}
	for i, cell := range c.Cells {
		missing := 0
		for k, seed := range c.Seeds {
			job := i*len(c.Seeds) + k
			if done.Records[job] == nil {
				missing++
			}
			if err := done.Errors[job]; err != nil {
				s.Failures = append(s.Failures, fmt.Sprintf("%s, seed %d: %v", cell.ID, seed, err))
			}
		}
		if missing > 0 {
			s.Gaps = append(s.Gaps, fmt.Sprintf("%s: %d of %d seeds", cell.ID, missing, len(c.Seeds)))
		}
		s.Missing += missing
		s.Runs += len(c.Seeds) - missing
	}
	if s.Missing > 0 && !o.Shard.IsAll() {
		return s, nil
	}
	s.Final = true
	if err := s.summarize(ctx, c, done.Records, o.Workers); err != nil {
		return nil, err
	}
	return s, write(c, s, done.Records, o.Dir)
}

// write writes the files of a sweep.
func write(c *Config, s *Summary, records []*experiments.Record, dir string) error {
	runs := &result.Table{Header: slices.Concat([]string{"cell", "seed"}, c.Axes, figureNames(figures))}
	curves := &result.Table{Header: []string{"cell", "seed", "epoch", "ratio", "reward", "crawls"}}
	learned := &result.Table{Header: []string{"cell", "seed", "what", "source", "at", "learned", "exact"}}
	for job, r := range records {
		if r == nil {
			continue
		}
		cell := &c.Cells[job/len(c.Seeds)]
		put := func(t *result.Table, texts []string, figures ...float64) {
			row := append([]string{cell.ID, strconv.FormatUint(r.Run.Seed, 10)}, texts...)
			for _, v := range figures {
				row = append(row, formatFigure(v))
			}
			t.Add(row...)
		}
		put(runs, cell.texts(c.Axes...), rowOf(r)...)
		for _, p := range r.Curve {
			put(curves, []string{strconv.Itoa(p.Epoch)}, orNaN(p.OfWhittle), p.Reward, p.Crawls)
		}
		for _, p := range r.Beside {
			put(learned, []string{p.What, p.Source, strconv.Itoa(p.At)}, p.Learned, p.Exact)
		}
	}
	var all []files.File
	add := func(name string, print func(b *bytes.Buffer) error) error {
		var b bytes.Buffer
		err := print(&b)
		all = append(all, files.File{Name: name, Data: b.Bytes()})
		return err
	}
	err := errors.Join(
		add("runs.csv", func(b *bytes.Buffer) error { return runs.Write(b, result.CSV) }),
		add(CurvesFile, func(b *bytes.Buffer) error { return curves.Write(b, result.CSV) }),
		add(LearnedFile, func(b *bytes.Buffer) error { return learned.Write(b, result.CSV) }),
		add("summary.csv", func(b *bytes.Buffer) error { return s.Write(b, result.CSV) }),
		add("summary.md", func(b *bytes.Buffer) error { return s.Write(b, result.Markdown) }),
		add(SummaryFile, func(b *bytes.Buffer) error { return s.Write(b, result.JSON) }),
	)
	if err != nil {
		return err
	}
	return files.Put(dir, all...)
}

// rowOf returns the figures of a run.
func rowOf(r *experiments.Record) []float64 {
	row := make([]float64, len(figures))
	for i, f := range figures {
		row[i] = f.of(r)
	}
	return row
}

// formatFigure writes a figure, nothing for one that a run has not.
func formatFigure(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return experiments.FormatValue(v)
}
