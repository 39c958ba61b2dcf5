package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"

	"ephemera/experiments/plot"
	"ephemera/experiments/result"
)

// Beside sets what bench kept in several directories beside each other: the
// reward of each policy as a multiple of that of one of them, the reference. A
// policy that is not in all of them is left out. The directories give the names
// of the worlds.
func Beside(dirs []string, reference string) (*Result, error) {
	var (
		names []string // of the policies, in the order of the first directory
		of    []map[string]result.Row
		base  []float64
	)
	for _, dir := range dirs {
		r, err := within(dir, parseResult)
		if err != nil {
			return nil, err
		}
		rows := map[string]result.Row{}
		var here []string
		for _, row := range r.Results {
			rows[row.Policy] = row
			here = append(here, row.Policy)
		}
		if len(of) == 0 {
			names = here
		}
		names = slices.DeleteFunc(names, func(n string) bool { _, ok := rows[n]; return !ok })
		if b := rows[reference].Reward; !(b > 0) {
			return nil, fmt.Errorf("%s: %s, with which the others are compared, earned nothing or is not among the policies %q", dir, reference, here)
		}
		of, base = append(of, rows), append(base, rows[reference].Reward)
	}
	ratio := func(k int, name string) float64 { return of[k][name].Reward / base[k] }
	mean := func(name string) (sum float64) {
		for k := range of {
			sum += math.Log(ratio(k, name))
		}
		return sum
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(mean(b), mean(a)) })
	f := Dots(plot.New("beside", "Interest earned", "times that of "+reference, ""), names, nil)
	table := &result.Table{Header: []string{"policy"}}
	for _, name := range names {
		table.Rows = append(table.Rows, []string{name})
	}
	for k, dir := range dirs {
		world := result.Printable(filepath.Base(filepath.Clean(dir)))
		table.Header = append(table.Header, world)
		s := plot.Series{Name: world, Kind: plot.Across, Style: k}
		for j, name := range names {
			// The worlds stand a little below each other.
			at := float64(len(names)-1-j) + .5*(float64(len(dirs)-1)/2-float64(k))/float64(len(dirs))
			row, v := of[k][name], ratio(k, name)
			s.X, s.Y, s.Lo, s.Hi = append(s.X, v), append(s.Y, at), append(s.Lo, or(row.Lo)/base[k]), append(s.Hi, or(row.Hi)/base[k])
			table.Rows[j] = append(table.Rows[j], result.Figure(v))
		}
		f.Series = append(f.Series, s)
	}
	f.Series = append(f.Series, plot.Series{Style: plot.Plain, X: plot.Values{1, 1}, Y: plot.Values{f.Y.Lo, f.Y.Hi}})
	p := &Page{
		Title:    "Policies in several worlds",
		Notes:    []string{fmt.Sprintf("Reward as a multiple of what %s earns in the same world. Bars are the 95 %% intervals of the rewards.", reference)},
		Sections: []Section{{Title: "Rewards", Figures: []plot.Figure{f}, Table: table}},
	}
	return &Result{p, []string{"beside"}, func(w io.Writer) error { return table.Write(w, result.Text) }}, nil
}
