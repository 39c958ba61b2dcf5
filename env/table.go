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
// name "a or b" may be called either. take receives each row: the headings and the
// fields of the columns that were asked for, "" where there is none, and all fields as
// they stand in the file. They are valid until the row after. Errors, those of take too,
// begin with path and line.
func ReadTable(path string, r io.Reader, needed, others []string, take func(names, fields, row []string) error) error {
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
	var header, names, fields []string
	var places []int
	pick := func(to, from []string) {
		for k, place := range places {
			if place >= 0 {
				to[k] = from[place]
			}
		}
	}
	for {
		row, err := rows.Read()
		var bad *csv.ParseError
		switch {
		case err == io.EOF && header != nil:
			return nil
		case err == io.EOF:
			err = fmt.Errorf("the file is empty; needed is a header with the columns %s", strings.Join(needed, " and "))
		case errors.As(err, &bad):
			line, err = bad.StartLine, bad.Err
		case err != nil:
			err = unreadable(err)
		default:
			line, _ = rows.FieldPos(0)
		}
		switch {
		case err != nil:
		case header == nil:
			header = slices.Clone(row)
			places, err = findColumns(header, needed, others)
			names, fields = make([]string, len(places)), make([]string, len(places))
			pick(names, header)
		case len(row) != len(header):
			err = fmt.Errorf("number of fields is %d; the header has %d", len(row), len(header))
		default:
			pick(fields, row)
			err = take(names, fields, row)
		}
		if err != nil {
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
			return nil, fmt.Errorf("column %q is missing in the header %.120q; "+
				"needed are %s, separated by commas, without blanks",
				name, strings.Join(header, ","), strings.Join(needed, " and "))
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
