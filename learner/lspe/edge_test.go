package lspe

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
	"ephemera/learner/critic"
)

// TestPricedSettings runs the learner at the ends of its settings' ranges: what
// it learns stays finite and within the budget, and what is out of range is
// named.
func TestPricedSettings(t *testing.T) {
	envtest.Alone(t)
	in := env.Mixed(30, 5, 1)
	for name, change := range map[string]func(s *Settings){
		"γ near 2":       func(s *Settings) { s.Gamma = 1.999 },
		"γ near 0":       func(s *Settings) { s.Gamma = 1e-9 },
		"large steps":    func(s *Settings) { s.A, s.B, s.D = critic.Constant(1e6), critic.Constant(1e6), critic.Constant(10) },
		"small steps":    func(s *Settings) { s.A, s.B, s.D = critic.Constant(1e-9), critic.Constant(1e-9), critic.Constant(1e-9) },
		"long memory":    func(s *Settings) { s.Cycles = 1e9 },
		"short memory":   func(s *Settings) { s.Cycles = 1e-9 },
		"as the paper's": func(s *Settings) { s.A, s.B = critic.Steps{Scale: .5, Block: 500, Power: .6}, critic.Harmonic() },
	} {
		for _, way := range []string{"lspe", "renewal", "off", "2", "4", "epoch"} {
			set := DefaultSettings()
			switch way {
			case "2", "4":
				set.Features = way
			case "epoch":
				set.Learn = way
			default:
				set.Critic = way
			}
			change(&set)
			l := newModel(in, &set, stream.New(1, stream.Policy))
			earn(t, in, l, 1500)
			if _, err := json.Marshal(l.State()); err != nil {
				t.Errorf("%s, %s: %v", name, way, err)
			}
		}
	}
	for want, change := range map[string]func(s *Settings){
		"a: scale c is 0; allowed is a finite number above 0":          func(s *Settings) { s.A.Scale = 0 },
		"b: power is -1; allowed is 0 to 4":                            func(s *Settings) { s.B.Power = -1 },
		"d: block is 0; allowed is 1 to":                               func(s *Settings) { s.D.Block = 0 },
		"gamma is 2; allowed is above 0 and below 2":                   func(s *Settings) { s.Gamma = 2 },
		"gamma is NaN; allowed is above 0 and below 2":                 func(s *Settings) { s.Gamma = math.NaN() },
		"cycles is 0; allowed is a finite number above 0":              func(s *Settings) { s.Cycles = 0 },
		"features is \"9\"; allowed are exact and the degrees 1 to 8":  func(s *Settings) { s.Features = "9" },
		"features is \"02\"; allowed are exact and the degrees 1 to 8": func(s *Settings) { s.Features = "02" },
		"critic is \"\"; allowed are lspe, renewal, off":               func(s *Settings) { s.Critic = "" },
		"price is \"on\"; allowed are learned, none":                   func(s *Settings) { s.Price = "on" },
	} {
		set := DefaultSettings()
		change(&set)
		if err := set.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v; want %q", err, want)
		}
	}
}

// TestPricedUnaffordable: a source whose crawl costs more than the budget, the
// richest of all, changes neither price nor choices, whatever is known.
func TestPricedUnaffordable(t *testing.T) {
	envtest.Alone(t)
	plain := env.Paper(1)
	in := plain
	dear := env.NewSource("dear", 2000, 0.1, 1)
	dear.Cost = 1.2
	in.Sources = append(slices.Clone(plain.Sources), dear)
	type learner interface {
		Price() float64
		Threshold(i int) float64
	}
	const steps = 4000
	for name, build := range map[string]func(in env.Instance, r *stream.Rand) (learner, env.Agent){
		"model": func(in env.Instance, r *stream.Rand) (learner, env.Agent) {
			l := newModel(in, nil, r)
			return l, env.NewAgent(l)
		},
	} {
		run := func(in env.Instance) (learner, float64) {
			l, agent := build(in, stream.New(1, stream.Policy))
			return l, floats.Sum(harvest(t, in, 1, env.PoissonOptions{}, agent, steps)) / steps
		}
		l, want := run(plain)
		with, got := run(in)
		if got < .995*want || with.Price() < .8*l.Price() || with.Price() > 1.25*l.Price() || !math.IsInf(with.Threshold(4), 1) {
			t.Errorf("%s: %v at the price %v, and the threshold of the dear source is %v; without it %v at %v", name, got, with.Price(), with.Threshold(4), want, l.Price())
		}
	}
}

// TestPricedResumed: a fresh state taken up is the same state, whatever e^(ln k)
// is rounded to.
func TestPricedResumed(t *testing.T) {
	for n := 2; n < 60; n++ {
		in := env.Lognormal(n, 1, 1)
		a, b := newModel(in, nil, stream.New(1, stream.Policy)), newModel(in, nil, stream.New(1, stream.Policy))
		if err := b.SetState(a.State()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.src, b.src) {
			t.Errorf("%d sources: Θ is %v, and %v after SetState", n, a.src[0].Theta, b.src[0].Theta)
		}
	}
}

// TestPricedLasting: beside sources of usual decay one that hardly decays is
// crawled at the best age, though that is far beyond the greatest threshold.
func TestPricedLasting(t *testing.T) {
	in := env.Instance{Budget: 2, Sources: []env.Source{
		env.NewSource("", 16, 1e-6, 1), env.NewSource("", 19, 1e-6, 1),
		env.NewSource("", 24, .3, 1), env.NewSource("", 20, .3, 1), env.NewSource("", 12, 3, 1), env.NewSource("", 9, 3, 1),
	}}
	learned, learning, _ := ratios(t, in, 1, 10000, 5000, nil)
	if learned < .99 || learning < .99 {
		t.Errorf("learned earns %.4f of Whittle, learning %.4f; want .99", learned, learning)
	}
}

// TestPricedEdges runs the learners at all levels in worlds at the edge of what
// is allowed: they stay finite and earn about what exact Whittle earns.
func TestPricedEdges(t *testing.T) {
	envtest.Alone(t)
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
				l := newModel(in, nil, stream.New(1, stream.Policy))
				return env.NewAgent(l), func() any { return l.State() }
			},
		} {
			t.Run(fmt.Sprint(name, "/", level), func(t *testing.T) {
				a, state := build()
				const epochs = 1500
				got := floats.Sum(harvest(t, in, 1, env.PoissonOptions{}, a, epochs))
				if _, err := json.Marshal(state()); err != nil { // not finite
					t.Fatal(err)
				}
				want := floats.Sum(harvest(t, in, 1, env.PoissonOptions{}, env.NewAgent(baselines.NewWhittle(in)), epochs))
				if !(got >= .9*want) {
					t.Errorf("earned %v; Whittle earns %v", got, want)
				}
			})
		}
	}
}

// TestFirstEpochs: epoch n = 1, 2, … takes the steps a(n), b(n) and d(n), and
// what the actor does with them is what its equation says.
func TestFirstEpochs(t *testing.T) {
	set := DefaultSettings()
	set.A, set.B, set.D = critic.Steps{Scale: .01, Block: 1, Power: 1}, critic.Steps{Scale: .02, Block: 1, Power: 1}, critic.Steps{Scale: .04, Block: 1, Power: 1}
	set.Cycles = 1e-9
	in := env.Paper(1)
	l := newModel(in, &set, stream.New(1, stream.Policy))
	o := &env.Model{Online: env.Online{Last: []int{-1, -1, -1, -1}}}
	for _, s := range in.Sources {
		o.Mean = append(o.Mean, s.Gain())
	}
	for n := 1; n <= 3; n++ {
		before := slices.Clone(l.src)
		dst := l.Select(nil, o)
		if a, d, b := l.clocks.actor, l.clocks.price, 1/l.clocks.least; a != set.A.At(n) || d != set.D.At(n) || !near(b, set.B.At(n), 1e-12) || l.clocks.most != float64(n) {
			t.Errorf("epoch %d: a, b, d = %v, %v, %v", n, a, b, d)
		}
		kappa := set.Kappa * math.Sqrt(1+float64(n-1)/set.KappaOver)
		for i := range l.src {
			e := l.excess(i, o.Mean[i], float64(o.Age(i))) / l.measure()
			f := 1 / (1 + math.Exp(-kappa*(math.Log(float64(o.Age(i))+.5)-before[i].lnTheta)))
			better := 0.0
			if e > 0 {
				better = 1
			}
			step := min(set.A.At(n)*kappa/max(before[i].Theta, float64(o.Age(i))), .5) * math.Abs(f-better) * max(-1, min(1, e))
			if !near(l.push[i], step, 1e-12) {
				t.Errorf("epoch %d, source %d: the actor's step is %v; want %v", n, i, l.push[i], step)
			}
		}
		price, scale, demand := l.price, l.scale, l.demand
		var crawls []env.Crawled
		for _, i := range dst {
			crawls = append(crawls, env.Crawled{Source: i, Age: o.Age(i), Interest: o.Mean[i]})
			o.Last[i] = o.Epoch
		}
		least := o.Mean[dst[0]]
		o.Epoch++
		for i, s := range in.Sources {
			o.Mean[i] = s.MeanState(o.Age(i))
		}
		l.Update(crawls, o)
		if n == 1 {
			scale = least
		}
		scale *= math.Pow(least/scale, 1/float64(n))
		if want := max(0, price+set.D.At(n)*max(price, scale)*clip(demand-1, 1)); !near(l.price, want, 1e-12) {
			t.Errorf("epoch %d: the price goes from %v to %v; want %v", n, price, l.price, want)
		}
	}
}

// TestOthersCrawled: the learner learns from the crawls that were made, not from
// those that it chose.
func TestOthersCrawled(t *testing.T) {
	in := env.Paper(1)
	l := newModel(in, nil, stream.New(1, stream.Policy))
	w, err := env.NewMean(in, false)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2000 {
		l.Select(nil, &w.View().Model)
		crawls, err := w.Step([]int{n % 4})
		if err != nil {
			t.Fatal(err)
		}
		l.Update(crawls, &w.View().Model)
	}
	for i, s := range in.Sources {
		if want := s.MeanState(4) / 4; !near(l.src[i].eta, want, 1e-6) {
			t.Errorf("source %d earns %v per epoch; with a crawl in four epochs it earns %v", i, l.src[i].eta, want)
		}
	}
}

// expect fails unless err is one line that begins with want.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v; want one line that begins with %q", err, want)
	}
}
