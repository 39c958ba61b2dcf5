package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"ephemera/experiments/files"
)

// The files that tell what a directory holds.
const (
	resultFile = "result.json" // of train and bench
	configFile = "config.toml" // of a sweep; train has one, too
)

// Dirs returns dir if it holds results, or else the directories in it that do,
// of which there must be one.
func Dirs(dir string) ([]string, error) {
	return files.Dirs(dir, "results", resultFile, configFile)
}

// Load makes the page of a directory of results: that of a sweep, of train or of
// bench. The page has the commands that make it again, in which the directory is
// at.
func Load(dir, at string) (*Page, error) {
	return within(dir, func(root *os.Root) (*Page, error) { return readPage(root.FS(), at) })
}

// readPage is Load of files. It takes nothing in them for granted: it returns an
// error, or a page that can be written.
func readPage(dir fs.FS, at string) (p *Page, err error) {
	if _, err = fs.Stat(dir, resultFile); err == nil {
		p, err = readResult(dir, at)
	} else if _, err = fs.Stat(dir, configFile); err == nil {
		p, err = readSweep(dir, at)
	} else {
		return nil, errors.New("holds no results: there is neither result.json nor config.toml in it")
	}
	if err == nil && p.Command != "" {
		p.Command += "\ngo run ./cmd/report " + at
	}
	return p, err
}

// maxFile bounds what is read of a file, in bytes.
const maxFile = 1 << 30

// open opens a file. An error that there is none is fs.ErrNotExist. It looks
// before it opens: a pipe that nobody writes to would never open.
func open(dir fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(dir, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a file", name)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s: is larger than %d bytes", name, maxFile)
	}
	return dir.Open(name)
}

// read returns what parse makes of a file.
func read[T any](dir fs.FS, name string, parse func([]byte) (T, error)) (v T, err error) {
	f, err := open(dir, name)
	if err != nil {
		return v, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err == nil {
		v, err = parse(text)
	}
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// text takes a file for what it is, for read.
func text(b []byte) (string, error) { return string(b), nil }

// rows calls use for each row of a CSV file behind its heading, which it returns.
// There are so many columns, or for 0 as many as in the heading.
func rows(dir fs.FS, name string, columns int, use func(row []string) error) (head []string, err error) {
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := csv.NewReader(f)
	c.FieldsPerRecord = columns
	n := 1
	for head, err = c.Read(); err == nil; n++ {
		var row []string
		if row, err = c.Read(); err == nil {
			err = use(row)
		}
	}
	switch {
	case err == io.EOF && n > 1:
		return head, nil
	case err == io.EOF:
		err = errors.New("there is no heading")
	}
	return nil, fmt.Errorf("%s: row %d: %w", name, n, err)
}

// numbers reads the numbers of a row.
func numbers(row []string) ([]float64, error) {
	out := make([]float64, len(row))
	for i, text := range row {
		var err error
		if out[i], err = strconv.ParseFloat(text, 64); err != nil {
			return nil, err
		}
	}
	return out, nil
}
