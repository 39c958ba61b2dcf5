package report

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ephemera/experiments/result"
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
	*sweep.Summary
	dir    fs.FS
	styles styles // of the cells whose curves are kept, by id; those drawn at first come first
	drawn  int
	// What the cells are that are kept and drawn, "" for all.
	keptNote, drawnNote string
}

// readSweep makes the page of a sweep.
func readSweep(dir fs.FS, at string) (*Result, error) {
	r, err := loadSweep(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no summary.json yet; a sweep writes it at its end, and before that sweep -merge %s", at)
	}
	if err != nil {
		return nil, err
	}
	config, err := readFile(dir, "config.toml")
	if err != nil {
		return nil, err
	}
	text, err := readFile(dir, sweep.MetaFile)
	if err != nil {
		return nil, err
	}
	meta, err := sweep.ParseMeta(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sweep.MetaFile, err)
	}
	learning, err := r.learning()
	if err != nil {
		return nil, err
	}
	learned, err := r.learned()
	if err != nil {
		return nil, err
	}
	p := &Page{
		Title: r.Name, Question: r.Question, Answer: r.Answer, Config: result.Printable(string(config)),
		Notes:     []string{fmt.Sprintf("%d runs: %d cells, %d seeds. Means over seeds with 95 %% bootstrap intervals; differences pair the runs of one seed.", r.Runs, len(r.Cells), len(r.Seeds))},
		Footnotes: []string{"Configuration " + r.Configuration + "."},
	}
	if meta.Command != "" {
		p.Command = result.Printable(meta.Command) + " -out " + at
	}
	for _, w := range r.Warnings() {
		p.Warnings = append(p.Warnings, "Warning: "+w+".")
	}
	p.Warnings = append(p.Warnings, r.Gaps...)
	for _, f := range r.Failures {
		p.Warnings = append(p.Warnings, "failed: "+f)
	}
	for _, v := range r.Revisions {
		p.Footnotes = append(p.Footnotes, "Program "+v+".")
	}
	cells := Section{Title: "Cells", Table: r.Table(), Draws: true, Reference: r.Reference}
	pools := Section{Title: r.Metric + " pooled by " + r.Group, Notes: []string{"Over all cells that share a value; intervals resample seeds within each cell."}, Table: r.Pools()}
	p.Sections = slices.Concat([]Section{cells, r.along(), learning}, r.maps(), []Section{r.profile(), pools}, learned)
	return &Result{p, r.figures(), r.Text}, nil
}

// loadSweep reads the summary of a sweep and chooses what its page shows.
func loadSweep(dir fs.FS) (*sweepDir, error) {
	text, err := readFile(dir, "summary.json")
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := fs.Stat(dir, "records"); err != nil {
			return nil, errors.New("holds no results of a sweep: there is no records in it")
		}
	}
	if err != nil {
		return nil, err
	}
	r := &sweepDir{dir: dir, styles: styles{}}
	if r.Summary, err = sweep.ParseSummary(text); err != nil {
		return nil, fmt.Errorf("summary.json: %w", err)
	}
	clean(reflect.ValueOf(r.Summary))
	var each [][]int // cells as groups of one
	for i := range r.Cells {
		each = append(each, []int{i})
	}
	kept, keptNote := r.best(maxCurves, each, "cells")
	drawn, drawnNote := r.best(maxDrawn, each, "cells")
	r.drawn, r.keptNote, r.drawnNote = len(drawn), keptNote, drawnNote
	for _, first := range []bool{true, false} {
		for i, c := range r.Cells {
			if kept[i] && drawn[i] == first {
				r.styles[c.ID] = len(r.styles)
			}
		}
	}
	return r, nil
}

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
	order := r.Ranking()
	reference := slices.IndexFunc(r.Cells, func(c sweep.Row) bool { return c.ID == r.Reference })
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
func (r *sweepDir) rows(name string, words, numbers int, use func(words []string, numbers []float64)) error {
	_, err := rows(r.dir, name, words+numbers, func(row []string) error {
		row[0] = result.Printable(row[0])
		if _, kept := r.styles[row[0]]; !kept {
			return nil
		}
		var values []float64
		for _, text := range row[words:] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return err
			}
			values = append(values, v)
		}
		use(row[:words], values)
		return nil
	})
	return err
}
