package sweep

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Files that a sweep leaves in its directory.
const (
	RunsFile    = "runs.csv"
	CurvesFile  = "curves.csv"
	LearnedFile = "learned.csv"
)

// merge writes the final files from the records: always with partial, else
// only when no run is missing. It is the one place that writes them, and goes
// through cells and seeds in the order of the configuration, few curves in
// memory at a time.
func merge(ctx context.Context, c *Config, o Options, partial bool) (Report, error) {
	records := filepath.Join(o.Dir, recordsDir)
	// Two shards that end together may both come here: they write the same.
	held, err := await(ctx, filepath.Join(records, "merge.lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, fmt.Errorf("%s: holds no records: there is no directory records", o.Dir)
	}
	if err != nil {
		return Report{}, err
	}
	defer held.Close()
	s, err := scan(ctx, c, o.Dir)
	if err != nil {
		return Report{}, err
	}
	rep := s.report(o.Shard)
	if rep.Missing > 0 && !partial {
		return rep, nil
	}
	if old, err := ReadSummary(o.Dir); err == nil && old.Configuration == c.Hash() && old.Runs > rep.Total-rep.Missing {
		return rep, fmt.Errorf("%s: summary.json is of %d runs, but records/ holds %d; run the sweep again, put the missing records back, or remove summary.json to do without", o.Dir, old.Runs, rep.Total-rep.Missing)
	}
	temp := filepath.Join(records, "merge")
	os.RemoveAll(temp) // what a killed process left
	defer os.RemoveAll(temp)
	put := func(name string, write func(w *bufio.Writer) error) error {
		return replace(temp, filepath.Join(o.Dir, name), write)
	}
	var rows [][]float64
	err = put(RunsFile, func(runs *bufio.Writer) error {
		return put(CurvesFile, func(curves *bufio.Writer) error {
			return put(LearnedFile, func(learned *bufio.Writer) error {
				var err error
				rows, err = s.tables(ctx, o.Workers, [3]io.Writer{runs, curves, learned})
				return err
			})
		})
	})
	if err != nil {
		return rep, err
	}
	sum, err := summarize(ctx, c, rep, s.programs, rows, o.Workers)
	if err != nil {
		return rep, err
	}
	if err := put("summary.json", func(w *bufio.Writer) error { return writeJSON(w, sum) }); err != nil {
		return rep, err
	}
	if err := put("summary.csv", sum.csv); err != nil {
		return rep, err
	}
	if err := put("summary.md", sum.Markdown); err != nil {
		return rep, err
	}
	rep.Final = true
	return rep, nil
}

// report says what is there and what is not. Failures are those of the shard.
func (s *store) report(shard Shard) Report {
	rep := Report{Total: s.cfg.Jobs()}
	seeds := len(s.cfg.Seeds)
	for i := range s.cfg.Cells {
		gone := 0
		for k, seed := range s.cfg.Seeds {
			job := i*seeds + k
			if s.at[job].size > 0 {
				continue
			}
			gone++
			if msg, ok := s.failed[job]; ok && job%shard.Count == shard.Index {
				rep.Failed++
				if len(rep.Failures) < 20 {
					rep.Failures = append(rep.Failures, fmt.Sprintf("%s, seed %d: %s", s.cfg.Cells[i].ID, seed, strings.Join(strings.Fields(msg), " ")))
				}
			}
		}
		rep.Missing += gone
		if gone > 0 && len(rep.Gaps) < 20 {
			rep.Gaps = append(rep.Gaps, fmt.Sprintf("%s: %d of %d seeds", s.cfg.Cells[i].ID, gone, seeds))
		}
	}
	if rep.Missing > 0 {
		rep.Damaged = s.bad // else other records took their place
	}
	return rep
}

// parallel calls f for 0 to n−1 on several goroutines; worker counts these. The
// context's end ends it.
func parallel(ctx context.Context, workers, n int, f func(worker, i int) error) error {
	var next atomic.Int64
	group, gctx := errgroup.WithContext(ctx)
	for w := range min(workers, n) {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := gctx.Err(); err != nil {
					return err
				}
				if err := f(w, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// batch is how many runs are formatted before they are written.
const batch = 256

// tables writes the rows, curves and learned quantities of all runs. It returns
// the rows, by job.
func (s *store) tables(ctx context.Context, workers int, to [3]io.Writer) ([][]float64, error) {
	c := s.cfg
	for k, head := range [3][]string{
		slices.Concat([]string{"cell", "seed"}, c.Axes, figureNames(c.x.Figures())),
		append([]string{"cell", "seed", "epoch"}, figureNames(c.x.CurveFigures())...),
		{"cell", "seed", "what", "source", "at", "learned", "exact"},
	} {
		w := csv.NewWriter(to[k])
		w.Write(head)
		if w.Flush(); w.Error() != nil {
			return nil, w.Error()
		}
	}
	in := make([]reader, workers)
	for i := range in {
		in[i].store = s
		defer in[i].close()
	}
	rows := make([][]float64, c.Jobs())
	out := make([][3]bytes.Buffer, min(batch, c.Jobs()))
	for first := 0; first < c.Jobs(); first += batch {
		n := min(batch, c.Jobs()-first)
		err := parallel(ctx, workers, n, func(w, i int) error {
			job := first + i
			if s.at[job].size == 0 {
				return nil
			}
			res, err := in[w].read(job)
			if err == nil {
				rows[job] = res.Row
				c.format(&out[i], job, res)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for i := range n {
			for k := range to {
				if _, err := out[i][k].WriteTo(to[k]); err != nil {
					return nil, err
				}
			}
		}
	}
	return rows, nil
}

// format makes the lines of a run for each table.
func (c *Config) format(to *[3]bytes.Buffer, job int, res Result) {
	cell, seed := c.at(job)
	id := []string{cell.ID, strconv.FormatUint(seed, 10)}
	var row []string
	put := func(w *csv.Writer, figures ...float64) { // to a buffer, which does not fail
		for _, v := range figures {
			row = append(row, strconv.FormatFloat(v, 'g', -1, 64))
		}
		w.Write(row)
		row = row[:0]
	}
	w := csv.NewWriter(&to[0])
	row = append(row, id...)
	for _, a := range c.Axes {
		text := ""
		if cell.Has(a) {
			text = FormatValue(cell.Value(a))
		}
		row = append(row, text)
	}
	put(w, res.Row...)
	w.Flush()
	w = csv.NewWriter(&to[1])
	for _, p := range res.Curve {
		row = append(append(row, id...), strconv.Itoa(p.Epoch))
		put(w, p.Values...)
	}
	w.Flush()
	w = csv.NewWriter(&to[2])
	for _, p := range res.Learned {
		row = append(append(row, id...), p.What, p.Source)
		put(w, p.At, p.Learned, p.Exact)
	}
	w.Flush()
}
