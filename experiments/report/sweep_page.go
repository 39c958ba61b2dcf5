package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
	"ephemera/experiments/sweep"
)

// figures names all figures that a page of the sweep may have.
func (r *sweepDir) figures() []string {
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

// along draws figures along the numeric setting with the most values.
func (r *sweepDir) along() Section {
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
			l := plot.Series{Name: p.Name, Style: len(f.Series), X: p.X}
			for _, i := range p.Cells {
				add(&l, r.Cells[i].Mean[j])
			}
			f.Series = append(f.Series, l)
		}
		out.Figures = append(out.Figures, f)
	}
	return out
}

// learning draws the learning curves of the cells that are kept: means over seeds.
func (r *sweepDir) learning() (Section, error) {
	out := Section{Title: "Learning curves", Notes: []string{"Mean over seeds; the band is its 95 % interval. Each point covers the epochs since the one before. Where early epochs would crush the rest, they are left out."}}
	if r.keptNote != "" {
		out.Notes = append(out.Notes, fmt.Sprintf("The page has the curves of %s by %s; the file %s has all.", r.keptNote, r.Metric, sweep.CurvesFile))
	}
	if r.drawnNote != "" {
		out.Notes = append(out.Notes, fmt.Sprintf("Drawn at first are %s by %s.", r.drawnNote, r.Metric))
	}
	width := len(r.Curves)
	values := map[string]map[int][][]float64{} // by cell, by epoch, by figure: one value per seed
	// Rows are cell, seed, epoch and figures.
	err := r.rows(sweep.CurvesFile, 2, 1+width, func(words []string, numbers []float64) {
		cell, n := words[0], int(numbers[0])
		if values[cell] == nil {
			values[cell] = map[int][][]float64{}
		}
		if values[cell][n] == nil {
			values[cell][n] = make([][]float64, width)
		}
		for j, v := range numbers[1:] {
			values[cell][n][j] = append(values[cell][n][j], v)
		}
	})
	boot := stats.New(1)
	for j, c := range r.Curves {
		f := plot.New("curves-"+c.Name, titled(r.Name, r.drawnNote), "epoch", c.Label())
		f.X.Log = true
		for cell, at := range values {
			l := r.series(cell)
			for _, n := range slices.Sorted(maps.Keys(at)) {
				l.X = append(l.X, float64(n))
				add(&l, boot.Mean(at[n][j]))
			}
			f.Series = append(f.Series, l)
			f.From = max(f.From, l.X[len(l.X)-1]/1000)
		}
		slices.SortFunc(f.Series, func(a, b plot.Series) int { return a.Style - b.Style })
		out.Figures = append(out.Figures, f)
	}
	return out, err
}

// series begins the series of a cell.
func (r *sweepDir) series(cell string) plot.Series {
	style := r.styles[cell]
	return plot.Series{Name: cell, Style: style, Hidden: style >= r.drawn}
}

func (r *sweepDir) profile() Section {
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
	f := plot.New("profile", "", metric.Label()+", τ", "share of runs above τ")
	shown := 0
	for k, l := range r.Profile.Lines {
		x := plot.Series{Name: l.Name, Style: k, X: r.Profile.Scores}
		if r.Group == "" {
			x.Style = r.styles.of(l.Name)
			x.Hidden = x.Style >= r.drawn
		}
		if !x.Hidden {
			shown++
		}
		for _, e := range l.Share {
			add(&x, e)
		}
		f.Series = append(f.Series, x)
	}
	note := ""
	if r.Group == "" && shown < len(r.Cells) {
		note = fmt.Sprintf("%d of %d cells: the best", shown, len(r.Cells))
		out.Notes = append(out.Notes, "Shown are "+note+".")
	}
	f.Title = titled(r.Name, note)
	out.Figures = append(out.Figures, f)
	return out
}

// maps lay the cells out over the two settings with the most values.
func (r *sweepDir) maps() []Section {
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
	titles, groups := r.By(func(c *sweep.Row) (string, bool) {
		var rest []string
		for _, a := range r.Axes {
			if v, ok := c.Settings[a]; ok && a != x && a != y {
				rest = append(rest, fmt.Sprintf("%s = %s", a, sweep.FormatValue(v)))
			}
		}
		return strings.Join(rest, ", "), c.Settings[x] != nil && c.Settings[y] != nil
	})
	var maps [][]int
	title := map[int]string{}
	for k, cells := range groups {
		if 2*len(cells) >= len(values[x])*len(values[y]) { // else it is more of a list
			title[len(maps)] = titles[k]
			maps = append(maps, cells)
		}
	}
	chosen, note := r.best(maxPanels, maps, "maps")
	metric := r.Figures[r.Column(r.Metric)]
	var out []Section
	for k, cells := range maps {
		if !chosen[k] {
			continue
		}
		f := plot.New("heat", metric.Label(), x, y)
		f.Tiles = r.tiles(cells, x, y, values)
		if title[k] != "" {
			f.Title += " (" + title[k] + ")"
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
func (r *sweepDir) tiles(cells []int, x, y string, values map[string][]any) *plot.Tiles {
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

// quantity is something that a cell learned.
type quantity struct {
	cell, what, source string  // what is threshold or index
	at                 float64 // age in epochs; 0 for thresholds
}

// outcome is what it learned, one value per seed, and what is exact.
type outcome struct {
	quantity
	learned []float64
	exact   float64
}

// outcomes reads what the cells that are kept learned.
func (r *sweepDir) outcomes() (all []*outcome, err error) {
	of := map[quantity]*outcome{}
	// Rows are cell, seed, what, source, age, learned and exact.
	err = r.rows(sweep.LearnedFile, 4, 3, func(words []string, numbers []float64) {
		q := quantity{words[0], words[2], result.Printable(words[3]), numbers[0]}
		o := of[q]
		if o == nil {
			o = &outcome{quantity: q}
			of[q], all = o, append(all, o)
		}
		o.exact, o.learned = numbers[2], append(o.learned, numbers[1])
	})
	return all, err
}

// learned sets what the cells that are kept learned, on average over seeds,
// beside what is exact.
func (r *sweepDir) learned() ([]Section, error) {
	all, err := r.outcomes()
	if err != nil {
		return nil, err
	}
	boot := stats.New(1)
	over := Section{
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
			s := last(&f, o.cell)
			if len(s.X) == 0 {
				*s = r.series(o.cell)
				s.Kind = plot.Points
			}
			mean := boot.Mean(o.learned)
			s.X = append(s.X, o.exact)
			add(s, mean)
			if what == "threshold" {
				over.Table.Add(o.cell+", "+o.source, mean.String(), stats.Format(o.exact))
			}
		}
		diagonal(&f)
		over.Figures = append(over.Figures, f)
	}
	ages := Section{Title: "Learned and exact indices by age"}
	for _, o := range all {
		if o.what != "index" {
			continue
		}
		title := "Indices of " + o.cell
		if n := len(ages.Figures); n == 0 || ages.Figures[n-1].Title != title {
			ages.Figures = append(ages.Figures, plot.New("", title, "age, epochs", "index, interest"))
		}
		f := &ages.Figures[len(ages.Figures)-1]
		f.Page = true
		name := "source " + o.source
		if n := len(f.Series); n == 0 || f.Series[n-2].Name != name {
			f.Series = append(f.Series, plot.Series{Name: name, Style: n / 2}, plot.Series{Name: name + ", exact", Style: n/2 + 8})
		}
		learned, exact := &f.Series[len(f.Series)-2], &f.Series[len(f.Series)-1]
		learned.X, exact.X = append(learned.X, o.at), append(exact.X, o.at)
		add(learned, boot.Mean(o.learned))
		exact.Y = append(exact.Y, o.exact)
	}
	return []Section{over, ages}, nil
}

// last returns the last series of a figure, a new one if that has another name.
func last(f *plot.Figure, name string) *plot.Series {
	if n := len(f.Series); n == 0 || f.Series[n-1].Name != name {
		f.Series = append(f.Series, plot.Series{Name: name})
	}
	return &f.Series[len(f.Series)-1]
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

// add appends an estimate to the values of a series.
func add(s *plot.Series, e stats.Estimate) {
	s.Y, s.Lo, s.Hi = append(s.Y, e.Value), append(s.Lo, e.Lo), append(s.Hi, e.Hi)
}

// compare orders numbers before anything else, and anything else not at all.
func compare(a, b any) int {
	x, okx := a.(float64)
	y, oky := b.(float64)
	if !okx || !oky {
		return 0
	}
	return cmp.Compare(x, y)
}
