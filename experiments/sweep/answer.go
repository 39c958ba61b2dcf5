package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ephemera/experiments/stats"
)

// answer says in a sentence or two what the sweep found: how the shown figures
// follow the one numeric axis, if there is one, and which cell is best.
func (s *Summary) answer() string {
	var parts []string
	if s.Runs == 0 {
		return "No run has finished yet."
	}
	parts = append(parts, s.trends()...)
	order := s.Ranking()
	best := s.Cells[order[0]]
	m := s.Column(s.Metric)
	if math.IsNaN(best.Mean[m].Value) {
		return strings.Join(append(parts, fmt.Sprintf("No cell has a mean %s (%s: %s).", s.Metric, best.ID, best.Mean[m].Warning)), " ")
	}
	// Cells without a run, and cells without a mean, are ranked last, which says
	// nothing against them.
	var odd []string
	none := 0
	least, most := math.Inf(1), math.Inf(-1)
	for _, c := range s.Cells {
		switch e := c.Mean[m]; {
		case e.N == 0:
			none++
		case math.IsNaN(e.Value):
			odd = append(odd, fmt.Sprintf("%s (%s)", c.ID, e.Warning))
		default:
			least, most = min(least, e.Value), max(most, e.Value)
		}
	}
	text := fmt.Sprintf("Best by %s is %s with %s%s", s.Metric, best.ID, best.Mean[m], unit(s.Figures[m]))
	switch {
	case len(s.Cells)-none-len(odd) == 1:
		text = fmt.Sprintf("%s: %s is %s%s", best.ID, s.Metric, best.Mean[m], unit(s.Figures[m]))
	case least == most:
		text = fmt.Sprintf("All cells have the same %s, %s%s", s.Metric, best.Mean[m], unit(s.Figures[m]))
	case best.Diff != nil:
		text += ", " + s.against(*best.Diff)
	default:
		text += ", the reference itself"
	}
	parts = append(parts, text+".")
	if len(odd) > 0 {
		parts = append(parts, fmt.Sprintf("Left out for want of a mean %s: %s.", s.Metric, some(odd)))
	}
	if s.Missing > 0 {
		text := fmt.Sprintf("%d of %d runs are missing", s.Missing, s.Missing+s.Runs)
		if none > 0 {
			text += fmt.Sprintf(", all of %d of %d cells", none, len(s.Cells))
		}
		parts = append(parts, text+".")
	}
	return strings.Join(parts, " ")
}

// some names the first three.
func some(names []string) string {
	if len(names) > 3 {
		names = append(slices.Clone(names[:3]), fmt.Sprintf("and %d more", len(names)-3))
	}
	return strings.Join(names, ", ")
}

// against says what the difference d between a cell and the reference, under
// the seeds that both have, tells of the two. Where runs are missing, it need
// not agree with their means.
func (s *Summary) against(d stats.Estimate) string {
	better, worse := d.Lo > 0, d.Hi < 0
	if s.Figures[s.Column(s.Metric)].Less {
		better, worse = worse, better
	}
	both := ""
	if s.Missing > 0 {
		both = fmt.Sprintf(" under the %d seeds that both have", d.N)
	}
	switch {
	case math.IsNaN(d.Value):
		return fmt.Sprintf("not to be compared with the reference %s (%s%s)", s.Reference, d.Warning, both)
	case math.IsNaN(d.Lo):
		return fmt.Sprintf("against the reference %s (difference %s%s)", s.Reference, d, both)
	case better && d.Value > 0:
		return fmt.Sprintf("better than the reference %s by %s%s", s.Reference, d, both)
	case better:
		return fmt.Sprintf("better than the reference %s (difference %s%s)", s.Reference, d, both)
	case worse:
		return fmt.Sprintf("though worse than the reference %s%s (difference %s)", s.Reference, both, d)
	}
	return fmt.Sprintf("which the seeds do not tell apart from the reference %s (difference %s%s)", s.Reference, d, both)
}

func unit(f Figure) string {
	if f.Unit == "" {
		return ""
	}
	return " " + f.Unit
}

// Path is the cells that agree in all settings but one, in the order of that
// one.
type Path struct {
	Name  string    // the other settings; "" if there are none
	X     []float64 // values of the one
	Cells []int     // positions in Summary.Cells
}

// Paths returns the numeric axis with the most values, "" if there is none with
// three or more, and the cells along it.
func (s *Summary) Paths() (axis string, paths []Path) {
	most := 2
	for _, a := range s.Axes {
		seen := map[float64]bool{}
		for i := range s.Cells {
			if x, ok := s.number(i, a); ok {
				seen[x] = true
			}
		}
		if len(seen) > most {
			axis, most = a, len(seen)
		}
	}
	if axis == "" {
		return "", nil
	}
	at := map[string]int{}
	for i := range s.Cells {
		x, ok := s.number(i, axis)
		if !ok {
			continue
		}
		var rest []string
		for _, a := range s.Axes {
			if v, ok := s.Cells[i].Settings[a]; ok && a != axis {
				rest = append(rest, fmt.Sprintf("%s %v", lastPart(a), v))
			}
		}
		name := strings.Join(rest, ", ")
		k, ok := at[name]
		if !ok {
			k = len(paths)
			at[name] = k
			paths = append(paths, Path{Name: name})
		}
		p := &paths[k]
		// Insertion keeps equal values in the order of the cells.
		j, _ := slices.BinarySearchFunc(p.X, x, func(v, x float64) int {
			if v <= x {
				return -1
			}
			return 1
		})
		p.X, p.Cells = slices.Insert(p.X, j, x), slices.Insert(p.Cells, j, i)
	}
	return axis, paths
}

// trends describes the shown figures along the one numeric axis, for each
// combination of the others; nothing where these are too many for a sentence.
func (s *Summary) trends() []string {
	axis, paths := s.Paths()
	if len(paths) > 3 {
		return nil
	}
	var out []string
	for _, p := range paths {
		if len(p.Cells) < 2 {
			continue
		}
		var says []string
		for _, f := range s.Show {
			if text := s.trend(s.Column(f), p.Cells); text != "" {
				says = append(says, text)
			}
		}
		if len(says) == 0 {
			continue
		}
		name := ""
		if p.Name != "" {
			name = " (" + p.Name + ")"
		}
		out = append(out, fmt.Sprintf("With %s from %s to %s%s, %s.", lastPart(axis), FormatValue(p.X[0]), FormatValue(p.X[len(p.X)-1]), name, strings.Join(says, "; ")))
	}
	return out
}

func (s *Summary) number(i int, axis string) (float64, bool) {
	switch v := s.Cells[i].Settings[axis].(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

// trend says how figure j goes along the cells: it names the ends, and the
// extreme between them where there is one.
func (s *Summary) trend(j int, cells []int) string {
	f := s.Figures[j]
	at := func(i int) stats.Estimate { return s.Cells[i].Mean[j] }
	first, last := at(cells[0]), at(cells[len(cells)-1])
	lo, hi := cells[0], cells[0]
	for _, i := range cells {
		if math.IsNaN(at(i).Value) {
			return ""
		}
		if at(i).Value < at(lo).Value {
			lo = i
		}
		if at(i).Value > at(hi).Value {
			hi = i
		}
	}
	name := strings.ReplaceAll(f.Name, "_", " ")
	a, b, span := first.Value, last.Value, at(hi).Value-at(lo).Value
	text := ""
	switch {
	case !(span > 1e-9*math.Abs(at(hi).Value)):
		return fmt.Sprintf("%s stays at %s%s", name, stats.Format(a), unit(f))
	case s.ordered(j, cells, 1):
		text = fmt.Sprintf("%s rises from %s to %s%s", name, stats.Format(a), stats.Format(b), unit(f))
	case s.ordered(j, cells, -1):
		text = fmt.Sprintf("%s falls from %s to %s%s", name, stats.Format(a), stats.Format(b), unit(f))
	default:
		text = fmt.Sprintf("%s begins at %s and ends at %s%s", name, stats.Format(a), stats.Format(b), unit(f))
		if math.IsNaN(first.Lo) || math.IsNaN(last.Lo) {
			text += fmt.Sprintf(" (n = %d)", min(first.N, last.N))
		} else if !apart(first, last) {
			text += ", which their intervals do not tell apart"
		}
	}
	for _, i := range []int{hi, lo} {
		beyond := math.Max(at(i).Value-math.Max(a, b), math.Min(a, b)-at(i).Value)
		if beyond > 0.1*span && apart(at(i), first) && apart(at(i), last) {
			text += fmt.Sprintf(", with %s at %s", stats.Format(at(i).Value), s.Cells[i].ID)
		}
	}
	return text
}

// ordered reports whether figure j rises, or with sign −1 falls, along the
// cells: the intervals of the ends lie apart, and none of two cells lie apart
// in the other order.
func (s *Summary) ordered(j int, cells []int, sign float64) bool {
	at := func(k int) stats.Estimate { return s.Cells[cells[k]].Mean[j] }
	if !apart(at(0), at(len(cells)-1)) || sign*(at(len(cells)-1).Value-at(0).Value) < 0 {
		return false
	}
	// The least upper end and the greatest lower end so far tell it for all.
	lo, hi := math.Inf(-1), math.Inf(1)
	for k := range cells {
		e := at(k)
		if sign > 0 && e.Hi < lo || sign < 0 && e.Lo > hi {
			return false
		}
		lo, hi = math.Max(lo, e.Lo), math.Min(hi, e.Hi)
	}
	return true
}

// apart reports whether two intervals have nothing in common; what has none is
// not told apart.
func apart(a, b stats.Estimate) bool { return a.Hi < b.Lo || b.Hi < a.Lo }
