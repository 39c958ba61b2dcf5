package experiments

import (
	"ephemera/env"
	"ephemera/learner/allerton"
)

var learners = []Entry{
	pricedEntry,
	{
		Name:     "paper",
		About:    "the LSPE(0) actor-critic of Allerton 2019 as published",
		Levels:   []env.Level{env.LevelModel},
		Settings: func(env.Level) any { s := allerton.DefaultSettings(); return &s },
		Overruns: func(s any) bool { return s.(*allerton.Settings).Act == "probabilistic" },
		Train: func(k Known, s any) (Trainee, error) {
			p, err := allerton.New(k.Instance, *s.(*allerton.Settings), k.Rand)
			if err != nil {
				return nil, err
			}
			return paper{p, k}, nil
		},
	},
}

type paperLearner = allerton.Learner

// paper is the paper's learner as a trainee.
type paper struct {
	*paperLearner
	known Known
}

func (p paper) Learner() env.Agent { return env.NewAgent[env.Model](p.paperLearner) }

func (p paper) Frozen(k Known) (env.Agent, error) {
	return env.NewAgent(p.paperLearner.Policy(k.Rand)), nil
}

func (p paper) Fallbacks() int { return p.Counts().Fallbacks }

func (p paper) Metrics() []Metric {
	return []Metric{{"eta", p.Critic().Average()}, {"fallbacks", float64(p.Fallbacks())}}
}

func (p paper) State() any { return p.paperLearner.State() }
