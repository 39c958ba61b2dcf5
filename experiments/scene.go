package experiments

import "ephemera/env"

// Scene is a world as data: it can be set up afresh for every policy that is
// compared, each time with the same content.
type Scene struct {
	Instance env.Instance // what a policy that knows the model is given
	Epochs   int          // how many the world has; 0 for any number
	Seeded   bool         // the seed changes what arrives
	Mean     bool         // rewards have the means of the mean dynamics
	// Open sets the world up. The level says what it must show; overrun lets
	// crawls over the budget pass.
	Open func(seed uint64, level env.Level, overrun bool) (env.World, error)
}

// MeanScene is the mean dynamics of an instance.
func MeanScene(in env.Instance) Scene {
	return Scene{
		Instance: in,
		Mean:     true,
		Open: func(_ uint64, _ env.Level, overrun bool) (env.World, error) {
			return env.NewMean(in, overrun)
		},
	}
}

// Bounded reports whether the relaxed optimum of the instance bounds what a
// policy at that level can earn: rewards must follow the mean dynamics, and the
// policy must not see more than they hold.
func (s Scene) Bounded(level env.Level) bool {
	return s.Mean && (level != env.LevelObserved || !s.Seeded)
}
