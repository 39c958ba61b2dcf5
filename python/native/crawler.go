package native

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// crawler is a policy or a learner outside of a run: its owner crawls.
type crawler struct {
	name    string
	config  string // the text of its config.toml
	level   env.Level
	terms   env.Terms
	costly  bool // interest may be below 0: a source has the law delay
	agent   env.Agent
	learner learner.Learner // nil for what does not learn
	// books say when each source was crawled, and hold its mean state.
	books *env.Mean
}

// newCrawler builds the policy or the learner of a run.
func newCrawler(run experiments.Run) (*crawler, error) {
	r, err := resolve(new(experiments.Engine), run, run.Seed)
	if err != nil {
		return nil, err
	}
	in := r.Scene.Instance
	c := &crawler{
		name:   strings.TrimSuffix(r.Algorithm(), "@"+string(r.Level)),
		level:  r.Level,
		terms:  in.Terms(),
		costly: slices.ContainsFunc(in.Sources, env.Source.Unbounded),
	}
	if c.books, err = newBooks(in); err != nil {
		return nil, err
	}
	if c.agent, c.learner, err = r.Build(c.terms); err != nil {
		return nil, err
	}
	c.config, err = r.SavedConfig()
	return c, err
}

// newBooks opens the books of an instance. Its owner reports no crawl that has failed.
func newBooks(in env.Instance) (*env.Mean, error) {
	in.PerHost, in.Sources = 0, slices.Clone(in.Sources)
	for i := range in.Sources {
		in.Sources[i].Fails = 0
	}
	return env.NewMean(in, true)
}

func (c *crawler) functions() functions {
	return functions{"describe": c.describe, "select": c.selectSources, "update": c.update, "save": c.save}
}

// describe says what the crawler is.
func (c *crawler) describe() map[string]any {
	metrics := map[string]result.Ratio{}
	if c.learner != nil {
		for _, x := range c.learner.Metrics() {
			metrics[x.Name] = result.RatioOf(x.Value)
		}
	}
	return map[string]any{
		"name": c.name, "knowledge": c.level, "learns": c.learner != nil, "epoch": c.books.View().Epoch,
		"names": c.terms.Names, "costs": c.terms.Costs, "budget": c.terms.Budget, "costly": c.costly,
		"metrics": metrics,
	}
}

// observe returns the view, with the true states where these are seen.
func (c *crawler) observe(state []float64) (*env.Observed, error) {
	if c.level != env.LevelObserved {
		state = nil
	} else if len(state) != len(c.terms.Costs) {
		return nil, fmt.Errorf("there are %d states for %d sources; with knowledge observed each is needed",
			len(state), len(c.terms.Costs))
	}
	return &env.Observed{Model: c.books.View().Model, State: state}, nil
}

// selectSources returns the sources to crawl now.
func (c *crawler) selectSources(state []float64) ([]int, error) {
	v, err := c.observe(state)
	if err != nil {
		return nil, err
	}
	return c.agent.Select(nil, v), nil
}

// update takes in what crawls brought back, and goes on to the next epoch, with the
// states that are seen there. What it refuses changes nothing. It fills in the ages
// of the crawls.
func (c *crawler) update(crawls []env.Crawled, next []float64) error {
	if _, err := c.observe(next); err != nil {
		return err
	}
	var sources []int
	for _, x := range crawls {
		if c.learner != nil && c.level == env.LevelOnline && x.Interest != 0 && len(x.Items) == 0 {
			return fmt.Errorf("the crawl of source %d brought %v and names no items; "+
				"with knowledge online they are needed", x.Source, x.Interest)
		}
		sources = append(sources, x.Source)
	}
	booked, err := c.books.Step(sources)
	if err != nil {
		return err
	}
	for k := range booked {
		crawls[k].Age = booked[k].Age
	}
	v, err := c.observe(next)
	c.agent.Update(crawls, v)
	return err
}

// save returns the contents of a state file, which learner.Load reads.
func (c *crawler) save() (string, error) {
	state, err := json.Marshal(c.learner.State())
	if err != nil {
		return "", err
	}
	books, err := json.Marshal(c.books.View().Model)
	if err != nil {
		return "", err
	}
	s := learner.Saved{
		Config: c.config, Start: c.terms.Start, Length: c.terms.Length, Objective: c.terms.Objective,
		State: state, Run: books,
	}
	data, err := s.Encode()
	return string(data), err
}

// loadCrawler takes up a learner from the contents of a state file.
func loadCrawler(text string) (*crawler, error) {
	s, err := learner.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	c := &crawler{
		name: s.Algorithm(), config: s.Config, level: s.Level(), terms: s.Terms(),
		costly: slices.ContainsFunc(s.Instance().Sources, env.Source.Unbounded),
	}
	if c.books, err = newBooks(s.Instance()); err != nil {
		return nil, err
	}
	v := c.books.View()
	var b env.Model // the books; a run of train leaves others
	if json.Unmarshal(s.Run, &b) == nil && len(b.Last) == len(v.Last) && len(b.Mean) == len(v.Mean) {
		for i, last := range b.Last {
			if last < -1 || last >= b.Epoch || b.Epoch > math.MaxInt32 || b.Mean[i] < 0 && !c.costly {
				return nil, fmt.Errorf("the file is damaged: source %d was crawled in epoch %d of %d and has %v",
					i, last, b.Epoch, b.Mean[i])
			}
		}
		v.Epoch = b.Epoch
		copy(v.Last, b.Last)
		copy(v.Mean, b.Mean)
	}
	if c.learner, err = s.Learner(c.terms); err != nil {
		return nil, err
	}
	c.agent = c.learner.Agent()
	return c, nil
}

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
	// items of worth −1 are given later.
	later := func(items []learner.Item) []learner.Item {
		for k := range items {
			if w := items[k].Worth; w != nil && *w == -1 {
				*w = math.NaN()
			}
		}
		return items
	}
	return functions{
		"add": c.Add, "remove": c.Remove, "budget": c.SetBudget,
		"belief": c.Belief, "length": c.Len, "select": c.Select, "ping": c.Ping,
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
