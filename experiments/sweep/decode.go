package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// table is what a file or a flag gives for some keys.
type table map[string]given

// given is a value as the library decodes it, or a []any of values, and where it
// stands: file, line and column, or the flag.
type given struct {
	value any
	place string
}

func (g given) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", g.place, fmt.Errorf(format, args...))
}

const setFlag = "-set "

// flag reports whether a flag gives the value.
func (g given) flag() bool { return strings.HasPrefix(g.place, setFlag) }

// cellsTable is the list of tables that are grids by themselves.
const cellsTable = "cells"

// shape returns a struct type that TOML is decoded into, with a field for every
// key, those with a dot in a struct for what stands before it. Without leaves it
// has only these structs.
func shape(keys []string, leaves bool, more ...reflect.StructField) reflect.Type {
	var fields []reflect.StructField
	tables := map[string][]string{}
	for _, key := range keys {
		if t, name := split(key); t != "" {
			tables[t] = append(tables[t], name)
		} else if leaves {
			fields = append(fields, field(key, reflect.TypeFor[any]()))
		}
	}
	for _, t := range slices.Sorted(maps.Keys(tables)) {
		fields = append(fields, field(t, shape(tables[t], leaves)))
	}
	fields = append(fields, more...)
	for i := range fields {
		fields[i].Name = fmt.Sprint("F", i)
	}
	return reflect.StructOf(fields)
}

func field(name string, t reflect.Type) reflect.StructField {
	return reflect.StructField{Type: t, Tag: reflect.StructTag(fmt.Sprintf("toml:%q", name))}
}

// split takes a key apart into its table, "" for none, and the rest.
func split(key string) (table, name string) {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)], key[i+1:]
}

// decode reads TOML strictly into a table and those of its [[cells]].
func (l *loader) decode(where string, data []byte) (base table, cells []table, err error) {
	strict := func(leaves bool) (reflect.Value, error) {
		list := field(cellsTable, reflect.SliceOf(shape(l.settings, leaves)))
		doc := reflect.New(shape(append(slices.Clone(reserved), l.settings...), leaves, list))
		return doc.Elem(), toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(doc.Interface())
	}
	doc, err := strict(true)
	if err != nil {
		return nil, nil, l.explain(where, err)
	}
	// Decoded without leaves, every key is unknown, and the library says where.
	var all *toml.StrictMissingError
	places := map[string][]string{}
	if _, err := strict(false); errors.As(err, &all) {
		for i := range all.Errors {
			e := &all.Errors[i]
			key := strings.ToLower(strings.Join(e.Key(), "."))
			places[key] = append(places[key], at(where, e))
		}
	}
	last := doc.NumField() - 1
	base = take(doc, last, where, "", places)
	for i := range doc.Field(last).Len() {
		cell := doc.Field(last).Index(i)
		cells = append(cells, take(cell, cell.NumField(), where, cellsTable+".", places))
	}
	return base, cells, nil
}

// take returns the first n fields of a struct, or those in them, which the file
// has. The place of each is the next one of its name behind the prefix; keys of
// inline tables have none but the whole.
func take(v reflect.Value, n int, where, prefix string, places map[string][]string) table {
	t := table{}
	for i := range n {
		name, f := v.Type().Field(i).Tag.Get("toml"), v.Field(i)
		switch {
		case f.Kind() == reflect.Struct:
			for key, g := range take(f, f.NumField(), where, prefix+name+".", places) {
				t[name+"."+key] = g
			}
		case !f.IsNil():
			g := given{f.Interface(), where}
			if p := places[prefix+name]; len(p) > 0 {
				g.place, places[prefix+name] = p[0], p[1:]
			}
			t[name] = g
		}
	}
	return t
}

// explain puts the place before an error of the library.
func (l *loader) explain(where string, err error) error {
	var missing *toml.StrictMissingError
	var decode *toml.DecodeError
	switch {
	case errors.As(err, &missing):
		e := &missing.Errors[0]
		key := strings.TrimPrefix(strings.Join(e.Key(), "."), cellsTable+".")
		if slices.Contains(reserved, key) {
			return fmt.Errorf("%s: %s is not a setting of cells; it stands at the top of the file, above the first [[cells]]", at(where, e), key)
		}
		return fmt.Errorf("%s: unknown key %q; allowed are %s, %s", at(where, e), key, strings.Join(reserved, ", "), strings.Join(l.settings, ", "))
	case errors.As(err, &decode):
		what, _, _ := strings.Cut(strings.TrimPrefix(decode.Error(), "toml: "), " into struct field ") // of no use here
		if key := strings.Join(decode.Key(), "."); key != "" && !strings.Contains(what, key) {
			what = key + ": " + what
		}
		return fmt.Errorf("%s: %s", at(where, decode), what)
	}
	return fmt.Errorf("%s: %w", where, err)
}

// at is the place of an error; in a flag, it is the flag.
func at(where string, e *toml.DecodeError) string {
	if strings.HasPrefix(where, setFlag) {
		return where
	}
	line, column := e.Position()
	return fmt.Sprintf("%s:%d:%d", where, line, column)
}

// parseSet reads one -set flag, key=value, where the value is TOML; a word that
// is no TOML value is taken as a string.
func (l *loader) parseSet(arg string) (table, error) {
	key, value, ok := strings.Cut(arg, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" || value == "" {
		return nil, fmt.Errorf("-set %s: want key=value, such as learner.kappa=4 or learner.kappa=[1,2,4]", arg)
	}
	if strings.ContainsAny(arg, "\r\n") {
		return nil, fmt.Errorf("-set %s=…: one line is allowed", key)
	}
	if !strings.ContainsAny(value, "[]{}\"'") && toml.Unmarshal([]byte("x = "+value), new(map[string]any)) != nil {
		value = fmt.Sprintf("%q", value)
	}
	base, cells, err := l.decode(setFlag+arg, []byte(key+" = "+value))
	if err == nil && (cells != nil || len(base) == 0) {
		err = fmt.Errorf("-set %s: one key is allowed, not tables", arg)
	}
	return base, err
}

// convert turns a value as decoded into the type of the key.
func convert(k Key, v any) (any, error) {
	switch k.Default.(type) {
	case float64:
		switch v := v.(type) {
		case float64:
			if !math.IsNaN(v) { // NaN differs from itself, so cells could not be told apart
				return v, nil
			}
		case int64:
			return float64(v), nil
		}
		return nil, fmt.Errorf("%s is %s; allowed is a number", k.Name, show(v))
	case int64:
		n, ok := v.(int64)
		if f, isFloat := v.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 { // 1e5 is a float in TOML
			n, ok = int64(f), true
		}
		if ok && int64(int(n)) == n {
			return n, nil
		}
		return nil, fmt.Errorf("%s is %s; allowed is a whole number", k.Name, show(v))
	case bool:
		if v, ok := v.(bool); ok {
			return v, nil
		}
		return nil, fmt.Errorf("%s is %s; allowed is true or false", k.Name, show(v))
	}
	text, ok := v.(string)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is %s; allowed is a string", k.Name, show(v))
	case k.Allowed != nil && !slices.Contains(k.Allowed, text):
		return nil, fmt.Errorf("%s is %q; allowed are %s", k.Name, text, strings.Join(k.Allowed, ", "))
	}
	return text, nil
}

// show writes a value for an error message.
func show(v any) string {
	if text, ok := v.(string); ok {
		return fmt.Sprintf("%.80q", text)
	}
	return fmt.Sprintf("%.80s", FormatValue(v))
}
