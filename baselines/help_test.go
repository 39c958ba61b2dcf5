package baselines

import (
	"math"

	"pgregory.net/rapid"

	"ephemera/env"
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

// outcome is what a policy earned over a run, per epoch.
type outcome struct {
	reward, cost  float64
	over, overrun float64 // share of epochs over budget, mean cost above it
	crawls        []float64
}

// play runs a policy in a world and counts the epochs after the first burn.
func play[O env.Knowledge](t rapid.TB, w env.World, p env.Policy[O], burn, epochs int) outcome {
	t.Helper()
	terms, agent := w.Terms(), env.NewAgent(p)
	out := outcome{crawls: make([]float64, len(terms.Costs))}
	var crawl []int
	for n := range burn + epochs {
		crawl = agent.Select(crawl[:0], w.View())
		got, err := w.Step(crawl)
		if err != nil {
			t.Fatal(err)
		}
		agent.Update(got, w.View())
		if n < burn {
			continue
		}
		var cost float64
		for _, c := range got {
			out.reward += c.Interest
			out.crawls[c.Source]++
			cost += terms.Costs[c.Source]
		}
		out.cost += cost
		if !env.Fits(cost, terms.Budget) {
			out.over++
			out.overrun += cost - terms.Budget
		}
	}
	for _, v := range []*float64{&out.reward, &out.cost, &out.over, &out.overrun} {
		*v /= float64(epochs)
	}
	for i := range out.crawls {
		out.crawls[i] /= float64(epochs)
	}
	return out
}

// mean returns the mean dynamics of an instance.
func mean(t rapid.TB, in env.Instance, overrun bool) env.World {
	t.Helper()
	w, err := env.NewMean(in, overrun)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// run returns what a policy earns in the mean dynamics.
func run[O env.Knowledge](t rapid.TB, in env.Instance, p env.Policy[O], epochs int) float64 {
	t.Helper()
	return play(t, mean(t, in, false), p, 0, epochs).reward
}

// longRun is run without the first burn epochs.
func longRun[O env.Knowledge](t rapid.TB, in env.Instance, p env.Policy[O], burn, epochs int) float64 {
	t.Helper()
	return play(t, mean(t, in, false), p, burn, epochs).reward
}
