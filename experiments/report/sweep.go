package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"ephemera/experiments"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/experiments/sweep"
	"ephemera/internal/files"
)

// readSweep makes the page of a sweep.
func readSweep(_ context.Context, dir string) (*Page, error) {
	s, err := files.ReadJSON[sweep.Summary](filepath.Join(dir, sweep.SummaryFile))
	if err != nil {
		return nil, err
	}
	lacks := func(figure string) bool { return s.Column(figure) < 0 }
	short := func(c sweep.Row) bool { return len(c.Mean) != len(s.Figures) || len(c.Profile) > len(s.Scores) }
	if s.Cells == nil || lacks(s.Metric) || slices.ContainsFunc(s.Show, lacks) || slices.ContainsFunc(s.Cells, short) {
		return nil, fmt.Errorf("%s is not that of a sweep", sweep.SummaryFile) // other programs write such a file
	}
	var groups []group // one per cell
	cells := Section{Title: "Cells", Table: s.Worded(), Notes: []string{s.Explained()}, Draws: true}
	for i, cell := range s.Cells {
		g := group{name: cmp.Or(cell.Label, cell.Name), over: cell.Over, style: i}
		cells.Table.Rows[i][0] = result.Marked(g.name, g.over)
		if cell.Name == s.Reference {
			cells.Reference = cells.Table.Rows[i][0]
		}
		for k := range s.Seeds {
			rec, err := experiments.ReadRecord(dir, cell.Hash, uint64(k)+1)
			if err == nil {
				g.records = append(g.records, rec)
			} else if !errors.Is(err, fs.ErrNotExist) { // that run failed
				return nil, err
			}
		}
		groups = append(groups, g)
	}
	p := &Page{
		Title: s.Name, Question: s.Question, Answer: s.Verdict, Config: s.Config, Command: s.Command,
		Notes: append([]string{s.Sentence()}, s.Notes...), Warnings: s.Warnings(),
	}
	if len(s.Cells) <= mostDots {
		cells.Figures = []plot.Figure{dots(s, groups)}
	}
	p.Sections = []Section{cells, along(s), learning(groups), profile(s, groups)}
	return p, nil
}

// mostDots is how many cells a figure of them holds.
const mostDots = 40

// dots draws the metric of every cell, in their order, and as a line what it is a share
// of or the reference has; grey is what breaks the budget.
func dots(s *sweep.Summary, groups []group) plot.Figure {
	j := s.Column(s.Metric)
	var names []string
	against := math.NaN()
	for i, c := range s.Cells {
		names = append(names, result.Marked(groups[i].name, c.Over))
		if c.Name == s.Reference {
			against = c.Mean[j].Value
		}
	}
	words, mark := s.Figures[j].Words, ""
	if slices.ContainsFunc(s.Cells, func(c sweep.Row) bool { return c.Over }) {
		mark = "; * breaks the budget"
	}
	if strings.HasSuffix(s.Metric, "_ratio") {
		against = 1
	}
	f := plot.New("cells", words, "mean, 95 % interval"+mark, "")
	f = Dots(f, names, func(k int) (value, lo, hi float64, style int) {
		if e := s.Cells[k].Mean[j]; s.Cells[k].Over {
			return e.Value, e.Lo, e.Hi, plot.Plain
		} else {
			return e.Value, e.Lo, e.Hi, 0
		}
	})
	if math.IsNaN(against) {
		return f
	}
	return Against(f, against)
}

// symbol returns the last part of a setting's key, as the papers write it.
func symbol(key string) string {
	key = key[strings.LastIndexByte(key, '.')+1:]
	return cmp.Or(map[string]string{"kappa": "κ", "gamma": "γ"}[key], key)
}

// others returns the settings that tell a cell apart, but for one.
func others(s *sweep.Summary, cell int, but string) string {
	var texts []string
	for _, key := range s.Axes {
		if v, ok := s.Cells[cell].Settings[key]; ok && key != but {
			if key == "learner.algorithm" {
				texts = append(texts, fmt.Sprint(v))
			} else {
				texts = append(texts, symbol(key)+" "+fmt.Sprint(v))
			}
		}
	}
	return strings.Join(texts, ", ")
}

// along draws figures along the numeric setting with the most values, three at
// least: a line for each combination of the others.
func along(s *sweep.Summary) Section {
	axis, values := "", make([]float64, 2)
	for _, key := range s.Axes {
		var numbers []float64
		for _, c := range s.Cells {
			if v, isNumber := c.Settings[key].(float64); isNumber {
				numbers = append(numbers, v)
			}
		}
		slices.Sort(numbers)
		if numbers = slices.Compact(numbers); len(numbers) > len(values) {
			axis, values = key, numbers
		}
	}
	out := Section{Title: "Along " + axis, Notes: []string{"Mean over seeds; the band is its 95 % interval."}}
	if axis == "" {
		return out
	}
	least, greatest := values[0], values[len(values)-1]
	kept := map[string]bool{} // lines of which some cell keeps the budget
	for i, c := range s.Cells {
		kept[others(s, i, axis)] = kept[others(s, i, axis)] || !c.Over
	}
	for _, name := range s.Show {
		j := s.Column(name)
		f := plot.New("along-"+name, "What "+symbol(axis)+" does", symbol(axis), s.Figures[j].Words)
		f.X.Log = least > 0 && greatest > 20*least
		for _, v := range values {
			for i, c := range s.Cells {
				if c.Settings[axis] == v {
					f.Of(others(s, i, axis)).AddWithin(v, c.Mean[j].Value, c.Mean[j].Lo, c.Mean[j].Hi)
				}
			}
		}
		f.Series = slices.DeleteFunc(f.Series, func(s plot.Series) bool { return len(s.X) < 2 })
		mark := ""
		for k := range f.Series {
			if line := &f.Series[k]; !kept[line.Name] {
				line.Name, line.Grey, mark = result.Marked(line.Name, true), true, " (* breaks the budget)"
			}
		}
		f.Title += mark
		out.Figures = append(out.Figures, f)
	}
	return out
}

// profile draws the performance profiles.
func profile(s *sweep.Summary, groups []group) Section {
	out := Section{Title: "Performance profile"}
	if s.Scores == nil {
		return out
	}
	metric := s.Figures[s.Column(s.Metric)]
	better := "higher"
	if metric.Less {
		better = "lower"
	}
	out.Notes = []string{fmt.Sprintf("Share of runs whose %s is above τ: the %s a line, the better.", s.Metric, better)}
	f := plot.New("profile", "Performance profile", metric.Words+", τ", "share of runs above τ")
	for i, cell := range s.Cells {
		line := groups[i].series(&f)
		for k, e := range cell.Profile {
			line.AddWithin(s.Scores[k], e.Value, e.Lo, e.Hi)
		}
	}
	out.Figures = []plot.Figure{f}
	return out
}
