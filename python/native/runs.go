package native

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// anySeed in the name of an instance stands for the seed.
const anySeed = "*"

// resolve checks a run under a seed and opens its scene.
func resolve(e *experiments.Engine, r experiments.Run, seed uint64) (*experiments.Job, error) {
	r.Seed = seed
	r.Instance.Name = strings.ReplaceAll(r.Instance.Name, anySeed, strconv.FormatUint(seed, 10))
	return e.Resolve(context.Background(), r)
}

// openRuns checks runs, which are then performed with so many workers, 0 standing for
// one per processor. Python does so in a thread next to the one that looks for signals.
func openRuns(runs []experiments.Run, workers int) (functions, error) {
	engine := new(experiments.Engine)
	var jobs []*experiments.Job
	for _, r := range runs {
		j, err := resolve(engine, r, r.Seed)
		if err != nil {
			return nil, err // before any of them is run
		}
		jobs = append(jobs, j)
	}
	ctx, stop := context.WithCancel(context.Background())
	perform := func() ([]*experiments.Record, error) {
		all, err := engine.PerformAll(ctx, jobs, experiments.Batch{Workers: cmp.Or(workers, runtime.GOMAXPROCS(0))})
		if err != nil {
			return nil, err
		}
		return all.Records, cmp.Or(all.Errors...)
	}
	return functions{"perform": perform, "close": stop}, nil
}

// compare returns the report of a comparison of contenders, under so many seeds from
// the first on, its table, and what each row has of each run, with its curve.
func compare(contenders []experiments.Contender, level env.Level, seeds int, first uint64) (map[string]any, error) {
	report := experiments.Compare(contenders, level, seeds, first)
	var table strings.Builder
	err := result.Print(&table, &report, result.Text)
	type point struct {
		Policy   string `json:"policy"`
		Instance string `json:"instance"`
		Seed     uint64 `json:"seed"`
		experiments.CurvePoint
	}
	parts, curves := experiments.Parts(contenders), []point{}
	for _, p := range parts {
		for _, c := range p.Curve {
			curves = append(curves, point{p.Policy, p.Instance, p.Seed, c})
		}
	}
	return map[string]any{"report": report, "table": table.String(), "runs": parts, "curves": curves}, err
}

// instanceOf returns what a policy that knows the model is given in a run.
func instanceOf(r experiments.Run) (in env.Instance, err error) {
	j, err := new(experiments.Engine).Resolve(context.Background(), r)
	if err != nil {
		return in, err
	}
	return j.Scene.Instance, nil
}

// instance returns the text of the file of the instance of a run.
func instance(r experiments.Run) (string, error) {
	in, err := instanceOf(r)
	if err != nil {
		return "", err
	}
	text, err := toml.Marshal(in)
	return string(text), err
}

// relax returns the relaxed optimum of the instance of a run.
func relax(r experiments.Run) (x index.Relaxed, err error) {
	in, err := instanceOf(r)
	if err != nil {
		return x, err
	}
	terms := in.Terms()
	for i, source := range in.Sources {
		if source.Unbounded() && !terms.Affordable(i) {
			return x, fmt.Errorf("a crawl of source %d costs %v, and the budget is %v: under delay what waits there "+
				"costs without end, so there is no optimum", i, source.Cost, in.Budget)
		}
	}
	return index.Relax(in), nil
}

// bySource makes a curve of a function of a source and a number.
func bySource(f func(s env.Source, v float64) float64) func(in env.Instance) func(i int, v float64) float64 {
	return func(in env.Instance) func(i int, v float64) float64 {
		return func(i int, v float64) float64 { return f(in.Sources[i], v) }
	}
}

// curves are functions of a source of an instance, by its number, and a number.
var curves = map[string]func(in env.Instance) func(i int, v float64) float64{
	"index": bySource(index.Whittle), // of a state: γ(x)
	"index_at_age": func(in env.Instance) func(i int, v float64) float64 {
		at := baselines.WhittleAt(in)
		return func(i int, v float64) float64 { return at(i, int(v)) }
	},
	"state_at_age": bySource(func(s env.Source, v float64) float64 { return s.MeanState(int(v)) }),
	"inverse":      bySource(index.Inverse), // of a price: γ⁻¹(λ)
}

// curve writes a curve over the rows of numbers at which it is wanted, one for each
// source of the instance of a run.
func curve(what string, columns int, r experiments.Run, n Numbers) error {
	in, err := instanceOf(r)
	if err != nil {
		return err
	}
	if columns != len(in.Sources) {
		return fmt.Errorf("the rows have %d values; needed is one for each of %d sources", columns, len(in.Sources))
	}
	if i := slices.IndexFunc(in.Sources, env.Source.Unbounded); i >= 0 && (what == "index" || what == "inverse") {
		return fmt.Errorf("source %d has the law delay, under which states are costs and below 0; "+
			"index_at_age has its index", i)
	}
	of := curves[what](in)
	for k, v := range n {
		n[k] = of(k%columns, v)
	}
	return nil
}

// means estimates the mean of each of some samples, which have one value per seed.
func means(samples [][]float64) (all []stats.Estimate) {
	for _, x := range samples {
		all = append(all, stats.EstimateMean(x))
	}
	return all
}

// catalogue returns the learners and policies.
func catalogue() (all []map[string]any) {
	for _, e := range experiments.Catalogue() {
		tracks := map[env.Level]experiments.Track{e.FirstLevel(): e.Track(e.FirstLevel())}
		for _, level := range e.Levels {
			tracks[level] = e.Track(level)
		}
		all = append(all, map[string]any{
			"name": e.Name, "about": e.About, "learns": e.Learns, "levels": e.Levels, "tracks": tracks,
		})
	}
	return all
}

// measures returns the figures that are added up over a run: their names in records, and
// what they are.
func measures() (all []map[string]string) {
	for _, m := range result.Measures {
		all = append(all, map[string]string{"name": m.Name, "words": m.Words})
	}
	return all
}
