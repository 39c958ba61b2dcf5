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
	"path/filepath"
	"slices"
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
// through cells and seeds in the order of the configuration, few results in
// memory at a time.
func merge(ctx context.Context, c *Config, r Runner, o Options, partial bool) (Report, error) {
	// Two shards that end together may both come here: they write the same.
	held, err := await(ctx, filepath.Join(o.Dir, "records", "merge.lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, fmt.Errorf("%s: holds no records: there is no directory records", o.Dir)
	}
	if err != nil {
		return Report{}, err
	}
	defer held.Close()

	s := newStore(c)
	defer s.close()
	if err := s.scanAll(ctx, o.Dir); err != nil {
		return Report{}, err
	}
	rep := s.report(o.Shard)
	if rep.Missing > 0 && !partial {
		return rep, nil
	}
	if rep.Missing > 0 {
		if err := keepMore(c, o.Dir, rep.Total-rep.Missing); err != nil {
			return rep, err
		}
	}
	sweepUp(o.Dir)
	defer sweepUp(o.Dir)

	sum := newSummary(ctx, c, r, s, rep, o.workers())
	err = replace(o.Dir, RunsFile, func(runs *bufio.Writer) error {
		return replace(o.Dir, CurvesFile, func(curves *bufio.Writer) error {
			return replace(o.Dir, LearnedFile, func(learned *bufio.Writer) error {
				return tables(ctx, c, r, s, sum, o.workers(), [3]io.Writer{runs, curves, learned})
			})
		})
	})
	if err != nil {
		return rep, err
	}
	sum.finish()
	if err := ctx.Err(); err != nil {
		return rep, err // the summary is of no use
	}
	if err := sum.write(o.Dir); err != nil {
		return rep, err
	}
	rep.Final = true
	return rep, nil
}

// keepMore refuses to replace a summary of more runs than the records still
// hold.
func keepMore(c *Config, dir string, runs int) error {
	old, err := ReadSummary(dir)
	if err == nil && old.Configuration == c.Hash() && old.Runs > runs {
		return fmt.Errorf("%s: summary.json is of %d runs, but records/ holds %d; run the sweep again, put the missing records back, or remove summary.json to do without", dir, old.Runs, runs)
	}
	return nil
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
					rep.Failures = append(rep.Failures, fmt.Sprintf("%s, seed %d: %s", s.cfg.Cells[i].ID, seed, oneLine(msg)))
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

// rows are the lines of some runs for each table, and what the summary takes.
type rows struct {
	tables [3]bytes.Buffer // runs, curves, learned
	jobs   []int
	row    [][]float64
}

// runsPerPiece is how many runs are formatted at a time.
const runsPerPiece = 16

// tables writes the rows, curves and learned quantities of all runs and feeds
// the summary.
func tables(ctx context.Context, c *Config, r Runner, s *store, sum *Summary, workers int, to [3]io.Writer) error {
	head := append([]string{"cell", "seed"}, c.Axes...)
	for k, h := range [3][]string{
		append(head, figureNames(r.Figures())...),
		append([]string{"cell", "seed", "epoch"}, figureNames(r.CurveFigures())...),
		{"cell", "seed", "what", "source", "at", "learned", "exact"},
	} {
		w := csv.NewWriter(to[k])
		w.Write(h)
		w.Flush()
		if err := w.Error(); err != nil {
			return err
		}
	}
	there := make([]int, 0, c.Jobs())
	for job := range c.Jobs() {
		if s.at[job].size > 0 {
			there = append(there, job)
		}
	}
	pieces := slices.Collect(slices.Chunk(there, runsPerPiece))
	cell := 0 // whose runs are being added
	err := ordered(len(pieces), workers, func() func(int) (*rows, error) {
		in := &reader{store: s}
		return func(i int) (*rows, error) { return format(c, r, in, pieces[i]) }
	}, func(p *rows) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for k := range to {
			if _, err := p.tables[k].WriteTo(to[k]); err != nil {
				return err
			}
		}
		for n, job := range p.jobs {
			for ; cell < job/len(c.Seeds); cell++ {
				sum.endCell(cell)
			}
			sum.add(job%len(c.Seeds), p.row[n])
		}
		return nil
	})
	for ; err == nil && cell < len(c.Cells); cell++ {
		sum.endCell(cell)
	}
	return err
}

// format makes the lines of some runs.
func format(c *Config, r Runner, in *reader, jobs []int) (*rows, error) {
	out := &rows{jobs: jobs}
	var w [3]*csv.Writer
	for k := range w {
		w[k] = csv.NewWriter(&out.tables[k]) // neither it nor a buffer fails
	}
	var row []string
	for _, job := range jobs {
		cell, seed := &c.Cells[job/len(c.Seeds)], c.Seeds[job%len(c.Seeds)]
		res, err := in.read(job)
		if err != nil {
			return nil, err
		}
		if len(res.Row) != len(r.Figures()) {
			return nil, fmt.Errorf("%s, seed %d has %d figures; this program writes %d: it is another version, name another directory with -out", cell.ID, seed, len(res.Row), len(r.Figures()))
		}
		for _, p := range res.Curve {
			if len(p.Values) != len(r.CurveFigures()) {
				return nil, fmt.Errorf("%s, seed %d has a curve of %d figures; this program writes %d: it is another version, name another directory with -out", cell.ID, seed, len(p.Values), len(r.CurveFigures()))
			}
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
		w[0].Write(appendFigures(row, res.Row))
		for _, p := range res.Curve {
			row = append(append(row[:0], id...), strconv.Itoa(p.Epoch))
			w[1].Write(appendFigures(row, p.Values))
		}
		for _, p := range res.Learned {
			row = append(append(row[:0], id...), p.What, p.Source)
			w[2].Write(appendFigures(row, []float64{p.At, p.Learned, p.Exact}))
		}
		out.row = append(out.row, res.Row)
	}
	for k := range w {
		w[k].Flush()
	}
	return out, nil
}

func appendFigures(row []string, v []float64) []string {
	for _, x := range v {
		row = append(row, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return row
}
