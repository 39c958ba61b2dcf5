package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/internal/files"
	"ephemera/learner"
)

// Engine performs runs. It keeps the scenes and the runs of exact Whittle that
// runs share. The zero value is ready, and safe for concurrent use.
//
// What a run brings depends on the run alone: not on the engine, other runs or
// the number of workers.
type Engine struct {
	scenes  cache[string, *Scene]
	whittle cache[string, *Record]
	sums    cache[string, [32]byte] // of files that settings name
}

// exact returns the run of exact Whittle that a run is compared with. In worlds
// that the seed does not change, one run serves all seeds.
func (e *Engine) exact(ctx context.Context, c *Job) (*Record, error) {
	p := Play{Level: c.play.Level, Epochs: c.play.Epochs, Evaluation: c.play.Evaluation, Watch: c.play.Watch}
	if p.Level == env.LevelOnline {
		p.Level = env.LevelModel // what Whittle knows that the learner does not
	}
	if c.Scene.Seeded {
		p.Seed = c.play.Seed
	}
	var err error
	if p.Entry, err = Find("whittle"); err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%s %s %d %d %d", c.Scene.key, p.Level, p.Seed, p.Epochs, p.Evaluation)
	return e.whittle.get(key, func() (*Record, error) { return c.Scene.Play(ctx, p) })
}

// perform performs a run: it learns, then measures what was learned and exact
// Whittle in the same world from its beginning. A policy that does not learn is
// measured alone. It ends with the context's error when that is done.
func (e *Engine) perform(ctx context.Context, c *Job) (*Record, error) {
	exact, err := e.exact(ctx, c)
	if err != nil {
		return nil, err
	}
	own := exact
	if c.play.Entry.Name != "whittle" || c.play.Level == env.LevelOnline {
		if own, err = c.Scene.Play(ctx, c.play); err != nil {
			return nil, err
		}
	}
	rec := *own
	rec.Run, rec.Curve = c.Run, slices.Clone(own.Curve)
	rec.addRatios(exact)
	return &rec, nil
}

// Recorded returns the record of a run that was played elsewhere, in the world of the
// scene under the run's seed: what was earned over its epochs, and what, over those of
// the evaluation, in the scene that this one becomes. Who names who played.
func (e *Engine) Recorded(ctx context.Context, c *Job, who string, learning, learned *Account) (*Record, error) {
	exact, err := e.exact(ctx, c)
	if err != nil {
		return nil, err
	}
	rec := c.Scene.record(c.play.Level, c.play.Epochs)
	rec.Run = c.Run
	rec.Run.Learner = map[string]any{"algorithm": who}
	rec.Curve = slices.Clone(learning.curve)
	if rec.Learning, err = learning.figures(rec.Bound); err != nil {
		return nil, err
	}
	if rec.Learned, err = learned.figures(rec.Bound); err != nil {
		return nil, err
	}
	rec.addRatios(exact)
	return rec, nil
}

// addRatios fills in the shares of what exact Whittle earned in the same epochs.
func (r *Record) addRatios(exact *Record) {
	r.Learning.Whittle, r.Learned.Whittle = exact.Learning.Reward, exact.Learned.Reward
	for _, f := range []*Figures{&r.Learning, &r.Learned} {
		f.OfWhittle = result.RatioOf(result.Share(f.Reward, f.Whittle))
	}
	for k := range r.Curve {
		p := &r.Curve[k]
		p.Whittle = exact.Curve[k].Reward
		p.OfWhittle = result.RatioOf(result.Share(p.Reward, p.Whittle))
	}
}

// SavedConfig returns what [learner.Saved] says of the learner of the run.
func (c *Job) SavedConfig() (string, error) {
	text, err := toml.Marshal(struct {
		Algorithm string       `toml:"algorithm"`
		Knowledge env.Level    `toml:"knowledge"`
		Settings  any          `toml:"settings"`
		Instance  env.Instance `toml:"instance"`
	}{c.play.Entry.Name, c.play.Level, c.play.Settings, c.Scene.Instance})
	return string(text), err
}

// saveTrainee writes what a run has learned to a file, for [learner.Load]. The file
// names the run.
func (c *Job) saveTrainee(t learner.Learner, file, run string) error {
	config, err := c.SavedConfig()
	if err != nil {
		return err
	}
	world, err := c.Scene.Open(c.Seed, c.play.Level, true)
	if err != nil {
		return err
	}
	terms := world.Terms()
	name, err := json.Marshal(run)
	if err != nil {
		return err
	}
	state, err := json.Marshal(t.State())
	if err != nil {
		return fmt.Errorf("state of the learner: %w", err)
	}
	saved := &learner.Saved{
		Config: config, Start: terms.Start, Length: terms.Length, Objective: terms.Objective, State: state, Run: name,
	}
	data, err := saved.Encode()
	if err != nil {
		return err
	}
	return files.Put(file, data)
}

// holdsRun reports whether the learner in a file is that of the run.
func holdsRun(file, run string) bool {
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	saved, err := learner.Decode(data)
	var name string
	return err == nil && json.Unmarshal(saved.Run, &name) == nil && name == run
}
