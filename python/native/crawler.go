package native

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// crawlerSettings say what a crawler is.
type crawlerSettings struct {
	spec
	Name     string
	Settings map[string]any
	Seed     uint64
	Start    int64   // Unix time of the first decision
	Length   float64 // seconds between decisions; 0 without dates
}

// crawler is a policy or a learner outside of a run: its owner crawls.
type crawler struct {
	name     string
	config   string // the text of its config.toml
	level    env.Level
	instance env.Instance
	terms    env.Terms
	agent    env.Agent
	learner  learner.Learner // nil for what does not learn
	// books say when each source was crawled, and hold its mean state.
	books *env.Mean
}

// newCrawler builds a policy or a learner. It draws from the stream that a run
// under the seed would give it.
func newCrawler(text []byte) (*crawler, error) {
	s := crawlerSettings{spec: usual()}
	s.Knowledge = ""
	if err := decode(text, &s); err != nil {
		return nil, err
	}
	entry, err := experiments.Find(s.Name)
	if err != nil {
		return nil, err
	}
	s.Knowledge = cmp.Or(s.Knowledge, entry.FirstLevel())
	scene, err := s.scene(context.Background(), s.Seed)
	if err != nil {
		return nil, err
	}
	c := &crawler{name: s.Name, level: s.Knowledge, instance: scene.Instance}
	set, err := entry.Configure(c.level, s.Settings)
	if err != nil {
		return nil, err
	}
	if why := entry.WhyNot(scene, c.level); why != "" {
		return nil, fmt.Errorf("%q does not apply to %s with knowledge %s: %s", c.name, c.instance.ID, c.level, why)
	}
	if err := c.open(s.Start, s.Length); err != nil {
		return nil, err
	}
	known := experiments.Known{
		Given: learner.Given{Instance: c.instance, Terms: c.terms, Level: c.level, Rand: stream.New(s.Seed, stream.Policy, 0)},
		Marks: scene.Marks,
	}
	if c.agent, c.learner, err = entry.Build(known, set); err != nil {
		return nil, err
	}
	config, err := toml.Marshal(map[string]any{"algorithm": c.name, "knowledge": string(c.level), "settings": set, "instance": c.instance})
	c.config = string(config)
	return c, err
}

// open opens the books of the instance's sources.
func (c *crawler) open(start int64, length float64) (err error) {
	c.terms = c.instance.Terms()
	c.terms.Start, c.terms.Length = start, length
	c.books, err = env.NewMean(c.instance, true)
	return err
}

// describe says who the crawler is.
func (c *crawler) describe() any {
	metrics := map[string]*float64{}
	if c.learner != nil {
		for _, x := range c.learner.Metrics() {
			metrics[x.Name] = result.Ptr(x.Value)
		}
	}
	return map[string]any{
		"name": c.name, "knowledge": c.level, "learns": c.learner != nil, "epoch": c.books.View().Epoch,
		"names": c.terms.Names, "costs": c.terms.Costs, "budget": c.terms.Budget, "metrics": metrics,
	}
}

// call is [Made.Call] about a crawler.
func (c *crawler) call(what string, text []byte, m *Made) (err error) {
	var s struct {
		Crawls []env.Crawled
		State  []float64 // of the sources, with knowledge observed
	}
	if err := decode(text, &s); err != nil {
		return err
	}
	switch what {
	case "describe":
		m.Answer = c.describe()
	case "select":
		m.Answer, err = c.Select(s.State)
	case "update":
		err = c.Update(s.Crawls, s.State)
	case "save":
		m.Answer, err = c.save()
	default:
		err = unknown(what)
	}
	return err
}

// look returns the view, with the true states where these are seen.
func (c *crawler) look(state []float64) (*env.Observed, error) {
	if c.level != env.LevelObserved {
		state = nil
	} else if len(state) != len(c.terms.Costs) {
		return nil, fmt.Errorf("there are %d states for %d sources; with knowledge observed each is needed", len(state), len(c.terms.Costs))
	}
	return &env.Observed{Model: c.books.View().Model, State: state}, nil
}

// Select returns the sources to crawl now.
func (c *crawler) Select(state []float64) ([]int, error) {
	v, err := c.look(state)
	if err != nil {
		return nil, err
	}
	return c.agent.Select([]int{}, v), nil
}

// Update tells what crawls brought back, and goes on to the next epoch, with the
// states that are seen there. What it refuses changes nothing. It fills in the ages
// of the crawls.
func (c *crawler) Update(crawls []env.Crawled, next []float64) error {
	if _, err := c.look(next); err != nil {
		return err
	}
	var sources []int
	for _, x := range crawls {
		if c.learner != nil && c.level == env.LevelOnline && x.Interest > 0 && len(x.Items) == 0 {
			return fmt.Errorf("the crawl of source %d brought %v and names no items; with knowledge online they are needed", x.Source, x.Interest)
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
	v, err := c.look(next)
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
	s := learner.Saved{Config: c.config, Start: c.terms.Start, Length: c.terms.Length, State: state, Run: books}
	data, err := s.Encode()
	return string(data), err
}

// loadCrawler takes up a learner from the contents of a state file.
func loadCrawler(text []byte) (*crawler, error) {
	s, err := learner.Decode(text)
	if err != nil {
		return nil, err
	}
	c := &crawler{name: s.Algorithm(), config: s.Config, level: s.Level(), instance: s.Instance()}
	if err := c.open(s.Start, s.Length); err != nil {
		return nil, err
	}
	v := c.books.View()
	var b env.Model // the books; a run of train leaves others
	if json.Unmarshal(s.Run, &b) == nil && len(b.Last) == len(v.Last) && len(b.Mean) == len(v.Mean) {
		for i, last := range b.Last {
			if last < -1 || last >= b.Epoch || b.Epoch > math.MaxInt32 || !(b.Mean[i] >= 0) {
				return nil, fmt.Errorf("the file is damaged: source %d was crawled in epoch %d of %d and has %v", i, last, b.Epoch, b.Mean[i])
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
