package learner

import (
	"ephemera/env"
	"ephemera/learner/allerton"
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
func (p pricedModel) FrozenByAge() env.Agent     { return env.NewAgent(p.Learner.Frozen().ByAge()) }
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

// forecastKind is the learner that is deployed where nothing is known
// beforehand.
var forecastKind = Kind{
	Name:     "forecast",
	About:    "Whittle's index of what is foretold from crawled items",
	Levels:   []env.Level{env.LevelOnline},
	Settings: func(env.Level) any { s := online.DefaultSettings(); return &s },
	New: func(g Given, settings any) (Learner, error) {
		l, err := online.New(g.Terms, settings.(*online.Settings))
		return forecast{l}, err
	},
}

type forecast struct{ *online.Learner }

func (f forecast) Agent() env.Agent           { return env.NewAgent[env.Online](f.Learner) }
func (f forecast) Frozen() env.Agent          { return env.NewAgent[env.Online](f.Learner.Frozen()) }
func (f forecast) Metrics() []Metric          { return []Metric{{"price", f.Price()}} }
func (f forecast) State() any                 { return f.Learner.State() }
func (f forecast) SetState(data []byte) error { return restore(data, f.Learner.SetState) }
func (f forecast) ThresholdAge(i int) float64 { return f.Threshold(i) }

var paperKind = Kind{
	Name:     "paper",
	About:    "the LSPE(0) actor-critic of Allerton 2019, as printed unless -set reading says otherwise",
	Levels:   []env.Level{env.LevelModel},
	Settings: func(env.Level) any { s := allerton.DefaultSettings(); return &s },
	Overruns: func(s any) bool { return s.(*allerton.Settings).Act == "probabilistic" },
	New: func(g Given, s any) (Learner, error) {
		l, err := allerton.New(g.Instance, *s.(*allerton.Settings), g.Rand)
		if err != nil {
			return nil, err
		}
		return paper{l}, nil
	},
}

type paper struct{ *allerton.Learner }

func (p paper) Agent() env.Agent           { return env.NewAgent[env.Model](p.Learner) }
func (p paper) Frozen() env.Agent          { return env.NewAgent(p.Learner.Frozen()) }
func (p paper) Fallbacks() int             { return p.Critic().Counts().Fallbacks }
func (p paper) State() any                 { return p.Learner.State() }
func (p paper) SetState(data []byte) error { return restore(data, p.Learner.SetState) }

func (p paper) Metrics() []Metric {
	return []Metric{{"eta", p.Critic().Average()}, {"fallbacks", float64(p.Fallbacks())}}
}
