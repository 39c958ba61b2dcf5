package env

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Table reads columns of a CSV file by their names, row by row.
type Table struct {
	path    string
	line    int
	file    io.Closer
	rows    *csv.Reader
	columns []int // places of the columns; −1 where there is none
	header  []string
	row     []string
}

// OpenTable opens a file of CSV, plain or compressed by gzip, and reads its
// header. It must have the needed columns, and may have the others; a column of
// the name "a or b" may be called either. Errors name the file and the line.
func OpenTable(path string, needed []string, others ...string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t, err := newTable(path, f, needed, others...)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	t.file = f
	return t, nil
}

func newTable(path string, r io.Reader, needed []string, others ...string) (*Table, error) {
	t := &Table{path: path, line: 1, file: io.NopCloser(nil)}
	text := bufio.NewReader(r)
	if magic, err := text.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		zip, err := gzip.NewReader(text)
		if err != nil {
			return nil, t.unreadable(err)
		}
		text = bufio.NewReader(zip)
	}
	if mark, err := text.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = text.Discard(3) // what was peeked at is there
	}
	t.rows = csv.NewReader(text)
	t.rows.FieldsPerRecord, t.rows.ReuseRecord = -1, true
	columns := strings.Join(needed, " and ")
	header, err := t.rows.Read()
	if err == io.EOF {
		return nil, t.Errorf("the file is empty; needed is a header with the columns %s", columns)
	}
	if err != nil {
		return nil, t.unreadable(err)
	}
	t.header = slices.Clone(header)
	for k, name := range slices.Concat(needed, others) {
		place := -1
		for option := range strings.SplitSeq(name, " or ") {
			if place < 0 {
				place = slices.Index(header, option)
			}
		}
		if place < 0 && k < len(needed) {
			return nil, t.Errorf("column %q is missing in the header %.120q; needed are %s, separated by commas, without blanks", name, strings.Join(header, ","), columns)
		}
		if place >= 0 && slices.Contains(header[place+1:], header[place]) {
			return nil, t.Errorf("column %q is there twice; it is allowed once", header[place])
		}
		t.columns = append(t.columns, place)
	}
	t.row = make([]string, len(t.columns))
	return t, nil
}

// Close closes the file.
func (t *Table) Close() error { return t.file.Close() }

// Has reports whether the column is there, the needed ones counted first.
func (t *Table) Has(column int) bool { return column < len(t.columns) && t.columns[column] >= 0 }

// Name returns the heading of a column that is there.
func (t *Table) Name(column int) string { return t.header[t.columns[column]] }

// Next returns the next row, or io.EOF: the fields of the columns that were asked
// for, "" for one that is not there. They are valid until the row after.
func (t *Table) Next() ([]string, error) {
	fields, err := t.rows.Read()
	if err == io.EOF {
		return nil, err
	}
	if err != nil {
		return nil, t.unreadable(err)
	}
	t.line, _ = t.rows.FieldPos(0)
	if len(fields) != len(t.header) {
		return nil, t.Errorf("there are %d fields; the header has %d", len(fields), len(t.header))
	}
	for k, place := range t.columns {
		if place >= 0 {
			t.row[k] = fields[place]
		}
	}
	return t.row, nil
}

// Errorf returns an error about the present line.
func (t *Table) Errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", t.path, t.line, fmt.Sprintf(format, args...))
}

// unreadable returns the error of a line that could not be read.
func (t *Table) unreadable(err error) error {
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		t.line = bad.StartLine
		return t.Errorf("%v", bad.Err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return t.Errorf("the compressed data end early; the file is truncated")
	}
	return t.Errorf("cannot read: %v", err)
}
