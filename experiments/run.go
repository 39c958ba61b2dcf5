package experiments

import (
	"cmp"
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
	"ephemera/learner"
)

// Run is one run as data: a learner or a policy in a world under a seed, for so
// many epochs. Configurations, flags and records have the same names for its
// settings. [NewRun] has the defaults, [Run.Set] sets one by its name, and
// [Engine.Resolve] fills in what was left out and checks all of it.
type Run struct {
	Steps int `toml:"steps" json:"steps"` // epochs of learning
	// Epochs over which the learned policy is measured; 0 for as many as steps.
	Evaluation int    `toml:"evaluation" json:"evaluation"`
	Seed       uint64 `toml:"seed" json:"seed"`

	Instance struct {
		// paper, a family such as lognormal:N[:SEED], or a .toml file; none of a recording.
		Name string `toml:"name" json:"name,omitempty"`
		// Law of interest of all its sources, one of env.LawsAllowed; their own if empty.
		Law string `toml:"law" json:"law,omitempty"`
		// Objective is what crawls are to bring about, as env.ParseObjective reads it, in
		// place of the sources' laws of interest; an epoch counts as an hour. None if empty.
		Objective string `toml:"objective" json:"objective,omitempty"`

		// An instance of the same sources, whose parameters all are given but the
		// reference, "whittle"; none if empty.
		Believe string `toml:"believe" json:"believe,omitempty"`
		// Budget units per epoch; 0 for the instance's own, 1 of a recording.
		Budget float64 `toml:"budget" json:"budget"`
	} `toml:"instance" json:"instance"`

	World World `toml:"world" json:"world"`

	// Learner holds the algorithm, an entry of the catalogue, and its settings.
	// NAME@LEVEL is the algorithm with a knowledge other than its first.
	Learner map[string]any `toml:"learner" json:"learner"`
}

// Names of settings.
const (
	learnerPrefix = "learner."
	AlgorithmKey  = learnerPrefix + "algorithm"
)

// NewRun returns a run with all defaults but those that follow the learner and the world.
func NewRun() (r Run) {
	r.Steps, r.Seed = 10_000, 1
	return r
}

// Set sets one setting by its dotted name, such as learner.kappa. Its error is a
// *SettingError.
func (r *Run) Set(key string, value any) error {
	if name, ok := strings.CutPrefix(key, learnerPrefix); ok {
		r.Learner = maps.Clone(r.Learner) // runs may share it
		if r.Learner == nil {
			r.Learner = map[string]any{}
		}
		r.Learner[name] = value
		return nil
	}
	all := maps.Collect(fields(reflect.ValueOf(r).Elem()))
	delete(all, "learner")
	field, ok := all[key]
	if !ok {
		allowed := strings.Join(slices.Sorted(maps.Keys(all)), ", ")
		return wrong("unknown setting %q; allowed are %s, %s, and learner.NAME for each setting NAME of the algorithm",
			key, allowed, AlgorithmKey)
	}
	if err := setValue(field, value); err != nil {
		return wrong("%s is %#v: %w", key, value, err)
	}
	if field.Kind() == reflect.Float64 && !(field.Float() > 0) { // 0 stands for what is left out
		return wrong("%s is %v; allowed is a number above 0", key, value)
	}
	return nil
}

// Keys lists the settings that a run with its algorithm has, but for the seed:
// the algorithm first, and its own settings last.
func (r Run) Keys() ([]string, error) {
	e, level, err := r.contender()
	if err != nil {
		return nil, err
	}
	keys := []string{AlgorithmKey}
	for key := range fields(reflect.ValueOf(&r).Elem()) {
		if key != "seed" && key != "learner" {
			keys = append(keys, key)
		}
	}
	for _, key := range e.Keys(level) {
		keys = append(keys, learnerPrefix+key)
	}
	return keys, nil
}

// Value returns a setting of a resolved run, a float64, an int64, a string or a
// bool, or nil where it has none of that name.
func (r Run) Value(key string) any {
	if name, ok := strings.CutPrefix(key, learnerPrefix); ok {
		return r.Learner[name]
	}
	if field, ok := maps.Collect(fields(reflect.ValueOf(&r).Elem()))[key]; ok {
		return plainValue(field)
	}
	return nil
}

// Algorithm returns the name of the learner or policy, with its level where that
// is not its first.
func (r Run) Algorithm() string {
	name, _ := r.Learner["algorithm"].(string)
	return cmp.Or(name, learner.Kinds[0].Name)
}

// contender returns the learner or policy, and its level of knowledge.
func (r Run) contender() (*Entry, env.Level, error) {
	name, at := r.Algorithm(), ""
	if !strings.HasPrefix(name, SavedPrefix) {
		name, at, _ = strings.Cut(name, "@")
	}
	e, err := Find(name)
	if err != nil {
		return nil, "", &SettingError{err}
	}
	if at == "" {
		return e, e.FirstLevel(), nil
	}
	switch level := env.Level(at); level {
	case env.LevelOnline, env.LevelModel, env.LevelObserved:
		return e, level, nil
	}
	return nil, "", wrong("unknown knowledge %q; allowed are model, observed and online", at)
}

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

// configure finds the learner or policy of a job, its level and its settings, which the run then has
// spelt out.
func (c *Job) configure() (err error) {
	if c.Entry, c.Level, err = c.contender(); err != nil {
		return err
	}
	keys := maps.Clone(c.Learner)
	delete(keys, "algorithm")
	if c.Settings, err = c.Entry.Configure(c.Level, keys); err != nil {
		return err
	}
	c.Learner = map[string]any{"algorithm": c.Entry.Name}
	if c.Level != c.Entry.FirstLevel() {
		c.Learner["algorithm"] = c.Entry.Name + "@" + string(c.Level)
	}
	if c.Settings != nil {
		for key, field := range fields(reflect.ValueOf(c.Settings).Elem()) {
			c.Learner[key] = plainValue(field)
		}
	}
	return nil
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
