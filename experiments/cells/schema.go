// Package cells gives sweeps their content: the settings that a cell may have,
// read off the catalogue of learners and policies, and the run of a cell.
package cells

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/sweep"
)

// Schema says which settings a cell has and runs it. It is safe for concurrent
// use, and keeps worlds and runs of exact Whittle that many cells share.
type Schema struct {
	worlds  cache[string, *site] // by the settings that make a world
	whittle cache[reference, *run]
}

var _ sweep.Experiment = (*Schema)(nil)

// New returns the experiment with all learners and policies of the catalogue.
func New() *Schema { return &Schema{} }

// cache keeps what many cells share.
type cache[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]V
}

// get returns what is kept under a key, or else builds it.
func (c *cache[K, V]) get(key K, build func() (V, error)) (V, error) {
	c.mu.Lock()
	v, ok := c.of[key]
	c.mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := build()
	if err != nil {
		return v, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= 256 { // many come one after the other
		c.of = map[K]V{}
	}
	c.of[key] = v
	return v, nil
}

// site is a world up to its seed, with what does not depend on a learner.
type site struct {
	scene experiments.Scene
	price float64 // λ* of the relaxed problem, interest per budget unit
}

const selector = "learner.algorithm"

// Selector implements sweep.Experiment. A learner that works at several levels of
// knowledge is there once for each; a level other than its first is written
// behind an @.
func (*Schema) Selector() sweep.Key {
	var names []string
	for _, e := range experiments.Catalogue {
		names = append(names, e.Name)
		for k := 1; k < len(e.Levels); k++ {
			names = append(names, e.Name+"@"+string(e.Levels[k]))
		}
	}
	return sweep.Key{Name: selector, Default: names[0], Allowed: names}
}

// chosen is what the selector's value stands for.
type chosen struct {
	level env.Level
	entry *experiments.Entry
}

func choose(selected string) chosen {
	name, level, at := strings.Cut(selected, "@")
	e, err := experiments.Find(name)
	if err != nil {
		panic("cells: " + err.Error())
	}
	if !at {
		level = string(e.FirstLevel())
	}
	return chosen{env.Level(level), e}
}

// Keys implements sweep.Experiment.
func (*Schema) Keys(selected string) []sweep.Key {
	c := choose(selected)
	world := "poisson"
	if c.level == env.LevelModel {
		world = "mean"
	}
	instance := func(name string) bool { return strings.HasSuffix(name, ".toml") }
	recording := func(name string) bool { return name != "" }
	keys := []sweep.Key{
		{Name: "steps", Default: int64(10000)},                                               // epochs of learning
		{Name: "evaluation", Default: int64(0)},                                              // epochs over which the learned policy is measured; 0 for as many as steps
		{Name: "instance.name", Default: "paper", Problem: true, File: instance},             // paper, lognormal:N[:SEED], wide:N[:SEED], mixed:N[:SEED] or a .toml file
		{Name: "instance.budget", Default: 0.0, Problem: true},                               // budget units per epoch; 0 for the instance's own, 1 of a recording
		{Name: "world.kind", Default: world, Allowed: []string{"mean", "poisson", "replay"}}, // mean dynamics, single items, or a recording; follows the learner
		{Name: "world.marks", Default: "constant", Problem: true},                            // law of the items' interest in a poisson world
		{Name: "world.sigma", Default: 1.0, Problem: true},                                   // σ of lognormal marks
		{Name: "world.trace", Default: "", Problem: true, File: recording},                   // recording that is replayed in place of an instance
		{Name: "world.epoch", Default: "1h", Problem: true},                                  // length of an epoch of the replay
		{Name: "world.decay", Default: 0.175, Problem: true},                                 // decay of interest in the replay, 1/hour
		{Name: "world.split", Default: 0.5, Problem: true},                                   // share of the recording on which the model is fitted; the rest is replayed
		{Name: "world.warm", Default: false, Problem: true},                                  // the part on which the model is fitted is played too, and does not count
	}
	if c.entry.Settings == nil {
		return keys
	}
	return append(keys, learnerKeys(c.entry.Settings(c.level))...)
}

const reading = "learner.reading"

// learnerKeys returns the keys of settings. Where these have readings, the
// defaults of the others follow them.
func learnerKeys(settings any) []sweep.Key {
	keys := plainKeys(settings)
	of, ok := settings.(interface {
		Readings() []string
		SetReading(name string) error
	})
	if !ok {
		return keys
	}
	for _, name := range of.Readings() {
		if err := of.SetReading(name); err != nil {
			panic("cells: " + err.Error())
		}
		for i, k := range plainKeys(settings) {
			switch {
			case k.Name == reading:
				keys[i].Allowed = of.Readings()
				continue
			case keys[i].Then == nil:
				keys[i].Follows, keys[i].Then = reading, map[string]any{}
			}
			keys[i].Then[name] = k.Default
		}
	}
	return keys
}

// plainKeys returns the keys of settings as TOML has them, with their values, in
// their order.
func plainKeys(settings any) []sweep.Key {
	text, err := toml.Marshal(settings)
	values := map[string]any{}
	if err == nil {
		err = toml.Unmarshal(text, &values)
	}
	if err != nil {
		panic("cells: " + err.Error())
	}
	var keys []sweep.Key
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " = ")
		keys = append(keys, sweep.Key{Name: "learner." + name, Default: values[name]})
	}
	return keys
}

// settings returns the entry's settings of a cell.
func (c chosen) settings(cell *sweep.Cell) (any, error) {
	keys := map[string]any{}
	for _, k := range cell.Keys() {
		if name, ok := strings.CutPrefix(k.Name, "learner."); ok && k.Name != selector {
			keys[name] = cell.Value(k.Name)
		}
	}
	return c.entry.Configure(c.level, keys)
}

// wrong is the error of a setting.
func wrong(key, format string, args ...any) error {
	return &experiments.SettingError{Key: key, Err: fmt.Errorf(key+": "+format, args...)}
}

// Check implements sweep.Experiment.
func (s *Schema) Check(cell *sweep.Cell) error {
	if n := cell.Int("steps"); n < 1 {
		return wrong("steps", "%d epochs; allowed is 1 or more", n)
	}
	if n := cell.Int("evaluation"); n < 0 {
		return wrong("evaluation", "%d epochs; allowed is 0 or more", n)
	}
	c := choose(cell.Text(selector))
	if c.level == env.LevelOnline && cell.Text("world.kind") == "mean" {
		return wrong("world.kind", "mean has no items, which an online learner learns from; use poisson")
	}
	at, err := s.site(cell)
	if err != nil {
		return err
	}
	if why := c.entry.WhyNot(at.scene, c.level); why != "" {
		return wrong(selector, "%s does not run on %s in world %s: %s", cell.Text(selector), at.scene.Instance.ID, cell.Text("world.kind"), why)
	}
	if _, err := c.settings(cell); err != nil {
		key := selector
		if wrong := new(experiments.SettingError); errors.As(err, &wrong) && wrong.Key != "" {
			key = "learner." + wrong.Key
		}
		return wrong(key, "%v", err)
	}
	return nil
}

// site returns the world of a cell.
func (s *Schema) site(cell *sweep.Cell) (*site, error) {
	var name strings.Builder
	for _, k := range cell.Keys() {
		if strings.HasPrefix(k.Name, "instance.") || strings.HasPrefix(k.Name, "world.") {
			fmt.Fprintln(&name, cell.Value(k.Name))
			if file := cell.Input(k.Name); file != nil {
				fmt.Fprintln(&name, file.Sum)
			}
		}
	}
	return s.worlds.get(name.String(), func() (*site, error) {
		scene, err := open(cell)
		if err != nil {
			return nil, err
		}
		_, price := index.Bound(scene.Instance)
		return &site{scene, price}, nil
	})
}

// owners are the kinds of worlds that settings belong to.
var owners = map[string]string{
	"world.marks": "poisson", "world.sigma": "poisson", "world.trace": "replay",
	"world.epoch": "replay", "world.decay": "replay", "world.split": "replay", "world.warm": "replay",
}

// open returns the scene of a cell.
func open(cell *sweep.Cell) (scene experiments.Scene, err error) {
	kind := cell.Text("world.kind")
	for _, k := range cell.Keys() {
		if owner := owners[k.Name]; owner != "" && owner != kind && cell.Value(k.Name) != k.Default {
			return scene, wrong(k.Name, "it belongs to world.kind = %q; this cell has %q", owner, kind)
		}
	}
	world := experiments.World{
		World: kind, Marks: cell.Text("world.marks"), Sigma: cell.Float("world.sigma"),
		Epoch: cell.Text("world.epoch"), Decay: cell.Float("world.decay"), Split: cell.Float("world.split"), Warm: cell.Value("world.warm").(bool),
	}
	if kind == "replay" {
		scene, err = replay(cell, world)
	} else {
		var in env.Instance
		if in, err = instance(cell); err == nil {
			scene, err = world.Open(context.Background(), in, choose(cell.Text(selector)).level)
		}
	}
	if setting := new(experiments.SettingError); errors.As(err, &setting) && !strings.Contains(setting.Key, ".") {
		err = wrong("world."+setting.Key, "%v", err)
	}
	return scene, err
}

// instance returns the instance of a cell.
func instance(cell *sweep.Cell) (in env.Instance, err error) {
	name, budget := cell.Text("instance.name"), cell.Float("instance.budget")
	if file := cell.Input("instance.name"); file != nil {
		in, err = env.Unmarshal(name, file.Data)
	} else if in, err = env.Named(name, 0); errors.Is(err, env.ErrBudget) && budget != 0 {
		err = nil // of one source, whose crawl costs less than the usual budget
	}
	if err != nil {
		return in, wrong("instance.name", "%v", err)
	}
	if budget == 0 {
		return in, nil
	}
	in.Budget = budget
	if err := in.Validate(); err != nil {
		return in, wrong("instance.budget", "%v", err)
	}
	return in, nil
}

// replay is the scene of a recording.
func replay(cell *sweep.Cell, world experiments.World) (scene experiments.Scene, err error) {
	trace := cell.Text("world.trace")
	switch name := cell.Text("instance.name"); {
	case trace == "":
		return scene, wrong("world.kind", "replay needs a recording; world.trace names one")
	case name != "paper":
		return scene, wrong("instance.name", "%q; a recording brings sources of its own, leave it out", name)
	}
	o, err := world.Replay(cell.Float("instance.budget"))
	if err != nil {
		return scene, err
	}
	rec, err := env.ParseRecording(context.Background(), trace, bytes.NewReader(cell.Input("world.trace").Data))
	if err != nil {
		return scene, wrong("world.trace", "%v", err)
	}
	scene, err = experiments.ReplayScene(rec, o)
	switch {
	case err == nil:
		return scene, nil
	case errors.Is(err, env.ErrBudget):
		return scene, wrong("instance.budget", "%v", err)
	case rec.First < rec.Last: // what is left is that an epoch is too long for a part
		return scene, wrong("world.epoch", "%v", err)
	}
	return scene, wrong("world.trace", "%v", err)
}
