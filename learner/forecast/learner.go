// Package forecast holds the learner that is deployed where items are seen. It knows
// nothing beforehand but costs and budget.
//
//  1. [estimate.Estimates] tells from what crawls bring back what the sources
//     publish.
//  2. [Learner] foretells what waits and crawls by Whittle's index of it, and
//     sources that are overdue (ranking.go). With [CertaintySettings] it is
//     certainty-equivalent Whittle.
package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/learner/estimate"
)

// Settings are the settings of [Learner].
type Settings struct {
	// Horizon is the age, in epochs, at which what was seen has lost all but 1/e of
	// its weight; 0 forgets nothing.
	Horizon float64 `toml:"horizon"`
	// Profile has the hours of the day and the days of the week estimated where
	// epochs have dates.
	Profile bool `toml:"profile"`
	// Optimism is by how many standard errors of their logarithms an inflow is
	// raised and a decay lowered before they enter the index. Under the objective delay it
	// is none: each source is crawled again and again, and so known.
	Optimism float64 `toml:"optimism"`
	// Longest is how many epochs a source waits at most, as far as a quarter of
	// the budget goes. 0 stands for half of the time so far, at most the horizon,
	// and at least the epochs in which all sources could be crawled 40 times. Under the
	// objective delay no source is left alone, and none waits for this.
	Longest float64 `toml:"longest"`
}

// never is a time that no world lasts.
const never = 1e18

// DefaultSettings returns the settings that nil stands for.
func DefaultSettings() Settings {
	return Settings{Horizon: 1000, Profile: true, Optimism: 1}
}

// CertaintySettings returns those of certainty-equivalent Whittle: constant
// rates, nothing forgotten, and each source crawled once before the index decides
// alone.
func CertaintySettings() Settings { return Settings{Optimism: 1, Longest: never} }

// Validate reports the first setting that is out of its range.
func (s *Settings) Validate() error {
	if !(s.Longest >= 0) || math.IsInf(s.Longest, 1) {
		return fmt.Errorf("longest is %v; allowed are epochs, or 0 to have it follow from the budget", s.Longest)
	}
	if !(s.Optimism >= 0) || s.Optimism > 10 {
		return fmt.Errorf("optimism is %v; allowed are 0 to 10 standard errors", s.Optimism)
	}
	if !(s.Horizon >= 0) || math.IsInf(s.Horizon, 1) {
		return fmt.Errorf("horizon is %v; allowed is a finite number of epochs, or 0 to forget nothing", s.Horizon)
	}
	return nil
}

// Learner crawls by Whittle's index of what it foretells, and sources that are
// overdue. It draws nothing.
type Learner struct {
	terms  env.Terms
	set    Settings
	est    *estimate.Estimates // nil under freshness
	pages  *estimate.Pages     // nil under other objectives
	round  float64             // epochs in which all sources could be crawled once
	frozen bool                // leaves crawls from which one can only learn

	sel *baselines.Selector
	schedule
	key     []float64    // of those that are awake
	thought []env.Source // what they are thought to be, likewise
	known   []bool       // whether a crawl of them was taken in
	order   []int        // some of their places
	waits   []float64    // for how long they may sleep
	awakeIn []int        // of each group, how many are awake and allowed
	newIn   []int        // how many of these were never crawled
	// Of one that learns no more: what sources are thought to be, as far as they were looked
	// at; nil otherwise.
	fixed []env.Source
}

var _ env.ItemLearner = (*Learner)(nil)

// New returns the learner; nil settings are [DefaultSettings].
func New(t env.Terms, set *Settings) (*Learner, error) {
	s := DefaultSettings()
	if set != nil {
		s = *set
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	t.Costs = slices.Clone(t.Costs)
	if t.Objective.Law == env.LawDelay {
		s.Optimism, s.Longest = 0, never
	}
	l := &Learner{
		terms: t, set: s, round: t.Round(),
		sel: baselines.NewSelector(t.Costs, t.Budget), schedule: schedule{Epoch: -1},
	}
	if t.Objective.Law == env.LawFreshness {
		l.beginPages()
	} else {
		l.est = estimate.New(t, s.Horizon, s.Profile)
	}
	return l, nil
}

// priceMemory is over how many epochs the price is averaged.
const priceMemory = 72

// Select implements env.Policy.
func (l *Learner) Select(dst []int, o *env.Online) []int {
	if n := len(l.terms.Costs); len(o.Last) != n {
		panic(fmt.Sprintf("forecast: view of %d sources; the learner has %d", len(o.Last), n))
	}
	if o.Limits != nil && o.Limits.Budget != l.terms.Budget {
		l.terms.Budget = o.Limits.Budget
		l.round = l.terms.Round()
	}
	l.takePings(o)
	cost := l.rouse(o)
	l.key, l.thought, l.known = l.key[:0], l.thought[:0], l.known[:0]
	for _, i := range l.Awake {
		key, s := math.Inf(-1), l.optimistic(int(i))
		if l.terms.Affordable(int(i)) {
			key = l.foretell(int(i), s, o) / l.terms.Costs[i]
		}
		l.key, l.thought, l.known = append(l.key, key), append(l.thought, s), append(l.known, l.crawled(int(i)))
	}
	l.Epoch = o.Epoch
	longest := cmp.Or(l.set.Longest, l.explore(o.Epoch))
	l.raiseOverdue(o, longest)

	had := len(dst)
	dst = l.sel.Within(o).Among(dst, l.Awake, l.key)
	if len(dst) > had {
		last := slices.Index(l.Awake, int32(dst[len(dst)-1]))
		if last >= 0 && !math.IsInf(l.key[last], 1) {
			l.Prices = min(l.Prices+1, priceMemory)
			l.Mean += (l.key[last] - l.Mean) / l.Prices
			rise := l.key[last] - l.Low
			if l.Low > 0 { // one key may be far above the others: that of a source that comes back
				rise = min(rise, l.Low)
			}
			l.Low = min(l.key[last], l.Low+rise/l.Prices)
		}
	}
	l.putToSleep(o, cost, longest)
	if len(l.thought) > many+4*len(l.Awake) { // the first decision was among all
		l.key, l.thought, l.known, l.order, l.waits = nil, nil, nil, nil, nil
		l.Awake = slices.Clone(l.Awake)
	}
	if l.fixed != nil && l.pages != nil { // no Update follows
		for _, i := range dst[had:] {
			l.pages.ForgetPings(i)
		}
	}
	return dst
}

// Update implements env.Learner.
func (l *Learner) Update(crawls []env.Crawled, next *env.Online) {
	if l.pages != nil {
		l.updatePages(crawls, next)
		return
	}
	for _, c := range crawls {
		l.est.Add(c, next.Epoch-1)
	}
	l.est.Fit()
}

// Add implements env.DynamicLearner.
func (l *Learner) Add(i int, cost float64) {
	if i == len(l.terms.Costs) {
		l.terms.Costs = append(l.terms.Costs, math.Inf(1))
	}
	l.open(i)
	l.setCost(i, cost)
	if l.Wake == nil {
		return // the first decision takes in all
	}
	if i == len(l.Wake) {
		l.Wake = append(l.Wake, gone)
	}
	l.line(i)
}

// Remove implements env.DynamicLearner.
func (l *Learner) Remove(i int) {
	l.setCost(i, math.Inf(1))
	l.open(i)
	if l.Wake != nil {
		l.ring.Remove(i)
		if l.Wake[i] == unseen {
			l.Wake[i] = left
		} else {
			l.Wake[i] = gone
		}
	}
}

// setCost changes the cost of source i, +Inf for a place that is free.
func (l *Learner) setCost(i int, cost float64) {
	if l.terms.Affordable(i) {
		l.round -= l.terms.Costs[i] / l.terms.Budget
	}
	l.terms.Costs[i] = cost
	if l.terms.Affordable(i) {
		l.round += cost / l.terms.Budget
	}
	l.sel.SetCost(l.terms.Costs, i)
}

// SetStart implements env.ItemLearner: the clock was set, and hours and
// days are others from now on.
func (l *Learner) SetStart(start int64) {
	l.terms.Start = start
	if l.est != nil {
		l.est.SetStart(start)
	}
}

// Report implements env.ItemLearner. The source is looked at again.
func (l *Learner) Report(i int, it env.Item) {
	if l.est != nil {
		l.est.Report(i, it)
		l.lookAgain(i)
	}
}

// lookAgain wakes source i if it sleeps.
func (l *Learner) lookAgain(i int) {
	if l.Wake != nil && l.Wake[i] > 0 {
		l.ring.Remove(i)
		l.wake(int32(i))
	}
}

// Price returns λ, the index of the last source that the budget reached, in the
// mean over some epochs; interest per budget unit.
func (l *Learner) Price() float64 { return l.Mean }

// Threshold returns the age, in epochs, at which the index of source i reaches
// the price, were it to publish the same at all times; +Inf if none does. Pings have made
// that earlier.
func (l *Learner) Threshold(i int) float64 {
	c := index.NewCurve(l.optimistic(i))
	age := c.Age(l.Price()*c.Cost, 1, index.Never)
	if age == index.Never || !l.terms.Affordable(i) {
		return math.Inf(1)
	}
	return max(1, float64(age)-l.ahead(i))
}

// Estimate implements env.ItemLearner: λ, λξ̄ and c as they are known by now.
func (l *Learner) Estimate(i int) (items, inflow, decay float64) {
	if l.est == nil {
		return 0, 0, 0
	}
	s, _, _ := l.est.Source(i)
	return s.Rate, s.Rate * s.Interest, s.Decay
}

// Version is that of [State]. It rises where a State has another form, and where a learner
// with the same State would go on otherwise. Change it with the line in learner/saved_test.go.
const Version = 31

// State is the whole state of a [Learner] as data.
type State struct {
	Estimates estimate.State     `json:"estimates"`
	Pages     estimate.PageState `json:"pages,omitzero"` // under freshness, in place of Estimates
	Schedule  schedule           `json:"schedule"`
}

// State returns a copy of the learner's whole state. A learner with the same
// terms and settings that takes it up goes on as this one, bit for bit.
func (l *Learner) State() State {
	s := State{Schedule: l.schedule.clone()}
	if l.pages != nil {
		s.Pages = l.pages.Clone().PageState
	} else {
		s.Estimates = l.est.Clone().State
	}
	return s
}

// common returns State without what Source returns of each source, and without the schedule.
func (l *Learner) common() (s State) {
	if l.pages != nil {
		s.Pages = l.pages.PageState
	} else {
		s.Estimates = l.est.State
	}
	s.Estimates.Sources, s.Pages.Pages = nil, nil
	return s
}

// Common returns State without what Source returns of each source.
func (l *Learner) Common() any {
	s := l.common()
	s.Schedule = l.schedule.clone()
	return s
}

// Pooled returns Common without the sources that sleep or wait: a learner that takes it
// up looks at all of its sources at the next decision.
func (l *Learner) Pooled() any {
	s := l.common()
	s.Schedule = l.schedule
	s.Schedule.Wake, s.Schedule.Line, s.Schedule.Awake, s.Schedule.Next = nil, nil, nil, 0
	return s
}

// Source returns what is known of source i, as a pointer that encoding/json reads and
// writes. SetState of what Common returned follows.
func (l *Learner) Source(i int) any {
	if l.pages != nil {
		return &l.pages.Pages[i]
	}
	return &l.est.Sources[i]
}

// SetState takes up a state that State or Common returned, which is the learner's own from then
// on. After an error the learner must not be used.
func (l *Learner) SetState(s State) (err error) {
	if l.pages != nil {
		err = l.pages.Import(s.Pages)
	} else {
		err = l.est.Import(s.Estimates)
	}
	if err != nil {
		return err
	}
	return l.restore(&s.Schedule)
}

// Policy is what was learned, as a policy that learns no more and draws nothing.
// Its dates are those of the world in which it was learned: at epoch 0 it is the
// time of that world's first decision.
type Policy struct{ env.Policy[env.Online] }

// Frozen returns the policy that would be deployed now. Unless Longest is set it
// leaves crawls from which one can only learn.
func (l *Learner) Frozen() *Policy {
	f := *l
	f.frozen = l.set.Longest == 0 || l.set.Longest == never
	f.terms.Costs, f.terms.Importance = slices.Clone(l.terms.Costs), slices.Clone(l.terms.Importance)
	if l.pages != nil {
		f.pages = l.pages.Clone()
		for i := range f.terms.Costs {
			f.pages.ForgetPings(i)
		}
	} else {
		f.est = l.est.Clone()
	}
	f.sel = baselines.NewSelector(f.terms.Costs, l.terms.Budget)
	f.Wake, f.key, f.thought, f.known, f.order, f.waits, f.awakeIn, f.newIn = nil, nil, nil, nil, nil, nil, nil, nil
	f.fixed = make([]env.Source, len(f.terms.Costs))
	return &Policy{&f}
}
