package sweep

import (
	"bufio"
	"encoding/csv"
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
	w := csv.NewWriter(to)
	w.Write([]string{"cell", "figure", "unit", "aggregate", "n", "value", "lo", "hi", "warning"})
	num := func(v float64) string {
		if math.IsNaN(v) {
			return "" // there is none
		}
		return FormatValue(v)
	}
	put := func(cell string, f Figure, aggregate string, e stats.Estimate) {
		w.Write([]string{cell, f.Name, f.Unit, aggregate, strconv.Itoa(e.N), num(e.Value), num(e.Lo), num(e.Hi), e.Warning})
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
	w.Flush()
	return w.Error()
}

// shown returns the columns of the short table and of what warnings are about.
func (s *Summary) shown() []string {
	if slices.Contains(s.Show, s.Metric) {
		return s.Show
	}
	return append(slices.Clone(s.Show), s.Metric)
}

// Warnings returns each warning of the summary once, with the figures and cells
// that it is about unless it is about all.
func (s *Summary) Warnings() []string {
	var order []string
	of := map[string][]string{}
	for _, c := range s.Cells {
		for _, f := range s.shown() {
			w := c.Mean[s.Column(f)].Warning
			if w == "" {
				continue
			}
			if of[w] == nil {
				order = append(order, w)
			}
			of[w] = append(of[w], f+" of "+c.ID)
		}
	}
	for i, w := range order {
		if len(of[w]) < len(s.shown())*len(s.Cells) {
			order[i] += ": " + some(of[w])
		}
	}
	if s.Missing > 0 {
		order = append(order, fmt.Sprintf("%d of %d runs are missing", s.Missing, s.Missing+s.Runs))
	}
	return order
}

// compared reports whether any cell is compared with the reference.
func (s *Summary) compared() bool {
	return slices.ContainsFunc(s.Cells, func(c Row) bool { return c.Diff != nil })
}

// Head and Body are the short table: one row per cell, the shown figures with
// their intervals, and the comparison with the reference.
func (s *Summary) Head() []string {
	head := []string{"cell", "n"}
	for _, name := range s.Show {
		if u := s.Figures[s.Column(name)].Unit; u != "" {
			name += ", " + u
		}
		head = append(head, name)
	}
	head = append(head, "IQM of "+s.Metric)
	if s.compared() {
		head = append(head, s.Metric+" − "+s.Reference, "P(better)")
	}
	return head
}

// Body returns row i of the short table.
func (s *Summary) Body(i int) []string {
	c := s.Cells[i]
	row := []string{c.ID, strconv.Itoa(c.IQM.N)}
	for _, name := range s.Show {
		row = append(row, c.Mean[s.Column(name)].String())
	}
	row = append(row, c.IQM.String())
	switch {
	case c.Diff != nil:
		row = append(row, c.Diff.String(), c.Improve.String())
	case s.compared() && c.ID == s.Reference:
		row = append(row, "reference", "")
	case s.compared():
		row = append(row, "", "")
	}
	return row
}

// Markdown writes the summary for readers.
func (s *Summary) Markdown(w *bufio.Writer) error {
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
	t := result.Table{Header: s.Head()}
	for i := range s.Cells {
		t.Add(s.Body(i)...)
	}
	if err := t.Write(w, result.Markdown); err != nil || len(s.Groups) == 0 {
		return err
	}
	_, group := split(s.Group)
	fmt.Fprintf(w, "\n%s, pooled by %s (stratified over cells):\n\n", s.Metric, s.Group)
	t = result.Table{Header: []string{group, "cells", "mean", "IQM"}}
	for _, g := range s.Groups {
		t.Add(g.Value, strconv.Itoa(g.Cells), g.Mean.String(), g.IQM.String())
	}
	return t.Write(w, result.Markdown)
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
	t := result.Table{Header: s.Head()}
	for _, i := range shown {
		t.Add(s.Body(i)...)
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
	type span struct{ at, lo, hi float64 }
	var (
		m     = s.Column(s.Metric)
		spans = make([]span, len(cells))
		lo    = math.Inf(1)
		hi    = math.Inf(-1)
		name  = 0
	)
	for k, i := range cells {
		e := s.Cells[i].Mean[m]
		spans[k] = span{e.Value, e.Lo, e.Hi}
		if math.IsNaN(e.Lo) || math.IsNaN(e.Hi) {
			spans[k] = span{e.Value, e.Value, e.Value}
		}
		name = max(name, utf8.RuneCountInString(s.Cells[i].ID))
		if !math.IsNaN(e.Value) {
			lo, hi = min(lo, spans[k].lo), max(hi, spans[k].hi)
		}
	}
	if !(lo < hi) || math.IsInf(hi-lo, 0) {
		return
	}
	// A file may say that a value lies outside of its interval.
	place := func(v float64) int { return min(max(0, int(math.Round((v-lo)/(hi-lo)*(width-1)))), width-1) }
	fmt.Fprintf(w, "%*s  %s\n", name, "", s.Metric)
	for k, i := range cells {
		line := []rune(strings.Repeat(" ", width))
		if e := spans[k]; !math.IsNaN(e.at) {
			for at := place(e.lo); at <= place(e.hi); at++ {
				line[at] = '─'
			}
			line[place(e.at)] = '●'
		}
		fmt.Fprintf(w, "%-*s  %s\n", name, s.Cells[i].ID, strings.TrimRight(string(line), " "))
	}
	left, right := stats.Format(lo), stats.Format(hi)
	fmt.Fprintf(w, "%*s  %s%*s\n", name, "", left, width-utf8.RuneCountInString(left), right)
}
