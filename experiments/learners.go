package experiments

import (
	"ephemera/env"
	"ephemera/learner"
)

// Algorithms is the catalogue of learners; the first is the default.
var Algorithms = []Algorithm{
	pricedAlgorithm,
	{
		Name:   "priced",
		About:  "the actor-critic with a learned price of the budget",
		Levels: []env.Level{env.LevelModel, env.LevelOnline},
		Settings: func(l env.Level) any {
			if l == env.LevelOnline {
				s := learner.DefaultOnlineSettings()
				return &s
			}
			s := learner.DefaultPricedSettings()
			return &s
		},
		New: func(k Known, s any) (Trainee, error) {
			if k.Level == env.LevelOnline {
				return pricedOnline{learner.NewPricedOnline(k.Terms, s.(*learner.OnlineSettings), k.Rand)}, nil
			}
			return priced{learner.NewPriced(k.Instance, s.(*learner.PricedSettings), k.Rand)}, nil
		},
	},
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

// priced is the priced learner that knows the model as a trainee.
type priced struct{ *learner.Priced }

func (p priced) Learner() env.Agent { return env.NewAgent[env.Model](p.Priced) }
func (p priced) Frozen(Known) (env.Agent, error) {
	return env.NewAgent[env.Model](p.Priced.Frozen()), nil
}
func (p priced) Fallbacks() int    { return 0 }
func (p priced) Metrics() []Metric { return []Metric{{"price", p.Price()}} }
func (p priced) State() any        { return p.Priced.State() }

// pricedOnline is the priced learner that knows nothing beforehand.
type pricedOnline struct{ *learner.PricedOnline }

func (p pricedOnline) Learner() env.Agent { return env.NewAgent[env.Online](p.PricedOnline) }
func (p pricedOnline) Frozen(Known) (env.Agent, error) {
	return env.NewAgent[env.Online](p.PricedOnline.Frozen()), nil
}
func (p pricedOnline) Fallbacks() int    { return 0 }
func (p pricedOnline) Metrics() []Metric { return []Metric{{"price", p.Price()}} }
func (p pricedOnline) State() any        { return p.PricedOnline.State() }
