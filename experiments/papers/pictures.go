package papers

import (
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/experiments/plot"
)

// drawn is how many epochs of the state evolution are drawn.
const drawn = 40

// Pictures draws the figures 1 to 4 of TCNS, each as SVG and PNG: the content
// value over time, and the state evolution for M = 1, M = 2 and M = 2 in the
// stochastic model with Poisson arrivals. Equal seeds give equal bytes; only
// the last depends on the seed. There the index is that of the slides, with
// which the stochastic figures of TCNS agree.
func Pictures(seed uint64) ([]files.File, error) {
	in := env.Paper(1)
	var value []plot.Series
	for i, s := range in.Sources {
		l := plot.Series{Name: "source " + s.Name, Style: i}
		for k := range 101 {
			t := float64(k) / 20
			l.X, l.Y = append(l.X, t), append(l.Y, s.Interest*math.Exp(-s.Decay*t))
		}
		value = append(value, l)
	}
	all := []plot.Figure{{Title: "Content value as a function of time", X: plot.Axis{Label: "time since publication, epochs"}, Y: plot.Axis{Label: "interest of an item"}, Series: value}}
	for _, budget := range []float64{1, 2} {
		in := env.Paper(budget)
		w, err := env.NewMean(in, false)
		if err != nil {
			return nil, err
		}
		p, err := evolution(fmt.Sprintf("State evolution, M = %v", budget), w, env.NewAgent(baselines.NewWhittle(in)))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	in = env.Paper(2)
	w, err := env.NewPoisson(in, seed, env.PoissonOptions{Marks: env.MarksConstant, State: true})
	if err != nil {
		return nil, err
	}
	last, err := evolution("State evolution, M = 2, stochastic", w, newByForm(in, form{true, math.Ceil, zero, false}))
	if err != nil {
		return nil, err
	}
	all = append(all, last)

	var drawings []files.File
	for i, p := range all {
		svg, err := p.SVG(plot.Light)
		if err != nil {
			return nil, err
		}
		png, err := p.PNG(plot.Light)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("tcns-figure-%d", i+1)
		drawings = append(drawings, files.File{Name: name + ".svg", Data: svg}, files.File{Name: name + ".png", Data: png})
	}
	return drawings, nil
}

// evolution draws the state of every source before each decision.
func evolution(title string, w env.World, a env.Agent) (plot.Figure, error) {
	lines := make([]plot.Series, len(w.Terms().Names))
	for i, n := range w.Terms().Names {
		lines[i].Name, lines[i].Style = "source "+n, i
	}
	look := func() {
		v := w.View()
		for i, x := range v.State {
			lines[i].X, lines[i].Y = append(lines[i].X, float64(v.Epoch)), append(lines[i].Y, x)
		}
	}
	look()
	_, err := experiments.Run(w, a, drawn, func(int, float64, []env.Crawled) error { look(); return nil })
	return plot.Figure{Title: title, X: plot.Axis{Label: "epoch"}, Y: plot.Axis{Label: "interest that waits"}, Series: lines}, err
}
