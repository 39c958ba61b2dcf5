package experiments

import (
	"context"
	"fmt"
	"math"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// Engine performs runs. It keeps the scenes and the runs of exact Whittle that
// runs share. The zero value is ready, and safe for concurrent use.
//
// What a run brings depends on the run alone: not on the engine, other runs or
// the number of workers.
type Engine struct {
	sites   cache[string, *site]
	whittle cache[string, *followed]
	sums    cache[string, [32]byte] // of files that settings name
}

// followed is a run with its learning curve.
type followed struct {
	Played
	learningDays, learnedDays []float64
	curve                     []milestone
}

// milestone is how much interest and how many crawls there were up to an epoch.
type milestone struct {
	epoch          int
	reward, crawls float64
}

// follow performs a run and follows it while it learns.
func (c *contest) follow(ctx context.Context) (*followed, error) {
	out := &followed{}
	ends := Milestones(c.at.Limit(c.Steps))
	var sum milestone
	watch := func(n int, reward float64, crawls []env.Crawled) error {
		sum.epoch = n + 1
		sum.reward += reward
		sum.crawls += float64(len(crawls))
		if k := len(out.curve); k < len(ends) && ends[k] == sum.epoch {
			out.curve = append(out.curve, sum)
		}
		return nil
	}
	played, err := c.at.Play(ctx, Play{
		Entry: c.entry, Settings: c.settings, Level: c.level, Seed: c.Seed, Epochs: c.Steps, Evaluation: c.Evaluation,
		Watch: func(now Running) Watcher {
			if now.Again {
				return daily(now.Terms, &out.learnedDays)
			}
			perDay := daily(now.Terms, &out.learningDays)
			return func(n int, reward float64, crawls []env.Crawled) error {
				if perDay != nil {
					if err := perDay(n, reward, crawls); err != nil {
						return err
					}
				}
				return watch(n, reward, crawls)
			}
		},
	})
	out.Played = played
	if out.learnedDays == nil {
		out.learnedDays = out.learningDays
	}
	return out, err
}

// exact returns the run of exact Whittle that a run is compared with. In worlds
// that the seed does not change, one run serves all seeds.
func (e *Engine) exact(ctx context.Context, c *contest) (*followed, error) {
	w := contest{Run: c.Run, level: c.level, at: c.at}
	if w.level == env.LevelOnline {
		w.level = env.LevelModel // what Whittle knows that the learner does not
	}
	var err error
	if w.entry, err = Find("whittle"); err != nil {
		return nil, err
	}
	if !c.at.Seeded {
		w.Seed = 0
	}
	key := fmt.Sprintf("%s %s %d %d %d", w.at.key, w.level, w.Seed, w.Steps, w.Evaluation)
	return e.whittle.get(key, func() (*followed, error) {
		out, err := w.follow(ctx)
		if err != nil {
			return nil, fmt.Errorf("whittle: %w", err)
		}
		return out, nil
	})
}

// Perform performs a run: it learns, then measures what was learned and exact
// Whittle in the same world from its beginning. A policy that does not learn is
// measured alone. It ends with the context's error when that is done.
func (e *Engine) Perform(ctx context.Context, r Run) (*Record, error) {
	c, err := e.resolve(ctx, r)
	if err != nil {
		return nil, err
	}
	exact, err := e.exact(ctx, c)
	if err != nil {
		return nil, err
	}
	out := exact
	if c.entry.Name != "whittle" || c.level == env.LevelOnline {
		if out, err = c.follow(ctx); err != nil {
			return nil, err
		}
	}
	return c.record(out, exact), nil
}

// record makes the record of a run.
func (c *contest) record(out, exact *followed) *Record {
	rec := &Record{
		Run: c.Run, Instance: c.at.Instance.ID, Fitted: c.at.Epochs > 0,
		Learning: Figures{Outcome: out.Learning, Whittle: exact.Learning.Reward, Days: out.learningDays},
		Learned:  Figures{Outcome: out.Learned, Whittle: exact.Learned.Reward, Days: out.learnedDays},
		Trainee:  out.Trainee,
	}
	for _, f := range []*Figures{&rec.Learning, &rec.Learned} {
		f.OfWhittle = result.Ptr(f.Reward / f.Whittle)
	}
	if c.at.Bounded(c.level) {
		bound, _ := c.at.bound()
		rec.Bound = result.Ptr(bound)
		for _, f := range []*Figures{&rec.Learning, &rec.Learned} {
			f.OfBound = result.Ptr(f.Reward / bound)
		}
	}
	var last, whittle milestone
	for k, now := range out.curve {
		reward, crawls, span := now.reward-last.reward, now.crawls-last.crawls, float64(now.epoch-last.epoch)
		best := exact.curve[k].reward - whittle.reward
		rec.Curve = append(rec.Curve, CurvePoint{
			Epoch: now.epoch, Reward: reward / span, Crawls: crawls / span, Whittle: best / span, OfWhittle: result.Ptr(reward / best),
		})
		last, whittle = now, exact.curve[k]
	}
	if out.Trainee != nil {
		rec.Fallbacks = out.Trainee.Fallbacks()
		rec.Beside = besideExact(out.Trainee, c.at)
	}
	return rec
}

// Sources and ages of which a record has what was learned.
const (
	recordedSources = 8
	recordedAge     = 12
)

// JointThreshold is a trainee whose threshold of a source depends on the states
// of the others.
type JointThreshold interface {
	// Threshold is the state from which source i is crawled while the states of
	// the others sum to that, interest.
	Threshold(i int, others float64) float64
}

// Indexed is a trainee that learns an index of each source.
type Indexed interface {
	Index(i int, x float64, age int) float64 // at state x, which a source has at that age, interest
}

// besideExact sets what was learned beside what is exact: thresholds, as states
// in interest, beside the state at which the exact index reaches the price of the
// relaxed problem, and indices beside exact ones by age. Of large instances it
// keeps few sources, evenly spaced.
func besideExact(t learner.Learner, at *site) []Pair {
	src := at.Instance.Sources
	var pairs []Pair
	add := func(p Pair) {
		if v := p.Learned + p.Exact; !math.IsNaN(v) && !math.IsInf(v, 0) {
			pairs = append(pairs, p)
		}
	}
	_, price := at.bound()
	for k := range min(len(src), recordedSources) {
		i := k * len(src) / min(len(src), recordedSources)
		s := src[i]
		if l, ok := t.(Priced); ok && math.IsInf(l.InverseIndex(i), 1) {
			continue // never crawled
		}
		if x, ok := learnedThreshold(t, src, i); ok {
			add(Pair{What: "threshold", Source: s.Name, Learned: x, Exact: min(index.Inverse(s, price), s.Ceiling())})
		}
		if l, ok := t.(Indexed); ok {
			for age := 1; age <= recordedAge; age++ {
				add(Pair{
					What: "index", Source: s.Name, At: age,
					Learned: l.Index(i, s.MeanState(age), age), Exact: index.WhittleAtAge(s, age),
				})
			}
		}
	}
	return pairs
}

// learnedThreshold returns the state from which source i is crawled.
func learnedThreshold(t learner.Learner, src []env.Source, i int) (x float64, ok bool) {
	switch l := t.(type) {
	case JointThreshold: // where all others have just been crawled
		others := 0.0
		for j := range src {
			if j != i {
				others += src[j].Gain()
			}
		}
		return l.Threshold(i, others), true
	case Aged:
		// x = u*(1 − α^θ)
		return src[i].Ceiling() * -math.Expm1(-src[i].Decay*l.ThresholdAge(i)), true
	case Priced:
		return l.InverseIndex(i), true
	}
	return 0, false
}
