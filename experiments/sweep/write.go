package sweep

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// csv writes one row per cell and aggregate.
func (s *Summary) csv(to *bufio.Writer) error {
	t := result.Table{Header: []string{"cell", "figure", "unit", "aggregate", "n", "value", "lo", "hi", "warning"}}
	put := func(cell string, f Figure, aggregate string, e stats.Estimate) {
		row := []string{cell, f.Name, f.Unit, aggregate, strconv.Itoa(e.N)}
		for _, v := range []float64{e.Value, e.Lo, e.Hi} {
			text := FormatValue(v)
			if math.IsNaN(v) {
				text = "" // there is none
			}
			row = append(row, text)
		}
		t.Add(append(row, e.Warning)...)
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
	_, group := split(s.Group)
	for _, g := range s.Groups {
		put(group+"/"+g.Value, m, "pooled mean", g.Mean)
		put(group+"/"+g.Value, m, "pooled iqm", g.IQM)
	}
	return t.Write(to, result.CSV)
}

// Warnings returns each warning about the metric and the shown figures once,
// with the figures and cells that it is about unless it is about all.
func (s *Summary) Warnings() []string {
	shown := s.Show
	if !slices.Contains(shown, s.Metric) {
		shown = append(slices.Clone(shown), s.Metric)
	}
	var order []string
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
	}
	for i, w := range order {
		if len(of[w]) < len(shown)*len(s.Cells) {
			order[i] += ": " + some(of[w])
		}
	}
	if s.Missing > 0 {
		order = append(order, fmt.Sprintf("%d of %d runs are missing", s.Missing, s.Missing+s.Runs))
	}
	return order
}

// Table is the short table, one row per cell, with intervals: the shown figures,
// and the comparison with the reference where there is any.
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
		row := []string{c.ID, strconv.Itoa(c.IQM.N)}
		for _, name := range s.Show {
			row = append(row, c.Mean[s.Column(name)].String())
		}
		row = append(row, c.IQM.String())
		switch {
		case !compared:
		case c.Diff != nil:
			row = append(row, c.Diff.String(), c.Improve.String())
		case c.ID == s.Reference:
			row = append(row, "reference", "")
		default:
			row = append(row, "", "")
		}
		t.Add(row...)
	}
	return t
}

// Pools is the table of the groups.
func (s *Summary) Pools() *result.Table {
	_, group := split(s.Group)
	t := &result.Table{Header: []string{group, "cells", "mean", "IQM"}}
	for _, g := range s.Groups {
		t.Add(g.Value, strconv.Itoa(g.Cells), g.Mean.String(), g.IQM.String())
	}
	return t
}

// markdown writes the summary for readers.
func (s *Summary) markdown(w *bufio.Writer) error {
	fmt.Fprintf(w, "# %s\n\n", result.MarkdownText(s.Name))
	if s.Question != "" {
		fmt.Fprintf(w, "%s\n\n", result.MarkdownText(s.Question))
	}
	if s.Answer != "" {
		fmt.Fprintf(w, "**%s**\n\n", result.MarkdownText(s.Answer))
	}
	fmt.Fprintf(w, "%d runs: %d cells, %d seeds. Means over seeds with 95 %% bootstrap intervals; differences pair the runs of one seed. Configuration %s.\n", s.Runs, len(s.Cells), len(s.Seeds), s.Configuration)
	for _, r := range s.Revisions {
		fmt.Fprintf(w, "Program %s.\n", result.MarkdownText(r))
	}
	for _, warning := range s.Warnings() {
		fmt.Fprintf(w, "\nWarning: %s.\n", result.MarkdownText(warning))
	}
	w.WriteByte('\n')
	for _, g := range s.Gaps {
		fmt.Fprintf(w, "- missing: %s\n", result.MarkdownText(g))
	}
	for _, f := range s.Failures {
		fmt.Fprintf(w, "- failed: %s\n", result.MarkdownText(f))
	}
	if s.Missing > 0 {
		w.WriteByte('\n')
	}
	if err := s.Table().Write(w, result.Markdown); err != nil || len(s.Groups) == 0 {
		return err
	}
	fmt.Fprintf(w, "\n%s, pooled by %s (stratified over cells):\n\n", s.Metric, s.Group)
	return s.Pools().Write(w, result.Markdown)
}

// textRows is how many cells the terminal shows.
const textRows = 40

// Text writes the summary for a terminal: the short table, the metric of each
// cell as a point between the ends of its interval, warnings and the answer.
func (s *Summary) Text(w io.Writer) error {
	shown := s.Ranking()
	more := ""
	if len(shown) > textRows {
		shown = shown[:textRows]
		more = fmt.Sprintf("The %d best of %d cells; summary.md has all.\n", textRows, len(s.Cells))
	} else {
		slices.Sort(shown)
	}
	all := s.Table()
	t := result.Table{Header: all.Header}
	for _, i := range shown {
		t.Add(all.Rows[i]...)
	}
	if err := t.Write(w, result.Text); err != nil {
		return err
	}
	fmt.Fprintln(w, more)
	s.dots(w, shown)
	for _, warning := range s.Warnings() {
		fmt.Fprintf(w, "\nWarning: %s.", warning)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", s.Answer)
	return err
}

// dots draws the metric of the cells on one scale.
func (s *Summary) dots(w io.Writer, cells []int) {
	const width = 50
	name, lo, hi := 0, math.Inf(1), math.Inf(-1)
	span := func(i int) (from, at, to float64) {
		e := s.Cells[i].Mean[s.Column(s.Metric)]
		if math.IsNaN(e.Lo) || math.IsNaN(e.Hi) {
			return e.Value, e.Value, e.Value
		}
		return e.Lo, e.Value, e.Hi
	}
	for _, i := range cells {
		name = max(name, utf8.RuneCountInString(s.Cells[i].ID))
		if from, at, to := span(i); !math.IsNaN(at) {
			lo, hi = min(lo, from), max(hi, to)
		}
	}
	if !(lo < hi) || math.IsInf(hi-lo, 0) {
		return
	}
	// A file may say that a value lies outside of its interval.
	place := func(v float64) int { return min(max(0, int(math.Round((v-lo)/(hi-lo)*(width-1)))), width-1) }
	fmt.Fprintf(w, "%*s  %s\n", name, "", s.Metric)
	for _, i := range cells {
		line := []rune(strings.Repeat(" ", width))
		if from, at, to := span(i); !math.IsNaN(at) {
			for k := place(from); k <= place(to); k++ {
				line[k] = '─'
			}
			line[place(at)] = '●'
		}
		fmt.Fprintf(w, "%-*s  %s\n", name, s.Cells[i].ID, strings.TrimRight(string(line), " "))
	}
	left, right := stats.Format(lo), stats.Format(hi)
	fmt.Fprintf(w, "%*s  %s%*s\n", name, "", left, width-utf8.RuneCountInString(left), right)
}
