package sweep

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/experiments/stats"
)

// Summary is what a sweep says: summary.json holds it, summary.csv and
// summary.md are written from it.
type Summary struct {
	Head
	Verdict  string               `json:"verdict"` // one sentence, "" where cells are not comparable
	Command  string               `json:"command"` // that repeats the sweep
	Figures  []experiments.Figure `json:"figures"`
	Cells    []Row                `json:"cells"`
	Profile  *Profiles            `json:"profile,omitempty"`
	Runs     int                  `json:"runs"` // that are done
	Missing  int                  `json:"missing"`
	Failures []string             `json:"failures,omitempty"` // cell, seed and error of runs that failed now
	Ran      int                  `json:"-"`                  // runs that were performed now
	Final    bool                 `json:"-"`                  // no runs are left to other shards, and the files are written
}

// Row is one cell of a summary.
type Row struct {
	ID       string           `json:"id"`
	Label    string           `json:"label,omitempty"` // words that the configuration gives
	Hash     string           `json:"hash"`            // names the files of its runs
	Settings map[string]any   `json:"settings"`        // the axes that the cell has
	Mean     []stats.Estimate `json:"mean"`            // one per figure
	IQM      stats.Estimate   `json:"iqm"`             // of the metric
	Diff     *stats.Estimate  `json:"diff,omitempty"`  // metric minus the reference's, same seeds; nil where that solves another problem
	Over     bool             `json:"over,omitempty"`  // its crawls cost more than the budget in some epochs
}

// Profiles are performance profiles of the metric.
type Profiles struct {
	Scores []float64   `json:"scores"`
	Lines  []ProfileOf `json:"lines"`
}

// ProfileOf is the share of runs above each score.
type ProfileOf struct {
	Name  string           `json:"name"`
	Share []stats.Estimate `json:"share"`
}

const (
	profileLines  = 12
	profileScores = 61
)

// bootSeed seeds the intervals: a constant, so that equal records give equal
// files.
const bootSeed = 1

// summarize fills the cells of the summary from the records, nil where a run is
// missing.
func (s *Summary) summarize(c *Config, records []*experiments.Record) {
	of := func(i int) []*experiments.Record { return records[i*len(c.Seeds) : (i+1)*len(c.Seeds)] }
	boot := stats.New(bootSeed)
	for i := range c.Cells {
		s.Cells = append(s.Cells, s.row(c, i, of, boot))
	}
	s.profile(of, boot)
	s.Verdict = s.verdict(of)
}

// row summarizes a cell, whose runs are of(i).
func (s *Summary) row(c *Config, i int, of func(i int) []*experiments.Record, boot *stats.Bootstrap) Row {
	m, cell := s.Column(s.Metric), &c.Cells[i]
	row := Row{ID: cell.ID, Label: cell.Label, Hash: cell.Hash, Settings: map[string]any{}, IQM: boot.IQM(column(of(i), m))}
	for _, key := range c.Axes {
		if v := cell.value(key); v != nil {
			row.Settings[key] = v
		}
	}
	for j := range s.Figures {
		row.Mean = append(row.Mean, boot.Mean(column(of(i), j)))
	}
	row.Over = row.Mean[s.Column(experiments.OverBudget)].Value > 0
	reference := slices.IndexFunc(c.Cells, func(x Cell) bool { return x.ID == c.Reference })
	if i == reference || cell.problem() != c.Cells[reference].problem() {
		return row
	}
	x, y := paired(of(i), of(reference), m)
	d := boot.Paired(x, y)
	row.Diff = &d
	return row
}

// verdict says which cell is the best by the metric of those that keep the
// budget, or that the best two cannot be told apart.
func (s *Summary) verdict(of func(i int) []*experiments.Record) string {
	m := s.Column(s.Metric)
	var kept []int
	for _, i := range s.Ranking() {
		cell := &s.Cells[i]
		if cell.Diff == nil && cell.ID != s.Reference {
			return "" // it solves another problem
		}
		if !cell.Over && !math.IsNaN(cell.Mean[m].Value) {
			kept = append(kept, i)
		}
	}
	say := func(i int) string { return fmt.Sprintf("%s with %s", s.Cells[i].ID, s.Cells[i].Mean[m]) }
	whose := ""
	if len(kept) < len(s.Cells) {
		whose = " of those that keep the budget"
	}
	if len(kept) < 2 {
		return ""
	}
	x, y := paired(of(kept[0]), of(kept[1]), m)
	if !stats.Distinct(x, y, len(kept)) {
		return fmt.Sprintf("The best two cells%s by %s cannot be told apart: %s, and %s.", whose, s.Metric, say(kept[0]), say(kept[1]))
	}
	return fmt.Sprintf("The best cell%s by %s is %s, before %s.", whose, s.Metric, say(kept[0]), say(kept[1]))
}

// profile fills the profiles of the best cells.
func (s *Summary) profile(of func(i int) []*experiments.Record, boot *stats.Bootstrap) {
	var best []int
	values := map[int][]float64{} // of a cell
	for _, i := range s.Ranking() {
		if x := column(of(i), s.Column(s.Metric)); len(x) > 0 && len(best) < profileLines {
			best, values[i] = append(best, i), x
		}
	}
	scores := scale(values)
	if scores == nil {
		return
	}
	s.Profile = &Profiles{Scores: scores}
	for _, i := range slices.Sorted(slices.Values(best)) {
		s.Profile.Lines = append(s.Profile.Lines, ProfileOf{s.Cells[i].ID, boot.Profile(values[i], scores)})
	}
}

// column returns a figure of the runs that are there.
func column(runs []*experiments.Record, figure int) []float64 {
	out, _ := paired(runs, runs, figure)
	return out
}

// paired returns a figure of the seeds that both cells have.
func paired(x, y []*experiments.Record, figure int) (a, b []float64) {
	for k := range x {
		if x[k] != nil && y[k] != nil {
			a, b = append(a, figures[figure].Of(x[k])), append(b, figures[figure].Of(y[k]))
		}
	}
	return a, b
}

// scale returns the scores of profiles, nil where all values are the same.
func scale(values map[int][]float64) []float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, x := range values {
		for _, v := range x {
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
func (s *Summary) Column(figure string) int {
	return slices.Index(figureNames(s.Figures), figure)
}

// Ranking returns the cells from the best mean of the metric to the worst;
// cells without one come last.
func (s *Summary) Ranking() []int {
	m := s.Column(s.Metric)
	order := make([]int, len(s.Cells))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := s.Cells[i].Mean[m].Value, s.Cells[j].Mean[m].Value
		if math.IsNaN(a) || math.IsNaN(b) || !s.Figures[m].Less {
			a, b = b, a // a NaN, which is less than any, comes last
		}
		return cmp.Compare(a, b)
	})
	return order
}

// ReadSummary reads summary.json of a directory.
func ReadSummary(dir string) (*Summary, error) {
	return files.ReadJSON[Summary](filepath.Join(dir, SummaryFile))
}
