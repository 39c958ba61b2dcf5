package sweep

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
	put := func(cell string, f Figure, aggregate string, e stats.Estimate) {
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

// Warnings returns each warning about the metric and the shown figures once,
// with the figures and cells that it is about unless it is about all.
func (s *Summary) Warnings() []string {
	shown := s.Show
	if !slices.Contains(shown, s.Metric) {
		shown = append(slices.Clone(shown), s.Metric)
	}
	var order, over []string
	of := map[string][]string{}
	for _, c := range s.Cells {
		for _, f := range shown {
			if w := c.Mean[s.Column(f)].Warning; w != "" {
				if of[w] == nil {
					order = append(order, w)
				}
				of[w] = append(of[w], f+" of "+c.ID)
			}
		}
		if c.Over {
			over = append(over, c.ID)
		}
	}
	for i, w := range order {
		if len(of[w]) < len(shown)*len(s.Cells) {
			order[i] += ": " + some(of[w])
		}
	}
	if over != nil {
		order = append(order, "crawls cost more than the budget in some epochs, marked *: "+some(over))
	}
	if s.Missing > 0 {
		order = append(order, fmt.Sprintf("%d of %d runs are missing", s.Missing, s.Missing+s.Runs))
	}
	return order
}

// some names the first three.
func some(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// Table is the short table, one row per cell, with intervals: the shown figures,
// and the comparison with the reference where there is any. Cells that break the
// budget are marked.
func (s *Summary) Table() *result.Table {
	t := &result.Table{Header: []string{"cell", "n"}, Help: []string{"", ""}}
	column := func(name, help string) { t.Header, t.Help = append(t.Header, name), append(t.Help, help) }
	for _, name := range s.Show {
		f := s.Figures[s.Column(name)]
		column(f.Label(), f.Help)
	}
	column("IQM of "+s.Metric, "")
	compared := slices.ContainsFunc(s.Cells, func(c Row) bool { return c.Diff != nil })
	if compared {
		column(s.Metric+" − "+s.Reference, "")
		column("P(better)", "")
	}
	for _, c := range s.Cells {
		row := []string{c.name(), strconv.Itoa(c.IQM.N)}
		for _, name := range s.Show {
			row = append(row, c.Mean[s.Column(name)].String())
		}
		row = append(row, c.IQM.String())
		if compared {
			diff, improve := s.beside(c)
			row = append(row, diff, improve)
		}
		t.Add(row...)
	}
	return t
}

// name is the id, with a mark where the cell breaks the budget.
func (c Row) name() string {
	if c.Over {
		return c.ID + " *"
	}
	return c.ID
}

// beside says how a cell compares with the reference.
func (s *Summary) beside(c Row) (diff, improve string) {
	switch {
	case c.Diff != nil:
		return c.Diff.String(), c.Improve.String()
	case c.ID == s.Reference:
		return "reference", ""
	}
	return "", ""
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
func (s *Summary) markdown(to io.Writer) error {
	var w strings.Builder
	fmt.Fprintf(&w, "# %s\n\n", result.MarkdownText(s.Name))
	for _, text := range []string{s.Question, s.Verdict} {
		if text != "" {
			fmt.Fprintf(&w, "%s\n\n", result.MarkdownText(text))
		}
	}
	fmt.Fprintf(&w, "%d runs: %d cells, %d seeds. Means over seeds with 95 %% bootstrap intervals; differences pair the runs of one seed. Program %s.\n", s.Runs, len(s.Cells), len(s.Seeds), result.MarkdownText(s.Program))
	for _, warning := range s.Warnings() {
		fmt.Fprintf(&w, "\nWarning: %s.\n", result.MarkdownText(warning))
	}
	w.WriteByte('\n')
	for _, line := range append(slices.Clone(s.Gaps), s.Failures...) {
		fmt.Fprintf(&w, "- missing: %s\n", result.MarkdownText(line))
	}
	if s.Missing > 0 {
		w.WriteByte('\n')
	}
	if err := s.Table().Write(&w, result.Markdown); err != nil {
		return err
	}
	if len(s.Groups) > 0 {
		fmt.Fprintf(&w, "\n%s, pooled by %s (stratified over cells):\n\n", s.Metric, s.Group)
		if err := s.Pools().Write(&w, result.Markdown); err != nil {
			return err
		}
	}
	_, err := io.WriteString(to, w.String())
	return err
}

// What a terminal shows.
const (
	textRows  = 40
	textWidth = 120
)

// text writes the summary for a terminal: the metric and what is shown beside it,
// as far as it fits, warnings and the verdict.
func (s *Summary) text(w io.Writer) error {
	order := s.Ranking()
	more := ""
	if len(order) > textRows {
		order = order[:textRows]
		more = fmt.Sprintf("The %d best of %d cells; -format markdown has all.\n", textRows, len(s.Cells))
	} else {
		slices.Sort(order)
	}
	type column struct {
		head string
		cell func(c Row) string
	}
	figure := func(name string) column {
		return column{name, func(c Row) string { return c.Mean[s.Column(name)].String() }}
	}
	columns := []column{
		{"cell", Row.name},
		{s.Metric, figure(s.Metric).cell},
		{"− " + s.Reference, func(c Row) string { diff, _ := s.beside(c); return diff }},
	}
	for _, name := range s.Show {
		if name != s.Metric {
			columns = append(columns, figure(name))
		}
	}
	columns = append(columns,
		column{"IQM", func(c Row) string { return c.IQM.String() }},
		column{"P(better)", func(c Row) string { _, improve := s.beside(c); return improve }})
	t := &result.Table{Rows: make([][]string, len(order))}
	width := 0
	var left []string // columns that do not fit
	for k, col := range columns {
		cells := []string{}
		wide := utf8.RuneCountInString(col.head)
		filled := false
		for _, i := range order {
			text := col.cell(s.Cells[i])
			cells = append(cells, text)
			wide, filled = max(wide, utf8.RuneCountInString(text)), filled || text != "" && text != "reference"
		}
		if !filled {
			continue
		}
		if width+wide+2 > textWidth && k > 1 {
			left = append(left, col.head)
			continue
		}
		width += wide + 2
		t.Header = append(t.Header, col.head)
		for r := range cells {
			t.Rows[r] = append(t.Rows[r], cells[r])
		}
	}
	if err := t.Write(w, result.Text); err != nil {
		return err
	}
	fmt.Fprintln(w, more)
	if left != nil {
		fmt.Fprintf(w, "Left out for want of room: %s; -format markdown has them.\n", strings.Join(left, ", "))
	}
	for _, warning := range s.Warnings() {
		fmt.Fprintf(w, "Warning: %s.\n", warning)
	}
	_, err := fmt.Fprintln(w, s.Verdict)
	return err
}
