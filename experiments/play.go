package experiments

import (
	"context"
	"encoding/json"
	"fmt"
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
	From       *Point // goes on from there with learning; nil for the beginning
	// Watch, if not nil, returns what watches a run that is about to begin:
	// first that of the learner or policy, then that of what was learned.
	Watch func(Running) Watcher
}

// Running is a run that is about to begin.
type Running struct {
	Known
	World   env.World
	Trainee learner.Learner // nil where nothing learns
	Again   bool            // it is the second run, of what was learned
	now     *playing
}

// Played is what a run brings.
type Played struct {
	Learning Outcome         // of the learner while it learned, or of the policy
	Learned  Outcome         // of what was learned, or of the policy, over the evaluation
	Trainee  learner.Learner // the learner as it ended, or nil
}

// buildError is the error of the constructor of a learner or a policy.
type buildError struct{ error }

func (e *buildError) Unwrap() error { return e.error }

// Play opens the world, builds the learner or policy from what it may know and
// runs it. A learner is then frozen and run in the same world from its
// beginning, or where that changes in the world that it became. This is the one way in which anything is run.
//
// It ends with the context's error when that is done, between two epochs.
func (s Scene) Play(ctx context.Context, p Play) (out Played, err error) {
	if p.Settings == nil && p.Entry.Settings != nil {
		p.Settings = p.Entry.Settings(p.Level)
	}
	p.Epochs = s.Limit(p.Epochs)
	if p.Evaluation == 0 {
		p.Evaluation = p.Epochs
	}
	p.Evaluation = s.Limit(p.Evaluation)
	if out.Learning, out.Trainee, err = s.playPart(ctx, p, nil); err != nil {
		return out, err
	}
	switch {
	case p.Evaluation < 0:
	case out.Trainee == nil && p.Evaluation == p.Epochs && s.After == nil:
		out.Learned = out.Learning
	default:
		out.Learned, _, err = s.after(p.Epochs).playPart(ctx, p, &out)
	}
	return out, err
}

// playPart opens the world afresh, builds an agent and runs it. With first, which is
// what the first run brought, it is the second.
func (s Scene) playPart(ctx context.Context, p Play, first *Played) (none Outcome, trainee learner.Learner, err error) {
	shown := p.Level
	if !p.Entry.Learns() && !slices.Contains(p.Entry.Levels, p.Level) {
		shown = p.Entry.FirstLevel() // it does not look at what else is shown
	}
	world, err := s.Open(p.Seed, shown, p.Entry.overruns(p.Settings))
	if err != nil {
		return none, nil, err
	}
	known := Known{
		Given: learner.Given{Instance: s.Instance, Terms: world.Terms(), Level: p.Level, Rand: stream.New(p.Seed, stream.Policy, 0)},
		Marks: s.Marks, Sigma: s.Sigma, Seen: s.Seen,
	}
	var agent env.Agent
	epochs := p.Epochs
	if first != nil {
		epochs, trainee = p.Evaluation, first.Trainee
	}
	if trainee != nil {
		agent = frozen(trainee)
	} else if agent, trainee, err = s.build(p, known); err != nil {
		return none, nil, &buildError{err}
	}
	if s.Late > 0 {
		agent = agent.Late(s.Late)
	}
	run := Running{known, world, trainee, first != nil, &playing{world: world, agent: agent}}
	if p.From != nil && first == nil {
		err = run.goOn(ctx, p.From, epochs)
	}
	if err == nil {
		var watch Watcher
		if p.Watch != nil {
			watch = p.Watch(run)
		}
		err = run.now.playEpochs(ctx, s.Warm, epochs, watch)
	}
	if err != nil {
		return none, nil, err
	}
	out, err := run.now.outcome()
	return out, trainee, err
}

// build builds what is run. A policy that does not learn and knows the model knows
// of its changes too: it is built for each phase.
func (s Scene) build(p Play, known Known) (env.Agent, learner.Learner, error) {
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

// FrozenByAge is a learner whose frozen policy, in worlds in which states follow
// from ages, need not look at all sources.
type FrozenByAge interface{ FrozenByAge() env.Agent }

// frozen returns what was learned as an agent.
func frozen(l learner.Learner) env.Agent {
	if l, ok := l.(FrozenByAge); ok {
		return l.FrozenByAge() // in worlds that are played states follow from ages
	}
	return l.Frozen()
}

// Point is where the run of a learner stands between two epochs, as data. The
// world adds no more to it than when each source was crawled last: what waits
// at a source depends on that and the seed alone.
type Point struct {
	Sums    Outcome         `json:"sums"` // sums, not means
	Epoch   int             `json:"epoch"`
	Last    []int           `json:"last"` // epoch of each source's last crawl; −1 before the first
	Learner json.RawMessage `json:"-"`
}

// Point returns where the run stands. It is called between epochs, or when the
// run has ended.
func (r Running) Point() (*Point, error) {
	state, err := json.Marshal(r.Trainee.State())
	if err != nil {
		return nil, fmt.Errorf("state of the learner: %w", err)
	}
	v := r.World.View()
	return &Point{Sums: r.now.sums, Epoch: v.Epoch, Last: slices.Clone(v.Last), Learner: state}, nil
}

// goOn takes a run that has just begun to a point. The world is taken there by
// crawls of each source at the epoch of its last crawl, and not before; of a run
// that has ended it is not needed.
func (r Running) goOn(ctx context.Context, p *Point, epochs int) error {
	if n := len(r.Terms.Costs); len(p.Last) != n {
		return fmt.Errorf("the run to go on with has %d sources; here are %d", len(p.Last), n)
	}
	if err := r.Trainee.SetState(p.Learner); err != nil {
		return fmt.Errorf("state of the learner: %w", err)
	}
	r.now.sums = p.Sums
	if epochs != 0 && p.Sums.Epochs >= epochs {
		return nil
	}
	crawls := map[int][]int{} // by epoch
	for i, n := range p.Last {
		crawls[n] = append(crawls[n], i)
	}
	for n := range p.Epoch {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := r.World.Step(crawls[n]); err != nil {
			return err
		}
	}
	return nil
}
