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
	whittle cache[string, *Played]
	sums    cache[string, [32]byte] // of files that settings name
}

// exact returns the run of exact Whittle that a run is compared with. In worlds
// that the seed does not change, one run serves all seeds.
func (e *Engine) exact(ctx context.Context, c *Resolved) (*Played, error) {
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
	return e.whittle.get(key, func() (*Played, error) { return c.Scene.Play(ctx, p) })
}

// perform performs a run: it learns, then measures what was learned and exact
// Whittle in the same world from its beginning. A policy that does not learn is
// measured alone. It ends with the context's error when that is done.
func (e *Engine) perform(ctx context.Context, c *Resolved) (*Record, error) {
	exact, err := e.exact(ctx, c)
	if err != nil {
		return nil, err
	}
	out := exact
	if c.play.Entry.Name != "whittle" || c.play.Level == env.LevelOnline {
		if out, err = c.Scene.Play(ctx, c.play); err != nil {
			return nil, err
		}
	}
	rec := c.record(out)
	rec.beside(exact)
	return rec, nil
}

// Record performs a run in a scene of one's own, with an entry that need not be in
// the catalogue. Its record has no shares of exact Whittle.
func (s Scene) Record(ctx context.Context, p Play) (*Record, error) {
	out, err := s.Play(ctx, p)
	if err != nil {
		return nil, err
	}
	c := &Resolved{play: p, Scene: &s}
	c.Steps, c.Evaluation, c.Seed = p.Epochs, p.Evaluation, p.Seed
	c.Instance.Name, c.Instance.Budget = s.Instance.ID, s.Instance.Budget
	c.Learner = map[string]any{"algorithm": p.Entry.Name}
	return c.record(out), nil
}

// record makes the record of a run, but for its shares of exact Whittle.
func (c *Resolved) record(out *Played) *Record {
	rec := &Record{
		Run: c.Run, Instance: c.Scene.Instance.ID, Fitted: c.Scene.Epochs > 0,
		Learning: Figures{Outcome: out.Learning, Days: out.learning.days},
		Learned:  Figures{Outcome: out.Learned, Days: out.learned.days},
		Curve:    slices.Clone(out.learning.curve),
		Trainee:  out.Trainee, Speed: out.learning.speed,
	}
	for _, change := range c.Scene.Instance.Changes {
		if change.At < c.Steps {
			rec.Changes = append(rec.Changes, change.At)
		}
	}
	if c.Scene.Bounded(c.play.Level) {
		bound, _ := c.Scene.bound()
		rec.Bound = result.Ptr(bound)
		for _, f := range []*Figures{&rec.Learning, &rec.Learned} {
			f.OfBound = result.Ptr(f.Reward / bound)
		}
	}
	if out.Trainee != nil {
		rec.Fallbacks = out.Trainee.Fallbacks()
		for _, m := range out.Trainee.Metrics() {
			rec.Metrics = append(rec.Metrics, m.Name)
		}
		rec.Beside = besideExact(out.Trainee, c.Scene.after(c.Steps))
	}
	return rec
}

// beside fills in the shares of what exact Whittle earned in the same epochs.
func (r *Record) beside(exact *Played) {
	r.Learning.Whittle, r.Learned.Whittle = exact.Learning.Reward, exact.Learned.Reward
	for _, f := range []*Figures{&r.Learning, &r.Learned} {
		f.OfWhittle = result.Ptr(f.Reward / f.Whittle)
	}
	for k := range r.Curve {
		p := &r.Curve[k]
		p.Whittle = exact.learning.curve[k].Reward
		p.OfWhittle = result.Ptr(p.Reward / p.Whittle)
	}
}
