package experiments

import (
	"encoding"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ephemera/env"
)

// Settings are structs whose toml tags name the keys, dotted where one struct
// holds another. A value comes from a flag, from TOML or from JSON: a number, a
// text or a truth value. This file gives each value to its field.

// SettingError is about a setting of a run, and not about a file that it names.
type SettingError struct{ error }

func (e *SettingError) Unwrap() error { return e.error }

// wrong is the error of a setting.
func wrong(format string, args ...any) error { return &SettingError{fmt.Errorf(format, args...)} }

// DecodeTOML is [env.DecodeTOML] into a struct of settings, whose keys are allowed.
func DecodeTOML(where string, text []byte, into any) error {
	var allowed []string
	for key := range fields(reflect.ValueOf(into).Elem()) {
		allowed = append(allowed, key)
	}
	return env.DecodeTOML(where, text, into, strings.Join(allowed, ", "))
}

// fields yields the settings that a struct holds, in their order.
func fields(of reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for i := range of.NumField() {
			key, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("toml"), ",")
			field := of.Field(i)
			_, isText := field.Addr().Interface().(encoding.TextUnmarshaler)
			switch {
			case field.Kind() == reflect.Struct && !isText:
				if key != "" {
					key += "."
				}
				for inner, value := range fields(field) {
					if !yield(key+inner, value) {
						return
					}
				}
			case key != "" && key != "-" && !yield(key, field):
				return
			}
		}
	}
}

// plainValue returns a field as a float64, an int64, a string or a bool.
func plainValue(field reflect.Value) any {
	if text, ok := field.Addr().Interface().(encoding.TextMarshaler); ok {
		b, err := text.MarshalText()
		if err != nil {
			panic("experiments: " + err.Error())
		}
		return string(b)
	}
	switch field.Kind() {
	case reflect.Float64:
		return field.Float()
	case reflect.Int:
		return field.Int()
	case reflect.Uint64:
		return int64(field.Uint())
	case reflect.Bool:
		return field.Bool()
	}
	return field.String()
}

// setValue gives a field a value, which may be a text that stands for a number or a
// truth value. Its error says what is allowed.
func setValue(field reflect.Value, value any) error {
	into := field.Addr().Interface()
	_, isText := into.(encoding.TextUnmarshaler)
	if text, given := value.(string); isText || field.Kind() == reflect.String {
		value = fmt.Sprint(value)
	} else if number, err := strconv.ParseFloat(text, 64); err == nil {
		value = number
	} else if given {
		value = json.RawMessage(text)
	}
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if needed := map[reflect.Kind]string{
		reflect.Float64: "a number", reflect.Int: "a whole number", reflect.Uint64: "a whole number, 0 or more,",
		reflect.Bool: "true or false",
	}[field.Kind()]; err != nil && needed != "" {
		return fmt.Errorf("%s is needed", needed)
	}
	return err
}

// readingKey is a setting that the defaults of others follow, of settings that have
// readings, such as those of the printed learner.
const readingKey = "reading"

// Configure returns the settings at that level with the given keys set. Its error
// is a *SettingError.
func (e *Entry) Configure(level env.Level, keys map[string]any) (any, error) {
	names := slices.Sorted(maps.Keys(keys))
	if e.Settings == nil && len(names) > 0 {
		return nil, wrong("%s has no setting %q, nor any other", e.Name, names[0])
	} else if e.Settings == nil {
		return nil, nil
	}
	s := e.Settings(level)
	if readings, ok := s.(interface{ SetReading(name string) error }); ok && keys[readingKey] != nil {
		if err := readings.SetReading(fmt.Sprint(keys[readingKey])); err != nil {
			return nil, wrong("%s: %w", e.Name, err)
		}
	}
	byKey := maps.Collect(fields(reflect.ValueOf(s).Elem()))
	for _, name := range names {
		field, ok := byKey[name]
		if !ok {
			return nil, wrong("%s has no setting %q with knowledge %s; allowed are %s",
				e.Name, name, level, strings.Join(e.Keys(level), ", "))
		}
		usual := plainValue(field)
		if err := setValue(field, keys[name]); err != nil {
			return nil, wrong("setting %q of %s is %v: %w; the default is %#v", name, e.Name, keys[name], err, usual)
		}
	}
	if v, ok := s.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, wrong("%s: %w", e.Name, err)
		}
	}
	return s, nil
}

// Keys lists the settings at that level in their order.
func (e *Entry) Keys(level env.Level) (keys []string) {
	if e.Settings == nil {
		return nil
	}
	for key := range fields(reflect.ValueOf(e.Settings(level)).Elem()) {
		keys = append(keys, key)
	}
	return keys
}
