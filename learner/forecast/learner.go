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
	// raised, and an even one's decay lowered, before they enter the index.
	Optimism float64 `toml:"optimism"`
	// Longest is how many epochs a source waits at most, as far as a quarter of
	// the budget goes. 0 stands for half of the time so far, but at least the
	// epochs in which all sources could be crawled 40 times, and at most the
	// horizon or those.
	Longest float64 `toml:"longest"`
}

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
	return check.First(checkOptimism(s.Optimism), s.Options.Validate())
}

func checkOptimism(v float64) error {
	if !(v >= 0) || v > 10 {
		return fmt.Errorf("optimism is %v; allowed are 0 to 10 standard errors", v)
	}
	return nil
}

// Learner crawls by Whittle's index of what it foretells. It draws nothing.
type Learner struct {
	Lift
	rank *ranking
}

var _ env.Learner[env.Online] = (*Learner)(nil)

// New returns the learner; nil settings are [DefaultSettings].
func New(t env.Terms, set *Settings) (*Learner, error) {
	s := DefaultSettings()
	if set != nil {
		s = *set
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	r := newRanking(t, &s)
	return &Learner{Lift: *NewLift(t, r, s.Options, s.Optimism), rank: r}, nil
}

// Price returns λ, the index of the last source that the budget reached, in the
// mean over some epochs; interest per budget unit.
func (l *Learner) Price() float64 { return l.rank.Price }

// Threshold returns the age, in epochs, at which the index of source i reaches
// the price, were it to publish the same at all times; +Inf if none does.
func (l *Learner) Threshold(i int) float64 {
	c := l.curve(i)
	if !l.rank.terms.Affordable(i) || l.rank.Price*c.Cost > c.Top {
		return math.Inf(1)
	}
	age := c.Age(l.rank.Price*c.Cost, 1, index.Never)
	if age == index.Never {
		return math.Inf(1)
	}
	return float64(age)
}

// InverseIndex returns the state of source i at its threshold, in interest.
func (l *Learner) InverseIndex(i int) float64 {
	age := l.Threshold(i)
	if math.IsInf(age, 1) {
		return age
	}
	c := l.curve(i)
	return c.At(int(age))
}

// curve returns what a crawl of source i is thought to earn by age, in units.
func (l *Learner) curve(i int) index.Curve {
	b, _ := l.est.Inflow(i)
	c, _ := l.est.Decay(i)
	s := env.NewSource("", 1, c, b)
	s.Cost = l.rank.terms.Costs[i]
	if w := l.est.Window(i); w > 0 {
		s.Window = w
	}
	return index.NewCurve(s)
}

// Fallbacks is 0: there is no matrix to invert.
func (l *Learner) Fallbacks() int { return 0 }

// Frozen returns the policy that would be deployed now. Unless Longest is set it
// leaves crawls from which one can only learn.
func (l *Learner) Frozen() *Policy {
	r := *l.rank
	r.frozen = r.longest == 0 || r.longest == never
	r.sel = baselines.NewSelector(r.terms.Costs, r.terms.Budget)
	r.src, r.key, r.overdue = slices.Clone(r.src), slices.Clone(r.key), nil
	return l.freeze(&r)
}

// State is the whole state of a [Learner] as data.
type State struct {
	Estimates estimate.State `json:"estimates"`
	View      LiftState      `json:"view"`
	Ranking   RankingState   `json:"ranking"`
}

// State returns a copy of the learner's whole state. A learner with the same
// terms and settings that takes it up goes on as this one, bit for bit.
func (l *Learner) State() State {
	return State{l.est.Export(), l.LiftState.clone(), l.rank.RankingState}
}

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Learner) SetState(s State) error {
	l.rank.RankingState = s.Ranking
	return l.restore(s.Estimates, s.View)
}
