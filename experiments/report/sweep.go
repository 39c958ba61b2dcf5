package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
	"ephemera/experiments/sweep"
)

// Limits keep a page of a large sweep light enough for a phone.
const (
	maxCurves = 48 // cells whose curves are in the page
	maxDrawn  = 10 // cells that are drawn at first, and in the files
	maxPanels = 4  // heat maps
	maxPaths  = 16 // lines along a setting
)

// summary is a sweep, and what its page shows of it.
type summary struct {
	*sweep.Summary
	styles map[string]int // of the cells whose curves are kept; those drawn at first come first
	drawn  int
	// What the cells are that are kept and drawn, "" for all.
	keptNote, drawnNote string
	boot                *stats.Bootstrap
}

// readSweep makes the page of a sweep.
func readSweep(dir fs.FS, at string) (*Page, error) {
	s, err := read(dir, "summary.json", sweep.ParseSummary)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := fs.Stat(dir, "records"); err != nil {
			return nil, errors.New("holds no results of a sweep: there is no records in it")
		}
		return nil, fmt.Errorf("there is no summary.json yet; a sweep writes it at its end, and before that sweep -merge %s", at)
	}
	if err != nil {
		return nil, err
	}
	meta, err := read(dir, sweep.MetaFile, sweep.ParseMeta)
	if err != nil {
		return nil, err
	}
	config, err := read(dir, configFile, text)
	if err != nil {
		return nil, err
	}
	r := choose(s)
	all, err := r.outcomes(dir)
	if err != nil {
		return nil, err
	}
	var results strings.Builder
	if err := s.Text(&results); err != nil {
		return nil, err
	}
	p := &Page{
		Title: s.Name, Question: s.Question, Answer: s.Answer, Config: config, Text: results.String(), Names: r.names(),
		Notes:     []string{fmt.Sprintf("%d runs: %d cells, %d seeds. Means over seeds with 95 %% bootstrap intervals; differences pair the runs of one seed.", s.Runs, len(s.Cells), len(s.Seeds))},
		Footnotes: []string{"Configuration " + s.Configuration + "."},
	}
	if meta.Command != "" {
		p.Command = meta.Command + " -out " + at
	}
	for _, w := range s.Warnings() {
		p.Warnings = append(p.Warnings, "Warning: "+w+".")
	}
	p.Warnings = append(p.Warnings, s.Gaps...)
	for _, f := range s.Failures {
		p.Warnings = append(p.Warnings, "failed: "+f)
	}
	for _, v := range s.Revisions {
		p.Footnotes = append(p.Footnotes, "Program "+v+".")
	}
	cells := Section{Title: "Cells", Table: s.Table(), Draws: true, Reference: s.Reference}
	pools := Section{Title: s.Metric + " pooled by " + s.Group, Notes: []string{"Over all cells that share a value; intervals resample seeds within each cell."}, Table: s.Pools()}
	p.Sections = slices.Concat([]Section{cells, r.along(), r.learning(all)}, r.maps(), []Section{r.profile(), pools, r.over(all), r.byAge(all)})
	return p, nil
}

// names are those of all figures that a page of the sweep may have.
func (r *summary) names() []string {
	names := []string{"profile", "heat", "threshold", "index"}
	for k := range maxPanels {
		names = append(names, fmt.Sprintf("heat-%d", k+1))
	}
	for _, f := range r.Curves {
		names = append(names, "curves-"+f.Name)
	}
	for _, f := range r.Figures {
		names = append(names, "along-"+f.Name)
	}
	return names
}

// choose chooses the cells whose curves are kept and drawn.
func choose(s *sweep.Summary) *summary {
	r := &summary{Summary: s, styles: map[string]int{}, boot: stats.New(1)}
	each := make([][]int, len(s.Cells)) // cells as groups of one
	for i := range each {
		each[i] = []int{i}
	}
	kept, keptNote := r.best(maxCurves, each, "cells")
	drawn, drawnNote := r.best(maxDrawn, each, "cells")
	r.drawn, r.keptNote, r.drawnNote = len(drawn), keptNote, drawnNote
	for _, first := range []bool{true, false} {
		for i, c := range s.Cells {
			if kept[i] && drawn[i] == first {
				r.styles[c.ID] = len(r.styles)
			}
		}
	}
	return r
}

// best chooses at most n groups of cells: that of the reference, and then those
// with the best cells. The note says so where it leaves some out.
func (r *summary) best(n int, groups [][]int, what string) (chosen map[int]bool, note string) {
	group := map[int]int{}
	for k, cells := range groups {
		for _, i := range cells {
			group[i] = k
		}
	}
	order, which := r.Ranking(), "the best"
	reference := slices.IndexFunc(r.Cells, func(c sweep.Row) bool { return c.ID == r.Reference })
	if _, ok := group[reference]; ok {
		order, which = append([]int{reference}, order...), "the reference and the best"
	}
	chosen = map[int]bool{}
	for _, i := range order {
		if k, ok := group[i]; ok && len(chosen) < n {
			chosen[k] = true
		}
	}
	if len(chosen) == len(groups) {
		return chosen, ""
	}
	if what != "cells" {
		which = "those with " + which + " cells"
	}
	return chosen, fmt.Sprintf("%d of %d %s: %s", len(chosen), len(groups), what, which)
}

// series returns the series of a cell in a figure.
func (r *summary) series(f *plot.Figure, cell string) *plot.Series {
	s := f.Of(cell)
	if style, ok := r.styles[cell]; ok {
		s.Style, s.Hidden = style, style >= r.drawn
	}
	return s
}

// along draws figures along the numeric setting with the most values.
func (r *summary) along() Section {
	axis, all := r.Paths()
	all = slices.DeleteFunc(all, func(p sweep.Path) bool { return len(p.Cells) < 2 })
	log := true
	var groups [][]int
	for _, p := range all {
		groups = append(groups, p.Cells)
		log = log && spread(p.X)
	}
	chosen, note := r.best(maxPaths, groups, "lines")
	out := Section{Title: "Along " + axis, Notes: []string{"Mean over seeds; the band is its 95 % interval."}}
	if note != "" {
		out.Notes = append(out.Notes, fmt.Sprintf("Shown are %s by %s.", note, r.Metric))
	}
	for _, name := range r.Show {
		j := r.Column(name)
		f := plot.New("along-"+name, titled(r.Name, note), axis, r.Figures[j].Label())
		f.X.Log = log
		for k, p := range all {
			if !chosen[k] {
				continue
			}
			l := f.Of(p.Name)
			for k, i := range p.Cells {
				add(l, p.X[k], r.Cells[i].Mean[j])
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
	shown := 0
	for _, l := range r.Profile.Lines {
		s := r.series(&f, l.Name)
		for k, e := range l.Share {
			add(s, r.Profile.Scores[k], e)
		}
		if !s.Hidden {
			shown++
		}
	}
	if r.Group == "" && shown < len(r.Cells) {
		note := fmt.Sprintf("%d of %d cells: the best", shown, len(r.Cells))
		out.Notes, f.Title = append(out.Notes, "Shown are "+note+"."), titled(r.Name, note)
	}
	out.Figures = []plot.Figure{f}
	return out
}

// maps lay the cells out over the two settings with the most values.
func (r *summary) maps() (out []Section) {
	if len(r.Axes) < 2 {
		return nil
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
				rest = append(rest, fmt.Sprintf("%s = %s", a, sweep.FormatValue(v)))
			}
		}
		return strings.Join(rest, ", "), c.Settings[x] != nil && c.Settings[y] != nil
	})
	metric := r.Figures[r.Column(r.Metric)]
	var figures []plot.Figure
	var full [][]int
	for k, cells := range groups {
		if 2*len(cells) < len(values[x])*len(values[y]) {
			continue // it is more of a list
		}
		f := plot.New("heat", metric.Label(), x, y)
		if titles[k] != "" {
			f.Title += " (" + titles[k] + ")"
		}
		f.Tiles = r.tiles(cells, x, y, values)
		figures, full = append(figures, f), append(full, cells)
	}
	chosen, note := r.best(maxPanels, full, "maps")
	for k, f := range figures {
		if !chosen[k] {
			continue
		}
		if len(chosen) > 1 {
			f.Name = fmt.Sprintf("heat-%d", len(out)+1)
		}
		out = append(out, Section{Title: r.Metric + " over two settings", Figures: []plot.Figure{f}})
	}
	if note != "" {
		out[0].Notes = []string{"Shown are " + note + "."}
	}
	return out
}

// tiles are the metric of cells over two axes.
func (r *summary) tiles(cells []int, x, y string, values map[string][]any) *plot.Tiles {
	t := &plot.Tiles{}
	for _, v := range values[x] {
		t.X = append(t.X, sweep.FormatValue(v))
	}
	for _, v := range values[y] {
		t.Y = append(t.Y, sweep.FormatValue(v))
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
func (r *summary) outcomes(dir fs.FS) (all []*outcome, err error) {
	known := map[quantity]*outcome{}
	add := func(q quantity, value, exact float64) {
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

// rows calls use for each row of a cell that is kept, with its words, of which
// the first is the cell, and the numbers behind them.
func (r *summary) rows(dir fs.FS, name string, words, figures int, use func(words []string, v []float64)) error {
	_, err := rows(dir, name, words+figures, func(row []string) error {
		if _, kept := r.styles[row[0]]; !kept {
			return nil
		}
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
	out := Section{Title: "Learning curves", Notes: []string{"Mean over seeds; the band is its 95 % interval. Each point covers the epochs since the one before. Where early epochs would crush the rest, they are left out."}}
	if r.keptNote != "" {
		out.Notes = append(out.Notes, fmt.Sprintf("The page has the curves of %s by %s; the file %s has all.", r.keptNote, r.Metric, sweep.CurvesFile))
	}
	if r.drawnNote != "" {
		out.Notes = append(out.Notes, fmt.Sprintf("Drawn at first are %s by %s.", r.drawnNote, r.Metric))
	}
	ordered := slices.SortedStableFunc(slices.Values(all), func(a, b *outcome) int {
		return cmp.Or(r.styles[a.cell]-r.styles[b.cell], cmp.Compare(a.at, b.at))
	})
	for _, c := range r.Curves {
		f := plot.New("curves-"+c.Name, titled(r.Name, r.drawnNote), "epoch", c.Label())
		f.X.Log = true
		for _, o := range ordered {
			if o.what == curve(c.Name) {
				add(r.series(&f, o.cell), o.at, o.mean)
				f.From = max(f.From, o.at/1000)
			}
		}
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
		f := plot.New(what, titled(r.Name, r.drawnNote), "exact "+what+", interest", "learned "+what+", interest")
		for _, o := range all {
			if o.what != what {
				continue
			}
			s := r.series(&f, o.cell)
			s.Kind = plot.Points
			add(s, o.exact, o.mean)
			if what == "threshold" {
				out.Table.Add(o.cell+", "+o.source, o.mean.String(), stats.Format(o.exact))
			}
		}
		diagonal(&f)
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
		add(f.Of("source "+o.source), o.at, o.mean)
		f.Of("source "+o.source+", exact").Add(o.at, o.exact)
	}
	for _, f := range out.Figures {
		for i := range f.Series { // a source has one colour, and what is exact is dashed
			f.Series[i].Style = i/2 + 8*(i%2)
		}
	}
	return out
}

// titled is a name with a note behind it.
func titled(name, note string) string {
	if note == "" {
		return name
	}
	return name + ", " + note
}

// spread reports whether values are better drawn by their logarithms: all above
// 0, and the last more than twenty times the first.
func spread(x []float64) bool { return x[0] > 0 && x[len(x)-1] > 20*x[0] }

// compare orders numbers before anything else, and anything else not at all.
func compare(a, b any) int {
	x, okx := a.(float64)
	y, oky := b.(float64)
	if !okx || !oky {
		return 0
	}
	return cmp.Compare(x, y)
}
