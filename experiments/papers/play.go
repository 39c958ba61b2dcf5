package papers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/experiments/stats"
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

// study measures all readings of the figures.
func study(ctx context.Context, o Options, figures []*figure) (samples, error) {
	s := samples{}
	var all []reading
	for _, f := range figures {
		for _, r := range f.readings {
			if _, known := s[r.Key]; known {
				continue
			}
			all = append(all, r)
			if s[r.Key] = (sample{make([]float64, o.Seeds), true}); r.Epochs > 0 {
				s[r.Key] = sample{values: make([]float64, 1)}
			}
		}
	}
	seed := func(k int) uint64 { return o.Seed + uint64(k) }
	err := experiments.Each(ctx, o.Seeds, o.Workers, o.Progress,
		func(k int) string { return fmt.Sprintf("seed %d", seed(k)) },
		func(ctx context.Context, k int) error {
			tapes, err := draw(seed(k), o.Steps)
			if err != nil {
				return err
			}
			runs := map[string]run{} // some are measured in more than one way
			for _, r := range all {
				if k >= len(s[r.Key].values) {
					continue // nothing is drawn, and it was measured under the first seed
				}
				x, known := runs[r.plays]
				if !known {
					if x, err = r.play(ctx, tapes[r.law], o.Steps, seed(k)); err != nil {
						return fmt.Errorf("%s: %w", r.Key, err)
					}
					runs[r.plays] = x
				}
				s[r.Key].values[k] = r.measure(x)
			}
			return nil
		})
	return s, err
}

// run is what playing a reading brought.
type run struct {
	experiments.Outcome
	crawled []float64 // of every epoch, 1 where the source of the reading was crawled
}

// play plays a reading on a tape, for so many epochs if it has none of its own.
func (r reading) play(ctx context.Context, t tape, steps int, seed uint64) (x run, err error) {
	e, err := r.player(seed)
	if err != nil {
		return x, err
	}
	play := experiments.Play{Entry: e, Level: env.LevelObserved, Epochs: cmp.Or(r.Epochs, steps)}
	reward := []float64{0} // of every epoch, where the first finds empty sources
	if r.Empty {
		play.Epochs--
		play.Watch = watch(func(brought float64, _ []env.Crawled) { reward = append(reward, brought) })
	}
	if r.Source > 0 {
		play.Watch = watch(func(_ float64, got []env.Crawled) {
			is := 0.
			if slices.ContainsFunc(got, func(c env.Crawled) bool { return c.Source == r.Source-1 }) {
				is = 1
			}
			x.crawled = append(x.crawled, is)
		})
	}
	played, err := t.scene(cmp.Or(r.Budget, 1), r.Ages...).Play(ctx, play)
	if x.Outcome = played.Learning; r.Empty {
		x.Reward = stats.Mean(reward)
	}
	return x, err
}

// measure returns what the reading measures of a run.
func (r reading) measure(x run) float64 {
	const settled = 100 // epochs; patterns need time
	switch {
	case r.Measure == "over":
		return x.Over
	case r.Measure == "crawls" && r.Source == 0:
		return x.Crawls
	case r.Measure == "crawls":
		return stats.Mean(x.crawled)
	case r.Measure == "period":
		return float64(period(x.crawled[settled:]))
	case r.Measure == "gaps":
		return float64(gaps(x.crawled[settled:]))
	}
	return x.Reward
}

func watch(see func(reward float64, got []env.Crawled)) func(experiments.Running) experiments.Watcher {
	return func(experiments.Running) experiments.Watcher {
		return func(_ int, reward float64, got []env.Crawled) error {
			see(reward, got)
			return nil
		}
	}
}

// player returns what is played.
func (r reading) player(seed uint64) (*experiments.Entry, error) {
	switch {
	case r.Always > 0:
		return policy(func(env.Instance) env.Agent { return env.NewAgent(always(r.Always - 1)) }), nil
	case r.Index != "":
		return policy(func(in env.Instance) env.Agent { return byForm(in, forms[r.Index]) }), nil
	}
	e, err := experiments.Find(r.Policy)
	if err != nil {
		return nil, err
	}
	settings, err := e.Configure(e.FirstLevel(), r.Settings)
	return &experiments.Entry{
		Overruns: func(any) bool { return e.Overruns != nil && e.Overruns(settings) },
		New: func(k experiments.Known, _ any) (env.Agent, error) {
			k.Level, k.Rand = cmp.Or(r.Level, e.FirstLevel()), stream.New(seed, stream.Policy)
			if !e.Learns() {
				return e.New(k, settings)
			}
			l, err := e.Train(k, settings)
			if err != nil {
				return env.Agent{}, err
			}
			return l.Agent(), nil
		},
	}, err
}

func policy(build func(in env.Instance) env.Agent) *experiments.Entry {
	return &experiments.Entry{New: func(k experiments.Known, _ any) (env.Agent, error) { return build(k.Instance), nil }}
}

// always crawls one source.
type always int

// Select implements env.Policy.
func (i always) Select(dst []int, _ *env.Model) []int { return append(dst, int(i)) }

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
