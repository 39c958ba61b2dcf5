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
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
	"ephemera/internal/plain"
)

// Run performs the runs of a shard that are missing. When no run is missing, or
// when all of the work is this process's own, it writes what the runs say. Runs
// that fail do not stop it; the summary names them. It returns the summary also where
// that cannot be written. Of a batch that is read only, one run at least has to be done.
func Run(ctx context.Context, c *Config, b experiments.Batch) (*Summary, error) {
	done, err := c.engine.PerformAll(ctx, c.Jobs(), b)
	if err != nil {
		return nil, err
	}
	if b.ReadOnly && !slices.ContainsFunc(done.Records, func(r *experiments.Record) bool { return r != nil }) {
		return nil, fmt.Errorf("%s has none of the %d runs of %s", b.Dir, len(done.Records), c.Name)
	}
	return Summarize(c, done, b)
}

// Jobs returns all runs, those of one cell one after the other.
func (c *Config) Jobs() (jobs []*experiments.Job) {
	for _, cell := range c.Cells {
		jobs = append(jobs, cell.job.UnderSeeds(c.Seeds)...) // from 1 on
	}
	return jobs
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
		for _, p := range r.Pairs {
			learned.Add(cell.ID, seed, p.Source, p.Learned, p.Exact)
		}
	}
	all := map[string]result.Printed{
		"runs.csv": runs, "curves.csv": curves, "learned.csv": learned,
		"summary.csv": s, "summary.md": s, SummaryFile: s,
	}
	return errors.Join(result.Remove(dir, all), result.Put(dir, all))
}

// Summary is what a sweep says: summary.json holds it, summary.csv and
// summary.md are written from it.
type Summary struct {
	Head
	Verdict  string               `json:"verdict"` // one sentence, "" where cells are not comparable
	Figures  []experiments.Figure `json:"figures"`
	Cells    []Row                `json:"cells"`
	Scores   []float64            `json:"scores,omitempty"` // of the metric, at which the cells' profiles are
	Runs     int                  `json:"runs"`             // that are done
	Missing  int                  `json:"missing"`
	Failures []string             `json:"failures,omitempty"` // cell, seed and error of runs that failed now
	Notes    []string             `json:"notes,omitempty"`    // sentences on the worlds of the runs
	Ran      int                  `json:"-"`                  // runs that were performed now
	// No runs are left to other shards, and the files are written.
	Final bool `json:"-"`
}

// Row is one cell of a summary.
type Row struct {
	experiments.Row
	Label    string         `json:"label,omitempty"` // words that the configuration gives
	Hash     string         `json:"hash"`            // names the files of its runs
	Settings map[string]any `json:"settings"`        // the axes that the cell has
	// Profile is the performance profile: the share of runs above each score.
	Profile []stats.Estimate `json:"profile,omitempty"`
}

const profileScores = 61

// summarize fills the cells of the summary from the records, nil where a run is
// missing.
func (s *Summary) summarize(c *Config, records []*experiments.Record) {
	n, metric := c.Seeds, s.Column(s.Metric)
	groups := make([]experiments.Group, len(c.Cells))
	reference := slices.IndexFunc(c.Cells, func(x Cell) bool { return x.ID == c.Reference })
	same := true // all cells solve one problem
	for i := range c.Cells {
		groups[i] = experiments.Group{
			Name: c.Cells[i].ID, Records: records[i*n : (i+1)*n], Seeds: n, Figures: s.Figures,
		}
		if c.Cells[i].problem() != c.Cells[reference].problem() {
			same = false
		} else if i != reference {
			groups[i].Than = &groups[reference]
		}
	}
	sum := experiments.Summarize(groups, metric)
	s.Scores, s.Notes = scale(groups, metric), append(c.worlds(), sum.Notes...)
	for i, cell := range c.Cells {
		profile := stats.Profile(groups[i].Values(metric), s.Scores)
		row := Row{sum.Rows[i], cell.Label, cell.Hash, map[string]any{}, profile}
		for _, key := range c.Axes {
			if v := cell.value(key); v != nil {
				row.Settings[key] = v
			}
		}
		s.Cells = append(s.Cells, row)
	}
	if same {
		s.Verdict = sum.Verdict
	}
}

// problem says what a cell solves: instance and world, but for what is believed
// of it and for how content arrives.
func (cell *Cell) problem() string {
	r := cell.Run
	return fmt.Sprint(r.Instance.Name, r.Instance.Law, r.Instance.Objective, r.Instance.Budget,
		cmp.Or(r.World.Marks, experiments.UsualWorld.Marks), r.World.Trace, r.World.Epoch, r.World.Decay, r.World.Split,
		r.World.FeedbackDelay == "never")
}

// worlds says which cells play in which world, nothing where all play in one. What a
// policy knows decides it by default, so that policies of one grid may differ.
func (c *Config) worlds() []string {
	var kinds []string
	cells := map[string][]string{}
	for _, cell := range c.Cells {
		kind := cell.Run.World.Kind
		if cells[kind] == nil {
			kinds = append(kinds, kind)
		}
		cells[kind] = append(cells[kind], cell.ID)
	}
	if len(kinds) == 1 {
		return nil
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return len(cells[a]) - len(cells[b]) })
	last := len(kinds) - 1
	var text strings.Builder
	for _, kind := range kinds[:last] {
		fmt.Fprintf(&text, "In world %s: %s. ", kind, strings.Join(cells[kind], ", "))
	}
	return []string{text.String() + "In world " + kinds[last] + ": the other cells. " +
		"Between two worlds a difference is not of the policies alone; world.kind names one for all."}
}

// scale returns the scores of profiles, nil where all values are the same.
func scale(groups []experiments.Group, metric int) []float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, g := range groups {
		for _, v := range g.Values(metric) {
			if !math.IsNaN(v) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if !(lo < hi) {
		return nil
	}
	pad := (hi - lo) / 40
	return floats.Span(make([]float64, profileScores), lo-pad, hi+pad)
}

// Column returns the position of a figure, −1 for none of that name.
func (s *Summary) Column(figure string) int { return slices.Index(figureNames(s.Figures), figure) }

func figureNames(f []experiments.Figure) (names []string) {
	for i := range f {
		names = append(names, f[i].Name)
	}
	return names
}

// SummaryFile is the file of a sweep's Summary, which tells its directory from
// others.
const SummaryFile = "summary.json"

// Document implements [result.Printed].
func (s *Summary) Document() result.Document {
	return result.Document{
		Value: s, Rows: s.long(), Table: s.Table(), First: []string{"cell", s.Metric, s.difference()},
		Notes: slices.Concat([]string{s.Question, s.Sentence()}, s.Notes, s.Warnings(), []string{s.Verdict}),
	}
}

// Sentence says what was run.
func (s *Summary) Sentence() string {
	return fmt.Sprintf("%s: %s, %s. Means over seeds with 95 %% intervals; differences pair the runs of one seed.",
		plain.Count(s.Runs, "run"), plain.Count(len(s.Cells), "cell"), plain.Count(s.Seeds, "seed"))
}

// long is a table of one row per cell and aggregate.
func (s *Summary) long() *result.Table {
	t := &result.Table{Header: []string{"cell", "figure", "aggregate", "n", "value", "lo", "hi", "warning"}}
	put := func(cell string, f experiments.Figure, aggregate string, e stats.Estimate) {
		t.Add(cell, f.Name, aggregate, e.N, e.Value, e.Lo, e.Hi, e.Warning)
	}
	m := s.Figures[s.Column(s.Metric)]
	for _, c := range s.Cells {
		for j, e := range c.Mean {
			put(c.Name, s.Figures[j], "mean", e)
		}
		put(c.Name, m, "iqm", c.IQM)
		if c.Diff != nil {
			put(c.Name, m, "minus "+s.Reference, *c.Diff)
		}
	}
	return t
}

// Warnings are those about the shown figures, and what is missing.
func (s *Summary) Warnings() (all []string) {
	var rows []experiments.Row
	for _, c := range s.Cells {
		rows = append(rows, c.Row)
	}
	var shown []int
	for _, f := range s.Show {
		shown = append(shown, s.Column(f))
	}
	all = experiments.Warnings(rows, shown)
	if s.Missing > 0 {
		all = append(all, fmt.Sprintf("Warning: %d of %d runs are missing.", s.Missing, s.Missing+s.Runs))
	}
	for _, line := range s.Failures {
		all = append(all, "Failed: "+line+".")
	}
	return all
}

// difference is the head of the column of differences.
func (s *Summary) difference() string { return s.Metric + " − " + s.Reference }

// Table is the short table, one row per cell, with intervals: the shown figures,
// and the comparison with the reference where there is any. Cells that break the
// budget are marked.
func (s *Summary) Table() *result.Table {
	return s.table(s.Show, "IQM of "+s.Metric, s.difference(), true)
}

// Worded is the short table with figures in words. Of how many seeds each mean is stands in
// it where that is not the same for all; Explained says the rest.
func (s *Summary) Worded() *result.Table {
	var heads []string
	for _, name := range s.Show {
		heads = append(heads, s.Figures[s.Column(name)].Words)
	}
	words := s.Figures[s.Column(s.Metric)].Words
	return s.table(heads, words+", middle half of the seeds", words+", less that of "+s.Reference, s.runs() == 0)
}

// Explained says what the columns of Worded are.
func (s *Summary) Explained() string {
	text := "Means with 95 % intervals in brackets"
	switch n := s.runs(); {
	case n == 0:
		text += "; n is how many seeds of a cell are done"
	case n < stats.MinSeeds:
		text = fmt.Sprintf("Means over %s in each cell, too few for intervals", plain.Count(n, "seed"))
	default:
		text = fmt.Sprintf("Means over %d seeds in each cell, with 95 %% intervals in brackets where they differ", n)
	}
	return text + ". The middle half of the seeds leaves out the best and the worst quarter (interquartile mean)."
}

// runs returns how many runs each cell has, 0 if not all have as many.
func (s *Summary) runs() int {
	n := s.Cells[0].IQM.N
	if slices.ContainsFunc(s.Cells, func(c Row) bool { return c.IQM.N != n }) {
		return 0
	}
	return n
}

// table is the short table with those headings. Unless the cells have their numbers of runs
// they are left out.
func (s *Summary) table(heads []string, iqm, difference string, numbers bool) *result.Table {
	text := stats.Estimate.Within
	columns := []result.Column[Row]{
		{Head: "cell", Cell: func(c Row) string { return result.Marked(c.Name, c.Over) }},
	}
	if numbers {
		text = stats.Estimate.String
		n := func(c Row) string { return strconv.Itoa(c.IQM.N) }
		columns = append(columns, result.Column[Row]{Head: "n", Cell: n})
	}
	for k, name := range s.Show {
		j := s.Column(name)
		mean := func(c Row) string { return text(c.Mean[j]) }
		columns = append(columns, result.Column[Row]{Head: heads[k], Cell: mean})
	}
	columns = append(columns,
		result.Column[Row]{Head: iqm, Cell: func(c Row) string { return text(c.IQM) }},
		result.Column[Row]{Head: difference, Cell: func(c Row) string {
			if c.Diff == nil {
				return ""
			}
			return text(*c.Diff)
		}})
	return result.Tabulate(s.Cells, columns)
}
