package experiments

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
)

// SettingError is about one setting of an entry or of a world.
type SettingError struct {
	Key string // empty where several are wrong together
	Err error
}

func (e *SettingError) Error() string { return e.Err.Error() }
func (e *SettingError) Unwrap() error { return e.Err }

// wrong is the error of a setting; key is empty where it is of several.
func wrong(key, format string, args ...any) error {
	return &SettingError{Key: key, Err: fmt.Errorf(format, args...)}
}

// Configure returns the settings at that level with the given keys set. A value
// is what TOML can hold: a number, a string, a truth value. Its error is a
// *SettingError.
func (e *Entry) Configure(level env.Level, keys map[string]any) (any, error) {
	if e.Settings == nil {
		for key := range keys {
			return nil, wrong(key, "%s has no setting %q, nor any other", e.Name, key)
		}
		return nil, nil
	}
	s, err := e.decode(level, keys)
	var (
		strict *toml.StrictMissingError
		dec    *toml.DecodeError
	)
	switch {
	case errors.As(err, &strict) && len(strict.Errors) > 0:
		key := strings.Join(strict.Errors[0].Key(), ".")
		for _, other := range e.Levels {
			if e.Has(other, key) {
				return nil, wrong(key, "%s has setting %q with knowledge %s only; here it is %s", e.Name, key, other, level)
			}
		}
		return nil, wrong(key, "%s has no setting %q; allowed are %s", e.Name, key, strings.Join(e.Keys(level), ", "))
	case errors.As(err, &dec):
		key := strings.Join(dec.Key(), ".")
		usual := e.defaults(level)[key]
		what := strings.TrimPrefix(dec.Error(), "toml: ")
		if strings.HasPrefix(what, "cannot decode") {
			what = wanted(usual)
		}
		return nil, wrong(key, "setting %q of %s is %v: %s; the default is %#v", key, e.Name, keys[key], what, usual)
	case err != nil:
		return nil, wrong(e.blamed(level, keys), "%s: %w", e.Name, err)
	}
	return s, nil
}

// decode returns the settings with the given keys set, and what is wrong with
// them.
func (e *Entry) decode(level env.Level, keys map[string]any) (any, error) {
	s := e.Settings(level)
	text, err := toml.Marshal(keys)
	if err != nil {
		return nil, err
	}
	if name, ok := keys["reading"].(string); ok { // where the others begin
		if r, ok := s.(interface{ SetReading(name string) error }); ok {
			if err := r.SetReading(name); err != nil {
				return nil, err
			}
		}
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(s); err != nil {
		return nil, err
	}
	if v, ok := s.(interface{ Validate() error }); ok {
		return s, v.Validate()
	}
	return s, nil
}

// blamed returns the first of the keys that is wrong by itself, or none if they
// are wrong together only.
func (e *Entry) blamed(level env.Level, keys map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if _, err := e.decode(level, map[string]any{key: keys[key]}); err != nil {
			return key
		}
	}
	return ""
}

// wanted says what kind of value a setting with that default takes.
func wanted(usual any) string {
	switch usual.(type) {
	case int64:
		return "a whole number is needed"
	case float64:
		return "a number is needed"
	case bool:
		return "true or false is needed"
	}
	return "a word is needed"
}

// Has reports whether there is a setting of that name at that level.
func (e *Entry) Has(level env.Level, key string) bool {
	_, ok := e.defaults(level)[key]
	return ok
}

// Keys lists the settings at that level.
func (e *Entry) Keys(level env.Level) []string {
	return slices.Sorted(maps.Keys(e.defaults(level)))
}

// defaults returns the settings at that level by key.
func (e *Entry) defaults(level env.Level) map[string]any {
	m := map[string]any{}
	if e.Settings == nil {
		return m
	}
	text, err := toml.Marshal(e.Settings(level))
	if err == nil {
		err = toml.Unmarshal(text, &m)
	}
	if err != nil {
		panic("experiments: settings of " + e.Name + ": " + err.Error())
	}
	return m
}
