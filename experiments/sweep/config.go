package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/experiments"
)

// Head says what a sweep is about. What has a TOML key is given.
type Head struct {
	Name      string   `json:"name" toml:"-"` // file name without .toml
	Question  string   `json:"question" toml:"question"`
	Config    string   `json:"config" toml:"-"`            // the configuration's text
	Command   string   `json:"command" toml:"-"`           // that repeats the sweep
	Seeds     int      `json:"seeds" toml:"seeds"`         // every cell runs once with each, from 1 on
	Axes      []string `json:"axes" toml:"-"`              // keys that tell cells apart
	Show      []string `json:"show" toml:"show"`           // figures of the short tables
	Metric    string   `json:"metric" toml:"metric"`       // the figure that cells are compared by
	Reference string   `json:"reference" toml:"reference"` // id of the cell that others are compared with
}

// Config is a sweep: which cells, over which seeds, and how they are compared.
type Config struct {
	Head
	Cells []Cell

	engine experiments.Engine
	keys   []string // settings of the cells
}

// Cell is one set of settings. It runs once per seed.
type Cell struct {
	ID    string          // readable; it names the settings that tell the cells of its sweep apart
	Label string          // words for pictures that the configuration gives; "" for none
	Run   experiments.Run // but for the seed
	Hash  string          // names the files of its runs

	job    *experiments.Job
	given  map[string]any // settings of the configuration
	chosen bool           // its learner is not one of them
}

// Table are settings of runs in a configuration: one value each, or a list.
type Table struct {
	Steps      any            `toml:"steps"`
	Evaluation any            `toml:"evaluation"`
	Instance   map[string]any `toml:"instance"`
	World      map[string]any `toml:"world"`
	Learner    map[string]any `toml:"learner"`
}

// document is a configuration as TOML has it.
type document struct {
	Head
	Table
	Cells []grid `toml:"cells"`
}

// grid are the cells of one [[cells]].
type grid struct {
	Label string `toml:"label"`
	Table
}

// settings returns what is given, by dotted key.
func (t Table) settings() map[string]any {
	all := map[string]any{"steps": t.Steps, "evaluation": t.Evaluation}
	for name, own := range map[string]map[string]any{"instance": t.Instance, "world": t.World, "learner": t.Learner} {
		for key, v := range own {
			all[name+"."+key] = v
		}
	}
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// set reads a flag -set key=value. The value is TOML, or a word, or a list of
// words. It holds for all cells.
func (d *document) set(arg string) (key string, err error) {
	key, value, ok := strings.Cut(arg, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" || value == "" || key == "cells" {
		return "", fmt.Errorf("-set %s: want key=value, such as learner.kappa=4 or learner.kappa=[1,2,4]", arg)
	}
	isTOML := func(value string) bool { return toml.Unmarshal([]byte("x = "+value), new(map[string]any)) == nil }
	if inner, isList := strings.CutPrefix(strings.TrimSuffix(value, "]"), "["); !isTOML(value) && isList {
		words := strings.Split(inner, ",")
		for i, word := range words {
			if words[i] = strings.TrimSpace(word); !isTOML(words[i]) {
				words[i] = strconv.Quote(words[i])
			}
		}
		value = "[" + strings.Join(words, ", ") + "]"
	} else if !isTOML(value) {
		value = strconv.Quote(value)
	}
	return key, experiments.DecodeTOML("-set "+arg, []byte(key+" = "+value), d)
}

// Load reads a configuration; set are overrides, key=value. Errors say where:
// file, line and column, or the flag, or the setting, what was found and what is
// allowed.
func Load(ctx context.Context, file string, text []byte, set []string) (c *Config, err error) {
	defer func() {
		if err != nil && !strings.HasPrefix(err.Error(), "-set") && !strings.HasPrefix(err.Error(), file) {
			err = fmt.Errorf("%s: %w", file, err)
		}
	}()
	d := document{Head: Head{Metric: experiments.FiguresOfRuns[0].Name, Seeds: 1}}
	if err := experiments.DecodeTOML(file, text, &d); err != nil {
		return nil, err
	}
	if d.Cells == nil {
		d.Cells = make([]grid, 1)
	}
	own := make([]map[string]any, len(d.Cells)) // settings of each grid on top of those of all
	for i, g := range d.Cells {
		own[i] = g.settings()
	}
	byFlag := false // the reference is given
	for _, arg := range set {
		key, err := d.set(arg)
		if err != nil {
			return nil, err
		}
		byFlag = byFlag || key == "reference"
		for i := range own {
			delete(own[i], key)
		}
	}
	c = &Config{Head: d.Head}
	c.Name, c.Config = strings.TrimSuffix(filepath.Base(file), ".toml"), string(text)
	if err := c.compareBy(); err != nil {
		return nil, err
	}
	for i, g := range d.Cells {
		all := d.settings()
		maps.Copy(all, own[i])
		keys, err := c.product(ctx, g.Label, all)
		if err != nil {
			return nil, err
		}
		if err := unused(own[i], keys); err != nil {
			return nil, err
		}
	}
	if err := unused(d.settings(), c.keys); err != nil {
		return nil, err
	}
	if err := c.identify(); err != nil {
		return nil, err
	}
	if len(d.settings())+len(own[0]) == 0 && len(own) == 1 {
		return nil, errors.New("there is no setting of a run; needed is one at least, such as learner.algorithm")
	}
	c.Reference = cmp.Or(d.Reference, c.Cells[0].ID)
	if err := c.hasReference(); err != nil {
		var wrong *referenceError
		if byFlag || set == nil {
			return nil, err
		} else if _, err := Load(ctx, file, text, nil); errors.As(err, &wrong) {
			return nil, err
		}
		c.Reference = c.Cells[0].ID // flags took the cell away that the file names
	}
	return c, nil
}

// FileError is about a file that a setting names.
type FileError struct{ error }

func (e *FileError) Unwrap() error { return e.error }

// ofFile makes an error of resolving a run a *FileError if it is one.
func ofFile(err error) error {
	if errors.As(err, new(*experiments.SettingError)) {
		return err
	}
	return &FileError{err}
}

// list returns the values of a setting: one, or those of a list.
func list(v any) []any {
	if items, ok := v.([]any); ok {
		return items
	}
	return []any{v}
}

// compareBy checks what is not a setting of cells.
func (c *Config) compareBy() error {
	names := figureNames(experiments.FiguresOfRuns)
	if c.Show == nil {
		if c.Show = names[:4:4]; !slices.Contains(c.Show, c.Metric) {
			c.Show = append(c.Show, c.Metric)
		}
	}
	for _, name := range append([]string{c.Metric}, c.Show...) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("metric or show is %q; allowed are %s", name, strings.Join(names, ", "))
		}
	}
	if c.Seeds < 1 {
		return fmt.Errorf("seeds is %d; allowed is 1 or more", c.Seeds)
	}
	return nil
}

// referenceError is that of a reference that no cell is.
type referenceError struct{ error }

// hasReference checks that the reference is a cell.
func (c *Config) hasReference() error {
	var ids []string
	for _, cell := range c.Cells {
		ids = append(ids, cell.ID)
	}
	if !slices.Contains(ids, c.Reference) {
		return &referenceError{fmt.Errorf("reference is %q; allowed are %s", c.Reference, strings.Join(ids, ", "))}
	}
	return nil
}

// unused is the error of a setting that no cell has.
func unused(settings map[string]any, allowed []string) error {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(allowed, key) {
			return fmt.Errorf("%s is not a setting of any cell here; allowed are %s", key, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// product appends the cells of one grid: for each algorithm, the product of the
// lists of all settings that it has, the first key changing slowest. It returns
// the settings that the cells have.
func (c *Config) product(ctx context.Context, label string, all map[string]any) (has []string, err error) {
	algorithms := list(all[experiments.AlgorithmKey]) // one nil where none is given
	if len(algorithms) == 0 {
		return nil, errEmpty(experiments.AlgorithmKey)
	}
	for _, algorithm := range algorithms {
		first := Cell{Label: label, Run: experiments.NewRun()}
		if algorithm != nil {
			if err := first.Run.Set(experiments.AlgorithmKey, algorithm); err != nil {
				return nil, err
			}
		}
		problems, _, err := first.product(all, func(key string) bool { return !isLearners(key) })
		if err != nil {
			return nil, err
		}
		for _, problem := range problems {
			if algorithm == nil {
				if err := c.chooseLearner(ctx, &problem); err != nil {
					return nil, err
				}
			}
			cells, keys, err := problem.product(all, isLearners)
			if err != nil {
				return nil, err
			}
			has = union(has, keys)
			for _, cell := range cells {
				cell.job, err = c.engine.Resolve(ctx, cell.Run)
				if err == nil {
					cell.Run = cell.job.Run
					cell.Hash, err = c.engine.Hash(cell.job)
				}
				if err != nil {
					return nil, ofFile(err)
				}
				for _, key := range keys {
					if label != "" && len(list(all[key])) > 1 {
						cell.Label += ", " + cell.text(key)
					}
				}
				c.Cells = append(c.Cells, cell)
			}
		}
	}
	c.keys = union(c.keys, has)
	return has, nil
}

// isLearners reports whether a setting is one of the learner, and not of its world.
func isLearners(key string) bool { return strings.HasPrefix(key, "learner.") }

// chooseLearner gives a cell that names no learner the one that train and bench take there.
func (c *Config) chooseLearner(ctx context.Context, cell *Cell) error {
	run := cell.Run
	first := experiments.Learners()[0]
	if err := run.Set(experiments.AlgorithmKey, "whittle@"+string(first.FirstLevel())); err != nil {
		return err
	}
	there, err := c.engine.Resolve(ctx, run)
	if err != nil {
		return ofFile(err)
	}
	if first, err = there.DefaultLearner(); err != nil {
		return err
	}
	cell.chosen = true
	return cell.Run.Set(experiments.AlgorithmKey, first.Name)
}

// product returns the product of the lists of those settings of a cell that are among some,
// and the names of all its settings.
func (cell Cell) product(all map[string]any, among func(key string) bool) (cells []Cell, keys []string, err error) {
	if keys, err = cell.Run.Keys(); err != nil {
		return nil, nil, err
	}
	cells = []Cell{cell}
	for _, key := range keys {
		if all[key] == nil || key == experiments.AlgorithmKey || !among(key) {
			continue
		}
		if cells, err = times(cells, key, list(all[key])); err != nil {
			return nil, nil, err
		}
	}
	return cells, keys, nil
}

// union returns the first list with what it lacks of another, behind it.
func union(all, more []string) []string {
	for _, x := range more {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

// times returns each cell with each of the values of a setting.
func times(cells []Cell, key string, values []any) (all []Cell, err error) {
	if len(values) == 0 {
		return nil, errEmpty(key)
	}
	seen := map[string]bool{}
	for _, v := range values {
		if seen[fmt.Sprint(v)] {
			return nil, fmt.Errorf("%s has %v twice; each value is allowed once", key, v)
		}
		seen[fmt.Sprint(v)] = true
	}
	for _, cell := range cells {
		for _, v := range values {
			one := cell
			if err := one.Run.Set(key, v); err != nil {
				return nil, err
			}
			one.given = map[string]any{key: v}
			maps.Copy(one.given, cell.given)
			all = append(all, one)
		}
	}
	return all, nil
}

// errEmpty is the error of a list without values.
func errEmpty(key string) error {
	return fmt.Errorf("%s is an empty list; allowed is 1 value or more", key)
}

// value returns a setting, as it was written where it is given, and nil for one that
// the cell has not.
func (cell *Cell) value(key string) any { return cmp.Or(cell.given[key], cell.Run.Value(key)) }

// text returns a setting as text, "" for one that the cell has not.
func (cell *Cell) text(key string) string {
	if v := cell.value(key); v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// axes returns the keys that tell cells apart: of two cells with the same
// algorithm one is given another value, or none.
func (c *Config) axes() []string {
	return slices.DeleteFunc(slices.Clone(c.keys), func(key string) bool {
		first := map[string]any{} // value of each algorithm
		for _, cell := range c.Cells {
			algorithm, value := cell.Run.Algorithm(), fmt.Sprint(cell.given[key])
			if cell.chosen { // which follows from the others
				algorithm = ""
			}
			if key == experiments.AlgorithmKey {
				algorithm, value = "", cell.Run.Algorithm()
			}
			if v, ok := first[algorithm]; ok && v != value {
				return false
			}
			first[algorithm] = value
		}
		return true
	})
}

// identify gives every cell its id, NAME/VALUE for each key that tells cells apart
// and that it is given, and refuses cells that are the same, or that pictures would call so.
func (c *Config) identify() error {
	c.Axes = c.axes()
	seen, shown := map[string]bool{}, map[string]bool{}
	for i := range c.Cells {
		cell := &c.Cells[i]
		var parts []string
		for _, key := range c.Axes {
			switch {
			case key == experiments.AlgorithmKey: // which says itself what it is
				parts = append(parts, cell.Run.Algorithm())
			case cell.given[key] != nil:
				name := key[strings.LastIndexByte(key, '.')+1:]
				parts = append(parts, name, strings.NewReplacer("/", "_", " ", "_").Replace(cell.text(key)))
			}
		}
		if parts == nil {
			parts = []string{cell.Run.Algorithm()}
		}
		if cell.ID = strings.Join(parts, "/"); seen[cell.ID] {
			return fmt.Errorf("cell %s is there twice; allowed is once", cell.ID)
		}
		name := cmp.Or(cell.Label, cell.ID)
		if shown[name] {
			return fmt.Errorf("label %s is there twice; allowed is once", name)
		}
		seen[cell.ID], shown[name] = true, true
	}
	return nil
}
