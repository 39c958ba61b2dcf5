package report

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ephemera/experiments/plot"
	"ephemera/experiments/result"
)

// Beside sets what bench kept in several directories beside each other: the
// reward of each policy as a multiple of that of one of them, the reference. A
// policy that is not in all of them is left out. The directories give the names
// of the worlds.
func Beside(dirs []string, reference string) (*Page, error) {
	type multiple struct{ value, lo, hi float64 }
	of := map[string][]multiple{} // of each policy, a world each
	var names []string
	for k, dir := range dirs {
		r, err := within(dir, func(root *os.Root) (*result.Report, error) { return read(root.FS(), resultFile, parseResult) })
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(r.Results, func(row result.Row) bool { return row.Policy == reference && row.Reward > 0 })
		if at < 0 {
			return nil, fmt.Errorf("%s: %s, with which the others are compared, earned nothing or is not among the policies %q", dir, reference, policies(r))
		}
		for _, row := range r.Results {
			if k == 0 {
				names = append(names, row.Policy)
			}
			if base := r.Results[at].Reward; len(of[row.Policy]) == k { // it is in all before
				of[row.Policy] = append(of[row.Policy], multiple{row.Reward / base, or(row.Lo) / base, or(row.Hi) / base})
			}
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return len(of[n]) < len(dirs) })
	mean := func(name string) (sum float64) {
		for _, m := range of[name] {
			sum += math.Log(m.value)
		}
		return sum
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(mean(b), mean(a)) })
	f := Dots(plot.New("beside", "Interest earned", "times that of "+reference, ""), names, nil)
	table := &result.Table{Header: []string{"policy"}}
	for k, dir := range dirs {
		world := filepath.Base(filepath.Clean(dir))
		table.Header = append(table.Header, world)
		s := plot.Series{Name: world, Kind: plot.Across, Style: k}
		below := .5 * (float64(k) - float64(len(dirs)-1)/2) / float64(len(dirs)) // the world before
		for j, name := range names {
			m := of[name][k]
			s.AddWithin(m.value, float64(len(names)-1-j)-below, m.lo, m.hi)
		}
		f.Series = append(f.Series, s)
	}
	f.Series = append(f.Series, plot.Guide("", 1, f.Y.Lo, 1, f.Y.Hi))
	for _, name := range names {
		row := []string{name}
		for _, m := range of[name] {
			row = append(row, result.Figure(m.value))
		}
		table.Add(row...)
	}
	var text strings.Builder
	err := table.Write(&text, result.Text)
	return &Page{
		Title:    "Policies in several worlds",
		Notes:    []string{fmt.Sprintf("Reward as a multiple of what %s earns in the same world. Bars are the 95 %% intervals of the rewards.", reference)},
		Sections: []Section{{Title: "Rewards", Figures: []plot.Figure{f}, Table: table}},
		Text:     text.String(),
		Names:    []string{"beside"},
	}, err
}
