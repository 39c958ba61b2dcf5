package native

import (
	"fmt"

	"github.com/pelletier/go-toml/v2"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
)

// reference answers about an instance: with its relaxed optimum, or with the text
// of its file.
func reference(what string, text []byte) (any, error) {
	s := usual()
	if err := decode(text, &s); err != nil {
		return nil, err
	}
	in, err := s.instance(1)
	if err != nil {
		return nil, err
	}
	if what == "relax" {
		return index.Relax(in.MeanDynamics()), nil
	}
	b, err := toml.Marshal(in)
	return string(b), err
}

// catalogue answers with the learners and policies.
func catalogue() any {
	var all []map[string]any
	for _, e := range experiments.Catalogue() {
		all = append(all, map[string]any{"name": e.Name, "about": e.About, "learns": e.Learns(), "levels": e.Levels})
	}
	return all
}

// curves are functions of a source and a number.
var curves = map[string]func(s env.Source, v float64) float64{
	"index":        index.Whittle, // of a state: γ(x)
	"index_at_age": func(s env.Source, v float64) float64 { return index.WhittleAtAge(s.MeanDynamics(), int(v)) },
	"state_at_age": func(s env.Source, v float64) float64 { return s.MeanState(int(v)) },
	"inverse":      index.Inverse, // of a price: γ⁻¹(λ)
}

// curve appends a curve at rows of numbers, one for each source of an instance.
func curve(text []byte, in, to []float64) ([]float64, error) {
	q := struct {
		spec
		Curve   string
		Columns int // of the rows
	}{spec: usual()}
	if err := decode(text, &q); err != nil {
		return nil, err
	}
	inst, err := q.instance(1)
	if err != nil {
		return nil, err
	}
	f, n := curves[q.Curve], len(inst.Sources)
	if f == nil || q.Columns != n || len(in)%n != 0 {
		return nil, fmt.Errorf("curve %q of %d sources at %d numbers in rows of %d", q.Curve, n, len(in), q.Columns)
	}
	for k, v := range in {
		to = append(to, f(inst.Sources[k%n], v))
	}
	return to, nil
}
