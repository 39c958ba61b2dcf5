package papers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/experiments/files"
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

// record is what the readings gave under one seed. It is kept as a file
// runs/HASH-SEED.json, with the hash of the readings and the epochs.
type record struct {
	Seed     uint64             `json:"seed"`
	Steps    int                `json:"steps"`
	Readings map[string]float64 `json:"readings"` // by their keys
}

// measureAll measures all readings of the figures. A seed that has a file is not
// measured again. It also returns how many seeds are missing, for they are of
// other shards, which have not measured them yet.
func measureAll(ctx context.Context, o Options, figures []*figure) (s samples, missing int, err error) {
	s = samples{}
	var fixed, random []reading
	for _, f := range figures {
		for _, r := range f.readings {
			if _, listed := s[r.Key]; listed {
				continue
			}
			if s[r.Key] = (sample{nil, r.Epochs == 0}); r.Epochs > 0 {
				fixed = append(fixed, r)
			} else {
				random = append(random, r)
			}
		}
	}
	defined, err := json.Marshal(random)
	if err != nil {
		return nil, 0, err
	}
	hash := fmt.Sprintf("%.6x", sha256.Sum256(fmt.Appendf(defined, "%d epochs", o.Steps)))
	seeds := make([]record, o.Seeds)
	err = experiments.Each(ctx, o.Seeds, o.Workers, o.Progress,
		func(k int) string { return fmt.Sprintf("seed %d", o.Seed+uint64(k)) },
		func(ctx context.Context, k int) error {
			seed := o.Seed + uint64(k)
			name := fmt.Sprintf("%s-%d.json", hash, seed)
			dir := filepath.Join(o.Dir, "runs")
			if data, err := os.ReadFile(filepath.Join(dir, name)); o.Dir != "" && err == nil && json.Unmarshal(data, &seeds[k]) == nil {
				return nil
			}
			if !o.Shard.IsAll() && k%o.Shard.Count != o.Shard.Index {
				return nil
			}
			tapes, err := draw(seed, o.Steps)
			if err == nil {
				seeds[k] = record{seed, o.Steps, map[string]float64{}}
				err = seeds[k].measure(ctx, random, tapes)
			}
			if err != nil || o.Dir == "" {
				return err
			}
			data, err := json.MarshalIndent(seeds[k], "", "  ")
			if err != nil {
				return err
			}
			return files.Put(dir, files.File{Name: name, Data: append(data, '\n')})
		})
	if err != nil {
		return nil, 0, err
	}
	once := record{Readings: map[string]float64{}}
	if err := once.measure(ctx, fixed, map[string]tape{"": even(longest)}); err != nil {
		return nil, 0, err
	}
	for _, x := range append(seeds, once) {
		if x.Readings == nil {
			missing++
		}
		for key, v := range x.Readings {
			s[key] = sample{append(s[key].values, v), s[key].random}
		}
	}
	return s, missing, nil
}

// measure plays readings on the tapes of the seed, each on that of its law.
func (x record) measure(ctx context.Context, all []reading, tapes map[string]tape) error {
	runs := map[string]run{} // some are measured in more than one way
	for _, r := range all {
		played, known := runs[r.plays]
		if !known {
			var err error
			if played, err = r.play(ctx, tapes[r.law], x.Steps, x.Seed); err != nil {
				return fmt.Errorf("%s: %w", r.Key, err)
			}
			runs[r.plays] = played
		}
		x.Readings[r.Key] = r.measure(played)
	}
	return nil
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
	if r.Empty {
		play.Epochs-- // the first finds empty sources
	}
	if r.Source > 0 {
		play.Watch = func(experiments.Running) experiments.Watcher {
			return func(_ int, _ float64, got []env.Crawled) error {
				is := 0.
				if slices.ContainsFunc(got, func(c env.Crawled) bool { return c.Source == r.Source-1 }) {
					is = 1
				}
				x.crawled = append(x.crawled, is)
				return nil
			}
		}
	}
	played, err := t.scene(cmp.Or(r.Budget, 1), r.Ages...).Play(ctx, play)
	if x.Outcome = played.Learning; r.Empty {
		x.Reward *= float64(play.Epochs) / float64(play.Epochs+1)
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
			agent, _, err := e.Build(k, settings)
			return agent, err
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
	lengths := map[int]bool{}
	last := -1
	for n, v := range crawls {
		if v == 0 {
			continue
		}
		if last >= 0 {
			lengths[n-last] = true
		}
		last = n
	}
	return len(lengths)
}
