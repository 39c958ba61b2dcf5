// Own is a program outside of the checkout: all commands, with a learner and a world of
// its own.
//
//	go run . train -algorithm tracker -steps 2000 -out results/tracker
//	go run . bench -policies tracker,certainty,whittle -set step=0.2 -world noisy
//
// It is also the library of the Python package, with both:
//
//	go build -buildmode=c-shared -o libown.so
//	EPHEMERA_LIBRARY=./libown.so python
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"ephemera/baselines"
	"ephemera/cmd"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/learner"
)

// settings are what -set and the keys learner.* of a sweep set.
type settings struct {
	Step float64 `toml:"step"` // of the averages
}

// tracker crawls by an average of what a source brought per epoch waited.
type tracker struct {
	step  float64
	terms env.Terms
	rates []float64 // interest per epoch
	sel   *baselines.Selector
}

func newTracker(step float64, t env.Terms, rates []float64) *tracker {
	return &tracker{step, t, rates, baselines.NewSelector(t.Costs, t.Budget)}
}

const unknown = 1e9 // rate before the first crawl, which makes it the next

func (t *tracker) Select(dst []int, o *env.Online) []int {
	keys := make([]float64, len(t.rates))
	for i, rate := range t.rates {
		keys[i] = rate * float64(o.Age(i))
	}
	return t.sel.Top(dst, keys) // by decreasing key, within the budget
}

func (t *tracker) Update(crawls []env.Crawled, _ *env.Online) {
	for _, c := range crawls {
		rate, found := &t.rates[c.Source], c.Interest/float64(c.Age)
		if *rate == unknown {
			*rate = found
		}
		*rate += t.step * (found - *rate)
	}
}

// state is what is saved of a tracker. It is a struct, so that a state with other keys, of
// another version, is refused.
type state struct {
	Rates []float64 `json:"rates"`
}

func (t *tracker) Agent() env.Agent          { return env.NewAgent[env.Online](t) }
func (t *tracker) Metrics() []learner.Metric { return nil }
func (t *tracker) State() any                { return state{t.rates} }

// Frozen returns what was learned so far. The tracker may go on learning meanwhile.
func (t *tracker) Frozen() env.Agent {
	return env.NewAgent[env.Online](newTracker(t.step, t.terms, slices.Clone(t.rates)))
}

func (t *tracker) SetState(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var s state
	if err := d.Decode(&s); err != nil {
		return err
	}
	if len(s.Rates) != len(t.rates) {
		return fmt.Errorf("the state has %d rates; needed are %d, one for each source", len(s.Rates), len(t.rates))
	}
	t.rates = s.Rates
	return nil
}

func init() {
	learner.Register(learner.Kind{
		Name: "tracker", About: "crawls by an average of what was found", Levels: []env.Level{env.LevelOnline},
		Settings: func(env.Level) any { return &settings{Step: .1} },
		New: func(g learner.Inputs, s any) (learner.Learner, error) {
			rates := slices.Repeat([]float64{unknown}, len(g.Terms.Costs))
			return newTracker(s.(*settings).Step, g.Terms, rates), nil
		},
	})
	experiments.RegisterWorld("noisy", func(in env.Instance, _ env.Level) (experiments.Scene, error) {
		return experiments.PoissonScene(in, env.MarksPerItem), nil
	})
}

func main() { cmd.Main() }
