package envtest

import (
	"io"
	"testing"

	"ephemera/env"
)

// Alone skips a long test of one goroutine under -short, with which the race
// detector runs: it has nothing to find there.
func Alone(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long, and on one goroutine")
	}
}

// Play runs an agent, to the end of the world where epochs is 0, and returns
// what it earns in each epoch.
func Play(t testing.TB, w env.World, a env.Agent, epochs int) (rewards []float64) {
	t.Helper()
	var crawl []int
	for n := 0; epochs == 0 || n < epochs; n++ {
		crawl = a.Select(crawl[:0], w.View())
		got, err := w.Step(crawl)
		if err == io.EOF && epochs == 0 {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var reward float64
		for _, c := range got {
			reward += c.Interest
		}
		rewards = append(rewards, reward)
		a.Update(got, w.View())
	}
	return rewards
}

// Poisson is a world of single items that shows what the agent may know.
func Poisson(t testing.TB, in env.Instance, seed uint64, o env.PoissonOptions, a env.Agent) env.World {
	t.Helper()
	o.Items, o.State = a.Level() == env.LevelOnline, a.Level() == env.LevelObserved
	w, err := env.NewPoisson(in, seed, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
