package env

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// maxLine is the longest line that is accepted, in bytes.
const maxLine = 1 << 16

// Table reads columns of a CSV file by their names, line by line.
type Table struct {
	path    string
	line    int
	file    io.Closer
	lines   *bufio.Reader
	text    bytes.Reader // of the present line
	fields  *csv.Reader  // of the text
	columns []int        // places of the columns; −1 where there is none
	width   int
	row     []string
}

// OpenTable opens a file or a pipe of CSV, plain or compressed by gzip, and reads
// its header. It must have the needed columns, and may have the others. A line
// has at most 65 536 bytes. Errors name the file and the line.
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
	t := &Table{path: path, file: io.NopCloser(nil)}
	t.fields = csv.NewReader(&t.text)
	t.fields.FieldsPerRecord, t.fields.ReuseRecord = -1, true
	t.lines = bufio.NewReaderSize(r, maxLine)
	if magic, err := t.lines.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		zip, err := gzip.NewReader(t.lines)
		if err != nil {
			return nil, t.Errorf("cannot read gzip header: %v", readable(err))
		}
		t.lines = bufio.NewReaderSize(zip, maxLine)
	}
	if mark, err := t.lines.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = t.lines.Discard(3) // what was peeked at is there
	}
	columns := strings.Join(needed, " and ")
	header, err := t.next()
	if err == io.EOF {
		return nil, t.Errorf("the file is empty; needed is a header with the columns %s", columns)
	}
	if err != nil {
		return nil, err
	}
	t.width = len(header)
	for k, name := range slices.Concat(needed, others) {
		place := slices.Index(header, name)
		if place < 0 && k < len(needed) {
			return nil, t.Errorf("column %q is missing in the header %.120q; needed are %s, separated by commas, without blanks", name, strings.Join(header, ","), columns)
		}
		if place >= 0 && slices.Contains(header[place+1:], name) {
			return nil, t.Errorf("column %q is there twice; it is allowed once", name)
		}
		t.columns = append(t.columns, place)
	}
	t.row = make([]string, len(t.columns))
	return t, nil
}

// Close closes the file.
func (t *Table) Close() error { return t.file.Close() }

// Has reports whether the column is there, the needed ones counted first.
func (t *Table) Has(column int) bool { return t.columns[column] >= 0 }

// Next returns the next row, or io.EOF: the fields of the columns that were asked
// for, "" for one that is not there. They are valid
// until the row after.
func (t *Table) Next() ([]string, error) {
	fields, err := t.next()
	if err != nil {
		return nil, err
	}
	if len(fields) != t.width {
		return nil, t.Errorf("there are %d fields; the header has %d", len(fields), t.width)
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

// readable says what a decompressor's error means.
func readable(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return errors.New("the compressed data end early; the file is truncated")
	}
	return err
}

// next returns the fields of the next line that is not blank, valid until the
// line after, or io.EOF. Fields in quotes hold no line breaks.
func (t *Table) next() ([]string, error) {
	for {
		line, err := t.lines.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			t.line = max(t.line, 1)
			return nil, io.EOF
		}
		t.line++
		switch {
		case err == bufio.ErrBufferFull:
			return nil, t.Errorf("line is longer than %d bytes", maxLine)
		case err != nil && err != io.EOF:
			return nil, t.Errorf("cannot read: %v", readable(err))
		}
		t.text.Reset(line)
		fields, err := t.fields.Read()
		var bad *csv.ParseError
		switch {
		case errors.As(err, &bad):
			return nil, t.Errorf("%v", bad.Err)
		case err == nil:
			return fields, nil
		}
	}
}
