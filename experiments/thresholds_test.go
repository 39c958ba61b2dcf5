package experiments

import (
	"math"
	"slices"
	"testing"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/learner"
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
						return age > 0 && index.WhittleAtAge(s, age) >= price
					})
					got, _ := exactThreshold(s, price, env.LevelOnline)
					if want < 1000 && got != want || want == 1000 && got < 1000 {
						t.Errorf("source %d, price %v: crawled from age %d on; want %d", i+1, price, got, want)
					}
					// By value: at a source that is left alone nothing is earned, or, under
					// delay, all is lost.
					c, learned := index.NewCurve(s), learnedAge(s, price, 3)
					pays := c.At(3) > price*c.Cost || s.Law == env.LawDelay
					if pays != (learned == 3) || !pays && learned != index.Never {
						t.Errorf("source %d, price %v: the threshold 3 is shown as %d; a crawl brings %v and costs %v",
							i+1, price, learned, c.At(3), price*c.Cost)
					}
				}
			}
			if got := learnedAge(tt.sources[0], 1, math.Inf(1)); got != index.Never {
				t.Errorf("no threshold is shown as %d", got)
			}
		})
	}
}

// thresholds is a learner whose thresholds are given, in epochs or as states.
type thresholds struct {
	learner.Learner
	of []float64
}

func (l thresholds) Price() float64          { return 1 }
func (l thresholds) Threshold(i int) float64 { return l.of[i] }

// TestPairs: in records the threshold of a learner that has learned the exact age is the exact
// one, whatever the law, and where crawls fail. None is exact where hosts limit crawls.
func TestPairs(t *testing.T) {
	hosts := env.Hosts(8, 3, 1)
	fails := hosts
	fails.PerHost = 0
	hump, err := env.Named("lognormal:6:1:hump", 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		in    env.Instance
		level env.Level
		known bool
	}{
		{"paper", env.Paper(2), env.LevelOnline, true},
		{"fails", fails, env.LevelOnline, true},
		{"fails, state seen", fails, env.LevelObserved, false},
		{"hosts", hosts, env.LevelOnline, false},
		{"windows and costs", env.Mixed(6, 4, 1), env.LevelOnline, true},
		{"hump", hump, env.LevelOnline, true},
		{"delay", env.Paper(2).WithObjective(env.Delay, time.Hour), env.LevelOnline, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, l := index.Relax(tt.in), thresholds{}
			for i := range tt.in.Sources {
				at := float64(r.Short[i])
				if r.Short[i] == index.Never {
					at = math.Inf(1)
				}
				l.of = append(l.of, at)
			}
			pairs := thresholdPairs(l, tt.in, r.Price*(1-1e-12), tt.level)
			if len(pairs) < 2 {
				t.Fatalf("there are %d pairs; want two or more", len(pairs))
			}
			for _, p := range pairs {
				i := slices.IndexFunc(tt.in.Sources, func(s env.Source) bool { return s.Name == p.Source })
				s, exact := tt.in.Sources[i], p.Exact.Value()
				if p.Exact.IsZero() == tt.known {
					t.Errorf("source %s: the exact threshold is %v; want known: %v", s.Name, exact, tt.known)
				}
				// Of the exponential law it lies between the states of this age and the one before.
				before, size := s.MeanState(r.Short[i]-1), math.Abs(exact)
				if tt.known && !(size > math.Abs(before) && size <= math.Abs(p.Learned)*(1+1e-9)) {
					t.Errorf("source %s: the exact threshold is %v; want %v, at least above %v",
						s.Name, exact, p.Learned, before)
				}
			}
		})
	}
}
