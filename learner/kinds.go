package learner

import (
	"ephemera/env"
	"ephemera/learner/forecast"
	"ephemera/learner/lspe"
	"ephemera/learner/lspe/observed"
	"ephemera/learner/paper"
)

// lspeKind is the actor-critic with a price for the budget: where nothing is known
// but costs and budget, and where the true state is seen beside.
var lspeKind = Kind{
	Name:   "lspe",
	About:  "the LSPE(0) actor-critic with a price for the budget",
	Levels: []env.Level{env.LevelOnline, env.LevelObserved},
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
			l, err := observed.New(g.Terms, s, g.Rand)
			return lspeObserved{l}, err
		}
		l, err := lspe.New(g.Terms, settings.(*lspe.Settings), g.Rand)
		return lspeOnline{l}, err
	},
}

type (
	lspeObserved struct{ *observed.Learner }
	lspeOnline   struct{ *lspe.Learner }
)

func (p lspeObserved) Agent() env.Agent           { return env.NewAgent[env.Observed](p.Learner) }
func (p lspeObserved) Frozen() env.Agent          { return env.NewAgent[env.Observed](p.Learner.Frozen()) }
func (p lspeObserved) Metrics() []Metric          { return []Metric{{"price", p.Price()}} }
func (p lspeObserved) State() any                 { return p.Learner.State() }
func (p lspeObserved) SetState(data []byte) error { return restore(data, p.Learner.SetState) }

func (p lspeOnline) Agent() env.Agent           { return env.NewAgent[env.Online](p.Learner) }
func (p lspeOnline) Frozen() env.Agent          { return env.NewAgent[env.Online](p.Learner.Frozen()) }
func (p lspeOnline) Metrics() []Metric          { return []Metric{{"price", p.Price()}} }
func (p lspeOnline) State() any                 { return p.Learner.State() }
func (p lspeOnline) SetState(data []byte) error { return restore(data, p.Learner.SetState) }

// forecastKind is the learner that is deployed where nothing is known
// beforehand.
var forecastKind = Kind{
	Name:     "forecast",
	About:    "Whittle's index of what is foretold from crawled items",
	Levels:   []env.Level{env.LevelOnline},
	Settings: func(env.Level) any { s := forecast.DefaultSettings(); return &s },
	New: func(g Inputs, settings any) (Learner, error) {
		l, err := forecast.New(g.Terms, settings.(*forecast.Settings))
		return forecastLearner{l}, err
	},
}

type forecastLearner struct{ *forecast.Learner }

func (f forecastLearner) Agent() env.Agent           { return env.NewAgent[env.Online](f.Learner) }
func (f forecastLearner) Frozen() env.Agent          { return env.NewAgent[env.Online](f.Learner.Frozen()) }
func (f forecastLearner) Metrics() []Metric          { return []Metric{{"price", f.Price()}} }
func (f forecastLearner) State() any                 { return f.Learner.State() }
func (f forecastLearner) SetState(data []byte) error { return restore(data, f.Learner.SetState) }

var paperKind = Kind{
	Name:     "paper",
	About:    "the LSPE(0) actor-critic of Allerton 2019, as printed unless -set reading says otherwise",
	Levels:   []env.Level{env.LevelModel},
	Settings: func(env.Level) any { s := paper.DefaultSettings(); return &s },
	Overruns: func(s any) bool { return s.(*paper.Settings).Act == "probabilistic" },
	New: func(g Inputs, s any) (Learner, error) {
		l, err := paper.New(g.Instance, *s.(*paper.Settings), g.Rand)
		if err != nil {
			return nil, err
		}
		return paperLearner{l}, nil
	},
}

type paperLearner struct{ *paper.Learner }

func (p paperLearner) Agent() env.Agent           { return env.NewAgent[env.Model](p.Learner) }
func (p paperLearner) Frozen() env.Agent          { return env.NewAgent(p.Learner.Frozen()) }
func (p paperLearner) Fallbacks() int             { return p.Critic().Fallbacks() }
func (p paperLearner) State() any                 { return p.Learner.State() }
func (p paperLearner) SetState(data []byte) error { return restore(data, p.Learner.SetState) }

func (p paperLearner) Metrics() []Metric {
	return []Metric{{"eta", p.Critic().Average()}, {"fallbacks", float64(p.Fallbacks())}}
}
