package experiments

import (
	"ephemera/env"
	"ephemera/learner"
)

// Algorithms is the catalogue of learners; the first is the default.
var Algorithms = []Algorithm{
	pricedAlgorithm,
	{
		Name:     "paper",
		About:    "the LSPE(0) actor-critic of Allerton 2019 as published",
		Levels:   []env.Level{env.LevelModel},
		Settings: func(env.Level) any { s := learner.DefaultPaperSettings(); return &s },
		Overruns: func(s any) bool { return s.(*learner.PaperSettings).Act == "probabilistic" },
		New: func(k Known, s any) (Trainee, error) {
			p, err := learner.NewPaper(k.Instance, *s.(*learner.PaperSettings), k.Rand)
			if err != nil {
				return nil, err
			}
			return paper{p, k}, nil
		},
	},
}

// paper is the paper's learner as a trainee.
type paper struct {
	*learner.Paper
	known Known
}

func (p paper) Learner() env.Agent { return env.NewAgent[env.Model](p.Paper) }

func (p paper) Frozen(k Known) (env.Agent, error) {
	return env.NewAgent(p.Paper.Policy(k.Rand)), nil
}

func (p paper) Fallbacks() int { return p.Counts().Fallbacks }

func (p paper) Metrics() []Metric {
	return []Metric{{"eta", p.Critic().Average()}, {"fallbacks", float64(p.Fallbacks())}}
}

func (p paper) State() any { return p.Paper.State() }
