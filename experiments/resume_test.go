package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"ephemera/env"
)

// A training that is interrupted, while it learns, while what was learned is run
// or in a comparison, ends as one that was not, from the last checkpoint.
func TestGoesOn(t *testing.T) {
	const epochs = 600
	// run returns the last checkpoint as it is written, and the results. It is
	// interrupted when that many epochs of all runs are done.
	run := func(name string, scene Scene, level env.Level, from *Checkpoint, stop int) (last *Checkpoint, results string, err error) {
		learner, err := FindLearner(name, level)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		out, err := Training{
			Scene: scene, Learner: learner, Level: level, Epochs: epochs, Seed: 1, Rows: 20, Compare: find(t, "whittle", "greedy"), From: from,
			Due: func(n int) bool { return n%100 == 0 },
			Save: func(c *Checkpoint) error {
				text, err := json.Marshal(c)
				last = &Checkpoint{}
				last.Learner = c.Learner
				return errors.Join(err, json.Unmarshal(text, last))
			},
			Progress: func(done, _ int) {
				if stop > 0 && done >= stop {
					cancel()
				}
			},
		}.Run(ctx)
		if err != nil {
			return last, "", err
		}
		out.Report.Timing = nil
		text, err := json.Marshal([]any{out.Report, out.Metrics, out.Trace, last})
		if err != nil {
			t.Fatal(err)
		}
		return last, string(text) + string(last.Learner), nil
	}
	for _, x := range []struct {
		learner string
		level   env.Level
		scene   Scene
	}{
		{"lspe", env.LevelModel, MeanScene(env.Paper(1))},
		{"paper", env.LevelModel, PoissonScene(env.Paper(1), env.MarksPerItem, 0)},
		{"lspe", env.LevelObserved, PoissonScene(env.Paper(2), env.MarksPerEpoch, 0)},
		{"forecast", env.LevelOnline, PoissonScene(env.Mixed(6, 2, 1), env.MarksPerItem, 0)},
	} {
		_, want, err := run(x.learner, x.scene, x.level, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, stop := range []int{256, 512, 768, 1280, 2048} {
			at, _, err := run(x.learner, x.scene, x.level, nil, stop)
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s, %s, stopped after %d epochs: %v", x.learner, x.level, stop, err)
			}
			if _, got, err := run(x.learner, x.scene, x.level, at, 0); err != nil || got != want {
				t.Errorf("%s, %s, stopped after %d epochs: ends otherwise (%v)\n%.600s\nwant\n%.600s", x.learner, x.level, stop, err, got, want)
			}
		}
	}
}
