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
	return fmt.Sprintf("%d runs: %d cells, %d seeds. Means over seeds with 95 %% bootstrap intervals; differences pair the runs of one seed.", s.Runs, len(s.Cells), s.Seeds)
}

// long is a table of one row per cell and aggregate.
func (s *Summary) long() *result.Table {
	t := &result.Table{Header: []string{"cell", "figure", "aggregate", "n", "value", "lo", "hi", "warning"}}
	put := func(cell string, f experiments.Figure, aggregate string, e stats.Estimate) {
		t.Add(cell, f.Name, aggregate, strconv.Itoa(e.N), exact(e.Value), exact(e.Lo), exact(e.Hi), e.Warning)
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
	columns := []result.Column[Row]{
		{Head: "cell", Cell: func(c Row) string {
			if c.Over {
				return c.Name + " *"
			}
			return c.Name
		}},
		{Head: "n", Cell: func(c Row) string { return strconv.Itoa(c.IQM.N) }},
	}
	for _, name := range s.Show {
		j := s.Column(name)
		columns = append(columns, result.Column[Row]{Head: name, Cell: func(c Row) string { return c.Mean[j].String() }})
	}
	columns = append(columns,
		result.Column[Row]{Head: "IQM of " + s.Metric, Cell: func(c Row) string { return c.IQM.String() }},
		result.Column[Row]{Head: s.less(), Cell: func(c Row) string {
			if c.Diff == nil {
				return ""
			}
			return c.Diff.String()
		}})
	return result.Tabulate(s.Cells, columns)
}
