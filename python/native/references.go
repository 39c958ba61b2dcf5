package native

import (
	"fmt"

	"github.com/pelletier/go-toml/v2"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
)

// instance returns the text of the file of an instance, by its name or path, with the
// budget, 0 for its own.
func instance(name string, budget float64) (string, error) {
	in, err := env.Named(name, budget)
	if err != nil {
		return "", err
	}
	text, err := toml.Marshal(in)
	return string(text), err
}

// relax returns the relaxed optimum of an instance.
func relax(name string, budget float64) (x index.Relaxed, err error) {
	in, err := env.Named(name, budget)
	if err != nil {
		return x, err
	}
	return index.Relax(in.MeanDynamics()), nil
}

// curves are functions of a source and a number.
var curves = map[string]func(s env.Source, v float64) float64{
	"index":        index.Whittle, // of a state: γ(x)
	"index_at_age": func(s env.Source, v float64) float64 { return index.WhittleAtAge(s.MeanDynamics(), int(v)) },
	"state_at_age": func(s env.Source, v float64) float64 { return s.MeanState(int(v)) },
	"inverse":      index.Inverse, // of a price: γ⁻¹(λ)
}

// curve writes a curve over the rows of numbers at which it is wanted, one for each
// source of an instance.
func curve(what string, columns int, name string, n Numbers) error {
	in, err := env.Named(name, 0)
	if err != nil {
		return err
	}
	if columns != len(in.Sources) {
		return fmt.Errorf("the rows have %d values; needed is one for each of %d sources", columns, len(in.Sources))
	}
	for k, v := range n {
		n[k] = curves[what](in.Sources[k%columns], v)
	}
	return nil
}

// catalogue returns the learners and policies.
func catalogue() (all []map[string]any) {
	for _, e := range experiments.Catalogue() {
		all = append(all, map[string]any{"name": e.Name, "about": e.About, "learns": e.Learns, "levels": e.Levels})
	}
	return all
}
