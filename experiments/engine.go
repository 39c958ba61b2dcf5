package experiments

import (
	"context"
	"fmt"
	"slices"

	"ephemera/env"
	"ephemera/experiments/result"
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
func (e *Engine) exact(ctx context.Context, c *Resolved) (*Record, error) {
	p := Play{Level: c.play.Level, Epochs: c.play.Epochs, Evaluation: c.play.Evaluation, played: c.play.played}
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
func (e *Engine) perform(ctx context.Context, c *Resolved) (*Record, error) {
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
	rec.beside(exact)
	return &rec, nil
}

// beside fills in the shares of what exact Whittle earned in the same epochs.
func (r *Record) beside(exact *Record) {
	r.Learning.Whittle, r.Learned.Whittle = exact.Learning.Reward, exact.Learned.Reward
	for _, f := range []*Figures{&r.Learning, &r.Learned} {
		f.OfWhittle = result.Ptr(f.Reward / f.Whittle)
	}
	for k := range r.Curve {
		p := &r.Curve[k]
		p.Whittle = exact.Curve[k].Reward
		p.OfWhittle = result.Ptr(p.Reward / p.Whittle)
	}
}
