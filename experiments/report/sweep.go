package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ephemera/experiments/result"
	"ephemera/experiments/stats"
	"ephemera/experiments/sweep"
)

// Limits keep a page of a large sweep light enough for a phone.
const (
	maxCurves = 48 // cells whose curves are in the page
	maxDrawn  = 10 // cells that are drawn at first, and in the files
	maxPanels = 4  // heat maps
	maxPaths  = 16 // lines along a setting
)

// sweepDir is the directory of a sweep as far as its page needs it.
type sweepDir struct {
	Summary *sweep.Summary
	config  string // config.toml
	command string // that repeats the sweep
	curves  []curve
	learned []learned
	styles  styles // of the cells, by id; those drawn at first come first
	drawn   int
	// What the cells are that are kept and drawn, "" for all.
	keptNote, drawnNote string
}

// curve is the learning curve of a cell: each figure with its band.
type curve struct {
	cell   string
	epochs []float64
	bands  [][]stats.Estimate // by figure, by epoch
}

// learned is what the seeds of a cell learned, on average, beside what is
// exact.
type learned struct {
	quantity
	learned stats.Estimate
	exact   float64
}

type quantity struct {
	cell, what, source string  // what is threshold or index
	at                 float64 // age in epochs; 0 for thresholds
}

// loadSweep reads the directory of a sweep.
func loadSweep(dir fs.FS) (*sweepDir, error) {
	text, err := readFile(dir, "summary.json")
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := fs.Stat(dir, "records"); err != nil {
			return nil, errors.New("holds no results of a sweep: there is no records in it")
		}
		return nil, errUnmerged
	}
	if err != nil {
		return nil, err
	}
	r := &sweepDir{styles: styles{}}
	if r.Summary, err = sweep.ParseSummary(text); err != nil {
		return nil, fmt.Errorf("summary.json: %w", err)
	}
	clean(reflect.ValueOf(r.Summary))
	config, err := readFile(dir, "config.toml")
	if err != nil {
		return nil, err
	}
	r.config = result.Printable(string(config))
	text, err = readFile(dir, sweep.MetaFile)
	if err != nil {
		return nil, err
	}
	meta, err := sweep.ParseMeta(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sweep.MetaFile, err)
	}
	r.command = result.Printable(meta.Command)
	var each [][]int // cells as groups of one
	for i := range r.Summary.Cells {
		each = append(each, []int{i})
	}
	kept, note := r.best(maxCurves, each, "cells")
	drawn, drawnNote := r.best(maxDrawn, each, "cells")
	r.drawn, r.keptNote, r.drawnNote = len(drawn), note, drawnNote
	for _, first := range []bool{true, false} {
		for i, c := range r.Summary.Cells {
			if kept[i] && drawn[i] == first {
				r.styles[c.ID] = len(r.styles)
			}
		}
	}
	if err := r.readCurves(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", sweep.CurvesFile, err)
	}
	if err := r.readLearned(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", sweep.LearnedFile, err)
	}
	return r, nil
}

// errUnmerged is returned of a sweep that has not ended.
var errUnmerged = errors.New("there is no summary.json yet; a sweep writes it at its end, and before that")

// clean makes all texts of a value printable.
func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clean(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				clean(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			clean(v.Index(i))
		}
	case reflect.Map: // of settings
		for _, k := range v.MapKeys() {
			if s, ok := v.MapIndex(k).Interface().(string); ok {
				v.SetMapIndex(k, reflect.ValueOf(result.Printable(s)))
			}
		}
	case reflect.String:
		v.SetString(result.Printable(v.String()))
	}
}

// maxFile bounds what is read of a file, in bytes.
const maxFile = 1 << 30

func readFile(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s: is not a file", name))
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s: is larger than %d bytes", name, maxFile)
	}
	return b, err
}

// best chooses at most n groups of cells: that of the reference, and then those
// with the best cells. The note says so where it leaves some out.
func (r *sweepDir) best(n int, groups [][]int, what string) (chosen map[int]bool, note string) {
	of := map[int]int{}
	for k, cells := range groups {
		for _, i := range cells {
			of[i] = k
		}
	}
	which := "the best"
	if what != "cells" {
		which = "those with the best cells"
	}
	order := r.Summary.Ranking()
	reference := slices.IndexFunc(r.Summary.Cells, func(c sweep.Row) bool { return c.ID == r.Summary.Reference })
	if _, ok := of[reference]; ok {
		order = append([]int{reference}, order...)
		which = strings.Replace(which, "the best", "the reference and the best", 1)
	}
	chosen = map[int]bool{}
	for _, i := range order {
		if k, ok := of[i]; ok && len(chosen) < n {
			chosen[k] = true
		}
	}
	if len(chosen) < len(groups) {
		note = fmt.Sprintf("%d of %d %s: %s", len(chosen), len(groups), what, which)
	}
	return chosen, note
}

// rows calls use for each row of a cell that is kept, with its words, of which
// the first is the cell, and the numbers behind them.
func (r *sweepDir) rows(dir fs.FS, name string, words, numbers int, use func(words []string, numbers []float64)) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	c := csv.NewReader(f)
	c.FieldsPerRecord = words + numbers
	for n := 1; ; n++ {
		row, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		row[0] = result.Printable(row[0])
		if _, kept := r.styles[row[0]]; !kept || n == 1 {
			continue
		}
		var values []float64
		for _, text := range row[words:] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("row %d: %w", n, err)
			}
			values = append(values, v)
		}
		use(row[:words], values)
	}
}

// readCurves averages the curves of the cells that are kept, whose rows are
// cell, seed, epoch and figures.
func (r *sweepDir) readCurves(dir fs.FS) error {
	width := len(r.Summary.Curves)
	values := map[string]map[int][][]float64{} // by cell, by epoch, by figure: one value per seed
	err := r.rows(dir, sweep.CurvesFile, 2, 1+width, func(words []string, numbers []float64) {
		cell, n := words[0], int(numbers[0])
		if values[cell] == nil {
			values[cell] = map[int][][]float64{}
		}
		if values[cell][n] == nil {
			values[cell][n] = make([][]float64, width)
		}
		for j, v := range numbers[1:] {
			values[cell][n][j] = append(values[cell][n][j], v)
		}
	})
	boot := stats.New(1)
	for _, cell := range r.Summary.Cells {
		at := values[cell.ID]
		if at == nil {
			continue
		}
		c := curve{cell: cell.ID, bands: make([][]stats.Estimate, width)}
		for _, n := range slices.Sorted(maps.Keys(at)) {
			c.epochs = append(c.epochs, float64(n))
			for j, v := range at[n] {
				c.bands[j] = append(c.bands[j], boot.Mean(v))
			}
		}
		r.curves = append(r.curves, c)
	}
	return err
}

// readLearned averages what the cells that are kept learned; the rows are cell,
// seed, what, source, age, learned and exact.
func (r *sweepDir) readLearned(dir fs.FS) error {
	place := map[quantity]int{} // in r.learned
	var values [][]float64
	err := r.rows(dir, sweep.LearnedFile, 4, 3, func(words []string, numbers []float64) {
		q := quantity{words[0], words[2], result.Printable(words[3]), numbers[0]}
		k, ok := place[q]
		if !ok {
			k = len(values)
			place[q], values, r.learned = k, append(values, nil), append(r.learned, learned{quantity: q})
		}
		r.learned[k].exact = numbers[2]
		values[k] = append(values[k], numbers[1])
	})
	boot := stats.New(1)
	for k := range r.learned {
		r.learned[k].learned = boot.Mean(values[k])
	}
	return err
}
