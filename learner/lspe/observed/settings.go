package observed

import (
	"cmp"
	"fmt"
	"math"

	"ephemera/learner/critic"
	"ephemera/learner/internal/check"
)

// Settings are the settings of the learner. None has a unit of interest.
type Settings struct {
	// Features is the degree of the critic's polynomials of the state, 1 to 6.
	Features int `toml:"features"`
	// Gamma is γ, the step of r in LSPE(0), above 0 and below 2.
	Gamma float64 `toml:"gamma"`
	// Critic is "lspe", or, to see what it does, "zero" (r = 0), "negative" (−r),
	// or "drift" (one epoch of waiting by the learned drift in place of r).
	Critic string `toml:"critic"`

	// B, A and D are b(n), a(n) and d(n), the steps of critic, actor and price.
	B critic.Steps `toml:"b"`
	A critic.Steps `toml:"a"`
	D critic.Steps `toml:"d"`

	// κ(n) = min(KappaMax, κ(0)·√(1 + n/KappaOver)), the slope of the logit in
	// ln X − ln T. κ(0) is Kappa; where a round, ΣC/M, takes more than ten epochs,
	// 1 + ln(ΣC/10M) times as much: the greatest of N draws of noise grows with ln N.
	Kappa     float64 `toml:"kappa"`
	KappaOver float64 `toml:"kappa_over"` // epochs
	KappaMax  float64 `toml:"kappa_max"`
}

// DefaultSettings returns the usual settings.
func DefaultSettings() Settings {
	return Settings{
		Features: 2, Gamma: .5, Critic: "lspe",
		B:     critic.Steps{Scale: 1, Block: 1, Power: .7, Shift: 2},
		A:     critic.Steps{Scale: 8, Block: 1, Power: .85, Shift: 200},
		D:     critic.Steps{Scale: 8, Block: 1, Power: .95, Shift: 100},
		Kappa: 6, KappaOver: 100, KappaMax: 40,
	}
}

// Validate reports the first setting that is out of its range.
func (s *Settings) Validate() error {
	if err := cmp.Or(
		check.Positive("kappa", s.Kappa),
		check.Positive("kappa_over", s.KappaOver),
		check.Positive("kappa_max", s.KappaMax),
		s.A.Valid("a"), s.B.Valid("b"), s.D.Valid("d"),
	); err != nil {
		return err
	}
	switch {
	case s.Features < 1 || s.Features > 6:
		return fmt.Errorf("features is %d; allowed are the degrees 1 to 6", s.Features)
	case !(s.Gamma > 0 && s.Gamma < 2):
		return fmt.Errorf("gamma is %v; allowed is above 0 and below 2", s.Gamma)
	case !(s.B.At(1) < 1):
		return fmt.Errorf("b begins at %v; allowed is below 1", s.B.At(1))
	}
	return check.OneOf("critic", s.Critic, "lspe", "zero", "negative", "drift")
}

// Version is that of [State]. It rises where a State has another form, and where a learner
// with the same State would go on otherwise. Change it with the line in learner/saved_test.go.
const Version = 27

// State is the whole state of a [Learner] as data, of n sources.
type State struct {
	Epochs    int            `json:"epochs"`
	Price     float64        `json:"price"`     // λ, interest per budget unit
	Scale     float64        `json:"scale"`     // h, interest per budget unit
	Unit      []float64      `json:"unit"`      // n: τ, interest
	Threshold []float64      `json:"threshold"` // n: ln T
	Drift     []float64      `json:"drift"`     // 6n: û, α̂, P of (1, X/τ) and x̂
	Critic    []critic.State `json:"critic"`    // n, rewards: G, D
	Rand      []byte         `json:"rand"`      // of the stream of exploration
}

// State returns a copy of the learner's whole state.
func (l *Learner) State() State {
	s := State{Epochs: l.n, Price: l.price, Scale: l.scale, Rand: l.rand.State()}
	for i := range l.src {
		s.Critic = append(s.Critic, l.critic[i].State())
		v := &l.src[i]
		s.Unit, s.Threshold = append(s.Unit, v.unit), append(s.Threshold, v.lnT)
		s.Drift = append(s.Drift, v.gain, v.factor, v.cov[0], v.cov[1], v.cov[2], v.top)
	}
	return s
}

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Learner) SetState(s State) error {
	n := len(l.src)
	if err := cmp.Or(
		check.Finite("price and scale", []float64{s.Price, s.Scale}, 2),
		check.Finite("unit", s.Unit, n), check.Finite("threshold", s.Threshold, n), check.Finite("drift", s.Drift, 6*n),
	); err != nil {
		return err
	}
	if s.Epochs < 0 || float64(s.Epochs) > 1<<53 || s.Price < 0 || s.Scale < 0 {
		return fmt.Errorf("epochs is %d, price %v and scale %v; allowed are 0 or more, and at most 2^53 epochs",
			s.Epochs, s.Price, s.Scale)
	}
	if len(s.Critic) != n {
		return fmt.Errorf("critic has %d entries; allowed are %d", len(s.Critic), n)
	}
	for i, c := range l.critic {
		// As Update leaves them.
		u, t, top := s.Unit[i], s.Threshold[i], s.Drift[6*i+5]
		if u < 0 || u > 0 && !(top > 0 && math.Abs(t-math.Log(top)) <= 1+math.Log(widest)) {
			return fmt.Errorf("source %d has the unit %v, the threshold e^%v and the greatest state %v; "+
				"allowed is a factor of %v between the last two", i+1, u, t, top, widest)
		}
		if err := c.SetState(s.Critic[i]); err != nil {
			return fmt.Errorf("source %d: critic: %w", i+1, err)
		}
	}
	if err := l.rand.SetState(s.Rand); err != nil {
		return fmt.Errorf("random stream: %w", err)
	}
	l.n, l.price, l.scale = s.Epochs, s.Price, s.Scale
	for i := range l.src {
		d := s.Drift[6*i:]
		l.src[i] = waiting{
			gain: d[0], factor: d[1], cov: [3]float64{d[2], d[3], d[4]}, top: d[5],
			unit: s.Unit[i], lnT: s.Threshold[i],
		}
	}
	return nil
}
