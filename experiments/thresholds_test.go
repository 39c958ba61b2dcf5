package experiments

import (
	"math"
	"testing"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
)

// TestAges: the exact age is the first at which the index reaches the price, whatever the
// law and the objective, and a learned one is none where its crawl does not pay the price.
func TestAges(t *testing.T) {
	paper, hump := env.Paper(1), env.Lognormal(5, 1, 1)
	for i := range hump.Sources {
		hump.Sources[i].Law = env.LawHump
	}
	fails := env.Paper(1).Sources
	for i := range fails {
		fails[i].Fails = .5
	}
	deadline := env.Objective{Law: env.LawDeadline, Time: 24 * time.Hour}
	for _, tt := range []struct {
		name    string
		sources []env.Source
	}{
		{"paper", paper.Sources},
		{"windows and costs", env.Mixed(5, 3, 1).Sources},
		{"hump", hump.Sources},
		{"fails", fails},
		{"delay", paper.WithObjective(env.Delay, time.Hour).Sources},
		{"deadline", paper.WithObjective(deadline, time.Hour).Sources},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, s := range tt.sources {
				for _, price := range []float64{.5, 20, 90, 1000} {
					want := index.FirstAge(0, 1000, func(age int) bool {
						return age > 0 && index.WhittleAtAge(s.MeanDynamics(), age) >= price
					})
					got := ages(s, price, 3)
					if want < 1000 && got[1] != want || want == 1000 && got[1] < 1000 {
						t.Errorf("source %d, price %v: crawled from age %d on; want %d", i+1, price, got[1], want)
					}
					// By value: at a source that is left alone nothing is earned, or, under
					// delay, all is lost.
					c := index.NewCurve(s.MeanDynamics())
					pays := c.At(3) > price*c.Cost || s.Law == env.LawDelay
					if pays != (got[0] == 3) || !pays && got[0] != index.Never {
						t.Errorf("source %d, price %v: the threshold 3 is shown as %d; a crawl brings %v and costs %v",
							i+1, price, got[0], c.At(3), price*c.Cost)
					}
				}
			}
			if got := ages(tt.sources[0], 1, math.Inf(1))[0]; got != index.Never {
				t.Errorf("no threshold is shown as %d", got)
			}
		})
	}
}
