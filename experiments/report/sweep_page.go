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
		f := plot.Figure{Name: "along-" + name, Title: titled(r.Name, note), X: plot.Axis{Label: axis, Log: log}, Y: plot.Axis{Label: r.Figures[j].Label()}}
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
		f := plot.Figure{Name: "curves-" + c.Name, Title: titled(r.Name, r.drawnNote), X: plot.Axis{Label: "epoch", Log: true}, Y: plot.Axis{Label: c.Label()}}
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
	f := plot.Figure{Name: "profile", X: plot.Axis{Label: metric.Label() + ", τ"}, Y: plot.Axis{Label: "share of runs above τ"}}
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
	type axis struct {
		key    string
		values []any
	}
	var axes []axis
	for _, a := range r.Axes {
		x := axis{key: a}
		for _, c := range r.Cells {
			if v, ok := c.Settings[a]; ok && !slices.Contains(x.values, v) {
				x.values = append(x.values, v)
			}
		}
		slices.SortStableFunc(x.values, compare)
		axes = append(axes, x)
	}
	byCount := slices.Clone(axes)
	slices.SortStableFunc(byCount, func(a, b axis) int { return len(b.values) - len(a.values) })
	x, y := byCount[0], byCount[1]
	var titles []string // of the maps
	var groups [][]int  // their cells
	for i, c := range r.Cells {
		if c.Settings[x.key] == nil || c.Settings[y.key] == nil {
			continue
		}
		var rest []string
		for _, a := range axes {
			if v, ok := c.Settings[a.key]; ok && a.key != x.key && a.key != y.key {
				rest = append(rest, fmt.Sprintf("%s = %s", a.key, sweep.FormatValue(v)))
			}
		}
		title := strings.Join(rest, ", ")
		k := slices.Index(titles, title)
		if k < 0 {
			k = len(titles)
			titles, groups = append(titles, title), append(groups, nil)
		}
		groups[k] = append(groups[k], i)
	}
	// One with one cell per row is a list, not a map.
	for k := len(groups) - 1; k >= 0; k-- {
		if 2*len(groups[k]) < len(x.values)*len(y.values) {
			titles, groups = slices.Delete(titles, k, k+1), slices.Delete(groups, k, k+1)
		}
	}
	chosen, note := r.best(maxPanels, groups, "maps")
	metric := r.Column(r.Metric)
	var out []Section
	for k, title := range titles {
		if !chosen[k] {
			continue
		}
		tiles := &plot.Tiles{}
		for _, v := range x.values {
			tiles.X = append(tiles.X, sweep.FormatValue(v))
		}
		for _, v := range y.values {
			tiles.Y = append(tiles.Y, sweep.FormatValue(v))
			tiles.Values = append(tiles.Values, slices.Repeat([]float64{math.NaN()}, len(x.values)))
			tiles.Of = append(tiles.Of, make([]string, len(x.values)))
		}
		for _, i := range groups[k] {
			c := &r.Cells[i]
			row, col := slices.Index(y.values, c.Settings[y.key]), slices.Index(x.values, c.Settings[x.key])
			tiles.Values[row][col], tiles.Of[row][col] = c.Mean[metric].Value, c.ID
		}
		f := plot.Figure{Name: "heat", Title: r.Figures[metric].Label(), X: plot.Axis{Label: x.key}, Y: plot.Axis{Label: y.key}, Tiles: tiles}
		if title != "" {
			f.Title += " (" + title + ")"
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

// learned sets what the cells that are kept learned, on average over seeds,
// beside what is exact.
func (r *sweepDir) learned() ([]Section, error) {
	type quantity struct {
		cell, what, source string  // what is threshold or index
		at                 float64 // age in epochs; 0 for thresholds
	}
	type pair struct {
		quantity
		exact   float64
		learned []float64
	}
	var pairs []*pair
	of := map[quantity]*pair{}
	// Rows are cell, seed, what, source, age, learned and exact.
	err := r.rows(sweep.LearnedFile, 4, 3, func(words []string, numbers []float64) {
		q := quantity{words[0], words[2], result.Printable(words[3]), numbers[0]}
		p := of[q]
		if p == nil {
			p = &pair{quantity: q}
			of[q], pairs = p, append(pairs, p)
		}
		p.exact, p.learned = numbers[2], append(p.learned, numbers[1])
	})
	boot := stats.New(1)
	t := &result.Table{Header: []string{"cell and source", "learned threshold, interest", "exact threshold, interest"}}
	over := map[string]*plot.Figure{}
	for _, what := range []string{"threshold", "index"} {
		over[what] = &plot.Figure{Name: what, Title: titled(r.Name, r.drawnNote), X: plot.Axis{Label: "exact " + what + ", interest"}, Y: plot.Axis{Label: "learned " + what + ", interest"}}
	}
	var ages []plot.Figure // of each cell
	for _, l := range pairs {
		f := over[l.what]
		if f == nil {
			continue
		}
		mean := boot.Mean(l.learned)
		n := len(f.Series)
		if n == 0 || f.Series[n-1].Name != l.cell {
			x := r.series(l.cell)
			x.Kind = plot.Points
			f.Series = append(f.Series, x)
			n++
		}
		x := &f.Series[n-1]
		x.X = append(x.X, l.exact)
		add(x, mean)
		if l.what == "threshold" {
			t.Add(l.cell+", "+l.source, mean.String(), stats.Format(l.exact))
			continue
		}
		title := "Indices of " + l.cell
		if n := len(ages); n == 0 || ages[n-1].Title != title {
			ages = append(ages, plot.Figure{Title: title, Page: true, X: plot.Axis{Label: "age, epochs"}, Y: plot.Axis{Label: "index, interest"}})
		}
		f = &ages[len(ages)-1]
		learned := "source " + l.source
		if n := len(f.Series); n == 0 || f.Series[n-2].Name != learned {
			f.Series = append(f.Series, plot.Series{Name: learned, Style: n / 2}, plot.Series{Name: learned + ", exact", Style: n/2 + 8})
		}
		n = len(f.Series)
		f.Series[n-2].X, f.Series[n-1].X = append(f.Series[n-2].X, l.at), append(f.Series[n-1].X, l.at)
		add(&f.Series[n-2], mean)
		f.Series[n-1].Y = append(f.Series[n-1].Y, l.exact)
	}
	for _, f := range over {
		diagonal(f)
	}
	return []Section{
		{Title: "Learned over exact", Notes: []string{"Thresholds are states, in interest; the exact one is where the Whittle index reaches the price of the relaxed problem. Indices are taken at ages since a crawl; exact is the Whittle index. Mean over seeds; on the dashed line both agree. What lies farther from the exact values than they span is not drawn."},
			Figures: []plot.Figure{*over["threshold"], *over["index"]}, Table: t},
		{Title: "Learned and exact indices by age", Figures: ages},
	}, err
}

// diagonal adds the line on which both axes agree. On an even scale, what lies
// farther from the exact values than they span is not drawn: what a learner came
// to may be many times as large, and would crush the rest.
func diagonal(f *plot.Figure) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, s := range f.Series {
		for _, x := range s.X {
			lo, hi = math.Min(lo, x), math.Max(hi, x)
		}
	}
	if !(lo < hi) {
		return
	}
	least, most, far, out := lo, hi, hi-lo, false
	for _, s := range f.Series {
		for _, y := range s.Y {
			if y < lo-far || y > hi+far {
				out = true
				continue
			}
			least, most = math.Min(least, y), math.Max(most, y)
		}
	}
	if out && !f.Y.Log {
		f.Y.Lo, f.Y.Hi = least-far/25, most+far/25
	}
	f.Series = append([]plot.Series{{Name: "learned = exact", Style: plot.Plain, X: plot.Values{lo, hi}, Y: plot.Values{lo, hi}}}, f.Series...)
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
