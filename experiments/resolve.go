package experiments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/learner"
)

// Run is one run as data: a learner or a policy in a world under a seed, for so
// many epochs. Configurations, flags and records have the same names for its
// settings. [NewRun] has the defaults, [Run.Set] sets one by its name, and
// [Engine.Resolve] fills in what was left out and checks all of it.
type Run struct {
	Steps int `toml:"steps" json:"steps"` // epochs of learning
	// Epochs over which the learned policy is measured; 0 for as many as steps.
	Evaluation int    `toml:"evaluation" json:"evaluation"`
	Seed       uint64 `toml:"seed" json:"seed"`

	Instance struct {
		// paper, a family such as lognormal:N[:SEED], or a .toml file; none of a recording.
		Name string `toml:"name" json:"name,omitempty"`
		// Law of interest of all its sources, one of env.LawsAllowed; their own if empty.
		Law string `toml:"law" json:"law,omitempty"`
		// Objective is what crawls are to bring about, as env.ParseObjective reads it, in
		// place of the sources' laws of interest; an epoch counts as an hour. None if empty.
		Objective string `toml:"objective" json:"objective,omitempty"`

		// An instance of the same sources, whose parameters all are given but the
		// reference, "whittle"; none if empty.
		Believe string `toml:"believe" json:"believe,omitempty"`
		// Budget units per epoch; 0 for the instance's own, 1 of a recording.
		Budget float64 `toml:"budget" json:"budget"`
	} `toml:"instance" json:"instance"`

	World World `toml:"world" json:"world"`

	// Learner holds the algorithm, an entry of the catalogue, and its settings.
	// NAME@LEVEL is the algorithm with a knowledge other than its first.
	Learner map[string]any `toml:"learner" json:"learner"`
}

// Names of settings.
const (
	learnerPrefix = "learner."
	AlgorithmKey  = learnerPrefix + "algorithm"
)

// NewRun returns a run with all defaults but those that follow the learner and the world.
func NewRun() (r Run) {
	r.Steps, r.Seed = 10_000, 1
	return r
}

// Set sets one setting by its dotted name, such as learner.kappa. Its error is a
// *SettingError.
func (r *Run) Set(key string, value any) error {
	if name, ok := strings.CutPrefix(key, learnerPrefix); ok {
		r.Learner = maps.Clone(r.Learner) // runs may share it
		if r.Learner == nil {
			r.Learner = map[string]any{}
		}
		r.Learner[name] = value
		return nil
	}
	all := maps.Collect(fields(reflect.ValueOf(r).Elem()))
	delete(all, "learner")
	field, ok := all[key]
	if !ok {
		allowed := strings.Join(slices.Sorted(maps.Keys(all)), ", ")
		return wrong("unknown setting %q; allowed are %s, %s, and learner.NAME for each setting NAME of the algorithm",
			key, allowed, AlgorithmKey)
	}
	if err := setValue(field, value); err != nil {
		return wrong("%s is %#v: %w", key, value, err)
	}
	if field.Kind() == reflect.Float64 && !(field.Float() > 0) { // 0 stands for what is left out
		return wrong("%s is %v; allowed is a number above 0", key, value)
	}
	return nil
}

// Keys lists the settings that a run with its algorithm has, but for the seed:
// the algorithm first, and its own settings last.
func (r Run) Keys() ([]string, error) {
	e, level, err := r.contender()
	if err != nil {
		return nil, err
	}
	keys := []string{AlgorithmKey}
	for key := range fields(reflect.ValueOf(&r).Elem()) {
		if key != "seed" && key != "learner" {
			keys = append(keys, key)
		}
	}
	for _, key := range e.Keys(level) {
		keys = append(keys, learnerPrefix+key)
	}
	return keys, nil
}

// Value returns a setting of a resolved run, a float64, an int64, a string or a
// bool, or nil where it has none of that name.
func (r Run) Value(key string) any {
	if name, ok := strings.CutPrefix(key, learnerPrefix); ok {
		return r.Learner[name]
	}
	if field, ok := maps.Collect(fields(reflect.ValueOf(&r).Elem()))[key]; ok {
		return plainValue(field)
	}
	return nil
}

// Algorithm returns the name of the learner or policy, with its level where that
// is not its first.
func (r Run) Algorithm() string {
	name, _ := r.Learner["algorithm"].(string)
	return cmp.Or(name, learner.Kinds[0].Name)
}

// contender returns the learner or policy, and its level of knowledge.
func (r Run) contender() (*Entry, env.Level, error) {
	name, at := r.Algorithm(), ""
	if !strings.HasPrefix(name, SavedPrefix) {
		name, at, _ = strings.Cut(name, "@")
	}
	e, err := Find(name)
	if err != nil {
		return nil, "", &SettingError{err}
	}
	if at == "" {
		return e, e.FirstLevel(), nil
	}
	switch level := env.Level(at); level {
	case env.LevelOnline, env.LevelModel, env.LevelObserved:
		return e, level, nil
	}
	return nil, "", wrong("unknown knowledge %q; allowed are model, observed and online", at)
}

// Engine performs runs. It keeps the scenes and the runs of exact Whittle that
// runs share. The zero value is ready, and safe for concurrent use.
//
// What a run brings depends on the run alone: not on the engine, other runs or
// the number of workers.
type Engine struct {
	instances cache[string, env.Instance]
	scenes    cache[string, *Scene]
	whittle   cache[string, *Record]
	sums      cache[string, [32]byte] // of files that settings name
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
	if c.Entry, c.Level, err = r.contender(); err != nil {
		return nil, err
	}
	keys := maps.Clone(r.Learner)
	delete(keys, "algorithm")
	if c.Settings, err = c.Entry.Configure(c.Level, keys); err != nil {
		return nil, err
	}
	c.Learner = map[string]any{"algorithm": c.Entry.Name}
	if c.Level != c.Entry.FirstLevel() {
		c.Learner["algorithm"] = c.Entry.Name + "@" + string(c.Level)
	}
	if c.Settings != nil {
		for key, field := range fields(reflect.ValueOf(c.Settings).Elem()) {
			c.Learner[key] = plainValue(field)
		}
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

// resolveWorld fills in the kind of the world of an instance, or of a recording, and its
// settings, and refuses settings that belong to worlds of other kinds.
func (c *Job) resolveWorld(in env.Instance) error {
	w := &c.World
	switch {
	case w.Kind != "":
	case w.Trace != "":
		w.Kind = "replay"
	case c.Level != env.LevelObserved && !slices.ContainsFunc(in.Sources, itemed):
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
		if err != nil {
			return in, &SettingError{err}
		}
		return in.WithObjective(o, time.Hour), nil
	})
}

// named is [env.Named]. Its error is a *SettingError, unless it is about the file of the instance.
func named(name string, budget float64) (env.Instance, error) {
	in, err := env.Named(name, budget)
	ofFile := strings.Contains(name, ".toml") && (budget == 0 || !errors.Is(err, env.ErrBudget))
	if err != nil && !ofFile {
		err = &SettingError{err}
	}
	return in, err
}

// scene returns the scene of a resolved run, whose instance has the budget alone where a
// recording is played.
func (e *Engine) scene(ctx context.Context, r Run, in env.Instance, level env.Level) (*Scene, error) {
	key, err := json.Marshal([]any{r.Instance, r.World, level})
	if err != nil {
		return nil, err
	}
	return e.scenes.get(string(key), func() (*Scene, error) {
		if r.World.Trace != "" && r.Instance.Objective != "" {
			return nil, wrong("objective is %q; the items of a recording have a utility that decays, leave it out",
				r.Instance.Objective)
		}
		scene, err := r.World.Open(ctx, in, level)
		if errors.Is(err, env.ErrBudget) {
			err = &SettingError{err}
		}
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

// cache keeps what many runs share.
type cache[K comparable, V any] struct{ kept sync.Map }

// get returns what is kept under a key, or else builds it.
func (c *cache[K, V]) get(key K, build func() (V, error)) (V, error) {
	if v, ok := c.kept.Load(key); ok {
		return v.(V), nil
	}
	v, err := build()
	if err == nil {
		c.kept.Store(key, v)
	}
	return v, err
}
