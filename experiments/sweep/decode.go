package sweep

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env/strict"
)

// table is what a file or a flag gives for some keys.
type table map[string]given

// given is a value as the library decodes it, or a []any of values, and where it
// stands: file, line and column, or the flag.
type given struct {
	value any
	place string
}

// failf gives up on the value.
func (g given) failf(format string, args ...any) {
	panic(failure{fmt.Errorf("%s: %w", g.place, fmt.Errorf(format, args...))})
}

const setFlag = "-set "

// flag reports whether a flag gives the value.
func (g given) flag() bool { return strings.HasPrefix(g.place, setFlag) }

// cellsTable is the list of tables that are grids by themselves.
const cellsTable = "cells"

// split takes a key apart into its table, "" for none, and the rest.
func split(key string) (table, name string) {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)], key[i+1:]
}

// dotted puts a key together; a part with a dot of its own is quoted.
func dotted(parts ...string) string {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if strings.Contains(p, ".") {
			parts[i] = strconv.Quote(p)
		}
	}
	return strings.Join(parts, ".")
}

// decode reads TOML into a table and those of its [[cells]].
func (l *loader) decode(where string, data []byte) (base table, cells []table) {
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		panic(failure{explain(where, err)})
	}
	places := map[string][]string{} // of the keys of each name, in their order
	for k := range strict.Keys(data) {
		key := dotted(k.Path...)
		places[key] = append(places[key], at(where, k.Line, k.Column))
	}
	place := func(key string) string {
		if next := places[key]; len(next) > 0 {
			places[key] = next[1:]
			return next[0]
		}
		return where
	}
	for _, own := range tablesOf(doc[cellsTable], place) {
		cells = append(cells, l.flat(own, cellsTable+".", place))
	}
	delete(doc, cellsTable)
	return l.flat(doc, "", place), cells
}

// tablesOf returns the tables of a list, which may be missing.
func tablesOf(list any, place func(key string) string) (tables []map[string]any) {
	all, ok := list.([]any)
	for _, one := range all {
		t, isTable := one.(map[string]any)
		tables, ok = append(tables, t), ok && isTable
	}
	if list != nil && !ok {
		given{list, place(cellsTable)}.failf("%s is %s; allowed are tables, [[%[1]s]]", cellsTable, show(list))
	}
	return tables
}

// flat returns the keys of a table and of the tables in it. The place of each is
// the next one of its name behind the prefix.
func (l *loader) flat(doc map[string]any, prefix string, place func(key string) string) table {
	t := table{}
	put := func(key string, value any) {
		g := given{value, place(prefix + key)}
		switch top := slices.Contains(reserved, key); {
		case top && prefix != "":
			g.failf("%s is not a setting of cells; it stands at the top of the file, above the first [[cells]]", key)
		case !top && !slices.Contains(l.settings, key):
			g.failf("unknown key %q; allowed are %s, %s", key, strings.Join(reserved, ", "), strings.Join(l.settings, ", "))
		}
		t[key] = g
	}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		sub, ok := doc[name].(map[string]any)
		own := slices.DeleteFunc(slices.Clone(l.settings), func(s string) bool { return !strings.HasPrefix(s, name+".") })
		if len(own) == 0 {
			put(dotted(name), doc[name])
			continue
		}
		if !ok {
			given{place: place(prefix + name)}.failf("%s is %s; allowed is a table of the settings %s", name, show(doc[name]), strings.Join(own, ", "))
		}
		for _, key := range slices.Sorted(maps.Keys(sub)) {
			put(dotted(name, key), sub[key])
		}
	}
	return t
}

// explain puts the place before an error of the library.
func explain(where string, err error) error {
	var wrong *toml.DecodeError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("%s: %w", where, err)
	}
	line, column := wrong.Position()
	return fmt.Errorf("%s: %s", at(where, line, column), strings.TrimPrefix(wrong.Error(), "toml: "))
}

// at is the place of an error; in a flag, it is the flag.
func at(where string, line, column int) string {
	if strings.HasPrefix(where, setFlag) {
		return where
	}
	return fmt.Sprintf("%s:%d:%d", where, line, column)
}

// parseSet reads one -set flag, key=value, where the value is TOML; a word that
// is no TOML value is taken as a string.
func (l *loader) parseSet(arg string) table {
	key, value, ok := strings.Cut(arg, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" || value == "" {
		panic(failure{fmt.Errorf("-set %s: want key=value, such as learner.kappa=4 or learner.kappa=[1,2,4]", arg)})
	}
	if strings.ContainsAny(arg, "\r\n") {
		panic(failure{fmt.Errorf("-set %s=…: one line is allowed", key)})
	}
	if !strings.ContainsAny(value, "[]{}\"'") && toml.Unmarshal([]byte("x = "+value), new(map[string]any)) != nil {
		value = strconv.Quote(value)
	}
	base, cells := l.decode(setFlag+arg, []byte(key+" = "+value))
	if cells != nil || len(base) == 0 {
		panic(failure{fmt.Errorf("-set %s: one key is allowed, not tables", arg)})
	}
	return base
}

// convert turns a value as decoded into the type of the key.
func (g given) convert(k Key, v any) any {
	wanted := ""
	switch k.Default.(type) {
	case float64:
		if n, ok := v.(int64); ok {
			return float64(n)
		}
		if f, ok := v.(float64); ok && !math.IsNaN(f) { // NaN differs from itself, so cells could not be told apart
			return f
		}
		wanted = "is a number"
	case int64:
		n, ok := v.(int64)
		if f, isFloat := v.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 { // 1e5 is a float in TOML
			n, ok = int64(f), true
		}
		if ok && int64(int(n)) == n {
			return n
		}
		wanted = "is a whole number"
	case bool:
		if v, ok := v.(bool); ok {
			return v
		}
		wanted = "is true or false"
	case string:
		text, ok := v.(string)
		if ok && (k.Allowed == nil || slices.Contains(k.Allowed, text)) {
			return text
		}
		wanted = "is a string"
		if ok {
			wanted = "are " + strings.Join(k.Allowed, ", ")
		}
	}
	g.failf("%s is %s; allowed %s", k.Name, show(v), wanted)
	return nil
}

// show writes a value for an error message.
func show(v any) string {
	if text, ok := v.(string); ok {
		return fmt.Sprintf("%.80q", text)
	}
	return fmt.Sprintf("%.80s", FormatValue(v))
}
