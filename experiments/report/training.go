package report

import (
	"math"
	"slices"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/plot"
)

// drawnSources is how many sources of a large instance are drawn.
const drawnSources = 8

const perUnit = "interest per budget unit"

// training is what a learner has learned on an instance.
type training struct {
	env.Instance
	rec     *experiments.Record
	relaxed index.Relaxed // optimum with the budget kept on average only
}

// drawTraining draws what was learned: index curves with thresholds, the price while
// learning, and what a budget unit is worth. What is exact is that of the mean
// dynamics, also where the learner was in another world.
func drawTraining(in env.Instance, rec *experiments.Record) []Section {
	t := &training{in, rec, index.Relax(in)}
	section := func(title, note string, figure plot.Figure) Section {
		return Section{Title: title, Notes: []string{note}, Figures: []plot.Figure{figure}}
	}
	return []Section{
		section("Index", "The Whittle index over the age. A source is worth a crawl from the age on at which its curve reaches the price. Points are the learned thresholds.", t.indices()),
		section("Price", "Each point of a learned price is at the end of so many epochs.", t.learnedPrice()),
		section("Value of the budget", "What one more budget unit per epoch is worth is the slope of the line, the price of the relaxed problem.", t.budgets()),
	}
}

// relaxedPrice is the line at the price of the relaxed problem.
func (t *training) relaxedPrice(from, to float64) plot.Series {
	return plot.Guide("price of the relaxed problem", from, t.relaxed.Price, to, t.relaxed.Price)
}

// indices draws the index of sources over their age, with the learned thresholds; of
// many sources those of a few, evenly spaced.
func (t *training) indices() plot.Figure {
	f := plot.New("index-by-age", "Whittle index, learned thresholds as points", "age, epochs", "index, "+perUnit)
	const never = 100_000
	last := 10
	var thresholds []plot.Series
	var drawn []env.Source
	for k := range min(len(t.Sources), drawnSources) {
		src := t.Sources[k*len(t.Sources)/min(len(t.Sources), drawnSources)]
		drawn = append(drawn, src)
		for _, p := range t.rec.Beside {
			if p.Source != src.Name {
				continue
			}
			age := index.FirstAge(0, never, func(age int) bool { return src.MeanState(age) >= p.Learned })
			if age >= never {
				continue
			}
			s := plot.Series{Kind: plot.Points, Style: k}
			s.Add(float64(age), index.WhittleAtAge(src, age))
			thresholds = append(thresholds, s)
			last = max(last, age+age/4)
		}
	}
	f.X.Log = last > 60
	for _, src := range drawn {
		curve := f.Of("source " + src.Name)
		for age := 1; age <= last; age = max(age+1, age*103/100) {
			curve.Add(float64(age), index.WhittleAtAge(src, age))
		}
	}
	f.Series = append(f.Series, t.relaxedPrice(1, float64(last)))
	f.Series = append(f.Series, thresholds...)
	return f
}

// learnedPrice draws the price of a learner while it learned.
func (t *training) learnedPrice() plot.Figure {
	f := plot.New("learning-price", "Price while learning", "epoch", perUnit)
	f.X.Log = true
	k := slices.Index(t.rec.Metrics, "price")
	if k < 0 {
		return f // it learns none
	}
	learned := f.Of("learned price")
	for _, p := range t.rec.Curve {
		learned.Add(float64(p.Epoch), p.Own[k])
	}
	f.Series = append(f.Series, t.relaxedPrice(1, learned.X[len(learned.X)-1]))
	return f
}

// budgets draws what the relaxed problem brings with other budgets: from the dearest
// crawl, below which a source would drop out, to all sources at every epoch.
func (t *training) budgets() plot.Figure {
	var lo, hi float64
	for _, x := range t.Sources {
		lo, hi = math.Max(lo, x.Cost), hi+x.Cost
	}
	f := plot.New("bound", "What a budget can bring", "budget, budget units per epoch", "interest per epoch")
	f.X.Log = hi > 50*lo
	other := t.Instance
	const points = 100
	for k := range points {
		share := float64(k) / (points - 1)
		other.Budget = lo + share*(hi-lo)
		if f.X.Log {
			other.Budget = math.Min(hi, lo*math.Pow(hi/lo, share))
		}
		f.Of("optimum of the relaxed problem").Add(other.Budget, index.Relax(other).Bound)
	}
	f.Series = append(f.Series, plot.Series{Name: "learned", Kind: plot.Points, Style: 3, X: plot.Values{t.Budget}, Y: plot.Values{t.rec.Learned.Reward}})
	return f
}
