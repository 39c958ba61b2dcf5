package learner

import (
	"ephemera/env"
	"ephemera/learner/allerton"
)

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
