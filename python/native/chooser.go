package native

import (
	"ephemera/baselines"
	"ephemera/env"
)

// chooser picks the best by score within the budget.
type chooser struct{ sel *baselines.Selector }

func (c *chooser) choose(dst []int, t env.Terms, score []float64) []int {
	if c.sel == nil {
		c.sel = baselines.NewSelector(t.Costs, t.Budget)
	}
	return c.sel.Top(dst, score)
}
