package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"ephemera/experiments"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/experiments/sweep"
)

// sweepPage is a sweep, and how its page draws the cells.
type sweepPage struct {
	*sweep.Summary
	groups []group        // one per cell
	of     map[string]int // position of each cell's group, by ID
}

// readSweep makes the page of a sweep.
func readSweep(dir, at string) (*Page, error) {
	s, err := sweep.ReadSummary(dir)
	if err != nil {
		return nil, err
	}
	r := &sweepPage{Summary: s, of: map[string]int{}}
	cells := Section{Title: "Cells", Table: s.Table(), Draws: true}
	for i, cell := range s.Cells {
		name := cmp.Or(cell.Label, cell.ID)
		if cell.Over {
			name += overBudget
		}
		if cell.ID == s.Reference {
			cells.Reference = name
		}
		cells.Table.Rows[i][0] = name
		g := group{name: name, style: i}
		for _, seed := range s.Seeds {
			rec, err := experiments.ReadRecord(dir, cell.Hash, seed)
			if err == nil {
				g.records = append(g.records, rec)
			} else if !errors.Is(err, fs.ErrNotExist) { // that run failed
				return nil, err
			}
		}
		r.of[cell.ID] = i
		r.groups = append(r.groups, g)
	}
	if len(r.groups) > plot.Distinct { // the reference and the best can be told apart
		first := slices.Insert(slices.DeleteFunc(s.Ranking(), func(i int) bool { return s.Cells[i].ID == s.Reference }), 0, r.of[s.Reference])
		for k, i := range first {
			r.groups[i].style = k
		}
	}
	p := &Page{
		Title: s.Name, Question: s.Question, Answer: s.Verdict, Config: s.Config, Command: s.Command,
		Notes:     []string{fmt.Sprintf("%d runs: %d cells, %d seeds. Means over seeds with 95 %% bootstrap intervals; differences pair the runs of one seed.", s.Runs, len(s.Cells), len(s.Seeds))},
		Footnotes: []string{"Program " + s.Program + "."},
		Warnings:  slices.Concat(s.Gaps, s.Failures),
	}
	for _, w := range s.Warnings() {
		p.Warnings = append(p.Warnings, "Warning: "+w+".")
	}
	if s.Command != "" {
		p.Command += " -out " + at
	}
	var results strings.Builder
	if err := s.Write(&results, result.Text); err != nil {
		return nil, err
	}
	p.Text = results.String()
	pools := Section{Title: s.Metric + " pooled by " + s.Group, Notes: []string{"Over all cells that share a value; intervals resample seeds within each cell."}, Table: s.Pools()}
	p.Sections = []Section{cells, r.along(), learning(r.groups), r.maps(), r.profile(), pools, learnedOverExact(r.groups)}
	return p, nil
}

// along draws figures along the numeric setting with the most values.
func (r *sweepPage) along() Section {
	axis, all := r.Paths()
	out := Section{Title: "Along " + axis, Notes: []string{"Mean over seeds; the band is its 95 % interval."}}
	for _, name := range r.Show {
		j := r.Column(name)
		f := plot.New("along-"+name, "", axis, r.Figures[j].Words)
		f.X.Log = true
		for _, p := range all {
			if len(p.Cells) < 2 {
				continue
			}
			f.X.Log = f.X.Log && isWide(p.X)
			l := f.Of(p.Name)
			for k, i := range p.Cells {
				addEstimate(l, p.X[k], r.Cells[i].Mean[j])
			}
		}
		out.Figures = append(out.Figures, f)
	}
	return out
}

// profile draws the performance profiles.
func (r *sweepPage) profile() Section {
	out := Section{Title: "Performance profile"}
	if r.Profile == nil {
		return out
	}
	metric := r.Figures[r.Column(r.Metric)]
	better := "higher"
	if metric.Less {
		better = "lower"
	}
	out.Notes = []string{fmt.Sprintf("Share of runs whose %s is above τ: the %s a line, the better.", r.Metric, better)}
	f := plot.New("profile", "Performance profile", metric.Words+", τ", "share of runs above τ")
	for _, l := range r.Profile.Lines {
		s := f.Of(l.Name)
		if i, ok := r.of[l.Name]; ok { // else it is of a pool
			s.Name, s.Style = r.groups[i].name, r.groups[i].style
		}
		for k, e := range l.Share {
			addEstimate(s, r.Profile.Scores[k], e)
		}
	}
	out.Figures = []plot.Figure{f}
	return out
}

// maps lay the cells out over the two settings with the most values, in a map
// for each combination of the others.
func (r *sweepPage) maps() Section {
	out := Section{Title: r.Metric + " over two settings"}
	if len(r.Axes) < 2 {
		return out
	}
	values := map[string][]any{} // of each axis
	for _, a := range r.Axes {
		for _, c := range r.Cells {
			if v, ok := c.Settings[a]; ok && !slices.Contains(values[a], v) {
				values[a] = append(values[a], v)
			}
		}
		slices.SortStableFunc(values[a], compareNumbers)
	}
	most := slices.Clone(r.Axes)
	slices.SortStableFunc(most, func(a, b string) int { return len(values[b]) - len(values[a]) })
	x, y := most[0], most[1]
	titles, groups := r.By(func(i int) (string, bool) {
		c := &r.Cells[i]
		var rest []string
		for _, a := range r.Axes {
			if v, ok := c.Settings[a]; ok && a != x && a != y {
				rest = append(rest, fmt.Sprintf("%s = %s", a, experiments.FormatValue(v)))
			}
		}
		return strings.Join(rest, ", "), c.Settings[x] != nil && c.Settings[y] != nil
	})
	for k, cells := range groups {
		if 2*len(cells) < len(values[x])*len(values[y]) {
			continue // it is more of a list
		}
		f := plot.New(fmt.Sprintf("heat-%d", len(out.Figures)+1), r.Figures[r.Column(r.Metric)].Words, x, y)
		if titles[k] != "" {
			f.Title += " (" + titles[k] + ")"
		}
		f.Tiles = r.tiles(cells, x, y, values)
		out.Figures = append(out.Figures, f)
	}
	return out
}

// tiles are the metric of cells over two axes.
func (r *sweepPage) tiles(cells []int, x, y string, values map[string][]any) *plot.Tiles {
	t := &plot.Tiles{}
	for _, v := range values[x] {
		t.X = append(t.X, experiments.FormatValue(v))
	}
	for _, v := range values[y] {
		t.Y = append(t.Y, experiments.FormatValue(v))
		t.Values = append(t.Values, slices.Repeat([]float64{math.NaN()}, len(t.X)))
		t.Of = append(t.Of, make([]string, len(t.X)))
	}
	for _, i := range cells {
		c := &r.Cells[i]
		row, col := slices.Index(values[y], c.Settings[y]), slices.Index(values[x], c.Settings[x])
		t.Values[row][col], t.Of[row][col] = c.Mean[r.Column(r.Metric)].Value, r.groups[i].name
	}
	return t
}

// isWide reports whether values are better drawn by their logarithms: all above
// 0, and the last more than twenty times the first.
func isWide(x []float64) bool { return x[0] > 0 && x[len(x)-1] > 20*x[0] }

// compareNumbers orders numbers before anything else, and anything else not at
// all.
func compareNumbers(a, b any) int {
	x, okx := a.(float64)
	y, oky := b.(float64)
	if !okx || !oky {
		return 0
	}
	return cmp.Compare(x, y)
}
