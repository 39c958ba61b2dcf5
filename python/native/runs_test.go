package native

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ephemera/experiments"
	"ephemera/experiments/result"
)

// asked is a call.
func asked(t *testing.T, what string, handle int64, settings map[string]any) (m Made) {
	t.Helper()
	if err := m.Call(what, handle, settingsText(t, settings)); err != nil {
		t.Fatal(err)
	}
	return m
}

// run is a run as Python sends it.
func run(policy string, steps, seed int) map[string]any {
	return map[string]any{
		"steps": steps, "evaluation": 0, "seed": seed, "world": map[string]any{"kind": "mean"},
		"instance": map[string]any{"name": "paper"}, "learner": map[string]any{"algorithm": policy},
	}
}

// records performs runs.
func records(t *testing.T, runs ...any) []*experiments.Record {
	t.Helper()
	m := asked(t, "runs", 0, map[string]any{"runs": runs})
	for {
		if done := asked(t, "wait", m.Handle, nil); done.Answer != nil {
			return done.Answer.([]*experiments.Record)
		}
	}
}

// A report of records is that of a comparison.
func TestCompareRecords(t *testing.T) {
	var contenders []any
	var first *experiments.Record
	for _, name := range []string{"whittle", "greedy"} {
		all := records(t, run(name, 200, 4), run(name, 200, 5))
		contenders = append(contenders, map[string]any{"name": name + " here", "learns": false, "records": all})
		if first == nil {
			first = all[0]
		}
	}
	answer := asked(t, "compare", 0, map[string]any{"knowledge": "model", "seeds": 2, "seed": 4, "contenders": contenders}).Answer.(map[string]any)
	report := answer["report"].(result.Report)
	if len(report.Results) != 2 || report.Results[0].Reward != first.Learned.Reward || !strings.Contains(answer["table"].(string), "greedy here") {
		t.Errorf("%+v", report)
	}
}

func TestRunsStop(t *testing.T) {
	m := asked(t, "runs", 0, map[string]any{"runs": []any{run("whittle", 1<<30, 1)}})
	j, err := get[*job](m.Handle)
	if err != nil {
		t.Fatal(err)
	}
	asked(t, "close", m.Handle, nil)
	if <-j.done; !errors.Is(j.err, context.Canceled) {
		t.Errorf("runs that were stopped: %v", j.err)
	}
	wrong := map[string]any{"runs": []any{run("whittle", 1<<30, 1), run("nobody", 1, 1)}}
	if err := new(Made).Call("runs", 0, settingsText(t, wrong)); err == nil || !strings.Contains(err.Error(), `unknown policy "nobody"`) {
		t.Errorf("runs of which one has no policy: %v", err)
	}
}

// Handles are never used twice, and what is closed is gone.
func TestHandles(t *testing.T) {
	call := func(what string, handle int64) (int64, error) {
		text := "{}"
		if what == "crawler" {
			text = `{"name": "whittle", "instance": "paper"}`
		}
		var m Made
		err := m.Call(what, handle, []byte(text))
		return m.Handle, err
	}
	a, err := call("crawler", 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := call("crawler", 0)
	if err != nil || a == b || a == 0 || b == 0 {
		t.Errorf("handles %d and %d (%v)", a, b, err)
	}
	if _, err := get[*crawler](a); err != nil {
		t.Error(err)
	}
	if _, err := get[*Worlds](a); err == nil {
		t.Error("a handle of another kind was taken")
	}
	if _, err := call("dance", a); err == nil || !strings.Contains(err.Error(), `unknown call "dance"`) {
		t.Errorf("an unknown call: %v", err)
	}
	if _, err := call("close", a); err != nil {
		t.Error(err)
	}
	for _, handle := range []int64{a, -1, b + 1} {
		for _, what := range []string{"describe", "close"} {
			if _, err := call(what, handle); err == nil || !strings.Contains(err.Error(), "is closed") {
				t.Errorf("%s of handle %d: %v", what, handle, err)
			}
		}
	}
	if c, err := call("crawler", 0); err != nil || c == a || c == b {
		t.Errorf("handle %d is used twice (%v)", c, err)
	}
}
