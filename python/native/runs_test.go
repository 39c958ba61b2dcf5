package native

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ephemera/experiments"
	"ephemera/experiments/result"
)

// asked is a call with settings that are changed by key.
func asked(what string, handle int64, changes map[string]any, in []float64) (Made, error) {
	m := map[string]any{"instance": "paper", "steps": 200, "seed": 4}
	for k, v := range changes {
		m[k] = v
	}
	text, err := json.Marshal(m)
	if err != nil {
		return Made{}, err
	}
	made := Made{In: in}
	err = made.Call(what, handle, text)
	return made, err
}

// records performs runs of a policy of the catalogue.
func records(t *testing.T, changes map[string]any) [][]*experiments.Record {
	t.Helper()
	m, err := asked("runs", 0, changes, nil)
	if err != nil {
		t.Fatal(err)
	}
	for {
		done, err := asked("wait", m.Handle, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if done.Answer != nil {
			return done.Answer.([][]*experiments.Record)
		}
	}
}

func must(t *testing.T) func(m Made, err error) Made {
	return func(m Made, err error) Made {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// A report of records is that of a comparison.
func TestCompareRecords(t *testing.T) {
	all := records(t, map[string]any{"kind": "mean", "seeds": 3, "policies": []any{map[string]any{"name": "whittle"}, map[string]any{"name": "greedy"}}})
	contender := func(name string, records any) map[string]any {
		return map[string]any{"name": name, "learns": false, "records": records}
	}
	of := func(contenders ...any) (any, error) {
		text, err := json.Marshal(map[string]any{"knowledge": "model", "seeds": 3, "seed": 4, "contenders": contenders})
		if err != nil {
			t.Fatal(err)
		}
		var m Made
		err = m.Call("compare", 0, text)
		return m.Answer, err
	}
	answer, err := of(contender("whittle", all[0]), contender("mine", all[1]))
	if err != nil {
		t.Fatal(err)
	}
	report := answer.(map[string]any)["report"].(result.Report)
	if len(report.Results) != 2 || report.Results[0].Reward != all[0][0].Learned.Reward || !strings.Contains(answer.(map[string]any)["table"].(string), "mine") {
		t.Errorf("%+v", report)
	}
}

func TestRunsStop(t *testing.T) {
	m := must(t)(asked("runs", 0, map[string]any{"steps": 1 << 30, "seeds": 1, "policies": []any{map[string]any{"name": "whittle"}}}, nil))
	j, err := get[*job](m.Handle)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := asked("close", m.Handle, nil, nil); err != nil {
		t.Fatal(err)
	}
	if <-j.done; !errors.Is(j.err, context.Canceled) {
		t.Errorf("runs that were stopped: %v", j.err)
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
