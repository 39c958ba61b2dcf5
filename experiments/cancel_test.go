package experiments

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"ephemera/env"
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
	if err == nil || !strings.Contains(err.Error(), "panic: boom\nephemera/experiments.TestPanicIsReported.func1 at ") {
		t.Errorf("the panic came back as %v", err)
	}
}

// thrower is a policy with a mistake.
type thrower struct{}

func (thrower) Select([]int, *env.Online) []int { return make([]int, 0)[1:] }

// TestPanicOfAPolicy: a policy that panics fails as one that spends too much does, and the
// runs of others are made.
func TestPanicOfAPolicy(t *testing.T) {
	before := policies
	t.Cleanup(func() { policies = before })
	Register(Entry{Name: "thrower", Sees: TrackAge,
		New: policy(func(Inputs) env.Policy[env.Online] { return thrower{} })})
	var runs []Run
	for _, name := range []string{"thrower", "greedy"} {
		runs = append(runs, newRun(t, map[string]any{AlgorithmKey: name, "steps": 10}))
	}
	done, err := new(Engine).PerformAll(t.Context(), jobsOf(t, runs...), Batch{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if done.Records[1] == nil {
		t.Error("the run of another policy was not made")
	}
	got := fmt.Sprint(done.Errors[0])
	for _, want := range []string{"thrower on paper, seed 1: panic: ", "\nephemera/experiments.thrower.Select at "} {
		if !strings.Contains(got, want) {
			t.Errorf("the run failed with %q; want %q in it", got, want)
		}
	}
}
