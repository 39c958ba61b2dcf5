package forecast

import (
	"fmt"
	"math"

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
	// Revisit is the greatest share of the budget that goes to sources which
	// were left alone for long; 0 for none.
	Revisit float64 `toml:"revisit"`
}

// DefaultSettings returns the settings that nil stands for.
func DefaultSettings() Settings {
	return Settings{Options: estimate.Options{Horizon: 2000, Profile: "mixed", Memory: "mixed"}, Optimism: 1, Revisit: .025}
}

// CertaintySettings returns those of certainty-equivalent Whittle: constant
// levels, nothing forgotten and nothing revisited.
func CertaintySettings() Settings {
	return Settings{Options: estimate.Options{Profile: "off", Memory: "long"}, Optimism: 1}
}

// Validate reports the first setting that is out of its range.
func (s *Settings) Validate() error {
	if !(s.Revisit >= 0) || s.Revisit > 1 {
		return fmt.Errorf("revisit is %v; allowed is a share of 0 to 1", s.Revisit)
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
func (l *Learner) Price() float64 { return l.rank.Price * l.est.Unit() }

// Threshold returns the age, in epochs, at which the index of source i reaches
// the price, were it to publish the same at all times; +Inf if none does.
func (l *Learner) Threshold(i int) float64 {
	c := l.curve(i)
	if !l.rank.can(i) || l.rank.Price*c.Cost > c.Top {
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
	return c.At(int(age)) * l.est.Unit()
}

// curve returns what a crawl of source i is thought to earn by age, in units.
func (l *Learner) curve(i int) index.Curve {
	b, _ := l.est.Inflow(i)
	c, _ := l.est.Decay(i)
	s := env.NewSource("", 1, c, b)
	s.Cost = l.rank.costs[i]
	if w := l.est.Window(i); w > 0 {
		s.Window = w
	}
	return index.NewCurve(s, index.ItemDynamics)
}

// Fallbacks is 0: there is no matrix to invert.
func (l *Learner) Fallbacks() int { return 0 }

// Frozen returns the policy that would be deployed now. It makes no first visits
// and revisits nothing, since it would not learn from it.
func (l *Learner) Frozen() *Policy {
	t := env.Terms{Costs: l.rank.costs, Budget: l.rank.budget}
	r := newRanking(t, &Settings{})
	r.first = 0
	copy(r.src, l.rank.src)
	return l.freeze(r)
}

// State is the whole state of a [Learner] as data.
type State struct {
	Estimates estimate.State `json:"estimates"`
	View      LiftState      `json:"view"`
	Revisits  Revisits       `json:"revisits"`
}

// State returns a copy of the learner's whole state. A learner with the same
// terms and settings that takes it up goes on as this one, bit for bit.
func (l *Learner) State() State {
	return State{l.est.Export(), l.LiftState.clone(), l.rank.Revisits.clone()}
}

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Learner) SetState(s State) error {
	if err := s.Revisits.validate(len(l.Told)); err != nil {
		return err
	}
	l.rank.Revisits = s.Revisits.clone()
	return l.restore(s.Estimates, s.View)
}
