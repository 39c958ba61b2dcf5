package report

import (
	"maps"
	"math"
	"slices"

	"ephemera/experiments"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// group is the records of one contender or of one cell of a sweep.
type group struct {
	name    string
	over    bool // it breaks the budget
	style   int
	records []*experiments.Record
}

// series returns the series of a group in a figure.
func (g group) series(f *plot.Figure) *plot.Series {
	s := f.Of(result.Marked(g.name, g.over))
	s.Style, s.Grey = g.style, g.over
	return s
}

// drawCurves draws a figure over the epochs: the mean over the records of each
// group, with its 95 % interval. value returns that at a point of a curve, NaN where
// there is none.
func drawCurves(f plot.Figure, groups []group, value func(r *experiments.Record, k int) float64) plot.Figure {
	f.X.Log = true
	for _, g := range groups {
		at := map[int][]float64{}
		for _, r := range g.records {
			for k, p := range r.Curve {
				if v := value(r, k); !math.IsNaN(v) {
					at[p.Epoch] = append(at[p.Epoch], v)
				}
			}
		}
		s := g.series(&f)
		for _, epoch := range slices.Sorted(maps.Keys(at)) {
			e := stats.EstimateMean(at[epoch])
			s.AddWithin(float64(epoch), e.Value, e.Lo, e.Hi)
		}
	}
	return f
}

// learning draws the learning curves and the regret.
func learning(groups []group) Section {
	mark := ""
	if slices.ContainsFunc(groups, func(g group) bool { return g.over }) {
		mark = " (* breaks the budget)"
	}
	share := plot.New("learning", "Reward over time"+mark, "epoch", "share of what exact Whittle earns")
	share = drawCurves(share, groups, func(r *experiments.Record, k int) float64 {
		return r.Curve[k].OfWhittle.Value()
	})
	focus(&share)
	crawls := plot.New("learning-crawls", "Crawls over time"+mark, "epoch", "crawls per epoch")
	crawls = drawCurves(crawls, groups, func(r *experiments.Record, k int) float64 { return r.Curve[k].Crawls })
	against := "the bound"
	for _, g := range groups {
		// The bound of a recording is of all its epochs, and not of the first of them.
		if slices.ContainsFunc(g.records, func(r *experiments.Record) bool { return r.Bound.IsZero() || r.Fitted }) {
			against = "exact Whittle"
		}
	}
	regret := plot.New("regret", "Regret against "+against+mark, "epoch", "interest lost so far")
	regret.Y.Log = true
	regret = drawCurves(regret, groups, func(r *experiments.Record, k int) float64 {
		lost, last := 0., 0
		for _, p := range r.Curve[:k+1] {
			best := p.Whittle
			if against == "the bound" {
				best = r.Bound.Value()
			}
			lost += (best - p.Reward) * float64(p.Epoch-last)
			last = p.Epoch
		}
		return lost
	})
	return Section{
		Title: "Learning",
		Notes: []string{"Each point covers the epochs since the one before; the figure of rewards begins " +
			"at a thousandth of the epochs, and is scaled to those after the first hundredth. " +
			"Regret is what " + against + " earns in as many epochs less what the policy has earned; " +
			"a line has a gap where that is not above 0. Bands are 95 % intervals of the mean."},
		Figures: []plot.Figure{share, crawls, regret},
	}
}

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

// Against draws a line through a figure of [Dots], at the value of what is compared with.
func Against(f plot.Figure, value float64) plot.Figure {
	line := plot.Guide("", value, -.6, value, float64(len(f.Y.Names))-.4)
	f.Series = append([]plot.Series{line}, f.Series...) // below the points
	return f
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
				if x > last/100 && k < len(v) && !math.IsNaN(v[k]) {
					lo, hi = math.Min(lo, v[k]), math.Max(hi, v[k])
				}
			}
		}
	}
	if plot.Apart(lo, hi) {
		f.X.Lo, f.X.Hi = math.Max(1, last/1000), last
		room := (hi - lo) / 25
		f.Y.Lo, f.Y.Hi = lo-room, hi+room
	}
}
