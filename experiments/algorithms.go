package experiments

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
)

// Algorithm is a learner of the catalogue.
type Algorithm struct {
	Name   string
	About  string // one line
	Levels []env.Level
	// Settings returns a pointer to the settings at that level, filled with
	// the defaults. Its toml tags name the keys.
	Settings func(level env.Level) any
	// Overruns reports whether settings let crawls cost more than the budget.
	Overruns func(settings any) bool
	// New builds the learner from settings that Settings returned.
	New func(k Known, settings any) (Trainee, error)
}

// Trainee is a learner together with what comes out of it.
type Trainee interface {
	// Learner is the agent that learns as it is run.
	Learner() env.Agent
	// Frozen is the policy that would be deployed now; it learns no more. It
	// draws, if it does, from the stream of k.
	Frozen(k Known) (env.Agent, error)
	// Fallbacks counts how often an incremental inverse was not trusted and
	// the Tikhonov form was taken.
	Fallbacks() int
	// Metrics are figures of the learner's state, under lasting names.
	Metrics() []Metric
	// State is the learner's whole state as data that encoding/json takes.
	State() any
}

// Metric is one figure of a learner's state.
type Metric struct {
	Name  string // with its unit, as a column heading
	Value float64
}

// AlgorithmNames lists the learners of the catalogue.
func AlgorithmNames() []string {
	names := make([]string, len(Algorithms))
	for i, a := range Algorithms {
		names[i] = a.Name
	}
	return names
}

// IsAlgorithm reports whether the catalogue has a learner of that name.
func IsAlgorithm(name string) bool { return slices.Contains(AlgorithmNames(), name) }

// FindAlgorithm returns the learner of that name, if it works at that level.
func FindAlgorithm(name string, level env.Level) (Algorithm, error) {
	for _, a := range Algorithms {
		if a.Name != name {
			continue
		}
		if !slices.Contains(a.Levels, level) {
			levels := make([]string, len(a.Levels))
			for i, l := range a.Levels {
				levels[i] = l.String()
			}
			return Algorithm{}, fmt.Errorf("algorithm %q does not work with knowledge %q; allowed is %s", name, level, strings.Join(levels, ", "))
		}
		return a, nil
	}
	return Algorithm{}, fmt.Errorf("unknown algorithm %q; allowed are %s", name, strings.Join(AlgorithmNames(), ", "))
}

// Configure returns the algorithm's settings at that level with the given keys
// set. A value is what TOML can hold: a number, a string, a truth value.
func (a Algorithm) Configure(level env.Level, keys map[string]any) (any, error) {
	s := a.Settings(level)
	text, err := toml.Marshal(keys)
	if err != nil {
		return nil, fmt.Errorf("settings of %q: %w", a.Name, err)
	}
	d := toml.NewDecoder(strings.NewReader(string(text))).DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		var strict *toml.StrictMissingError
		if errors.As(err, &strict) && len(strict.Errors) > 0 {
			key := strings.Join(strict.Errors[0].Key(), ".")
			for _, other := range a.Levels {
				if _, ok := a.defaults(other)[key]; ok {
					return nil, fmt.Errorf("algorithm %q has setting %q with knowledge %s only; here it is %s", a.Name, key, other, level)
				}
			}
			return nil, fmt.Errorf("algorithm %q has no setting %q; allowed are %s", a.Name, key, strings.Join(a.Keys(level), ", "))
		}
		var dec *toml.DecodeError
		if errors.As(err, &dec) {
			key := strings.Join(dec.Key(), ".")
			usual := a.defaults(level)[key]
			what := strings.TrimPrefix(dec.Error(), "toml: ")
			if strings.HasPrefix(what, "cannot decode") {
				what = wanted(usual)
			}
			return nil, fmt.Errorf("setting %q of algorithm %q is %v: %s; the default is %#v", key, a.Name, keys[key], what, usual)
		}
		return nil, fmt.Errorf("settings of %q: %w", a.Name, err)
	}
	if v, ok := s.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, fmt.Errorf("algorithm %q: %w", a.Name, err)
		}
	}
	return s, nil
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

// Keys lists the settings of the algorithm at that level.
func (a Algorithm) Keys(level env.Level) []string {
	m := a.defaults(level)
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// defaults returns the settings of the algorithm at that level by key.
func (a Algorithm) defaults(level env.Level) map[string]any {
	text, err := toml.Marshal(a.Settings(level))
	if err != nil {
		panic("experiments: settings of " + a.Name + ": " + err.Error())
	}
	var m map[string]any
	if err := toml.Unmarshal(text, &m); err != nil {
		panic("experiments: settings of " + a.Name + ": " + err.Error())
	}
	return m
}
