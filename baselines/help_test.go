package baselines

import (
	"math"

	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/experiments"
)

// near fails unless got is within tol of want, relative to the greater of the
// two and 1e-300.
func near(t rapid.TB, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Max(math.Max(math.Abs(got), math.Abs(want)), 1e-300)) {
		t.Errorf("%s is %.15g, want %.15g within %g", what, got, want, tol)
	}
}

// drawInstance draws an instance of least to most sources. Costs differ with
// costs, and some sources have a window with windows.
func drawInstance(t *rapid.T, least, most int, costs, windows bool) env.Instance {
	n := rapid.IntRange(least, most).Draw(t, "sources")
	in := env.Instance{ID: "drawn"}
	cheapest := math.Inf(1)
	for range n {
		s := env.NewSource("", rapid.Float64Range(0.1, 300).Draw(t, "rate"),
			rapid.Float64Range(0.1, 2).Draw(t, "decay"), rapid.Float64Range(0.05, 2).Draw(t, "interest"))
		if costs {
			s.Cost = rapid.SampledFrom([]float64{0.5, 1, 1.3, 2}).Draw(t, "cost")
		}
		if windows && rapid.Bool().Draw(t, "windowed") {
			s.Window = rapid.Float64Range(0.5, 9).Draw(t, "window")
		}
		cheapest = math.Min(cheapest, s.Cost)
		in.Sources = append(in.Sources, s)
	}
	in.Budget = rapid.Float64Range(cheapest, in.TotalCost()).Draw(t, "budget")
	if !costs {
		in.Budget = float64(rapid.IntRange(1, n).Draw(t, "crawls"))
	}
	return in
}

// run plays a policy in the mean dynamics.
func run[O env.Knowledge](t rapid.TB, in env.Instance, p env.Policy[O], epochs int) experiments.Outcome {
	t.Helper()
	w, err := env.NewMean(in, false)
	if err != nil {
		t.Fatal(err)
	}
	out, err := experiments.Run(w, env.NewAgent(p), epochs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// longRun plays a policy in the mean dynamics and returns what it earns per
// epoch over the epochs after the first burn.
func longRun[O env.Knowledge](t rapid.TB, in env.Instance, p env.Policy[O], burn, epochs int) float64 {
	t.Helper()
	w, err := env.NewMean(in, false)
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	_, err = experiments.Run(w, env.NewAgent(p), burn+epochs, func(epoch int, reward float64, _ []env.Crawled) {
		if epoch >= burn {
			sum += reward
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum / float64(epochs)
}
