package sweep

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/experiments"
)

// Head says what a sweep is about.
type Head struct {
	Name      string   `json:"name"` // file name without .toml
	Question  string   `json:"question"`
	Config    string   `json:"config"`    // the configuration's text
	Seeds     []uint64 `json:"seeds"`     // every cell runs once with each
	Axes      []string `json:"axes"`      // keys that tell cells apart
	Show      []string `json:"show"`      // figures of the short tables
	Metric    string   `json:"metric"`    // the figure that cells are compared by
	Reference string   `json:"reference"` // id of the cell that others are compared with
}

// Config is a sweep: which cells, over which seeds, and how they are compared.
type Config struct {
	Head
	Cells []Cell

	engine experiments.Engine
}

// Cell is one set of settings. It runs once per seed.
type Cell struct {
	ID    string          // readable; it names the settings that tell the cells of its sweep apart
	Label string          // words for pictures that the configuration gives; "" for none
	Run   experiments.Run // but for the seed
	Hash  string          // names the files of its runs

	keys  []string       // settings that it has
	given map[string]any // those of the configuration
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
	Question  string `toml:"question"`
	Seeds     any    `toml:"seeds"`
	Metric    string `toml:"metric"`
	Show      any    `toml:"show"`
	Reference string `toml:"reference"`
	Table
	Cells []struct {
		Label string `toml:"label"`
		Table
	} `toml:"cells"`
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
	var d document
	if err := experiments.DecodeTOML(file, text, &d); err != nil {
		return nil, err
	}
	grids := []grid{{}}
	if d.Cells != nil {
		grids = nil
	}
	for _, t := range d.Cells {
		grids = append(grids, grid{t.Label, t.settings()})
	}
	for _, arg := range set {
		key, err := d.set(arg)
		if err != nil {
			return nil, err
		}
		for _, g := range grids {
			delete(g.own, key)
		}
	}
	c = &Config{Head: Head{Name: strings.TrimSuffix(filepath.Base(file), ".toml"), Question: d.Question, Config: string(text)}}
	if err := c.compareBy(d); err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, g := range grids {
		has, err := c.product(ctx, d.settings(), g)
		if err := cmp.Or(err, unused(g.own, has)); err != nil {
			return nil, err
		}
		maps.Copy(used, has)
	}
	if err := cmp.Or(unused(d.settings(), used), c.identify()); err != nil {
		return nil, err
	}
	var ids []string
	for _, cell := range c.Cells {
		ids = append(ids, cell.ID)
	}
	c.Reference = ids[0] // also where flags took the given one away
	if slices.Contains(ids, d.Reference) {
		c.Reference = d.Reference
	} else if d.Reference != "" && set == nil {
		return nil, fmt.Errorf("reference is %q; allowed are %s", d.Reference, strings.Join(ids, ", "))
	}
	return c, nil
}

// grid are the cells of one [[cells]].
type grid struct {
	label string
	own   map[string]any // settings beside those of all cells
}

// list returns the values of a setting: one, or those of a list.
func list(v any) []any {
	if items, ok := v.([]any); ok {
		return items
	}
	return []any{v}
}

// compareBy reads what is not a setting of cells.
func (c *Config) compareBy(d document) error {
	c.Metric = cmp.Or(d.Metric, figures[0].Name)
	c.Show = figureNames(figures[:4])
	if d.Show != nil {
		c.Show = nil
		for _, v := range list(d.Show) {
			c.Show = append(c.Show, fmt.Sprint(v))
		}
	} else if !slices.Contains(c.Show, c.Metric) {
		c.Show = append(c.Show, c.Metric)
	}
	for _, name := range append([]string{c.Metric}, c.Show...) {
		if !slices.Contains(figureNames(figures), name) {
			return fmt.Errorf("metric or show is %q; allowed are %s", name, strings.Join(figureNames(figures), ", "))
		}
	}
	if d.Seeds == nil {
		d.Seeds = int64(1)
	}
	for _, v := range list(d.Seeds) {
		n, ok := v.(int64)
		if !ok || n < 0 {
			return fmt.Errorf("seeds is %v; allowed is a number of seeds, or a list of seeds, each 0 or more", d.Seeds)
		}
		c.Seeds = append(c.Seeds, uint64(n))
	}
	if n, isNumber := d.Seeds.(int64); isNumber {
		c.Seeds = nil
		for s := range uint64(n) {
			c.Seeds = append(c.Seeds, s+1)
		}
	}
	if len(c.Seeds) == 0 {
		return fmt.Errorf("there is no seed; allowed is seeds = 1 or more, or a list of seeds")
	}
	return nil
}

// unused is the error of a setting that no cell has.
func unused(settings map[string]any, used map[string]bool) error {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !used[key] {
			return fmt.Errorf("%s is not a setting of any cell here; allowed are %s", key, strings.Join(slices.Sorted(maps.Keys(used)), ", "))
		}
	}
	return nil
}

// product appends the cells of one grid: for each algorithm, the product of the
// lists of all settings that it has, the first key changing slowest. It returns
// the settings that the cells have.
func (c *Config) product(ctx context.Context, all map[string]any, g grid) (has map[string]bool, err error) {
	maps.Copy(all, g.own)
	if all[experiments.AlgorithmKey] == nil {
		all[experiments.AlgorithmKey] = experiments.NewRun().Algorithm()
	}
	has = map[string]bool{}
	for _, algorithm := range list(all[experiments.AlgorithmKey]) {
		first := Cell{Label: g.label, Run: experiments.NewRun(), given: map[string]any{}}
		if err := first.Run.Set(experiments.AlgorithmKey, algorithm); err != nil {
			return nil, err
		}
		if first.keys, err = first.Run.Keys(); err != nil {
			return nil, err
		}
		cells := []Cell{first}
		for _, key := range first.keys {
			has[key] = true
			if all[key] == nil || key == experiments.AlgorithmKey {
				continue
			}
			values := list(all[key])
			if len(values) == 0 {
				return nil, fmt.Errorf("%s is an empty list; allowed is 1 value or more", key)
			}
			var next []Cell
			for _, cell := range cells {
				for _, v := range values {
					one := cell
					one.given = maps.Clone(cell.given)
					one.given[key] = v
					if err := one.Run.Set(key, v); err != nil {
						return nil, err
					}
					next = append(next, one)
				}
			}
			cells = next
		}
		for _, cell := range cells {
			run, err := c.engine.Resolve(ctx, cell.Run)
			if err == nil {
				cell.Run = run.Run
				cell.Hash, err = c.engine.Hash(cell.Run)
			}
			if err != nil {
				return nil, err
			}
			for _, key := range first.keys {
				if g.label != "" && len(list(all[key])) > 1 {
					cell.Label += ", " + cell.texts(key)[0]
				}
			}
			c.Cells = append(c.Cells, cell)
		}
	}
	return has, nil
}

// settings returns those of the keys that the cell has.
func (cell *Cell) settings(keys []string) map[string]any {
	set := map[string]any{}
	for _, key := range keys {
		text, isText := cell.given[key].(string)
		switch {
		case isText: // as it was written
			set[key] = text
		case slices.Contains(cell.keys, key):
			set[key] = cell.Run.Value(key)
		}
	}
	return set
}

// texts returns settings as text, "" for one that the cell has not.
func (cell *Cell) texts(keys ...string) (texts []string) {
	set := cell.settings(keys)
	for _, key := range keys {
		text := ""
		if v, ok := set[key]; ok {
			text = experiments.FormatValue(v)
		}
		texts = append(texts, text)
	}
	return texts
}

// axes returns the keys that tell cells apart: of two cells with the same
// algorithm one is given another value, or none.
func (c *Config) axes() []string {
	type group struct{ key, algorithm string }
	first, differs := map[group]string{}, map[string]bool{}
	var keys []string
	for _, cell := range c.Cells {
		for _, key := range cell.keys {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
			of, value := group{key, cell.Run.Algorithm()}, fmt.Sprint(cell.given[key])
			if key == experiments.AlgorithmKey {
				of.algorithm, value = "", cell.Run.Algorithm()
			}
			if v, ok := first[of]; !ok {
				first[of] = value
			} else if v != value {
				differs[key] = true
			}
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return !differs[key] })
}

// identify gives every cell its id, NAME/VALUE for each key that tells cells apart
// and that it is given, and refuses cells that are the same.
func (c *Config) identify() error {
	c.Axes = c.axes()
	short := func(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
	seen := map[string]bool{}
	for i := range c.Cells {
		cell := &c.Cells[i]
		var parts []string
		for _, key := range c.Axes {
			name := short(key)
			if slices.ContainsFunc(c.Axes, func(other string) bool { return other != key && short(other) == name }) {
				name = strings.ReplaceAll(key, ".", "-")
			}
			switch {
			case key == experiments.AlgorithmKey: // which says itself what it is
				parts = append(parts, cell.Run.Algorithm())
			case cell.given[key] != nil:
				parts = append(parts, name, strings.NewReplacer("/", "_", " ", "_").Replace(cell.texts(key)[0]))
			}
		}
		if parts == nil {
			parts = []string{cell.Run.Algorithm()}
		}
		if cell.ID = strings.Join(parts, "/"); seen[cell.ID] {
			return fmt.Errorf("cell %s is there twice", cell.ID)
		}
		seen[cell.ID] = true
	}
	return nil
}

// problem says what a cell solves: instance and world, but for what is believed
// of it and for how content arrives.
func (cell *Cell) problem() string {
	r, usual := cell.Run, experiments.NewRun().World
	return fmt.Sprint(r.Instance.Name, r.Instance.Law, r.Instance.Budget, cmp.Or(r.World.Marks, usual.Marks),
		r.World.Trace, r.World.Epoch, r.World.Decay, r.World.Split)
}
