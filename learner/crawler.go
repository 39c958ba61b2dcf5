package learner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"ephemera/baselines/ring"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/internal/check"
)

// Crawler is a learner for a program that crawls: sources have names and come and go,
// crawls are asked for when there is room and reported when they are done, in any order
// and also of sources that nobody selected. It is a state machine: times are handed
// in, a crawl that is reported late counts as one of the latest time, and Select follows a
// clock that is set back. It is not safe for concurrent use.
//
// The clock is cut into epochs. At the first call of an epoch the learner takes up
// what the crawls since the last one brought back, and picks the sources of the
// epoch; Select hands them out.
type Crawler struct {
	opt     CrawlerOptions
	lived   string // what life returns, once it was asked for
	lines   strictly
	kind    *Kind
	learner Learner
	open    env.DynamicLearner // learner
	items   env.ItemLearner    // learner too, if it is one; nil otherwise, and never under freshness

	start   time.Time
	origin  int64     // Unix time of the start, before any clock was set
	now     time.Time // the latest
	place   map[string]int
	src     []place
	free    []int   // places without a source
	rules   *Source // of the place that was given some last
	groups  map[string]int32
	members []int   // sources of each group
	idle    []int32 // groups without any
	view    env.Online
	limits  env.Limits
	overdue *ring.Ring    // sources by the epoch at which their longest interval ends, or the next one if it has ended
	carries bool          // of the budget, what is left
	left    float64       // likewise
	plan    []int         // sources of this epoch that are still to be handed out
	done    []env.Crawled // of this epoch; interest that is not known yet is −1, as JSON has no NaN
}

// CrawlerOptions say how a program crawls.
type CrawlerOptions struct {
	Learner  string        // one that is an [env.DynamicLearner]; empty for "forecast"
	Settings any           // as [Kind.Settings] returns them; nil for the defaults
	Epoch    time.Duration // how exact times are; some crawls should fit into each
	Budget   float64       // what the crawls of an epoch may cost together
	PerGroup int           // crawls of one group in an epoch, at most; 0 for any number
	// Objective is what crawls are to bring about; none stands for delay. Under freshness
	// sources are pages, of which crawls tell whether they have changed.
	Objective env.Objective
	Seed      uint64 // of a learner that draws
}

// Source is what a program knows of a source.
type Source struct {
	Cost     float64       `json:"cost"`               // of a crawl, budget units; 0 stands for 1
	Group    string        `json:"group,omitempty"`    // sources whose crawls are limited together, such as a host
	Shortest time.Duration `json:"shortest,omitempty"` // between two crawls, at least
	Longest  time.Duration `json:"longest,omitempty"`  // between two crawls, if the budget allows; 0 leaves it open
	// Importance is what it is worth per time that the copy is as the page is, under the
	// objective freshness; 0 stands for 1.
	Importance float64 `json:"importance,omitempty"`
}

// Outcome is how a crawl ended.
type Outcome int

const (
	Found     Outcome = iota // the source showed its items: those that are new are named
	Unchanged                // the source said that there is nothing new
	Failed                   // the source could not be crawled; nothing is learned of it
)

// Crawl is one crawl and what it found.
type Crawl struct {
	Source    string
	At        time.Time
	Outcome   Outcome
	Items     []Item    // that were not seen before
	Changed   bool      // the page was not as it was at the crawl before, as new items say too; for freshness
	Truncated bool      // all that the source shows was new, and older items may be missed
	NotBefore time.Time // when the source may be crawled again, from Retry-After or max-age
	Sent      bool      // the source sent its items and was not crawled: its intervals go on
}

// Item is an item of a source.
type Item struct {
	Published time.Time
	Worth     *float64 // when it was new; nil stands for 1, and NaN for what Report brings later
}

// worth returns what the item is worth, as far as that is known.
func (it *Item) worth() float64 {
	if it.Worth == nil {
		return 1
	}
	return *it.Worth
}

// place is what the crawler keeps of one source.
type place struct {
	Name  string  `json:"name"`            // empty for a place that is free
	Rules *Source `json:"rules"`           // of which neighbours that have the same share one
	Added int     `json:"added,omitempty"` // epoch
	// Crawls handed out since the last one that succeeded, or failed with a time of the next.
	Tries    int `json:"tries,omitempty"`
	Due      int `json:"due,omitempty"`   // epoch at which its longest interval ends; 0 without one
	Feedback int `json:"told,omitempty"`  // epoch of its last feedback, from which on it waits
	Done     int `json:"-"`               // its place, plus 1, among the crawls of this epoch
	Pings    int `json:"pings,omitempty"` // in this epoch, after its crawl
}

// NewCrawler returns a crawler without sources whose first epoch begins at start.
func NewCrawler(start time.Time, o CrawlerOptions) (*Crawler, error) {
	c, err := newCrawler(start, o)
	if err != nil {
		return nil, err
	}
	return c, c.build(nil)
}

func newCrawler(start time.Time, o CrawlerOptions) (*Crawler, error) {
	if o.Learner == "" {
		o.Learner = "forecast"
	}
	if o.Objective.Law == "" {
		o.Objective = env.Delay
	}
	kind, err := find(o.Learner, env.LevelOnline)
	if err != nil {
		return nil, err
	}
	if err := check.Positive("budget", o.Budget); err != nil {
		return nil, err
	}
	switch {
	case o.Epoch <= 0:
		return nil, fmt.Errorf("epoch is %v; allowed is above 0", o.Epoch)
	case o.Objective.Unseen() && !kind.FromItems:
		return nil, fmt.Errorf("objective is %v; allowed for the learner %s are interest and deadline, "+
			"as it learns what a crawl is worth from what it brings",
			o.Objective, kind.Name)
	case o.PerGroup < 0:
		return nil, fmt.Errorf("crawls per group are %d; allowed is 0 or more", o.PerGroup)
	}
	if o.Settings == nil {
		o.Settings = kind.Settings(env.LevelOnline)
	}
	c := &Crawler{
		opt: o, kind: kind,
		start: start, origin: start.Unix(), now: start,
		place: map[string]int{}, groups: map[string]int32{"": 0}, members: []int{0},
		view: env.Online{Epoch: -1}, limits: env.Limits{Budget: o.Budget, PerGroup: o.PerGroup},
		overdue: ring.New(0, 1024),
	}
	c.view.Limits = &c.limits
	return c, nil
}

// terms returns what the learner is given of the sources.
func (c *Crawler) terms() env.Terms {
	t := env.Terms{
		Budget: c.limits.Budget, Start: c.start.Unix(), Length: c.opt.Epoch.Seconds(), Objective: c.opt.Objective,
	}
	for _, p := range c.src {
		cost := p.Rules.Cost
		if p.Name == "" {
			cost = math.Inf(1)
		}
		t.Names, t.Costs = append(t.Names, p.Name), append(t.Costs, cost)
		if c.pages() {
			t.Importance = append(t.Importance, cmp.Or(p.Rules.Importance, 1))
		}
	}
	return t
}

// build takes up a learner of the sources, or begins one.
func (c *Crawler) build(l Learner) (err error) {
	if l == nil {
		in := Inputs{Terms: c.terms(), Level: env.LevelOnline, Rand: stream.New(c.opt.Seed, stream.Policy)}
		l, err = c.kind.New(in, c.opt.Settings)
		if err != nil {
			return err
		}
	}
	c.learner = l
	if c.open, _ = l.(env.DynamicLearner); c.open == nil {
		return fmt.Errorf("with the learner %q sources do not come and go", c.opt.Learner)
	}
	if c.items, _ = l.(env.ItemLearner); c.items == nil && c.pages() {
		return fmt.Errorf("objective is %v, and the learner %q does not estimate how often pages change",
			c.opt.Objective, c.opt.Learner)
	}
	return nil
}

// Add adds a source, of which nothing is known. It takes the same time however many
// there are.
func (c *Crawler) Add(name string, s Source) error {
	if s.Cost == 0 {
		s.Cost = 1
	}
	if err := c.check(name, s); err != nil {
		return err
	}
	i := len(c.src)
	if n := len(c.free); n > 0 {
		i, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.grow()
	}
	c.src[i] = place{Name: name, Rules: c.share(s), Added: max(0, c.view.Epoch)}
	c.enlist(i)
	c.view.Last[i], c.limits.NotBefore[i] = -1, 0
	c.openPlace(i)
	c.postpone(i)
	return nil
}

// openPlace has the learner begin source i without any knowledge of it.
func (c *Crawler) openPlace(i int) {
	rules := c.src[i].Rules
	c.open.Add(i, rules.Cost)
	if c.pages() {
		c.items.SetImportance(i, cmp.Or(rules.Importance, 1))
	}
}

// check reports what keeps a source from being added.
func (c *Crawler) check(name string, s Source) error {
	switch err := check.Positive("cost", s.Cost); {
	case name == "" || c.Has(name):
		return fmt.Errorf("source %q: allowed is a name that no other source has", name)
	case err != nil:
		return fmt.Errorf("source %q: %w", name, err)
	case s.Shortest < 0 || s.Longest < 0:
		return fmt.Errorf("source %q: intervals are %v and %v; allowed is 0 or more", name, s.Shortest, s.Longest)
	case !(s.Importance >= 0 && s.Importance <= MostWorth):
		return fmt.Errorf("source %q: importance is %v; allowed is 0 to %g", name, s.Importance, MostWorth)
	case s.Importance > 0 && !c.pages():
		return fmt.Errorf("source %q: importance is %v; it belongs to the objective freshness, and the objective is %v",
			name, s.Importance, c.opt.Objective)
	}
	return nil
}

// pages reports whether the sources are pages, of which a crawl tells one bit.
func (c *Crawler) pages() bool { return c.opt.Objective.Law == env.LawFreshness }

// free are the rules of a place that is free.
var free = &Source{}

// share returns rules that are not changed, the last ones again if they are the same.
func (c *Crawler) share(s Source) *Source {
	if c.rules == nil || *c.rules != s {
		c.rules = &s
	}
	return c.rules
}

// grow adds one place.
func (c *Crawler) grow() {
	c.src = append(c.src, place{Rules: free})
	c.view.Last = append(c.view.Last, -1)
	c.limits.NotBefore = append(c.limits.NotBefore, 0)
	c.limits.Group = append(c.limits.Group, 0)
}

// enlist makes source i known by its name and group.
func (c *Crawler) enlist(i int) {
	p := &c.src[i]
	c.place[p.Name] = i
	g, ok := c.groups[p.Rules.Group]
	if n := len(c.idle); !ok && n > 0 {
		g, c.idle = c.idle[n-1], c.idle[:n-1]
	} else if !ok {
		g = int32(len(c.members))
		c.members = append(c.members, 0)
	}
	c.groups[p.Rules.Group] = g
	c.members[g]++
	c.limits.Group[i] = g
}

// delist forgets the name of source i, and its group if that has no other source.
func (c *Crawler) delist(i int) {
	delete(c.place, c.src[i].Name)
	g := c.limits.Group[i]
	if c.members[g]--; c.members[g] == 0 && g != 0 {
		delete(c.groups, c.src[i].Rules.Group)
		c.idle = append(c.idle, g)
	}
	c.limits.Group[i] = 0
}

// Remove forgets a source.
func (c *Crawler) Remove(name string) error {
	i, err := c.find(name)
	if err != nil {
		return err
	}
	p := &c.src[i]
	if k := p.Done - 1; k >= 0 {
		last := len(c.done) - 1
		c.done[k] = c.done[last]
		c.src[c.done[k].Source].Done = k + 1
		c.done = c.done[:last]
	}
	c.plan = slices.DeleteFunc(c.plan, func(j int) bool { return j == i })
	c.overdue.Remove(i)
	c.delist(i)
	*p = place{Rules: free}
	c.open.Remove(i)
	c.free = append(c.free, i)
	return nil
}

func (c *Crawler) find(name string) (int, error) {
	i, ok := c.place[name]
	if !ok {
		return 0, fmt.Errorf("there is no source %q", name)
	}
	return i, nil
}

// Has reports whether there is a source of that name.
func (c *Crawler) Has(name string) bool {
	_, ok := c.place[name]
	return ok
}

// Len returns how many sources there are.
func (c *Crawler) Len() int { return len(c.place) }

// Epoch returns how long an epoch is.
func (c *Crawler) Epoch() time.Duration { return c.opt.Epoch }

// Price returns λ, what a budget unit is worth.
func (c *Crawler) Price() float64 { return c.open.Price() }

// Carry has what is left of the budget of an epoch, below a unit, be added to that of the next one.
func (c *Crawler) Carry() { c.carries = true }

// SetIntervals changes the shortest and the longest interval of all sources. Waits that have begun stay; the
// longest interval goes by their beginning.
func (c *Crawler) SetIntervals(shortest, longest time.Duration) {
	for i := range c.src {
		p := &c.src[i]
		if p.Name == "" || p.Rules.Shortest == shortest && p.Rules.Longest == longest {
			continue
		}
		rules := *p.Rules
		rules.Shortest, rules.Longest = shortest, longest
		p.Rules = c.share(rules)
		if c.overdue.Remove(i); longest > 0 {
			ends := min(p.Feedback+int(longest/c.opt.Epoch), lastEpoch)
			p.Due = max(ends, c.view.Epoch+1, c.limits.NotBefore[i])
			c.overdue.Add(i, p.Due)
		}
	}
}

// SetBudget changes the budget of an epoch from the next one on.
func (c *Crawler) SetBudget(budget float64) error {
	err := check.Positive("budget", budget)
	if err == nil {
		c.limits.Budget, c.opt.Budget = budget, budget
	}
	return err
}
