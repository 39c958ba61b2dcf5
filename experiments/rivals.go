package experiments

import (
	"ephemera/env"
	"ephemera/learner/online"
)

// tuned is an entry of a policy with settings.
func tuned[S any, O env.Knowledge](e Entry, defaults S, build func(k Known, s *S) (env.Policy[O], error)) Entry {
	e.Settings = func(env.Level) any { s := defaults; return &s }
	e.New = func(k Known, s any) (env.Agent, error) { return agent(build(k, s.(*S))) }
	return e
}

type certaintySettings struct {
	Decay    float64 `toml:"decay"`    // of all sources, 1/epoch; 0 to have it estimated
	Optimism float64 `toml:"optimism"` // standard errors that ln of an inflow is raised by
}

func (s *certaintySettings) online() *online.Settings {
	o := online.CertaintySettings()
	o.Decay, o.Optimism = s.Decay, s.Optimism
	return &o
}

func (s *certaintySettings) Validate() error { return s.online().Validate() }
