// Package report makes pages of results: of a sweep, of what train and bench
// wrote, of whatever fills a [Page]. A page is one HTML file that needs nothing
// else, and the same figures as SVG and PNG.
package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"math"
	"strconv"
	"strings"

	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// Page is a report as data.
type Page struct {
	Title     string
	Question  string // paragraphs, between empty lines
	Answer    string
	Notes     []string // below the answer
	Warnings  []string
	Sections  []Section
	Command   string   // that makes the page again; a line each
	Footnotes []string // below the command
	Config    string   // what was run, in full
}

// Section is a part of a page: figures, of which one is shown at a time, and a
// table, either of which may be missing.
type Section struct {
	Title   string        `json:"-"`
	Notes   []string      `json:"-"`
	Figures []plot.Figure `json:"figures"`
	Table   *Table        `json:"table"`
}

// Table is a table that readers can sort by each column, and filter. Its first
// column names the rows; where it has the names of series, it draws and hides
// them.
type Table struct {
	Head      []Column `json:"head"`
	Rows      [][]Cell `json:"rows"`
	Draws     bool     `json:"draws,omitempty"`
	Reference string   `json:"reference,omitempty"` // name of the row that others are compared with
}

// NewTable begins a table.
func NewTable(head ...string) *Table {
	t := &Table{}
	for _, name := range head {
		t.Head = append(t.Head, Column{Name: name})
	}
	return t
}

// tableOf is a table as it is printed, whose cells behind the first are numbers
// where they read as such.
func tableOf(plain *result.Table) *Table {
	t := NewTable(plain.Header...)
	for _, row := range plain.Rows {
		var cells []Cell
		for k, text := range row {
			c := Words(text)
			if v, err := strconv.ParseFloat(text, 64); err == nil && k > 0 {
				c = Value(text, v)
			}
			cells = append(cells, c)
		}
		t.Add(cells...)
	}
	return t
}

// Plain returns the first rows of the table as it is printed.
func (t *Table) Plain(rows int) *result.Table {
	p := &result.Table{Left: map[int]bool{}}
	for k, c := range t.Head {
		p.Header = append(p.Header, c.Name)
		p.Left[k] = len(t.Rows) > 0 && t.Rows[0][k].Value == nil
	}
	for _, r := range t.Rows[:min(rows, len(t.Rows))] {
		var row []string
		for _, c := range r {
			row = append(row, c.Text)
		}
		p.Add(row...)
	}
	return p
}

// Add appends a row.
func (t *Table) Add(row ...Cell) { t.Rows = append(t.Rows, row) }

// Column is the heading of a column.
type Column struct {
	Name string `json:"name"`
	Help string `json:"help,omitempty"`
}

// Cell is one cell of a table: text, and the value that it is sorted by.
type Cell struct {
	Text  string   `json:"text"`
	Value *float64 `json:"value,omitempty"` // nil: by its text
}

// Words is a cell of words.
func Words(text string) Cell { return Cell{Text: text} }

// Value is a cell of a number, as it is to be read.
func Value(text string, v float64) Cell {
	c := Cell{Text: text}
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		c.Value = &v
	}
	return c
}

// estimated is the cell of an estimate.
func estimated(e stats.Estimate) Cell { return Value(e.String(), e.Value) }

// uPlot (github.com/leeoniya/uPlot, MIT) is carried unchanged from its npm
// package, version 1.6.32.
var (
	//go:embed page/uPlot.iife.min.js
	uplotJS string
	//go:embed page/uPlot.min.css
	uplotCSS string
	//go:embed page/report.js
	pageJS string
	//go:embed page/report.css
	pageCSS string
	//go:embed page/report.html
	pageHTML string

	page = template.Must(template.New("report").Funcs(template.FuncMap{"paragraphs": paragraphs}).Parse(pageHTML))
)

// paragraphs splits a text where a line is empty, and joins the lines of each.
func paragraphs(text string) []string {
	var out []string
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if p := strings.Join(strings.Fields(part), " "); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// HTML returns the page. It loads nothing: script, style and data are in it.
// Figures without anything to draw are left out.
func (p *Page) HTML() ([]byte, error) {
	p.settle()
	styles := 0
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			for _, x := range f.Series {
				styles = max(styles, x.Style+1)
			}
		}
	}
	data, err := json.Marshal(struct { // escapes <, > and &, so that it can stand in a page
		Sections []Section   `json:"sections"`
		Looks    []plot.Look `json:"looks"`
	}{p.Sections, plot.Looks(styles)})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = page.Execute(&b, map[string]any{
		"Page": p, "Data": template.JS(data), "UPlot": template.JS(uplotJS), "Script": template.JS(pageJS),
		"UPlotCSS": template.CSS(uplotCSS), "CSS": template.CSS(pageCSS),
	})
	return b.Bytes(), err
}

// settle fits the figures and leaves out those, and sections, that are empty.
func (p *Page) settle() {
	var sections []Section
	for _, s := range p.Sections {
		figures := []plot.Figure{} // not null for the script
		for _, f := range s.Figures {
			if f.Fit() == nil {
				figures = append(figures, f)
			}
		}
		s.Figures = figures
		if len(figures) > 0 || s.Table != nil && len(s.Table.Rows) > 0 {
			sections = append(sections, s)
		}
	}
	p.Sections = sections
}
