package experiments

import (
	"context"
	"math"
	"slices"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// Play is a run of a learner or a policy in a scene as data.
type Play struct {
	Entry    *Entry
	Settings any // what Entry.Configure returned; nil for the defaults
	Level    env.Level
	Seed     uint64
	Epochs   int // at most those of the scene; 0 for all of them
	// Evaluation is for how many epochs what was learned is run, 0 for as many
	// as it learned, below 0 for none.
	Evaluation int
	// Watch, if not nil, returns what watches a run that is about to begin:
	// first that of the learner or policy, then that of what was learned. The
	// learner is nil where nothing learns.
	Watch func(l learner.Learner) Watcher
}

// Play opens the world, builds the learner or policy from what it may know and
// runs it. A learner is then frozen and run in the same world from its
// beginning, or where that changes in the world that it became. This is the one way
// in which anything is run. The record has no shares of exact Whittle; with an
// Evaluation below 0 it has the learning alone.
//
// It ends with the context's error when that is done, between two epochs.
func (s Scene) Play(ctx context.Context, p Play) (*Record, error) {
	rec := &Record{Instance: s.Instance.ID, Fitted: s.Epochs > 0}
	rec.Run.Steps, rec.Run.Evaluation, rec.Run.Seed = p.Epochs, p.Evaluation, p.Seed
	rec.Run.Instance.Name, rec.Run.Instance.Budget = s.Instance.ID, s.Instance.Budget
	rec.Run.Learner = map[string]any{"algorithm": p.Entry.Name}
	if p.Settings == nil && p.Entry.Settings != nil {
		p.Settings = p.Entry.Settings(p.Level)
	}
	p.Epochs = s.Limit(p.Epochs)
	if p.Evaluation == 0 {
		p.Evaluation = p.Epochs
	}
	p.Evaluation = s.Limit(p.Evaluation)
	if s.Bounded(p.Level) {
		bound, _ := s.bound()
		rec.Bound = result.Ptr(bound)
	}
	run, err := s.playPart(ctx, p, p.Epochs, nil)
	if err != nil {
		return nil, err
	}
	rec.Curve, rec.Speed, rec.Trainee = run.curve, run.speed, run.trainee
	if rec.Learning, err = run.figures(rec.Bound); err != nil || p.Evaluation < 0 {
		return rec, err
	}
	after := s.after(p.Epochs)
	if rec.Trainee != nil || p.Evaluation != p.Epochs || len(s.Instance.Changes) > 0 {
		if run, err = after.playPart(ctx, p, p.Evaluation, rec.Trainee); err != nil {
			return nil, err
		}
	}
	if rec.Learned, err = run.figures(rec.Bound); err != nil {
		return nil, err
	}
	for _, change := range s.Instance.Changes {
		if change.At < p.Epochs {
			rec.Changes = append(rec.Changes, change.At)
		}
	}
	if rec.Trainee != nil {
		if l, ok := rec.Trainee.(interface{ Fallbacks() int }); ok { // it inverts a matrix
			rec.Fallbacks = l.Fallbacks()
		}
		for _, m := range rec.Trainee.Metrics() {
			rec.Metrics = append(rec.Metrics, m.Name)
		}
		rec.Beside = besideExact(rec.Trainee, after, p.Level)
	}
	return rec, nil
}

// playPart opens the world afresh, builds an agent, or takes what a trainee has
// learned, and runs it.
func (s Scene) playPart(ctx context.Context, p Play, epochs int, learned learner.Learner) (*playing, error) {
	shown := p.Level
	if !p.Entry.Learns && !slices.Contains(p.Entry.Levels, p.Level) {
		shown = p.Entry.FirstLevel() // it does not look at what else is shown
	}
	world, err := s.Open(p.Seed, shown, p.Entry.overruns(p.Settings))
	if err != nil {
		return nil, err
	}
	run := &playing{world: world, trainee: learned, ends: curveEnds(epochs, s.Instance.Changes)}
	if day := 86400 / world.Terms().Length; world.Terms().Length > 0 && day == math.Trunc(day) {
		run.day = day
	}
	if learned != nil {
		run.agent = learned.Frozen()
	} else if run.agent, run.trainee, err = s.build(p, world.Terms()); err != nil {
		return nil, err
	}
	run.learns = learned == nil && run.trainee != nil
	if s.Late > 0 {
		run.agent = run.agent.Late(s.Late, s.Instance)
	}
	var watch Watcher
	if p.Watch != nil {
		watch = p.Watch(run.trainee)
	}
	return run, run.playEpochs(ctx, epochs, watch)
}

// build builds what is run. A policy that does not learn and knows the model knows
// of its changes too: it is built for each phase.
func (s Scene) build(p Play, terms env.Terms) (env.Agent, learner.Learner, error) {
	known := Inputs{Instance: s.Instance, Terms: terms, Level: p.Level, Rand: stream.New(p.Seed, stream.Policy, 0), Marks: s.Marks}
	if s.Believed != nil && p.Entry.Name != "whittle" {
		known.Instance = *s.Believed
	}
	phases := known.Instance.Phases()
	var agents []env.Agent
	for _, phase := range phases {
		known.Instance = phase.Instance
		agent, trainee, err := p.Entry.New(known, p.Settings)
		if err != nil || trainee != nil || agent.Learns() || len(phases) == 1 {
			return agent, trainee, err
		}
		agents = append(agents, agent)
	}
	return env.InPhases(phases, agents), nil, nil
}
