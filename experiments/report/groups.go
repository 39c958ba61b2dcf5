package report

import (
	"maps"
	"slices"
	"strings"

	"ephemera/experiments"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// group is the records of one contender or of one cell of a sweep.
type group struct {
	name    string
	style   int
	records []*experiments.Record
}

// overBudget marks the name of a group that breaks the budget.
const overBudget = " *"

// newBootstrap gives equal intervals for equal records.
func newBootstrap() *stats.Bootstrap { return stats.New(1) }

// series returns the series of a group in a figure. Of many groups those that can
// be told apart are drawn at first.
func (g group) series(f *plot.Figure) *plot.Series {
	s := f.Of(g.name)
	s.Style, s.Hidden = g.style, g.style >= plot.Distinct
	return s
}

// drawCurves draws a figure over the epochs: the mean over the records of each
// group, with its 95 % interval. values returns a value at each point of a curve,
// nil where there is none.
func drawCurves(f plot.Figure, groups []group, values func(r *experiments.Record) []*float64) plot.Figure {
	f.X.Log = true
	boot := newBootstrap()
	for _, g := range groups {
		at := map[int][]float64{}
		for _, r := range g.records {
			for k, v := range values(r) {
				if v != nil {
					at[r.Curve[k].Epoch] = append(at[r.Curve[k].Epoch], *v)
				}
			}
		}
		s := g.series(&f)
		for _, epoch := range slices.Sorted(maps.Keys(at)) {
			addEstimate(s, float64(epoch), boot.Mean(at[epoch]))
		}
	}
	return f
}

// learning draws the learning curves and the regret.
func learning(groups []group) Section {
	mark := ""
	if slices.ContainsFunc(groups, func(g group) bool { return strings.HasSuffix(g.name, overBudget) }) {
		mark = " (* breaks the budget)"
	}
	share := plot.New("learning", "Reward over time"+mark, "epoch", "share of what exact Whittle earns")
	share = drawCurves(share, groups, func(r *experiments.Record) (all []*float64) {
		for _, p := range r.Curve {
			all = append(all, p.OfWhittle)
		}
		return all
	})
	focus(&share)
	crawls := drawCurves(plot.New("learning-crawls", "Crawls over time"+mark, "epoch", "crawls per epoch"), groups, func(r *experiments.Record) (all []*float64) {
		for _, p := range r.Curve {
			all = append(all, &p.Crawls)
		}
		return all
	})
	against := "the bound"
	for _, g := range groups {
		if slices.ContainsFunc(g.records, func(r *experiments.Record) bool { return r.Bound == nil }) {
			against = "exact Whittle"
		}
	}
	regret := plot.New("regret", "Regret against "+against+mark, "epoch", "interest lost so far")
	regret.Y.Log = true
	regret = drawCurves(regret, groups, func(r *experiments.Record) (all []*float64) {
		lost, last := 0., 0
		for _, p := range r.Curve {
			best := p.Whittle
			if against == "the bound" {
				best = *r.Bound
			}
			lost += (best - p.Reward) * float64(p.Epoch-last)
			last = p.Epoch
			sum := lost
			all = append(all, &sum)
		}
		return all
	})
	return Section{
		Title: "Learning",
		Notes: []string{"Each point covers the epochs since the one before; the figure of rewards begins at a thousandth of the epochs, and is scaled to those after the first hundredth. " +
			"Regret is what " + against + " earns in as many epochs less what the policy has earned; a line has a gap where that is not above 0. Bands are 95 % intervals of the mean."},
		Figures: []plot.Figure{share, crawls, regret},
	}
}

// learnedOverExact sets learned thresholds over exact ones.
func learnedOverExact(groups []group) Section {
	out := Section{
		Title: "Learned over exact",
		Notes: []string{"Thresholds are states, in interest; the exact one is where the Whittle index reaches the price of the relaxed problem. " +
			"Mean over seeds; on the dashed line both agree. What lies far from the exact values is out of the picture."},
		Table: &result.Table{Header: []string{"learner and source", "learned threshold, interest", "exact threshold, interest"}},
	}
	boot := newBootstrap()
	f := plot.New("threshold", "Learned over exact threshold", "exact threshold, interest", "learned threshold, interest")
	for _, g := range groups {
		var sources []string
		learned, exact := map[string][]float64{}, map[string]float64{}
		for _, r := range g.records {
			for _, p := range r.Beside {
				if learned[p.Source] == nil {
					sources = append(sources, p.Source)
				}
				learned[p.Source], exact[p.Source] = append(learned[p.Source], p.Learned), p.Exact
			}
		}
		s := g.series(&f)
		s.Kind = plot.Points
		for _, source := range sources {
			mean := boot.Mean(learned[source])
			addEstimate(s, exact[source], mean)
			out.Table.Add(g.name+", "+source, mean.String(), stats.Format(exact[source]))
		}
	}
	addDiagonal(&f)
	out.Figures = []plot.Figure{f}
	return out
}
