package sweep

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"strconv"
)

// Files that a sweep leaves in its directory.
const (
	RunsFile    = "runs.csv"
	CurvesFile  = "curves.csv"
	LearnedFile = "learned.csv"
)

// merge writes the final files from the records: always with partial, else
// only when no run is missing. It is the one place that writes them, and goes
// through cells and seeds in the order of the configuration, one result in
// memory at a time.
func merge(c *Config, r Runner, o Options, partial bool) (Report, error) {
	// Two shards that end together may both come here: they write the same.
	held, err := lock(filepath.Join(o.Dir, "records", "merge.lock"), true, true)
	if err != nil {
		return Report{}, err
	}
	defer held.Close()

	s := newStore(c)
	defer s.close()
	if err := s.scanAll(o.Dir); err != nil {
		return Report{}, err
	}
	rep := s.report()
	if rep.Missing > 0 && !partial {
		return rep, nil
	}
	sweepUp(o.Dir)
	defer sweepUp(o.Dir)

	sum := newSummary(c, r, s, rep, o.workers())
	err = replace(o.Dir, RunsFile, func(runs *bufio.Writer) error {
		return replace(o.Dir, CurvesFile, func(curves *bufio.Writer) error {
			return replace(o.Dir, LearnedFile, func(learned *bufio.Writer) error {
				return tables(c, r, s, sum, csv.NewWriter(runs), csv.NewWriter(curves), csv.NewWriter(learned))
			})
		})
	})
	if err != nil {
		return rep, err
	}
	sum.finish()
	if err := sum.write(o.Dir); err != nil {
		return rep, err
	}
	if o.Parquet {
		if err := writeParquet(c, r, s, o.Dir); err != nil {
			return rep, err
		}
	}
	rep.Final = true
	return rep, nil
}

// report says what is there and what is not.
func (s *store) report() Report {
	rep := Report{Total: s.cfg.Jobs(), Damaged: s.bad}
	seeds := len(s.cfg.Seeds)
	for i := range s.cfg.Cells {
		gone := 0
		for k, seed := range s.cfg.Seeds {
			job := i*seeds + k
			if s.at[job].size > 0 {
				continue
			}
			gone++
			if msg, ok := s.failed[job]; ok {
				rep.Failed++
				if len(rep.Failures) < 20 {
					rep.Failures = append(rep.Failures, fmt.Sprintf("%s, seed %d: %s", s.cfg.Cells[i].ID, seed, oneLine(msg)))
				}
			}
		}
		rep.Missing += gone
		if gone > 0 && len(rep.Gaps) < 20 {
			rep.Gaps = append(rep.Gaps, fmt.Sprintf("%s: %d of %d seeds", s.cfg.Cells[i].ID, gone, seeds))
		}
	}
	return rep
}

// tables writes the rows, curves and learned quantities of all runs and feeds
// the summary.
func tables(c *Config, r Runner, s *store, sum *Summary, runs, curves, learned *csv.Writer) error {
	head := append([]string{"cell", "seed"}, c.Axes...)
	if err := runs.Write(append(head, figureNames(r.Figures())...)); err != nil {
		return err
	}
	if err := curves.Write(append([]string{"cell", "seed", "epoch"}, figureNames(r.CurveFigures())...)); err != nil {
		return err
	}
	if err := learned.Write([]string{"cell", "seed", "what", "source", "at", "learned", "exact"}); err != nil {
		return err
	}
	there := make([]int, 0, c.Jobs())
	for job := range c.Jobs() {
		if s.at[job].size > 0 {
			there = append(there, job)
		}
	}
	next, stop := s.inOrder(there, len(sum.boots) > 1)
	defer stop()
	var row []string
	for i := range c.Cells {
		cell := &c.Cells[i]
		for k, seed := range c.Seeds {
			if s.at[c.job(i, k)].size == 0 {
				continue
			}
			res, err := next()
			if err != nil {
				return err
			}
			if len(res.Row) != len(r.Figures()) {
				return fmt.Errorf("%s, seed %d has %d figures; this program writes %d: it is another version, name another directory with -out", cell.ID, seed, len(res.Row), len(r.Figures()))
			}
			id := []string{cell.ID, strconv.FormatUint(seed, 10)}
			row = append(row[:0], id...)
			for _, a := range c.Axes {
				text := ""
				if cell.Has(a) {
					text = FormatValue(cell.Value(a))
				}
				row = append(row, text)
			}
			if err := runs.Write(appendFigures(row, res.Row)); err != nil {
				return err
			}
			for _, p := range res.Curve {
				row = append(append(row[:0], id...), strconv.Itoa(p.Epoch))
				if err := curves.Write(appendFigures(row, p.Values)); err != nil {
					return err
				}
			}
			for _, p := range res.Learned {
				row = append(append(row[:0], id...), p.What, p.Source)
				if err := learned.Write(appendFigures(row, []float64{p.At, p.Learned, p.Exact})); err != nil {
					return err
				}
			}
			sum.add(k, res.Row)
		}
		sum.endCell(i)
	}
	for _, w := range []*csv.Writer{runs, curves, learned} {
		w.Flush()
		if err := w.Error(); err != nil {
			return err
		}
	}
	return nil
}

func appendFigures(row []string, v []float64) []string {
	for _, x := range v {
		row = append(row, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return row
}
