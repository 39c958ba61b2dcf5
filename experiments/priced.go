package experiments

import (
	"fmt"

	"ephemera/env"
	"ephemera/learner"
)

// pricedAlgorithm is the priced actor-critic at all levels of knowledge.
var pricedAlgorithm = Algorithm{
	Name:   "priced",
	About:  "the LSPE(0) actor-critic with a price for the budget",
	Levels: []env.Level{env.LevelModel, env.LevelObserved, env.LevelOnline},
	Settings: func(level env.Level) any {
		if level == env.LevelOnline {
			s := learner.DefaultOnlineSettings()
			return &s
		}
		s := learner.DefaultPricedSettings()
		return &s
	},
	New: func(k Known, settings any) (Trainee, error) {
		if s, ok := settings.(*learner.OnlineSettings); ok {
			if err := s.Validate(); err != nil {
				return nil, fmt.Errorf("settings: %w", err)
			}
			return pricedOnline{learner.NewPricedOnline(k.Terms, s, k.Rand)}, nil
		}
		s := settings.(*learner.PricedSettings)
		validate := s.Validate
		if k.Level == env.LevelObserved {
			validate = s.ValidateObserved
		}
		if err := validate(); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
		if k.Level == env.LevelObserved {
			return pricedObserved{learner.NewPricedObserved(k.Instance, s, k.Rand)}, nil
		}
		return priced{learner.NewPriced(k.Instance, s, k.Rand)}, nil
	},
}

type priced struct{ *learner.Priced }

func (p priced) Learner() env.Agent { return env.NewAgent[env.Model](p.Priced) }

func (p priced) Frozen(Known) (env.Agent, error) {
	return env.NewAgent[env.Model](p.Priced.Frozen()), nil
}

func (p priced) Fallbacks() int    { return p.Priced.Fallbacks() }
func (p priced) Metrics() []Metric { return []Metric{{"price", p.Price()}} }
func (p priced) State() any        { return p.Priced.State() }

type pricedOnline struct{ *learner.PricedOnline }

func (p pricedOnline) Learner() env.Agent { return env.NewAgent[env.Online](p.PricedOnline) }

func (p pricedOnline) Frozen(Known) (env.Agent, error) {
	return env.NewAgent[env.Online](p.PricedOnline.Frozen()), nil
}

func (p pricedOnline) Fallbacks() int    { return p.PricedOnline.Fallbacks() }
func (p pricedOnline) Metrics() []Metric { return []Metric{{"price", p.Price()}} }
func (p pricedOnline) State() any        { return p.PricedOnline.State() }

type pricedObserved struct{ *learner.PricedObserved }

func (p pricedObserved) Learner() env.Agent { return env.NewAgent[env.Observed](p.PricedObserved) }

func (p pricedObserved) Frozen(Known) (env.Agent, error) {
	return env.NewAgent[env.Observed](p.PricedObserved.Frozen()), nil
}

func (p pricedObserved) Fallbacks() int    { return p.PricedObserved.Fallbacks() }
func (p pricedObserved) Metrics() []Metric { return []Metric{{"price", p.Price()}} }
func (p pricedObserved) State() any        { return p.PricedObserved.State() }

// InverseIndex implements Priced: on the true state the threshold is a state.
func (p pricedObserved) InverseIndex(i int) float64 { return p.Threshold(i) }

// ThresholdAge implements Aged.
func (p priced) ThresholdAge(i int) float64 { return p.Threshold(i) }

// ThresholdAge implements Aged.
func (p pricedOnline) ThresholdAge(i int) float64 { return p.Threshold(i) }
