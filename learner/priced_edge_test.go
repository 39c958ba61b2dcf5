package learner

import (
	"encoding/json"
	"fmt"
	"testing"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// TestPricedEdges runs the learners at all levels in worlds at the edge of what
// is allowed: they stay finite and earn about what exact Whittle earns.
func TestPricedEdges(t *testing.T) {
	silent := env.Lognormal(5, 2, 1)
	silent.Sources[0].Rate = 0
	silent.Sources[3].Interest = 0
	all := env.Lognormal(4, 4, 2)
	mute := env.Lognormal(3, 1, 3)
	for i := range mute.Sources {
		mute.Sources[i].Rate = 0
	}
	apart := env.Instance{Budget: 1, Sources: []env.Source{
		env.NewSource("fleeting", 20, 40, 10), env.NewSource("lasting", .5, 1e-3, 1),
		env.NewSource("poor", 1e-9, .3, 1e-9), env.NewSource("rich", 1e4, .3, 1),
	}}
	dear := env.Mixed(6, 3, 4)
	dear.Sources[2].Cost = 40 // can never be paid for
	dear.Sources[4].Cost = 1e-3
	for name, in := range map[string]env.Instance{
		"one source": {Budget: 1, Sources: env.Lognormal(1, 1, 1).Sources},
		"silent":     silent, "all": all, "mute": mute, "apart": apart, "dear": dear,
	} {
		for level, build := range map[string]func() (env.Agent, func() any){
			"model": func() (env.Agent, func() any) {
				l := NewPriced(in, nil, stream.New(1, stream.Policy))
				return env.NewAgent(l), func() any { return l.State() }
			},
			"observed": func() (env.Agent, func() any) {
				l := NewPricedObserved(in, nil, stream.New(1, stream.Policy))
				return env.NewAgent(l), func() any { return l.State() }
			},
			"online": func() (env.Agent, func() any) {
				l := NewPricedOnline(in.Terms(), nil, stream.New(1, stream.Policy))
				return env.NewAgent(l), func() any { return l.State() }
			},
		} {
			t.Run(fmt.Sprint(name, "/", level), func(t *testing.T) {
				a, state := build()
				const epochs = 1500
				got := total(rewards(t, in, 1, env.PoissonOptions{}, a, epochs))
				if _, err := json.Marshal(state()); err != nil { // not finite
					t.Fatal(err)
				}
				want := total(rewards(t, in, 1, env.PoissonOptions{}, env.NewAgent(baselines.NewWhittle(in)), epochs))
				if !(got >= .9*want) {
					t.Errorf("earned %v; Whittle earns %v", got, want)
				}
			})
		}
	}
}
