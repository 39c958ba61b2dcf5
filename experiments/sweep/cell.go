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

// With returns a copy of the cell with one setting changed.
func (c *Cell) With(name string, value any) *Cell {
	d := *c
	d.values = slices.Clone(c.values)
	d.values[place(c.grid.keys, name)] = value
	return &d
}

// problem is the settings that say what is to be solved, as text.
func (c *Cell) problem() string {
	var text string
	for i, k := range c.grid.keys {
		if k.Problem {
			text += fmt.Sprintf("%s=%v\n", k.Name, c.values[i])
		}
	}
	return text
}

// comparable reports whether a cell solves the problem of the reference.
func (c *Config) comparable(cell *Cell) bool {
	return cell.problem() == c.Cells[c.Reference].problem()
}

// grid is one product of lists: the cells of one [[cells]] with one selected
// value.
type grid struct {
	keys   []Key   // the selector first
	lists  [][]any // the values of each key
	quiet  []bool  // keys that follow another one and are not given
	inputs map[string]*Input
}

// cell appends cell i of a grid, the first key changing slowest.
func (l *loader) cell(all table, g *grid, i int) {
	cell := Cell{grid: g, values: make([]any, len(g.lists))}
	for k, list := range slices.Backward(g.lists) {
		cell.values[k] = list[i%len(list)]
		i /= len(list)
	}
	for k, key := range g.keys {
		if !g.quiet[k] {
			continue
		}
		if v, ok := key.Then[cell.Text(key.Follows)]; ok {
			cell.values[k] = v
		}
	}
	if err := l.c.x.Check(&cell); err != nil {
		var wrong *experiments.SettingError
		if errors.As(err, &wrong) && all[wrong.Key].place != "" {
			all[wrong.Key].failf("%w", err)
		}
		l.failf("%w", err)
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
	last := map[string]int{}
	for _, k := range c.Axes {
		_, name := split(k)
		last[name]++
	}
	seen := make(map[string]int, len(c.Cells))
	for i := range c.Cells {
		cell := &c.Cells[i]
		var parts []string
		for _, k := range c.Axes {
			at := place(cell.grid.keys, k)
			if at < 0 || cell.grid.quiet[at] {
				continue
			}
			text := strings.Map(clean, FormatValue(cell.values[at]))
			if at > 0 {
				_, name := split(k)
				if last[name] > 1 {
					name = strings.ReplaceAll(k, ".", "-")
				}
				text = name + "/" + text
			}
			parts = append(parts, text)
		}
		if parts == nil {
			parts = []string{cell.values[0].(string)}
		}
		cell.ID = strings.Join(parts, "/")
		if j, ok := seen[cell.ID]; ok {
			if c.Cells[j].Hash == cell.Hash {
				l.failf("cell %s is there twice", cell.ID)
			}
			l.failf("two cells would have the id %s, in which / and blanks are _; give their values names that differ otherwise", cell.ID)
		}
		seen[cell.ID] = i
	}
}

// clean maps what an id cannot hold.
func clean(r rune) rune {
	if strings.ContainsRune("/ <>|", r) || unicode.IsControl(r) || r == utf8.RuneError {
		return '_'
	}
	return r
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
	var keys []string
	for _, g := range c.grids {
		for _, key := range g.keys {
			if differs[key.Name] && !slices.Contains(keys, key.Name) {
				keys = append(keys, key.Name)
			}
		}
	}
	return keys
}
