package sweep

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ephemera/experiments/files"
)

// merge writes the final files from the records: always with partial, else
// only when no run is missing. It is the one place that writes them, and goes
// through cells and seeds in the order of the configuration, few curves in
// memory at a time.
func merge(ctx context.Context, c *Config, o Options, partial bool) (rep Report, err error) {
	if _, err := os.Stat(filepath.Join(o.Dir, recordsDir)); errors.Is(err, fs.ErrNotExist) {
		return rep, fmt.Errorf("%s: holds no records: there is no directory records", o.Dir)
	}
	// Two shards that end together may both come here: they write the same.
	err = alone(ctx, o.Dir, func(d *files.Dir) error {
		if err := d.Settle(); err != nil {
			return err
		}
		s, err := scan(ctx, c, o.Dir)
		if err != nil {
			return err
		}
		defer s.close()
		if rep = s.report(o.Shard); rep.Missing > 0 && !partial {
			return nil
		}
		if kinds := slices.Sorted(maps.Keys(s.arithmetic)); len(kinds) > 1 {
			return fmt.Errorf("%s was computed on %s, %s on %s: their figures differ in the last digits; merge shards of machines of one kind", s.arithmetic[kinds[0]], kinds[0], s.arithmetic[kinds[1]], kinds[1])
		}
		if old, err := ReadSummary(o.Dir); err == nil && old.Configuration == c.Hash() && old.Runs > rep.Total-rep.Missing {
			return fmt.Errorf("%s: summary.json is of %d runs, but records/ holds %d; run the sweep again, put the missing records back, or remove summary.json to do without", o.Dir, old.Runs, rep.Total-rep.Missing)
		}
		err = d.Write(func(w []*bufio.Writer) error {
			rows, err := s.tables(ctx, csv.NewWriter(w[0]), csv.NewWriter(w[1]), csv.NewWriter(w[2]))
			if err != nil {
				return err
			}
			sum, err := summarize(ctx, c, rep, s.programs, rows, o.Workers)
			if err != nil {
				return err
			}
			return cmp.Or(writeJSON(w[3], sum), sum.csv(w[4]), sum.markdown(w[5]))
		}, finalFiles...)
		rep.Final = err == nil
		return err
	})
	return rep, err
}

// report says what is there and what is not. Failures are those of the shard.
func (s *store) report(shard Shard) Report {
	const most = 20 // of a list
	rep := Report{Total: s.cfg.Jobs()}
	seeds := len(s.cfg.Seeds)
	for i := range s.cfg.Cells {
		gone := 0
		for k, seed := range s.cfg.Seeds {
			job := i*seeds + k
			if s.at[job].file != nil {
				continue
			}
			gone++
			if msg, ok := s.failed[job]; ok && job%shard.Count == shard.Index {
				if rep.Failed++; rep.Failed <= most {
					rep.Failures = append(rep.Failures, fmt.Sprintf("%s, seed %d: %s", s.cfg.Cells[i].ID, seed, strings.Join(strings.Fields(msg), " ")))
				}
			}
		}
		rep.Missing += gone
		if gone > 0 && len(rep.Gaps) < most {
			rep.Gaps = append(rep.Gaps, fmt.Sprintf("%s: %d of %d seeds", s.cfg.Cells[i].ID, gone, seeds))
		}
	}
	if rep.Missing > 0 {
		rep.Damaged = s.bad // else other records took their place
	}
	return rep
}

// tables writes the rows, curves and learned quantities of all runs. It returns
// the rows, by job.
func (s *store) tables(ctx context.Context, runs, curves, learned *csv.Writer) ([][]float64, error) {
	c := s.cfg
	runs.Write(slices.Concat([]string{"cell", "seed"}, c.Axes, figureNames(c.x.Figures())))
	curves.Write(append([]string{"cell", "seed", "epoch"}, figureNames(c.x.CurveFigures())...))
	learned.Write([]string{"cell", "seed", "what", "source", "at", "learned", "exact"})
	rows := make([][]float64, c.Jobs())
	for job := range rows {
		if s.at[job].file == nil {
			continue
		}
		res, err := s.result(job)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		rows[job] = res.Row
		cell, seed := c.at(job)
		put := func(w *csv.Writer, texts []string, figures ...float64) {
			row := append([]string{cell.ID, strconv.FormatUint(seed, 10)}, texts...)
			for _, v := range figures {
				row = append(row, FormatValue(v))
			}
			w.Write(row)
		}
		put(runs, cell.Texts(c.Axes), res.Row...)
		for _, p := range res.Curve {
			put(curves, []string{strconv.Itoa(p.Epoch)}, p.Values...)
		}
		for _, p := range res.Learned {
			put(learned, []string{p.What, p.Source}, p.At, p.Learned, p.Exact)
		}
	}
	for _, w := range []*csv.Writer{runs, curves, learned} {
		if w.Flush(); w.Error() != nil {
			return nil, w.Error()
		}
	}
	return rows, nil
}
