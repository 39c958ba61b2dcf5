package experiments

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Runs that are cancelled in the middle end, and leave no goroutine behind.
func TestCancelled(t *testing.T) {
	before := runtime.NumGoroutine()
	var runs []Run
	for _, name := range []string{"lspe", "whittle", "greedy", "paper"} {
		runs = append(runs, newRun(t, map[string]any{
			"learner.algorithm": name, "instance.name": "lognormal:300", "instance.budget": 20, "steps": 1_000_000_000,
		}))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := new(Engine).PerformAll(ctx, jobsOf(t, runs...), Batch{Workers: 8})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	for range 100 { // what was cancelled may need a moment
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// A run that is through when all is cancelled is kept.
func TestCancelledAtEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := Batch{Dir: t.TempDir(), Workers: 1}
	PerformMissing(ctx, b, []string{"a"}, func(context.Context, int) (*int, error) {
		cancel()
		return new(7), nil
	})
	b.ReadOnly = true
	got, err := PerformMissing[int](t.Context(), b, []string{"a"}, nil)
	if err != nil || got.Records[0] == nil || *got.Records[0] != 7 {
		t.Errorf("what was kept is read as %+v, %v; want 7", got, err)
	}
}

// What panics is an error that says where.
func TestPanicIsReported(t *testing.T) {
	err := Each(context.Background(), 3, 2, nil, func(_ context.Context, i int) error {
		if i == 1 {
			panic("boom")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "panic: boom\ngoroutine") {
		t.Errorf("the panic came back as %v", err)
	}
}
