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
	"encoding/json"
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
	rates []float64 // interest per epoch
	sel   *baselines.Selector
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

// frozen is a tracker that learns no more.
type frozen struct{ env.Policy[env.Online] }

func (t *tracker) Agent() env.Agent           { return env.NewAgent[env.Online](t) }
func (t *tracker) Frozen() env.Agent          { return env.NewAgent[env.Online](frozen{t}) }
func (t *tracker) Metrics() []learner.Metric  { return nil }
func (t *tracker) State() any                 { return t.rates }
func (t *tracker) SetState(data []byte) error { return json.Unmarshal(data, &t.rates) }

func init() {
	learner.Register(learner.Kind{
		Name: "tracker", About: "crawls by an average of what was found", Levels: []env.Level{env.LevelOnline},
		Settings: func(env.Level) any { return &settings{Step: .1} },
		New: func(g learner.Inputs, s any) (learner.Learner, error) {
			rates := slices.Repeat([]float64{unknown}, len(g.Terms.Costs))
			return &tracker{s.(*settings).Step, rates, baselines.NewSelector(g.Terms.Costs, g.Terms.Budget)}, nil
		},
	})
	experiments.RegisterWorld("noisy", func(in env.Instance, _ env.Level) (experiments.Scene, error) {
		return experiments.PoissonScene(in, env.MarksPerItem), nil
	})
}

func main() { cmd.Main() }
