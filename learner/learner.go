// Package learner is the list of the learners, and how one is saved and loaded.
// The learners are state machines without files or clocks:
//
//  1. critic is LSPE(0), with its running inverse and step sizes.
//  2. paper is the actor-critic as it was published.
//  3. lspe is the actor-critic with a price for the budget.
//  4. estimate is what is estimated from crawled items, and forecast the
//     learner that crawls by it.
//
// What train saves in a directory is run by another program with [Load].
package learner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/forecast"
	"ephemera/learner/lspe"
	"ephemera/learner/lspe/observed"
	"ephemera/learner/paper"
)

// Learner is what each learner of this module offers.
type Learner interface {
	// Agent learns as it is run.
	Agent() env.Agent
	// Frozen is the policy that would be deployed now. It draws nothing, and what the learner
	// learns later does not change it. What it would learn itself does not reach it: see
	// [env.Agent.Fixed].
	Frozen() env.Agent
	// Metrics are figures of its state, under lasting names.
	Metrics() []Metric
	// State is its whole state as data that encoding/json takes, and SetState
	// takes up a state that was encoded so. After an error the learner must not
	// be used.
	State() any
	SetState(data []byte) error
}

// Metric is one figure of a learner's state.
type Metric struct {
	Name  string // with its unit, as a column heading
	Value float64
}

// Inputs is what a learner or a policy is built from.
type Inputs struct {
	Instance env.Instance // parameters of the sources: the true ones, or fitted ones
	Terms    env.Terms    // what every crawler knows; all that an online learner is given
	Level    env.Level    // what it will see of the world
	Rand     *stream.Rand // its own stream
	Marks    env.Marks    // law of the items' initial interest; empty where the model has none
}

// Kind is a kind of learner.
type Kind struct {
	Name   string
	About  string // one line
	Page   string // of the docs, which lists its settings; empty for a learner of another program
	Levels []env.Level
	// Version is that of the states at a level; nil is always 0. It rises with the form of
	// a state, and where the same state would go on otherwise: a run that is resumed ends as
	// if it had not been interrupted, or not at all. Runs that experiments keep of another
	// version are made again.
	Version func(level env.Level) int
	// Settings returns a pointer to the settings at that level, filled with
	// the defaults. Its toml tags name the keys.
	Settings func(level env.Level) any
	// Overruns reports whether settings let crawls cost more than the budget;
	// nil if none do.
	Overruns func(settings any) bool
	// FromItems says that it learns the rates and interest of items, which the objective of
	// its terms turns into an index. Another learns what a crawl is worth from what it
	// brings, which no crawl shows under delay and freshness.
	FromItems bool
	// New builds a learner from settings as Settings returns them.
	New func(g Inputs, settings any) (Learner, error)
}

// Kinds are all kinds; the first is the default.
var Kinds = []Kind{
	{ // where nothing is known but costs and budget, and where the true state is seen as well
		Name:   "lspe",
		About:  "the LSPE(0) actor-critic with a price for the budget",
		Page:   "docs/lspe.md",
		Levels: []env.Level{env.LevelOnline, env.LevelObserved},
		Version: func(level env.Level) int {
			if level == env.LevelObserved {
				return observed.Version
			}
			return lspe.Version
		},
		Settings: func(level env.Level) any {
			if level == env.LevelObserved {
				s := observed.DefaultSettings()
				return &s
			}
			s := lspe.DefaultSettings()
			return &s
		},
		New: func(g Inputs, settings any) (Learner, error) {
			if s, ok := settings.(*observed.Settings); ok {
				l, err := observed.New(g.Terms, *s, g.Rand)
				return lspeObserved{l}, err
			}
			l, err := lspe.New(g.Terms, settings.(*lspe.Settings), g.Rand)
			return lspeOnline{l}, err
		},
	},
	{ // where nothing is known beforehand, and items are seen
		Name:     "forecast",
		About:    "Whittle's index of what is foretold from crawled items",
		Page:     "docs/online.md",
		Levels:   []env.Level{env.LevelOnline},
		Version:  func(env.Level) int { return forecast.Version },
		Settings: func(env.Level) any { s := forecast.DefaultSettings(); return &s },

		FromItems: true,
		New: func(g Inputs, settings any) (Learner, error) {
			l, err := forecast.New(g.Terms, settings.(*forecast.Settings))
			return forecastLearner{l}, err
		},
	},
	{
		Name:     "paper",
		About:    "the LSPE(0) actor-critic of Allerton 2019, as printed unless -set reading says otherwise",
		Page:     "docs/paper-learner.md",
		Levels:   []env.Level{env.LevelModel},
		Version:  func(env.Level) int { return paper.Version },
		Settings: func(env.Level) any { s := paper.DefaultSettings(); return &s },
		Overruns: func(s any) bool { return s.(*paper.Settings).Act == "probabilistic" },
		New: func(g Inputs, s any) (Learner, error) {
			l, err := paper.New(g.Instance, *s.(*paper.Settings), g.Rand)
			return paperLearner{l}, err
		},
	},
}

// Register adds a kind of learner of one's own: to the commands, to the saved
// learners that can be loaded, and to the catalogue. It panics if there is one of
// that name, or if it works at no level of knowledge, and is called before anything is run.
func Register(k Kind) {
	if slices.ContainsFunc(Kinds, func(other Kind) bool { return other.Name == k.Name }) {
		panic(fmt.Sprintf("learner: %q is there already", k.Name))
	}
	if len(k.Levels) == 0 {
		panic(fmt.Sprintf("learner: %q has no Levels; needed are the levels of knowledge at which it works", k.Name))
	}
	Kinds = append(Kinds, k)
}

func (k *Kind) version(level env.Level) int {
	if k.Version == nil {
		return 0
	}
	return k.Version(level)
}

// find returns the kind of that name, if it works at that level.
func find(name string, level env.Level) (*Kind, error) {
	var names []string
	for i := range Kinds {
		k := &Kinds[i]
		if k.Name == name && slices.Contains(k.Levels, level) {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return nil, fmt.Errorf("no learner %q at knowledge %q; there are %s", name, level, strings.Join(names, ", "))
}

// restore decodes a state and hands it to set.
func restore[S any](data []byte, set func(S) error) error {
	var s S
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return err
	}
	return set(s)
}

// The learners with what [Learner] asks for.
type (
	lspeObserved    struct{ *observed.Learner }
	lspeOnline      struct{ *lspe.Learner }
	forecastLearner struct{ *forecast.Learner }
	paperLearner    struct{ *paper.Learner }
)

func (p lspeObserved) Agent() env.Agent           { return env.NewAgent[env.Observed](p.Learner) }
func (p lspeObserved) Frozen() env.Agent          { return env.NewAgent[env.Observed](p.Learner.Frozen()) }
func (p lspeObserved) Metrics() []Metric          { return []Metric{{"price", p.Price()}} }
func (p lspeObserved) State() any                 { return p.Learner.State() }
func (p lspeObserved) SetState(data []byte) error { return restore(data, p.Learner.SetState) }

func (p lspeOnline) Agent() env.Agent {
	return env.NewAgent[env.Online](p.Learner).WithRescale(p.Rescale)
}

func (p lspeOnline) Frozen() env.Agent          { return env.NewAgent[env.Online](p.Learner.Frozen()) }
func (p lspeOnline) Metrics() []Metric          { return []Metric{{"price", p.Price()}} }
func (p lspeOnline) State() any                 { return p.Learner.State() }
func (p lspeOnline) SetState(data []byte) error { return restore(data, p.Learner.SetState) }

func (f forecastLearner) Agent() env.Agent {
	return env.NewAgent[env.Online](f.Learner).WithReport(f.Report)
}

func (f forecastLearner) Frozen() env.Agent          { return env.NewAgent[env.Online](f.Learner.Frozen()) }
func (f forecastLearner) Metrics() []Metric          { return []Metric{{"price", f.Price()}} }
func (f forecastLearner) State() any                 { return f.Learner.State() }
func (f forecastLearner) SetState(data []byte) error { return restore(data, f.Learner.SetState) }

func (p paperLearner) Agent() env.Agent           { return env.NewAgent[env.Model](p.Learner) }
func (p paperLearner) Frozen() env.Agent          { return env.NewAgent(p.Learner.Frozen()) }
func (p paperLearner) Fallbacks() int             { return p.Critic().Fallbacks() }
func (p paperLearner) State() any                 { return p.Learner.State() }
func (p paperLearner) SetState(data []byte) error { return restore(data, p.Learner.SetState) }

func (p paperLearner) Metrics() []Metric {
	return []Metric{{"eta", p.Critic().Average()}, {"fallbacks", float64(p.Fallbacks())}}
}
