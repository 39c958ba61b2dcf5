package report

import (
	"math"
	"slices"

	"ephemera/experiments/plot"
	"ephemera/experiments/stats"
)

// mostRows is how many sources a raster shows.
const mostRows = 60

// Raster draws which source was crawled at which epochs: of the sources that were
// crawled at most 60. The styles follow the order; without one, all are the same.
func Raster(names []string, at [][]float64, order []int) plot.Figure {
	f := plot.New("crawls", "Crawls", "epoch", "source")
	var rows []string
	for i, x := range at {
		if len(x) == 0 || len(rows) == mostRows {
			continue
		}
		s := plot.Series{Kind: plot.Marks, Style: max(0, slices.Index(order, i)) % 8}
		for _, n := range x {
			s.Add(n, float64(len(rows)))
		}
		f.Series = append(f.Series, s)
		rows = append(rows, names[i])
	}
	f.Y.Lo, f.Y.Hi, f.Y.Ticks = -.6, float64(len(rows))-.4, plot.Names(rows)
	return f
}

// Dots draws a value of each row, if there is at, from the best on top down,
// with its interval. A value that is not finite is left out.
func Dots(f plot.Figure, names []string, at func(k int) (value, lo, hi float64, style int)) plot.Figure {
	top := float64(len(names) - 1)
	f.Y.Lo, f.Y.Hi, f.Y.Ticks = -.6, float64(len(names))-.4, nil
	for k := len(names) - 1; k >= 0; k-- {
		f.Y.Ticks = append(f.Y.Ticks, plot.Tick{At: top - float64(k), Text: names[k]})
	}
	for k := range names {
		if at != nil {
			v, lo, hi, style := at(k)
			s := plot.Series{Kind: plot.Across, Style: style}
			s.AddWithin(v, top-float64(k), lo, hi)
			f.Series = append(f.Series, s)
		}
	}
	return f
}

// diagonal adds the line on which both axes agree. On an even scale, what lies
// farther from the exact values than they span is not drawn: what a learner came
// to may be many times as large, and would crush the rest.
func diagonal(f *plot.Figure) {
	var x, y []float64
	for _, s := range f.Series {
		x, y = append(x, s.X...), append(y, s.Y...)
	}
	if len(x) == 0 {
		return
	}
	lo, hi := slices.Min(x), slices.Max(x)
	if !(lo < hi) {
		return
	}
	far := hi - lo
	near := slices.DeleteFunc(y, func(v float64) bool { return !(v >= lo-far && v <= hi+far) })
	if len(near) < len(x) && !f.Y.Log {
		near = append(near, lo, hi)
		f.Y.Lo, f.Y.Hi = slices.Min(near)-far/25, slices.Max(near)+far/25
	}
	f.Series = append([]plot.Series{plot.Guide("learned = exact", lo, lo, hi, hi)}, f.Series...)
}

// add appends an estimate to a series.
func add(s *plot.Series, x float64, e stats.Estimate) { s.AddWithin(x, e.Value, e.Lo, e.Hi) }

// or returns a figure that may be missing, as NaN.
func or(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}
