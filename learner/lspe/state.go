package lspe

import (
	"fmt"
	"math"

	"ephemera/learner/critic"
	"ephemera/learner/internal/check"
)

// State is the whole state of a [Learner] as data, between an Update and the
// next Select. It goes with the settings and the instance with which the
// learner was made, which it does not hold.
type State struct {
	Epochs    int              `json:"epochs"`
	Price     float64          `json:"price"`     // λ, interest per budget unit
	Scale     float64          `json:"scale"`     // h, interest per budget unit
	Threshold []float64        `json:"threshold"` // ln θ, θ in epochs
	Harvest   []float64        `json:"harvest"`   // η, interest per epoch
	Work      []float64        `json:"work"`      // κ̄, budget units per epoch
	Critic    critic.BankState `json:"critic"`    // rewards: harvests, costs
	Rand      []byte           `json:"rand"`      // of the stream of exploration
}

// State returns a copy of the learner's whole state. A learner that takes it up
// by SetState goes on as this one, bit for bit.
func (l *Learner) State() State {
	s := State{Epochs: l.n, Price: l.price, Scale: l.scale, Critic: l.critic.bank.State(), Rand: l.rand.State()}
	for i := range l.src {
		v := &l.src[i]
		s.Threshold, s.Harvest, s.Work = append(s.Threshold, v.lnTheta), append(s.Harvest, v.eta), append(s.Work, v.work)
	}
	return s
}

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Learner) SetState(s State) error {
	n := len(l.src)
	if err := check.First(
		l.restore(s.Epochs, s.Price, s.Scale, s.Rand),
		check.Finite("threshold", s.Threshold, n), check.Finite("harvest", s.Harvest, n), check.Finite("work", s.Work, n),
	); err != nil {
		return err
	}
	for i, t := range s.Threshold {
		if t < 0 || t > math.Log(l.most) {
			return fmt.Errorf("threshold has %v at place %d; allowed are 0 to %v", t, i, math.Log(l.most))
		}
	}
	if err := l.critic.bank.SetState(s.Critic); err != nil {
		return fmt.Errorf("critic: %w", err)
	}
	for i := range l.src {
		v := &l.src[i]
		v.lnTheta, v.eta, v.work = s.Threshold[i], s.Harvest[i], s.Work[i]
		v.reach()
		l.critic.tell(i)
	}
	return nil
}
