package forecast

import (
	"fmt"
	"math"
	"slices"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/learner/estimate"
	"ephemera/learner/internal/check"
)

// Settings are the settings of [Learner].
type Settings struct {
	estimate.Options
	// Optimism is by how many standard errors of their logarithms an inflow is
	// raised and a decay lowered before they enter the index.
	Optimism float64 `toml:"optimism"`
	// Longest is how many epochs a source waits at most, as far as a quarter of
	// the budget goes. 0 stands for half of the time so far, at most the horizon,
	// and at least the epochs in which all sources could be crawled 40 times.
	Longest float64 `toml:"longest"`
}

// never is a time that no world lasts.
const never = 1e18

// DefaultSettings returns the settings that nil stands for.
func DefaultSettings() Settings {
	return Settings{Options: estimate.Options{Horizon: 1000, Profile: true}, Optimism: 1}
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
	return s.Options.Validate()
}

// Learner crawls by Whittle's index of what it foretells, and sources that are
// overdue. It draws nothing.
type Learner struct {
	terms  env.Terms
	set    Settings
	est    *estimate.Estimates
	round  float64 // epochs in which all sources could be crawled once
	frozen bool    // leaves crawls from which one can only learn

	sel     *baselines.Selector
	key     []float64 // what a source is ranked by
	overdue []int
	ViewState
}

// ViewState is what a [Learner] holds beside the estimates, as data.
type ViewState struct {
	Epoch   int       `json:"epoch"`   // of the last Select; −1 before
	Last    []int     `json:"last"`    // as seen at the last Select
	Waiting []float64 `json:"waiting"` // what waited at each source for an inflow of 1, epochs

	Credit float64 `json:"credit"` // budget units saved up for overdue sources
	Price  float64 `json:"price"`  // mean clearing price, interest per budget unit
	Prices float64 `json:"prices"` // epochs behind that mean
}

var (
	_ env.Open      = (*Learner)(nil)
	_ env.Reporter  = (*Learner)(nil)
	_ env.Estimator = (*Learner)(nil)
)

// New returns the learner; nil settings are [DefaultSettings].
func New(t env.Terms, set *Settings) (*Learner, error) {
	s := DefaultSettings()
	if set != nil {
		s = *set
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	n := len(t.Costs)
	t.Costs = slices.Clone(t.Costs)
	return &Learner{
		terms: t, set: s, est: estimate.New(t, s.Options), round: t.Round(),
		sel: baselines.NewSelector(t.Costs, t.Budget), key: make([]float64, n),
		ViewState: ViewState{Epoch: -1, Last: make([]int, n), Waiting: make([]float64, n)},
	}, nil
}

// priceMemory is over how many epochs the price is averaged.
const priceMemory = 72

// Select implements env.Policy.
func (l *Learner) Select(dst []int, o *env.Online) []int {
	if len(o.Last) != len(l.Last) {
		panic(fmt.Sprintf("forecast: view of %d sources; the learner has %d", len(o.Last), len(l.Last)))
	}
	if o.Limits != nil && o.Limits.Budget != l.terms.Budget {
		l.terms.Budget = o.Limits.Budget
		l.round = l.terms.Round()
	}
	for i := range l.key {
		l.key[i] = math.Inf(-1)
		if l.terms.Affordable(i) {
			l.key[i] = l.foretell(i, o) / l.terms.Costs[i]
		}
	}
	l.Epoch = o.Epoch
	l.raiseOverdue(o)

	had := len(dst)
	dst = l.sel.Within(o).Pack(dst, l.key)
	price := math.Inf(1)
	for _, i := range dst[had:] {
		price = min(price, l.key[i])
	}
	if !math.IsInf(price, 1) {
		l.Prices = min(l.Prices+1, priceMemory)
		l.ViewState.Price += (price - l.ViewState.Price) / l.Prices
	}
	return dst
}

// Update implements env.Learner.
func (l *Learner) Update(crawls []env.Crawled, next *env.Online) {
	for _, c := range crawls {
		l.est.Add(c, next.Epoch-1)
	}
	l.est.Fit(next.Epoch - 1)
}

// Add implements env.Open.
func (l *Learner) Add(i int, cost float64) {
	if i == len(l.key) {
		l.terms.Costs, l.key = append(l.terms.Costs, math.Inf(1)), append(l.key, 0)
		l.Last, l.Waiting = append(l.Last, -1), append(l.Waiting, 0)
	}
	l.est.Open(i)
	l.Last[i], l.Waiting[i] = -1, 0
	l.setCost(i, cost)
}

// Remove implements env.Open.
func (l *Learner) Remove(i int) {
	l.setCost(i, math.Inf(1))
	l.est.Open(i)
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

// Report implements env.Reporter.
func (l *Learner) Report(i int, it env.Item) { l.est.Report(i, it) }

// Price returns λ, the index of the last source that the budget reached, in the
// mean over some epochs; interest per budget unit.
func (l *Learner) Price() float64 { return l.ViewState.Price }

// Threshold returns the age, in epochs, at which the index of source i reaches
// the price, were it to publish the same at all times; +Inf if none does.
func (l *Learner) Threshold(i int) float64 {
	c := l.curve(i)
	price := l.Price() * c.Cost
	if !l.terms.Affordable(i) || price > c.Top {
		return math.Inf(1)
	}
	age := c.Age(price, 1, index.Never)
	if age == index.Never {
		return math.Inf(1)
	}
	return float64(age)
}

// curve returns what a crawl of source i is thought to earn by age, interest.
func (l *Learner) curve(i int) index.Curve {
	b, _ := l.est.Inflow(i)
	c, _ := l.est.Decay(i)
	s := env.NewSource("", 1, c, b)
	s.Cost = l.terms.Costs[i]
	if w := l.est.Window(i); w > 0 {
		s.Window = w
	}
	return index.NewCurve(s)
}

// Estimate implements env.Estimator: λ, λξ̄ and c as they are known by now.
func (l *Learner) Estimate(i int) (items, inflow, decay float64) {
	inflow, _ = l.est.Inflow(i)
	decay, _ = l.est.Decay(i)
	return l.est.Rate(i), inflow, decay
}

// Fallbacks is 0: there is no matrix to invert.
func (l *Learner) Fallbacks() int { return 0 }

// State is the whole state of a [Learner] as data.
type State struct {
	Estimates estimate.State `json:"estimates"`
	View      ViewState      `json:"view"`
}

// State returns a copy of the learner's whole state. A learner with the same
// terms and settings that takes it up goes on as this one, bit for bit.
func (l *Learner) State() State { return State{l.est.Export(), l.ViewState.clone()} }

func (s ViewState) clone() ViewState {
	s.Last, s.Waiting = slices.Clone(s.Last), slices.Clone(s.Waiting)
	return s
}

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Learner) SetState(s State) error {
	n := len(l.key)
	if len(s.View.Last) != n {
		return fmt.Errorf("a view of %d sources; the learner has %d", len(s.View.Last), n)
	}
	err := check.First(
		check.Finite("waiting", s.View.Waiting, n),
		check.Finite("credit, price and prices", []float64{s.View.Credit, s.View.Price, s.View.Prices}, 3),
		l.est.Import(s.Estimates))
	if err != nil {
		return err
	}
	l.ViewState = s.View.clone()
	return nil
}

// Policy is what was learned, as a policy that learns no more and draws nothing.
// Its dates are those of the world in which it was learned: at epoch 0 it is the
// time of that world's first decision.
type Policy struct{ l Learner }

var _ env.Policy[env.Online] = (*Policy)(nil)

// Frozen returns the policy that would be deployed now. Unless Longest is set it
// leaves crawls from which one can only learn.
func (l *Learner) Frozen() *Policy {
	f := *l
	f.frozen = l.set.Longest == 0 || l.set.Longest == never
	f.est, f.ViewState = l.est.Clone(), l.ViewState.clone()
	f.terms.Costs = slices.Clone(l.terms.Costs)
	f.sel = baselines.NewSelector(f.terms.Costs, l.terms.Budget)
	f.key, f.overdue = make([]float64, len(l.key)), nil
	return &Policy{f}
}

// Select implements env.Policy.
func (p *Policy) Select(dst []int, o *env.Online) []int { return p.l.Select(dst, o) }
