package baselines

import (
	"pgregory.net/rapid"

	"ephemera/env"
)

// must returns what a constructor made.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// but returns settings with some of them changed.
func but[S any](s S, change func(s *S)) S {
	change(&s)
	return s
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
		got := must(w.Step(crawl))
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
	w := must(env.NewMean(in, overrun))
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
