package experiments

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ephemera/env"
	"ephemera/experiments/result"
)

// playWhittle plays an entry of exact Whittle in a scene.
func playWhittle(t *testing.T, name string, s Scene, epochs int) *Record {
	t.Helper()
	e, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Play(t.Context(), Play{Entry: e, Level: env.LevelModel, Seed: 3, Epochs: epochs})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Whittle that knows of a change earns after it what Whittle earns in a world that
// has always been so; one that does not know of the change earns less. So it is among few
// sources, which are all compared, and among many, which sleep.
func TestWhittleKnowsOfChanges(t *testing.T) {
	for _, n := range []int{20, 140} {
		in := env.Lognormal(n, float64(n)/20, 4)
		in.Changes = []env.Change{{At: 300, Shuffle: true}}
		last := in.Phases()[1].Instance
		for _, open := range []func(env.Instance) Scene{
			MeanScene, func(in env.Instance) Scene { return PoissonScene(in, env.MarksConstant) },
		} {
			s := open(in)
			long, short := playWhittle(t, "whittle", s, 1100), playWhittle(t, "whittle", s, 500)
			after := (1100*long.Learning.Reward - 500*short.Learning.Reward) / 600
			always := playWhittle(t, "whittle", open(last), 1100).Learning
			if d := after/always.Reward - 1; d < -.02 || d > .02 {
				t.Errorf("%d sources: after the change %v, in a world that was always so %v", n, after, always.Reward)
			}
			if long.Learned.Reward != always.Reward {
				t.Errorf("%d sources: measured afterwards %v; want %v, of the world that it became",
					n, long.Learned.Reward, always.Reward)
			}
			s.Believed = &env.Instance{ID: "before", Sources: in.Sources, Budget: in.Budget}
			unaware := playWhittle(t, "whittle-believed", s, 1100).Learning.Reward
			if unaware > .95*long.Learning.Reward {
				t.Errorf("%d sources: Whittle that does not know of the change earns %v, that does %v",
					n, unaware, long.Learning.Reward)
			}
		}
	}
}

// A run may name a law of interest, and what policies believe.
func TestRunWithLawAndBelief(t *testing.T) {
	var e Engine
	perform := func(settings map[string]any) (*Record, error) {
		r := NewRun()
		r.Steps = 500
		settings["world.kind"] = "poisson"
		for key, value := range settings {
			if err := r.Set(key, value); err != nil {
				t.Fatal(err)
			}
		}
		return performRun(&e, r)
	}
	own, err := perform(map[string]any{
		AlgorithmKey: "whittle", "instance.name": "lognormal:20", "instance.law": "power",
	})
	if err != nil || own.Instance != "lognormal/20/1/power" || own.Learned.OfWhittle.Value() != 1 {
		t.Fatalf("record %+v, error %v", own, err)
	}
	wrong, err := perform(map[string]any{
		AlgorithmKey:       "whittle-believed",
		"instance.name":    "lognormal:20",
		"instance.law":     "power",
		"instance.believe": "lognormal:20:2",
	})
	if err != nil || wrong.Learned.OfWhittle.Value() > .9 || wrong.Learned.Whittle != own.Learned.Reward {
		t.Errorf("who believes in another instance earns %+v, error %v", wrong, err)
	}
	right, err := perform(map[string]any{
		AlgorithmKey:         "whittle-believed",
		"instance.name":      "lognormal:20",
		"instance.objective": "delay",
		"instance.believe":   "lognormal:20",
	})
	if err != nil || right.Learned.OfWhittle.Value() != 1 {
		t.Errorf("who believes in the true parameters earns %+v under an objective, error %v; want as much as Whittle",
			right, err)
	}
	path := filepath.Join(t.TempDir(), "few.toml")
	const few = "budget = 1\n[[source]]\nname = 'a'\nrate = 1\ndecay = 1\ninterest = 1\n"
	if err := os.WriteFile(path, []byte(few), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		settings map[string]any
		want     string
	}{
		{map[string]any{AlgorithmKey: "whittle-believed", "instance.believe": path}, "has other sources"},
		{map[string]any{AlgorithmKey: "whittle", "instance.law": "unheard"}, "allowed are exponential"},
	} {
		if _, err := perform(tt.settings); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v; want one with %q", tt.settings, err, tt.want)
		}
	}
}

// A curve follows what comes after each change, and says when 95 % is earned again.
func TestRecovery(t *testing.T) {
	ends := curveEnds(1000, []env.Change{{At: 400}, {At: 700}, {At: 2000}})
	for _, want := range []int{1, 100, 400, 410, 418, 500, 700, 710, 800, 1000} {
		if !slices.Contains(ends, want) {
			t.Errorf("points end at %v; want one at %d", ends, want)
		}
	}
	r := &Record{Changes: []int{400, 700}}
	r.Learning.Epochs = 1000
	if got := r.Recovery(); got != 300 { // never
		t.Errorf("recovery is %v; want 300", got)
	}
	r.Curve = []CurvePoint{
		{Epoch: 400, OfWhittle: result.RatioOf(.99)}, {Epoch: 410, OfWhittle: result.RatioOf(.5)},
		{Epoch: 450, OfWhittle: result.RatioOf(.96)}, {Epoch: 500, OfWhittle: result.RatioOf(.94)},
		{Epoch: 700, OfWhittle: result.RatioOf(1)}, {Epoch: 710, OfWhittle: result.RatioOf(.96)},
	}
	if got := r.Recovery(); got != 30 {
		t.Errorf("recovery is %v; want (50 + 10)/2", got)
	}
	if v := (&Record{}).Recovery(); !math.IsNaN(v) {
		t.Errorf("a world without changes is recovered from after %v", v)
	}
}
