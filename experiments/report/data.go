// Package report turns the directory of a sweep into pictures: one HTML page
// that needs nothing else, and the same figures as SVG and PNG.
package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ephemera/experiments/stats"
	"ephemera/experiments/sweep"
)

// Limits keep a page of a large sweep light enough for a phone.
const (
	maxCurves = 48 // cells whose curves are in the page
	maxDrawn  = 10 // cells that are drawn at first, and in the still pictures
	maxPanels = 4  // heat maps
	maxPaths  = 16 // lines along a setting
)

// Report is what a page shows.
type Report struct {
	Summary *sweep.Summary
	Config  string // config.toml
	Command string // that repeats the sweep
	Curves  []Curve
	Drawn   []string // cells drawn at first
	Heat    []Panel  // at most maxPanels
	Learned []Learned
	Axis    string       // the numeric setting with the most values; "" for none
	Paths   []sweep.Path // the cells along it; at most maxPaths

	panels, paths int // before the cut
}

// Curve is the learning curve of a cell: each figure with its band.
type Curve struct {
	Cell   string
	Epochs []int
	Bands  [][]stats.Estimate // by figure, by epoch
}

// Panel is a heat map: the cells that agree in all but two settings.
type Panel struct {
	Title  string // the other settings
	X, Y   string // the two settings
	XNames []string
	YNames []string
	Cells  [][]int // [y][x], position in the summary; −1 for none
}

// Learned is what the seeds of a cell learned, on average, beside what is
// exact.
type Learned struct {
	Cell    string
	What    string // threshold or index
	Source  string
	At      float64 // age in epochs; 0 for thresholds
	Learned stats.Estimate
	Exact   float64
}

// Load reads the directory of a sweep.
func Load(dir string) (*Report, error) {
	s, err := sweep.ReadSummary(dir)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, missing(dir, err)
		}
		return nil, err
	}
	r := &Report{Summary: s}
	config, err := os.ReadFile(filepath.Join(dir, "config.toml"))
	if err != nil {
		return nil, err
	}
	r.Config = string(config)
	meta, err := sweep.ReadMeta(dir)
	if err != nil {
		return nil, err
	}
	r.Command = meta.Command
	keep := r.choose()
	if err := r.curves(filepath.Join(dir, sweep.CurvesFile), keep); err != nil {
		return nil, err
	}
	if err := r.learned(filepath.Join(dir, sweep.LearnedFile), keep); err != nil {
		return nil, err
	}
	r.heat()
	r.Axis, r.Paths = s.Paths()
	r.Paths = slices.DeleteFunc(r.Paths, func(p sweep.Path) bool { return len(p.Cells) < 2 })
	r.paths = len(r.Paths)
	of := map[int]int{} // path of a cell
	for k, p := range r.Paths {
		for _, i := range p.Cells {
			of[i] = k
		}
	}
	chosen := r.best(maxPaths, func(i int) (int, bool) { k, ok := of[i]; return k, ok })
	var paths []sweep.Path
	for k, p := range r.Paths {
		if chosen[k] {
			paths = append(paths, p)
		}
	}
	r.Paths = paths
	return r, nil
}

// missing explains a directory without a summary.
func missing(dir string, err error) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	for _, name := range []string{"config.toml", "records"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s holds no results of a sweep: there is no %s in it", dir, name)
		}
	}
	return fmt.Errorf("%w; a sweep writes it at its end, and sweep -merge %s before that", err, dir)
}

// best chooses at most n groups of cells: that of the reference, and then those
// with the best cells.
func (r *Report) best(n int, group func(cell int) (int, bool)) map[int]bool {
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

// choose picks the cells whose curves are kept, and those drawn at first: all
// of few; of many the reference and the best.
func (r *Report) choose() map[string]bool {
	itself := func(i int) (int, bool) { return i, true }
	drawn, kept := r.best(maxDrawn, itself), r.best(maxCurves, itself)
	keep := map[string]bool{}
	for i, c := range r.Summary.Cells {
		if drawn[i] {
			r.Drawn = append(r.Drawn, c.ID)
		}
		if kept[i] {
			keep[c.ID] = true
		}
	}
	return keep
}

// rows calls use for every row of a file of a sweep but the first, which is
// checked for its length. The rows of one cell stand together.
func rows(path string, width int, use func(row []string) error) error {
	f, err := os.Open(path)
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
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

func (r *Report) curves(path string, keep map[string]bool) error {
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
		c := Curve{Cell: cell, Epochs: epochs, Bands: make([][]stats.Estimate, width)}
		for j := range width {
			for _, n := range epochs {
				c.Bands[j] = append(c.Bands[j], boot.Mean(values[n][j]))
			}
		}
		r.Curves = append(r.Curves, c)
		epochs = nil
	}
	err := rows(path, 3+width, func(row []string) error {
		if !keep[row[0]] {
			return nil
		}
		if row[0] != cell {
			flush()
			cell, values = strings.Clone(row[0]), map[int][][]float64{}
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

func (r *Report) learned(path string, keep map[string]bool) error {
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
			r.Learned = append(r.Learned, Learned{cell, k.what, k.source, k.at, boot.Mean(values[k]), exact[k]})
		}
		order = nil
	}
	err := rows(path, 7, func(row []string) error {
		if !keep[row[0]] {
			return nil
		}
		if row[0] != cell {
			flush()
			cell, values, exact = strings.Clone(row[0]), map[key][]float64{}, map[key]float64{}
		}
		var v [3]float64
		for i := range v {
			var err error
			if v[i], err = strconv.ParseFloat(row[4+i], 64); err != nil {
				return err
			}
		}
		k := key{strings.Clone(row[2]), strings.Clone(row[3]), v[0]}
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

// heat lays the cells out over the two settings with the most values.
func (r *Report) heat() {
	s := r.Summary
	type axis struct {
		key    string
		values []any
		at     map[any]int // place of a value
	}
	if len(s.Axes) < 2 {
		return
	}
	var axes []axis
	for _, a := range s.Axes {
		x := axis{key: a, at: map[any]int{}}
		for _, c := range s.Cells {
			if v, ok := c.Settings[a]; ok {
				if _, ok := x.at[v]; !ok {
					x.at[v] = 0
					x.values = append(x.values, v)
				}
			}
		}
		slices.SortStableFunc(x.values, compare)
		for k, v := range x.values {
			x.at[v] = k
		}
		axes = append(axes, x)
	}
	byCount := slices.Clone(axes)
	slices.SortStableFunc(byCount, func(a, b axis) int { return len(b.values) - len(a.values) })
	x, y := byCount[0], byCount[1]
	var (
		titles []string
		filled []int           // tiles of a panel
		of     = map[int]int{} // panel of a cell
		at     = map[string]int{}
	)
	for i, c := range s.Cells {
		if c.Settings[x.key] == nil || c.Settings[y.key] == nil {
			continue
		}
		var rest []string
		for _, a := range axes {
			if v, ok := c.Settings[a.key]; ok && a.key != x.key && a.key != y.key {
				rest = append(rest, fmt.Sprintf("%s = %s", a.key, name(v)))
			}
		}
		title := strings.Join(rest, ", ")
		k, ok := at[title]
		if !ok {
			k = len(titles)
			at[title] = k
			titles, filled = append(titles, title), append(filled, 0)
		}
		of[i] = k
		filled[k]++
	}
	// A panel with one cell per row is a list, not a map.
	isMap := func(k int) bool { return 2*filled[k] >= len(x.values)*len(y.values) }
	for k := range titles {
		if isMap(k) {
			r.panels++
		}
	}
	chosen := r.best(maxPanels, func(i int) (int, bool) { k, ok := of[i]; return k, ok && isMap(k) })
	panel := map[int]int{} // place of those chosen
	for k, title := range titles {
		if !chosen[k] {
			continue
		}
		panel[k] = len(r.Heat)
		p := Panel{Title: title, X: x.key, Y: y.key}
		for _, v := range x.values {
			p.XNames = append(p.XNames, name(v))
		}
		for _, v := range y.values {
			p.YNames = append(p.YNames, name(v))
			p.Cells = append(p.Cells, slices.Repeat([]int{-1}, len(x.values)))
		}
		r.Heat = append(r.Heat, p)
	}
	for i, c := range s.Cells {
		if k, ok := of[i]; ok && chosen[k] {
			r.Heat[panel[k]].Cells[y.at[c.Settings[y.key]]][x.at[c.Settings[x.key]]] = i
		}
	}
}

func name(v any) string {
	if f, ok := v.(float64); ok {
		return sweep.FormatValue(f)
	}
	return fmt.Sprint(v)
}

// compare orders numbers before anything else, and anything else not at all.
func compare(a, b any) int {
	x, okx := a.(float64)
	y, oky := b.(float64)
	if !okx || !oky {
		return 0
	}
	switch {
	case x < y || math.IsNaN(x):
		return -1
	case x > y:
		return 1
	}
	return 0
}
