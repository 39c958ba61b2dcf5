package sweep

import (
	"bytes"
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
	"ephemera/experiments/result"
)

// Config is a sweep: which cells, over which seeds, and how they are compared.
type Config struct {
	Name      string // file name without .toml
	Text      string // as TOML
	Question  string
	Seeds     []uint64 // every cell runs once with each
	Metric    string   // the figure that cells are compared by
	Reference int      // the cell that others are compared with
	Group     string   // key by whose value cells are pooled; "" for none
	Show      []string // figures of the short tables
	Axes      []string // keys that tell cells apart
	Cells     []Cell

	engine experiments.Engine
}

// Cell is one set of settings. It runs once per seed.
type Cell struct {
	ID    string          // readable; it names the settings that tell the cells of its sweep apart
	Label string          // words for pictures that the configuration gives; "" for none
	Run   experiments.Run // but for the seed

	keys  []string       // settings that it has
	given map[string]any // those of the configuration
}

// table are settings of runs in a configuration: one value each, or a list.
type table struct {
	Steps      any            `toml:"steps"`
	Evaluation any            `toml:"evaluation"`
	Instance   map[string]any `toml:"instance"`
	World      map[string]any `toml:"world"`
	Learner    map[string]any `toml:"learner"`
}

// document is a configuration as TOML has it.
type document struct {
	Name      string `toml:"name"`
	Question  string `toml:"question"`
	Seeds     any    `toml:"seeds"`
	Metric    string `toml:"metric"`
	Show      any    `toml:"show"`
	Reference string `toml:"reference"`
	Group     string `toml:"group"`
	table
	Cells []struct {
		Label string `toml:"label"`
		table
	} `toml:"cells"`
}

// settings returns what is given, by dotted key.
func (t table) settings() map[string]any {
	all := map[string]any{"steps": t.Steps, "evaluation": t.Evaluation}
	for name, own := range map[string]map[string]any{"instance": t.Instance, "world": t.World, "learner": t.Learner} {
		for key, v := range own {
			all[name+"."+key] = v
		}
	}
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// decode reads TOML strictly. Its errors say where, if the library does.
func decode(where string, text []byte) (d document, err error) {
	err = toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&d)
	var (
		strict *toml.StrictMissingError
		wrong  *toml.DecodeError
	)
	switch {
	case errors.As(err, &strict):
		line, column := strict.Errors[0].Position()
		err = fmt.Errorf("%s:%d:%d: unknown key %q; allowed are name, question, seeds, metric, show, reference, group, steps, evaluation, and the tables instance, world, learner and [[cells]]", where, line, column, strings.Join(strict.Errors[0].Key(), "."))
	case errors.As(err, &wrong):
		line, column := wrong.Position()
		err = fmt.Errorf("%s:%d:%d: %s", where, line, column, strings.TrimPrefix(err.Error(), "toml: "))
	}
	return d, err
}

// decodeSet reads a flag -set key=value. The value is TOML, or a word, or a list
// of words.
func decodeSet(arg string) (document, error) {
	key, value, ok := strings.Cut(arg, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	where := "-set " + arg
	if !ok || key == "" || value == "" || key == "cells" || strings.ContainsAny(arg, "\r\n") {
		return document{}, fmt.Errorf("%s: want key=value, such as learner.kappa=4 or learner.kappa=[1,2,4]", where)
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
	d, err := decode(where, []byte(key+" = "+value))
	if wrong := new(toml.DecodeError); errors.As(err, &wrong) {
		return d, fmt.Errorf("%s: %w", where, err)
	}
	return d, err
}

// Load reads a configuration; set are overrides, key=value. Errors say where:
// file, line and column, or the flag, or the cell and its setting, what was found
// and what is allowed.
func Load(ctx context.Context, file string, text []byte, set []string) (*Config, error) {
	d, err := decode(file, text)
	if err != nil {
		return nil, err
	}
	base := d.settings()
	var grids []map[string]any
	for _, t := range d.Cells {
		grids = append(grids, t.settings())
	}
	for _, arg := range set {
		one, err := decodeSet(arg)
		if err != nil {
			return nil, err
		}
		d.Name, d.Question, d.Metric = cmp.Or(one.Name, d.Name), cmp.Or(one.Question, d.Question), cmp.Or(one.Metric, d.Metric)
		d.Reference, d.Group = cmp.Or(one.Reference, d.Reference), cmp.Or(one.Group, d.Group)
		d.Seeds, d.Show = either(one.Seeds, d.Seeds), either(one.Show, d.Show)
		for key, v := range one.settings() {
			base[key] = v
			for _, own := range grids {
				delete(own, key)
			}
		}
	}
	c := &Config{Name: cmp.Or(d.Name, strings.TrimSuffix(filepath.Base(file), ".toml")), Text: string(text), Question: d.Question, Group: d.Group}
	if err := c.compareBy(d); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if grids == nil {
		grids = []map[string]any{{}}
	}
	used := map[string]bool{}
	for i, own := range grids {
		label := ""
		if d.Cells != nil {
			label = d.Cells[i].Label
		}
		all := maps.Clone(base)
		maps.Copy(all, own)
		has, err := c.product(ctx, all, label)
		if err == nil {
			err = unused(own, has)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		maps.Copy(used, has)
	}
	if err := cmp.Or(unused(base, used), c.identify()); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	ids := make([]string, len(c.Cells))
	for i, cell := range c.Cells {
		ids[i] = cell.ID
	}
	c.Reference = slices.Index(ids, d.Reference)
	if c.Reference < 0 && d.Reference != "" && set == nil {
		return nil, fmt.Errorf("%s: reference is %q; allowed are %s", file, d.Reference, strings.Join(ids, ", "))
	}
	c.Reference = max(0, c.Reference) // the first where flags took the given one away
	return c, nil
}

// either returns the first of two values that is given.
func either(a, b any) any {
	if a != nil {
		return a
	}
	return b
}

// list returns the values of a setting: one, or those of a list.
func list(v any) []any {
	if items, ok := v.([]any); ok {
		return items
	}
	return []any{v}
}

// maxRuns keeps a slip in a grid from filling the memory.
const maxRuns = 1_000_000

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
	seeds := list(either(d.Seeds, int64(1)))
	for _, v := range seeds {
		n, ok := v.(int64)
		if !ok || n < 0 || n > maxRuns || len(seeds) == 1 && n == 0 {
			return fmt.Errorf("seeds is %v; allowed is a number of seeds, 1 to %d, or a list of seeds, each 0 or more", d.Seeds, maxRuns)
		}
		c.Seeds = append(c.Seeds, uint64(n))
	}
	if _, isList := d.Seeds.([]any); !isList {
		n := c.Seeds[0]
		c.Seeds = nil
		for s := range n {
			c.Seeds = append(c.Seeds, s+1)
		}
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
func (c *Config) product(ctx context.Context, all map[string]any, label string) (has map[string]bool, err error) {
	has = map[string]bool{}
	first := len(c.Cells)
	for _, algorithm := range list(either(all[experiments.AlgorithmKey], experiments.NewRun().Algorithm())) {
		r := experiments.NewRun()
		if err := r.Set(experiments.AlgorithmKey, algorithm); err != nil {
			return nil, err
		}
		keys, err := r.Keys()
		if err != nil {
			return nil, err
		}
		cells := []Cell{{Run: r, keys: keys, given: map[string]any{}}}
		for _, key := range keys {
			has[key] = true
			if all[key] == nil || key == experiments.AlgorithmKey {
				continue
			}
			values := list(all[key])
			if len(values) == 0 || (len(c.Cells)+len(cells)*len(values))*len(c.Seeds) > maxRuns {
				return nil, fmt.Errorf("%s has %d values; allowed are 1 or more, and at most %d runs in all", key, len(values), maxRuns)
			}
			var next []Cell
			for _, cell := range cells {
				for _, v := range values {
					one := Cell{Run: cell.Run, keys: keys, given: maps.Clone(cell.given)}
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
			if cell.Run, err = c.engine.Resolve(ctx, cell.Run); err != nil {
				key := ""
				if wrong := new(experiments.SettingError); errors.As(err, &wrong) && !strings.Contains(err.Error(), wrong.Key) {
					key = wrong.Key + ": "
				}
				return nil, fmt.Errorf("%s%w", key, err)
			}
			c.Cells = append(c.Cells, cell)
		}
	}
	if label == "" {
		return has, nil
	}
	for i := range c.Cells[first:] {
		cell := &c.Cells[first+i]
		parts := []string{label}
		for _, key := range cell.keys {
			if len(list(all[key])) > 1 {
				parts = append(parts, cell.text(key))
			}
		}
		cell.Label = strings.Join(parts, ", ")
	}
	return has, nil
}

// readingKey names the setting that the defaults of a learner's others follow, if
// it has one.
const readingKey = "learner.reading"

// follows reports whether a setting has a default that follows another setting.
func (cell *Cell) follows(key string) bool {
	return strings.HasPrefix(key, "learner.") && key != experiments.AlgorithmKey && key != readingKey && slices.Contains(cell.keys, readingKey)
}

// value returns a setting, nil if the cell has none of that name.
func (cell *Cell) value(key string) any {
	if text, ok := cell.given[key].(string); ok {
		return text // as it was written
	}
	if !slices.Contains(cell.keys, key) {
		return nil
	}
	return cell.Run.Value(key)
}

// text returns a setting as text, "" if the cell has none of that name.
func (cell *Cell) text(key string) string {
	if v := cell.value(key); v != nil {
		return experiments.FormatValue(v)
	}
	return ""
}

func (cell *Cell) texts(keys []string) []string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = cell.text(key)
	}
	return texts
}

// settings returns those of the keys that the cell has.
func (cell *Cell) settings(keys []string) map[string]any {
	set := map[string]any{}
	for _, key := range keys {
		if v := cell.value(key); v != nil {
			set[key] = v
		}
	}
	return set
}

// axes returns the keys that tell cells apart: some cell is given a value, and of
// two cells with the same algorithm, and the same reading where the default
// follows it, one has another value.
func (c *Config) axes() (axes []string) {
	type group struct{ key, algorithm, reading string }
	first := map[group]string{}
	given, differs := map[string]bool{experiments.AlgorithmKey: true}, map[string]bool{}
	var keys []string
	for i := range c.Cells {
		cell := &c.Cells[i]
		for _, key := range cell.keys {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
			given[key] = given[key] || cell.given[key] != nil
			of := group{key: key}
			if key != experiments.AlgorithmKey {
				of.algorithm = cell.text(experiments.AlgorithmKey)
			}
			if cell.follows(key) {
				of.reading = cell.text(readingKey)
			}
			if v, ok := first[of]; !ok {
				first[of] = cell.text(key)
			} else if v != cell.text(key) {
				differs[key] = true
			}
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return !differs[key] || !given[key] })
}

// identify gives every cell its id, NAME/VALUE for each key that tells cells
// apart, and refuses cells that are the same.
func (c *Config) identify() error {
	c.Axes = c.axes()
	short := func(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
	seen := map[string]bool{}
	for i := range c.Cells {
		cell := &c.Cells[i]
		var parts []string
		for _, key := range c.Axes {
			if !slices.Contains(cell.keys, key) || cell.follows(key) && cell.given[key] == nil {
				continue
			}
			name := short(key)
			if slices.ContainsFunc(c.Axes, func(other string) bool { return other != key && short(other) == name }) {
				name = strings.ReplaceAll(key, ".", "-")
			}
			if key != experiments.AlgorithmKey { // which says itself what it is
				parts = append(parts, name)
			}
			parts = append(parts, strings.NewReplacer("/", "_", " ", "_").Replace(cell.text(key)))
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

// comparable reports whether a cell solves the problem of the reference: the
// instance and the world are the same, but for how content arrives.
func (c *Config) comparable(cell *Cell) bool {
	problem := func(r experiments.Run) string {
		usual := experiments.NewRun().World
		return fmt.Sprint(r.Instance, cmp.Or(r.World.Marks, usual.Marks), cmp.Or(r.World.Sigma, usual.Sigma), r.World.Unobserved,
			r.World.Trace, cmp.Or(r.World.Epoch, usual.Epoch), cmp.Or(r.World.Decay, usual.Decay), cmp.Or(r.World.Split, usual.Split), r.World.Warm)
	}
	return problem(cell.Run) == problem(c.Cells[c.Reference].Run)
}

// Table lists the cells with the settings that tell them apart.
func (c *Config) Table() *result.Table {
	t := &result.Table{Header: append([]string{"cell"}, c.Axes...)}
	for i := range c.Cells {
		t.Add(append([]string{c.Cells[i].ID}, c.Cells[i].texts(c.Axes)...)...)
	}
	return t
}
