package experiments

import (
	"ephemera/env"
	"ephemera/learner"
)

// learners are the kinds of package learner as entries.
var learners = entries(learner.Kinds)

func entries(kinds []learner.Kind) []Entry {
	var all []Entry
	for _, k := range kinds {
		all = append(all, Entry{
			Name: k.Name, About: k.About, Levels: k.Levels, Settings: k.Settings, Overruns: k.Overruns,
			Train: func(g Known, s any) (learner.Learner, error) { return k.New(g.Given, s) },
		})
	}
	return all
}

// SavedEntry is what a saved learner has learned, as a policy of that name. It
// draws from the stream that the policy had when it was learned.
func SavedEntry(name string, s *learner.Saved) *Entry {
	return &Entry{
		Name: name, About: "what a saved learner has learned", Levels: []env.Level{s.Level()},
		Overruns: func(any) bool { return s.Overruns() },
		New:      func(k Known, _ any) (env.Agent, error) { return s.Policy(k.Terms, k.Rand) },
		saved:    true,
	}
}
