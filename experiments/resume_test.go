package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ephemera/env"
)

// cancelling is a world in which a run is interrupted within one epoch.
type cancelling struct {
	env.World
	at     int
	cancel func()
}

func (w *cancelling) Step(crawl []int) ([]env.Crawled, error) {
	if w.View().Epoch == w.at {
		w.cancel()
	}
	return w.World.Step(crawl)
}

// A training that is interrupted, while it learns, while what was learned is run
// or in a comparison, between two epochs or within one, ends as one that was not,
// from the last checkpoint. Within an epoch it ends behind it.
func TestGoesOn(t *testing.T) {
	const epochs = 600
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
		learner, err := FindLearner(x.learner, x.level)
		if err != nil {
			t.Fatal(err)
		}
		// run returns the last checkpoint as it is written, and the results. It is
		// interrupted when that many epochs of all runs are done, or within one.
		run := func(from *Checkpoint, done, within int, keep bool) (last *Checkpoint, results string, err error) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			training := Training{Scene: x.scene, Learner: learner, Level: x.level, Epochs: epochs, Seed: 1, Rows: 20, Compare: find(t, "whittle", "greedy"), From: from}
			training.Scene.Open = func(seed uint64, level env.Level, overrun bool) (env.World, error) {
				w, err := x.scene.Open(seed, level, overrun)
				return &cancelling{w, within, cancel}, err
			}
			training.Progress = func(n, _ int) {
				if done > 0 && n >= done {
					cancel()
				}
			}
			if keep {
				training.Due = func(n int) bool { return n%100 == 0 }
				training.Save = func(c *Checkpoint) error {
					text, err := json.Marshal(c)
					last = &Checkpoint{}
					last.Learner = c.Learner
					return errors.Join(err, json.Unmarshal(text, last))
				}
			}
			out, err := training.Run(ctx)
			if err != nil {
				return last, "", err
			}
			out.Report.Timing = nil
			text, err := json.Marshal([]any{out.Report, last})
			return last, string(text) + string(last.Learner), err
		}
		const never = -1
		_, want, err := run(nil, 0, never, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, stop := range [][2]int{{256, never}, {512, never}, {768, never}, {1280, never}, {2048, never}, {0, 0}, {0, 1}, {0, 117}, {0, epochs - 1}} {
			done, within := stop[0], stop[1]
			at, _, err := run(nil, done, within, true)
			if !errors.Is(err, context.Canceled) || at == nil {
				t.Fatalf("%s, %s, stopped after %d epochs, within %d: %v", x.learner, x.level, done, within, err)
			}
			if within != never {
				said := fmt.Sprintf(" after %d of %d epochs", within+1, epochs)
				if at.Epoch != within+1 || !strings.HasSuffix(err.Error(), said) {
					t.Errorf("%s, %s, stopped within epoch %d: at epoch %d, %v", x.learner, x.level, within, at.Epoch, err)
				}
				if _, _, err := run(nil, done, within, false); err == nil || !strings.HasSuffix(err.Error(), said) {
					t.Errorf("%s, %s, stopped within epoch %d where nothing is saved: %v", x.learner, x.level, within, err)
				}
			}
			if _, got, err := run(at, 0, never, true); err != nil || got != want {
				t.Errorf("%s, %s, stopped after %d epochs, within %d: ends otherwise (%v)\n%.600s\nwant\n%.600s", x.learner, x.level, done, within, err, got, want)
			}
		}
	}
}
