package learner

import (
	"ephemera/env"
	"ephemera/learner/online"
)

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
