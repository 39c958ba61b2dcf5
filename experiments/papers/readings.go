package papers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/experiments/stats"
	"ephemera/learner/allerton"
	"ephemera/learner/lspe"
)

// sample is what a reading gave: one value for each seed, or one in all where
// nothing is drawn.
type sample struct {
	values []float64
	random bool
}

// samples holds what was measured, by the key of the reading.
type samples map[string]sample

func (s samples) mean(key string) float64 { return stats.Mean(s[key].values) }

// study measures all that the catalogue asks for.
func study(ctx context.Context, o Options) (samples, error) {
	s := samples{}
	if err := fixed(ctx, s); err != nil {
		return nil, err
	}
	runs := random(o.Steps)
	var mu sync.Mutex
	seed := func(job int) uint64 { return o.Seed + uint64(job/len(runs)) }
	err := experiments.Each(ctx, o.Seeds*len(runs), o.Workers, o.Progress,
		func(job int) string { return fmt.Sprintf("seed %d", seed(job)) },
		func(ctx context.Context, job int) error {
			got, err := runs[job%len(runs)](ctx, seed(job))
			mu.Lock()
			defer mu.Unlock()
			for key, v := range got {
				if s[key].values == nil {
					s[key] = sample{values: make([]float64, o.Seeds), random: true}
				}
				s[key].values[job/len(runs)] = v
			}
			return err
		})
	return s, err
}

// run measures something under a seed.
type run func(ctx context.Context, seed uint64) (map[string]float64, error)

// random returns the runs that are made for every seed.
func random(steps int) []run {
	runs := []run{func(ctx context.Context, seed uint64) (map[string]float64, error) { return compare(ctx, seed, steps) }}
	for _, v := range learners {
		runs = append(runs, func(ctx context.Context, seed uint64) (map[string]float64, error) { return learn(ctx, v, seed, steps) })
	}
	return runs
}

// play runs an agent in a scene in the way of all commands.
func play(ctx context.Context, s experiments.Scene, steps int, build func(in env.Instance) env.Agent, watch experiments.Watcher) (experiments.Outcome, error) {
	e := experiments.Entry{New: func(k experiments.Known, _ any) (env.Agent, error) { return build(k.Instance), nil }}
	p := experiments.Play{Entry: &e, Level: env.LevelObserved, Epochs: steps}
	p.Watch = func(experiments.Running) experiments.Watcher { return watch }
	got, err := s.Play(ctx, p)
	return got.Learning, err
}

// law is a reading of how content arrives.
type law struct {
	key, text string
	poisson   string // the same law without the exponential draw
}

// The first law of Poisson arrivals and the first two with exponential interest
// are what the documents say.
var laws = []law{
	{"constant", "Poisson arrivals", "constant"},
	{"counts", "Poisson counts times the mean worth of an item", "counts"},
	{"per-item", "one exponential draw per item", "constant"},
	{"per-epoch", "one exponential draw per source and epoch", "constant"},
	{"per-epoch-counts", "one exponential draw per source and epoch, Poisson counts times the mean worth of an item", "counts"},
}

var (
	constantLaws    = laws[:2]
	exponentialLaws = laws[2:]
)

// draw returns the content of every law.
func draw(seed uint64, steps int) (map[string]*tape, error) {
	sources := env.Paper(1).Sources
	items, err := record(sources, seed, steps, env.MarksConstant)
	if err != nil {
		return nil, err
	}
	perItem, err := record(sources, seed, steps, env.MarksPerItem)
	if err != nil {
		return nil, err
	}
	counts := count(sources, seed, steps)
	return map[string]*tape{
		"constant": items, "counts": counts,
		"per-item": perItem, "per-epoch": items.marked(seed), "per-epoch-counts": counts.marked(seed),
	}, nil
}

// policy is a reading of "deterministic Whittle index policy", or one that it
// was compared with.
type policy struct {
	key, text string
	new       func(in env.Instance) env.Agent
}

func with(f form) func(env.Instance) env.Agent {
	return func(in env.Instance) env.Agent { return newByForm(in, f) }
}

// indices are the readings of the index, the one as printed first.
var indices = []policy{
	{"theorem", "Theorem 1 as printed, η = 0 above u*", func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewWhittleObserved(in, true)) }},
	{"theorem-extended", "Theorem 1 with γ = x above u*", func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewWhittleObserved(in, false)) }},
	whittleAtAge,
	{"theorem-eta", "Theorem 1 with the real part of the logarithm as η above u*", with(form{false, math.Ceil, realLog, false})},
	{"theorem-real", "Theorem 1 with the complex logarithm above u*, compared by the real part of the index", with(form{false, math.Ceil, complexLog, false})},
	{"theorem-modulus", "Theorem 1 with the complex logarithm above u*, compared by modulus", with(form{false, math.Ceil, complexLog, true})},
	{"theorem-clipped", "Theorem 1 with the logarithm clipped at 2⁻⁵²", with(form{false, math.Ceil, clipped, false})},
	{"slides", "the slides' form, η((1−α)x − u) + x with ⌈·⌉, η = 0 above u*", with(form{true, math.Ceil, zero, false})},
	{"slides-real", "the slides' form with the complex logarithm above u*, compared by the real part", with(form{true, math.Ceil, complexLog, false})},
	{"slides-modulus", "the slides' form with the complex logarithm above u*, compared by modulus", with(form{true, math.Ceil, complexLog, true})},
	{"slides-clipped", "the slides' form with the logarithm clipped at 2⁻⁵²", with(form{true, math.Ceil, clipped, false})},
	{"remark", "the Remark's form, without ⌈·⌉, η = 0 above u*", with(form{true, exact, zero, false})},
}

var whittleAtAge = policy{"theorem-age", "Theorem 1 at the age instead of the state", func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewWhittle(in)) }}

var rivals = []policy{
	{"greedy", "greedy by age", func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewGreedy(in)) }},
	{"round-robin", "round robin", func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewRoundRobin(in.Terms())) }},
}

// compare plays all policies under all laws with one seed. Keys are law/policy for
// the reward with budget 1, and constant/policy/source-1 for the crawls per
// epoch of source 1 with budget 2.
func compare(ctx context.Context, seed uint64, steps int) (map[string]float64, error) {
	tapes, err := draw(seed, steps)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, p := range slices.Concat(indices, rivals) {
		for law, t := range tapes {
			key := law + "/" + p.key
			got, err := play(ctx, t.scene(1, false), steps, p.new, nil)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			out[key] = got.Reward
		}
		_, crawls, err := trajectory(ctx, tapes["constant"].scene(2, false), p, steps)
		if err != nil {
			return nil, fmt.Errorf("%s, budget 2: %w", p.key, err)
		}
		out["constant/"+p.key+"/source-1"] = stats.Mean(crawls[0])
	}
	return out, nil
}

// variant is a reading of Allerton's experiment.
type variant struct {
	key, text string
	reading   string // of the learner
	change    func(s *allerton.Settings)
}

// The first is what the paper says, with our choice where it says nothing.
var learners = []variant{
	{"printed", "as printed, c = 0.5, thresholds begin in the middle", "printed", nil},
	{"high", "as printed, thresholds begin at u*", "printed", func(s *allerton.Settings) { s.Start = 1 }},
	{"c-0.9", "as printed, c = 0.9", "printed", func(s *allerton.Settings) { s.A.Scale = .9 }},
	{"delta", "as printed, δ = 10⁶", "printed", func(s *allerton.Settings) { s.Delta = 1e6 }},
	{"blocks", "as printed, averages with b(n) = 0.5/⌈n/1000⌉^⅔", "printed", func(s *allerton.Settings) { s.B = lspe.Steps{Scale: .5, Block: 1000, Power: 2. / 3} }},
	{"inverse", "the running inverse, features of x/u*, b(n) = 0.5/⌈n/1000⌉^⅔", "inverse", nil},
	{"crawled", "the same, reward of the crawled sources", "crawled", nil},
}

// learn runs Allerton's scheme. Keys are allerton/variant and
// allerton/variant/crawls.
func learn(ctx context.Context, v variant, seed uint64, steps int) (map[string]float64, error) {
	var set allerton.Settings
	if err := set.SetReading(v.reading); err != nil {
		return nil, err
	}
	if v.change != nil {
		v.change(&set)
	}
	p, err := allerton.New(env.Paper(1), set, stream.New(seed, stream.Policy))
	if err != nil {
		return nil, fmt.Errorf("allerton/%s: %w", v.key, err)
	}
	free := even(env.Paper(1).Sources, steps).scene(1, true)
	got, err := play(ctx, free, steps, func(env.Instance) env.Agent { return env.NewAgent[env.Model](p) }, nil)
	if err != nil {
		return nil, fmt.Errorf("allerton/%s: %w", v.key, err)
	}
	return map[string]float64{"allerton/" + v.key: got.Reward, "allerton/" + v.key + "/crawls": got.Crawls}, nil
}

// control is a reading of the relaxed control of TCNS, section VII.
type control struct {
	key, text string
	options   *baselines.RelaxedOptions // nil for the defaults
	ages      []int                     // at the beginning; nil for x = u
	excluded  string                    // why it may not stand for the figure
}

var controls = []control{
	{key: "printed", text: "threshold (21), price from 0, x = u at the start"},
	{key: "exact", text: "threshold in whole epochs, price from 0, x = u at the start", options: &baselines.RelaxedOptions{Exact: true, Hold: 10, Power: 1}},
	{key: "from-100", text: "threshold in whole epochs, price from 100", options: &baselines.RelaxedOptions{Exact: true, Price: 100, Hold: 10, Power: 1}},
	{key: "apart", text: "threshold (21), price from 0, sources 1 and 2 out of step at the start (ages 1, 2, 1, 1)", ages: []int{1, 2, 1, 1}},
	{key: "exact-apart", text: "threshold in whole epochs, price from 0, sources 1 and 2 out of step at the start (ages 1, 2, 1, 1)", options: &baselines.RelaxedOptions{Exact: true, Hold: 10, Power: 1}, ages: []int{1, 2, 1, 1}},
	{key: "sought", text: "threshold in whole epochs, price from 94 with b(k) = 2/(1 + k/10), sources 1 and 2 out of step at the start (ages 1, 2, 1, 1)",
		options: &baselines.RelaxedOptions{Exact: true, Price: 94, First: 2, Hold: 10, Power: 1}, ages: []int{1, 2, 1, 1}, excluded: sought},
}

// deterministic is the length of the runs of TCNS in the mean dynamics, epochs.
const deterministic = 1000

// fixed measures what draws nothing.
func fixed(ctx context.Context, s samples) error {
	t := even(env.Paper(1).Sources, deterministic)
	one := func(key string, v float64) { s[key] = sample{values: []float64{v}} }
	for _, budget := range []float64{1, 2} {
		reward, crawls, err := trajectory(ctx, t.scene(budget, false), whittleAtAge, deterministic)
		if err != nil {
			return err
		}
		for i, c := range crawls {
			key := fmt.Sprintf("mean-%v/source-%d/", budget, i+1)
			one(key+"crawls", stats.Mean(c))
			// The first 100 epochs are left out: patterns need time to settle.
			one(key+"period", float64(period(c[100:])))
			one(key+"gaps", float64(gaps(c[100:])))
		}
		if budget == 1 {
			one("mean-1/whittle", stats.Mean(reward))
			one("mean-1/whittle-100", stats.Mean(reward[:100]))
			one("mean-1/whittle-60", stats.Mean(reward[:60]))
			// The first epoch finds empty sources.
			one("mean-1/whittle-empty", stats.Mean(append([]float64{0}, reward[:deterministic-1]...)))
			one("mean-1/whittle-empty-61", stats.Mean(append([]float64{0}, reward[:60]...)))
		}
	}
	only := func(shares ...float64) func(env.Instance) env.Agent {
		return func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewEvenSchedule(in.Terms(), shares)) }
	}
	for _, p := range []policy{
		{key: "mean-1/only-1", new: only(1, 0, 0, 0)},
		{key: "mean-1/only-2", new: only(0, 1, 0, 0)},
		{key: "mean-1/slides", new: with(form{true, math.Ceil, zero, false})},
		// An η that is rounded up although it is whole falls into the next epoch.
		{key: "mean-1/slides-exceeding", new: with(form{true, func(eta float64) float64 { return math.Floor(eta+1e-9) + 1 }, zero, false})},
	} {
		got, err := play(ctx, t.scene(1, false), deterministic, p.new, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", p.key, err)
		}
		one(p.key, got.Reward)
	}
	for _, c := range controls {
		p, err := baselines.NewRelaxedControl(t.scene(1, true).Instance, c.options)
		if err != nil {
			return fmt.Errorf("relaxed control, %s: %w", c.key, err)
		}
		got, err := play(ctx, t.scene(1, true, c.ages...), deterministic, func(env.Instance) env.Agent { return env.NewAgent(p) }, nil)
		if err != nil {
			return fmt.Errorf("relaxed control, %s: %w", c.key, err)
		}
		one("relaxed/"+c.key, got.Reward)
		one("relaxed/"+c.key+"/over", got.Over)
	}
	return nil
}

// trajectory runs a policy and returns the reward of every epoch, and for every
// source whether it was crawled (1) or not (0).
func trajectory(ctx context.Context, at experiments.Scene, p policy, epochs int) (reward []float64, crawls [][]float64, err error) {
	crawls = make([][]float64, len(at.Instance.Sources))
	for i := range crawls {
		crawls[i] = make([]float64, epochs)
	}
	_, err = play(ctx, at, epochs, p.new, func(_ int, r float64, got []env.Crawled) error {
		for _, c := range got {
			crawls[c.Source][len(reward)] = 1
		}
		reward = append(reward, r)
		return nil
	})
	return reward, crawls, err
}

// period returns the least number of epochs after which the crawls of a source
// repeat, or 0 if they do not within half of the run or there are none.
func period(crawls []float64) int {
	if !slices.Contains(crawls, 1) {
		return 0
	}
	for p := 1; p <= len(crawls)/2; p++ {
		if slices.Equal(crawls[p:], crawls[:len(crawls)-p]) {
			return p
		}
	}
	return 0
}

// gaps returns how many different gaps there are between crawls of a source.
func gaps(crawls []float64) int {
	seen := map[int]bool{}
	last := -1
	for n, v := range crawls {
		if v == 0 {
			continue
		}
		if last >= 0 {
			seen[n-last] = true
		}
		last = n
	}
	return len(seen)
}
