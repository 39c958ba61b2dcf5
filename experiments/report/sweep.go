package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	styles  map[string]int // of the cells, by id; those drawn at first come first
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
	r := &sweepDir{styles: map[string]int{}}
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

// rows calls use for every row of a CSV file but the first, which is checked
// for its length. The rows of one cell stand together.
func rows(dir fs.FS, name string, width int, use func(row []string) error) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	c := csv.NewReader(f)
	c.ReuseRecord = true
	c.FieldsPerRecord = width
	for n := 0; ; n++ {
		row, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err == nil && n > 0 {
			err = use(row)
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", n+1, err)
		}
	}
}

// readCurves averages the curves of the cells that are kept.
func (r *sweepDir) readCurves(dir fs.FS) error {
	width := len(r.Summary.Curves)
	boot := stats.New(1)
	var (
		cell   string
		epochs []int
		values map[int][][]float64 // by epoch, by figure: one value per seed
	)
	flush := func() {
		if len(epochs) == 0 {
			return
		}
		slices.Sort(epochs)
		c := curve{cell: cell, bands: make([][]stats.Estimate, width)}
		for _, n := range epochs {
			c.epochs = append(c.epochs, float64(n))
			for j := range width {
				c.bands[j] = append(c.bands[j], boot.Mean(values[n][j]))
			}
		}
		r.curves = append(r.curves, c)
		epochs = nil
	}
	err := rows(dir, sweep.CurvesFile, 3+width, func(row []string) error {
		id := result.Printable(row[0])
		if _, ok := r.styles[id]; !ok {
			return nil
		}
		if id != cell {
			flush()
			cell, values = strings.Clone(id), map[int][][]float64{}
		}
		n, err := strconv.Atoi(row[2])
		if err != nil {
			return err
		}
		if values[n] == nil {
			values[n] = make([][]float64, width)
			epochs = append(epochs, n)
		}
		for j, text := range row[3:] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return err
			}
			values[n][j] = append(values[n][j], v)
		}
		return nil
	})
	flush()
	return err
}

// readLearned averages what the cells that are kept learned.
func (r *sweepDir) readLearned(dir fs.FS) error {
	boot := stats.New(1)
	type key struct {
		what, source string
		at           float64
	}
	var (
		cell   string
		order  []key
		values map[key][]float64
		exact  map[key]float64
	)
	flush := func() {
		for _, k := range order {
			r.learned = append(r.learned, learned{cell, k.what, k.source, k.at, boot.Mean(values[k]), exact[k]})
		}
		order = nil
	}
	err := rows(dir, sweep.LearnedFile, 7, func(row []string) error {
		id := result.Printable(row[0])
		if _, ok := r.styles[id]; !ok {
			return nil
		}
		if id != cell {
			flush()
			cell, values, exact = strings.Clone(id), map[key][]float64{}, map[key]float64{}
		}
		var v [3]float64
		for i := range v {
			var err error
			if v[i], err = strconv.ParseFloat(row[4+i], 64); err != nil {
				return err
			}
		}
		k := key{strings.Clone(row[2]), strings.Clone(result.Printable(row[3])), v[0]}
		if _, ok := values[k]; !ok {
			order = append(order, k)
		}
		values[k] = append(values[k], v[1])
		exact[k] = v[2]
		return nil
	})
	flush()
	return err
}
