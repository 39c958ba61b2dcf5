package replay

import (
	"fmt"

	"ephemera/experiments/plot"
	"ephemera/experiments/report"
)

// curve shows what the learner earns with fewer crawls, and what is earned now.
func (a *Answer) curve() plot.Figure {
	learner, now := plot.Series{Name: "learner"}, plot.Series{Name: "now, with all crawls", Style: plot.Plain}
	for _, s := range a.Budgets {
		learner.X, learner.Y = append(learner.X, s.Crawls*a.Rate), append(learner.Y, s.Interest*a.nowAtEnd)
		now.X, now.Y = append(now.X, s.Crawls*a.Rate), append(now.Y, a.nowAtEnd)
	}
	return plot.Figure{
		Title: "Interest with fewer crawls",
		X:     plot.Axis{Label: "crawls per hour"}, Y: plot.Axis{Label: "interest per hour"},
		Series: []plot.Series{learner, now},
	}
}

// Figure shows what every schedule earns, with intervals over weeks: in colours
// of their own the learner, and what is told the rates.
func (a *Answer) Figure() plot.Figure {
	var names []string
	for _, r := range a.Rows {
		names = append(names, r.Policy)
	}
	f := plot.Figure{Name: "schedules", Title: fmt.Sprintf("%s, %s crawls per hour", a.Name, number(a.Rate)), X: plot.Axis{Label: "interest per hour, with 95 % intervals over weeks"}}
	return report.Dots(f, names, func(k int) (value, lo, hi float64, style int) {
		switch style = 1; names[k] {
		case "learning":
			style = 0
		case "whittle":
			style = plot.Plain
		}
		return a.Rows[k].Interest, a.Rows[k].Interval.Lo, a.Rows[k].Interval.Hi, style
	})
}
