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
	at := func(line, column int) string {
		if strings.HasPrefix(where, setFlag) {
			return where
		}
		return fmt.Sprintf("%s:%d:%d", where, line, column)
	}
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		g := given{place: where}
		if wrong := new(toml.DecodeError); errors.As(err, &wrong) {
			g.place = at(wrong.Position())
		}
		g.failf("%s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	places := map[string][]string{} // of the keys of each name, in their order
	for k := range strict.Keys(data) {
		key := dotted(k.Path...)
		places[key] = append(places[key], at(k.Line, k.Column))
	}
	next := func(key string, value any) given {
		g := given{value, where}
		if left := places[key]; len(left) > 0 {
			g.place, places[key] = left[0], left[1:]
		}
		return g
	}
	if list, ok := doc[cellsTable]; ok {
		for _, own := range tables(next(cellsTable, list)) {
			cells = append(cells, l.flat(own, cellsTable+".", next))
		}
		delete(doc, cellsTable)
	}
	return l.flat(doc, "", next), cells
}

// tables returns the tables of [[cells]].
func tables(g given) (all []map[string]any) {
	items, ok := g.value.([]any)
	for _, one := range items {
		t, isTable := one.(map[string]any)
		all, ok = append(all, t), ok && isTable
	}
	if !ok {
		g.failf("%s is %s; allowed are tables, [[%[1]s]]", cellsTable, show(g.value))
	}
	return all
}

// flat returns the keys of a table and of the tables in it; next says where the
// next key of a name stands.
func (l *loader) flat(doc map[string]any, prefix string, next func(key string, value any) given) table {
	t := table{}
	put := func(key string, value any) {
		g := next(prefix+key, value)
		switch top := slices.Contains(reserved, key); {
		case top && prefix != "":
			g.failf("%s is not a setting of cells; it stands at the top of the file, above the first [[cells]]", key)
		case !top && !slices.Contains(l.settings, key):
			g.failf("unknown key %q; allowed are %s, %s", key, strings.Join(reserved, ", "), strings.Join(l.settings, ", "))
		}
		t[key] = g
	}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		sub, isTable := doc[name].(map[string]any)
		own := slices.DeleteFunc(slices.Clone(l.settings), func(s string) bool { return !strings.HasPrefix(s, name+".") })
		switch {
		case len(own) == 0:
			put(dotted(name), doc[name])
			continue
		case !isTable:
			next(prefix+name, nil).failf("%s is %s; allowed is a table of the settings %s", name, show(doc[name]), strings.Join(own, ", "))
		}
		for _, key := range slices.Sorted(maps.Keys(sub)) {
			put(dotted(name, key), sub[key])
		}
	}
	return t
}

// parseSet reads one -set flag, key=value, where the value is TOML; a word that
// is no TOML value is taken as a string.
func (l *loader) parseSet(arg string) table {
	key, value, ok := strings.Cut(arg, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	flag := given{place: setFlag + arg}
	if !ok || key == "" || value == "" {
		flag.failf("want key=value, such as learner.kappa=4 or learner.kappa=[1,2,4]")
	}
	if strings.ContainsAny(arg, "\r\n") {
		given{place: setFlag + key + "=…"}.failf("one line is allowed")
	}
	if !strings.ContainsAny(value, "[]{}\"'") && toml.Unmarshal([]byte("x = "+value), new(map[string]any)) != nil {
		value = strconv.Quote(value)
	}
	base, cells := l.decode(flag.place, []byte(key+" = "+value))
	if cells != nil || len(base) == 0 {
		flag.failf("one key is allowed, not tables")
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

// resolved writes the configuration with every setting spelt out but those that
// follow another one, as a file that loads to the same sweep.
func (c *Config) resolved() ([]byte, error) {
	file := map[string]any{
		"name": c.Name, "question": c.Question, "metric": c.Metric, "show": c.Show,
		"reference": c.Cells[c.Reference].ID, "seeds": c.Seeds,
	}
	if c.Seeds[0] == 1 && c.Seeds[len(c.Seeds)-1] == uint64(len(c.Seeds)) && slices.IsSorted(c.Seeds) {
		file["seeds"] = len(c.Seeds)
	}
	if c.Group != "" {
		file["group"] = c.Group
	}
	var grids []map[string]any
	for _, g := range c.grids {
		top := map[string]any{}
		for k, key := range g.keys {
			if g.quiet[k] {
				continue
			}
			to := top
			table, name := split(key.Name)
			if table != "" {
				if top[table] == nil {
					top[table] = map[string]any{}
				}
				to = top[table].(map[string]any)
			}
			if to[name] = g.lists[k]; len(g.lists[k]) == 1 {
				to[name] = g.lists[k][0]
			}
		}
		grids = append(grids, top)
	}
	file[cellsTable] = grids
	return toml.Marshal(file)
}
