package report

import (
	"fmt"
	"slices"

	"ephemera/experiments/sweep"
)

// notes say what a figure leaves out; "" where it shows all.
type notes struct {
	Drawn   string // cells of the still pictures of curves and of what was learned
	Curves  string // cells that the page can draw
	Paths   string
	Profile string
	Heat    string
}

func (r *Report) notes() notes {
	s := r.Summary
	cut := func(shown, all int, what, which string) string {
		if shown >= all {
			return ""
		}
		return fmt.Sprintf("%d of %d %s: %s", shown, all, what, which)
	}
	// The reference need not lie on a line or a map.
	those := func(holds func(cell int) bool) string {
		for i, c := range s.Cells {
			if c.ID == s.Reference && holds(i) {
				return "those with the reference and the best cells"
			}
		}
		return "those with the best cells"
	}
	onPath := func(i int) bool {
		return slices.ContainsFunc(r.Paths, func(p sweep.Path) bool { return slices.Contains(p.Cells, i) })
	}
	onMap := func(i int) bool {
		return slices.ContainsFunc(r.Heat, func(p Panel) bool {
			return slices.ContainsFunc(p.Cells, func(row []int) bool { return slices.Contains(row, i) })
		})
	}
	cells := len(s.Cells)
	n := notes{
		Drawn:  cut(len(r.Drawn), cells, "cells", "the reference and the best"),
		Curves: cut(maxCurves, cells, "cells", "the reference and the best"),
		Paths:  cut(len(r.Paths), r.paths, "lines", those(onPath)),
		Heat:   cut(len(r.Heat), r.panels, "maps", those(onMap)),
	}
	if s.Profile != nil && s.Group == "" {
		n.Profile = cut(len(s.Profile.Lines), cells, "cells", "the best")
	}
	return n
}

// titled is the name of the sweep with a note behind it.
func (r *Report) titled(note string) string {
	if note == "" {
		return r.Summary.Name
	}
	return r.Summary.Name + ", " + note
}
