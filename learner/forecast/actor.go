package forecast

import (
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
	return check.First(checkOptimism(s.Optimism), o.Validate(), s.Settings.Validate())
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
func (l *Actor) Frozen() *Policy { return l.freeze(frozen{l.actor.Frozen()}) }

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
