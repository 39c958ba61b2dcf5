package report

import (
	"slices"

	"ephemera/experiments/plot"
)

// mostRows is how many sources a raster shows.
const mostRows = 60

// Raster draws which source was crawled at which epochs: of the sources that were
// crawled at most 60. The styles follow the order; without one, all are the same.
func Raster(names []string, at [][]float64, order []int) plot.Figure {
	f := plot.Figure{Name: "crawls", Title: "Crawls", X: plot.Axis{Label: "epoch"}, Y: plot.Axis{Label: "source"}}
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
