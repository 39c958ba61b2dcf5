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

// table is what a file gives for some keys, each as the library decodes it: a
// value, or a []any of values.
type table map[string]any

// cellsTable is the list of tables that are grids by themselves.
const cellsTable = "cells"

// shape returns the type that a file is decoded into: a field for every key, in
// a struct for each name before a dot, and the settings once more for each
// [[cells]]. The key without is left out.
func shape(settings []string, without string) reflect.Type {
	cell := fields(settings, without)
	file := append(fields(keyNames(reserved), without), cell...)
	return structOf(append(file, reflect.StructField{Name: cellsTable, Type: reflect.SliceOf(structOf(cell))}))
}

func fields(keys []string, without string) []reflect.StructField {
	tables := map[string][]reflect.StructField{}
	for _, key := range keys {
		t, name := split(key)
		of := tables[t] // there also without its last key
		if key != without {
			of = append(of, reflect.StructField{Name: name, Type: reflect.TypeFor[any]()})
		}
		tables[t] = of
	}
	all := tables[""]
	for _, t := range slices.Sorted(maps.Keys(tables)) {
		if t != "" {
			all = append(all, reflect.StructField{Name: t, Type: structOf(tables[t])})
		}
	}
	return all
}

// split takes a key apart into its table, "" for none, and the rest.
func split(key string) (table, name string) {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)], key[i+1:]
}

// structOf makes a struct whose fields have the given names in TOML.
func structOf(fields []reflect.StructField) reflect.Type {
	named := slices.Clone(fields)
	for i, f := range fields {
		named[i].Tag = reflect.StructTag(fmt.Sprintf("toml:%q", f.Name))
		named[i].Name = fmt.Sprint("F", i)
	}
	return reflect.StructOf(named)
}

// decode reads TOML strictly into a table and those of its [[cells]].
func (l *loader) decode(where string, data []byte) (base table, cells []table, err error) {
	doc := reflect.New(shape(l.settings(), "")).Elem()
	if err := l.strict(data, doc); err != nil {
		return nil, nil, l.explain(where, err)
	}
	base = table{}
	last := doc.NumField() - 1
	for i := range last {
		base.take("", doc.Type().Field(i), doc.Field(i))
	}
	for i := range doc.Field(last).Len() {
		cell, own := doc.Field(last).Index(i), table{}
		for k := range cell.NumField() {
			own.take("", cell.Type().Field(k), cell.Field(k))
		}
		cells = append(cells, own)
	}
	return base, cells, nil
}

func (l *loader) strict(data []byte, doc reflect.Value) error {
	return toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(doc.Addr().Interface())
}

// take adds a field, or those in it, if the file has them.
func (t table) take(prefix string, f reflect.StructField, v reflect.Value) {
	name := prefix + f.Tag.Get("toml")
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			t.take(name+".", v.Type().Field(i), v.Field(i))
		}
	case !v.IsNil():
		t[name] = v.Interface()
	}
}

// explain puts the place before an error of the library.
func (l *loader) explain(where string, err error) error {
	var missing *toml.StrictMissingError
	var decode *toml.DecodeError
	switch {
	case errors.As(err, &missing):
		e := &missing.Errors[0]
		key := strings.TrimPrefix(strings.Join(e.Key(), "."), cellsTable+".")
		if slices.Contains(keyNames(reserved), key) {
			return fmt.Errorf("%s: %s is not a setting of cells; it stands at the top of the file, above the first [[cells]]", at(where, e), key)
		}
		return fmt.Errorf("%s: unknown key %q; allowed are %s", at(where, e), key, strings.Join(append(keyNames(reserved), l.settings()...), ", "))
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
	if strings.HasPrefix(where, "-set ") {
		return where
	}
	line, column := e.Position()
	return fmt.Sprintf("%s:%d:%d", where, line, column)
}

// place says where a key of the base, or of the n-th [[cells]] counted from 0,
// was given: the flag, or the line at which the library finds it unknown when it
// is left out.
func (l *loader) place(n int, key string) string {
	if flag, ok := l.flags[key]; ok {
		return flag
	}
	path := key
	if n >= 0 {
		if _, ok := l.cells[n][key]; ok {
			path = cellsTable + "." + key
		}
	}
	skip := 0 // earlier [[cells]] with that key
	if path != key {
		for _, t := range l.cells[:n] {
			if _, ok := t[key]; ok {
				skip++
			}
		}
	}
	doc := reflect.New(shape(l.settings(), key)).Elem()
	var missing *toml.StrictMissingError
	if errors.As(l.strict(l.data, doc), &missing) {
		for i := range missing.Errors {
			if e := &missing.Errors[i]; strings.EqualFold(strings.Join(e.Key(), "."), path) {
				if skip == 0 {
					return at(l.file, e)
				}
				skip--
			}
		}
	}
	return l.file
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
	base, cells, err := l.decode("-set "+arg, []byte(key+" = "+value))
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
