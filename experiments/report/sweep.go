package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"ephemera/experiments"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
	"ephemera/experiments/sweep"
)

// summary is a sweep, and how its page draws the cells.
type summary struct {
	*sweep.Summary
	styles map[string]int // of cells, in their order; of more than can be told apart from the best on
	boot   *stats.Bootstrap
}

// readSweep makes the page of a sweep.
func readSweep(dir, at string) (*Page, error) {
	s, err := sweep.ReadSummary(dir)
	if err != nil {
		return nil, err
	}
	r := &summary{Summary: s, styles: map[string]int{}, boot: stats.New(1)}
	if len(s.Cells) > plot.Distinct {
		r.styles[s.Reference] = 0
		for _, i := range s.Ranking() {
			if id := s.Cells[i].ID; id != s.Reference {
				r.styles[id] = len(r.styles)
			}
		}
	}
	for _, c := range s.Cells {
		if _, ranked := r.styles[c.ID]; !ranked {
			r.styles[c.ID] = len(r.styles)
		}
	}
	all, err := r.outcomes(dir)
	if err != nil {
		return nil, err
	}
	var results strings.Builder
	if err := s.Write(&results, result.Text); err != nil {
		return nil, err
	}
	p := &Page{
		Title: s.Name, Question: s.Question, Answer: s.Verdict, Config: s.Config, Text: results.String(),
		Notes:     []string{fmt.Sprintf("%d runs: %d cells, %d seeds. Means over seeds with 95 %% bootstrap intervals; differences pair the runs of one seed.", s.Runs, len(s.Cells), len(s.Seeds))},
		Footnotes: []string{"Program " + s.Program + "."},
	}
	if s.Command != "" {
		p.Command = s.Command + " -out " + at
	}
	for _, w := range s.Warnings() {
		p.Warnings = append(p.Warnings, "Warning: "+w+".")
	}
	p.Warnings = append(p.Warnings, s.Gaps...)
	for _, f := range s.Failures {
		p.Warnings = append(p.Warnings, "failed: "+f)
	}
	cells := Section{Title: "Cells", Table: s.Table(), Draws: true, Reference: s.Reference}
	pools := Section{Title: s.Metric + " pooled by " + s.Group, Notes: []string{"Over all cells that share a value; intervals resample seeds within each cell."}, Table: s.Pools()}
	p.Sections = []Section{cells, r.along(), r.learning(all), r.maps(), r.profile(), pools, r.over(all), r.byAge(all)}
	return p, nil
}

// series returns the series of a cell in a figure. Of many cells those that can
// be told apart are drawn at first.
func (r *summary) series(f *plot.Figure, cell string) *plot.Series {
	s := f.Of(cell)
	s.Style, s.Hidden = r.styles[cell], r.styles[cell] >= plot.Distinct
	return s
}

// along draws figures along the numeric setting with the most values.
func (r *summary) along() Section {
	axis, all := r.Paths()
	out := Section{Title: "Along " + axis, Notes: []string{"Mean over seeds; the band is its 95 % interval."}}
	for _, name := range r.Show {
		j := r.Column(name)
		f := plot.New("along-"+name, r.Name, axis, r.Figures[j].Label())
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
func (r *summary) profile() Section {
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
	f := plot.New("profile", r.Name, metric.Label()+", τ", "share of runs above τ")
	for _, l := range r.Profile.Lines {
		s := r.series(&f, l.Name)
		for k, e := range l.Share {
			addEstimate(s, r.Profile.Scores[k], e)
		}
	}
	out.Figures = []plot.Figure{f}
	return out
}

// maps lay the cells out over the two settings with the most values.
func (r *summary) maps() Section {
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
		slices.SortStableFunc(values[a], compare)
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
	metric := r.Figures[r.Column(r.Metric)]
	for k, cells := range groups {
		if 2*len(cells) < len(values[x])*len(values[y]) {
			continue // it is more of a list
		}
		f := plot.New(fmt.Sprintf("heat-%d", len(out.Figures)+1), metric.Label(), x, y)
		if titles[k] != "" {
			f.Title += " (" + titles[k] + ")"
		}
		f.Tiles = r.tiles(cells, x, y, values)
		out.Figures = append(out.Figures, f)
	}
	return out
}

// tiles are the metric of cells over two axes.
func (r *summary) tiles(cells []int, x, y string, values map[string][]any) *plot.Tiles {
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
		t.Values[row][col], t.Of[row][col] = c.Mean[r.Column(r.Metric)].Value, c.ID
	}
	return t
}

// quantity is something that a cell came to.
type quantity struct {
	cell   string
	what   string  // a figure of curves, or threshold or index
	source string  // "" for curves
	at     float64 // epoch or age; 0 for thresholds
}

// outcome is what it came to, one value per seed, and what is exact.
type outcome struct {
	quantity
	values []float64
	mean   stats.Estimate
	exact  float64
}

// curve is the quantity of a figure of curves.
func curve(figure string) string { return "curve of " + figure }

// outcomes reads what the cells that are kept came to, from the learning curves
// and from what was learned.
func (r *summary) outcomes(dir string) (all []*outcome, err error) {
	known := map[quantity]*outcome{}
	add := func(q quantity, value, exact float64) {
		if math.IsNaN(value) {
			return
		}
		if known[q] == nil {
			known[q] = &outcome{quantity: q, exact: exact}
			all = append(all, known[q])
		}
		known[q].values = append(known[q].values, value)
	}
	// Columns are cell, seed, epoch and figures.
	err = r.rows(dir, sweep.CurvesFile, 2, 1+len(r.Curves), func(words []string, v []float64) {
		for j, f := range r.Curves {
			add(quantity{cell: words[0], what: curve(f.Name), at: v[0]}, v[1+j], 0)
		}
	})
	if err != nil {
		return nil, err
	}
	// Columns are cell, seed, what, source, age, learned and exact.
	err = r.rows(dir, sweep.LearnedFile, 4, 3, func(words []string, v []float64) {
		add(quantity{words[0], words[2], words[3], v[0]}, v[1], v[2])
	})
	for _, o := range all {
		o.mean = r.boot.Mean(o.values)
	}
	return all, err
}

// rows calls use for each row, with its words, of which
// the first is the cell, and the numbers behind them.
func (r *summary) rows(dir string, name string, words, figures int, use func(words []string, v []float64)) error {
	_, err := rows(dir, name, words+figures, func(row []string) error {
		v, err := numbers(row[words:])
		if err == nil {
			use(row[:words], v)
		}
		return err
	})
	return err
}

// learning draws the learning curves.
func (r *summary) learning(all []*outcome) Section {
	out := Section{Title: "Learning curves", Notes: []string{"Mean over seeds; the band is its 95 % interval. Each point covers the epochs since the one before. The figure is scaled to the epochs after the first hundredth."}}
	ordered := slices.SortedStableFunc(slices.Values(all), func(a, b *outcome) int {
		return cmp.Or(r.styles[a.cell]-r.styles[b.cell], cmp.Compare(a.at, b.at))
	})
	for _, c := range r.Curves {
		f := plot.New("curves-"+c.Name, r.Name, "epoch", c.Label())
		f.X.Log = true
		last := 0.
		for _, o := range ordered {
			if o.what == curve(c.Name) {
				addEstimate(r.series(&f, o.cell), o.at, o.mean)
				last = max(last, o.at)
			}
		}
		focus(&f, last)
		out.Figures = append(out.Figures, f)
	}
	return out
}

// over sets what was learned over what is exact.
func (r *summary) over(all []*outcome) Section {
	out := Section{
		Title: "Learned over exact",
		Notes: []string{"Thresholds are states, in interest; the exact one is where the Whittle index reaches the price of the relaxed problem. " +
			"Indices are taken at ages since a crawl; exact is the Whittle index. Mean over seeds; on the dashed line both agree. " +
			"What lies farther from the exact values than they span is not drawn."},
		Table: &result.Table{Header: []string{"cell and source", "learned threshold, interest", "exact threshold, interest"}},
	}
	for _, what := range []string{"threshold", "index"} {
		f := plot.New(what, r.Name, "exact "+what+", interest", "learned "+what+", interest")
		for _, o := range all {
			if o.what != what {
				continue
			}
			s := r.series(&f, o.cell)
			s.Kind = plot.Points
			addEstimate(s, o.exact, o.mean)
			if what == "threshold" {
				out.Table.Add(o.cell+", "+o.source, o.mean.String(), stats.Format(o.exact))
			}
		}
		addDiagonal(&f)
		out.Figures = append(out.Figures, f)
	}
	return out
}

// byAge sets the learned indices of each cell beside the exact ones, on the page
// alone: there are many figures of it.
func (r *summary) byAge(all []*outcome) Section {
	out := Section{Title: "Learned and exact indices by age"}
	for _, o := range all {
		if o.what != "index" {
			continue
		}
		title := "Indices of " + o.cell
		if n := len(out.Figures); n == 0 || out.Figures[n-1].Title != title {
			out.Figures = append(out.Figures, plot.New("", title, "age, epochs", "index, interest"))
		}
		f := &out.Figures[len(out.Figures)-1]
		addEstimate(f.Of("source "+o.source), o.at, o.mean)
		f.Of("source "+o.source+", exact").Add(o.at, o.exact)
	}
	for _, f := range out.Figures {
		for i := range f.Series { // a source has one colour, and what is exact is dashed
			f.Series[i].Style = i/2 + 8*(i%2)
		}
	}
	return out
}

// isWide reports whether values are better drawn by their logarithms: all above
// 0, and the last more than twenty times the first.
func isWide(x []float64) bool { return x[0] > 0 && x[len(x)-1] > 20*x[0] }

// compare orders numbers before anything else, and anything else not at all.
func compare(a, b any) int {
	x, okx := a.(float64)
	y, oky := b.(float64)
	if !okx || !oky {
		return 0
	}
	return cmp.Compare(x, y)
}
