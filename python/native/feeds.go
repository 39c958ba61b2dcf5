package native

import (
	"math"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/learner"
)

// newFeeds builds a crawler of sources that come and go. Times are dates, and lengths
// of time nanoseconds.
func newFeeds(start time.Time, o learner.CrawlerOptions, settings map[string]any) (functions, error) {
	e, err := experiments.Find(o.Learner)
	if err != nil {
		return nil, err
	}
	if o.Settings, err = e.Configure(env.LevelOnline, settings); err != nil {
		return nil, err
	}
	return feeds(learner.NewCrawler(start, o))
}

// loadFeeds takes up a crawler from the contents of a state file.
func loadFeeds(text string) (functions, error) {
	s, err := learner.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	return feeds(s.Crawler())
}

// feeds are the functions of a crawler.
func feeds(c *learner.Crawler, err error) (functions, error) {
	if err != nil {
		return nil, err
	}
	// later has items of worth −1 be told later.
	later := func(items []learner.Item) []learner.Item {
		for k := range items {
			if items[k].Worth == -1 {
				items[k].Worth = math.NaN()
			}
		}
		return items
	}
	return functions{
		"add": c.Add, "remove": c.Remove, "budget": c.SetBudget, "belief": c.Belief, "length": c.Len, "select": c.Select,
		"update": func(x learner.Crawl) error {
			x.Items = later(x.Items)
			return c.Update(x)
		},
		"report": func(source string, found time.Time, items []learner.Item) error {
			return c.Report(source, found, later(items)...)
		},
		"save": func() (string, error) {
			var state strings.Builder
			err := c.Save(&state)
			return state.String(), err
		},
	}, nil
}
