package native

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ephemera/env"
	"ephemera/experiments"
)

// A run that is played from outside has the record of the same policy in the loop of Go:
// with its curve, its shares of Whittle, and a second part in the world that this one
// becomes.
func TestRecord(t *testing.T) {
	for _, name := range []string{"paper", "drift:5:2", "lognormal:5:*"} {
		t.Run(name, func(t *testing.T) {
			const seed, steps, evaluation = 4, 5500, 700
			s := settings(1, name, 1, experiments.World{Kind: "poisson"}, env.LevelModel)
			s.Account, s.Limit, s.Steps, s.Evaluation = true, steps, steps, evaluation
			w, _ := opened(t, s)
			f := bound(w)
			for _, second := range []bool{false, true} {
				if w.measure(second); second && !w.again() {
					t.Fatal("an evaluation of another length is no second part")
				}
				begin(t, w, seed)
				epochs := 0
				for scores := make([]float64, w.n); f.over[0] == 0; epochs++ {
					for i := range scores {
						scores[i] = float64(w.does.age(0, i))
					}
					if err := act(w, scores64, scores...); err != nil {
						t.Fatal(err)
					}
				}
				if want := map[bool]int{false: steps, true: evaluation}[second]; epochs != want || w.limit() != want {
					t.Fatalf("the part has %d epochs; want %d", epochs, want)
				}
			}
			got, err := w.record("mine")
			if err != nil {
				t.Fatal(err)
			}
			own := s.Run
			own.Seed, own.Learner = seed, map[string]any{"algorithm": "round-robin"}
			want := records(t, own)[0]
			if got.Run.Algorithm() != "mine" || got.Run.Seed != seed || got.Instance != want.Instance {
				t.Errorf("a record of %s on %s, seed %d", got.Run.Algorithm(), got.Instance, got.Run.Seed)
			}
			if !reflect.DeepEqual(got.Changes, want.Changes) || (len(got.Changes) > 0) != (name == "drift:5:2") {
				t.Errorf("changes %v; want %v", got.Changes, want.Changes)
			}
			for _, tt := range []struct {
				part      string
				got, want experiments.Figures
			}{{"learning", got.Learning, want.Learning}, {"learned", got.Learned, want.Learned}} {
				g, w := tt.got, tt.want
				if g.Outcome != w.Outcome || g.Whittle != w.Whittle || g.OfWhittle.Value() != w.OfWhittle.Value() ||
					!(g.OfWhittle.Value() > .1) {
					t.Errorf("%s: %+v; want %+v", tt.part, g, w)
				}
			}
			if !reflect.DeepEqual(got.Curve, want.Curve) || math.IsNaN(got.Recovery()) != math.IsNaN(want.Recovery()) {
				t.Errorf("curve %+v\nwant %+v", got.Curve, want.Curve)
			}
		})
	}
}

// The rewards of an episode add up to what its record says, with what nobody found under delay.
func TestRewardsUnderDelay(t *testing.T) {
	const steps = 300
	s := settings(1, "paper", 1, experiments.World{Kind: "poisson"}, env.LevelModel)
	s.Instance.Objective = "delay"
	s.Account, s.Limit, s.Steps = true, steps, steps
	w, _ := opened(t, s)
	f := bound(w)
	begin(t, w, 1)
	var sum, last float64
	for f.over[0] == 0 {
		if err := act(w, scores64, 1, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		last = f.reward[0]
		sum += last
	}
	got, err := w.record("mine")
	if err != nil {
		t.Fatal(err)
	}
	want := got.Learning.Reward * steps
	if !(math.Abs(sum/want-1) < 1e-9) || last > .9*want {
		t.Errorf("rewards add up to %v, the last is %v; want %v, most of it in the end", sum, last, want)
	}
}

// TestUnitUnderDelay: a source that the budget never reaches costs without end, and is no part of the
// unit: rewards would all be 0.
func TestUnitUnderDelay(t *testing.T) {
	s := settings(1, "mixed:8:1", 1, experiments.World{Kind: "poisson"}, env.LevelModel)
	s.Instance.Objective, s.Scaled = "delay", true
	w, about := opened(t, s)
	if slices.Max(about.Costs) <= about.Budget {
		t.Fatalf("all can be afforded: %v", about.Costs)
	}
	f := bound(w)
	begin(t, w, 1)
	if u := f.unit[0]; !(u > 0) || math.IsInf(u, 1) {
		t.Errorf("the unit is %v; want a number above 0", u)
	}
	run := s.Run
	run.World = experiments.World{Kind: "mean"}
	if _, err := relax(run); err == nil || !strings.Contains(err.Error(), "costs without end") {
		t.Errorf("the relaxed optimum has the error %v; want one that says what costs without end", err)
	}
}
