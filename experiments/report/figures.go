package report

import (
	"math"
	"slices"

	"ephemera/experiments/plot"
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
		s := plot.Series{Kind: plot.Marks, Style: max(0, slices.Index(order, i)) % 8, X: x}
		for range x {
			s.Y = append(s.Y, float64(len(rows)))
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
	f.Y.Lo, f.Y.Hi, f.Y.Ticks = -.6, float64(len(names))-.4, nil
	for k := len(names) - 1; k >= 0; k-- {
		f.Y.Ticks = append(f.Y.Ticks, plot.Tick{At: float64(len(names) - 1 - k), Text: names[k]})
	}
	for k := range names {
		if at != nil {
			v, lo, hi, style := at(k)
			f.Series = append(f.Series, plot.Series{Kind: plot.Across, Style: style, X: plot.Values{v}, Y: plot.Values{float64(len(names) - 1 - k)}, Lo: plot.Values{lo}, Hi: plot.Values{hi}})
		}
	}
	return f
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
