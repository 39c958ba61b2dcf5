// Package experiments turns a model into figures: one visible loop runs an
// agent in a world, and around it stand the catalogue of policies, seeds,
// statistics and the output that all commands share.
package experiments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

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

// Outcome is what an agent earned over a run.
type Outcome struct {
	Epochs  int     `json:"epochs"`
	Reward  float64 `json:"reward"`  // interest per epoch
	Crawls  float64 `json:"crawls"`  // crawls per epoch
	Cost    float64 `json:"cost"`    // budget units per epoch
	Over    float64 `json:"over"`    // share of epochs whose crawls cost more than the budget
	Overrun float64 `json:"overrun"` // mean cost above the budget over all epochs, budget units
}

// Watcher sees every epoch of a run, after the agent was told. The slice is
// valid during the call only. An error ends the run and is returned by it.
type Watcher func(epoch int, reward float64, crawls []env.Crawled) error

// Loop is the loop of every experiment: the agent selects, the world steps, the
// agent is told. It ends after the given number of epochs, or, with epochs 0,
// when the world does.
func Loop(w env.World, a env.Agent, epochs int, watch Watcher) (Outcome, error) {
	p := &playing{world: w, agent: a}
	if err := p.playEpochs(context.Background(), epochs, watch); err != nil {
		return Outcome{}, err
	}
	return p.outcome()
}

// playing is a run under way.
type playing struct {
	world   env.World
	agent   env.Agent
	trainee learner.Learner // whose agent it is; nil where nothing learns
	learns  bool            // it learns now, and its figures stand in the curve

	// What it brought so far.
	sums  Outcome // not yet means
	curve []CurvePoint
	days  []float64 // interest per epoch of each
	speed float64   // epochs per second

	ends  []int   // epochs at which points of the curve end
	day   float64 // epochs; 0 where they have no dates
	last  Outcome // the sums at the last point of the curve
	today float64 // interest of the day that is not over, per epoch of a whole one
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
		reward, err := p.book(got)
		if err == nil && watch != nil {
			err = watch(p.sums.Epochs-1, reward, got)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrNotFinite is the error of a run whose figures a number cannot hold.
var ErrNotFinite = errors.New("not a finite number")

// book adds the crawls of an epoch and returns what they earned.
func (p *playing) book(crawls []env.Crawled) (reward float64, err error) {
	sum, terms := &p.sums, p.world.Terms()
	var cost float64
	for _, c := range crawls {
		reward += c.Interest
		cost += terms.Costs[c.Source]
	}
	epoch := sum.Epochs
	sum.Epochs++
	sum.Reward += reward
	sum.Crawls += float64(len(crawls))
	sum.Cost += cost
	if !env.Fits(cost, terms.Budget) {
		sum.Over++
		sum.Overrun += cost - terms.Budget
	}
	if math.IsNaN(sum.Reward) || math.IsInf(sum.Reward, 0) {
		return reward, fmt.Errorf("epoch %d: the interest earned so far is %v, %w", epoch, sum.Reward, ErrNotFinite)
	}
	if p.day > 0 {
		p.today += reward / p.day
		if sum.Epochs%int(p.day) == 0 {
			p.days, p.today = append(p.days, p.today), 0
		}
	}
	if k := len(p.curve); k == len(p.ends) || p.ends[k] != sum.Epochs {
		return reward, nil
	}
	span := float64(sum.Epochs - p.last.Epochs)
	now := CurvePoint{Epoch: sum.Epochs, Reward: (sum.Reward - p.last.Reward) / span, Crawls: (sum.Crawls - p.last.Crawls) / span}
	if p.learns {
		for _, m := range p.trainee.Metrics() {
			if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
				return reward, fmt.Errorf("epoch %d: the learner's %s is %v, %w", epoch, m.Name, m.Value, ErrNotFinite)
			}
			now.Own = append(now.Own, m.Value)
		}
	}
	p.curve, p.last = append(p.curve, now), *sum
	return reward, nil
}

// outcome returns the means.
func (p *playing) outcome() (Outcome, error) {
	out := p.sums
	if out.Epochs == 0 {
		return Outcome{}, errors.New("the world has no epoch to run")
	}
	for _, v := range []*float64{&out.Reward, &out.Crawls, &out.Cost, &out.Over, &out.Overrun} {
		*v /= float64(out.Epochs)
	}
	return out, nil
}

// figures returns what the run earned, with its share of the bound, nil for none.
func (p *playing) figures(bound *float64) (f Figures, err error) {
	if f.Outcome, err = p.outcome(); bound != nil {
		f.OfBound = result.Ptr(f.Reward / *bound)
	}
	f.Days = p.days
	return f, err
}

// Milestones returns the epochs of a curve, over a run of so many: eight in
// each factor of ten, and the last.
func Milestones(epochs int) []int {
	var at []int
	for k := 0; ; k++ {
		n := int(math.Round(math.Pow(10, float64(k)/8)))
		if n >= epochs {
			return append(at, epochs)
		}
		if len(at) == 0 || n > at[len(at)-1] {
			at = append(at, n)
		}
	}
}

// curveEnds returns the epochs at which points of a curve end: the Milestones of
// the run, each change of the world, and from ten epochs after it on the
// Milestones counted from there.
func curveEnds(epochs int, changes []env.Change) []int {
	ends := Milestones(epochs)
	for _, c := range changes {
		if c.At >= epochs {
			break
		}
		ends = append(ends, c.At)
		for _, n := range Milestones(epochs - c.At) {
			if n >= 10 {
				ends = append(ends, c.At+n)
			}
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}
