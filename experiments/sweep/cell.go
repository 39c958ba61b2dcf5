package sweep

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ephemera/experiments"
)

// place returns where a key stands among others, −1 if it does not.
func place(keys []Key, name string) int {
	return slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
}

// Cell is one set of settings. It runs once per seed.
type Cell struct {
	ID   string // readable; it names the settings that tell the cells of its sweep apart
	Hash string // of all settings, and of what the files hold that they name

	grid   *grid
	values []any
}

// grid is one product of lists: the cells of one [[cells]] with one selected
// value.
type grid struct {
	keys   []Key   // the selector first
	lists  [][]any // the values of each key
	quiet  []bool  // keys that follow another one and are not given
	inputs map[string]*Input
}

// Keys returns the settings that the cell has.
func (c *Cell) Keys() []Key { return c.grid.keys }

// Has reports whether the cell has that setting.
func (c *Cell) Has(name string) bool { return place(c.grid.keys, name) >= 0 }

// Value returns a setting as float64, int64, string or bool. It panics if the
// cell has no such setting.
func (c *Cell) Value(name string) any {
	i := place(c.grid.keys, name)
	if i < 0 {
		panic(fmt.Sprintf("sweep: cell %s has no setting %q", c.ID, name))
	}
	return c.values[i]
}

// Float returns a number.
func (c *Cell) Float(name string) float64 { return c.Value(name).(float64) }

// Int returns a whole number.
func (c *Cell) Int(name string) int { return int(c.Value(name).(int64)) }

// Text returns a string.
func (c *Cell) Text(name string) string { return c.Value(name).(string) }

// Texts returns some settings as text, "" for one that the cell has not.
func (c *Cell) Texts(keys []string) []string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		if c.Has(key) {
			texts[i] = FormatValue(c.Value(key))
		}
	}
	return texts
}

// Input returns the file that a setting names, nil if it names none.
func (c *Cell) Input(name string) *Input {
	text, _ := c.Value(name).(string)
	return c.grid.inputs[text]
}

// comparable reports whether a cell solves the problem of the reference: each
// setting that says what is to be solved has the same value.
func (c *Config) comparable(cell *Cell) bool {
	reference := &c.Cells[c.Reference]
	for _, k := range cell.grid.keys {
		if k.Problem && (!reference.Has(k.Name) || reference.Value(k.Name) != cell.Value(k.Name)) {
			return false
		}
	}
	return true
}

// cell appends cell i of a grid, the first key changing slowest.
func (l *loader) cell(all table, g *grid, i int) {
	cell := Cell{grid: g, values: make([]any, len(g.lists))}
	for k, list := range slices.Backward(g.lists) {
		cell.values[k] = list[i%len(list)]
		i /= len(list)
	}
	for k, key := range g.keys {
		if g.quiet[k] {
			if v, ok := key.Then[cell.Text(key.Follows)]; ok {
				cell.values[k] = v
			}
		}
	}
	if err := l.c.x.Check(&cell); err != nil {
		at := given{place: l.file}
		if wrong := new(experiments.SettingError); errors.As(err, &wrong) && all[wrong.Key].place != "" {
			at = all[wrong.Key]
		}
		at.failf("%w", err)
	}
	h := sha256.New()
	for k, key := range g.keys {
		fmt.Fprintf(h, "%s %#v\n", key.Name, cell.values[k])
		if in := cell.Input(key.Name); in != nil {
			h.Write(in.Sum[:])
		}
	}
	cell.Hash = fmt.Sprintf("%x", h.Sum(nil)[:8])
	l.c.Cells = append(l.c.Cells, cell)
}

// identify gives every cell its id, <key>/<value> for each key that differs
// between cells, and refuses cells that are the same.
func (l *loader) identify() {
	c := l.c
	c.Axes = c.axes()
	labels := map[string]int{}
	for _, k := range c.Axes {
		_, name := split(k)
		labels[name]++
	}
	seen := make(map[string]string, len(c.Cells)) // hashes by id
	for i := range c.Cells {
		cell := &c.Cells[i]
		var parts []string
		for _, k := range c.Axes {
			at := place(cell.grid.keys, k)
			if at < 0 || cell.grid.quiet[at] {
				continue
			}
			_, name := split(k)
			if labels[name] > 1 {
				name = strings.ReplaceAll(k, ".", "-")
			}
			if at > 0 { // what is selected says itself what it is
				parts = append(parts, name)
			}
			parts = append(parts, strings.Map(clean, FormatValue(cell.values[at])))
		}
		if parts == nil {
			parts = []string{cell.values[0].(string)}
		}
		cell.ID = strings.Join(parts, "/")
		if hash, ok := seen[cell.ID]; ok && hash == cell.Hash {
			l.failf("cell %s is there twice", cell.ID)
		} else if ok {
			l.failf("two cells would have the id %s, in which / and blanks are _; give their values names that differ otherwise", cell.ID)
		}
		seen[cell.ID] = cell.Hash
	}
}

// clean maps what an id cannot hold.
func clean(r rune) rune {
	if strings.ContainsRune("/ <>|", r) || unicode.IsControl(r) || r == utf8.RuneError {
		return '_'
	}
	return r
}

// keys returns the settings of all cells.
func (c *Config) keys() (all []string) {
	for _, g := range c.grids {
		all = names(all, g.keys)
	}
	return all
}

// axes returns the keys that tell cells apart: of two with the same selected
// value one has another value. A default that only follows the selection does
// not.
func (c *Config) axes() []string {
	type group struct{ key, selected, followed string }
	first := map[group]any{}
	differs := map[string]bool{}
	for i := range c.Cells {
		cell := &c.Cells[i]
		for k, key := range cell.grid.keys {
			of := group{key: key.Name}
			if k > 0 {
				of.selected = cell.values[0].(string)
			}
			if key.Follows != "" {
				of.followed = cell.Text(key.Follows)
			}
			if v, ok := first[of]; !ok {
				first[of] = cell.values[k]
			} else if v != cell.values[k] {
				differs[key.Name] = true
			}
		}
	}
	return slices.DeleteFunc(c.keys(), func(key string) bool { return !differs[key] })
}
