package papers

import (
	"fmt"
	"math"
	"path/filepath"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/experiments/plot"
)

// drawn is how many epochs of the state evolution are drawn.
const drawn = 40

// Pictures draws the figures 1 to 4 of TCNS into a directory: the content value
// over time, and the state evolution for M = 1, M = 2 and M = 2 in the
// stochastic model with Poisson arrivals. Equal seeds give equal bytes; only
// the last depends on the seed. There the index is that of the slides, with
// which the stochastic figures of TCNS agree.
func Pictures(dir string, seed uint64) error {
	one, two := env.Paper(1), env.Paper(2)
	all := []plot.Figure{contentValue(one.Sources)}
	for _, x := range []struct {
		title string
		scene experiments.Scene
		agent env.Agent
	}{
		{"State evolution, M = 1", experiments.MeanScene(one), env.NewAgent(baselines.NewWhittle(one))},
		{"State evolution, M = 2", experiments.MeanScene(two), env.NewAgent(baselines.NewWhittle(two))},
		{"State evolution, M = 2, stochastic", experiments.PoissonScene(two, env.MarksConstant), byForm(two, forms["slides"])},
	} {
		f := plot.New("", x.title, "epoch", "interest that waits")
		var err error
		if f.Series, err = evolution(x.scene, seed, x.agent); err != nil {
			return err
		}
		all = append(all, f)
	}
	for k, f := range all {
		svg, err := f.SVG()
		if err == nil {
			err = files.Put(filepath.Join(dir, fmt.Sprintf("tcns-figure-%d.svg", k+1)), svg)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// contentValue draws the interest of an item of each source after it is
// published.
func contentValue(sources []env.Source) plot.Figure {
	f := plot.New("", "Content value as a function of time", "time since publication, epochs", "interest of an item")
	for i, s := range sources {
		l := plot.Series{Name: "source " + s.Name, Style: i}
		for k := range 101 {
			t := float64(k) / 20
			l.X, l.Y = append(l.X, t), append(l.Y, s.Interest*math.Exp(-s.Decay*t))
		}
		f.Series = append(f.Series, l)
	}
	return f
}

// evolution returns the state of every source before each decision.
func evolution(s experiments.Scene, seed uint64, a env.Agent) ([]plot.Series, error) {
	w, err := s.Open(seed, env.LevelObserved, false)
	if err != nil {
		return nil, err
	}
	var lines []plot.Series
	for i, x := range s.Instance.Sources {
		lines = append(lines, plot.Series{Name: "source " + x.Name, Style: i})
	}
	addStates := func(int, float64, []env.Crawled) error {
		v := w.View()
		for i, x := range v.State {
			lines[i].X, lines[i].Y = append(lines[i].X, float64(v.Epoch)), append(lines[i].Y, x)
		}
		return nil
	}
	_ = addStates(0, 0, nil)
	_, err = experiments.Loop(w, a, drawn, addStates)
	return lines, err
}
