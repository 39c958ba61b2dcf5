package papers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// samples holds what was measured, by the key of the reading: one value for each
// seed, or one in all where nothing is drawn.
type samples map[string][]float64

// record is what the readings gave under one seed. Its file is named by the hash of
// the readings, the versions of their learners and the epochs.
type record struct {
	Seed     uint64             `json:"seed"`
	Steps    int                `json:"steps"`
	Readings map[string]float64 `json:"readings"` // by their keys
}

// measureAll measures all readings of the figures. A seed that has a file is not
// measured again. It returns nil while seeds of other shards are missing.
func measureAll(ctx context.Context, o Options, figures []*figure) (samples, error) {
	s := samples{}
	var fixed, random []reading
	var versions []int // of the learners of random
	for _, f := range figures {
		for _, r := range f.readings {
			if _, listed := s[r.Key]; listed {
				continue
			}
			if s[r.Key] = nil; r.Epochs > 0 {
				fixed = append(fixed, r)
			} else {
				random = append(random, r)
				if e, err := experiments.Find(r.Policy); err == nil && e.Version != nil {
					versions = append(versions, e.Version(cmp.Or(r.Level, e.FirstLevel())))
				}
			}
		}
	}
	defined, err := json.Marshal(random)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(fmt.Appendf(defined, "versions %v, %d epochs", versions, o.Steps))
	names := make([]string, o.Seeds)
	for k := range names {
		names[k] = fmt.Sprintf("%.6x-%d", hash, o.Seed+uint64(k))
	}
	done, err := experiments.PerformMissing(ctx, o.Batch, names, func(ctx context.Context, k int) (*record, error) {
		x := &record{o.Seed + uint64(k), o.Steps, map[string]float64{}}
		return x, x.measure(ctx, random, draw(x.Seed, o.Steps))
	})
	if err == nil {
		err = errors.Join(done.Errors...)
	}
	if err != nil {
		return nil, err
	}
	if slices.Contains(done.Records, nil) { // not measured by its shard meanwhile
		return nil, nil
	}
	once := &record{Readings: map[string]float64{}}
	if err := once.measure(ctx, fixed, map[string]tape{"": even(longest)}); err != nil {
		return nil, err
	}
	for _, x := range append(done.Records, once) {
		for key, v := range x.Readings {
			s[key] = append(s[key], v)
		}
	}
	return s, nil
}

// measure plays readings on the tapes of the seed, each on that of its law.
func (x *record) measure(ctx context.Context, all []reading, tapes map[string]tape) error {
	runs := map[string]trajectory{} // some are measured in more than one way
	for _, r := range all {
		played, done := runs[r.plays]
		if !done {
			err := ctx.Err()
			if err == nil {
				played, err = r.play(tapes[r.law], x.Steps, x.Seed)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", r.Key, err)
			}
			runs[r.plays] = played
		}
		x.Readings[r.Key] = r.measure(played)
	}
	return nil
}

// trajectory is what playing a reading brought.
type trajectory struct {
	result.Outcome
	crawled []float64 // of every epoch, 1 where the source of the reading was crawled, if it has one
}

// play plays a reading on a tape, for so many epochs if it has none of its own.
func (r reading) play(t tape, steps int, seed uint64) (x trajectory, err error) {
	in := env.Paper(cmp.Or(r.Budget, 1))
	agent, overrun, err := r.agent(in, seed)
	if err != nil {
		return x, err
	}
	w, err := t.world(in.Budget, overrun, r.Ages...)
	if err != nil {
		return x, err
	}
	epochs := cmp.Or(r.Epochs, steps)
	if r.Empty {
		epochs-- // the first finds empty sources
	}
	x.Outcome, err = experiments.Loop(w, agent, epochs, func(_ int, _ float64, got []env.Crawled) error {
		is := 0.
		if slices.ContainsFunc(got, func(c env.Crawled) bool { return c.Source == r.Source-1 }) {
			is = 1
		}
		x.crawled = append(x.crawled, is)
		return nil
	})
	if r.Empty {
		x.Reward *= float64(epochs) / float64(epochs+1)
	}
	return x, err
}

// agent builds what is played. Its crawls may cost more than the budget where
// overrun says so.
func (r reading) agent(in env.Instance, seed uint64) (a env.Agent, overrun bool, err error) {
	switch {
	case r.Always > 0:
		return env.NewAgent(always(r.Always - 1)), false, nil
	case r.Index != "":
		return byForm(in, forms[r.Index]), false, nil
	}
	e, err := experiments.Find(r.Policy)
	if err != nil {
		return a, false, err
	}
	settings, err := e.Configure(e.FirstLevel(), r.Settings)
	if err != nil {
		return a, false, err
	}
	a, _, err = e.New(experiments.Inputs{
		Instance: in, Terms: in.Terms(), Level: cmp.Or(r.Level, e.FirstLevel()), Rand: stream.New(seed, stream.Policy),
	}, settings)
	return a, e.Overruns != nil && e.Overruns(settings), err
}

// always crawls one source.
type always int

// Select implements env.Policy.
func (i always) Select(dst []int, _ *env.Model) []int { return append(dst, int(i)) }

// measure returns what the reading measures of a run.
func (r reading) measure(x trajectory) float64 {
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
		if v > 0 && last >= 0 {
			lengths[n-last] = true
		}
		if v > 0 {
			last = n
		}
	}
	return len(lengths)
}

// tape is what every source of Table I gains in every epoch, drawn once, so that
// many policies can be played against the same content: what arrives does not
// depend on what is crawled. It has U of every epoch and source, interest at the
// epoch's end.
type tape [][]float64

// longest is the most epochs that a reading has of its own.
const longest = 1000

// draw returns the content of every law, and that of the mean dynamics.
func draw(seed uint64, steps int) map[string]tape {
	items, counts := drawItems(seed, steps, env.MarksConstant), count(seed, steps)
	return map[string]tape{
		"": even(steps), "constant": items, "counts": counts, "per-item": drawItems(seed, steps, env.MarksPerItem),
		"per-epoch": items.marked(seed), "per-epoch-counts": counts.marked(seed),
	}
}

// even is the tape of the mean dynamics: n epochs with the mean gain.
func even(n int) tape {
	var row []float64
	for _, s := range env.Paper(1).Sources {
		row = append(row, s.Gain())
	}
	return slices.Repeat(tape{row}, n)
}

// drawItems draws n epochs from the simulator of single items: all sources are
// crawled at every epoch, so that a crawl brings back one epoch.
func drawItems(seed uint64, n int, marks env.Marks) tape {
	w, err := env.NewPoisson(env.Paper(4), seed, env.PoissonOptions{Marks: marks})
	t := make(tape, n)
	for k := range t {
		var got []env.Crawled
		if err == nil {
			got, err = w.Step([]int{0, 1, 2, 3})
		}
		if err != nil {
			panic("papers: " + err.Error()) // Table I is an instance, and its budget is all of it
		}
		for _, c := range got {
			t[k] = append(t[k], c.Interest)
		}
	}
	return t
}

// count draws n epochs in which all items of a source and epoch are worth the
// same, the mean worth of an item at the epoch's end, ξ̄(1 − α)/c = u/λ.
func count(seed uint64, n int) tape {
	r, sources := stream.New(seed), env.Paper(1).Sources
	return even(n).each(func(i, k int, u float64) float64 {
		r.Reset(seed, stream.World, counts, uint64(i), uint64(k))
		lambda := sources[i].Rate
		return distuv.Poisson{Lambda: lambda, Src: r}.Rand() * u / lambda
	})
}

// marked multiplies the gain of every source and epoch by an exponential draw
// of mean 1.
func (t tape) marked(seed uint64) tape {
	r := stream.New(seed)
	return t.each(func(i, k int, u float64) float64 {
		r.Reset(seed, stream.World, marks, uint64(i), uint64(k))
		return u * r.ExpFloat64()
	})
}

// Streams apart from those of the simulator.
const counts, marks = 1 << 32, 1 << 33

// each returns a tape in which f has changed the gain of every source i and
// epoch k.
func (t tape) each(f func(i, k int, u float64) float64) tape {
	to := make(tape, len(t))
	for k, row := range t {
		for i, u := range row {
			to[k] = append(to[k], f(i, k, u))
		}
	}
	return to
}

// world plays a tape under the dynamics (23) of TCNS, with the state observed.
type world struct {
	*env.Mean // the books: epoch, crawls, budget and mean state
	gains     tape
	factor    []float64
}

// world returns the tape as a world of Table I, with a budget in crawls per epoch,
// from its beginning or from other ages of the sources and their mean states.
func (t tape) world(budget float64, overrun bool, ages ...int) (*world, error) {
	in := env.Paper(budget)
	books, err := env.NewMean(in, overrun)
	if err != nil {
		return nil, err
	}
	w := &world{Mean: books, gains: t}
	v := w.View()
	v.State = slices.Clone(t[0])
	for i, s := range in.Sources {
		w.factor = append(w.factor, s.Factor())
		if ages != nil {
			v.Last[i], v.Mean[i] = -ages[i], s.MeanState(ages[i])
			v.State[i] = v.Mean[i]
		}
	}
	return w, nil
}

// Step implements env.World.
func (w *world) Step(crawl []int) ([]env.Crawled, error) {
	v := w.View()
	if v.Epoch == len(w.gains) {
		return nil, io.EOF
	}
	crawled, err := w.Mean.Step(crawl)
	if err != nil {
		return nil, err
	}
	for k, i := range crawl {
		crawled[k].Interest, v.State[i] = v.State[i], 0
	}
	if v.Epoch < len(w.gains) {
		for i, a := range w.factor {
			v.State[i] = a*v.State[i] + w.gains[v.Epoch][i] // (23): X ← αX + U, and X ← U after a crawl
		}
	}
	return crawled, nil
}
