// Package sweep runs experiments as data: a configuration becomes cells, every
// cell runs once per seed on all cores, and each result is on disk as soon as
// it is there.
//
// The package is read in the order in which data flow:
//
//  1. A [Schema] says which keys a cell may set. [Load] reads a TOML file
//     against it and returns a [Config]: the cells, each with a readable id
//     that follows from its content.
//  2. A [Runner] turns one cell and one seed into a [Result]: a row of figures,
//     a learning curve, and what was learned beside what is exact.
//  3. [Run] works through cells and seeds. Finished ones are appended to a
//     record file of this process; killed and started again, it runs what is
//     missing. [Shard] divides the work between processes.
//  4. [Merge] reads the records of all processes in the order of the
//     configuration and writes the final files, which are the same bytes
//     however the work was divided or interrupted.
//
// Beside the results stands [MetaFile], a JSON object that says what they are:
// columns with unit and sense, axes, cells, and the command that repeats the
// sweep. Who reads results, as package report does, reads it with [ReadMeta].
package sweep

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind is the type of a setting.
type Kind int

// The kinds of setting.
const (
	Float Kind = iota
	Int
	String
	Bool
)

// String returns the kind as an error message names it.
func (k Kind) String() string {
	return [...]string{"a number", "a whole number", "a string", "true or false"}[k]
}

// Key is one setting of a cell.
type Key struct {
	Name    string // dotted, as in the file: learner.kappa
	Kind    Kind
	Default any                     // float64, int64, string or bool
	Allowed []string                // values of a string key; nil for any
	File    func(value string) bool // whether a value names a file; nil if none does
	Help    string                  // a few words: meaning, symbol, unit
}

// Schema says which settings there are.
type Schema interface {
	// Selector is the key whose value decides which other keys a cell has,
	// such as learner.algorithm. Its Allowed lists the values.
	Selector() Key
	// Keys returns the other settings of a cell with that value, in the order
	// in which they are written.
	Keys(selected string) []Key
	// Check reports what is wrong with a cell, as a *KeyError where one key is
	// at fault.
	Check(c *Cell) error
}

// KeyError is a setting that is out of its range.
type KeyError struct {
	Key string
	Msg string // what was found and what is allowed
}

// Error implements error.
func (e *KeyError) Error() string { return e.Key + ": " + e.Msg }

// keyset is the keys of all cells with one selected value.
type keyset struct {
	keys  []Key // the selector first
	index map[string]int
}

func newKeyset(s Schema, selected string) *keyset {
	k := &keyset{keys: append([]Key{s.Selector()}, s.Keys(selected)...), index: map[string]int{}}
	for i, key := range k.keys {
		if _, ok := k.index[key.Name]; ok {
			panic(fmt.Sprintf("sweep: the schema has key %q twice", key.Name))
		}
		k.index[key.Name] = i
	}
	return k
}

// Cell is one set of settings. It runs once per seed.
type Cell struct {
	ID    string
	Index int // position in the configuration

	set    *keyset
	values []any
	inputs map[string]*Input
}

// Keys returns the settings that the cell has.
func (c *Cell) Keys() []Key { return c.set.keys }

// Has reports whether the cell has that setting.
func (c *Cell) Has(name string) bool { _, ok := c.set.index[name]; return ok }

// Value returns a setting as float64, int64, string or bool. It panics if the
// cell has no such setting.
func (c *Cell) Value(name string) any {
	i, ok := c.set.index[name]
	if !ok {
		panic(fmt.Sprintf("sweep: cell %s has no setting %q", c.ID, name))
	}
	return c.values[i]
}

// Float, Int, Text and Bool return a setting of that kind.
func (c *Cell) Float(name string) float64 { return c.Value(name).(float64) }

// Int returns a whole number.
func (c *Cell) Int(name string) int { return int(c.Value(name).(int64)) }

// Text returns a string.
func (c *Cell) Text(name string) string { return c.Value(name).(string) }

// Bool returns a truth value.
func (c *Cell) Bool(name string) bool { return c.Value(name).(bool) }

// Input returns the file that a setting names, nil if it names none.
func (c *Cell) Input(name string) *Input {
	if v, ok := c.Value(name).(string); ok {
		return c.inputs[v]
	}
	return nil
}

// With returns a copy of the cell with one setting changed.
func (c *Cell) With(name string, value any) *Cell {
	d := *c
	d.values = slices.Clone(c.values)
	d.values[c.set.index[name]] = value
	return &d
}

// FormatValue writes a setting as ids and TOML files have it.
func FormatValue(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case string:
		return v
	}
	panic(fmt.Sprintf("sweep: setting of type %T", v))
}

// tomlValue writes a setting as a TOML value that reads back as the same.
func tomlValue(v any) string {
	switch v := v.(type) {
	case string:
		return tomlString(v)
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"))
		}
	}
	return FormatValue(v)
}

// tomlString quotes a string: TOML's basic strings know \uXXXX but not Go's \x.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
