package experiments

import (
	"fmt"
	"math"

	"ephemera/env"
)

// Scene is a world as data: it can be set up afresh for every policy that is
// compared, each time with the same content.
type Scene struct {
	Instance env.Instance // what a policy that knows the model is given
	Epochs   int          // how many the world has that count; 0 for any number
	Warm     int          // epochs before these, which are played and do not count
	Seeded   bool         // the seed changes what arrives
	Mean     bool         // rewards have the means of the mean dynamics
	// Marks is the law of the items' initial interest, and Sigma its σ where
	// it has one; empty where the model has no single items.
	Marks env.Marks
	Sigma float64
	// Unobserved marks sources whose state is not seen at the level that shows
	// states; nil for none.
	Unobserved []bool
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

// PoissonScene draws single items with the given law of marks; sigma is that of
// log-normal marks. The state of the sources that are marked as unobserved is not
// seen, not even at the level that shows states (TCNS, section VIII).
func PoissonScene(in env.Instance, marks env.Marks, sigma float64, unobserved ...bool) Scene {
	// With a window the exact mean is above the papers' mean dynamics, so that
	// their optimum is no bound.
	endless := true
	for _, s := range in.Sources {
		endless = endless && math.IsInf(s.Window, 1)
	}
	return Scene{
		Instance: in,
		Seeded:   true,
		Mean:     endless,
		Marks:    marks,
		Sigma:    sigma,

		Unobserved: unobserved,
		Open: func(seed uint64, level env.Level, overrun bool) (env.World, error) {
			return env.NewPoisson(in, seed, env.PoissonOptions{
				Marks: marks, Sigma: sigma, Overrun: overrun,
				Items: level == env.LevelOnline, State: level == env.LevelObserved,
				Unobserved: unobserved,
			})
		},
	}
}

// ReplayScene plays the measured part of a recording. Policies that know the
// model are given parameters that were fitted on the part before it. Where o.Part
// is the whole recording, all policies begin with that part, which does not
// count.
func ReplayScene(rec *env.Recording, o env.ReplayOptions) (Scene, error) {
	in, err := rec.Fit(o)
	if err != nil {
		return Scene{}, err
	}
	s := Scene{Instance: in}
	if o.Part == env.PartWhole {
		fitting := o
		fitting.Part = env.PartFitting
		if s.Warm, err = rec.Epochs(fitting); err != nil {
			return Scene{}, err
		}
	}
	if s.Epochs, err = rec.Epochs(o); err != nil {
		return Scene{}, err
	}
	if s.Epochs -= s.Warm; s.Epochs < 1 {
		return Scene{}, fmt.Errorf("%s: nothing is left to measure; allowed is a shorter epoch or another split", rec.Path)
	}
	s.Open = func(_ uint64, level env.Level, overrun bool) (env.World, error) {
		o := o
		o.Items, o.State, o.Overrun = level == env.LevelOnline, level == env.LevelObserved, overrun
		return env.NewReplay(rec, in, o)
	}
	return s, nil
}

// Limit returns how many of that many epochs the scene has; 0 stands for all
// that it has.
func (s Scene) Limit(epochs int) int {
	if s.Epochs > 0 && (epochs == 0 || epochs > s.Epochs) {
		return s.Epochs
	}
	return epochs
}

// Seen returns the complement of Unobserved, nil if all sources are seen.
func (s Scene) Seen() []bool {
	if s.Unobserved == nil {
		return nil
	}
	seen := make([]bool, len(s.Unobserved))
	for i, u := range s.Unobserved {
		seen[i] = !u
	}
	return seen
}
