package experiments

import (
	"context"
	"slices"

	"ephemera/env"
	"ephemera/env/stream"
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

	played func(epochs int) // if not nil, is told now and then how many epochs were played
}

// Played is what a run brings.
type Played struct {
	Learning Outcome         // of the learner while it learned, or of the policy
	Learned  Outcome         // of what was learned, or of the policy, over the evaluation
	Trainee  learner.Learner // the learner as it ended, or nil

	learning, learned part
}

// Play opens the world, builds the learner or policy from what it may know and
// runs it. A learner is then frozen and run in the same world from its
// beginning, or where that changes in the world that it became. This is the one way
// in which anything is run.
//
// It ends with the context's error when that is done, between two epochs.
func (s Scene) Play(ctx context.Context, p Play) (*Played, error) {
	if p.Settings == nil && p.Entry.Settings != nil {
		p.Settings = p.Entry.Settings(p.Level)
	}
	p.Epochs = s.Limit(p.Epochs)
	if p.Evaluation == 0 {
		p.Evaluation = p.Epochs
	}
	p.Evaluation = s.Limit(p.Evaluation)
	run, trainee, err := s.playPart(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	out := &Played{Trainee: trainee, learning: run.part, learned: run.part}
	if out.Learning, err = run.outcome(); err != nil || p.Evaluation < 0 {
		return out, err
	}
	if trainee != nil || p.Evaluation != p.Epochs || s.After != nil {
		if run, _, err = s.after(p.Epochs).playPart(ctx, p, out); err != nil {
			return nil, err
		}
		out.learned = run.part
	}
	out.Learned, err = run.outcome()
	return out, err
}

// playPart opens the world afresh, builds an agent and runs it. With first, which is
// what the first run brought, it is the second.
func (s Scene) playPart(ctx context.Context, p Play, first *Played) (run *playing, trainee learner.Learner, err error) {
	shown := p.Level
	if !p.Entry.Learns() && !slices.Contains(p.Entry.Levels, p.Level) {
		shown = p.Entry.FirstLevel() // it does not look at what else is shown
	}
	world, err := s.Open(p.Seed, shown, p.Entry.overruns(p.Settings))
	if err != nil {
		return nil, nil, err
	}
	run = &playing{world: world, played: p.played}
	epochs := p.Epochs
	if first != nil {
		epochs, trainee = p.Evaluation, first.Trainee
	}
	run.keepCurve(s.Instance, epochs)
	if trainee != nil {
		run.agent = trainee.Frozen()
	} else if run.agent, trainee, err = s.build(p, world.Terms()); err != nil {
		return nil, nil, err
	}
	if s.Late > 0 {
		run.agent = run.agent.Late(s.Late)
	}
	var watch Watcher
	if p.Watch != nil {
		watch = p.Watch(trainee)
	}
	if first == nil {
		run.metrics = trainee
	}
	return run, trainee, run.playEpochs(ctx, epochs, watch)
}

// build builds what is run. A policy that does not learn and knows the model knows
// of its changes too: it is built for each phase.
func (s Scene) build(p Play, terms env.Terms) (env.Agent, learner.Learner, error) {
	known := Known{
		Given: learner.Given{Instance: s.Instance, Terms: terms, Level: p.Level, Rand: stream.New(p.Seed, stream.Policy, 0)},
		Marks: s.Marks,
	}
	if s.Believed != nil && p.Entry.Name != "whittle" {
		known.Instance = *s.Believed
	}
	phases := known.Instance.Phases()
	var agents []env.Agent
	for _, phase := range phases {
		known.Instance = phase.Instance
		agent, trainee, err := p.Entry.Build(known, p.Settings)
		if err != nil || trainee != nil || agent.Learns() || len(phases) == 1 {
			return agent, trainee, err
		}
		agents = append(agents, agent)
	}
	return env.InPhases(phases, agents), nil, nil
}
