package env

import (
	"math"
	"slices"
)

// Late returns the agent to whom the interest of an item becomes known only so many
// epochs after it was published. In what a crawl brings back it is unknown, NaN, if the
// item is younger, and told later to an agent that is a [Reporter].
func (a Agent) Late(epochs float64) Agent {
	if a.update == nil {
		return a
	}
	type late struct {
		source int
		item   Item
	}
	known := make(map[int][]late) // by the epoch of the decision before which it is
	b := a
	b.update = func(crawls []Crawled, next *Observed) {
		var told []Crawled
		for _, c := range crawls {
			c.Interest, c.Items = 0, slices.Clone(c.Items)
			for j := range c.Items {
				it := &c.Items[j]
				if wait := int(math.Ceil(epochs - it.Age)); wait > 0 {
					at := next.Epoch - 1 + wait
					known[at] = append(known[at], late{c.Source, *it})
					it.Interest = math.NaN()
				} else {
					c.Interest += it.Interest
				}
			}
			told = append(told, c)
		}
		a.update(told, next)
		for _, x := range known[next.Epoch] {
			if a.report != nil {
				a.report(x.source, x.item)
			}
		}
		delete(known, next.Epoch)
	}
	return b
}
