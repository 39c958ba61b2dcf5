package observed

import (
	"fmt"

	"ephemera/learner/critic"
)

// State is the whole state of a [Learner] as data, of n sources.
type State struct {
	Epochs    int            `json:"epochs"`
	Price     float64        `json:"price"`     // λ, interest per budget unit
	Scale     float64        `json:"scale"`     // h, interest per budget unit
	Unit      []float64      `json:"unit"`      // n: τ, interest
	Threshold []float64      `json:"threshold"` // n: ln T
	Drift     []float64      `json:"drift"`     // 6n: û, α̂, P and x̂
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
	if n := len(l.src); len(s.Critic) != n || len(s.Unit) != n {
		return fmt.Errorf("critic and unit have %d and %d entries; allowed are %d", len(s.Critic), len(s.Unit), n)
	}
	for i, c := range l.critic {
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
		l.src[i] = waiting{gain: d[0], factor: d[1], cov: [3]float64{d[2], d[3], d[4]}, top: d[5], unit: s.Unit[i], lnT: s.Threshold[i]}
	}
	return nil
}
