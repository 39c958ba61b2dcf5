package papers

import (
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/plot"
)

// drawn is how many epochs of the state evolution are drawn.
const drawn = 40

// Pictures draws the figures 1 to 4 of TCNS: the content value
// over time, and the state evolution for M = 1, M = 2 and M = 2 in the
// stochastic model with Poisson arrivals. Equal seeds give equal bytes; only
// the last depends on the seed. There the index is that of the slides, with
// which the stochastic figures of TCNS agree.
func Pictures(seed uint64) ([]plot.Figure, error) {
	one, two := env.Paper(1), env.Paper(2)
	all := []plot.Figure{contentValue(one.Sources)}
	for _, x := range []struct {
		name, title string
		scene       experiments.Scene
		agent       env.Agent
	}{
		{"tcns-figure-2", "State evolution, M = 1",
			experiments.MeanScene(one), env.NewAgent(baselines.NewWhittle(one))},
		{"tcns-figure-3", "State evolution, M = 2",
			experiments.MeanScene(two), env.NewAgent(baselines.NewWhittle(two))},
		{"tcns-figure-4", "State evolution, M = 2, stochastic",
			experiments.PoissonScene(two, env.MarksConstant), byForm(two, forms["slides"])},
	} {
		w, err := x.scene.Open(seed, env.LevelObserved, false)
		if err != nil {
			return nil, err
		}
		f := plot.New(x.name, x.title, "epoch", "interest that waits")
		addStates := func(int, float64, []env.Crawled) error { // before each decision
			v := w.View()
			for i, state := range v.State {
				f.Of("source "+one.Sources[i].Name).Add(float64(v.Epoch), state)
			}
			return nil
		}
		_ = addStates(0, 0, nil)
		if _, err := experiments.Loop(w, x.agent, drawn, addStates); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// contentValue draws the interest of an item of each source after it is
// published.
func contentValue(sources []env.Source) plot.Figure {
	f := plot.New("tcns-figure-1", "Content value as a function of time",
		"time since publication, epochs", "interest of an item")
	for _, s := range sources {
		line := f.Of("source " + s.Name)
		for k := range 101 {
			t := float64(k) / 20
			line.Add(t, s.Interest*math.Exp(-s.Decay*t))
		}
	}
	return f
}
