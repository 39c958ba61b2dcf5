package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// Training is a run of one learner as data, and what it is compared with. In
// place of the learner may stand what was learned before, which is then not
// trained.
type Training struct {
	Scene    Scene
	Learner  *Entry
	Settings any // what Entry.Configure returned
	Level    env.Level
	Epochs   int // of training, and of every comparison; 0 for all that the scene has
	Seed     uint64
	Compare  []*Entry
	Rows     int // how many rows of metrics over time to keep; 0 for none, and for no trace
	// Progress, if not nil, is told after every so many epochs how many of
	// all epochs of the training and its comparisons are done.
	Progress func(done, total int)

	// Save, if not nil, is handed where the training stands: after the epochs
	// of which Due, if not nil, says so, when it is interrupted, at the end of
	// learning and after each comparison. From, if not nil, is where an earlier
	// process stood.
	Save func(*Checkpoint) error
	Due  func(epoch int) bool
	From *Checkpoint
}

// Checkpoint is where a training stands, as data.
type Checkpoint struct {
	Point
	Start   int64   `json:"-"` // of the terms
	Length  float64 `json:"-"`
	Metrics metrics `json:"metrics"`
	Trace   trace   `json:"trace"`
	// Done are the rows that are finished: what was learned, then the
	// comparisons.
	Done []result.Row `json:"done"`
}

// Trained is what a training brings.
type Trained struct {
	Checkpoint // where it ended
	Report     result.Report
	Trainee    learner.Learner
}

// training is a training under way.
type training struct {
	Training
	now      Checkpoint
	learning result.Row
	run      *Running // of the learner, or nil
	timing   result.Timing
}

// Run trains, then freezes the learner and runs it and every baseline in the
// same world from its beginning. Where a figure is not a finite number it
// returns what there was before with the error.
func (t Training) Run(ctx context.Context) (*Trained, error) {
	t.Epochs = t.Scene.Limit(t.Epochs)
	if t.Epochs <= 0 {
		return nil, fmt.Errorf("training of %d epochs; at least 1 is needed", t.Epochs)
	}
	r := &training{Training: t, timing: result.Timing{Decision: map[string]float64{}}}
	if t.From != nil {
		r.now = *t.From
	}
	if done := len(r.now.Done) - 1; done > len(t.Compare) {
		return nil, fmt.Errorf("the training to go on with made %d comparisons; here are %d", done, len(t.Compare))
	}
	err := r.learn(ctx)
	for k, e := range t.Compare {
		if err == nil && k+1 >= len(r.now.Done) {
			err = r.play(ctx, e.Name, Play{Entry: e, Watch: func(Running) Watcher { return r.follow(e.Name) }})
		}
	}
	some := r.run != nil || len(r.now.Done) > 0
	if err != nil && !(errors.Is(err, ErrNotFinite) && some) {
		return nil, err
	}
	out := &Trained{Checkpoint: r.now}
	if r.run != nil {
		out.Trainee = r.run.Trainee
	}
	if len(r.now.Done) > 0 {
		out.Report = r.report()
	}
	return out, err
}

// learn runs the learner and then what it learned.
func (r *training) learn(ctx context.Context) error {
	p := Play{Entry: r.Learner, Settings: r.Settings, Watch: func(run Running) Watcher {
		if run.Again || run.Trainee == nil {
			return r.follow("learned")
		}
		return r.train(run)
	}}
	if r.From != nil {
		p.From = &r.now.Point
	}
	if len(r.now.Done) > 0 {
		p.Evaluation = -1
	}
	return r.play(ctx, "learned", p)
}

// play runs a learner or a policy, and adds its row to those that are finished.
func (r *training) play(ctx context.Context, policy string, p Play) error {
	p.Level, p.Seed, p.Epochs = r.Level, r.Seed, r.Epochs
	played, err := r.Scene.Play(ctx, p)
	if ctx.Err() != nil && r.run != nil {
		if err := r.save(); err != nil {
			return err
		}
		return fmt.Errorf("%w after %d of %d epochs", ctx.Err(), r.run.now.sums.Epochs, r.Epochs)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.Entry.Name, err)
	}
	if p.Entry.Learns() {
		r.learning = r.row("learning", played.Learning)
	}
	if p.Evaluation < 0 {
		return nil
	}
	r.now.Done = append(r.now.Done, r.row(policy, played.Learned))
	return r.save()
}

// train returns what watches the learner.
func (r *training) train(run Running) Watcher {
	r.run = &run
	r.now.Start, r.now.Length = run.Terms.Start, run.Terms.Length
	see := r.follow("learning")
	first, began := r.now.Sums.Epochs, time.Now()
	return func(n int, reward float64, crawls []env.Crawled) error {
		if err := see(n, reward, crawls); err != nil {
			return err
		}
		last := n+1 == r.Epochs
		if last {
			r.timing.StepsPerSecond = float64(r.Epochs-first) / time.Since(began).Seconds()
		}
		if err := r.now.Metrics.see(run.Trainee, n, min(r.Rows, r.Epochs), r.Epochs, reward, crawls); err != nil {
			return err
		}
		if last {
			if _, err := figures(run.Trainee, n); err != nil {
				return err
			}
		} else if r.Due == nil || !r.Due(n+1) {
			return nil
		}
		return r.save()
	}
}

// follow returns what watches the run of a policy.
func (r *training) follow(policy string) Watcher {
	const every = 256 // epochs; a call of Progress costs more than an epoch
	before, total := (len(r.now.Done)+1)*r.Epochs, (len(r.Compare)+2)*r.Epochs
	if policy == "learning" {
		before = 0
	}
	see := func(int, float64, []env.Crawled) error { return nil }
	if r.Rows > 0 {
		see = r.now.Trace.watch(policy, r.Epochs)
	}
	return func(n int, reward float64, crawls []env.Crawled) error {
		if done := before + n + 1; r.Progress != nil && (done%every == 0 || done == total) {
			r.Progress(done, total)
		}
		return see(n, reward, crawls)
	}
}

// save hands on where the training stands.
func (r *training) save() error {
	if r.Save == nil || r.run == nil {
		return nil
	}
	if r.now.Sums.Epochs < r.Epochs { // the point at the end stays
		p, err := r.run.Point()
		if err != nil {
			return err
		}
		r.now.Point = *p
	}
	return r.Save(&r.now)
}

// timedSources is the number of sources from which a decision takes longer than
// to look at the clock.
const timedSources = 100

func (r *training) row(policy string, o Outcome) result.Row {
	if len(r.Scene.Instance.Sources) >= timedSources {
		r.timing.Decision[policy] = float64(o.Decision.Nanoseconds())
	}
	return result.Row{Policy: policy, Reward: o.Reward, Crawls: o.Crawls, Over: o.Over, Overrun: o.Overrun}
}

func (r *training) report() result.Report {
	rep := result.Report{
		Instance:  r.Scene.Instance.ID,
		Algorithm: r.Learner.Name,
		Knowledge: string(r.Level),
		Budget:    r.Scene.Instance.Budget,
		Steps:     r.Epochs,
		Seeds:     1,
		Seed:      r.Seed,
		Timing:    &r.timing,
		Fitted:    r.Scene.Epochs > 0,
		Results:   r.now.Done,
	}
	if r.Learner.Learns() {
		rep.Results = append([]result.Row{r.learning}, r.now.Done...)
	}
	if r.Scene.Bounded(r.Level) {
		bound, _ := index.Bound(r.Scene.Instance)
		rep.Bound = &bound
	}
	rep.Complete()
	return rep
}
