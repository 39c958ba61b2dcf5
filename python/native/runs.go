package native

import (
	"cmp"
	"context"
	"runtime"
	"strconv"
	"strings"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
)

// anySeed in the name of an instance stands for the seed.
const anySeed = "*"

// resolve checks a run under a seed and opens its scene.
func resolve(e *experiments.Engine, r experiments.Run, seed uint64) (*experiments.Resolved, error) {
	r.Seed = seed
	r.Instance.Name = strings.ReplaceAll(r.Instance.Name, anySeed, strconv.FormatUint(seed, 10))
	return e.Resolve(context.Background(), r)
}

// openRuns checks runs, which are then performed with so many workers, 0 standing for
// one per processor. Python does so in a thread beside the one that looks for signals.
func openRuns(runs []experiments.Run, workers int) (functions, error) {
	engine := new(experiments.Engine)
	for i, r := range runs {
		c, err := resolve(engine, r, r.Seed)
		if err != nil {
			return nil, err // before any of them is run
		}
		runs[i].Instance.Name = c.Instance.Name
	}
	ctx, stop := context.WithCancel(context.Background())
	perform := func() ([]*experiments.Record, error) {
		all, err := engine.PerformAll(ctx, runs, experiments.Batch{Workers: cmp.Or(workers, runtime.GOMAXPROCS(0))})
		if err != nil {
			return nil, err
		}
		return all.Records, cmp.Or(all.Errors...)
	}
	return functions{"perform": perform, "close": stop}, nil
}

// compare returns the report of a comparison of contenders, under so many seeds from
// the first on, and its table.
func compare(contenders []experiments.Contender, level env.Level, seeds int, first uint64) (map[string]any, error) {
	report := experiments.Compare(contenders, level, seeds, first)
	var table strings.Builder
	err := result.Print(&table, &report, result.Text)
	return map[string]any{"report": report, "table": table.String()}, err
}
