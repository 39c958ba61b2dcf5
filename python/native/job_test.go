package native

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/experiments"
)

// job begins a job with changes by key.
func job(t *testing.T, changes map[string]any) *Job {
	t.Helper()
	m := map[string]any{"instance": "paper", "world": "mean", "knowledge": "model", "sigma": 1, "steps": 200, "seed": 4, "seeds": 3, "rows": 7}
	for k, v := range changes {
		m[k] = v
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	j, _, err := Start(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// serve plays the guests of a job to its end: play answers a request.
func serve(t *testing.T, j *Job, play func(r *Request) Reply) (any, error) {
	t.Helper()
	var a Reply
	for {
		r, done := j.Serve(a, time.Second)
		if done {
			return j.Result()
		}
		if a = (Reply{}); r != nil {
			a = play(r)
		}
	}
}

func player(name string, guest bool) map[string]any {
	return map[string]any{"name": name, "guest": guest, "updates": guest}
}

// A guest that does what round robin does earns what it earns, by sources and
// by scores, and sees what its level shows.
func TestGuestInRun(t *testing.T) {
	for _, knowledge := range []string{"model", "observed", "online"} {
		world := map[string]any{"world": "poisson", "knowledge": knowledge}
		world["policies"] = []any{player("round-robin", false)}
		want, err := serve(t, job(t, world), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, scores := range []bool{false, true} {
			world["policies"] = []any{player("mine", true)}
			began, updates, items := 0, 0, 0
			got, err := serve(t, job(t, world), func(r *Request) Reply {
				if shows := [2]bool{r.Mean != nil, r.State != nil}; r.Kind != Begin && shows != [2]bool{knowledge != "online", knowledge == "observed"} {
					t.Fatalf("%s shows mean and state: %v", knowledge, shows)
				}
				switch r.Kind {
				case Begin:
					began++
					return Reply{}
				case Update:
					updates++
					items += r.Items()
					return Reply{}
				}
				if scores {
					s := make([]float64, len(r.Last))
					for i, last := range r.Last {
						s[i] = float64(r.Epoch - last)
					}
					return Reply{Scores: s}
				}
				return Reply{Sources: []int64{int64(slices.Index(r.Last, slices.Min(r.Last)))}}
			})
			if err != nil {
				t.Fatal(err)
			}
			if began != 1 || updates != 200 || (items > 0) != (knowledge == "online") {
				t.Errorf("%d runs, %d updates with %d items", began, updates, items)
			}
			a, b := want.(Ran), got.(Ran)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s: the guest has %v, round robin %v", knowledge, b, a)
			}
			if len(b.Curve) != 7 || b.Curve[6][0] != 200 {
				t.Errorf("the curve is %v", b.Curve)
			}
		}
	}
}

// Guests and entries stand in one table.
func TestCompareWithGuest(t *testing.T) {
	runs, next := 0, 0
	v, err := serve(t, job(t, map[string]any{
		"compare": true, "workers": 8, "policies": []any{player("whittle", false), player("mine", true), player("best-source", false)},
	}), func(r *Request) Reply {
		switch r.Kind {
		case Begin:
			runs, next = runs+1, 0
		case Select:
			if r.Epoch != next {
				t.Fatalf("epoch %d of a run, want %d: a guest plays one run at a time", r.Epoch, next)
			}
			next++
		}
		return Reply{Sources: []int64{0}}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := v.(Comparison)
	reward := map[string]float64{}
	for _, row := range c.Report.Results {
		reward[row.Policy] = row.Reward
	}
	if runs != 3 || len(c.Runs) != 9 || reward["mine"] != reward["best-source"] || !(reward["mine"] > 0) || reward["whittle"] <= reward["mine"] {
		t.Errorf("%d runs of the guest, %d in all, %v", runs, len(c.Runs), reward)
	}
	if !strings.Contains(c.Table, "mine") {
		t.Errorf("the table is\n%s", c.Table)
	}
	if _, err := json.Marshal(c); err != nil {
		t.Error(err)
	}
}

func TestJobStops(t *testing.T) {
	for _, guest := range []bool{false, true} {
		j := job(t, map[string]any{"steps": int64(1 << 40), "policies": []any{player("whittle", guest)}})
		j.Serve(Reply{}, 20*time.Millisecond)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		for {
			if _, done := j.Serve(Reply{}, time.Minute); done {
				break
			}
		}
		if _, err := j.Result(); !errors.Is(err, context.Canceled) {
			t.Errorf("a job that was stopped: %v", err)
		}
	}
}

func TestJobRefusals(t *testing.T) {
	for _, c := range []struct {
		changes map[string]any
		want    string
	}{
		{nil, "0 policies"},
		{map[string]any{"policies": []any{player("nobody", false)}}, `unknown`},
		{map[string]any{"policies": []any{player("whittle", false), player("whittle", true)}}, "named twice"},
		{map[string]any{"policies": []any{player("miniflux", false)}}, "knowledge online"},
		{map[string]any{"steps": 0, "policies": []any{player("whittle", false)}}, "does not end"},
		{map[string]any{"policies": []any{map[string]any{"name": "whittle", "settings": map[string]any{"kappa": 1}}}}, "no settings"},
	} {
		m := map[string]any{"instance": "paper", "world": "mean", "knowledge": "model", "steps": 10}
		for k, v := range c.changes {
			m[k] = v
		}
		text, _ := json.Marshal(m)
		if _, _, err := Start(text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.changes, err, c.want)
		}
	}
	_, err := serve(t, job(t, map[string]any{"policies": []any{player("mine", true)}}), func(*Request) Reply { return Reply{Sources: []int64{9}} })
	if err == nil || !strings.Contains(err.Error(), "source 9; allowed are 0 to 3") {
		t.Errorf("a source that is not there: %v", err)
	}
}

func TestCurves(t *testing.T) {
	in := env.Paper(1)
	values := []float64{0, 1, 10, 100, 2, 20, 3, 5}
	for name, f := range Curves {
		out := make([]float64, len(values))
		text, _ := json.Marshal(map[string]any{"instance": "paper", "what": name})
		if err := Evaluate(context.Background(), text, values, out); err != nil {
			t.Fatal(err)
		}
		for k, v := range values {
			if want := f(in.Sources[k%4], v); out[k] != want {
				t.Errorf("%s of source %d at %v is %v, want %v", name, k%4, v, out[k], want)
			}
		}
		if err := Evaluate(context.Background(), text, []float64{1, 2, 3}, out[:3]); err == nil {
			t.Errorf("%s at 3 numbers for 4 sources", name)
		}
		if err := Evaluate(context.Background(), text, []float64{1, -2, 3, 4}, out[:4]); err == nil || !strings.Contains(err.Error(), "source 1") {
			t.Errorf("%s at -2: %v", name, err)
		}
	}
}

func TestAsk(t *testing.T) {
	v, err := Ask([]byte(`{"what": "relax", "instance": "paper", "budget": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	if r := v.(Relaxed); len(r.Share) != 4 || r.Bound < r.Reward*(1-1e-9) || !slices.Contains(r.Long, -1) {
		t.Errorf("relax: %+v", r)
	}
	v, err = Ask([]byte(`{"what": "catalogue"}`))
	if err != nil || len(v.([]Entry)) != len(experiments.Catalogue) {
		t.Errorf("catalogue: %v, %v", v, err)
	}
	v, err = Ask([]byte(`{"what": "sources", "instance": "mixed:5", "budget": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(v); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{`{"what": "luck", "instance": "paper"}`: "unknown question", `{"what": "relax", "instance": "x"}`: "unknown instance", `{`: "settings"} {
		if _, err := Ask([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
