package cells

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/sweep"
	"ephemera/learner"
)

// Figures implements sweep.Experiment.
func (*Schema) Figures() []sweep.Figure {
	return []sweep.Figure{
		{Name: "learned_ratio", Help: "reward of the learned policy over that of exact Whittle in the same epochs"},
		{Name: "learning_ratio", Help: "reward while learning over that of exact Whittle in the same epochs"},
		{Name: "learning_crawls", Unit: "crawls per epoch", Help: "while learning"},
		{Name: "learned_crawls", Unit: "crawls per epoch", Help: "of the learned policy"},
		{Name: "learning_reward", Unit: "interest per epoch", Help: "while learning, exploration and all"},
		{Name: "learned_reward", Unit: "interest per epoch", Help: "of the policy as it is at the end, in the same world from its beginning"},
		{Name: "whittle_reward", Unit: "interest per epoch", Help: "of exact Whittle in the epochs of the learned policy"},
		{Name: "over_budget", Help: "share of the learning epochs whose crawls cost more than the budget", Less: true},
		{Name: "fallbacks", Help: "how often an incremental inverse was not trusted", Less: true},
	}
}

// CurveFigures implements sweep.Experiment.
func (*Schema) CurveFigures() []sweep.Figure {
	return []sweep.Figure{
		{Name: "ratio", Unit: "share of exact Whittle", Help: "reward over that of exact Whittle in the same epochs, since the point before"},
		{Name: "reward", Unit: "interest per epoch", Help: "since the point before"},
		{Name: "crawls", Unit: "crawls per epoch", Help: "since the point before"},
	}
}

// reference names a run of exact Whittle.
type reference struct {
	site  *site
	level env.Level
	seed  uint64
	steps int
	eval  int
}

// run is a run with its learning curve.
type run struct {
	experiments.Played
	curve []milestone
}

// milestone is how much interest and how many crawls there were up to an epoch.
type milestone struct {
	epoch          int
	reward, crawls float64
}

// play runs a learner or policy and follows it while it learns.
func play(ctx context.Context, at *site, p experiments.Play) (r *run, err error) {
	r = &run{}
	ends := experiments.Milestones(p.Epochs)
	var sum milestone
	p.Watch = func(now experiments.Running) experiments.Watcher {
		if now.Again {
			return nil
		}
		return func(n int, reward float64, crawls []env.Crawled) error {
			sum.epoch = n + 1
			sum.reward += reward
			sum.crawls += float64(len(crawls))
			if k := len(r.curve); k < len(ends) && ends[k] == sum.epoch {
				r.curve = append(r.curve, sum)
			}
			return nil
		}
	}
	r.Played, err = at.scene.Play(ctx, p)
	return r, err
}

// epochs returns how many epochs of learning and of evaluation a cell has, at
// most those of the recording.
func (at *site) epochs(cell *sweep.Cell) (steps, eval int) {
	steps, eval = at.scene.Limit(cell.Int("steps")), cell.Int("evaluation")
	if eval == 0 {
		return steps, steps
	}
	return steps, at.scene.Limit(eval)
}

// exact returns the run of exact Whittle that a run is compared with. In worlds
// that the seed does not change, one run serves all seeds.
func (s *Schema) exact(ctx context.Context, at *site, p experiments.Play) (*run, error) {
	p.Entry, p.Settings = choose("whittle").entry, nil
	if p.Level == env.LevelOnline {
		p.Level = env.LevelModel // what Whittle knows that the learner does not
	}
	key := reference{at, p.Level, p.Seed, p.Epochs, p.Evaluation}
	if !at.scene.Seeded {
		key.seed = 0
	}
	return s.whittle.get(key, func() (*run, error) {
		r, err := play(ctx, at, p)
		if err != nil {
			return nil, fmt.Errorf("whittle: %w", err)
		}
		return r, nil
	})
}

// Run implements sweep.Experiment.
func (s *Schema) Run(ctx context.Context, cell *sweep.Cell, seed uint64) (sweep.Result, error) {
	at, err := s.site(cell)
	if err != nil {
		return sweep.Result{}, err
	}
	steps, eval := at.epochs(cell)
	return s.run(ctx, at, cell, seed, steps, eval)
}

// run learns, then measures what was learned and exact Whittle in the same world
// from its beginning. A policy that does not learn is measured alone.
func (s *Schema) run(ctx context.Context, at *site, cell *sweep.Cell, seed uint64, steps, eval int) (sweep.Result, error) {
	c := choose(cell.Text(selector))
	set, err := c.settings(cell)
	if err != nil {
		return sweep.Result{}, err
	}
	p := experiments.Play{Entry: c.entry, Settings: set, Level: c.level, Seed: seed, Epochs: steps, Evaluation: eval}
	exact, err := s.exact(ctx, at, p)
	if err != nil {
		return sweep.Result{}, err
	}
	r, err := play(ctx, at, p)
	if err != nil {
		return sweep.Result{}, err
	}
	var res sweep.Result
	fallbacks := 0.0
	if r.Trainee != nil {
		fallbacks = float64(r.Trainee.Fallbacks())
		res.Learned = learnedPairs(r.Trainee, at)
	}
	res.Row = []float64{
		r.Learned.Reward / exact.Learned.Reward, r.Learning.Reward / exact.Learning.Reward,
		r.Learning.Crawls, r.Learned.Crawls,
		r.Learning.Reward, r.Learned.Reward, exact.Learned.Reward,
		r.Learning.Over, fallbacks,
	}
	var last, whittle milestone
	for k, now := range r.curve {
		reward, crawls, span := now.reward-last.reward, now.crawls-last.crawls, float64(now.epoch-last.epoch)
		res.Curve = append(res.Curve, sweep.Point{Epoch: now.epoch, Values: []float64{reward / (exact.curve[k].reward - whittle.reward), reward / span, crawls / span}})
		last, whittle = now, exact.curve[k]
	}
	return res, nil
}

// Sources and ages of which what was learned is kept.
const (
	maxSources = 8
	maxAge     = 12
)

// learnedPairs sets what was learned beside what is exact: thresholds, as
// states in interest, beside the state at which the exact index reaches the
// price of the relaxed problem, and indices beside exact ones by age. Of large
// instances it keeps few sources, evenly spaced.
func learnedPairs(t learner.Learner, at *site) []sweep.Pair {
	src := at.scene.Instance.Sources
	var pairs []sweep.Pair
	add := func(p sweep.Pair) {
		if v := p.Learned + p.Exact; !math.IsNaN(v) && !math.IsInf(v, 0) {
			pairs = append(pairs, p)
		}
	}
	for k := range min(len(src), maxSources) {
		i := k * len(src) / min(len(src), maxSources)
		s := src[i]
		if l, ok := t.(experiments.Priced); ok && math.IsInf(l.InverseIndex(i), 1) {
			continue // never crawled
		}
		if x, ok := threshold(t, src, i); ok {
			add(sweep.Pair{What: "threshold", Source: s.Name, Learned: x, Exact: min(index.Inverse(s, at.price), s.Ceiling())})
		}
		if l, ok := t.(interface {
			Index(i int, x float64, age int) float64
		}); ok {
			for age := 1; age <= maxAge; age++ {
				add(sweep.Pair{
					What: "index", Source: s.Name, At: float64(age),
					Learned: l.Index(i, s.MeanState(age), age), Exact: index.WhittleAtAge(s, age),
				})
			}
		}
	}
	return pairs
}

// threshold returns the learned state from which source i is crawled.
func threshold(t learner.Learner, src []env.Source, i int) (x float64, ok bool) {
	switch l := t.(type) {
	case interface {
		Threshold(i int, others float64) float64
	}:
		// The paper's thresholds depend on the other sources; this is the one
		// where all of these have just been crawled.
		others := 0.0
		for j := range src {
			if j != i {
				others += src[j].Gain()
			}
		}
		return l.Threshold(i, others), true
	case experiments.Aged:
		// x = u*(1 − α^θ)
		return src[i].Ceiling() * -math.Expm1(-src[i].Decay*l.ThresholdAge(i)), true
	case experiments.Priced:
		return l.InverseIndex(i), true
	}
	return 0, false
}

// Estimate returns the time that a sweep would take on that many workers, from
// a short run of one cell of those that take the same time. Setting up a run counts
// as if it grew with it, so that the estimate is high rather than low. It measures
// for about limit.
func (s *Schema) Estimate(ctx context.Context, c *sweep.Config, workers int, limit time.Duration) (time.Duration, error) {
	const few = 400             // epochs
	per := map[string]float64{} // seconds of a run
	var sum float64
	begin := time.Now()
	err := experiments.Each(ctx, len(c.Cells), 1, nil, func(i int) string { return c.Cells[i].ID }, func(ctx context.Context, i int) error {
		cell := &c.Cells[i]
		alike := strings.Join(cell.Texts([]string{selector, "instance.name", "world.kind", "world.trace", "world.epoch", "steps", "evaluation"}), " ")
		if _, ok := per[alike]; !ok && time.Since(begin) > limit && i > 0 {
			per[alike] = sum / float64(i) // no time left: as the others
		} else if !ok {
			at, err := s.site(cell)
			if err != nil {
				return err
			}
			steps, eval := at.epochs(cell)
			n := min(steps, few)
			began := time.Now()
			if _, err := s.run(ctx, at, cell, c.Seeds[0], n, n); err != nil {
				return err
			}
			per[alike] = time.Since(began).Seconds() * float64(steps+eval) / float64(2*n)
		}
		sum += per[alike]
		return nil
	})
	sum *= float64(len(c.Seeds)) / float64(workers)
	return time.Duration(math.Min(sum, 1e9) * float64(time.Second)), err
}
