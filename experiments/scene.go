// Package experiments turns a model into figures: one visible loop runs an
// agent in a world, and around it stand the catalogue of policies, seeds,
// statistics and the output that all commands share.
package experiments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// Scene is a world as data: it can be set up afresh for every policy that is
// compared, each time with the same content.
type Scene struct {
	Instance env.Instance // what a policy that knows the model is given
	// Believed is what all but the reference, "whittle", are given instead where
	// they are to be mistaken; nil stands for Instance.
	Believed *env.Instance
	Epochs   int  // how many the world has; 0 for any number
	Seeded   bool // the seed changes what arrives
	Mean     bool // the harvest curves of the instance are the mean rewards, at one price for all time
	Bits     bool // sources are pages, of which a crawl shows one bit: whether it has changed
	// Marks is the law of the items' initial interest; empty where the model has no
	// single items.
	Marks env.Marks
	// Late is how many epochs after its publication an item's interest becomes known
	// to whoever learns, in worlds of which crawls bring back items; 0 when it is crawled.
	Late float64
	// Open sets the world up. The level says what it must show; overrun lets
	// crawls over the budget pass.
	Open func(seed uint64, level env.Level, overrun bool) (env.World, error)
	// With returns the scene of an instance with other parameters; nil where they do not
	// change.
	With func(in env.Instance) Scene

	// alone is Open of worlds that share nothing; nil where none do.
	alone func(seed uint64, level env.Level, overrun bool) (env.World, error)

	feedback string // when it becomes known what an item is worth; "" where all are worth the same
	key      string // names it among those of an engine
	sum      []byte // of the file of the recording; nil of an instance
	// relaxed keeps what Bound returns; nil keeps nothing.
	relaxed func() (bound, price float64)
	// foresight bounds what anybody earns per epoch in so many epochs, also who knows what will be
	// published; nil where nobody does.
	foresight func(epochs int) float64
}

// Bound returns the relaxed optimum of the instance, interest per epoch, and its λ*,
// interest per budget unit.
func (s *Scene) Bound() (bound, price float64) {
	if s.relaxed != nil {
		return s.relaxed()
	}
	return index.Bound(s.Instance)
}

// OpenAlone opens a world as Open does that shares nothing with others of its seed: it
// brings the same, and keeps nothing of what it has drawn. It is for environments in which
// one trains, each of which is a world of its own and may be stepped without end.
func (s *Scene) OpenAlone(seed uint64, level env.Level, overrun bool) (env.World, error) {
	if s.alone == nil {
		return s.Open(seed, level, overrun)
	}
	return s.alone(seed, level, overrun)
}

// After returns the scene in which what was learned in so many epochs is measured: its
// world has from its beginning, and for good, the parameters that this one has then.
func (s Scene) After(epochs int) Scene {
	if s.With == nil || len(s.Instance.Changes) == 0 {
		return s
	}
	after := s.With(becomes(s.Instance, epochs))
	if s.Believed != nil {
		believed := becomes(*s.Believed, epochs)
		after.Believed = &believed
	}
	return after
}

// becomes returns the instance without changes that one is after so many epochs.
func becomes(in env.Instance, epochs int) (now env.Instance) {
	for _, phase := range in.Phases() {
		if phase.From < epochs {
			now = phase.Instance
		}
	}
	return now
}

// Bounded reports whether the relaxed optimum of the instance bounds what a
// policy at that level can earn: rewards must follow the mean dynamics, and the
// policy must not see more than they hold.
func (s Scene) Bounded(level env.Level) bool {
	return s.Mean && (level != env.LevelObserved || !s.Seeded)
}

// Limit returns how many of that many epochs the scene has; 0 stands for all
// that it has.
func (s Scene) Limit(epochs int) int {
	if s.Epochs > 0 && (epochs == 0 || epochs > s.Epochs) {
		return s.Epochs
	}
	return epochs
}

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
	rec := s.record(p.Level, p.Epochs, p.Evaluation)
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
	run, err := s.playPart(ctx, p, p.Epochs, nil)
	if err != nil {
		return nil, err
	}
	rec.Curve, rec.Speed, rec.Trainee = run.curve, run.speed, run.trainee
	if rec.Learning, err = run.figures(rec.Bound); err != nil || p.Evaluation < 0 {
		return rec, err
	}
	after := s.After(p.Epochs)
	if rec.Trainee != nil || p.Evaluation != p.Epochs || len(s.Instance.Changes) > 0 {
		if run, err = after.playPart(ctx, p, p.Evaluation, rec.Trainee); err != nil {
			return nil, err
		}
	}
	if rec.Learned, err = run.figures(rec.Bound); err != nil {
		return nil, err
	}
	if rec.Trainee != nil {
		if l, ok := rec.Trainee.(interface{ Fallbacks() int }); ok { // it inverts a matrix
			rec.Fallbacks = l.Fallbacks()
		}
		for _, m := range rec.Trainee.Metrics() {
			rec.Metrics = append(rec.Metrics, m.Name)
		}
		_, price := after.Bound()
		rec.Pairs = thresholdPairs(rec.Trainee, after.Instance, price, p.Level)
	}
	return rec, nil
}

// record opens the record of a run that lasts so many epochs, 0 for all of the scene's, with an
// evaluation as [Play] has it. The bound of a recording is that of the epochs that are played: a run
// whose evaluation has others has none.
func (s Scene) record(level env.Level, epochs, evaluation int) *Record {
	rec := &Record{Instance: s.Instance.ID, Fitted: s.Epochs > 0}
	epochs = s.Limit(epochs)
	switch {
	case s.Bounded(level):
		bound, _ := s.Bound()
		rec.Bound = result.RatioOf(bound)
	case s.foresight != nil && (evaluation < 0 || s.Limit(cmp.Or(evaluation, epochs)) == epochs):
		rec.Bound = result.RatioOf(s.foresight(epochs))
	}
	for _, change := range s.Instance.Changes {
		if change.At < epochs {
			rec.Changes = append(rec.Changes, change.At)
		}
	}
	return rec
}

// playPart opens the world afresh, builds an agent, or takes what a trainee has
// learned, and runs it.
func (s Scene) playPart(ctx context.Context, p Play, epochs int, learned learner.Learner) (*playing, error) {
	shown := p.Level
	if !p.Entry.Learns && !slices.Contains(p.Entry.Levels, p.Level) {
		shown = p.Entry.FirstLevel() // it does not look at what else is shown
	}
	overrun := p.Entry.Overruns != nil && p.Entry.Overruns(p.Settings)
	world, err := s.Open(p.Seed, shown, overrun)
	if err != nil {
		return nil, err
	}
	run := &playing{world: world, trainee: learned, Account: NewAccount(world, epochs, s.Instance.Changes)}
	if learned != nil {
		run.agent = learned.Frozen().Fixed()
	} else if run.agent, run.trainee, err = s.build(p, world.Terms()); err != nil {
		return nil, err
	}
	if learned == nil && run.trainee != nil {
		run.own = run.trainee.Metrics
	}
	if s.Late > 0 {
		run.agent = run.agent.Late(s.Late, s.Instance)
	}
	if s.Bits {
		run.agent = run.agent.OfPages()
	}
	if keeper, ok := world.(env.ItemKeeper); ok && !run.agent.ReadsItems() {
		keeper.DropItems()
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
	random := stream.New(p.Seed, stream.Policy, 0)
	known := Inputs{Instance: s.Instance, Terms: terms, Level: p.Level, Rand: random, Marks: s.Marks}
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

// Watcher sees every epoch of a run, after the agent observed it; crawls have their
// items only where the agent reads them. The slice is
// valid during the call only. An error ends the run and is returned by it.
type Watcher func(epoch int, reward float64, crawls []env.Crawled) error

// Loop is the loop of every experiment: the agent selects, the world steps, the
// agent observes them. It ends after the given number of epochs, or, with epochs 0,
// when the world does.
func Loop(w env.World, a env.Agent, epochs int, watch Watcher) (result.Outcome, error) {
	p := &playing{world: w, agent: a, Account: NewAccount(w, epochs, nil)}
	if err := p.playEpochs(context.Background(), epochs, watch); err != nil {
		return result.Outcome{}, err
	}
	return p.outcome()
}

// playing is a run under way.
type playing struct {
	world   env.World
	agent   env.Agent
	trainee learner.Learner         // whose agent it is; nil where nothing learns
	own     func() []learner.Metric // its figures, which stand in the curve; nil where it does not learn now

	speed float64 // epochs per second
	*Account
}

// playEpochs plays so many epochs, 0 for all that the world has. Between epochs it
// looks at ctx.
func (p *playing) playEpochs(ctx context.Context, epochs int, watch Watcher) error {
	began := time.Now()
	defer func() { p.speed = float64(p.sums.Epochs) / time.Since(began).Seconds() }()
	var crawl []int
	for epochs == 0 || p.sums.Epochs < epochs {
		if err := ctx.Err(); err != nil {
			return err
		}
		crawl = p.agent.Select(crawl[:0], p.world.View())
		got, err := p.world.Step(crawl)
		switch {
		case errors.Is(err, io.EOF) && epochs == 0:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the world ended after %d epochs; %d were asked for", p.sums.Epochs, epochs)
		case err != nil:
			return err
		}
		p.agent.Update(got, p.world.View())
		reward, err := p.Add(got, p.own)
		if err == nil && watch != nil {
			err = watch(p.sums.Epochs-1, reward, got)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
