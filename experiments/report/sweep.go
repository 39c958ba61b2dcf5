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
	cell, what, source string  // what is threshold or index
	at                 float64 // age in epochs; 0 for thresholds
	learned            stats.Estimate
	exact              float64
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
	itself := func(i int) (int, bool) { return i, true }
	drawn, kept := r.best(maxDrawn, itself), r.best(maxCurves, itself)
	r.drawn = len(drawn)
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
// with the best cells.
func (r *sweepDir) best(n int, group func(cell int) (int, bool)) map[int]bool {
	chosen := map[int]bool{}
	add := func(i int) {
		if k, ok := group(i); ok && len(chosen) < n {
			chosen[k] = true
		}
	}
	for i, c := range r.Summary.Cells {
		if c.ID == r.Summary.Reference {
			add(i)
		}
	}
	for _, i := range r.Summary.Ranking() {
		add(i)
	}
	return chosen
}

// record is a row of a CSV file: its words, and then its numbers.
type record struct {
	words   []string
	numbers []float64
}

// cells calls use for the rows of each cell that is kept; they stand together.
// In a row the first columns are words, of which the first is the cell.
func (r *sweepDir) cells(dir fs.FS, name string, words, numbers int, use func(cell string, rows []record)) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	c := csv.NewReader(f)
	c.FieldsPerRecord = words + numbers
	var (
		cell string
		rows []record
	)
	for n := 0; ; n++ {
		row, err := c.Read()
		end := err == io.EOF
		if err != nil && !end {
			return fmt.Errorf("row %d: %w", n+1, err)
		}
		if len(rows) > 0 && (end || result.Printable(row[0]) != cell) {
			use(cell, rows)
			rows = nil
		}
		if end {
			return nil
		}
		cell = result.Printable(row[0])
		if _, kept := r.styles[cell]; !kept || n == 0 {
			continue
		}
		x := record{words: row[:words]}
		for _, text := range row[words:] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("row %d: %w", n+1, err)
			}
			x.numbers = append(x.numbers, v)
		}
		rows = append(rows, x)
	}
}

// readCurves averages the curves of the cells that are kept, whose rows are
// cell, seed, epoch and figures.
func (r *sweepDir) readCurves(dir fs.FS) error {
	boot := stats.New(1)
	width := len(r.Summary.Curves)
	return r.cells(dir, sweep.CurvesFile, 2, 1+width, func(cell string, rows []record) {
		values := map[int][][]float64{} // by epoch, by figure: one value per seed
		for _, row := range rows {
			n := int(row.numbers[0])
			if values[n] == nil {
				values[n] = make([][]float64, width)
			}
			for j, v := range row.numbers[1:] {
				values[n][j] = append(values[n][j], v)
			}
		}
		c := curve{cell: cell, bands: make([][]stats.Estimate, width)}
		for _, n := range slices.Sorted(maps.Keys(values)) {
			c.epochs = append(c.epochs, float64(n))
			for j, v := range values[n] {
				c.bands[j] = append(c.bands[j], boot.Mean(v))
			}
		}
		r.curves = append(r.curves, c)
	})
}

// readLearned averages what the cells that are kept learned; the rows are cell,
// seed, what, source, age, learned and exact.
func (r *sweepDir) readLearned(dir fs.FS) error {
	boot := stats.New(1)
	return r.cells(dir, sweep.LearnedFile, 4, 3, func(cell string, rows []record) {
		place := map[string]int{} // in r.learned
		values := map[int][]float64{}
		for _, row := range rows {
			key := fmt.Sprint(row.words[2:], row.numbers[0])
			k, ok := place[key]
			if !ok {
				k = len(r.learned)
				place[key] = k
				r.learned = append(r.learned, learned{cell: cell, what: row.words[2], source: result.Printable(row.words[3]), at: row.numbers[0]})
			}
			r.learned[k].exact = row.numbers[2]
			values[k] = append(values[k], row.numbers[1])
		}
		for k := len(r.learned) - len(values); k < len(r.learned); k++ {
			r.learned[k].learned = boot.Mean(values[k])
		}
	})
}
