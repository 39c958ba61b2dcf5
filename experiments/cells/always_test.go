package cells

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"ephemera/experiments/sweep"
)

// The final files are the same bytes on any number of workers and processors.
func TestSameBytes(t *testing.T) {
	_, c := load(t, "seeds = 3\nsteps = 60\nworld.kind = \"poisson\"\nworld.marks = \"per-item\"\nlearner.algorithm = [\"paper\", \"certainty\", \"whittle@observed\", \"round-robin\"]\ninstance.name = [\"paper\", \"mixed:6\"]\n")
	files := func(workers int) map[string]string {
		dir := t.TempDir()
		if _, err := sweep.Run(context.Background(), c, sweep.Options{Dir: dir, Workers: workers}); err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		paths, err := filepath.Glob(filepath.Join(dir, "*.*"))
		if err != nil || len(paths) != 8 {
			t.Fatalf("files %q, %v; want 8", paths, err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.Base(p)] = string(b)
		}
		return out
	}
	want := files(1)
	for _, procs := range []int{1, 2} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		for _, workers := range []int{1, 2, 8} {
			if got := files(workers); !maps.Equal(got, want) {
				t.Errorf("%d workers on %d processors give other bytes", workers, procs)
			}
		}
	}
}

// A sweep that is stopped in the middle of endless runs comes back, says so and
// leaves no goroutine at work.
func TestStopped(t *testing.T) {
	_, c := load(t, "seeds = 4\nsteps = 1000000000\nlearner.algorithm = [\"paper\", \"whittle\"]\n")
	before := runtime.NumGoroutine()
	ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	rep, err := sweep.Run(ctx, c, sweep.Options{Dir: t.TempDir(), Workers: 4})
	if !errors.Is(err, context.DeadlineExceeded) || rep.Ran != 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	for range 500 { // those that have ended may still be there for a moment
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines; before it were %d", runtime.NumGoroutine(), before)
}
