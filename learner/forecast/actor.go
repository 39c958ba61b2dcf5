package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/estimate"
	"ephemera/learner/internal/check"
	"ephemera/learner/lspe"
)

// ActorSettings are the settings of [Actor]: those of the actor-critic, whose
// horizon is that of the estimates too, and those of what is estimated.
type ActorSettings struct {
	lspe.Settings
	Profile  bool    `toml:"profile"`
	Optimism float64 `toml:"optimism"`
}

// DefaultActorSettings returns the settings that nil stands for.
func DefaultActorSettings() ActorSettings {
	d := DefaultSettings()
	s := ActorSettings{Settings: lspe.DefaultSettings(), Profile: d.Profile, Optimism: d.Optimism}
	s.Horizon, s.KappaRound = d.Horizon, 0 // who knows nothing has to try them all
	return s
}

func (s *ActorSettings) options() estimate.Options {
	return estimate.Options{Horizon: s.Horizon, Profile: s.Profile}
}

// Validate reports the first setting that is out of its range.
func (s *ActorSettings) Validate() error {
	o := s.options()
	return check.First(o.Validate(), s.Settings.Validate())
}

// Actor is the actor-critic with a price over what is estimated.
type Actor struct {
	Lift
	actor *lspe.Learner
}

var _ env.Learner[env.Online] = (*Actor)(nil)

// follower tells the actor-critic what is estimated.
type follower struct{ *lspe.Learner }

func (f follower) Know(i int, s Source) {
	_, ceiling := s.Ceiling()
	f.Learner.Know(i, s.Decay, ceiling)
}

// NewActor returns the learner; nil settings are [DefaultActorSettings]. It
// explores with draws from r.
func NewActor(t env.Terms, set *ActorSettings, r *stream.Rand) (*Actor, error) {
	s := DefaultActorSettings()
	if set != nil {
		s = *set
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	// Until something was found, all sources are alike.
	in := env.Instance{ID: "online", Budget: t.Budget}
	for i, c := range t.Costs {
		s := env.NewSource(t.Names[i], 1, 1, 1)
		s.Cost = c
		in.Sources = append(in.Sources, s)
	}
	a, err := lspe.New(in, &s.Settings, r)
	if err != nil {
		return nil, err
	}
	return &Actor{Lift: *NewLift(t, follower{a}, s.options(), s.Optimism), actor: a}, nil
}

// Price returns the learned price λ of a budget unit, in interest.
func (l *Actor) Price() float64 { return l.actor.Price() }

// Threshold returns the learned threshold of source i as an age, in epochs.
func (l *Actor) Threshold(i int) float64 { return l.actor.Threshold(i) }

// InverseIndex returns the learned threshold of source i as a state, in interest.
func (l *Actor) InverseIndex(i int) float64 { return l.actor.InverseIndex(i) }

// Fallbacks counts how often a critic's inverse was not trusted and the Tikhonov
// form was taken.
func (l *Actor) Fallbacks() int { return l.actor.Fallbacks() }

// frozen is an actor-critic that learns no more and knows what it knew.
type frozen struct{ *lspe.Policy }

func (frozen) Know(int, Source) {}

// Frozen returns the policy that would be deployed now.
func (l *Actor) Frozen() *FrozenActor { return l.freeze(frozen{l.actor.Frozen()}) }

// ActorState is the whole state of an [Actor] as data.
type ActorState struct {
	Estimates estimate.State `json:"estimates"`
	View      LiftState      `json:"view"`
	Actor     lspe.State     `json:"actor"`
}

// State returns a copy of the learner's whole state.
func (l *Actor) State() ActorState {
	return ActorState{l.est.Export(), l.LiftState.clone(), l.actor.State()}
}

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Actor) SetState(s ActorState) error {
	if err := l.restore(s.Estimates, s.View); err != nil {
		return err
	}
	return l.actor.SetState(s.Actor)
}

// Source is a source as it is thought to be.
type Source struct {
	Inflow float64 `json:"inflow"` // λξ̄ in the time to come, units of interest per epoch
	Decay  float64 `json:"decay"`  // c, 1/epoch
	Window float64 `json:"window"` // M, epochs; 0 for none
	Doubt  float64 `json:"doubt"`  // standard error of ln of the inflow
}

// Ceiling returns λξ̄/c and what the window leaves of it.
func (s *Source) Ceiling() (endless, ceiling float64) {
	b := s.Inflow / s.Decay
	if s.Window == 0 {
		return b, b
	}
	return b, b * -math.Expm1(-s.Decay*s.Window)
}

// Follower is a policy of the level "model" that takes up new parameters. If it
// is a learner, it goes on learning; interest is in units of
// [estimate.Estimates.Unit].
type Follower interface {
	env.Policy[env.Model]
	// Know tells what source i is now thought to be.
	Know(i int, s Source)
}

// Lift is a policy of the level "model" at work where nothing is known but the
// terms: what its crawls bring back is turned into the parameters and the view
// that it needs.
type Lift struct {
	est      *estimate.Estimates
	inner    Follower
	optimism float64
	view     env.Model
	crawls   []env.Crawled
	LiftState
}

// LiftState is what a [Lift] holds beside the estimates, as data: what it told at
// the last Select.
type LiftState struct {
	Epoch   int       `json:"epoch"` // of the last Select; −1 before
	Last    []int     `json:"last"`
	Waiting []float64 `json:"waiting"` // what waits at each source for an inflow of 1, epochs
	Told    []Source  `json:"told"`
}

var _ env.Learner[env.Online] = (*Lift)(nil)

// NewLift lifts a policy. Optimism is by how many standard errors of their
// logarithms an inflow is raised, and an even one's decay lowered, so that what is
// not known is explored and no source is given up for a poor first crawl.
func NewLift(t env.Terms, inner Follower, o estimate.Options, optimism float64) *Lift {
	n := len(t.Costs)
	return &Lift{
		est: estimate.New(t, o), inner: inner, optimism: optimism,
		view:      env.Model{Mean: make([]float64, n)},
		LiftState: LiftState{Epoch: -1, Last: make([]int, n), Waiting: make([]float64, n), Told: make([]Source, n)},
	}
}

// Select implements env.Policy.
func (l *Lift) Select(dst []int, o *env.Online) []int {
	if len(o.Last) != len(l.Last) {
		panic(fmt.Sprintf("forecast: view of %d sources; the learner has %d", len(o.Last), len(l.Last)))
	}
	l.see(o)
	return l.inner.Select(dst, &l.view)
}

// see turns what is seen into the view of the level "model".
func (l *Lift) see(o *env.Online) {
	l.view.Online = *o
	for i := range l.Told {
		b, doubt := l.est.Inflow(i)
		b *= math.Exp(l.optimism * doubt)
		// A source whose decay is thought too fast is crawled too often for
		// old items to show it. Thought too slow, it waits, and they do.
		c, vague := l.est.Decay(i)
		c *= math.Exp(-l.optimism * vague)
		age := o.Age(i)
		s := Source{Inflow: b, Decay: c, Window: l.est.Window(i), Doubt: doubt}
		if l.est.Even() {
			l.Waiting[i] = env.Decayed(c, min(float64(age), cmp.Or(s.Window, math.Inf(1))))
		} else {
			l.Waiting[i] = l.gather(i, age, c, o)
			s.Inflow *= l.est.Ahead(i, o.Epoch+1, math.Exp(-c))
		}
		l.Last[i] = o.Last[i]
		l.view.Mean[i] = b * l.Waiting[i]
		if s != l.Told[i] {
			l.Told[i] = s
			l.inner.Know(i, s)
		}
	}
	l.Epoch = o.Epoch
}

// gather returns what waits at source i for an inflow of 1 that has hours and
// days: with gₙ the share of the mean that epoch n has,
//
//	w(n+1) = αw(n) + gₙ(1 − α)/c
//
// It is a function of the view alone; where the last view was that of the epoch
// before, it goes on from there.
func (l *Lift) gather(i, age int, c float64, o *env.Online) (w float64) {
	alpha, gain := math.Exp(-c), env.Decayed(c, 1)
	if age > 1 && l.Epoch == o.Epoch-1 && l.Last[i] == o.Last[i] {
		return alpha*l.Waiting[i] + gain*l.est.Share(i, o.Epoch)
	}
	for k, f := 0, 1.0; k < age && f > 1e-9; k++ {
		w += f * gain * l.est.Share(i, o.Epoch-k)
		f *= alpha
	}
	return w
}

// Update implements env.Learner.
func (l *Lift) Update(crawls []env.Crawled, next *env.Online) {
	l.crawls = l.crawls[:0]
	for _, c := range crawls {
		l.est.Add(c, next.Epoch-1)
		l.crawls = append(l.crawls, env.Crawled{Source: c.Source, Age: c.Age, Interest: c.Interest})
	}
	l.est.Fit(next.Epoch - 1)
	if inner, ok := l.inner.(env.Learner[env.Model]); ok {
		l.view.Online = *next
		inner.Update(l.crawls, &l.view)
	}
}

// Estimate returns what is known of source i by now: the interest that is
// published per epoch, λξ̄, and the decay rate c, 1/epoch.
func (l *Lift) Estimate(i int) (rate, decay float64) {
	rate, _ = l.est.Inflow(i)
	decay, _ = l.est.Decay(i)
	return rate, decay
}

// Share returns what source i is foretold to publish between the decisions
// epoch−1 and epoch, over its mean.
func (l *Lift) Share(i, epoch int) float64 { return l.est.Share(i, epoch) }

func (s LiftState) clone() LiftState {
	return LiftState{s.Epoch, slices.Clone(s.Last), slices.Clone(s.Waiting), slices.Clone(s.Told)}
}

// restore takes up a state and tells it to the policy inside.
func (l *Lift) restore(e estimate.State, s LiftState) error {
	n := len(l.Told)
	if len(s.Last) != n || len(s.Told) != n {
		return fmt.Errorf("a view of %d and %d sources; the learner has %d", len(s.Last), len(s.Told), n)
	}
	if err := check.Finite("waiting", s.Waiting, n); err != nil {
		return err
	}
	if err := l.est.Import(e); err != nil {
		return err
	}
	l.LiftState = s.clone()
	for i, s := range l.Told {
		if s.Decay > 0 { // was told
			l.inner.Know(i, s)
		}
	}
	return nil
}

// freeze returns the lifted policy as it is now, over one that learns no more.
func (l *Lift) freeze(inner Follower) *FrozenActor {
	f := *l
	f.est, f.inner, f.LiftState = l.est.Clone(), inner, l.LiftState.clone()
	f.view.Mean, f.crawls = make([]float64, len(l.Told)), nil
	return &FrozenActor{f}
}

// FrozenActor is what an [Actor] has learned, as a policy that learns no more.
type FrozenActor struct{ l Lift }

// Select implements env.Policy.
func (p *FrozenActor) Select(dst []int, o *env.Online) []int { return p.l.Select(dst, o) }
