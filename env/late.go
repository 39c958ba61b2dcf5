package env

import (
	"math"
	"slices"
)

// Late returns the agent to whom the interest of an item becomes known only so many
// epochs after it was published. A learner [Agent.WithReport] finds younger items with
// their interest unknown, NaN, and is given it later. Another takes in whole harvests: to
// it a younger item is worth as much as the known ones of its source in the mean, and at
// first as those of the instance, which also says how interest decays. When that mean
// changes, one [Agent.WithRescale] takes that in.
func (a Agent) Late(epochs float64, in Instance) Agent {
	if a.update == nil {
		return a
	}
	type late struct {
		source int
		item   Item
	}
	known := make(map[int][]late) // by the epoch of the decision before which it is
	report, guess := a.report, func(int, float64) float64 { return math.NaN() }
	if report == nil {
		report, guess = a.meanWorths(in)
	}
	b := a
	b.harvestsOnly = false // their worth is known item by item
	b.update = func(crawls []Crawled, next *Observed) {
		var observed []Crawled
		for _, c := range crawls {
			c.Interest, c.Items = 0, slices.Clone(c.Items)
			for j := range c.Items {
				it := &c.Items[j]
				if wait := int(math.Ceil(epochs - it.Age)); wait > 0 {
					at := next.Epoch - 1 + wait
					known[at] = append(known[at], late{c.Source, *it})
					it.Interest = guess(c.Source, it.Age)
				} else if a.report == nil {
					report(c.Source, *it)
				}
				if !math.IsNaN(it.Interest) {
					c.Interest += it.Interest
				}
			}
			observed = append(observed, c)
		}
		a.update(observed, next)
		for _, x := range known[next.Epoch] {
			report(x.source, x.item)
		}
		delete(known, next.Epoch)
	}
	return b
}

// faintest is the share of an item's interest that has to be left so that its worth when it was
// published follows from it. With a half-life of four hours that is so for 166 days.
const faintest = 1e-300

// meanWorths returns what takes in the known items of each source and what they were
// worth in the mean when they were published, and what tells from that the interest of
// one of any age. The mean of the instance counts as one item more of each source.
func (a Agent) meanWorths(in Instance) (report func(i int, it Item), guess func(i int, age float64) float64) {
	var inflow, rate float64
	for _, s := range in.Sources {
		inflow, rate = inflow+s.Rate*s.Interest, rate+s.Rate
	}
	n := len(in.Sources)
	sum := slices.Repeat([]float64{inflow / max(rate, math.SmallestNonzeroFloat64)}, n)
	items := slices.Repeat([]float64{1}, n)
	report = func(i int, it Item) {
		left := math.Exp(-in.Sources[i].Decay * it.Age)
		if left < faintest {
			return // what is left of it does not say what it was worth
		}
		before := sum[i] / items[i]
		sum[i] += it.Interest / left
		items[i]++
		if a.rescale != nil && before > 0 {
			a.rescale(i, sum[i]/items[i]/before)
		}
	}
	return report, func(i int, age float64) float64 { return sum[i] / items[i] * math.Exp(-in.Sources[i].Decay*age) }
}
