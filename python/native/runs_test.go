package native

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
)

// run is a run as Python sends it.
func run(policy string, steps int, seed uint64) experiments.Run {
	r := experiments.Run{
		Steps: steps, Seed: seed,
		World:   experiments.World{Kind: "mean"},
		Learner: map[string]any{"algorithm": policy},
	}
	r.Instance.Name = "paper"
	return r
}

// records performs runs.
func records(t *testing.T, runs ...experiments.Run) []*experiments.Record {
	t.Helper()
	f, err := openRuns(runs, 0)
	if err != nil {
		t.Fatal(err)
	}
	done, err := f["perform"].(func() ([]*experiments.Record, error))()
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// A report of records is that of a comparison.
func TestCompareRecords(t *testing.T) {
	var contenders []experiments.Contender
	for _, name := range []string{"whittle", "greedy"} {
		played := records(t, run(name, 200, 4), run(name, 200, 5))
		contenders = append(contenders, experiments.Contender{Name: name + " here", Records: played})
	}
	c, err := compare(contenders, env.LevelModel, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	r := c["report"].(result.Report).Results
	if len(r) != 2 || r[0].Reward != contenders[0].Records[0].Learned.Reward ||
		!strings.Contains(c["table"].(string), "greedy here") {
		t.Errorf("%+v", c)
	}
}

// The index at an age is what follows from the harvest curve of the world in the formula of
// docs/model.md:
//
//	γ(s) = (1 − φ)/C · [(s + 1 + m) F(s) − (s + m) F(s + 1)],   F(s) = (1 − φ) Σₖ φᵏ H(s + k)
//
// from the age on at which H is concave, and none where that is below 0.
func TestIndexAtAge(t *testing.T) {
	names := []string{"paper", "mixed:9:2:mixture"}
	for _, family := range env.Families() {
		names = append(names, family+":9:2")
	}
	for _, law := range append(env.Laws(), "window", "batches", "mixture") {
		names = append(names, "lognormal:9:2:"+string(law))
	}
	for _, name := range names {
		for _, kind := range []string{"poisson", "mean"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				in, err := env.Named(name, 0)
				if err != nil {
					t.Fatal(err)
				}
				const ages = 60
				n := make(Numbers, ages*len(in.Sources))
				for k := range n {
					n[k] = float64(k / len(in.Sources))
				}
				r := run("whittle", 1, 1)
				r.Instance.Name, r.World.Kind = name, kind
				if err := curve("index_at_age", len(in.Sources), r, n); err != nil {
					t.Fatal(err)
				}
				if kind == "mean" {
					in = in.MeanDynamics()
				}
				for k, got := range n {
					s, age := in.Sources[k%len(in.Sources)], float64(k/len(in.Sources))
					if age < s.Bend() {
						continue
					}
					m := s.Fails / (1 - s.Fails)
					f := func(age float64) (sum float64) {
						for k, chance := 0., 1-s.Fails; chance > 1e-18; k, chance = k+1, chance*s.Fails {
							sum += chance * s.Harvest(age+k)
						}
						return sum
					}
					want := (1 - s.Fails) / s.Cost * ((age+1+m)*f(age) - (age+m)*f(age+1))
					close := 1e-9 * (age + 1) * math.Abs(s.Harvest(age+1)) / s.Cost
					if want < -close {
						want = math.Inf(-1)
					}
					if !(math.Abs(got-want) <= close) && got != want {
						t.Errorf("source %s at age %v has index %v; want %v", s.Name, age, got, want)
					}
				}
			})
		}
	}
}

func TestRunsStop(t *testing.T) {
	f, err := openRuns([]experiments.Run{run("whittle", 1<<30, 1)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, f["close"].(context.CancelFunc))
	if _, err = f["perform"].(func() ([]*experiments.Record, error))(); !errors.Is(err, context.Canceled) {
		t.Errorf("runs that were stopped: %v", err)
	}
	_, err = openRuns([]experiments.Run{run("whittle", 1<<30, 1), run("nobody", 1, 1)}, 0)
	if err == nil || !strings.Contains(err.Error(), `unknown policy "nobody"`) {
		t.Errorf("runs of which one has no policy: %v", err)
	}
}

// Handles are never used twice, what is closed is gone, and arguments are what the
// function takes.
func TestCall(t *testing.T) {
	const built = `[{"steps": 1, "instance": {"name": "paper"}, "learner": {"algorithm": "whittle"}}]`
	call := func(handle int64, name, arguments string) (string, error) {
		answer, err := Call(handle, name, []byte(arguments), nil)
		return string(answer), err
	}
	handle := func() int64 {
		t.Helper()
		answer, err := call(0, "crawler", built)
		n, wrong := strconv.ParseInt(answer, 10, 64)
		if err != nil || wrong != nil || n == 0 {
			t.Fatal(answer, err)
		}
		return n
	}
	a, b := handle(), handle()
	if answer, err := call(a, "select", "[null]"); err != nil || answer != "[0]" {
		t.Error(answer, err)
	}
	for _, tt := range []struct{ arguments, want string }{
		{`[{"moon": 1}]`, `unknown field "moon"`},
		{`["x"]`, "cannot unmarshal"},
		{`[{}]`, "steps is 0"},
	} {
		if _, err := call(0, "crawler", tt.arguments); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.arguments, err, tt.want)
		}
	}
	if _, err := call(a, "dance", "[]"); err == nil || !strings.Contains(err.Error(), `unknown call "dance"`) {
		t.Errorf("an unknown call: %v", err)
	}
	if _, err := call(a, "close", "[]"); err != nil {
		t.Error(err)
	}
	for _, gone := range []int64{a, -1, b + 1} {
		for _, name := range []string{"describe", "close"} {
			if _, err := call(gone, name, "[]"); err == nil || !strings.Contains(err.Error(), "is closed") {
				t.Errorf("%s of handle %d: %v", name, gone, err)
			}
		}
	}
	// The handle of an environment that a signal's handler closed in the midst of a step.
	if _, err := get(0); err == nil {
		t.Error("worlds have handle 0")
	}
	if c := handle(); c == a || c == b {
		t.Errorf("handle %d is used twice", c)
	}
}
