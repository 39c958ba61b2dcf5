package paper_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/learner/paper"
)

func runPaper(
	t testing.TB, in env.Instance, set paper.Settings, seed uint64, steps int,
) (result.Outcome, *paper.Learner) {
	t.Helper()
	p, err := paper.New(in, set, stream.New(seed, stream.Policy))
	if err != nil {
		t.Fatal(err)
	}
	w, err := env.NewMean(in, set.Act == "probabilistic")
	if err != nil {
		t.Fatal(err)
	}
	out, err := experiments.Loop(w, env.NewAgent[env.Model](p), steps, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out, p
}

// TestProjectionBinds reports how the scheme behaves at the paper's κ:
// how often a threshold is held by the projection, and how often a probability
// is not nearly 0 or 1. "The value of the thresholds could reach small or large
// values" (Allerton, section V).
func TestProjectionBinds(t *testing.T) {
	var between, binds, n float64
	in := env.Paper(1)
	for seed := uint64(1); seed <= 5; seed++ {
		p, w := newPaper(t, in, reading(t, "crawled"), seed), newMean(t, in, true)
		agent := env.NewAgent[env.Model](p)
		for range 10000 {
			x := w.View().Mean
			for i, src := range in.Sources {
				threshold := p.Threshold(i, floats.Sum(x)-x[i])
				if l := 2 * (x[i] - threshold - .5); math.Abs(l) < 4.6 { // f from .01 to .99
					between++
				}
				if threshold == src.Gain() || threshold == src.Ceiling() {
					binds++
				}
				n++
			}
			play(t, w, agent, 1)
		}
	}
	t.Logf("of all sources and epochs the projection holds %.2f %%; "+
		"%.1f %% of the probabilities lie between 0.01 and 0.99", 100*binds/n, 100*between/n)
	if binds < .5*n {
		t.Errorf("the projection holds %.2f %%; docs/paper-learner.md says nearly all", 100*binds/n)
	}
}
