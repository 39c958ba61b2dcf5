package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"ephemera/experiments/files"
	"ephemera/experiments/sweep"
)

// Files of train and bench.
const (
	resultFile = "result.json" // tells their results from those of a sweep
	configFile = "config.toml"
)

// Dirs returns dir if it holds results, or else the directories in it that do,
// of which there must be one.
func Dirs(dir string) ([]string, error) {
	return files.Dirs(dir, "results", resultFile, sweep.SummaryFile)
}

// Load makes the page of a directory of results: that of a sweep, of train or of
// bench. The page has the commands that make it again, in which the directory is
// at.
func Load(dir, at string) (p *Page, err error) {
	if exists(filepath.Join(dir, resultFile)) {
		p, err = readResult(dir, at)
	} else if exists(filepath.Join(dir, sweep.SummaryFile)) {
		p, err = readSweep(dir, at)
	} else {
		return nil, fmt.Errorf("%s holds no results: there is neither result.json nor summary.json in it", dir)
	}
	if err == nil && p.Command != "" {
		p.Command += "\ngo run ./cmd/report " + at
	}
	return p, err
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// rows calls use for each row of a CSV file behind its heading, which it returns.
// There are so many columns, or for 0 as many as in the heading.
func rows(dir, name string, columns int, use func(row []string) error) (head []string, err error) {
	f, err := os.Open(filepath.Join(dir, name))
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
	return nil, fmt.Errorf("%s: row %d: %w", filepath.Join(dir, name), n, err)
}

// numbers reads the numbers of a row.
func numbers(row []string) ([]float64, error) {
	out := make([]float64, len(row))
	for i, text := range row {
		if out[i] = math.NaN(); text == "" {
			continue // there is none
		}
		var err error
		if out[i], err = strconv.ParseFloat(text, 64); err != nil {
			return nil, err
		}
	}
	return out, nil
}
