package native

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"

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
	player
	Seed   uint64
	Start  int64   // Unix time of the first decision
	Length float64 // seconds between decisions; 0 without dates
}

// crawler is a policy or a learner outside of a run: its owner crawls.
type crawler struct {
	name     string
	settings any    // of a learner
	config   string // of a learner that was loaded, the text of its config.toml
	level    env.Level
	instance env.Instance
	terms    env.Terms
	agent    env.Agent
	learner  learner.Learner // nil for what does not learn

	mu sync.Mutex // held by calls
	// books say when each source was crawled, and hold its mean state.
	books *env.Mean
	view  env.Observed
	crawl []int
}

// maxInterest bounds the interest of a crawl, so that it can be added up and squared.
const maxInterest = 1e100

// newCrawler builds a policy or a learner. It draws from the stream that a run
// under the seed would give it.
func newCrawler(ctx context.Context, text []byte) (*crawler, error) {
	s := crawlerSettings{spec: usual()}
	s.Knowledge = ""
	if err := decode(text, &s); err != nil {
		return nil, err
	}
	if e, err := experiments.Find(s.Name); err == nil && s.Knowledge == "" {
		s.Knowledge = e.FirstLevel()
	}
	scene, err := s.scene(ctx, s.Seed)
	if err != nil {
		return nil, err
	}
	c := &crawler{name: s.Name, level: s.Knowledge, instance: scene.Instance}
	entry, set, err := s.find(scene, s.Knowledge)
	if err != nil {
		return nil, err
	}
	if err := c.open(s.Start, s.Length); err != nil {
		return nil, err
	}
	known := experiments.Known{
		Given: learner.Given{Instance: c.instance, Terms: c.terms, Level: c.level, Rand: stream.New(s.Seed, stream.Policy, 0)},
		Marks: scene.Marks,
	}
	c.settings = set
	c.agent, c.learner, err = entry.Build(known, c.settings)
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
func (c *crawler) describe() map[string]any {
	m := map[string]any{
		"name": c.name, "knowledge": c.level, "learns": c.learner != nil, "epoch": c.books.View().Epoch,
		"names": c.terms.Names, "costs": c.terms.Costs, "budget": c.terms.Budget,
	}
	if c.learner != nil {
		metrics := map[string]float64{}
		for _, x := range c.learner.Metrics() {
			if !math.IsNaN(x.Value) && !math.IsInf(x.Value, 0) {
				metrics[x.Name] = x.Value
			}
		}
		m["metrics"] = metrics
	}
	return m
}

// call is [Call] about a crawler.
func (c *crawler) call(what string, in []float64, m *Made) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.learner == nil && (what == "save" || what == "freeze") {
		return fmt.Errorf("%q does not learn", c.name)
	}
	switch what {
	case "describe":
		m.Answer = c.describe()
	case "select":
		var pick []int
		pick, err = c.Select(in)
		for _, i := range pick {
			m.Numbers = append(m.Numbers, float64(i))
		}
	case "update":
		crawls, rest := readCrawls(in)
		err = c.Update(crawls, rest)
	case "thresholds":
		m.Answer, err = c.thresholds()
	case "save":
		m.Answer, err = c.save()
	case "freeze":
		err = m.crawler(c.freeze())
	default:
		err = fmt.Errorf("unknown call %q", what)
	}
	return err
}

// readCrawls reads how many crawls there are, source, interest and number of
// items of each, and age and interest of each item. It returns what is behind them.
func readCrawls(in []float64) ([]env.Crawled, []float64) {
	crawls := make([]env.Crawled, int(in[0]))
	items := in[1+3*len(crawls):]
	for k := range crawls {
		row := in[1+3*k:]
		crawls[k] = env.Crawled{Source: int(row[0]), Interest: row[1]}
		for range int(row[2]) {
			crawls[k].Items = append(crawls[k].Items, env.Item{Age: items[0], Interest: items[1]})
			items = items[2:]
		}
	}
	return crawls, items
}

// look returns the view, with the true states where these are seen.
func (c *crawler) look(state []float64) (*env.Observed, error) {
	if c.level != env.LevelObserved {
		state = nil
	} else if len(state) != len(c.terms.Costs) {
		return nil, fmt.Errorf("there are %d states for %d sources; with knowledge observed each is needed", len(state), len(c.terms.Costs))
	}
	for i, x := range state {
		if !(x >= 0) || math.IsInf(x, 1) {
			return nil, fmt.Errorf("the state of source %d is %v; allowed is a finite number, 0 or more", i, x)
		}
	}
	c.view = env.Observed{Model: c.books.View().Model, State: state}
	return &c.view, nil
}

// Select returns the sources to crawl now.
func (c *crawler) Select(state []float64) ([]int, error) {
	v, err := c.look(state)
	if err == nil {
		c.crawl = c.agent.Select(c.crawl[:0], v)
	}
	return c.crawl, err
}

// Update tells what crawls brought back, and goes on to the next epoch, with the
// states that are seen there. What it refuses changes nothing. It fills in the ages
// of the crawls.
func (c *crawler) Update(crawls []env.Crawled, next []float64) error {
	if _, err := c.look(next); err != nil {
		return err
	}
	finite := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	c.crawl = c.crawl[:0]
	for _, x := range crawls {
		if !finite(x.Interest) || x.Interest > maxInterest {
			return fmt.Errorf("the crawl of source %d brought %v; allowed is 0 to %g", x.Source, x.Interest, maxInterest)
		}
		if c.learner != nil && c.level == env.LevelOnline && x.Interest > 0 && len(x.Items) == 0 {
			return fmt.Errorf("the crawl of source %d brought %v and names no items; with knowledge online they are needed", x.Source, x.Interest)
		}
		for _, item := range x.Items {
			if !finite(item.Age) || !finite(item.Interest) || item.Interest > maxInterest {
				return fmt.Errorf("source %d has an item of age %v and interest %v; allowed are finite ages, 0 or more, and 0 to %g", x.Source, item.Age, item.Interest, maxInterest)
			}
		}
		c.crawl = append(c.crawl, x.Source)
	}
	booked, err := c.books.Step(c.crawl)
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

// thresholds returns the learned threshold of each source, in epochs, or with
// knowledge observed as a state; nil stands for never.
func (c *crawler) thresholds() ([]*float64, error) {
	to := make([]*float64, len(c.terms.Costs))
	switch l := c.learner.(type) {
	case experiments.Aged:
		for i := range to {
			to[i] = result.Ptr(l.ThresholdAge(i))
		}
	case experiments.Stated:
		for i := range to {
			to[i] = result.Ptr(l.InverseIndex(i))
		}
	default:
		return nil, fmt.Errorf("%q has no thresholds", c.name)
	}
	return to, nil
}

// freeze returns what was learned, as a policy that learns no more, with books
// of its own.
func (c *crawler) freeze() (*crawler, error) {
	f := &crawler{name: c.name, level: c.level, instance: c.instance, agent: c.learner.Frozen()}
	return f, f.open(c.terms.Start, c.terms.Length)
}

// save returns the contents of a state file, which learner.Load reads.
func (c *crawler) save() (string, error) {
	s := learner.Saved{Config: c.config, Start: c.terms.Start, Length: c.terms.Length}
	if c.config == "" {
		config, err := toml.Marshal(map[string]any{"algorithm": c.name, "knowledge": string(c.level), "settings": c.settings, "instance": c.instance})
		if err != nil {
			return "", err
		}
		s.Config = string(config)
	}
	var err error
	if s.State, err = json.Marshal(c.learner.State()); err != nil {
		return "", err
	}
	if s.Run, err = json.Marshal(c.books.View().Model); err != nil {
		return "", err
	}
	data, err := s.Encode()
	return string(data), err
}

// loadCrawler takes up a learner that was saved in a file, or by train in a
// directory.
func loadCrawler(text []byte) (*crawler, error) {
	s, err := loadSaved(text)
	if err != nil {
		return nil, err
	}
	return restored(s)
}

func restored(s *learner.Saved) (*crawler, error) {
	c := &crawler{name: s.Algorithm(), config: s.Config, level: s.Level(), instance: s.Instance()}
	err := c.open(s.Start, s.Length)
	if err != nil {
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
