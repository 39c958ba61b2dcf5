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

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
)

// job begins a job with changes by key.
func begun(t *testing.T, changes map[string]any) *job {
	t.Helper()
	m := map[string]any{"instance": "paper", "steps": 200, "seed": 4, "seeds": 3, "rows": 7}
	for k, v := range changes {
		m[k] = v
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	j, _, err := start(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.stop)
	return j
}

// serve plays the guests of a job to its end: play answers a request.
func serve(t *testing.T, j *job, play func(r *request) []float64) (any, error) {
	t.Helper()
	var a []float64
	for {
		r, done := j.serve(a, time.Second)
		if done {
			return j.result, j.err
		}
		if a = nil; r != nil {
			a = play(r)
		}
	}
}

func playing(name string, guest bool) map[string]any {
	return map[string]any{"name": name, "guest": guest, "updates": guest}
}

// A guest that does what round robin does earns what it earns, by sources and
// by scores, and sees what its level shows.
func TestGuestInRun(t *testing.T) {
	for _, knowledge := range []string{"model", "observed", "online"} {
		world := map[string]any{"world": "poisson", "knowledge": knowledge}
		world["policies"] = []any{playing("round-robin", false)}
		want, err := serve(t, begun(t, world), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, byScore := range []bool{false, true} {
			world["policies"] = []any{playing("mine", true)}
			began, updates, items := 0, 0, 0
			got, err := serve(t, begun(t, world), func(r *request) []float64 {
				if shows := [2]bool{r.Mean != nil, r.State != nil}; r.Kind != begin && shows != [2]bool{knowledge != "online", knowledge == "observed"} {
					t.Fatalf("%s shows mean and state: %v", knowledge, shows)
				}
				switch r.Kind {
				case begin:
					began++
					return nil
				case learn:
					updates++
					items += countItems(r)
					return nil
				}
				if byScore {
					s := make([]float64, len(r.Last))
					for i, last := range r.Last {
						s[i] = float64(r.Epoch - last)
					}
					return append([]float64{scores}, s...)
				}
				return []float64{sources, float64(slices.Index(r.Last, slices.Min(r.Last)))}
			})
			if err != nil {
				t.Fatal(err)
			}
			if began != 1 || updates != 200 || (items > 0) != (knowledge == "online") {
				t.Errorf("%d runs, %d updates with %d items", began, updates, items)
			}
			for _, v := range []any{want, got} { // times differ
				for _, k := range []string{"learning", "learned"} {
					o := v.(map[string]any)[k].(experiments.Outcome)
					o.Decision = 0
					v.(map[string]any)[k] = o
				}
			}
			if !reflect.DeepEqual(want, got) {
				t.Errorf("%s: the guest has %v, round robin %v", knowledge, got, want)
			}
			if curve := got.(map[string]any)["curve"].([][3]float64); len(curve) != 7 || curve[6][0] != 200 {
				t.Errorf("the curve is %v", curve)
			}
		}
	}
}

// A request that has no room is made again, whole.
func TestRequestAgain(t *testing.T) {
	j := begun(t, map[string]any{"policies": []any{playing("mine", true)}, "knowledge": "observed", "world": "poisson"})
	in, asked := []float64{sources}, 0
	for {
		numbers, answer, err := j.answer(in, make([]float64, 0, 2))
		if err != nil {
			t.Fatal(err)
		}
		if answer != nil {
			break
		}
		if in = []float64{sources}; len(numbers) == 0 {
			continue
		}
		asked++
		more, answer, err := j.answer([]float64{again}, make([]float64, 0, 100))
		if err != nil || answer != nil || !slices.Equal(more, numbers) {
			t.Fatalf("%v, again %v (%v, %v)", numbers, more, answer, err)
		}
		if numbers[0] == choose {
			in = append(in, 1)
		}
	}
	if asked != 401 || j.result.(map[string]any)["learning"].(experiments.Outcome).Crawls != 1 {
		t.Errorf("%d requests, %v", asked, j.result)
	}
}

// Guests and entries stand in one table.
func TestCompareWithGuest(t *testing.T) {
	runs, next := 0, 0
	v, err := serve(t, begun(t, map[string]any{
		"compare": true, "workers": 8, "policies": []any{playing("whittle", false), playing("mine", true), playing("best-source", false)},
	}), func(r *request) []float64 {
		switch r.Kind {
		case begin:
			runs, next = runs+1, 0
		case choose:
			if r.Epoch != next {
				t.Fatalf("epoch %d of a run, want %d: a guest plays one run at a time", r.Epoch, next)
			}
			next++
		}
		return []float64{sources, 0}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := v.(map[string]any)
	reward := map[string]float64{}
	for _, row := range c["report"].(result.Report).Results {
		reward[row.Policy] = row.Reward
	}
	if runs != 3 || len(c["runs"].([]experiments.RunRow)) != 9 || reward["mine"] != reward["best-source"] || !(reward["mine"] > 0) || reward["whittle"] <= reward["mine"] {
		t.Errorf("%d runs of the guest, %d in all, %v", runs, len(c["runs"].([]experiments.RunRow)), reward)
	}
	if !strings.Contains(c["table"].(string), "mine") {
		t.Errorf("the table is\n%s", c["table"])
	}
	if _, err := json.Marshal(c); err != nil {
		t.Error(err)
	}
}

func TestJobStops(t *testing.T) {
	for _, guest := range []bool{false, true} {
		j := begun(t, map[string]any{"steps": 1 << 30, "policies": []any{playing("whittle", guest)}})
		j.serve(nil, 20*time.Millisecond)
		j.stop()
		for {
			if _, done := j.serve(nil, time.Minute); done {
				break
			}
		}
		if err := j.err; !errors.Is(err, context.Canceled) {
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
		{map[string]any{"policies": []any{playing("nobody", false)}}, `unknown`},
		{map[string]any{"policies": []any{playing("whittle", false), playing("whittle", true)}}, "named twice"},
		{map[string]any{"policies": []any{playing("whittle", false), map[string]any{"name": "greedy", "as": "whittle"}}}, "named twice"},
		{map[string]any{"policies": []any{playing("miniflux", false)}}, "knowledge online"},
		{map[string]any{"steps": 0, "policies": []any{playing("whittle", false)}}, "does not end"},
		{map[string]any{"policies": []any{map[string]any{"name": "whittle", "settings": map[string]any{"kappa": 1}}}}, `no setting "kappa"`},
	} {
		m := map[string]any{"instance": "paper", "steps": 10}
		for k, v := range c.changes {
			m[k] = v
		}
		text, _ := json.Marshal(m)
		if _, _, err := start(text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.changes, err, c.want)
		}
	}
	_, err := serve(t, begun(t, map[string]any{"policies": []any{playing("mine", true)}}), func(*request) []float64 { return []float64{sources, 9} })
	if err == nil || !strings.Contains(err.Error(), "source 9; allowed are 0 to 3") {
		t.Errorf("a source that is not there: %v", err)
	}
}

// What a request appends holds all that it asks.
func TestRequestAppend(t *testing.T) {
	r := request{
		Kind: learn, Guest: 2, Epoch: 9, Last: []int{8, 3}, Mean: []float64{1, 2}, State: []float64{4, 5},
		Crawls: []env.Crawled{{Source: 1, Age: 6, Interest: 7, Items: []env.Item{{Age: .5, Interest: 3}, {Age: .25, Interest: 4}}}},
	}
	if got, want := r.Append(nil), []float64{2, 2, 9, 1, 1, 1, 2, 1, 6, 1, 2, 4, 5, 1, 6, 7, 2, .5, 3, .25, 4}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r = request{Epoch: 9, Last: []int{8, 3}}
	if got, want := r.Append(nil), []float64{0, 0, 9, 0, 0, 0, 0, 1, 6}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestCurves(t *testing.T) {
	in := env.Paper(1)
	values := []float64{0, 1, 10, 100, 2, 20, 3, 5}
	for name, f := range curves {
		text, _ := json.Marshal(map[string]any{"instance": "paper", "curve": name, "columns": 4})
		out, err := curve(text, values, nil)
		if err != nil || len(out) != len(values) {
			t.Fatal(out, err)
		}
		for k, v := range values {
			if want := f(in.Sources[k%4], v); out[k] != want {
				t.Errorf("%s of source %d at %v is %v, want %v", name, k%4, v, out[k], want)
			}
		}
		rows, _ := json.Marshal(map[string]any{"instance": "paper", "curve": name, "columns": 2})
		if _, err := curve(rows, values, nil); err == nil || !strings.Contains(err.Error(), "rows of 2") {
			t.Errorf("%s at rows of 2: %v", name, err)
		}
		if _, err := curve(text, []float64{1, 2.5, 3, 4}, nil); (err != nil) != strings.HasSuffix(name, "age") {
			t.Errorf("%s at 2.5: %v", name, err)
		}
		if _, err := curve(text, []float64{1, 2, 3}, nil); err == nil {
			t.Errorf("%s at 3 numbers for 4 sources", name)
		}
		if _, err := curve(text, []float64{1, -2, 3, 4}, nil); err == nil || !strings.Contains(err.Error(), "source 1") {
			t.Errorf("%s at -2: %v", name, err)
		}
	}
}

// ask calls about nothing that is there.
func ask(t *testing.T, what, text string) any {
	t.Helper()
	m, err := Call(context.Background(), what, 0, []byte(text), nil, nil)
	if err != nil || m.Handle != 0 {
		t.Fatalf("%s: %+v, %v", what, m, err)
	}
	data, err := json.Marshal(m.Answer)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAsk(t *testing.T) {
	r := ask(t, "relax", `{"instance": "paper", "budget": 1}`).(map[string]any)
	if len(r["Share"].([]any)) != 4 || r["Bound"].(float64) < r["Reward"].(float64)*(1-1e-9) || !slices.Contains(r["Long"].([]any), any(float64(index.Never))) {
		t.Errorf("relax: %+v", r)
	}
	if v := ask(t, "catalogue", "{}").([]any); len(v) != len(experiments.Catalogue) {
		t.Errorf("catalogue: %v", v)
	}
	want, err := env.Named("mixed:5", 2)
	if err != nil {
		t.Fatal(err)
	}
	got, err := env.Unmarshal("", []byte(ask(t, "instance", `{"instance": "mixed:5", "budget": 2}`).(string)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("instance: %v, %v; want %v", got, err, want)
	}
	for text, want := range map[string]string{`{"instance": "x"}`: "unknown instance", `{`: "settings", `{"luck": 1}`: "luck"} {
		if _, err := Call(context.Background(), "relax", 0, []byte(text), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func countItems(r *request) (n int) {
	for _, c := range r.Crawls {
		n += len(c.Items)
	}
	return n
}

// Handles are never used twice, and what is closed is gone.
func TestHandles(t *testing.T) {
	call := func(what string, handle int64) (int64, error) {
		m, err := Call(context.Background(), what, handle, []byte(`{"name": "whittle", "instance": "paper"}`), nil, nil)
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
	if _, err := Get[*crawler](a); err != nil {
		t.Error(err)
	}
	if _, err := Get[*Worlds](a); err == nil {
		t.Error("a handle of another kind was taken")
	}
	for _, what := range []string{"save", "freeze"} {
		if _, err := call(what, a); err == nil || !strings.Contains(err.Error(), `"whittle" does not learn`) {
			t.Errorf("%s of a policy: %v", what, err)
		}
	}
	if _, err := call("dance", a); err == nil || !strings.Contains(err.Error(), `unknown call "dance"`) {
		t.Errorf("an unknown call: %v", err)
	}
	if _, err := call("close", a); err != nil {
		t.Error(err)
	}
	for _, handle := range []int64{a, 0, -1, b + 1} {
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
