package report

import (
	"math"
	"slices"

	"ephemera/experiments/plot"
	"ephemera/experiments/stats"
)

// Dots draws a value of each row from the first on top down, with its interval.
// A value that is not finite is left out.
func Dots(f plot.Figure, names []string, at func(k int) (value, lo, hi float64, style int)) plot.Figure {
	for k := range slices.Backward(names) {
		f.Y.Names = append(f.Y.Names, names[k])
	}
	for k := range names {
		v, lo, hi, style := at(k)
		s := plot.Series{Kind: plot.Points, Style: style}
		s.AddWithin(v, float64(len(names)-1-k), lo, hi)
		f.Series = append(f.Series, s)
	}
	return f
}

// addDiagonal adds the line on which both axes agree; these are logarithmic where
// the exact values are far apart. What lies farther from the exact values than half
// of what they span is out of the picture: what a learner came to may be many times
// as large, and would crush the rest.
func addDiagonal(f *plot.Figure) {
	var x []float64
	for _, s := range f.Series {
		x = append(x, s.X...)
	}
	if len(x) == 0 {
		return
	}
	lo, hi := slices.Min(x), slices.Max(x)
	f.Y.Lo, f.Y.Hi = lo-(hi-lo)/2, hi+(hi-lo)/2
	if lo > 0 && hi > 20*lo {
		f.X.Log, f.Y.Log = true, true
		f.Y.Lo, f.Y.Hi = lo/4, 4*hi
	}
	f.Series = append([]plot.Series{plot.Guide("learned = exact", lo, lo, hi, hi)}, f.Series...)
}

// focus lets the x axis begin at a thousandth of the epochs and the y axis span
// what series reach after the first hundredth, so that the first epochs do not
// crush the rest.
func focus(f *plot.Figure) {
	last := 0.
	for _, s := range f.Series {
		for _, x := range s.X {
			last = math.Max(last, x)
		}
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, s := range f.Series {
		for k, x := range s.X {
			for _, v := range []plot.Values{s.Y, s.Lo, s.Hi} {
				if !s.Hidden && x > last/100 && k < len(v) && !math.IsNaN(v[k]) {
					lo, hi = math.Min(lo, v[k]), math.Max(hi, v[k])
				}
			}
		}
	}
	if lo < hi {
		f.X.Lo, f.X.Hi = math.Max(1, last/1000), last
		room := (hi - lo) / 25
		f.Y.Lo, f.Y.Hi = lo-room, hi+room
	}
}

// addEstimate appends an estimate to a series.
func addEstimate(s *plot.Series, x float64, e stats.Estimate) { s.AddWithin(x, e.Value, e.Lo, e.Hi) }
