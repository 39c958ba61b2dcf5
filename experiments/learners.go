package experiments

import "ephemera/learner"

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
