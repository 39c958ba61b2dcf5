package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// Document implements [result.Printed].
func (s *Summary) Document() result.Document {
	d := result.Document{
		Value: s, Rows: s.long(), Table: s.Table(), First: []string{"cell", s.Metric, s.less()},
		Notes: slices.Concat([]string{s.Question, s.Sentence()}, s.Warnings(), []string{s.Verdict}),
	}
	d.Notes = slices.DeleteFunc(d.Notes, func(note string) bool { return note == "" })
	return d
}

// Sentence says what was run.
func (s *Summary) Sentence() string {
	return fmt.Sprintf("%d runs: %d cells, %d seeds. Means over seeds with 95 %% bootstrap intervals; differences pair the runs of one seed.", s.Runs, len(s.Cells), len(s.Seeds))
}

// long is a table of one row per cell and aggregate.
func (s *Summary) long() *result.Table {
	t := &result.Table{Header: []string{"cell", "figure", "aggregate", "n", "value", "lo", "hi", "warning"}}
	put := func(cell string, f experiments.Figure, aggregate string, e stats.Estimate) {
		t.Add(cell, f.Name, aggregate, strconv.Itoa(e.N), formatFigure(e.Value), formatFigure(e.Lo), formatFigure(e.Hi), e.Warning)
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

// Warnings returns each warning about the shown figures once, and what is missing.
func (s *Summary) Warnings() (all []string) {
	of := map[string]bool{}
	for _, c := range s.Cells {
		for _, f := range s.Show {
			of[c.Mean[s.Column(f)].Warning] = true
		}
		if c.Over {
			of["crawls of cells marked * cost more than the budget in some epochs"] = true
		}
	}
	delete(of, "") // none
	for _, warning := range slices.Sorted(maps.Keys(of)) {
		all = append(all, "Warning: "+warning+".")
	}
	if s.Missing > 0 {
		all = append(all, fmt.Sprintf("Warning: %d of %d runs are missing.", s.Missing, s.Missing+s.Runs))
	}
	for _, line := range s.Failures {
		all = append(all, "Failed: "+line+".")
	}
	return all
}

// less is the head of the column of differences.
func (s *Summary) less() string { return s.Metric + " − " + s.Reference }

// Table is the short table, one row per cell, with intervals: the shown figures,
// and the comparison with the reference where there is any. Cells that break the
// budget are marked.
func (s *Summary) Table() *result.Table {
	t := &result.Table{Header: []string{"cell", "n"}, Help: []string{"", ""}}
	for _, name := range s.Show {
		f := s.Figures[s.Column(name)]
		t.Header, t.Help = append(t.Header, f.Name), append(t.Help, f.Words)
	}
	t.Header, t.Help = append(t.Header, "IQM of "+s.Metric), append(t.Help, "")
	compared := slices.ContainsFunc(s.Cells, func(c Row) bool { return c.Diff != nil })
	if compared {
		t.Header, t.Help = append(t.Header, s.less()), append(t.Help, "")
	}
	for _, c := range s.Cells {
		row := []string{c.Name, strconv.Itoa(c.IQM.N)}
		if c.Over {
			row[0] += " *"
		}
		for _, name := range s.Show {
			row = append(row, c.Mean[s.Column(name)].String())
		}
		row = append(row, c.IQM.String())
		switch {
		case c.Diff != nil:
			row = append(row, c.Diff.String())
		case compared && c.Name == s.Reference:
			row = append(row, "reference")
		case compared:
			row = append(row, "")
		}
		t.Add(row...)
	}
	return t
}
