package experiments

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A learner that is interrupted while it learns, or while what it learned is run,
// goes on from its checkpoint, and ends with the bytes of one that was not.
func TestGoesOn(t *testing.T) {
	for _, settings := range []map[string]any{
		{"learner.algorithm": "lspe", "steps": 800},
		{"learner.algorithm": "paper", "steps": 800, "world.kind": "poisson", "world.marks": "per-item"},
		{"learner.algorithm": "lspe@observed", "steps": 800, "instance.budget": 2, "world.marks": "per-epoch"},
		{"learner.algorithm": "forecast", "steps": 600, "instance.name": "mixed:6", "instance.budget": 2, "world.marks": "per-item"},
	} {
		run := newRun(t, settings)
		// perform performs the run until that many reports of epochs have come, and
		// returns what is in the directory.
		var played int // reports of the last call
		perform := func(dir string, reports int) (map[string]string, error) {
			played = 0
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			b := Batch{Dir: dir, Workers: 1, Saved: filepath.Join(dir, "state.json"), Played: func(int) {
				played++
				if reports--; reports == 0 {
					cancel()
				}
			}}
			out, err := new(Engine).PerformAll(ctx, []Run{run}, b)
			if err != nil {
				return nil, err
			}
			if out.Errors[0] != nil {
				t.Fatal(out.Errors[0])
			}
			return treeOf(t, dir), nil
		}
		want, err := perform(t.TempDir(), -1)
		if err != nil {
			t.Fatal(err)
		}
		whole := played
		for _, reports := range []int{1, 3, 5} { // while learning, at its end, of what was learned
			dir := t.TempDir()
			if _, err := perform(dir, reports); !errors.Is(err, context.Canceled) && err != nil {
				t.Fatal(err)
			}
			got, err := perform(dir, -1)
			if err != nil {
				t.Fatal(err)
			}
			if played >= whole {
				t.Errorf("%v: stopped after %d reports, it began again", settings, reports)
			}
			for name := range want {
				if got[name] != want[name] || len(got) != len(want) {
					t.Errorf("%v, stopped after %d reports: %s is another one", settings, reports, name)
				}
			}
		}
	}
}

// treeOf reads all files of a directory and the directories in it.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+string(filepath.Separator))] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The saved learner of another run in the same place is not gone on with.
func TestSavedOfAnotherRun(t *testing.T) {
	dir := t.TempDir()
	b := Batch{Dir: dir, Workers: 1, Saved: filepath.Join(dir, "state.json")}
	states := map[string]bool{}
	for _, steps := range []int{300, 200, 300} {
		run := newRun(t, map[string]any{"steps": steps})
		out, err := new(Engine).PerformAll(context.Background(), []Run{run}, b)
		if err != nil || out.Ran != 1 || out.Records[0].Learning.Epochs != steps {
			t.Fatalf("%d steps: %+v, %v", steps, out, err)
		}
		states[treeOf(t, dir)["state.json"]] = true
	}
	if len(states) != 2 {
		t.Errorf("%d different states; want those of 300 and of 200 steps", len(states))
	}
}

// Checkpoints are written every ten seconds, and those that take long less often,
// so that they take at most a tenth of the time.
func TestCheckpointsTakeATenth(t *testing.T) {
	const epoch, run = 300 * time.Millisecond, 10 * time.Hour
	for _, takes := range []time.Duration{time.Millisecond, time.Second, 5 * time.Second, time.Minute} {
		var now, ended, took, writing time.Duration
		for now < run {
			if now += epoch; now-ended >= pause(took) {
				now += takes
				ended, took = now, takes
				writing += takes
			}
		}
		if 10*writing > now || writing == 0 {
			t.Errorf("checkpoints of %v take %v of %v", takes, writing, now)
		}
	}
}
