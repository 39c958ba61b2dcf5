package learner

import (
	"ephemera/env"
	"ephemera/learner/online"
	"ephemera/learner/priced"
)

// lspeKind is the actor-critic with a price at all levels of knowledge.
var lspeKind = Kind{
	Name:   "lspe",
	About:  "the LSPE(0) actor-critic with a price for the budget",
	Levels: []env.Level{env.LevelModel, env.LevelObserved, env.LevelOnline},
	Settings: func(level env.Level) any {
		switch level {
		case env.LevelOnline:
			s := online.DefaultActorSettings()
			return &s
		case env.LevelObserved:
			s := priced.DefaultObservedSettings()
			return &s
		}
		s := priced.DefaultSettings()
		return &s
	},
	Overruns: func(s any) bool {
		p, ok := s.(*priced.Settings)
		return ok && p.Act == "probabilistic"
	},
	New: func(g Given, settings any) (Learner, error) {
		if s, ok := settings.(*online.ActorSettings); ok {
			l, err := online.NewActor(g.Terms, s, g.Rand)
			return pricedOnline{l}, err
		}
		s := settings.(*priced.Settings)
		if g.Level == env.LevelObserved {
			l, err := priced.NewObserved(g.Instance, s, g.Rand)
			return pricedObserved{l}, err
		}
		l, err := priced.New(g.Instance, s, g.Rand)
		return pricedModel{l}, err
	},
}

type (
	pricedModel    struct{ *priced.Learner }
	pricedObserved struct{ *priced.Observed }
	pricedOnline   struct{ *online.Actor }
)

func (p pricedModel) Agent() env.Agent           { return env.NewAgent[env.Model](p.Learner) }
func (p pricedModel) Frozen() env.Agent          { return env.NewAgent[env.Model](p.Learner.Frozen()) }
func (p pricedModel) Metrics() []Metric          { return []Metric{{"price", p.Price()}} }
func (p pricedModel) State() any                 { return p.Learner.State() }
func (p pricedModel) SetState(data []byte) error { return restore(data, p.Learner.SetState) }
func (p pricedModel) ThresholdAge(i int) float64 { return p.Threshold(i) }

func (p pricedObserved) Agent() env.Agent           { return env.NewAgent[env.Observed](p.Observed) }
func (p pricedObserved) Frozen() env.Agent          { return env.NewAgent[env.Observed](p.Observed.Frozen()) }
func (p pricedObserved) Metrics() []Metric          { return []Metric{{"price", p.Price()}} }
func (p pricedObserved) State() any                 { return p.Observed.State() }
func (p pricedObserved) SetState(data []byte) error { return restore(data, p.Observed.SetState) }

// InverseIndex of one that sees the state: the threshold is a state.
func (p pricedObserved) InverseIndex(i int) float64 { return p.Threshold(i) }

func (p pricedOnline) Agent() env.Agent           { return env.NewAgent[env.Online](p.Actor) }
func (p pricedOnline) Frozen() env.Agent          { return env.NewAgent[env.Online](p.Actor.Frozen()) }
func (p pricedOnline) Metrics() []Metric          { return []Metric{{"price", p.Price()}} }
func (p pricedOnline) State() any                 { return p.Actor.State() }
func (p pricedOnline) SetState(data []byte) error { return restore(data, p.Actor.SetState) }
func (p pricedOnline) ThresholdAge(i int) float64 { return p.Threshold(i) }
