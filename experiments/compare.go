package experiments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// Contender is one policy of a comparison. A learner gives two rows: what it
// earns while it learns, and what it has learned.
type Contender struct {
	Entry    *Entry
	Settings any // what Entry.Configure returned; nil for the defaults
	// Chosen names the rows of a learner learning and learned; otherwise its
	// name stands before these.
	Chosen bool
	// Optional contenders that cannot be built for a scene, such as an exact
	// optimum that is too large, are left out and named in Compared.Left.
	Optional bool
}

// row returns the name of one of the contender's rows.
func (c Contender) row(kind string) string {
	if c.Chosen {
		return kind
	}
	return c.Entry.Name + "/" + kind
}

// Comparison runs every contender in every scene under every seed. Contenders
// see the same world under the same seed.
type Comparison struct {
	Scenes     []Scene
	Level      env.Level
	Contenders []Contender
	Epochs     int // 0 for all that a scene has
	Seeds      int // at least 1
	Seed       uint64
	Workers    int // at least 1; the result does not depend on it
	// Progress, if not nil, is told how many of all runs are done.
	Progress func(done, total int)
}

// Compared is what a comparison brings.
type Compared struct {
	Report result.Report
	Runs   []RunRow // every run, in a fixed order
	Left   []string // why contenders were left out
	// Failed is the error of the contenders of which a figure is not a finite
	// number, which are left out, or nil.
	Failed error
}

// RunRow is the outcome of one run.
type RunRow struct {
	Policy   string `json:"policy"`
	Instance string `json:"instance"`
	Seed     uint64 `json:"seed"`
	Outcome
	// Days holds the interest per epoch of each whole day, in worlds with
	// dates.
	Days []float64 `json:"-"`
}

// Run runs the comparison. A contender that is left out in one scene is left out
// in all: means are over the same runs.
func (c Comparison) Run(ctx context.Context) (*Compared, error) {
	if len(c.Scenes) == 0 || len(c.Contenders) == 0 || c.Seeds < 1 || c.Workers < 1 {
		return nil, errors.New("comparison without a scene, a policy, a seed or a worker")
	}
	var jobs []job
	for _, s := range c.Scenes {
		for _, x := range c.Contenders {
			for k := range c.Seeds {
				jobs = append(jobs, job{contender: x, scene: s, seed: c.Seed + uint64(k)})
			}
		}
	}
	err := Each(ctx, len(jobs), c.Workers, c.Progress,
		func(i int) string { return jobs[i].String() },
		func(ctx context.Context, i int) error { return c.play(ctx, &jobs[i]) })
	if err != nil {
		return nil, err
	}
	out := &Compared{}
	left := map[string]bool{}
	for _, j := range jobs {
		name := j.contender.Entry.Name
		if j.left == nil || left[name] {
			continue
		}
		left[name] = true
		out.Left = append(out.Left, fmt.Sprintf("%s is left out: on %s, %v", name, j.scene.Instance.ID, j.left))
		if errors.Is(j.left, ErrNotFinite) {
			out.Failed = errors.Join(out.Failed, fmt.Errorf("%s: %w", j, j.left))
		}
	}
	for _, j := range jobs {
		if !left[j.contender.Entry.Name] {
			out.Runs = append(out.Runs, j.rows...)
		}
	}
	switch {
	case len(out.Runs) > 0:
		out.Report = c.report(out.Runs)
		return out, nil
	case out.Failed != nil:
		return nil, out.Failed
	}
	return nil, fmt.Errorf("no policy can run: %s", out.Left[0])
}

// job is one contender in one scene under one seed.
type job struct {
	contender Contender
	scene     Scene
	seed      uint64
	rows      []RunRow
	left      error // why it is left out: not built and optional, or not finite
}

func (j job) String() string {
	return fmt.Sprintf("%s on %s, seed %d", j.contender.Entry.Name, j.scene.Instance.ID, j.seed)
}

// play runs one job.
func (c Comparison) play(ctx context.Context, j *job) error {
	x := j.contender
	names := []string{x.Entry.Name}
	if x.Entry.Learns() {
		names = []string{x.row("learning"), x.row("learned")}
	}
	for _, name := range names {
		j.rows = append(j.rows, RunRow{Policy: name, Instance: j.scene.Instance.ID, Seed: j.seed})
	}
	played, err := j.scene.Play(ctx, Play{
		Entry: x.Entry, Settings: x.Settings, Level: c.Level, Seed: j.seed, Epochs: c.Epochs,
		Watch: func(r Running) Watcher {
			row := &j.rows[0]
			if r.Again {
				row = &j.rows[1]
			}
			return daily(r.Terms, &row.Days)
		},
	})
	if unbuilt := new(buildError); errors.Is(err, ErrNotFinite) || x.Optional && errors.As(err, &unbuilt) {
		j.left = err
		return nil
	}
	for k := range j.rows {
		j.rows[k].Outcome = [...]Outcome{played.Learning, played.Learned}[k]
	}
	return err
}

// daily returns what adds the interest per epoch of each whole day to days, or
// nil in worlds without dates or whose days are not whole numbers of epochs.
func daily(t env.Terms, days *[]float64) Watcher {
	length := 86400 / t.Length // epochs
	if !(t.Length > 0) || length != math.Trunc(length) {
		return nil
	}
	var sum float64
	return func(n int, reward float64, _ []env.Crawled) error {
		sum += reward / length
		if (n+1)%int(length) == 0 {
			*days, sum = append(*days, sum), 0
		}
		return nil
	}
}

// report makes the report: the mean of every policy over all runs with its
// interval, ordered by reward, policies that break the budget last.
func (c Comparison) report(all []RunRow) result.Report {
	bounds := c.bounds()
	byPolicy := map[string][]RunRow{}
	var names []string
	for _, r := range all {
		if byPolicy[r.Policy] == nil {
			names = append(names, r.Policy)
		}
		byPolicy[r.Policy] = append(byPolicy[r.Policy], r)
	}
	in := c.Scenes[0].Instance
	rep := result.Report{
		Instance: in.ID, Knowledge: string(c.Level), Budget: in.Budget,
		Steps: all[0].Epochs, Seeds: c.Seeds, Seed: c.Seed,
		Timing: &result.Timing{Decision: map[string]float64{}},
	}
	if len(c.Scenes) > 1 {
		rep.Instance = fmt.Sprintf("%s and %d more", in.ID, len(c.Scenes)-1)
	}
	if bounds != nil {
		rep.Bound = result.Ptr(stats.Mean(bounds))
	}
	boot := stats.New(c.Seed)
	for _, name := range names {
		runs := byPolicy[name]
		rep.Results = append(rep.Results, c.row(boot, runs, byPolicy["whittle"], bounds))
		rep.Timing.Decision[name] = mean(runs, func(r RunRow) float64 { return float64(r.Decision.Nanoseconds()) })
	}
	var learners []string
	for _, x := range c.Contenders {
		if !x.Entry.Learns() {
			continue
		}
		learners = append(learners, x.Entry.Name)
		if ns := rep.Timing.Decision[x.row("learning")]; ns > 0 && rep.Timing.StepsPerSecond == 0 {
			rep.Timing.StepsPerSecond = 1e9 / ns // of the first
		}
	}
	rep.Algorithm = strings.Join(learners, "+")
	slices.SortStableFunc(rep.Results, func(a, b result.Row) int {
		if (a.Over > 0) != (b.Over > 0) {
			return cmp.Compare(a.Over, b.Over)
		}
		return cmp.Compare(b.Reward, a.Reward)
	})
	return rep
}

// bounds returns the relaxed optimum of each scene, or nil where one does not
// bound what is earned.
func (c Comparison) bounds() (all []float64) {
	for _, s := range c.Scenes {
		if !s.Bounded(c.Level) {
			return nil
		}
		bound, _ := index.Bound(s.Instance)
		all = append(all, bound)
	}
	return all
}

// each returns a figure of every run.
func each(runs []RunRow, figure func(RunRow) float64) []float64 {
	x := make([]float64, len(runs))
	for i, r := range runs {
		x[i] = figure(r)
	}
	return x
}

func mean(runs []RunRow, figure func(RunRow) float64) float64 { return stats.Mean(each(runs, figure)) }

func reward(r RunRow) float64 { return r.Reward }

// row aggregates the runs of one policy. Runs are ordered by scene and seed,
// as are Whittle's, so that they pair.
func (c Comparison) row(boot *stats.Bootstrap, runs, whittle []RunRow, bounds []float64) result.Row {
	row := result.Row{
		Policy:  runs[0].Policy,
		Reward:  mean(runs, reward),
		Crawls:  mean(runs, func(r RunRow) float64 { return r.Crawls }),
		Over:    mean(runs, func(r RunRow) float64 { return r.Over }),
		Overrun: mean(runs, func(r RunRow) float64 { return r.Overrun }),
	}
	paired := len(whittle) == len(runs)
	if !paired {
		whittle = runs
	}
	level, diff := c.intervals(boot, runs, whittle)
	row.Lo, row.Hi = result.Ptr(level.Lo), result.Ptr(level.Hi)
	if paired {
		ratios := floats.DivTo(make([]float64, len(runs)), each(runs, reward), each(whittle, reward))
		row.OfWhittle = result.Ptr(stats.Mean(ratios))
		row.Diff, row.DiffLo, row.DiffHi = result.Ptr(row.Reward-mean(whittle, reward)), result.Ptr(diff.Lo), result.Ptr(diff.Hi)
		if len(runs) > 1 {
			row.Worst = result.Ptr(slices.Min(ratios))
		}
	}
	if bounds != nil {
		ratios := each(runs, reward)
		for i := range ratios {
			ratios[i] /= bounds[i/c.Seeds]
		}
		row.OfBound = result.Ptr(stats.Mean(ratios))
	}
	return row
}

// blockDays is the length of the blocks that the bootstrap over days draws: a
// week, since weekdays differ and neighbouring days depend on each other.
const blockDays = 7

// intervals estimates the mean reward and its difference to Whittle's. What is
// drawn anew is what varies by chance: the seeds of one scene; the scenes where
// there are several, for seeds of one scene share its parameters; weeks of a
// recording, which is the same under every seed.
func (c Comparison) intervals(boot *stats.Bootstrap, runs, whittle []RunRow) (level, diff stats.Estimate) {
	if len(c.Scenes) == 1 && c.Scenes[0].Epochs > 0 {
		days := meanDays(runs)
		if len(days) < blockDays {
			none := stats.Estimate{Lo: math.NaN(), Hi: math.NaN()}
			return none, none
		}
		return boot.Blocks(days, blockDays), boot.PairedBlocks(days, meanDays(whittle), blockDays)
	}
	own, base := each(runs, reward), each(whittle, reward)
	if len(c.Scenes) > 1 {
		own, base = bySeeds(own, c.Seeds), bySeeds(base, c.Seeds)
	}
	return boot.Mean(own), boot.Paired(own, base)
}

// bySeeds returns the mean of every n values in a row.
func bySeeds(x []float64, n int) (m []float64) {
	for part := range slices.Chunk(x, n) {
		m = append(m, stats.Mean(part))
	}
	return m
}

// meanDays returns the interest per epoch of each day, averaged over the seeds
// of one recording.
func meanDays(runs []RunRow) []float64 {
	days := make([]float64, len(runs[0].Days))
	for _, r := range runs {
		for i, v := range r.Days {
			days[i] += v / float64(len(runs))
		}
	}
	return days
}
