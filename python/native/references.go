package native

import (
	"context"
	"fmt"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
)

// Question asks for what follows from an instance, or for the catalogue.
type Question struct {
	Spec
	What string `json:"what"` // relax, sources or catalogue
}

// Relaxed is the relaxed optimum as data. An age of −1 stands for never.
type Relaxed struct {
	Bound     float64   `json:"bound"`
	Reward    float64   `json:"reward"`
	Price     float64   `json:"price"`
	Cost      float64   `json:"cost"`
	Short     []int     `json:"short"`
	Long      []int     `json:"long"`
	Share     []float64 `json:"share"`
	Frequency []float64 `json:"frequency"`
}

// Listed is a source as data; a window of −1 stands for none.
type Listed struct {
	Name     string  `json:"name"`
	Rate     float64 `json:"rate"`
	Decay    float64 `json:"decay"`
	Interest float64 `json:"interest"`
	Window   float64 `json:"window"`
	Cost     float64 `json:"cost"`
}

// Entry is a learner or policy of the catalogue as data.
type Entry struct {
	Name   string   `json:"name"`
	About  string   `json:"about"`
	Learns bool     `json:"learns"`
	Levels []string `json:"levels"`
}

// Ask answers a question with what JSON can hold.
func Ask(text []byte) (any, error) {
	var q Question
	if err := decode(text, &q); err != nil {
		return nil, err
	}
	if q.What == "catalogue" {
		return catalogue(), nil
	}
	in, err := q.instance()
	if err != nil {
		return nil, err
	}
	switch q.What {
	case "relax":
		return relax(in), nil
	case "sources":
		list := make([]Listed, len(in.Sources))
		for i, s := range in.Sources {
			list[i] = Listed{s.Name, s.Rate, s.Decay, s.Interest, s.Window, s.Cost}
			if s.Window > 1e300 {
				list[i].Window = -1
			}
		}
		return map[string]any{"id": in.ID, "budget": in.Budget, "sources": list}, nil
	}
	return nil, fmt.Errorf("unknown question %q", q.What)
}

func relax(in env.Instance) Relaxed {
	r := index.Relax(in, index.MeanDynamics)
	never := func(ages []int) []int {
		out := make([]int, len(ages))
		for i, a := range ages {
			if out[i] = a; a == index.Never {
				out[i] = -1
			}
		}
		return out
	}
	return Relaxed{r.Bound, r.Reward, r.Price, r.Cost, never(r.Short), never(r.Long), r.Share, r.Frequency}
}

func catalogue() []Entry {
	all := make([]Entry, len(experiments.Catalogue))
	for i := range experiments.Catalogue {
		e := &experiments.Catalogue[i]
		all[i] = Entry{Name: e.Name, About: e.About, Learns: e.Learns(), Levels: []string{e.FirstLevel().String()}}
		if len(e.Levels) > 0 {
			all[i].Levels = all[i].Levels[:0]
			for _, l := range e.Levels {
				all[i].Levels = append(all[i].Levels, l.String())
			}
		}
	}
	return all
}

// Curves are functions of a source and a number that Evaluate knows.
var Curves = map[string]func(s env.Source, v float64) float64{
	"index":        index.Whittle, // of a state: γ(x)
	"index_at_age": atAge(index.WhittleAtAge),
	"state_at_age": atAge(env.Source.MeanState),
	"inverse":      index.Inverse, // of a price: γ⁻¹(λ)
}

// atAge makes a function of whole ages one of numbers.
func atAge(f func(env.Source, int) float64) func(env.Source, float64) float64 {
	return func(s env.Source, v float64) float64 { return f(s, int(v)) }
}

// Evaluate writes a curve at rows of numbers, one for each source of an
// instance, into a block of the same shape.
func Evaluate(ctx context.Context, text []byte, in, out []float64) error {
	var q Question
	if err := decode(text, &q); err != nil {
		return err
	}
	instance, err := q.instance()
	if err != nil {
		return err
	}
	f := Curves[q.What]
	n := len(instance.Sources)
	if f == nil || len(in)%n != 0 || len(in) != len(out) {
		return fmt.Errorf("curve %q at %d numbers for %d sources", q.What, len(in), n)
	}
	for k, v := range in {
		if !(v >= 0) {
			return fmt.Errorf("source %d: %s at %v; allowed is 0 or more", k%n, q.What, v)
		}
		if k%(1<<20) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		out[k] = f(instance.Sources[k%n], v)
	}
	return nil
}
