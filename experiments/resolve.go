package experiments

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
)

// Engine performs runs. It keeps the scenes and the runs of exact Whittle that
// runs share. The zero value is ready, and safe for concurrent use.
//
// What a run brings depends on the run alone: not on the engine, other runs or
// the number of workers.
type Engine struct {
	instances cache[env.Instance]
	scenes    cache[*Scene]
	whittle   cache[*Record]
	sums      cache[[32]byte] // of files that settings name
}

// Job is a resolved run: every setting is spelt out, and it is ready to be performed.
// A run is resolved once; under other seeds it is the same job but for the seed.
type Job struct {
	Run
	Scene    *Scene // in which the run takes place
	Entry    *Entry
	Level    env.Level // of knowledge, at which it is performed
	Settings any       // what Entry.Configure returned
}

// Resolve returns the run with every setting spelt out, so that equal runs are
// equal, or says what is wrong with it. An error about a setting is a
// *SettingError.
func (e *Engine) Resolve(ctx context.Context, r Run) (c *Job, err error) {
	c = &Job{Run: r}
	if r.Steps < 1 {
		return nil, wrong("steps is %d; allowed is 1 epoch or more", r.Steps)
	}
	if r.Evaluation < 0 {
		return nil, wrong("evaluation is %d; allowed is 0 epochs or more", r.Evaluation)
	}
	if err := c.configure(); err != nil {
		return nil, err
	}
	in := env.Instance{Budget: r.Instance.Budget}
	if r.World.Trace == "" && r.World.Kind != "replay" {
		c.Instance.Name = cmp.Or(c.Instance.Name, "paper")
		if in, err = e.instance(c.Run); err != nil {
			return nil, err
		}
	}
	if err := c.resolveWorld(in); err != nil {
		return nil, err
	}
	if c.Scene, err = e.scene(ctx, c.Run, in, c.Level); err != nil {
		return nil, err
	}
	c.Instance.Budget, c.World.FeedbackDelay = c.Scene.Instance.Budget, c.Scene.feedback
	c.Steps, c.Evaluation = c.Scene.Limit(c.Steps), min(c.Evaluation, c.Scene.Limit(c.Evaluation))
	if why := c.Entry.WhyNot(*c.Scene, c.Level); why != "" {
		return nil, wrong("%s does not run on %s in world %s: %s; %s",
			c.Algorithm(), c.Scene.Instance.ID, c.World.Kind, why, runs(*c.Scene, c.Level, c.Entry.Learns))
	}
	return c, nil
}

// instance returns the instance of a run without a recording.
func (e *Engine) instance(r Run) (in env.Instance, err error) {
	key, err := json.Marshal(r.Instance)
	if err != nil {
		return in, err
	}
	return e.instances.get(string(key), func() (in env.Instance, err error) {
		name := r.Instance.Name
		if law := r.Instance.Law; law != "" {
			if err := env.CheckLaw(law); err != nil {
				return in, &SettingError{err}
			}
			name += ":" + law
		}
		if in, err = named(name, r.Instance.Budget); err != nil {
			return in, err
		}
		o, err := env.ParseObjective(r.Instance.Objective)
		if err == nil && o.Law != "" && r.Instance.Law != "" {
			err = fmt.Errorf("law is %q and objective %q; allowed is one of them, as an objective is a law",
				r.Instance.Law, r.Instance.Objective)
		}
		if in = in.WithObjective(o, time.Hour); err == nil {
			err = in.Validate() // which may be wrong of the objective alone
		}
		if err != nil {
			return in, &SettingError{err}
		}
		return in, nil
	})
}

// named is [env.Named]. Its error is a *SettingError, unless the file of the instance is wrong
// without the law and the budget that settings give it.
func named(name string, budget float64) (env.Instance, error) {
	in, err := env.Named(name, budget)
	if file := env.FileOf(name); err != nil && file != "" {
		if _, wrong := env.Load(file); wrong != nil {
			return in, err
		}
	}
	if err != nil {
		err = &SettingError{err}
	}
	return in, err
}

// resolveWorld fills in the kind of the world of an instance, or of a recording, and its
// settings, and refuses settings that belong to worlds of other kinds.
func (c *Job) resolveWorld(in env.Instance) error {
	w := &c.World
	switch {
	case w.Kind != "":
	case w.Trace != "":
		w.Kind = "replay"
	case !slices.ContainsFunc(in.Sources, itemed):
		w.Kind = "pages"
	case c.Level == env.LevelModel:
		w.Kind = "mean"
	default:
		w.Kind = "poisson"
	}
	for _, key := range []string{
		"world.marks", "world.trace", "world.epoch", "world.decay", "world.split", "world.feedback",
	} {
		kind, v := "replay", c.Value(key)
		if key == "world.marks" {
			kind = "poisson"
		}
		if w.Kind != kind && v != "" && v != 0. {
			return wrong("%s is a setting of world %s; the world here is %s", key, kind, w.Kind)
		}
	}
	switch w.Kind {
	case "poisson":
		w.Marks = cmp.Or(w.Marks, UsualWorld.Marks)
	case "replay":
		w.Epoch, w.Decay = cmp.Or(w.Epoch, UsualWorld.Epoch), cmp.Or(w.Decay, UsualWorld.Decay)
		w.Split = cmp.Or(w.Split, UsualWorld.Split)
		w.FeedbackDelay = w.feedbackAt(c.Level)
	}
	switch {
	case w.Kind == "mean" && c.Level == env.LevelOnline:
		return wrong("world mean has no items, and knowledge online is of items; world poisson has them")
	case w.Kind == "replay" && w.Trace == "":
		return wrong("world replay needs a recording; world.trace names one")
	case w.Kind == "replay" && c.Instance.Name != "":
		return wrong("instance.name is %q; a recording brings sources of its own, leave it out", c.Instance.Name)
	}
	return nil
}

// itemed reports whether a source publishes items, and is no page.
func itemed(s env.Source) bool { return !changing(s) }

// scene returns the scene of a resolved run, whose instance has the budget alone where a
// recording is played.
func (e *Engine) scene(ctx context.Context, r Run, in env.Instance, level env.Level) (*Scene, error) {
	key, err := json.Marshal([]any{r.Instance, r.World, level})
	if err != nil {
		return nil, err
	}
	return e.scenes.get(string(key), func() (*Scene, error) {
		for _, x := range [][2]string{{"law", r.Instance.Law}, {"objective", r.Instance.Objective}} {
			if r.World.Trace != "" && x[1] != "" {
				return nil, wrong("%s is %q; the items of a recording have a utility that decays, leave it out",
					x[0], x[1])
			}
		}
		scene, err := r.World.Open(ctx, in, level)
		if name := r.Instance.Believe; name != "" && err == nil {
			err = scene.Believe(name)
		}
		if err != nil {
			return nil, err
		}
		scene.key = string(key)
		scene.relaxed = sync.OnceValues(func() (bound, price float64) { return index.Bound(scene.Instance) })
		return &scene, nil
	})
}

// runs says which learners, or which policies, run in a scene at a level.
func runs(s Scene, level env.Level, learners bool) string {
	var all []*Entry
	for _, e := range Catalogue() {
		if e.Learns == learners && e.WhyNot(s, level) == "" {
			all = append(all, e)
		}
	}
	switch {
	case all == nil && level == env.LevelOnline && s.Instance.Objective.Law == "" &&
		slices.ContainsFunc(s.Instance.Sources, byAge):
		return "learners run where -objective names the law, in place of -law or the instance"
	case all == nil:
		return "no learner does with knowledge " + string(level) // a policy always does
	}
	return "allowed are " + names(all)
}

// UnderSeeds returns the job under its seed and those that follow, so many in all.
func (c *Job) UnderSeeds(n int) (all []*Job) {
	for k := range n {
		other := *c
		other.Seed += uint64(k)
		all = append(all, &other)
	}
	return all
}

// DefaultLearner returns the learner of runs in the scene of the job, with its knowledge, that
// name none: the first that runs there, or, where none does, the first with that knowledge.
func (c *Job) DefaultLearner() (*Entry, error) {
	for _, e := range Learners() {
		if e.WhyNot(*c.Scene, c.Level) == "" {
			return e, nil
		}
	}
	return FindLearner("", c.Level)
}

// cache keeps what many runs share.
type cache[V any] struct{ kept sync.Map }

// get returns what is kept under a key, or else builds it.
func (c *cache[V]) get(key string, build func() (V, error)) (V, error) {
	if v, ok := c.kept.Load(key); ok {
		return v.(V), nil
	}
	v, err := build()
	if err == nil {
		c.kept.Store(key, v)
	}
	return v, err
}
