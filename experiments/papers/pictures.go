package papers

import (
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/plot"
)

// drawn is how many epochs of the state evolution are drawn.
const drawn = 40

// Picture is a file of a figure.
type Picture struct {
	Name string
	Data []byte
}

// Pictures draws the figures 1 to 4 of TCNS, each as SVG and PNG: the content
// value over time, and the state evolution for M = 1, M = 2 and M = 2 in the
// stochastic model with Poisson arrivals. Equal seeds give equal bytes; only
// the last depends on the seed. There the index is that of the slides, with
// which the stochastic figures of TCNS agree.
func Pictures(seed uint64) ([]Picture, error) {
	in := env.Paper(1)
	var value []plot.Line
	for _, s := range in.Sources {
		l := plot.Line{Name: "source " + s.Name}
		for k := range 101 {
			t := float64(k) / 20
			l.X, l.Y = append(l.X, t), append(l.Y, s.Interest*math.Exp(-s.Decay*t))
		}
		value = append(value, l)
	}
	first, err := plot.Lines(plot.Axes{Title: "Content value as a function of time", X: "time since publication, epochs", Y: "interest of an item"}, value)
	if err != nil {
		return nil, err
	}
	all := []*plot.Picture{first}
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
	last, err := evolution("State evolution, M = 2, stochastic", w, env.NewAgent[env.Observed](newByForm(in, form{true, math.Ceil, zero})))
	if err != nil {
		return nil, err
	}
	all = append(all, last)

	var files []Picture
	for i, p := range all {
		svg, err := p.SVG()
		if err != nil {
			return nil, err
		}
		png, err := p.PNG()
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("tcns-figure-%d", i+1)
		files = append(files, Picture{name + ".svg", svg}, Picture{name + ".png", png})
	}
	return files, nil
}

// evolution draws the state of every source before each decision.
func evolution(title string, w env.World, a env.Agent) (*plot.Picture, error) {
	lines := make([]plot.Line, len(w.Terms().Names))
	for i, n := range w.Terms().Names {
		lines[i].Name = "source " + n
	}
	look := func() {
		v := w.View()
		for i, x := range v.State {
			lines[i].X, lines[i].Y = append(lines[i].X, float64(v.Epoch)), append(lines[i].Y, x)
		}
	}
	look()
	if _, err := experiments.Run(w, a, drawn, func(int, float64, []env.Crawled) error { look(); return nil }); err != nil {
		return nil, err
	}
	return plot.Lines(plot.Axes{Title: title, X: "epoch", Y: "interest that waits", Room: true}, lines)
}
