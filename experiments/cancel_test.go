package experiments

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"ephemera/env"
)

// A run that is cancelled in the middle ends, and leaves no goroutine behind.
func TestCancelled(t *testing.T) {
	in := env.Lognormal(300, 20, 1)
	before := runtime.NumGoroutine()
	var all []Contender
	for i := range Catalogue {
		if e := &Catalogue[i]; e.WhyNot(MeanScene(in), env.LevelModel) == "" {
			all = append(all, Contender{Entry: e})
		}
	}
	for what, run := range map[string]func(context.Context) error{
		"comparison": func(ctx context.Context) error {
			_, err := Comparison{Scenes: []Scene{MeanScene(in)}, Level: env.LevelModel, Contenders: all, Epochs: 1e9, Seeds: 4, Seed: 1, Workers: 8}.Run(ctx)
			return err
		},
		"training": func(ctx context.Context) error {
			_, err := Training{Scene: MeanScene(in), Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 1e9, Seed: 1}.Run(ctx)
			return err
		},
		"comparison after training": func(ctx context.Context) error {
			slow := MeanScene(in)
			_, err := Training{Scene: slow, Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 1e9, Seed: 1,
				From: &Checkpoint{Point: atEnd(t, slow, 1e9), Done: nil}}.Run(ctx)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		err := run(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 100 { // what was cancelled may need a moment
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// atEnd returns the point of a training that has been made to look as if that
// many epochs were behind it.
func atEnd(t *testing.T, s Scene, epochs int) Point {
	t.Helper()
	var at Point
	_, err := Training{Scene: s, Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 10, Seed: 1, Save: func(c *Checkpoint) error { at = c.Point; return nil }}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	at.Sums.Epochs = epochs
	return at
}
