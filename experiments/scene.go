package experiments

import (
	"fmt"

	"ephemera/baselines/index"
	"ephemera/env"
)

// Scene is a world as data: it can be set up afresh for every policy that is
// compared, each time with the same content.
type Scene struct {
	Instance env.Instance // what a policy that knows the model is given
	// Believed is what all but the reference, "whittle", are given instead where
	// they are to be mistaken; nil stands for Instance.
	Believed *env.Instance
	Epochs   int  // how many the world has; 0 for any number
	Seeded   bool // the seed changes what arrives
	Mean     bool // the harvest curves of the instance are the mean rewards, at one price for all time
	// Marks is the law of the items' initial interest; empty where the model has no
	// single items.
	Marks env.Marks
	// Late is how many epochs after its publication an item's interest becomes known
	// to whoever learns, in worlds of which crawls bring back items; 0 when it is crawled.
	Late float64
	// Open sets the world up. The level says what it must show; overrun lets
	// crawls over the budget pass.
	Open func(seed uint64, level env.Level, overrun bool) (env.World, error)
	// With returns the scene of an instance with other parameters; nil where they do not
	// change.
	With func(in env.Instance) Scene

	told    string                        // when it becomes known what an item is worth; "" where all are worth the same
	key     string                        // names it among those of an engine
	relaxed func() (bound, price float64) // keeps what bound returns; nil keeps nothing
}

// bound returns the relaxed optimum of the instance, interest per epoch, and its λ*,
// interest per budget unit.
func (s *Scene) bound() (bound, price float64) {
	if s.relaxed != nil {
		return s.relaxed()
	}
	return index.Bound(s.Instance)
}

// after returns the scene in which what was learned in so many epochs is measured: its
// world has from its beginning, and for good, the parameters that this one has then.
func (s Scene) after(epochs int) Scene {
	if s.With == nil || len(s.Instance.Changes) == 0 {
		return s
	}
	now := s.Instance
	for _, phase := range s.Instance.Phases() {
		if phase.From < epochs {
			now = phase.Instance
		}
	}
	after := s.With(now)
	after.Believed = s.Believed
	return after
}

// Bounded reports whether the relaxed optimum of the instance bounds what a
// policy at that level can earn: rewards must follow the mean dynamics, and the
// policy must not see more than they hold.
func (s Scene) Bounded(level env.Level) bool {
	return s.Mean && (level != env.LevelObserved || !s.Seeded)
}

// Limit returns how many of that many epochs the scene has; 0 stands for all
// that it has.
func (s Scene) Limit(epochs int) int {
	if s.Epochs > 0 && (epochs == 0 || epochs > s.Epochs) {
		return s.Epochs
	}
	return epochs
}

// MeanScene is the mean dynamics of an instance.
func MeanScene(in env.Instance) Scene {
	return Scene{
		Instance: in.MeanDynamics(), Mean: len(in.Changes) == 0, With: MeanScene,
		Open: func(_ uint64, _ env.Level, overrun bool) (env.World, error) {
			return env.NewMean(in, overrun)
		},
	}
}

// PoissonScene draws single items with the given law of marks.
func PoissonScene(in env.Instance, marks env.Marks) Scene {
	return Scene{
		Instance: in, Seeded: true, Mean: len(in.Changes) == 0, Marks: marks,
		With: func(in env.Instance) Scene { return PoissonScene(in, marks) },
		Open: func(seed uint64, level env.Level, overrun bool) (env.World, error) {
			return env.NewPoisson(in, seed, env.PoissonOptions{
				Marks: marks, Overrun: overrun,
				Items: level == env.LevelOnline, NoMean: level == env.LevelOnline, State: level == env.LevelObserved,
			})
		},
	}
}

// Believe has policies be told the parameters of the instance of that name, which
// has to have the same sources at the same costs.
func (s *Scene) Believe(name string) error {
	in, err := env.Named(name, s.Instance.Budget)
	if err != nil {
		return err
	}
	same := len(in.Sources) == len(s.Instance.Sources)
	for i := 0; same && i < len(in.Sources); i++ {
		a, b := in.Sources[i], s.Instance.Sources[i]
		same = a.Name == b.Name && a.Cost == b.Cost
	}
	if !same {
		return fmt.Errorf("%s has other sources or costs than %s; allowed is an instance of the same", name, s.Instance.ID)
	}
	s.Believed = &in
	return nil
}
