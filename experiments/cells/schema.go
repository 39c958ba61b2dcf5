// Package cells gives sweeps their content: the settings that a cell may have,
// read off the catalogue of learners and policies, and the run of a cell.
package cells

import (
	"crypto/sha256"
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/experiments/sweep"
)

// Schema says which settings a cell has. It caches instances and is safe for
// concurrent use.
type Schema struct {
	mu    sync.Mutex
	cache map[place]*site
}

var (
	_ sweep.Schema = (*Schema)(nil)
	_ sweep.Runner = (*Schema)(nil)
)

// New returns the schema of all learners and policies of the catalogue. It is
// the runner as well.
func New() *Schema { return &Schema{cache: map[place]*site{}} }

// place names a world up to its seed.
type place struct {
	instance, world, marks string
	file                   [sha256.Size]byte // of an instance file
	budget, sigma          float64
}

// site is a world with what does not depend on a learner.
type site struct {
	scene experiments.Scene
	price float64 // λ* of the relaxed problem, interest per budget unit
}

const selector = "learner.algorithm"

var selectorKey = sync.OnceValue(newSelectorKey)

// Selector implements sweep.Schema. A learner that works at several levels of
// knowledge is there once for each; a level other than its first is written
// behind an @.
func (*Schema) Selector() sweep.Key { return selectorKey() }

func newSelectorKey() sweep.Key {
	var names []string
	for _, a := range experiments.Algorithms {
		for k, level := range a.Levels {
			if k == 0 {
				names = append(names, a.Name)
			} else {
				names = append(names, a.Name+"@"+level.String())
			}
		}
	}
	for _, b := range experiments.Baselines {
		names = append(names, b.Name)
		if seesState(b) {
			names = append(names, b.Name+"@"+env.LevelObserved.String())
		}
	}
	return sweep.Key{Name: selector, Kind: sweep.String, Default: names[0], Allowed: names, Help: "learner or policy, @level where it is not the first one"}
}

// firstLevel returns the lowest level at which a policy has what it needs and
// is compared with exact Whittle on equal terms.
func firstLevel(b experiments.Baseline) env.Level {
	switch {
	case b.Items:
		return env.LevelOnline
	case b.State:
		return env.LevelObserved
	}
	return env.LevelModel
}

// seesState reports whether a policy that needs no more than the model makes
// use of the true state where it is shown.
func seesState(b experiments.Baseline) bool {
	if b.Small || firstLevel(b) != env.LevelModel {
		return false
	}
	in := env.Paper(1)
	a, err := b.New(experiments.Known{Instance: in, Terms: in.Terms(), Level: env.LevelObserved, Rand: stream.New(1, stream.Policy)})
	return err == nil && a.Level() == env.LevelObserved
}

// chosen is what the selector's value stands for: a learner or a policy.
type chosen struct {
	level     env.Level
	algorithm *experiments.Algorithm
	baseline  *experiments.Baseline
}

func choose(selected string) chosen {
	name, level, at := strings.Cut(selected, "@")
	for i := range experiments.Algorithms {
		if a := &experiments.Algorithms[i]; a.Name == name {
			c := chosen{level: a.Levels[0], algorithm: a}
			if at {
				c.level = env.Level(level)
			}
			return c
		}
	}
	for i := range experiments.Baselines {
		if b := &experiments.Baselines[i]; b.Name == name {
			c := chosen{level: firstLevel(*b), baseline: b}
			if at {
				c.level = env.Level(level)
			}
			return c
		}
	}
	panic(fmt.Sprintf("cells: no learner or policy %q", selected))
}

// Keys implements sweep.Schema.
func (*Schema) Keys(selected string) []sweep.Key {
	c := choose(selected)
	world := "poisson"
	if c.level == env.LevelModel {
		world = "mean"
	}
	keys := []sweep.Key{
		{Name: "steps", Kind: sweep.Int, Default: int64(10000), Help: "epochs of learning"},
		{Name: "evaluation", Kind: sweep.Int, Default: int64(0), Help: "epochs over which the learned policy is measured; 0 for as many as steps"},
		{Name: "instance.name", Kind: sweep.String, Default: "paper", File: ".toml", Help: "paper, lognormal:N[:SEED], wide:N[:SEED], mixed:N[:SEED] or a .toml file"},
		{Name: "instance.budget", Kind: sweep.Float, Default: 0.0, Help: "budget units per epoch; 0 for the instance's own"},
		{Name: "world.kind", Kind: sweep.String, Default: world, Allowed: []string{"mean", "poisson"}, Help: "mean dynamics or single items"},
		{Name: "world.marks", Kind: sweep.String, Default: "constant", Help: "law of the items' interest in a poisson world"},
		{Name: "world.sigma", Kind: sweep.Float, Default: 1.0, Help: "σ of lognormal marks"},
	}
	if c.algorithm == nil {
		return keys
	}
	return append(keys, settingKeys(reflect.ValueOf(c.algorithm.Settings(c.level)).Elem())...)
}

// settingKeys reads the keys of a settings struct off its toml tags.
func settingKeys(v reflect.Value) []sweep.Key {
	var keys []sweep.Key
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("toml"), ",")
		if name == "" || name == "-" {
			continue
		}
		k := sweep.Key{Name: "learner." + name}
		f := v.Field(i)
		if m, ok := f.Interface().(encoding.TextMarshaler); ok {
			text, err := m.MarshalText()
			if err != nil {
				panic(fmt.Sprintf("cells: default of %s: %v", k.Name, err))
			}
			k.Kind, k.Default = sweep.String, string(text)
			keys = append(keys, k)
			continue
		}
		switch f.Kind() {
		case reflect.Float64:
			k.Kind, k.Default = sweep.Float, f.Float()
		case reflect.Int, reflect.Int64:
			k.Kind, k.Default = sweep.Int, f.Int()
		case reflect.String:
			k.Kind, k.Default = sweep.String, f.String()
		case reflect.Bool:
			k.Kind, k.Default = sweep.Bool, f.Bool()
		default:
			panic(fmt.Sprintf("cells: %s has type %v, which no key has", k.Name, f.Type()))
		}
		keys = append(keys, k)
	}
	return keys
}

// settings returns the algorithm's settings of a cell.
func (c chosen) settings(cell *sweep.Cell) (any, error) {
	keys := map[string]any{}
	for _, k := range cell.Keys() {
		if name, ok := strings.CutPrefix(k.Name, "learner."); ok && k.Name != selector {
			keys[name] = cell.Value(k.Name)
		}
	}
	return c.algorithm.Configure(c.level, keys)
}

// Check implements sweep.Schema.
func (s *Schema) Check(cell *sweep.Cell) error {
	if n := cell.Int("steps"); n < 1 {
		return &sweep.KeyError{Key: "steps", Msg: fmt.Sprintf("%d epochs; allowed is 1 or more", n)}
	}
	if n := cell.Int("evaluation"); n < 0 {
		return &sweep.KeyError{Key: "evaluation", Msg: fmt.Sprintf("%d epochs; allowed is 0 or more", n)}
	}
	c := choose(cell.Text(selector))
	if c.level == env.LevelOnline && cell.Text("world.kind") == "mean" {
		return &sweep.KeyError{Key: "world.kind", Msg: "mean has no items, which an online learner learns from; use poisson"}
	}
	at, err := s.site(cell)
	if err != nil {
		return err
	}
	if c.baseline != nil {
		if why := c.baseline.WhyNot(at.scene, c.level); why != "" {
			return &sweep.KeyError{Key: selector, Msg: fmt.Sprintf("%s does not run on %s in world %s: %s", cell.Text(selector), at.scene.Instance.ID, cell.Text("world.kind"), why)}
		}
		return nil
	}
	if _, err := c.settings(cell); err != nil {
		return &sweep.KeyError{Key: blamed(cell, err), Msg: err.Error()}
	}
	return nil
}

// blamed returns the key that an error of the settings is about: the first of
// its words that is the name of one. Settings name their keys without the
// prefix.
func blamed(cell *sweep.Cell, err error) string {
	for _, w := range strings.FieldsFunc(err.Error(), func(r rune) bool { return strings.ContainsRune(` :"`, r) }) {
		if key := "learner." + w; key != selector && cell.Has(key) {
			return key
		}
	}
	return selector
}

// site returns the world of a cell.
func (s *Schema) site(cell *sweep.Cell) (*site, error) {
	p := place{
		instance: cell.Text("instance.name"), budget: cell.Float("instance.budget"),
		world: cell.Text("world.kind"), marks: cell.Text("world.marks"), sigma: cell.Float("world.sigma"),
	}
	file := cell.Input("instance.name")
	if file != nil {
		p.file = file.Sum
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.cache[p]; ok {
		return at, nil
	}
	in, err := instance(p.instance, file, p.budget)
	if err != nil {
		key := "instance.name"
		if _, ownErr := instance(p.instance, file, 0); ownErr == nil {
			key = "instance.budget"
		}
		return nil, &sweep.KeyError{Key: key, Msg: err.Error()}
	}
	at := &site{scene: experiments.MeanScene(in)}
	if p.world == "poisson" {
		marks, err := env.ParseMarks(p.marks)
		if err != nil {
			return nil, &sweep.KeyError{Key: "world.marks", Msg: err.Error()}
		}
		at.scene = experiments.PoissonScene(in, marks, p.sigma)
		// Only opening the world tells whether σ is allowed.
		if _, err := at.scene.Open(1, env.LevelModel, false); err != nil {
			return nil, &sweep.KeyError{Key: "world.sigma", Msg: err.Error()}
		}
	}
	_, at.price = baselines.RelaxedBound(in)
	if len(s.cache) >= 256 {
		clear(s.cache) // many instances come one after the other
	}
	s.cache[p] = at
	return at, nil
}

// instance is env.Named with a file as the sweep read it.
func instance(name string, file *sweep.Input, budget float64) (env.Instance, error) {
	if file == nil {
		return env.Named(name, budget)
	}
	in, err := env.Unmarshal(name, file.Data)
	if err != nil || budget == 0 {
		return in, err
	}
	in.Budget = budget
	return in, in.Validate()
}
