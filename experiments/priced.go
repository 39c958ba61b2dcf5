package experiments

import (
	"fmt"

	"ephemera/env"
	"ephemera/learner/priced"
)

// pricedEntry is the priced actor-critic at all levels of knowledge.
var pricedEntry = Entry{
	Name:   "priced",
	About:  "the LSPE(0) actor-critic with a price for the budget",
	Levels: []env.Level{env.LevelModel, env.LevelObserved, env.LevelOnline},
	Settings: func(level env.Level) any {
		if level == env.LevelOnline {
			s := priced.DefaultOnlineSettings()
			return &s
		}
		s := priced.DefaultSettings()
		return &s
	},
	Train: func(k Known, settings any) (Trainee, error) {
		if s, ok := settings.(*priced.OnlineSettings); ok {
			if err := s.Validate(); err != nil {
				return nil, fmt.Errorf("settings: %w", err)
			}
			return pricedOnline{priced.NewOnline(k.Terms, s, k.Rand)}, nil
		}
		s := settings.(*priced.Settings)
		validate := s.Validate
		if k.Level == env.LevelObserved {
			validate = s.ValidateObserved
		}
		if err := validate(); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
		if k.Level == env.LevelObserved {
			return pricedObserved{priced.NewObserved(k.Instance, s, k.Rand)}, nil
		}
		return pricedModel{priced.New(k.Instance, s, k.Rand)}, nil
	},
}

type (
	pricedLearner   = priced.Learner
	learnerObserved = priced.Observed
	learnerOnline   = priced.Online
)

type pricedModel struct{ *pricedLearner }

func (p pricedModel) Learner() env.Agent { return env.NewAgent[env.Model](p.pricedLearner) }

func (p pricedModel) Frozen(Known) (env.Agent, error) {
	return env.NewAgent[env.Model](p.pricedLearner.Frozen()), nil
}

func (p pricedModel) Fallbacks() int    { return p.pricedLearner.Fallbacks() }
func (p pricedModel) Metrics() []Metric { return []Metric{{"price", p.Price()}} }
func (p pricedModel) State() any        { return p.pricedLearner.State() }

type pricedOnline struct{ *learnerOnline }

func (p pricedOnline) Learner() env.Agent { return env.NewAgent[env.Online](p.learnerOnline) }

func (p pricedOnline) Frozen(Known) (env.Agent, error) {
	return env.NewAgent[env.Online](p.learnerOnline.Frozen()), nil
}

func (p pricedOnline) Fallbacks() int    { return p.learnerOnline.Fallbacks() }
func (p pricedOnline) Metrics() []Metric { return []Metric{{"price", p.Price()}} }
func (p pricedOnline) State() any        { return p.learnerOnline.State() }

type pricedObserved struct{ *learnerObserved }

func (p pricedObserved) Learner() env.Agent { return env.NewAgent[env.Observed](p.learnerObserved) }

func (p pricedObserved) Frozen(Known) (env.Agent, error) {
	return env.NewAgent[env.Observed](p.learnerObserved.Frozen()), nil
}

func (p pricedObserved) Fallbacks() int    { return p.learnerObserved.Fallbacks() }
func (p pricedObserved) Metrics() []Metric { return []Metric{{"price", p.Price()}} }
func (p pricedObserved) State() any        { return p.learnerObserved.State() }

// InverseIndex implements Priced: on the true state the threshold is a state.
func (p pricedObserved) InverseIndex(i int) float64 { return p.Threshold(i) }

// ThresholdAge implements Aged.
func (p pricedModel) ThresholdAge(i int) float64 { return p.Threshold(i) }

// ThresholdAge implements Aged.
func (p pricedOnline) ThresholdAge(i int) float64 { return p.Threshold(i) }
