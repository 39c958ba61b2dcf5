package report

import (
	"maps"
	"math"
	"slices"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/plot"
)

// Of large instances few sources are drawn, evenly spaced, and of the crawls
// those of so many sources.
const (
	drawnSources   = 8
	crawledSources = 60
)

const perUnit = "interest per budget unit"

// training is what a learner has learned on an instance.
type training struct {
	env.Instance
	rec     *experiments.Record
	relaxed index.Relaxed // optimum with the budget kept on average only
	drawn   []int         // sources
	ages    [][]ageAt     // of each source before its crawls, the first excepted
}

// ageAt is how many epochs a source had not been crawled for, at an epoch at
// which it was.
type ageAt struct{ epoch, age int }

// drawTraining draws what was learned: index curves with thresholds, content and
// crawls over the last epochs, and what a budget unit is worth. What is exact is
// that of the mean dynamics, also where the learner was in another world.
func drawTraining(in env.Instance, rec *experiments.Record) []Section {
	t := &training{Instance: in, rec: rec, relaxed: index.Relax(in), ages: make([][]ageAt, len(in.Sources))}
	n := min(len(in.Sources), drawnSources)
	for k := range n {
		t.drawn = append(t.drawn, k*len(in.Sources)/n)
	}
	last := map[int]int{} // crawl of each source
	for _, c := range rec.Crawls {
		epoch, source := c[0], c[1]
		if before, crawled := last[source]; crawled {
			t.ages[source] = append(t.ages[source], ageAt{epoch, epoch - before})
		}
		last[source] = epoch
	}
	section := func(title, note string, figures ...plot.Figure) Section {
		return Section{Title: title, Notes: []string{note}, Figures: figures}
	}
	return []Section{
		section("Index", "The Whittle index over the age. A source is worth a crawl from the age on at which its curve reaches the price. Points are the learned thresholds.", t.indices()),
		section("Crawls", "Each point is a crawl by what was learned, in the last epochs.", t.crawls()),
		section("Content", "What waits at a source on average, with these crawls.", t.content()),
		section("Price", "Each point of a learned price is at the end of so many epochs. The clearing price of an epoch is the lowest index among the sources that were crawled in it: what the last budget unit bought.", t.learnedPrice(), t.clearingPrice()),
		section("Value of the budget", "What one more budget unit per epoch is worth is the price of the relaxed problem, the slope of its optimum.", t.budgets()...),
	}
}

// name returns the name of a source in legends.
func (t *training) name(i int) string { return "source " + experiments.SourceName(t.Instance, i) }

// relaxedPrice is the line at the price of the relaxed problem.
func (t *training) relaxedPrice(from, to float64) plot.Series {
	return plot.Guide("price of the relaxed problem", from, t.relaxed.Price, to, t.relaxed.Price)
}

// indices draws the index of sources over their age, with the learned thresholds.
func (t *training) indices() plot.Figure {
	f := plot.New("index-by-age", "Whittle index, learned thresholds as points", "age, epochs", "index, "+perUnit)
	const never = 100_000
	last := 10
	var thresholds []plot.Series
	for k, i := range t.drawn {
		src := t.Sources[i]
		for _, p := range t.rec.Beside {
			if p.What != "threshold" || p.Source != src.Name {
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
	for _, i := range t.drawn {
		curve := f.Of(t.name(i))
		for age := 1; age <= last; age = max(age+1, age*103/100) {
			curve.Add(float64(age), index.WhittleAtAge(t.Sources[i], age))
		}
	}
	f.Series = append(f.Series, t.relaxedPrice(1, float64(last)))
	f.Series = append(f.Series, thresholds...)
	return f
}

// crawls draws which source was crawled when.
func (t *training) crawls() plot.Figure {
	f := plot.New("crawls", "Crawls", "epoch", "source")
	row := map[int]int{} // of a source
	for i := range t.Sources {
		if len(t.ages[i]) > 0 && len(row) < crawledSources {
			row[i] = len(row)
			f.Y.Names = append(f.Y.Names, experiments.SourceName(t.Instance, i))
		}
	}
	s := plot.Series{Kind: plot.Points}
	for _, c := range t.rec.Crawls {
		if k, drawn := row[c[1]]; drawn {
			s.Add(float64(c[0]), float64(k))
		}
	}
	f.Series = []plot.Series{s}
	return f
}

// content draws what waits at sources.
func (t *training) content() plot.Figure {
	f := plot.New("content", "Content over time", "epoch", "interest that waits")
	for _, i := range t.drawn {
		s := f.Of(t.name(i))
		for _, at := range t.ages[i] {
			for age := 1; age <= at.age; age++ {
				s.Add(float64(at.epoch-at.age+age), t.Sources[i].MeanState(age))
			}
		}
	}
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

// clearingPrice draws the lowest index that was crawled in each epoch.
func (t *training) clearingPrice() plot.Figure {
	lowest := map[int]float64{}
	for i, all := range t.ages {
		for _, at := range all {
			worth := index.WhittleAtAge(t.Sources[i], at.age)
			if v, ok := lowest[at.epoch]; !ok || worth < v {
				lowest[at.epoch] = worth
			}
		}
	}
	f := plot.New("price", "Clearing price", "epoch", perUnit)
	clearing := plot.Series{Name: "lowest index that was crawled", Kind: plot.Steps}
	for _, epoch := range slices.Sorted(maps.Keys(lowest)) {
		clearing.Add(float64(epoch), lowest[epoch])
	}
	f.Series = []plot.Series{clearing}
	if n := len(clearing.X); n > 0 {
		f.Series = append(f.Series, t.relaxedPrice(clearing.X[0], clearing.X[n-1]))
	}
	return f
}

// budgets solves the relaxed problem for other budgets: from the dearest crawl,
// below which a source would drop out, to all sources at every epoch.
func (t *training) budgets() []plot.Figure {
	var lo, hi float64
	for _, x := range t.Sources {
		lo, hi = math.Max(lo, x.Cost), hi+x.Cost
	}
	value := plot.New("value", "Value of an extra crawl per epoch", "budget, budget units per epoch", perUnit)
	bound := plot.New("bound", "What a budget can bring", "budget, budget units per epoch", "interest per epoch")
	log := hi > 50*lo
	value.X.Log, bound.X.Log = log, log
	price := plot.Series{Name: "worth of one more", Kind: plot.Steps}
	most := plot.Series{Name: "optimum of the relaxed problem", Style: 1}
	other := t.Instance
	const points = 100
	for k := range points {
		share := float64(k) / (points - 1)
		other.Budget = lo + share*(hi-lo)
		if log {
			other.Budget = math.Min(hi, lo*math.Pow(hi/lo, share))
		}
		r := index.Relax(other)
		price.Add(other.Budget, r.Price)
		most.Add(other.Budget, r.Bound)
	}
	value.Series = []plot.Series{price, {Name: "this budget", Kind: plot.Points, Style: 3, X: plot.Values{t.Budget}, Y: plot.Values{t.relaxed.Price}}}
	bound.Series = []plot.Series{most, {Name: "learned", Kind: plot.Points, Style: 3, X: plot.Values{t.Budget}, Y: plot.Values{t.rec.Learned.Reward}}}
	return []plot.Figure{value, bound}
}
