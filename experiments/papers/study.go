package papers

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/experiments/stats"
	"ephemera/learner/allerton"
	"ephemera/learner/lspe"
)

// deterministic is the length of the runs of TCNS in the mean dynamics, epochs.
const deterministic = 1000

// samples holds what was measured, by key.
type samples map[string]Sample

// study measures all that the catalogue asks for.
func study(ctx context.Context, o Options) (samples, error) {
	type job struct {
		seed uint64
		at   int
		run  run
	}
	var jobs []job
	for k := range o.Seeds {
		for _, run := range random(o.Steps) {
			jobs = append(jobs, job{o.Seed + uint64(k), k, run})
		}
	}
	s := samples{}
	if err := fixed(ctx, s); err != nil {
		return nil, err
	}
	var (
		mu   sync.Mutex
		done int
	)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(o.Workers)
	for _, j := range jobs {
		if inner.Err() != nil {
			break
		}
		g.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("seed %d: panic: %v\n%s", j.seed, p, debug.Stack())
				}
			}()
			got, err := j.run(inner, j.seed)
			if err != nil {
				return fmt.Errorf("seed %d: %w", j.seed, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for key, v := range got {
				x := s[key]
				if x.Values == nil {
					x = Sample{Values: make([]float64, o.Seeds), Random: true}
				}
				x.Values[j.at] = v
				s[key] = x
			}
			done++
			if o.Progress != nil {
				o.Progress(done, len(jobs))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return s, ctx.Err()
}

// run measures something under a seed.
type run func(ctx context.Context, seed uint64) (map[string]float64, error)

// random returns the runs that are made for every seed.
func random(steps int) []run {
	var runs []run
	for _, l := range laws {
		runs = append(runs, func(ctx context.Context, seed uint64) (map[string]float64, error) {
			return playLaw(ctx, l, seed, steps)
		})
	}
	for _, v := range learners {
		runs = append(runs, func(ctx context.Context, seed uint64) (map[string]float64, error) { return learn(ctx, v, seed, steps) })
	}
	return runs
}

// play runs an agent in a scene in the way of all commands. It may crawl more
// than the budget if the scene lets it.
func play(ctx context.Context, s experiments.Scene, steps int, build func(in env.Instance) (env.Agent, error), watch experiments.Watcher) (experiments.Outcome, error) {
	e := experiments.Entry{New: func(k experiments.Known, _ any) (env.Agent, error) { return build(k.Instance) }}
	p := experiments.Play{Entry: &e, Level: env.LevelObserved, Epochs: steps}
	p.Watch = func(experiments.Running) experiments.Watcher { return watch }
	got, err := s.Play(ctx, p)
	return got.Learning, err
}

// law is a reading of how content arrives.
type law struct {
	key, text string
	marks     env.Marks // of the simulator
	coarse    *coarse   // instead of the simulator
	all       bool      // play all forms, not only the chief ones
}

// The first law of Poisson arrivals and the first two with exponential interest
// are what the documents say; the others are other readings.
var laws = []law{
	{key: "constant", text: "Poisson arrivals", marks: env.MarksConstant, all: true},
	{key: "per-item", text: "one exponential draw per item", marks: env.MarksPerItem},
	{key: "per-epoch", text: "one exponential draw per source and epoch", marks: env.MarksPerEpoch, all: true},
	{key: "at-end", text: "Poisson arrivals, all at the end of the epoch, without decay in it", coarse: &coarse{worth: atEnd, mark: constant}},
	{key: "at-beginning", text: "Poisson arrivals, all at the beginning of the epoch", coarse: &coarse{worth: atBeginning, mark: constant}},
	{key: "counts", text: "Poisson counts times the mean worth of an item", coarse: &coarse{worth: anyTime, mark: constant}},
	{key: "per-epoch-counts", text: "one exponential draw per source and epoch, Poisson counts times the mean worth of an item", coarse: &coarse{worth: anyTime, mark: exponential}},
	{key: "per-epoch-at-end", text: "one exponential draw per source and epoch, all items at the end of the epoch", coarse: &coarse{worth: atEnd, mark: exponential}},
	{key: "per-epoch-at-beginning", text: "one exponential draw per source and epoch, all items at the beginning of the epoch", coarse: &coarse{worth: atBeginning, mark: exponential}},
	{key: "shared", text: "one exponential draw per epoch for all sources", coarse: &coarse{worth: anyTime, mark: exponential, shared: true}},
	{key: "lasting", text: "one exponential draw per source for the whole run", coarse: &coarse{worth: anyTime, mark: exponential, lasting: true}},
	{key: "rate", text: "one exponential draw per source and epoch with ξ̄ as its rate", coarse: &coarse{worth: anyTime, mark: withRate}},
}

// policy is a reading of what is played.
type policy struct {
	key, text string
	chief     bool // played under every law
	form      *form
	new       func(in env.Instance) env.Agent // where there is no form
}

// policies are the readings of "deterministic Whittle index policy", and what
// it was compared with.
var policies = []policy{
	{key: "theorem", text: "Theorem 1 as printed, η = 0 above u*", chief: true, new: func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewWhittleObserved(in, true)) }},
	{key: "theorem-extended", text: "Theorem 1 with γ = x above u*", chief: true, new: func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewWhittleObserved(in, false)) }},
	{key: "age", text: "Theorem 1 at the age instead of the state", new: func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewWhittle(in)) }},
	{key: "slides", text: "the slides' form, η((1−α)x − u) + x with ⌈·⌉, η = 0 above u*", chief: true, form: &form{true, math.Ceil, zero}},
	{key: "slides-real", text: "the slides' form with the real part of the logarithm above u*", chief: true, form: &form{true, math.Ceil, realPart}},
	{key: "slides-modulus", text: "the slides' form with the complex logarithm above u*, compared by modulus", form: &form{true, math.Ceil, modulus}},
	{key: "slides-clipped", text: "the slides' form with the logarithm clipped at 2⁻⁵²", form: &form{true, math.Ceil, clipped}},
	{key: "slides-floor", text: "the slides' form with ⌊·⌋", form: &form{true, math.Floor, zero}},
	{key: "slides-round", text: "the slides' form with η rounded to the nearest integer", form: &form{true, math.Round, zero}},
	{key: "remark", text: "the Remark's form, without ⌈·⌉, η = 0 above u*", form: &form{true, exact, zero}},
	{key: "theorem-real", text: "Theorem 1 with the real part of the logarithm above u*", form: &form{false, math.Ceil, realPart}},
	{key: "theorem-modulus", text: "Theorem 1 with the complex logarithm above u*, compared by modulus", form: &form{false, math.Ceil, modulus}},
	{key: "theorem-clipped", text: "Theorem 1 with the logarithm clipped at 2⁻⁵²", form: &form{false, math.Ceil, clipped}},
	{key: "theorem-first", text: "Theorem 1 with sources above u* before all others", form: &form{false, math.Ceil, first}},
	{key: "theorem-floor", text: "Theorem 1 with ⌊·⌋", form: &form{false, math.Floor, zero}},
	{key: "myopic", text: "argmax x", new: func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewMyopicObserved(in)) }},
	{key: "greedy", text: "greedy by age", chief: true, new: func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewGreedy(in)) }},
	{key: "round-robin", text: "round robin", chief: true, new: func(in env.Instance) env.Agent { return env.NewAgent(baselines.NewRoundRobin(in.Terms())) }},
}

func (p policy) agent(in env.Instance) (env.Agent, error) {
	if p.form != nil {
		return env.NewAgent[env.Observed](newByForm(in, *p.form)), nil
	}
	return p.new(in), nil
}

// playLaw plays the policies under one law and seed. Keys are law/policy for
// the reward with budget 1, and law/policy/source-1 for the crawls per epoch of
// source 1 with budget 2.
func playLaw(ctx context.Context, l law, seed uint64, steps int) (map[string]float64, error) {
	in := env.Paper(1)
	var t *tape
	if l.coarse != nil {
		t = l.coarse.draw(in.Sources, seed, steps)
	} else {
		var err error
		if t, err = record(in.Sources, seed, steps, l.marks); err != nil {
			return nil, err
		}
	}
	out := map[string]float64{}
	for _, p := range policies {
		if !p.chief && !l.all {
			continue
		}
		key := l.key + "/" + p.key
		got, err := play(ctx, t.scene(1, false), steps, p.agent, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out[key] = got.Reward
		if l.key != "constant" {
			continue
		}
		var crawls float64
		if _, err := play(ctx, t.scene(2, false), steps, p.agent, func(_ int, _ float64, crawled []env.Crawled) error {
			for _, c := range crawled {
				if c.Source == 0 {
					crawls++
				}
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("%s, budget 2: %w", key, err)
		}
		out[key+"/source-1"] = crawls / float64(steps)
	}
	return out, nil
}

// variant is a reading of Allerton's experiment.
type variant struct {
	key, text string
	change    func(s *allerton.Settings)
}

// The first is what the paper says, with our choice where it says nothing.
var learners = []variant{
	{"default", "reward of the crawled sources, c = 0.5, thresholds begin in the middle", func(*allerton.Settings) {}},
	{"literal", "reward Σ X as the recursion prints it", func(s *allerton.Settings) { s.Reward = "literal" }},
	{"tikhonov", "the inverse always in Tikhonov's form", func(s *allerton.Settings) { s.Tikhonov = "always" }},
	{"harmonic", "averages with step 1/(n+1)", func(s *allerton.Settings) { s.B = lspe.Harmonic() }},
	{"raw", "features of x instead of x/u*", func(s *allerton.Settings) { s.Features = "raw" }},
	{"cut", "no gradient where a threshold is projected", func(s *allerton.Settings) { s.Projection = "cut" }},
	{"low", "thresholds begin at u", func(s *allerton.Settings) { s.Start = 0 }},
	{"quarter", "thresholds begin at a quarter of their interval", func(s *allerton.Settings) { s.Start = 0.25 }},
	{"high", "thresholds begin at u*", func(s *allerton.Settings) { s.Start = 1 }},
	{"c-0.1", "c = 0.1", func(s *allerton.Settings) { s.A.Scale, s.B.Scale = 0.1, 0.1 }},
	{"c-0.9", "c = 0.9", func(s *allerton.Settings) { s.A.Scale, s.B.Scale = 0.9, 0.9 }},
}

// learn runs Allerton's scheme. Keys are allerton/variant and
// allerton/variant/crawls.
func learn(ctx context.Context, v variant, seed uint64, steps int) (map[string]float64, error) {
	set := allerton.DefaultSettings()
	v.change(&set)
	got, err := play(ctx, free(experiments.MeanScene(env.Paper(1))), steps, func(in env.Instance) (env.Agent, error) {
		p, err := allerton.New(in, set, stream.New(seed, stream.Policy))
		if err != nil {
			return env.Agent{}, err
		}
		return env.NewAgent[env.Model](p), nil
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("allerton/%s: %w", v.key, err)
	}
	return map[string]float64{"allerton/" + v.key: got.Reward, "allerton/" + v.key + "/crawls": got.Crawls}, nil
}

// relaxedReading is a reading of the relaxed control of TCNS, section VII.
type relaxedReading struct {
	key, text string
	options   baselines.RelaxedOptions
	ages      []int  // at the beginning; nil for x = u
	barred    string // why it may not stand for the figure
}

var relaxedReadings = []relaxedReading{
	{key: "printed", text: "threshold (21), price from 0, x = u at the start"},
	{key: "exact", text: "threshold in whole epochs, price from 0, x = u at the start", options: baselines.RelaxedOptions{Exact: true}},
	{key: "from-100", text: "threshold in whole epochs, price from 100", options: baselines.RelaxedOptions{Exact: true, Price: 100}},
	{key: "apart", text: "threshold (21), price from 0, sources 1 and 2 out of step at the start (ages 1, 2, 1, 1)", ages: []int{1, 2, 1, 1}},
	{key: "exact-apart", text: "threshold in whole epochs, price from 0, sources 1 and 2 out of step at the start (ages 1, 2, 1, 1)", options: baselines.RelaxedOptions{Exact: true}, ages: []int{1, 2, 1, 1}},
	{key: "tuned", text: "threshold in whole epochs, price from 94 with b(k) = 2/(1 + k/10), sources 1 and 2 out of step at the start (ages 1, 2, 1, 1)",
		options: baselines.RelaxedOptions{Exact: true, Price: 94, First: 2, Hold: 10, Power: 1}, ages: []int{1, 2, 1, 1}, barred: sought},
}

// fixed measures what draws nothing.
func fixed(ctx context.Context, s samples) error {
	one := func(key string, v float64) { s[key] = Sample{Values: []float64{v}} }
	for budget, name := range map[float64]string{1: "mean-1", 2: "mean-2"} {
		in := env.Paper(budget)
		reward, crawls, err := trajectory(ctx, in, env.NewAgent(baselines.NewWhittle(in)), deterministic)
		if err != nil {
			return err
		}
		one(name+"/whittle", stats.Mean(reward))
		for i, c := range crawls {
			key := fmt.Sprintf("%s/source-%d/", name, i+1)
			one(key+"crawls", stats.Mean(c))
			// The first 100 epochs are left out: patterns need time to settle.
			one(key+"period", float64(period(c[100:])))
			one(key+"gaps", float64(gaps(c[100:])))
		}
	}
	in := env.Paper(1)
	for i := range 2 {
		only := make([]float64, len(in.Sources))
		only[i] = 1
		v, _, err := trajectory(ctx, in, env.NewAgent(baselines.NewEvenSchedule(in.Terms(), only)), deterministic)
		if err != nil {
			return err
		}
		one(fmt.Sprintf("mean-1/only-%d", i+1), stats.Mean(v))
	}
	// An average over 61 epochs, the first of which finds nothing.
	v, _, err := trajectory(ctx, in, env.NewAgent(baselines.NewWhittle(in)), deterministic)
	if err != nil {
		return err
	}
	one("mean-1/whittle-empty-61", stats.Mean(append([]float64{0}, v[:60]...)))
	one("mean-1/whittle-empty", stats.Mean(append([]float64{0}, v[:deterministic-1]...)))
	one("mean-1/whittle-100", stats.Mean(v[:100]))
	one("mean-1/whittle-60", stats.Mean(v[:60]))

	// An η that is rounded up although it is whole falls into the next epoch.
	t := even(in.Sources, deterministic)
	for key, f := range map[string]form{
		"mean-1/slides":           {true, math.Ceil, zero},
		"mean-1/slides-exceeding": {true, func(eta float64) float64 { return math.Floor(eta+1e-9) + 1 }, zero},
	} {
		got, err := play(ctx, t.scene(1, false), deterministic, policy{form: &f}.agent, nil)
		if err != nil {
			return err
		}
		one(key, got.Reward)
	}
	for _, r := range relaxedReadings {
		got, err := play(ctx, t.scene(1, true, r.ages...), deterministic, func(in env.Instance) (env.Agent, error) {
			return env.NewAgent[env.Model](baselines.NewRelaxedControl(in, r.options)), nil
		}, nil)
		if err != nil {
			return err
		}
		one("relaxed/"+r.key, got.Reward)
		one("relaxed/"+r.key+"/over", got.Over)
	}
	return nil
}

// trajectory runs an agent in the mean dynamics and returns the reward of every
// epoch, and for every source whether it was crawled (1) or not (0).
func trajectory(ctx context.Context, in env.Instance, a env.Agent, epochs int) (reward []float64, crawls [][]float64, err error) {
	crawls = make([][]float64, len(in.Sources))
	_, err = play(ctx, experiments.MeanScene(in), epochs, func(env.Instance) (env.Agent, error) { return a, nil }, func(_ int, r float64, got []env.Crawled) error {
		reward = append(reward, r)
		for i := range crawls {
			crawls[i] = append(crawls[i], 0)
		}
		for _, c := range got {
			crawls[c.Source][len(reward)-1] = 1
		}
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
