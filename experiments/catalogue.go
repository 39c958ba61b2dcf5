package experiments

import (
	"fmt"
	"strings"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// Known is what the constructor of a policy may use.
type Known struct {
	Instance env.Instance // parameters of the sources: the true ones, or fitted ones
	Terms    env.Terms    // what every crawler knows; all that an online policy is given
	Level    env.Level    // what the policy will see of the world
	Rand     *stream.Rand // the policy's own stream
}

// Baseline is a policy of the catalogue.
type Baseline struct {
	Name    string
	About   string // one line
	Overrun bool   // may crawl more than the budget
	Items   bool   // needs to see the items that crawls bring back
	State   bool   // needs to see the true state
	New     func(k Known) (env.Agent, error)
}

// Applies reports whether the policy can run in that scene when the worlds
// show what that level gives.
func (b Baseline) Applies(s Scene, level env.Level) bool {
	if b.Items && !(s.Items && level == env.LevelOnline) {
		return false
	}
	return !b.State || level == env.LevelObserved
}

// Baselines is the catalogue, in the order in which tables show it.
var Baselines = []Baseline{
	{Name: "whittle", About: "exact Whittle index; on the true state where the level shows it, otherwise at the age", New: func(k Known) (env.Agent, error) {
		if k.Level == env.LevelObserved {
			return env.NewAgent(baselines.NewWhittleObserved(k.Instance, false)), nil
		}
		return env.NewAgent(baselines.NewWhittle(k.Instance)), nil
	}},
	{Name: "greedy", About: "the most mean interest gathered since the last crawl", New: func(k Known) (env.Agent, error) {
		return env.NewAgent(baselines.NewGreedy(k.Instance)), nil
	}},
	{Name: "myopic", About: "the greatest state that the level shows", New: func(k Known) (env.Agent, error) {
		if k.Level == env.LevelObserved {
			return env.NewAgent(baselines.NewMyopicObserved(k.Instance)), nil
		}
		return env.NewAgent(baselines.NewMyopic(k.Instance)), nil
	}},
	{Name: "round-robin", About: "the source that has waited longest", New: func(k Known) (env.Agent, error) {
		return env.NewAgent(baselines.NewRoundRobin(k.Terms)), nil
	}},
	{Name: "best-source", About: "always the sources with the greatest gain per epoch", New: func(k Known) (env.Agent, error) {
		return env.NewAgent(baselines.NewBestSource(k.Instance)), nil
	}},
}

// FindBaseline returns the policy of that name.
func FindBaseline(name string) (Baseline, error) {
	names := make([]string, len(Baselines))
	for i, b := range Baselines {
		if b.Name == name {
			return b, nil
		}
		names[i] = b.Name
	}
	return Baseline{}, fmt.Errorf("unknown policy %q; allowed are %s", name, strings.Join(names, ", "))
}
