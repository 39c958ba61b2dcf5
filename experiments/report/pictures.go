package report

import (
	"math"
	"slices"

	"ephemera/experiments/plot"
	"ephemera/experiments/stats"
	"ephemera/experiments/sweep"
)

// Pictures draws the figures that the sweep has, by name.
func (r *Report) Pictures() (map[string]*plot.Picture, error) {
	out := map[string]*plot.Picture{}
	add := func(name string, p *plot.Picture, err error) error {
		if err == nil {
			out[name] = p
		}
		return err
	}
	s, notes := r.Summary, r.notes()
	for j, f := range s.Curves {
		var lines []plot.Line
		for _, c := range r.Curves {
			if !slices.Contains(r.Drawn, c.Cell) {
				continue
			}
			l := plot.Line{Name: c.Cell}
			for _, n := range c.Epochs {
				l.X = append(l.X, float64(n))
			}
			l.Y, l.Lo, l.Hi = split(c.Bands[j])
			lines = append(lines, l)
		}
		if !drawable(lines) {
			continue
		}
		p, err := plot.Lines(plot.Axes{Title: r.titled(notes.Drawn), X: "epoch", Y: label(f), LogX: true}, lines)
		if err := add("curves-"+f.Name, p, err); err != nil {
			return nil, err
		}
	}
	for _, f := range s.Show {
		if len(r.Paths) == 0 {
			break
		}
		j := s.Column(f)
		var lines []plot.Line
		log := true
		for _, p := range r.Paths {
			l := plot.Line{Name: p.Name, X: p.X}
			var e []stats.Estimate
			for _, i := range p.Cells {
				e = append(e, s.Cells[i].Mean[j])
			}
			l.Y, l.Lo, l.Hi = split(e)
			lines = append(lines, l)
			log = log && spread(p.X)
		}
		if !drawable(lines) {
			continue
		}
		p, err := plot.Lines(plot.Axes{Title: r.titled(notes.Paths), X: r.Axis, Y: label(s.Figures[j]), LogX: log}, lines)
		if err := add("along-"+f, p, err); err != nil {
			return nil, err
		}
	}
	if s.Profile != nil {
		var lines []plot.Line
		for _, l := range s.Profile.Lines {
			x := plot.Line{Name: l.Name, X: s.Profile.Scores}
			x.Y, x.Lo, x.Hi = split(l.Share)
			lines = append(lines, x)
		}
		f := s.Figures[s.Column(s.Metric)]
		p, err := plot.Lines(plot.Axes{Title: r.titled(notes.Profile), X: label(f) + ", τ", Y: "share of runs above τ"}, lines)
		if err := add("profile", p, err); err != nil {
			return nil, err
		}
	}
	m := s.Column(s.Metric)
	for k, h := range r.Heat {
		g := plot.Grid{XNames: h.XNames, YNames: h.YNames}
		for _, line := range h.Cells {
			v := make([]float64, len(line))
			for x, i := range line {
				v[x] = math.NaN()
				if i >= 0 {
					v[x] = s.Cells[i].Mean[m].Value
				}
			}
			g.Values = append(g.Values, v)
		}
		if lo, _ := g.Range(); math.IsInf(lo, 0) {
			continue
		}
		title := label(s.Figures[m])
		if h.Title != "" {
			title += " (" + h.Title + ")"
		}
		p, err := plot.Heat(plot.Axes{Title: title, X: h.X, Y: h.Y}, g)
		name := "heat"
		if len(r.Heat) > 1 {
			name += "-" + string(rune('1'+k))
		}
		if err := add(name, p, err); err != nil {
			return nil, err
		}
	}
	for _, what := range []string{"threshold", "index"} {
		groups := r.pairs(what)
		if !drawable(groups) {
			continue
		}
		p, err := plot.Scatter(plot.Axes{Title: r.titled(notes.Drawn), X: "exact " + what + ", interest", Y: "learned " + what + ", interest"}, groups)
		if err != nil {
			continue // one point only, or all points the same
		}
		out[what] = p
	}
	return out, nil
}

// pairs returns learned over exact quantities, a group per cell.
func (r *Report) pairs(what string) []plot.Line {
	var groups []plot.Line
	for _, l := range r.Learned {
		if l.What != what || !slices.Contains(r.Drawn, l.Cell) {
			continue
		}
		if n := len(groups); n == 0 || groups[n-1].Name != l.Cell {
			groups = append(groups, plot.Line{Name: l.Cell})
		}
		g := &groups[len(groups)-1]
		g.X, g.Y = append(g.X, l.Exact), append(g.Y, l.Learned.Value)
	}
	return groups
}

// spread reports whether values are better drawn by their logarithms: all above
// 0, and the last more than twenty times the first.
func spread(x []float64) bool { return x[0] > 0 && x[len(x)-1] > 20*x[0] }

func drawable(lines []plot.Line) bool {
	for _, l := range lines {
		for i := range l.Y {
			if !math.IsNaN(l.Y[i]) && !math.IsInf(l.Y[i], 0) {
				return true
			}
		}
	}
	return false
}

func split(e []stats.Estimate) (y, lo, hi []float64) {
	for _, v := range e {
		y, lo, hi = append(y, v.Value), append(lo, v.Lo), append(hi, v.Hi)
	}
	return y, lo, hi
}

func label(f sweep.Figure) string {
	if f.Unit == "" {
		return f.Name
	}
	return f.Name + ", " + f.Unit
}
