package lspe

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// TestObservedTargets: in the model of TCNS, section IX, with one exponential
// draw per source and epoch, the learned policy earns at least what the index
// of the mean dynamics earns over the same content.
func TestObservedTargets(t *testing.T) {
	envtest.Alone(t)
	seeds, epochs, margin := 1, 8000, .999
	if *full {
		seeds, epochs, margin = 5, 20000, 1
		fmt.Println("| budget | myopic | Whittle, extended | learning | learned | by index alone | by margin alone |")
		fmt.Println("|---|---|---|---|---|---|---|")
	}
	for _, budget := range []float64{1, 2} {
		in := env.Paper(budget)
		o := env.PoissonOptions{Marks: env.MarksPerEpoch}
		var sum [6]float64
		for k := range seeds {
			seed := uint64(k + 1)
			play := func(col int, p env.Policy[env.Observed]) {
				sum[col] += floats.Sum(harvest(t, in, seed, o, env.NewAgent(p), epochs)) / float64(epochs*seeds)
			}
			l := newObserved(in, nil, stream.New(seed, stream.Policy))
			play(1, baselines.NewWhittleObserved(in, false))
			play(2, l)
			play(3, l.Frozen())
			if *full {
				play(0, baselines.NewMyopicObserved(in))
				l.set.MarginShare = 0
				play(4, l.Frozen())
				l.set.MarginShare = 1
				play(5, l.Frozen())
			}
		}
		if *full {
			fmt.Printf("| %v | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", budget, sum[0], sum[1], sum[2], sum[3], sum[4], sum[5])
		}
		if sum[3] < margin*sum[1] {
			t.Errorf("budget %v: learned earns %.2f; the index of the mean dynamics earns %.2f", budget, sum[3], sum[1])
		}
	}
}

// TestUnseenStates: beside a rich source that is crawled at every epoch, a slow one
// is near its ceiling while the learner learns. What it has learned is then run
// from states near 0, where the critic has seen nothing.
func TestUnseenStates(t *testing.T) {
	in := env.Instance{ID: "slow", Budget: 1, Sources: []env.Source{env.NewSource("rich", 1400, 6.7, 4.8), env.NewSource("slow", 75, .015, .37)}}
	o := env.PoissonOptions{Marks: env.MarksPerItem}
	for seed := range uint64(8) {
		l := newObserved(in, nil, stream.New(seed, stream.Policy))
		harvest(t, in, seed, o, env.NewAgent(l), 1000)
		learned := floats.Sum(harvest(t, in, seed, o, env.NewAgent(l.Frozen()), 200))
		rich := floats.Sum(harvest(t, in, seed, o, env.NewAgent(baselines.NewMyopicObserved(in)), 200))
		if learned < .98*rich {
			t.Errorf("seed %d: learned earns %.0f; myopic %.0f", seed, learned, rich)
		}
	}
}

// TestObservedThreshold holds the learned threshold of a single source at a
// fixed price against the best one, by what they earn in simulation.
func TestObservedThreshold(t *testing.T) {
	envtest.Alone(t)
	for _, decay := range []float64{.2, .7} {
		for _, share := range []float64{.3, .7} {
			s := env.NewSource("", decay/-math.Expm1(-decay), decay, 1) // u = 1
			price := share * s.Ceiling()
			in := env.Instance{Sources: []env.Source{s}, Budget: 1}
			l := newObserved(in, nil, stream.New(1, stream.Test))
			l.set.Price, l.set.Act, l.price, l.period, l.most = "none", "probabilistic", price, 20, 1000
			o := &env.Observed{}
			o.State, o.Last = []float64{1}, []int{-1}
			r := stream.New(2, stream.Test)
			for range 30000 {
				var crawls []env.Crawled
				if len(l.Select(nil, o)) > 0 {
					crawls = []env.Crawled{{Interest: o.State[0]}}
					o.State[0] = 0
				}
				o.State[0] = s.Factor()*o.State[0] + r.ExpFloat64()
				l.Update(crawls, o)
			}
			profit := func(threshold float64) float64 {
				r := stream.New(3, stream.Test)
				const epochs = 50000
				x, sum := 1.0, 0.0
				for range epochs {
					if x >= threshold {
						sum += x - price
						x = 0
					}
					x = s.Factor()*x + r.ExpFloat64()
				}
				return sum / epochs
			}
			best, at := 0.0, 0.0
			for k := 1; k < 100; k++ {
				if v := profit(.1 * float64(k)); v > best {
					best, at = v, .1*float64(k)
				}
			}
			if got := profit(l.Threshold(0)); got < .98*best {
				t.Errorf("decay %v, price %.3g: threshold %.3g earns %.4g; the best, %.3g, earns %.4g", decay, price, l.Threshold(0), got, at, best)
			}
		}
	}
}

// TestObservedSlow: where sources are slow, or differ in speed, no threshold is
// lost out of reach and no critic diverges.
func TestObservedSlow(t *testing.T) {
	envtest.Alone(t)
	for _, marks := range []env.Marks{env.MarksConstant, env.MarksPerItem, env.MarksPerEpoch} {
		for name, in := range map[string]env.Instance{
			"decay 0.1": slow(.1), "decay 0.01": slow(.01), "decay 1e-3": slow(1e-3), "decay 1e-5": slow(1e-5),
			"wide": env.Wide(50, 5, 3),
		} {
			o := env.PoissonOptions{Marks: marks}
			l := newObserved(in, nil, stream.New(1, stream.Policy))
			harvest(t, in, 1, o, env.NewAgent(l), 6000)
			got := floats.Sum(harvest(t, in, 2, o, env.NewAgent(l.Frozen()), 3000))
			want := floats.Sum(harvest(t, in, 2, o, env.NewAgent(baselines.NewWhittleObserved(in, false)), 3000))
			if got < .98*want {
				t.Errorf("%s, marks %v: learned earns %.4f of what the index of the mean dynamics earns; want .98", name, marks, got/want)
			}
		}
	}
}

// slow returns six sources of equal decay.
func slow(decay float64) env.Instance {
	in := env.Instance{Budget: 2}
	for _, rate := range []float64{8, 26, 24, 11, 17, 16} {
		in.Sources = append(in.Sources, env.NewSource("", rate, decay, 1))
	}
	return in
}

// TestObservedFixedAge: Θ₀ follows the best fixed age, and P is at least what
// it earns.
func TestObservedFixedAge(t *testing.T) {
	s := env.NewSource("", 20, .1, 1)
	s.Cost = 1.5
	l := newObserved(env.Instance{Sources: []env.Source{s}, Budget: 1.5}, nil, stream.New(1, stream.Test))
	for _, price := range []float64{40, 5, 80} {
		l.price = price
		for range 200 {
			l.follow(0)
		}
		age, best := bestThreshold(s, price)
		if l.src[0].fixed != float64(age) {
			t.Errorf("price %v: Θ₀ = %v; want %v", price, l.src[0].fixed, age)
		}
		l.src[0].eta, l.src[0].work = 0, 0
		if p, work := l.profit(0); !near(p, best, 1e-12) || !near(work, s.Cost/float64(age), 1e-12) {
			t.Errorf("price %v: P = %v and κ̄ = %v; want %v and %v", price, p, work, best, s.Cost/float64(age))
		}
		for eta, want := range map[float64]float64{18: 18, 30: s.Gain()} { // no more than comes in
			l.src[0].eta = eta
			if p, work := l.profit(0); p != want || work != 0 {
				t.Errorf("price %v, η %v: P = %v and κ̄ = %v; want %v and 0", price, eta, p, work, want)
			}
		}
	}
}

// TestObservedApart: beside usual sources stand one that all but never forgets,
// of which the profit less than what comes in decides, and one with a window of
// few epochs, whose state grows at once.
func TestObservedApart(t *testing.T) {
	lasting := world(1, [4]float64{54, .16, 2, 1}, [4]float64{196, 1.7e-4, .36, 1}, [4]float64{.41, .034, .69, 1}, [4]float64{.19, 1.3e-3, .69, 1})
	short := world(2.5, [4]float64{2.9, 2.7, .65, 1.4}, [4]float64{20, 3.7e-4, 2.5, 2.2}, [4]float64{121, .11, .27, 2.3})
	short.Sources[1].Window, short.Sources[2].Window = 5.3, 1.8
	for name, in := range map[string]env.Instance{"lasting": lasting, "short": short} {
		for seed := uint64(1); seed <= 4; seed++ {
			l := newObserved(in, nil, stream.New(seed, stream.Policy))
			learning := floats.Sum(harvest(t, in, seed, env.PoissonOptions{}, env.NewAgent(l), 3000))
			learned := floats.Sum(harvest(t, in, seed, env.PoissonOptions{}, env.NewAgent(l.Frozen()), 3000))
			whittle := floats.Sum(harvest(t, in, seed, env.PoissonOptions{}, env.NewAgent(baselines.NewWhittleObserved(in, false)), 3000))
			if !(learned >= .98*whittle && learning >= .97*whittle) {
				t.Errorf("%s, seed %d: learned earns %.4f of Whittle, learning %.4f; want .98 and .97", name, seed, learned/whittle, learning/whittle)
			}
		}
	}
}

// TestObservedSettings: what would do nothing is refused.
func TestObservedSettings(t *testing.T) {
	for want, change := range map[string]func(s *Settings){
		"critic is \"renewal\"": func(s *Settings) { s.Critic = "renewal" },
		"learn is \"epoch\"":    func(s *Settings) { s.Learn = "epoch" },
		"gamma is 3":            func(s *Settings) { s.Gamma = 3 },
	} {
		set := DefaultSettings()
		if err := set.ValidateObserved(); err != nil {
			t.Fatal(err)
		}
		change(&set)
		expect(t, set.ValidateObserved(), want)
	}
}

func TestObservedState(t *testing.T) {
	if err := newObserved(env.Paper(2), nil, stream.New(3, stream.Policy)).SetState(ObservedState{}); err == nil {
		t.Error("a state of no sources was taken")
	}
}

func BenchmarkPricedObserved(b *testing.B) {
	const n = 1000
	in := env.Lognormal(n, 100, 1)
	l := newObserved(in, nil, stream.New(1, stream.Policy))
	r := stream.New(2, stream.Test)
	o := &env.Observed{}
	o.State, o.Last = make([]float64, n), make([]int, n)
	next := &env.Observed{}
	next.State, next.Last = make([]float64, n), o.Last
	dst := make([]int, 0, n)
	var crawls []env.Crawled
	b.ReportAllocs()
	for b.Loop() {
		dst = l.Select(dst[:0], o)
		copy(next.State, o.State)
		crawls = crawls[:0]
		for _, i := range dst {
			crawls = append(crawls, env.Crawled{Source: i, Interest: o.State[i]})
			next.State[i] = 0
		}
		for i, s := range in.Sources {
			next.State[i] = s.Factor()*next.State[i] + s.Gain()*r.ExpFloat64()
		}
		l.Update(crawls, next)
		o, next = next, o
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/source")
}

// harvest runs an agent in a Poisson world and returns the reward of each epoch.
func harvest(t testing.TB, in env.Instance, seed uint64, o env.PoissonOptions, a env.Agent, epochs int) []float64 {
	t.Helper()
	return envtest.Play(t, envtest.Poisson(t, in, seed, o, a), a, epochs)
}

func near(got, want, tol float64) bool { return math.Abs(got-want) <= tol*(1+math.Abs(want)) }
