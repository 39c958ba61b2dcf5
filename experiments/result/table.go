// Package result holds the output that all commands share: a table of cells
// and the report of a comparison, each as table, markdown, csv or json.
package result

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"ephemera/internal/files"
	"ephemera/internal/plain"
)

// Format is a way to print.
type Format string

// The formats.
const (
	Text     Format = "table"
	Markdown Format = "markdown"
	CSV      Format = "csv"
	JSON     Format = "json"
)

// Table is a rectangle of text. The first column is aligned left, the others,
// which hold figures, right, unless Left names them.
type Table struct {
	Header []string     `json:"header"`
	Rows   [][]string   `json:"rows"`
	Left   map[int]bool `json:"-"` // further columns that hold words
}

// Column is a column of a table that has a line for each of some rows.
type Column[Row any] struct {
	Head string
	Cell func(Row) string
}

// Tabulate returns the table of rows, without the columns that no row fills.
func Tabulate[Row any](rows []Row, columns []Column[Row]) *Table {
	t := &Table{Rows: make([][]string, len(rows))}
	for _, c := range columns {
		if slices.ContainsFunc(rows, func(row Row) bool { return c.Cell(row) != "" }) {
			t.Header = append(t.Header, c.Head)
			for k, row := range rows {
				t.Rows[k] = append(t.Rows[k], c.Cell(row))
			}
		}
	}
	return t
}

// Add appends a row: text as it is, numbers in as many digits as they have, and nothing
// for a number that is missing or not finite. It panics if the row is not as long
// as the header.
func (t *Table) Add(cells ...any) {
	if len(cells) != len(t.Header) {
		panic(fmt.Sprintf("result: row of %d cells under %d headings", len(cells), len(t.Header)))
	}
	row := make([]string, len(cells))
	for i, cell := range cells {
		switch v := cell.(type) {
		case float64:
			row[i] = RatioOf(v).Text(exact)
		case Ratio:
			row[i] = v.Text(exact)
		default:
			row[i] = fmt.Sprint(v)
		}
	}
	t.Rows = append(t.Rows, row)
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Marked returns the name of a row, with a mark where its crawls cost more than the
// budget.
func Marked(name string, over bool) string {
	if over {
		return name + " *"
	}
	return name
}

// fit returns the table with the columns that have room in that width, those named
// first before the others, and the headings of what is left out.
func (t *Table) fit(width int, first []string) (short *Table, left []string) {
	has := make([]bool, len(t.Header))
	used := 0
	for _, head := range append(slices.Clone(first), t.Header...) {
		k := slices.Index(t.Header, head)
		if k < 0 || has[k] {
			continue
		}
		wide := utf8.RuneCountInString(head) + 2
		for _, row := range t.Rows {
			wide = max(wide, utf8.RuneCountInString(row[k])+2)
		}
		if has[k] = used+wide <= width; has[k] {
			used += wide
		}
	}
	short = &Table{Rows: make([][]string, len(t.Rows)), Left: map[int]bool{}}
	for k, head := range t.Header {
		if !has[k] {
			left = append(left, head)
			continue
		}
		short.Left[len(short.Header)] = t.Left[k]
		short.Header = append(short.Header, head)
		for r, row := range t.Rows {
			short.Rows[r] = append(short.Rows[r], row[k])
		}
	}
	return short, left
}

// Write prints the table as CSV, Markdown or, in any other form, as text.
func (t *Table) Write(w io.Writer, f Format) error {
	if f == CSV {
		return csv.NewWriter(w).WriteAll(append([][]string{t.Header}, t.Rows...))
	}
	align := make(tw.Alignment, len(t.Header))
	for i := range align {
		align[i] = tw.AlignRight
		if i == 0 || t.Left[i] {
			align[i] = tw.AlignLeft
		}
	}
	opts := []tablewriter.Option{
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignmentConfig(tw.CellAlignment{PerColumn: align}),
		tablewriter.WithRowAlignmentConfig(tw.CellAlignment{PerColumn: align}),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
	}
	if f == Markdown {
		opts = append(opts, tablewriter.WithRenderer(renderer.NewMarkdown()))
	} else {
		opts = append(opts, tablewriter.WithRendition(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Lines: tw.Lines{
					ShowTop: tw.Off, ShowBottom: tw.Off, ShowHeaderLine: tw.On, ShowFooterLine: tw.Off,
				},
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off},
			},
		}))
	}
	var b strings.Builder
	table := tablewriter.NewTable(&b, opts...)
	table.Header(t.Header)
	for _, r := range t.Rows {
		r = slices.Clone(r)
		for i := range r {
			if r[i] = plain.Text(r[i]); f == Markdown {
				r[i] = strings.ReplaceAll(r[i], "|", `\|`)
			}
		}
		if err := table.Append(r); err != nil {
			return err
		}
	}
	if err := table.Render(); err != nil {
		return err
	}
	_, err := io.WriteString(w, padding.ReplaceAllString(b.String(), ""))
	return err
}

// padding stands at the ends of lines.
var padding = regexp.MustCompile(`(?m) +$`)

// Document is what a command prints: in JSON its Value, in CSV its Rows, and
// otherwise Table with the notes and More below it.
type Document struct {
	Value any
	Rows  *Table
	Table *Table
	First []string // headings of the columns that stay where a terminal has no room for all
	Notes []string // paragraphs; "" for none
	More  *Table   // nil for none
}

// Printed is what has a Document.
type Printed interface{ Document() Document }

// terminal is the width of one.
const terminal = 120

// Print writes x in a form. In text the table has as many columns as a terminal
// has room for, and a note names the others.
func Print(w io.Writer, x Printed, f Format) error {
	d := x.Document()
	switch f {
	case JSON:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(d.Value)
	case CSV:
		return d.Rows.Write(w, f)
	}
	table, notes := d.Table, slices.Clone(d.Notes)
	if f == Text {
		var left []string
		if table, left = table.fit(terminal, d.First); left != nil {
			said := fmt.Sprintf("Left out for want of room: %s; -format markdown has them.", strings.Join(left, ", "))
			notes = append(notes, said)
		}
	}
	var b bytes.Buffer
	if err := table.Write(&b, f); err != nil {
		return err
	}
	for _, n := range notes {
		if n != "" {
			fmt.Fprintf(&b, "\n%s\n", plain.Lines(n))
		}
	}
	if d.More != nil {
		b.WriteByte('\n')
		if err := d.More.Write(&b, f); err != nil {
			return err
		}
	}
	_, err := b.WriteTo(w)
	return err
}

// formats are those of files.
var formats = map[string]Format{".csv": CSV, ".json": JSON, ".md": Markdown}

// Put prints into files of a directory, by their names, in the forms that these end in, and
// removes what processes that were killed left there of files that are whole by now.
func Put(dir string, all map[string]Printed) error {
	var errs []error
	for name, x := range all {
		var b bytes.Buffer
		errs = append(errs, Print(&b, x, formats[filepath.Ext(name)]), files.Put(filepath.Join(dir, name), b.Bytes()))
	}
	return errors.Join(append(errs, files.Tidy(dir))...)
}

var (
	// results are the files of train, bench and sweep, and of compare in Python.
	results = []string{
		"command.txt", "result.json", "result.md", "result.txt", "metrics.csv", "thresholds.csv", "papers.json",
		"papers.md", "summary.json", "summary.csv", "summary.md", "runs.csv", "curves.csv", "learned.csv",
	}
	// marks are those of which each of them puts one, next to the directory of runs.
	marks = []string{"command.txt", "runs.json", "summary.json"}
)

// Remove removes what an earlier command put into a directory of results, but for what will be put
// there now: it would be read with that. In a directory in which none has put anything, files of these
// names are somebody else's, and stay.
func Remove(dir string, but map[string]Printed) error {
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil && but[name] == nil
	}
	if !there("runs") || !slices.ContainsFunc(marks, there) {
		return nil
	}
	var errs []error
	for _, name := range results {
		if there(name) {
			errs = append(errs, os.Remove(filepath.Join(dir, name)))
		}
	}
	return errors.Join(errs...)
}

// Document implements Printed: a table alone.
func (t *Table) Document() Document { return Document{Rows: t, Table: t} }
