package experiments

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	Trace   Trace   `json:"trace"`
	// Done are the rows that are finished: what was learned, then the
	// comparisons.
	Done []result.Row `json:"done"`
}

// Trained is what a training brings.
type Trained struct {
	Report  result.Report
	Trainee learner.Learner
	Header  []string    // names of the metrics over time
	Metrics [][]float64 // rows of metrics over time
	Trace   Trace
}

// Run trains, then freezes the learner and runs it and every baseline in the
// same world from its beginning. Where a figure is not a finite number it
// returns what there was before with the error.
func (t Training) Run(ctx context.Context) (*Trained, error) {
	r := &training{Training: t, epochs: t.Scene.Limit(t.Epochs), spent: map[string]float64{}}
	if r.epochs <= 0 {
		return nil, fmt.Errorf("training of %d epochs; at least 1 is needed", r.epochs)
	}
	if t.From != nil {
		r.now = *t.From
	}
	if done := len(r.now.Done) - 1; done > len(t.Compare) {
		return nil, fmt.Errorf("the training to go on with made %d comparisons; here are %d", done, len(t.Compare))
	}
	learning, err := r.learn(ctx)
	if err == nil {
		err = r.compare(ctx)
	}
	some := r.trainee != nil || len(r.now.Done) > 0
	if err != nil && !(errors.Is(err, ErrNotFinite) && some) {
		return nil, err
	}
	out := &Trained{Trainee: r.trainee, Metrics: r.now.Metrics.Rows, Trace: r.now.Trace}
	if t.Rows > 0 && r.trainee != nil {
		out.Header = []string{"epoch", "reward", "crawls"}
		for _, m := range r.trainee.Metrics() {
			out.Header = append(out.Header, m.Name)
		}
	}
	if len(r.now.Done) > 0 {
		var failed error
		if out.Report, failed = r.report(ctx, learning); failed != nil {
			return nil, failed
		}
	}
	return out, err
}

// training is a training under way.
type training struct {
	Training
	epochs  int
	speed   float64 // of the learner's run, epochs per second
	now     Checkpoint
	trainee learner.Learner
	here    func() (*Point, error) // where the run of the learner stands
	spent   map[string]float64     // time of a decision by policy, ns
}

// learn runs the learner and then what it learned.
func (r *training) learn(ctx context.Context) (learning result.Row, err error) {
	play := Play{Entry: r.Learner, Settings: r.Settings, Level: r.Level, Seed: r.Seed, Epochs: r.epochs}
	if r.From != nil {
		play.From = &r.now.Point
	}
	if len(r.now.Done) > 0 {
		play.Evaluation = -1
	}
	play.Watch = func(run Running) Watcher {
		if run.Again || run.Trainee == nil {
			return r.follow("learned")
		}
		r.trainee, r.here = run.Trainee, run.Point
		r.now.Start, r.now.Length = run.Terms.Start, run.Terms.Length
		see := r.follow("learning")
		first, began := r.now.Sums.Epochs, time.Now()
		return func(n int, reward float64, crawls []env.Crawled) error {
			if err := see(n, reward, crawls); err != nil {
				return err
			}
			if n+1 == r.epochs {
				r.speed = float64(r.epochs-first) / time.Since(began).Seconds()
			}
			return r.learned(n+1, reward, len(crawls))
		}
	}
	played, err := r.Scene.Play(ctx, play)
	if ctx.Err() != nil && r.here != nil {
		if err := r.save(); err != nil && !errors.Is(err, errCut) {
			return learning, err
		}
		return learning, fmt.Errorf("%w after %d of %d epochs", ctx.Err(), r.now.Sums.Epochs, r.epochs)
	}
	if err != nil {
		return learning, fmt.Errorf("%s: %w", r.Learner.Name, err)
	}
	learning = r.row("learning", played.Learning)
	if len(r.now.Done) == 0 {
		err = r.done("learned", played.Learned)
	}
	return learning, err
}

// learned books an epoch of the learner, of which n have passed.
func (r *training) learned(n int, reward float64, crawls int) error {
	if err := r.now.Metrics.see(r.trainee, n, min(r.Rows, r.epochs), r.epochs, reward, crawls); err != nil {
		return err
	}
	if n < r.epochs && (r.Due == nil || !r.Due(n)) {
		return nil
	}
	if _, err := figures(r.trainee, n-1); err != nil && n == r.epochs {
		return err
	}
	return r.save()
}

// compare runs what is compared, as far as it was not yet.
func (r *training) compare(ctx context.Context) error {
	for _, e := range r.Compare[len(r.now.Done)-1:] {
		o, err := r.Scene.Play(ctx, Play{Entry: e, Level: r.Level, Seed: r.Seed, Epochs: r.epochs, Watch: func(Running) Watcher { return r.follow(e.Name) }})
		if ctx.Err() != nil {
			return fmt.Errorf("%w after %[2]d of %[2]d epochs", ctx.Err(), r.epochs)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if err := r.done(e.Name, o.Learned); err != nil {
			return err
		}
	}
	return nil
}

// follow returns what watches the run of a policy.
func (r *training) follow(policy string) Watcher {
	const every = 256 // epochs; a call of Progress costs more than an epoch
	before, total := (len(r.now.Done)+1)*r.epochs, (len(r.Compare)+2)*r.epochs
	if policy == "learning" {
		before = 0
	}
	see := r.now.Trace.watch(policy, r.epochs)
	return func(n int, reward float64, crawls []env.Crawled) error {
		if done := before + n + 1; r.Progress != nil && (done%every == 0 || done == total) {
			r.Progress(done, total)
		}
		if r.Rows <= 0 {
			return nil
		}
		return see(n, reward, crawls)
	}
}

// save hands on where the training stands.
func (r *training) save() error {
	if r.Save == nil || r.here == nil {
		return nil
	}
	if r.now.Sums.Epochs < r.epochs { // the point at the end stays
		p, err := r.here()
		if err != nil {
			return err
		}
		r.now.Point = *p
	}
	return r.Save(&r.now)
}

// done adds the row of a run that is finished.
func (r *training) done(policy string, o Outcome) error {
	r.now.Done = append(r.now.Done, r.row(policy, o))
	return r.save()
}

// timedSources is the number of sources from which a decision takes longer than
// to look at the clock.
const timedSources = 100

func (r *training) row(policy string, o Outcome) result.Row {
	if len(r.Scene.Instance.Sources) >= timedSources {
		r.spent[policy] = float64(o.Decision.Nanoseconds())
	}
	return result.Row{Policy: policy, Reward: o.Reward, Crawls: o.Crawls, Over: o.Over, Overrun: o.Overrun}
}

func (r *training) report(ctx context.Context, learning result.Row) (result.Report, error) {
	rep := result.Report{
		Instance:  r.Scene.Instance.ID,
		Algorithm: r.Learner.Name,
		Knowledge: string(r.Level),
		Budget:    r.Scene.Instance.Budget,
		Steps:     r.epochs,
		Seeds:     1,
		Seed:      r.Seed,
		Timing:    &result.Timing{StepsPerSecond: r.speed, Decision: r.spent},
		Fitted:    r.Scene.Epochs > 0,
		Results:   r.now.Done,
	}
	if r.Learner.Learns() {
		rep.Results = append([]result.Row{learning}, r.now.Done...)
	}
	if r.Scene.Bounded(r.Level) {
		relaxed, err := index.RelaxUntil(ctx, r.Scene.Instance, index.MeanDynamics)
		if err != nil {
			return rep, err
		}
		rep.Bound = &relaxed.Bound
	}
	rep.Complete()
	return rep, nil
}

// metrics are the means since the last row, and the state of the learner at its
// end, over time.
type metrics struct {
	Rows   [][]float64 `json:"rows"`
	N      int         `json:"n"` // epochs since the last row
	Reward float64     `json:"reward"`
	Crawls float64     `json:"crawls"`
}

// see books an epoch, of which n have passed, so that there are that many rows
// in the end.
func (m *metrics) see(l learner.Learner, n, rows, epochs int, reward float64, crawls int) error {
	if rows <= 0 {
		return nil
	}
	m.N++
	m.Reward += reward
	m.Crawls += float64(crawls)
	// Row k ends at the epoch ⌈k epochs/rows⌉.
	if k := float64(len(m.Rows) + 1); float64(n)*float64(rows) < k*float64(epochs) {
		return nil
	}
	own, err := figures(l, n-1)
	if err != nil {
		return err
	}
	m.Rows = append(m.Rows, append([]float64{float64(n), m.Reward / float64(m.N), m.Crawls / float64(m.N)}, own...))
	m.N, m.Reward, m.Crawls = 0, 0, 0
	return nil
}

// figures returns a learner's own figures, which have to be finite.
func figures(l learner.Learner, epoch int) ([]float64, error) {
	var own []float64
	for _, x := range l.Metrics() {
		if math.IsNaN(x.Value) || math.IsInf(x.Value, 0) {
			return nil, fmt.Errorf("epoch %d: the learner's %s is %v, %w", epoch, x.Name, x.Value, ErrNotFinite)
		}
		own = append(own, x.Value)
	}
	return own, nil
}
