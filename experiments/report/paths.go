package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// By groups cells by what of says of them, in the order in which the groups come
// up; those of which it says false are in none.
func (s *sweepPage) By(of func(cell int) (group string, ok bool)) (groups []string, cells [][]int) {
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

// Path is the cells that agree in all settings but one, in the order of that
// one.
type Path struct {
	Name  string    // the other settings; "" if there are none
	X     []float64 // values of the one
	Cells []int     // positions in the cells of the summary
}

// Paths returns the numeric axis with the most values, "" if there is none with
// three or more, and the cells along it.
func (s *sweepPage) Paths() (axis string, paths []Path) {
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
				rest = append(rest, fmt.Sprintf("%s %v", a[strings.LastIndexByte(a, '.')+1:], v))
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

func number(v any) (float64, bool) {
	if n, ok := v.(int64); ok {
		return float64(n), true
	}
	x, ok := v.(float64)
	return x, ok
}
