package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"ephemera/experiments/files"
)

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
			notes = append(notes, fmt.Sprintf("Left out for want of room: %s; -format markdown has them.", strings.Join(left, ", ")))
		}
	}
	var b bytes.Buffer
	if err := table.Write(&b, f); err != nil {
		return err
	}
	for _, n := range notes {
		if n != "" {
			fmt.Fprintf(&b, "\n%s\n", n)
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

// Put prints into files of a directory, by their names, in the forms that these end in.
func Put(dir string, all map[string]Printed) error {
	var errs []error
	for name, x := range all {
		var b bytes.Buffer
		errs = append(errs, Print(&b, x, formats[filepath.Ext(name)]), files.Put(filepath.Join(dir, name), b.Bytes()))
	}
	return errors.Join(errs...)
}

// Document implements Printed: a table alone.
func (t *Table) Document() Document { return Document{Rows: t, Table: t} }
