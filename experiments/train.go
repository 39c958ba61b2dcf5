package experiments

import (
	"context"
	"fmt"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// Training is a run of one learner as data, and what it is compared with.
type Training struct {
	Scene    Scene
	Learner  *Entry
	Settings any // what Entry.Configure returned
	Level    env.Level
	Epochs   int // of training, and of every comparison; 0 for all that the scene has
	Seed     uint64
	Compare  []*Entry
	Rows     int // how many rows of metrics over time to keep; 0 for none
	// Progress, if not nil, is told after every so many epochs how many of
	// all epochs of the training and its comparisons are done.
	Progress func(done, total int)
}

// Trained is what a training brings.
type Trained struct {
	Report  result.Report
	Trainee learner.Learner
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
	tick := t.ticker(epochs * (2 + len(t.Compare)))
	out := &Trained{}
	var (
		rows []result.Row
		pace pacemaker
	)
	add := func(name string, o Outcome) {
		rows = append(rows, result.Row{Policy: name, Reward: o.Reward, Crawls: o.Crawls, Over: o.Over, Overrun: o.Overrun})
	}
	onlyTick := func(int, float64, []env.Crawled) error { tick(); return nil }
	play := Play{Entry: t.Learner, Settings: t.Settings, Level: t.Level, Seed: t.Seed, Epochs: epochs}
	play.Watch = func(r Running) Watcher {
		if r.Again {
			return onlyTick
		}
		record := newRecorder(out, r.Trainee, t.Rows, epochs)
		pace = pacemaker{began: time.Now()}
		return func(n int, reward float64, crawls []env.Crawled) error {
			pace.see(n+1, epochs)
			record.see(n, reward, len(crawls))
			tick()
			return nil
		}
	}
	played, err := t.Scene.Play(ctx, play)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Learner.Name, err)
	}
	out.Trainee = played.Trainee
	add("learning", played.Learning)
	add("learned", played.Learned)
	for _, e := range t.Compare {
		o, err := t.Scene.Play(ctx, Play{Entry: e, Level: t.Level, Seed: t.Seed, Epochs: epochs, Watch: func(Running) Watcher { return onlyTick }})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		add(e.Name, o.Learned)
	}

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
		Results:   rows,
	}
	if t.Scene.Bounded(t.Level) {
		bound, _ := index.Bound(t.Scene.Instance)
		out.Report.Bound = &bound
	}
	out.Report.Complete()
	return out, nil
}

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

// pacemaker measures how many epochs per second a run has.
type pacemaker struct {
	began time.Time
	speed float64
}

func (p *pacemaker) see(n, epochs int) {
	if n == epochs {
		p.speed = float64(epochs) / time.Since(p.began).Seconds()
	}
}

// recorder keeps the metrics over time: the means since the last row, and the
// state of the learner at its end.
type recorder struct {
	out          *Trained
	trainee      learner.Learner
	rows, epochs int

	n              int
	reward, crawls float64
}

func newRecorder(out *Trained, trainee learner.Learner, rows, epochs int) *recorder {
	r := &recorder{out: out, trainee: trainee, rows: min(rows, epochs), epochs: epochs}
	if rows <= 0 {
		return r
	}
	out.Header = []string{"epoch", "reward", "crawls"}
	for _, m := range trainee.Metrics() {
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
	for _, m := range r.trainee.Metrics() {
		row = append(row, m.Value)
	}
	r.out.Metrics = append(r.out.Metrics, row)
	r.n, r.reward, r.crawls = 0, 0, 0
}
