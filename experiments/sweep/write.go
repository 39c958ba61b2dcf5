package sweep

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// Write prints the summary: for a terminal, or as the files hold it.
func (s *Summary) Write(w io.Writer, f result.Format) error {
	switch f {
	case result.JSON:
		return result.WriteJSON(w, s)
	case result.CSV:
		return s.long().Write(w, f)
	case result.Markdown:
		return s.markdown(w)
	}
	return s.text(w)
}

// long is a table of one row per cell and aggregate.
func (s *Summary) long() *result.Table {
	t := &result.Table{Header: []string{"cell", "figure", "unit", "aggregate", "n", "value", "lo", "hi", "warning"}}
	put := func(cell string, f experiments.Figure, aggregate string, e stats.Estimate) {
		t.Add(cell, f.Name, f.Unit, aggregate, strconv.Itoa(e.N), formatFigure(e.Value), formatFigure(e.Lo), formatFigure(e.Hi), e.Warning)
	}
	m := s.Figures[s.Column(s.Metric)]
	for _, c := range s.Cells {
		for j, e := range c.Mean {
			put(c.ID, s.Figures[j], "mean", e)
		}
		put(c.ID, m, "iqm", c.IQM)
		if c.Diff != nil {
			put(c.ID, m, "minus "+s.Reference, *c.Diff)
			put(c.ID, m, "better than "+s.Reference, *c.Improve)
		}
	}
	group := s.Group[strings.LastIndexByte(s.Group, '.')+1:]
	for _, g := range s.Groups {
		put(group+"/"+g.Value, m, "pooled mean", g.Mean)
		put(group+"/"+g.Value, m, "pooled iqm", g.IQM)
	}
	return t
}

// Warnings returns each warning about the shown figures once.
func (s *Summary) Warnings() []string {
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
	if s.Missing > 0 {
		of[fmt.Sprintf("%d of %d runs are missing", s.Missing, s.Missing+s.Runs)] = true
	}
	return slices.Sorted(maps.Keys(of))
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
		t.Header, t.Help = append(t.Header, f.Label()), append(t.Help, f.Help)
	}
	t.Header, t.Help = append(t.Header, "IQM of "+s.Metric), append(t.Help, "")
	compared := slices.ContainsFunc(s.Cells, func(c Row) bool { return c.Diff != nil })
	if compared {
		t.Header, t.Help = append(t.Header, s.less(), "P(better)"), append(t.Help, "", "")
	}
	for _, c := range s.Cells {
		row := []string{c.ID, strconv.Itoa(c.IQM.N)}
		if c.Over {
			row[0] += " *"
		}
		for _, name := range s.Show {
			row = append(row, c.Mean[s.Column(name)].String())
		}
		row = append(row, c.IQM.String())
		switch {
		case c.Diff != nil:
			row = append(row, c.Diff.String(), c.Improve.String())
		case compared && c.ID == s.Reference:
			row = append(row, "reference", "")
		case compared:
			row = append(row, "", "")
		}
		t.Add(row...)
	}
	return t
}

// Pools is the table of the groups.
func (s *Summary) Pools() *result.Table {
	t := &result.Table{Header: []string{s.Group[strings.LastIndexByte(s.Group, '.')+1:], "cells", "mean", "IQM"}}
	for _, g := range s.Groups {
		t.Add(g.Value, strconv.Itoa(g.Cells), g.Mean.String(), g.IQM.String())
	}
	return t
}

// markdown writes the summary for readers.
func (s *Summary) markdown(w io.Writer) error {
	parts := []string{"# " + s.Name}
	if s.Question != "" {
		parts = append(parts, s.Question)
	}
	if s.Verdict != "" {
		parts = append(parts, "**"+s.Verdict+"**")
	}
	parts = append(parts, fmt.Sprintf("%d runs: %d cells, %d seeds. Means over seeds with 95 %% bootstrap intervals; differences pair the runs of one seed. Program %s.", s.Runs, len(s.Cells), len(s.Seeds), s.Program))
	for _, warning := range s.Warnings() {
		parts = append(parts, "Warning: "+warning+".")
	}
	for _, line := range slices.Concat(s.Gaps, s.Failures) {
		parts = append(parts, "Missing: "+line+".")
	}
	if _, err := fmt.Fprintf(w, "%s\n\n", result.MarkdownText(strings.Join(parts, "\n\n"))); err != nil {
		return err
	}
	if err := s.Table().Write(w, result.Markdown); err != nil || len(s.Groups) == 0 {
		return err
	}
	fmt.Fprintf(w, "\n%s, pooled by %s (stratified over cells):\n\n", s.Metric, s.Group)
	return s.Pools().Write(w, result.Markdown)
}

// textWidth is the width of a terminal.
const textWidth = 120

// text writes the summary for a terminal: of the table as many columns as fit,
// those of the metric first, then warnings and the verdict.
func (s *Summary) text(w io.Writer) error {
	t := s.Table()
	for k := range t.Header {
		t.Header[k], _, _ = strings.Cut(t.Header[k], ", ") // without units
	}
	t, left := t.Fit(textWidth, "cell", s.Metric, s.less())
	var notes []string
	if left != nil {
		notes = append(notes, fmt.Sprintf("Left out for want of room: %s; -format markdown has them.", strings.Join(left, ", ")))
	}
	for _, warning := range s.Warnings() {
		notes = append(notes, "Warning: "+warning+".")
	}
	if err := t.Write(w, result.Text); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(append(notes, s.Verdict), "\n"))
	return err
}
