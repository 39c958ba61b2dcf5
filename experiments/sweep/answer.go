package sweep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"ephemera/experiments/stats"
)

// answer is one sentence: the best cell, how it differs from the reference, and
// where along the numeric axis lines peak or cross. It is "" where nothing tells
// cells apart.
func (s *Summary) answer() string {
	m := s.Column(s.Metric)
	metric := func(i int) stats.Estimate { return s.Cells[i].Mean[m] }
	ranked := slices.DeleteFunc(s.Ranking(), func(i int) bool { return math.IsNaN(metric(i).Value) })
	if len(ranked) < 2 || metric(ranked[0]).Value == metric(ranked[len(ranked)-1]).Value {
		return ""
	}
	best := s.Cells[ranked[0]]
	text := fmt.Sprintf("Best by %s is %s with %s", s.Metric, best.ID, metric(ranked[0]))
	if u := s.Figures[m].Unit; u != "" {
		text += " " + u
	}
	if best.Diff != nil {
		text += fmt.Sprintf(", a difference of %s to %s", *best.Diff, s.Reference)
	} else {
		text += ", the reference"
	}
	axis, paths := s.Paths()
	if len(paths) > 3 {
		return text + "." // too many for a sentence
	}
	sign := 1.0
	if s.Figures[m].Less {
		sign = -1
	}
	_, key := split(axis)
	for _, p := range paths {
		if i := peak(p, sign, metric); i >= 0 {
			text += fmt.Sprintf("; %s peaks at %s %s", p.name(s), key, FormatValue(p.X[i]))
		}
	}
	for i, p := range paths {
		for _, q := range paths[:i] {
			for _, x := range crossings(q, p, metric) {
				text += fmt.Sprintf("; %s and %s cross between %s %s and %s", q.name(s), p.name(s), key, FormatValue(x[0]), FormatValue(x[1]))
			}
		}
	}
	return text + "."
}

// peak returns the best point of a path if it lies inside and its interval is
// apart from those of both ends, else −1.
func peak(p Path, sign float64, metric func(int) stats.Estimate) int {
	best := -1
	for k, i := range p.Cells {
		if v := sign * metric(i).Value; !math.IsNaN(v) && (best < 0 || v > sign*metric(p.Cells[best]).Value) {
			best = k
		}
	}
	last := len(p.Cells) - 1
	if best <= 0 || best == last || !apart(metric(p.Cells[best]), metric(p.Cells[0])) || !apart(metric(p.Cells[best]), metric(p.Cells[last])) {
		return -1
	}
	return best
}

// crossings returns between which values of the axis two paths change places:
// their intervals are apart there, on either side the other one above.
func crossings(p, q Path, metric func(int) stats.Estimate) [][2]float64 {
	var out [][2]float64
	above, at := 0.0, math.NaN() // where they were last apart
	for k, x := range p.X {
		j := slices.Index(q.X, x)
		if j < 0 {
			continue
		}
		a, b := metric(p.Cells[k]), metric(q.Cells[j])
		if !apart(a, b) {
			continue
		}
		side := math.Copysign(1, a.Value-b.Value)
		if above*side < 0 {
			out = append(out, [2]float64{at, x})
		}
		above, at = side, x
	}
	return out
}

// apart reports whether two intervals have nothing in common; what has none is
// not told apart.
func apart(a, b stats.Estimate) bool { return a.Hi < b.Lo || b.Hi < a.Lo }

// Path is the cells that agree in all settings but one, in the order of that
// one.
type Path struct {
	Name  string    // the other settings; "" if there are none
	X     []float64 // values of the one
	Cells []int     // positions in Summary.Cells
}

func (p Path) name(s *Summary) string {
	if p.Name == "" {
		return s.Metric
	}
	return p.Name
}

// Paths returns the numeric axis with the most values, "" if there is none with
// three or more, and the cells along it.
func (s *Summary) Paths() (axis string, paths []Path) {
	most := 2
	for _, a := range s.Axes {
		seen := map[float64]bool{}
		for _, c := range s.Cells {
			if x, ok := number(c.Settings[a]); ok {
				seen[x] = true
			}
		}
		if len(seen) > most {
			axis, most = a, len(seen)
		}
	}
	names, groups := s.By(func(i int) (string, bool) {
		c := &s.Cells[i]
		_, ok := number(c.Settings[axis])
		var rest []string
		for _, a := range s.Axes {
			if v, has := c.Settings[a]; has && a != axis {
				_, name := split(a)
				rest = append(rest, fmt.Sprintf("%s %v", name, v))
			}
		}
		return strings.Join(rest, ", "), ok
	})
	for k, cells := range groups {
		x := func(i int) float64 { v, _ := number(s.Cells[i].Settings[axis]); return v }
		slices.SortFunc(cells, func(i, j int) int { return cmp.Compare(x(i), x(j)) })
		p := Path{Name: names[k], Cells: cells}
		for _, i := range cells {
			p.X = append(p.X, x(i))
		}
		paths = append(paths, p)
	}
	return axis, paths
}

// By groups cells by what of says of them, in the order in which the groups come
// up; those of which it says false are in none.
func (s *Summary) By(of func(cell int) (group string, ok bool)) (groups []string, cells [][]int) {
	for i := range s.Cells {
		group, ok := of(i)
		if !ok {
			continue
		}
		k := slices.Index(groups, group)
		if k < 0 {
			k = len(groups)
			groups, cells = append(groups, group), append(cells, nil)
		}
		cells[k] = append(cells[k], i)
	}
	return groups, cells
}

func number(v any) (float64, bool) {
	if n, ok := v.(int64); ok {
		return float64(n), true
	}
	x, ok := v.(float64)
	return x, ok
}
