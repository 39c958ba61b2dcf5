package sweep

import (
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
	Figures  []experiments.Figure `json:"figures"`
	Cells    []Row                `json:"cells"`
	Scores   []float64            `json:"scores,omitempty"` // of the metric, at which the cells' profiles are
	Runs     int                  `json:"runs"`             // that are done
	Missing  int                  `json:"missing"`
	Failures []string             `json:"failures,omitempty"` // cell, seed and error of runs that failed now
	Ran      int                  `json:"-"`                  // runs that were performed now
	Final    bool                 `json:"-"`                  // no runs are left to other shards, and the files are written
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

// bootSeed seeds the intervals: a constant, so that equal records give equal
// files.
const bootSeed = 1

// summarize fills the cells of the summary from the records, nil where a run is
// missing.
func (s *Summary) summarize(c *Config, records []*experiments.Record) {
	n, metric, boot := c.Seeds, s.Column(s.Metric), stats.New(bootSeed)
	groups := make([]experiments.Group, len(c.Cells))
	reference := slices.IndexFunc(c.Cells, func(x Cell) bool { return x.ID == c.Reference })
	same := true // all cells solve one problem
	for i := range c.Cells {
		groups[i] = experiments.Group{Name: c.Cells[i].ID, Records: records[i*n : (i+1)*n], Seeds: n, Figures: s.Figures}
		if c.Cells[i].problem() != c.Cells[reference].problem() {
			same = false
		} else if i != reference {
			groups[i].Than = &groups[reference]
		}
	}
	sum := experiments.Summarize(groups, metric, boot)
	s.Scores = scale(groups, metric)
	for i, cell := range c.Cells {
		row := Row{sum.Rows[i], cell.Label, cell.Hash, map[string]any{}, boot.Profile(groups[i].Values(metric), s.Scores)}
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

// ReadSummary reads the summary of a directory.
func ReadSummary(dir string) (*Summary, error) {
	return files.ReadJSON[Summary](filepath.Join(dir, SummaryFile))
}
