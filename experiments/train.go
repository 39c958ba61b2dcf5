package experiments

import (
	"context"
	"fmt"
	"time"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments/result"
)

// Training is a run of one learner as data, and what it is compared with.
type Training struct {
	Scene     Scene
	Algorithm Algorithm
	Settings  any // what Algorithm.Configure returned
	Level     env.Level
	Epochs    int // of training, and of every comparison; 0 for all that the scene has
	Seed      uint64
	Compare   []Baseline
	Rows      int // how many rows of metrics over time to keep; 0 for none
	// Progress, if not nil, is told after every so many epochs how many of
	// all epochs of the training and its comparisons are done.
	Progress func(done, total int)
}

// Trained is what a training brings.
type Trained struct {
	Report  result.Report
	Trainee Trainee
	Header  []string    // names of the metrics over time
	Metrics [][]float64 // rows of metrics over time
}

// Run trains, then freezes the learner and runs it and every baseline in the
// same world from its beginning.
func (t Training) Run(ctx context.Context) (*Trained, error) {
	epochs := t.Scene.Limit(t.Epochs)
	if epochs <= 0 {
		return nil, fmt.Errorf("training of %d epochs; at least 1 is needed", epochs)
	}
	tick := t.ticker(ctx, epochs*(2+len(t.Compare)))
	out := &Trained{}

	overrun := t.Algorithm.Overruns != nil && t.Algorithm.Overruns(t.Settings)
	var (
		rows []result.Row
		pace pacemaker
	)
	play := func(name string, overrun bool, build func(k Known) (env.Agent, error), watch Watcher) error {
		o, err := t.Scene.Play(Play{Seed: t.Seed, Level: t.Level, Role: uint64(len(rows)), Overrun: overrun, Epochs: epochs, Build: build, Watch: watch})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, result.Row{Policy: name, Reward: o.Reward, Crawls: o.Crawls, Over: o.Over, Overrun: o.Overrun})
		return nil
	}
	onlyTick := func(n int, _ float64, _ []env.Crawled) error { return tick(n) }

	var record recorder
	err := play("learning", overrun, func(k Known) (env.Agent, error) {
		trainee, err := t.Algorithm.New(k, t.Settings)
		if err != nil {
			return env.Agent{}, err
		}
		out.Trainee = trainee
		record = newRecorder(out, t.Rows, epochs)
		pace = newPacemaker(epochs)
		return trainee.Learner(), nil
	}, func(n int, reward float64, crawls []env.Crawled) error {
		pace.see(n)
		record.see(n, reward, len(crawls))
		return tick(n)
	})
	if err != nil {
		return nil, err
	}
	speed, peak := pace.speeds(epochs)

	if err := play("learned", overrun, out.Trainee.Frozen, onlyTick); err != nil {
		return nil, err
	}
	for _, b := range t.Compare {
		if err := play(b.Name, b.Overrun, b.New, onlyTick); err != nil {
			return nil, err
		}
	}

	fallbacks := out.Trainee.Fallbacks()
	out.Report = result.Report{
		Instance:       t.Scene.Instance.ID,
		Algorithm:      t.Algorithm.Name,
		Knowledge:      t.Level.String(),
		Budget:         t.Scene.Instance.Budget,
		Steps:          epochs,
		Seeds:          1,
		Seed:           t.Seed,
		StepsPerSecond: result.Ptr(speed), PeakStepsPerSecond: peak,
		Fallbacks: &fallbacks,
		Fitted:    t.Scene.Epochs > 0,
		Results:   rows,
	}
	if t.Scene.Bounded(t.Level) {
		bound, _ := baselines.RelaxedBound(t.Scene.Instance)
		out.Report.Bound = &bound
	}
	out.Report.Complete()
	return out, nil
}

// ticker returns what is called at every epoch of every run: it ends the run
// when the context does and tells how far all runs are.
func (t Training) ticker(ctx context.Context, total int) func(n int) error {
	const every = 256 // epochs; a call of Progress costs more than an epoch
	done := 0
	return func(int) error {
		done++
		if done%every != 0 && done != total {
			return nil
		}
		if t.Progress != nil {
			t.Progress(done, total)
		}
		return ctx.Err()
	}
}

// pacemaker measures how fast a run goes, as a whole and in its fastest part.
type pacemaker struct {
	began, last time.Time
	part        int // epochs
	least       time.Duration
}

func newPacemaker(epochs int) pacemaker {
	now := time.Now()
	return pacemaker{began: now, last: now, part: max(1, epochs/32)}
}

func (p *pacemaker) see(n int) {
	if (n+1)%p.part != 0 {
		return
	}
	now := time.Now()
	if d := now.Sub(p.last); p.least == 0 || d < p.least {
		p.least = d
	}
	p.last = now
}

// speeds returns epochs per second over the run that has just ended and in its
// fastest part.
func (p *pacemaker) speeds(epochs int) (mean, peak float64) {
	return float64(epochs) / time.Since(p.began).Seconds(), float64(p.part) / p.least.Seconds()
}

// recorder keeps the metrics over time: the means since the last row, and the
// state of the learner at its end.
type recorder struct {
	out          *Trained
	rows, epochs int

	n              int
	reward, crawls float64
}

func newRecorder(out *Trained, rows, epochs int) recorder {
	r := recorder{out: out, rows: min(rows, epochs), epochs: epochs}
	if rows <= 0 {
		return r
	}
	out.Header = []string{"epoch", "reward", "crawls"}
	for _, m := range out.Trainee.Metrics() {
		out.Header = append(out.Header, m.Name)
	}
	return r
}

func (r *recorder) see(n int, reward float64, crawls int) {
	if r.rows <= 0 {
		return
	}
	r.n++
	r.reward += reward
	r.crawls += float64(crawls)
	// Row k ends at the epoch ⌈k epochs/rows⌉.
	if k := float64(len(r.out.Metrics) + 1); float64(n+1)*float64(r.rows) < k*float64(r.epochs) {
		return
	}
	row := []float64{float64(n + 1), r.reward / float64(r.n), r.crawls / float64(r.n)}
	for _, m := range r.out.Trainee.Metrics() {
		row = append(row, m.Value)
	}
	r.out.Metrics = append(r.out.Metrics, row)
	r.n, r.reward, r.crawls = 0, 0, 0
}
