// Package env is the model: what a source of ephemeral content is, how content
// arrives, what a crawl brings back, and what a policy may know.
//
// The package is read in the order in which data flow:
//
//  1. A [Source] has an arrival rate, a decay rate, a mean initial interest,
//     a window and a crawl cost. From these follow the epoch factor α, the
//     gain u and the ceiling u*.
//  2. An [Instance] is a list of sources and a budget: what the crawls of one
//     epoch may cost together.
//  3. A [World] is one way in which content arrives: [Mean] follows the
//     papers' mean dynamics, [Poisson] draws single items, [Replay] plays a
//     recording.
//  4. At each epoch a [Policy] sees its level of knowledge, one of the types
//     [Online], [Model] and [Observed], and picks the sources to crawl; a
//     [Learner] then observes what the crawls brought back. What a level does
//     not give, its type does not hold.
//  5. An [Agent] is a policy of any level, as the loop of a run holds it.
//
// Symbols follow Avrachenkov and Borkar, "Whittle index policy for crawling
// ephemeral content", IEEE TCNS 5(1), 2018 ("TCNS") and "A learning algorithm
// for the Whittle index policy for scheduling web crawlers", Allerton 2019
// ("Allerton"). Time is counted in epochs; interest is in the unit in which an
// item's initial interest is given.
package env

import "time"

// Terms is what every crawler knows beforehand, at each level of knowledge.
type Terms struct {
	Names  []string
	Costs  []float64 // C, budget units per crawl of each source
	Budget float64   // what the crawls of one epoch may cost together

	// Hosts has the number of the host that each source is at, from 1, 0 for one of its own, and
	// PerHost how many crawls of a host an epoch has room for; nil and 0 where all have.
	Hosts   []int32 `json:",omitempty"`
	PerHost int     `json:",omitempty"`

	// Start is the Unix time of the first decision and Length the seconds
	// between decisions. Both are 0 in worlds whose epochs have no date.
	Start  int64
	Length float64

	// Importance is μ, what it is worth per epoch that the copy of each source is fresh. It
	// belongs to the objective freshness; nil stands for 1.
	Importance []float64

	// Objective is what crawls are to bring about. Where there is one, nobody has to learn
	// how interest decays; where there is none, items lose interest as their source has it.
	Objective Objective
}

// Of returns a source under the objective. Where epochs have no date one counts as an hour.
func (t Terms) Of(s Source) Source {
	epoch := time.Hour
	if t.Length > 0 {
		epoch = time.Duration(t.Length * float64(time.Second))
	}
	return t.Objective.Of(s, epoch)
}

// Affordable reports whether a crawl of source i fits into the budget at all.
// One that does not is never made, so it has no part in prices and bounds.
func (t Terms) Affordable(i int) bool { return Fits(t.Costs[i], t.Budget) }

// Round returns ΣC/M over the sources that can be afforded: how many epochs it
// takes to crawl each of them once.
func (t Terms) Round() float64 {
	var total float64
	for i, c := range t.Costs {
		if t.Affordable(i) {
			total += c
		}
	}
	return total / t.Budget
}

// Online is what a crawler sees by itself before it decides: when it was last
// where. It is the lowest level of knowledge, and part of the others.
type Online struct {
	Epoch  int     // number of this decision, from 0
	Last   []int   // epoch of each source's last crawl; −1 before the first
	Limits *Limits // which crawls are allowed now; nil where the budget is all
	// Pings names each source that may have changed since the decision before, as often as
	// something said so.
	Pings []int32
	// Failed names the sources whose crawl at the decision before failed, where a world says so. A
	// program that crawls has them wait, and names none.
	Failed []int
}

// Limits say which crawls are allowed at a decision. The policies of a program
// that crawls keep them: those that implement [DynamicLearner].
type Limits struct {
	Budget    float64 // what the crawls may cost together
	NotBefore []int   // epoch before which each source is not crawled
	First     []int   // sources that have waited for their longest interval: crawled first
	Group     []int32 // of each source, such as its host; 0 for none
	PerGroup  int     // crawls of one group at most; 0 for any number
}

// Allowed reports whether source i may be crawled now, as far as time goes.
func (o *Online) Allowed(i int) bool { return o.Limits == nil || o.Limits.NotBefore[i] <= o.Epoch }

// Age returns how many epochs of content wait at source i if it is crawled now.
func (o *Online) Age(i int) int { return o.Epoch - o.Last[i] }

// Model is what is seen by a policy that was built with the parameters of the
// sources: the mean state of each source next to its own crawls.
type Model struct {
	Online
	Mean []float64 // x, mean state under (2)-(3), interest
}

// Observed adds the true state, as TCNS, section VIII, supposes.
type Observed struct {
	Model
	State []float64 // X, interest that waits at each source now
}

// Knowledge is the set of levels.
type Knowledge interface{ Online | Model | Observed }

// Level names a level of knowledge.
type Level string

// The levels, from the lowest.
const (
	LevelOnline   Level = "online"
	LevelModel    Level = "model"
	LevelObserved Level = "observed"
)

// Item is one piece of content as a crawl finds it.
type Item struct {
	Age float64 // epochs since it was published
	// Interest is the present interest, NaN where it is not known yet. Under the objectives
	// delay and deadline, where what an item costs follows from its age, it is the initial one.
	Interest float64
}

// Crawled is what the crawl of one source brought back; there is none of a crawl that
// failed. One that shows items from
// before the last crawl, as the first crawl of a feed does, covers the span of its
// items.
type Crawled struct {
	Source   int
	Age      int     // epochs since the source was crawled before
	Interest float64 // present interest of all that was found, as far as it is known
	Items    []Item  // the items, oldest first; nil in worlds without items

	// Truncated says that all that the source showed was new, so that older
	// items may have been missed: the crawl covers the span of its items.
	Truncated bool

	// Changed says of a page, which shows no items, that it is not as it was at the crawl
	// before. The first crawl of one has the age 0 where there is no copy to compare.
	Changed bool `json:",omitempty"`
}

// Policy picks the sources to crawl at an epoch.
type Policy[O Knowledge] interface {
	// Select appends the numbers of the sources to crawl to dst and returns
	// it: each source at most once, in any order, together within the budget.
	// It keeps neither dst nor o.
	Select(dst []int, o *O) []int
}

// Learner is a policy that learns from what its crawls bring back. It is a
// state machine: Select and Update take turns, and it draws, if it draws at
// all, from a stream that was handed to it.
type Learner[O Knowledge] interface {
	Policy[O]
	// Update takes in what the crawls of the last Select brought back and what
	// is seen after them. It keeps neither.
	Update(crawls []Crawled, next *O)
}

// HarvestsOnly is a learner that reads what its crawls earned, and never their items.
// Worlds need not keep any for it.
type HarvestsOnly interface{ HarvestsOnly() }

// ItemKeeper is a world whose crawls bring back their items, unless nobody reads them.
type ItemKeeper interface {
	// DropItems has crawls bring back no items from now on.
	DropItems()
}

// DynamicLearner is a learner for a program that crawls: sources come and go, and it keeps
// the limits that it sees. A place beyond all others makes room for itself.
type DynamicLearner interface {
	Learner[Online]
	// Add puts a source of which nothing is known in place i, which is free or
	// the first beyond all others.
	Add(i int, cost float64)
	// Remove forgets source i and frees its place. Terms give a free place the
	// cost +Inf.
	Remove(i int)
	// Price returns what a budget unit is worth, in interest, and Threshold the
	// age, in epochs, from which a crawl of source i is worth its price.
	Price() float64
	Threshold(i int) float64
}

// ItemLearner is a dynamic learner that estimates what sources publish: from the items that
// crawls show, or, under the objective freshness, from whether pages have changed.
type ItemLearner interface {
	DynamicLearner
	// SetStart moves the Unix time of the first decision, as the clock was set.
	SetStart(start int64)

	// Report takes in what an item of source i was worth that a crawl brought back
	// with its interest unknown: age and interest at that crawl.
	Report(i int, it Item)
	// Estimate returns items per epoch, the interest that is published per epoch,
	// and the decay rate c, 1/epoch.
	Estimate(i int) (items, inflow, decay float64)

	// SetImportance says what it is worth per epoch that the copy of page i is fresh; until
	// then that is 1.
	SetImportance(i int, importance float64)
	// Ping says that page i may have changed.
	Ping(i int)
	// EstimatePage returns how often page i changes, per epoch, how often without a ping, u,
	// and by how many epochs b pings since its last crawl make it older: a epochs after the
	// crawl the copy is fresh with the probability e^(−u(a + b)).
	EstimatePage(i int) (changes, unseen, ahead float64)
}

// World is one way in which content arrives. What waits at a source depends on
// the epoch and the source's last crawl only.
type World interface {
	// View returns what can be seen now. It is the world's own and changes
	// with the next Step. Mean and State are nil where the world does not
	// compute them.
	View() *Observed
	// Terms returns what every crawler knows of the world.
	Terms() Terms
	// Step crawls the named sources and goes on to the next epoch. The result
	// is valid until the next Step, and holds no crawl that failed. It refuses, changing nothing, a source
	// that does not exist or is named twice, and crawls that cost more than
	// the budget unless the world lets them pass; it returns io.EOF
	// when the world has no further epoch.
	Step(crawl []int) ([]Crawled, error)
	// Owed returns what the items that wait have cost so far: below 0 under the objective
	// delay, by which an item costs what it waits and a crawl brings that together, else 0.
	Owed() float64
}

// Agent is a policy whose level of knowledge has been settled: it is handed
// all that a world shows and passes on to the policy what its level gives.
type Agent struct {
	level  Level
	pick   func(dst []int, v *Observed) []int
	update func(crawls []Crawled, next *Observed) // nil where nothing learns

	report  func(i int, it Item)    // see [Agent.WithReport]; nil for none
	rescale func(i int, by float64) // see [Agent.WithRescale]; nil for none

	harvestsOnly bool // update reads no items
}

// NewAgent returns the agent of a policy or a learner.
func NewAgent[O Knowledge](p Policy[O]) Agent {
	switch p := any(p).(type) {
	case Policy[Online]:
		return newAgent(LevelOnline, p, func(v *Observed) *Online { return &v.Online })
	case Policy[Model]:
		return newAgent(LevelModel, p, func(v *Observed) *Model { return &v.Model })
	case Policy[Observed]:
		return newAgent(LevelObserved, p, func(v *Observed) *Observed { return v })
	}
	return Agent{} // of no policy
}

func newAgent[O Knowledge](at Level, p Policy[O], see func(*Observed) *O) Agent {
	a := Agent{level: at, pick: func(dst []int, v *Observed) []int { return p.Select(dst, see(v)) }}
	if l, ok := p.(Learner[O]); ok {
		a.update = func(crawls []Crawled, next *Observed) { l.Update(crawls, see(next)) }
	}
	_, a.harvestsOnly = p.(HarvestsOnly)
	return a
}

// WithReport returns the agent of a learner to whom items may be shown before their worth
// is known: report then takes in what an item of source i was worth, its age and interest
// at the crawl that brought it back.
func (a Agent) WithReport(report func(i int, it Item)) Agent {
	a.report = report
	return a
}

// WithRescale returns the agent of a learner of harvests that may turn out to be worth more
// or less: rescale takes in that what source i has brought so far is worth so many times
// what it was thought to be.
func (a Agent) WithRescale(rescale func(i int, by float64)) Agent {
	a.rescale = rescale
	return a
}

// Fixed returns the agent that learns no more: nothing that happens reaches it.
func (a Agent) Fixed() Agent {
	a.update = nil
	return a
}

// ReadsItems reports whether the policy may look at the items of crawls: whether it
// learns, and is not one that [HarvestsOnly] reads.
func (a Agent) ReadsItems() bool { return a.update != nil && !a.harvestsOnly }

// Level returns the level of knowledge of the policy.
func (a Agent) Level() Level { return a.level }

// Learns reports whether the policy is a learner.
func (a Agent) Learns() bool { return a.update != nil }

// Select has the policy pick from what its level shows of v.
func (a Agent) Select(dst []int, v *Observed) []int {
	return a.pick(dst, v)
}

// Update lets a learner observe what happened; it does nothing for a policy that does
// not learn.
func (a Agent) Update(crawls []Crawled, next *Observed) {
	if a.update != nil {
		a.update(crawls, next)
	}
}

// InPhases returns the agent that has one of the agents pick at each epoch, that
// of the phase. They are policies of one level, of which none learns.
func InPhases(phases []Phase, agents []Agent) Agent {
	return Agent{level: agents[0].level, pick: func(dst []int, v *Observed) []int {
		now := 0
		for now+1 < len(phases) && phases[now+1].From <= v.Epoch {
			now++
		}
		return agents[now].Select(dst, v)
	}}
}
