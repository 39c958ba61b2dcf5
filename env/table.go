package env

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ReadTable reads columns of a CSV file, plain or compressed by gzip, by their names.
// The file must have the needed columns, and may have the others; a column of the
// name "a or b" may be called either. take is handed each row: the headings and the
// fields of the columns that were asked for, "" where there is none. They are valid
// until the row after. Errors, those of take too, begin with path and line.
func ReadTable(path string, r io.Reader, needed, others []string, take func(names, fields []string) error) error {
	line := 1
	at := func(err error) error { return fmt.Errorf("%s:%d: %w", path, line, err) }
	text := bufio.NewReader(r)
	if magic, err := text.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		zip, err := gzip.NewReader(text)
		if err != nil {
			return at(unreadable(err))
		}
		text = bufio.NewReader(zip)
	}
	if mark, err := text.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = text.Discard(3) // what was peeked at is there
	}
	rows := csv.NewReader(text)
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	next := func() ([]string, error) {
		row, err := rows.Read()
		var bad *csv.ParseError
		switch {
		case err == nil:
			line, _ = rows.FieldPos(0)
		case errors.As(err, &bad):
			line, err = bad.StartLine, bad.Err
		case err != io.EOF:
			err = unreadable(err)
		}
		return row, err
	}
	header, err := next()
	if err == io.EOF {
		err = fmt.Errorf("the file is empty; needed is a header with the columns %s", strings.Join(needed, " and "))
	}
	if err != nil {
		return at(err)
	}
	header = slices.Clone(header)
	places, err := findColumns(header, needed, others)
	if err != nil {
		return at(err)
	}
	names, fields := make([]string, len(places)), make([]string, len(places))
	for k, place := range places {
		if place >= 0 {
			names[k] = header[place]
		}
	}
	for {
		row, err := next()
		if err == io.EOF {
			return nil
		}
		if err == nil && len(row) != len(header) {
			err = fmt.Errorf("there are %d fields; the header has %d", len(row), len(header))
		}
		if err != nil {
			return at(err)
		}
		for k, place := range places {
			if place >= 0 {
				fields[k] = row[place]
			}
		}
		if err := take(names, fields); err != nil {
			return at(err)
		}
	}
}

// findColumns returns the places of columns, −1 for others that are not there.
func findColumns(header, needed, others []string) (places []int, err error) {
	for k, name := range slices.Concat(needed, others) {
		place := -1
		for option := range strings.SplitSeq(name, " or ") {
			if place < 0 {
				place = slices.Index(header, option)
			}
		}
		if place < 0 && k < len(needed) {
			return nil, fmt.Errorf("column %q is missing in the header %.120q; needed are %s, separated by commas, without blanks", name, strings.Join(header, ","), strings.Join(needed, " and "))
		}
		if place >= 0 && slices.Contains(header[place+1:], header[place]) {
			return nil, fmt.Errorf("column %q is there twice; it is allowed once", header[place])
		}
		places = append(places, place)
	}
	return places, nil
}

// unreadable says why a file could not be read.
func unreadable(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return errors.New("the compressed data end early; the file is truncated")
	}
	return fmt.Errorf("cannot read: %w", err)
}
