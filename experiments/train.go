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
	epochs := t.Scene.Limit(t.Epochs)
	if epochs <= 0 {
		return nil, fmt.Errorf("training of %d epochs; at least 1 is needed", epochs)
	}
	var (
		tick    = t.ticker(epochs * (2 + len(t.Compare)))
		now     Checkpoint
		pace    = &pacemaker{}
		trainee learner.Learner
		here    func() (*Point, error)
	)
	play := Play{Entry: t.Learner, Settings: t.Settings, Level: t.Level, Seed: t.Seed, Epochs: epochs}
	if t.From != nil {
		now = *t.From
		play.From = &now.Point
	}
	if len(now.Done) > 0 {
		play.Evaluation = -1
	}
	save := func() error {
		if t.Save == nil || here == nil {
			return nil
		}
		defer pace.pause()()
		if now.Sums.Epochs < epochs { // the point at the end stays
			p, err := here()
			if err != nil {
				return err
			}
			now.Point = *p
		}
		return t.Save(&now)
	}
	follow := func(policy string, goOn bool) Watcher {
		if t.Rows <= 0 {
			return func(int, float64, []env.Crawled) error { tick(); return nil }
		}
		see := now.Trace.watch(policy, epochs, goOn)
		return func(n int, reward float64, crawls []env.Crawled) error {
			tick()
			if policy == "learned" {
				now.Trace.crawled(n, epochs, crawls)
			}
			return see(n, reward, crawls)
		}
	}
	play.Watch = func(r Running) Watcher {
		if r.Again || r.Trainee == nil {
			return follow("learned", false)
		}
		see := follow("learning", true)
		trainee, here = r.Trainee, r.Point
		now.Start, now.Length = r.Terms.Start, r.Terms.Length
		pace.began = time.Now()
		return func(n int, reward float64, crawls []env.Crawled) error {
			pace.epochs++
			if err := see(n, reward, crawls); err != nil {
				return err
			}
			if err := now.Metrics.see(trainee, n+1, min(t.Rows, epochs), epochs, reward, len(crawls)); err != nil {
				return err
			}
			if n+1 == epochs {
				pace.end()
				if _, err := figures(trainee, n); err != nil {
					return err
				}
			}
			if n+1 == epochs || t.Due != nil && t.Due(n+1) {
				return save()
			}
			return nil
		}
	}
	played, err := t.Scene.Play(ctx, play)
	if ctx.Err() != nil && here != nil {
		if saveErr := save(); saveErr != nil {
			return nil, saveErr
		}
		return nil, &InterruptedError{Done: now.Sums.Epochs, Of: epochs, error: ctx.Err()}
	}
	if err != nil && (!errors.Is(err, ErrNotFinite) || trainee == nil) {
		return nil, fmt.Errorf("%s: %w", t.Learner.Name, err)
	}
	if err != nil {
		return t.trained(&now, trainee), fmt.Errorf("%s: %w", t.Learner.Name, err)
	}
	row := func(name string, o Outcome) result.Row {
		return result.Row{Policy: name, Reward: o.Reward, Crawls: o.Crawls, Over: o.Over, Overrun: o.Overrun}
	}
	if len(now.Done) == 0 {
		now.Done = append(now.Done, row("learned", played.Learned))
		if err := save(); err != nil {
			return nil, err
		}
	}
	if len(now.Done) > 1+len(t.Compare) {
		return nil, fmt.Errorf("the training to go on with made %d comparisons; here are %d", len(now.Done)-1, len(t.Compare))
	}
	var failed error
	for _, e := range t.Compare[len(now.Done)-1:] {
		o, err := t.Scene.Play(ctx, Play{Entry: e, Level: t.Level, Seed: t.Seed, Epochs: epochs, Watch: func(Running) Watcher { return follow(e.Name, false) }})
		if ctx.Err() != nil {
			return nil, &InterruptedError{Done: epochs, Of: epochs, error: ctx.Err()}
		}
		if errors.Is(err, ErrNotFinite) {
			failed = fmt.Errorf("%s: %w", e.Name, err)
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		now.Done = append(now.Done, row(e.Name, o.Learned))
		if err := save(); err != nil {
			return nil, err
		}
	}

	out := t.trained(&now, trainee)
	out.Report = result.Report{
		Instance:  t.Scene.Instance.ID,
		Algorithm: t.Learner.Name,
		Knowledge: t.Level.String(),
		Budget:    t.Scene.Instance.Budget,
		Steps:     epochs,
		Seeds:     1,
		Seed:      t.Seed,
		Timing:    &result.Timing{StepsPerSecond: pace.speed},
		Fitted:    t.Scene.Epochs > 0,
		Results:   now.Done,
	}
	if t.Learner.Learns() {
		out.Report.Results = append([]result.Row{row("learning", played.Learning)}, now.Done...)
	}
	if t.Scene.Bounded(t.Level) {
		bound, _ := index.Bound(t.Scene.Instance)
		out.Report.Bound = &bound
	}
	out.Report.Complete()
	return out, failed
}

// trained returns what there is so far but the report.
func (t Training) trained(now *Checkpoint, l learner.Learner) *Trained {
	out := &Trained{Trainee: l, Metrics: now.Metrics.Rows, Trace: now.Trace}
	if t.Rows > 0 && l != nil {
		out.Header = []string{"epoch", "reward", "crawls"}
		for _, m := range l.Metrics() {
			out.Header = append(out.Header, m.Name)
		}
	}
	return out
}

// InterruptedError says how far a training came before it was interrupted.
type InterruptedError struct {
	Done, Of int // epochs
	error
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("%v after %d of %d epochs", e.error, e.Done, e.Of)
}
func (e *InterruptedError) Unwrap() error { return e.error }

// ticker returns what is called at every epoch of every run and tells how far
// all runs are.
func (t Training) ticker(total int) func() {
	const every = 256 // epochs; a call of Progress costs more than an epoch
	done := 0
	return func() {
		done++
		if t.Progress != nil && (done%every == 0 || done == total) {
			t.Progress(done, total)
		}
	}
}

// pacemaker measures how many epochs per second a run has, but for the time in
// which it is saved.
type pacemaker struct {
	began  time.Time
	epochs int
	speed  float64
}

func (p *pacemaker) end() { p.speed = float64(p.epochs) / time.Since(p.began).Seconds() }

// pause takes the time until what it returns is called out of the measure.
func (p *pacemaker) pause() func() {
	from := time.Now()
	return func() { p.began = p.began.Add(time.Since(from)) }
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
