package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/learner"
)

// CrawlerSettings say what a crawler is.
type CrawlerSettings struct {
	Spec
	Name     string         `json:"name"`
	Settings map[string]any `json:"settings"`
	Seed     uint64         `json:"seed"`
	Start    int64          `json:"start"`  // Unix time of the first decision
	Length   float64        `json:"length"` // seconds between decisions; 0 without dates
}

// Crawler is a policy or a learner outside of a run: its owner crawls. It keeps
// the books that a world would keep. It is safe for concurrent use.
type Crawler struct {
	mu sync.Mutex
	body
}

// body is a crawler without its lock.
type body struct {
	entry    *experiments.Entry
	settings any
	level    env.Level
	instance env.Instance
	terms    env.Terms
	agent    env.Agent
	learner  learner.Learner // nil for what does not learn
	view     env.Observed
	crawl    []int
	crawled  []env.Crawled
}

// books are the crawler's own, as they are saved beside the learner's.
type books struct {
	Epoch int       `json:"epoch"`
	Last  []int     `json:"last"`
	Mean  []float64 `json:"mean"`
}

// NewCrawler builds a policy or a learner. It draws from the stream that a run
// under the seed would give it.
func NewCrawler(ctx context.Context, text []byte) (*Crawler, error) {
	var s CrawlerSettings
	if err := decode(text, &s); err != nil {
		return nil, err
	}
	scene, level, err := s.scene(ctx)
	if err != nil {
		return nil, err
	}
	c := &Crawler{body: body{level: level, instance: scene.Instance, terms: scene.Instance.Terms()}}
	c.terms.Start, c.terms.Length = s.Start, s.Length
	if c.entry, err = experiments.Find(s.Name); err != nil {
		return nil, err
	}
	scene.Items = true // the owner may bring items
	if why := c.entry.WhyNot(scene, level); why != "" {
		return nil, fmt.Errorf("%q does not apply with knowledge %s: %s", s.Name, level, why)
	}
	switch {
	case c.entry.Settings != nil:
		if c.settings, err = c.entry.Configure(level, s.Settings); err != nil {
			return nil, err
		}
	case len(s.Settings) > 0:
		return nil, fmt.Errorf("%q has no settings", s.Name)
	}
	known := experiments.Known{Given: c.given(stream.New(s.Seed, stream.Policy, 0)), Marks: scene.Marks, Sigma: scene.Sigma, Seen: scene.Seen()}
	if c.entry.Learns() {
		if c.learner, err = c.entry.Train(known, c.settings); err == nil {
			c.agent = c.learner.Agent()
		}
	} else {
		c.agent, err = c.entry.New(known, c.settings)
	}
	c.begin()
	return c, err
}

func (c *body) given(r *stream.Rand) learner.Given {
	return learner.Given{Instance: c.instance, Terms: c.terms, Level: c.level, Rand: r}
}

// begin opens the books as a world does: all sources were crawled one epoch
// before the first.
func (c *body) begin() {
	n := len(c.instance.Sources)
	c.view.Epoch, c.view.Last, c.view.Mean = 0, make([]int, n), make([]float64, n)
	for i, s := range c.instance.Sources {
		c.view.Last[i], c.view.Mean[i] = -1, s.Gain()
	}
}

// Describe says who the crawler is.
func (c *Crawler) Describe() map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := map[string]any{
		"name": c.entry.Name, "knowledge": c.level.String(), "learns": c.learner != nil, "epoch": c.view.Epoch,
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

// Sources returns the number of sources.
func (c *Crawler) Sources() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.terms.Costs)
}

// Seen is what the owner sees, in place of the books: ages in epochs, and
// states in interest. nil leaves the books as they are.
type Seen struct {
	Age   []int64
	State []float64
}

// look takes over what the owner sees.
func (c *body) look(s Seen) error {
	n := len(c.terms.Costs)
	if s.Age != nil && len(s.Age) != n || s.State != nil && len(s.State) != n {
		return fmt.Errorf("%d ages and %d states for %d sources", len(s.Age), len(s.State), n)
	}
	for i, a := range s.Age {
		if a < 1 {
			return fmt.Errorf("the age of source %d is %d; allowed is 1 or more", i, a)
		}
	}
	for i, x := range s.State {
		if !(x >= 0) || math.IsInf(x, 1) {
			return fmt.Errorf("the state of source %d is %v; allowed is a finite number, 0 or more", i, x)
		}
	}
	if s.State == nil && c.level == env.LevelObserved {
		return errors.New("knowledge observed needs the states of the sources")
	}
	for i, a := range s.Age {
		last := c.view.Epoch - int(a)
		if last != c.view.Last[i] {
			c.view.Last[i] = last
			c.view.Mean[i] = c.instance.Sources[i].MeanState(int(a))
		}
	}
	switch {
	case s.State == nil:
	case c.level == env.LevelModel:
		copy(c.view.Mean, s.State)
	default:
		c.view.State = append(c.view.State[:0], s.State...)
	}
	return nil
}

// Select returns the sources to crawl now. The slice is valid until the next
// call.
func (c *Crawler) Select(s Seen) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.look(s); err != nil {
		return nil, err
	}
	c.crawl = c.agent.Select(c.crawl[:0], &c.view)
	return c.crawl, nil
}

// Crawl is what the crawl of a source brought back; Items is nil where single
// items are not known.
type Crawl struct {
	Source   int64
	Interest float64
	Items    []env.Item // oldest first
}

// Update tells what crawls brought back, and goes on to the next epoch. What is
// seen there may be given.
func (c *Crawler) Update(crawls []Crawl, next Seen) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.terms.Costs)
	c.crawled = c.crawled[:0]
	for k, x := range crawls {
		switch {
		case x.Source < 0 || x.Source >= int64(n):
			return fmt.Errorf("crawl of source %d; allowed are 0 to %d", x.Source, n-1)
		case !(x.Interest >= 0) || math.IsInf(x.Interest, 1):
			return fmt.Errorf("the crawl of source %d brought %v; allowed is a finite interest, 0 or more", x.Source, x.Interest)
		case slices.ContainsFunc(crawls[:k], func(y Crawl) bool { return y.Source == x.Source }):
			return fmt.Errorf("source %d is named twice", x.Source)
		}
		for _, item := range x.Items {
			if !(item.Age >= 0) || !(item.Interest >= 0) || math.IsInf(item.Age+item.Interest, 1) {
				return fmt.Errorf("source %d has an item of age %v and interest %v; allowed are finite numbers, 0 or more", x.Source, item.Age, item.Interest)
			}
		}
		i := int(x.Source)
		c.crawled = append(c.crawled, env.Crawled{Source: i, Age: c.view.Age(i), Interest: x.Interest, Items: x.Items})
	}
	if c.level == env.LevelObserved && next.State == nil {
		return errors.New("knowledge observed needs the states of the sources after the crawls")
	}
	for _, x := range c.crawled {
		c.view.Last[x.Source], c.view.Mean[x.Source] = c.view.Epoch, 0
	}
	for i, s := range c.instance.Sources { // (2): x ← αx + u
		c.view.Mean[i] = s.Factor()*c.view.Mean[i] + s.Gain()
	}
	c.view.Epoch++
	if err := c.look(next); err != nil {
		return err
	}
	c.agent.Update(c.crawled, &c.view)
	return nil
}

// Thresholds writes the learned threshold of each source, in epochs, or with
// knowledge observed as a state.
func (c *Crawler) Thresholds(to []float64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(to) != len(c.terms.Costs) {
		return fmt.Errorf("room for %d thresholds; there are %d", len(to), len(c.terms.Costs))
	}
	switch l := c.learner.(type) {
	case experiments.Aged:
		for i := range to {
			to[i] = l.ThresholdAge(i)
		}
	case experiments.Priced:
		for i := range to {
			to[i] = l.InverseIndex(i)
		}
	default:
		return fmt.Errorf("%q has no thresholds", c.entry.Name)
	}
	return nil
}

// Freeze returns what was learned, as a policy that learns no more, with books
// of its own.
func (c *Crawler) Freeze(seed uint64) (*Crawler, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.learner == nil {
		return nil, fmt.Errorf("%q does not learn", c.entry.Name)
	}
	f := &Crawler{body: body{entry: c.entry, settings: c.settings, level: c.level, instance: c.instance, terms: c.terms}}
	f.agent = c.learner.Frozen(stream.New(seed, stream.Policy, 1))
	f.begin()
	return f, nil
}

// Save returns the contents of a state file, which learner.Load reads.
func (c *Crawler) Save() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.learner == nil {
		return nil, fmt.Errorf("%q does not learn; there is nothing to save", c.entry.Name)
	}
	config, err := toml.Marshal(map[string]any{
		"algorithm": c.entry.Name, "knowledge": string(c.level), "settings": c.settings, "instance": c.instance,
	})
	if err != nil {
		return nil, err
	}
	state, err := json.Marshal(c.learner.State())
	if err != nil {
		return nil, err
	}
	run, err := json.Marshal(books{c.view.Epoch, c.view.Last, c.view.Mean})
	if err != nil {
		return nil, err
	}
	s := learner.Saved{Config: string(config), Start: c.terms.Start, Length: c.terms.Length, State: state, Run: run}
	return s.Encode()
}

// LoadCrawler takes up a learner that was saved in a file, or by train in a
// directory.
func LoadCrawler(path string) (*Crawler, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, learner.StateFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := learner.Decode(data)
	if err == nil {
		var c *Crawler
		if c, err = restored(s); err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

func restored(s *learner.Saved) (*Crawler, error) {
	c := &Crawler{body: body{level: s.Level(), instance: s.Instance(), terms: s.Terms()}}
	var err error
	if c.entry, err = experiments.Find(s.Algorithm()); err != nil {
		return nil, err
	}
	var config struct{ Settings map[string]any }
	if err := toml.Unmarshal([]byte(s.Config), &config); err != nil {
		return nil, err
	}
	if c.settings, err = c.entry.Configure(c.level, config.Settings); err != nil {
		return nil, err
	}
	if c.learner, err = s.Learner(c.terms); err != nil {
		return nil, err
	}
	c.agent = c.learner.Agent()
	c.begin()
	var b books
	if json.Unmarshal(s.Run, &b) == nil && len(b.Last) == len(c.view.Last) && len(b.Mean) == len(c.view.Mean) {
		c.view.Epoch, c.view.Last, c.view.Mean = b.Epoch, b.Last, b.Mean
	}
	return c, nil
}
