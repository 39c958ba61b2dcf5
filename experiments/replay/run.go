package replay

import (
	"context"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/learner"
)

// window is a part of the recording: policies run from begin on, in epochs of
// that length, and count from from to to. All are in seconds.
type window struct{ begin, from, to, length float64 }

// epochs returns how many decisions there are in a window.
func (w window) epochs() int { return int(math.Round((w.to - w.begin) / w.length)) }

// end returns the Unix time at the end of an epoch, which is when its crawls are
// made.
func (w window) end(epoch int) float64 { return w.begin + float64(epoch+1)*w.length }

// play runs a learner or policy in the replayed window from its beginning, and
// returns its crawls. watch, if not nil, is told of each epoch's end its number,
// from 1, and the learner.
func (a *Answer) play(ctx context.Context, w window, f form, e *experiments.Entry, level env.Level, watch func(epoch int, l learner.Learner)) ([]crawl, error) {
	in := a.hindsight(w, f)
	log := a.Log.Between(int64(w.begin), int64(w.to))
	o := env.ReplayOptions{
		Epoch: seconds(w.length), Decay: math.Ln2 / float64(f.Half()), Budget: in.Budget,
		Items: level == env.LevelOnline, Part: env.PartWhole,
	}
	scene := experiments.Scene{
		Instance: in, Epochs: w.epochs(),
		Open: func(uint64, env.Level, bool) (env.World, error) { return env.NewReplay(log, in, o) },
	}
	var crawls []crawl
	_, err := scene.Play(ctx, experiments.Play{
		Entry: e, Level: level, Seed: a.Seed, Evaluation: -1,
		Watch: func(run experiments.Running) experiments.Watcher {
			return func(n int, _ float64, got []env.Crawled) error {
				for _, c := range got {
					crawls = append(crawls, crawl{c.Source, w.end(n)})
				}
				if watch != nil {
					watch(n+1, run.Trainee)
				}
				return nil
			}
		},
	})
	return crawls, err
}

// hindsight returns the sources with their mean rate and interest over the
// measured part, which no scheduler knows beforehand.
func (a *Answer) hindsight(w window, f form) env.Instance {
	in := env.Instance{ID: "recording", Budget: float64(a.Budget), Sources: make([]env.Source, len(a.Log.Names))}
	for i, name := range a.Log.Names {
		n, sum := a.catalog.published(i, w.from, w.to)
		in.Sources[i] = env.NewSource(name, n*w.length/(w.to-w.from), w.length/3600*math.Ln2/float64(f.Half()), sum/max(1, n))
	}
	return in
}

// policy returns the crawls of a policy of the catalogue.
func (a *Answer) policy(ctx context.Context, name string, w window) ([]crawl, error) {
	e, err := experiments.Find(name)
	if err != nil {
		return nil, err
	}
	return a.play(ctx, w, a.Form, e, e.FirstLevel(), nil)
}

// present returns the crawls that are made now.
func (a *Answer) present(ctx context.Context, w window) ([]crawl, error) {
	switch {
	case a.Now.Every > 0:
		return every(len(a.Log.Names), a.Now.Every.Seconds(), w.from, w.to), nil
	case a.Now.Rule != "":
		return a.policy(ctx, a.Now.Rule, w)
	}
	return a.Now.Crawls, nil
}

// learning returns what the learner earns in the tail with a share of the
// crawls, interest per hour.
func (a *Answer) learning(ctx context.Context, share float64, f form) (float64, error) {
	// Fewer crawls: longer epochs, so that each has as many.
	w := a.tail
	w.length = math.Round(w.length / share)
	w.to = w.begin + math.Floor((w.to-w.begin)/w.length)*w.length
	crawls, err := a.play(ctx, w, f, a.learner, env.LevelOnline, nil)
	return a.catalog.measure(crawls, w, f.Left).Interest, err
}

// learn runs the learner in the whole window, makes a timetable of what was
// learned in the end, and replays, as told, the one of what was learned by the
// middle, from there to the end, beside the policy itself.
func (a *Answer) learn(ctx context.Context) ([]crawl, error) {
	w := a.whole
	middle := int(math.Round((a.half - w.begin) / w.length))
	var frozen, learned env.Agent
	crawls, err := a.play(ctx, w, a.Form, a.learner, env.LevelOnline, func(epoch int, l learner.Learner) {
		switch epoch {
		case middle:
			frozen = l.Frozen()
		case w.epochs():
			learned = l.Frozen()
		}
	})
	if err != nil {
		return nil, err
	}
	if a.Timetable, err = a.timetable(ctx, learned, w.epochs()); err != nil {
		return nil, err
	}
	alone, err := a.follow(ctx, frozen, middle, w.epochs()-middle)
	if err != nil {
		return nil, err
	}
	plan, err := a.timetable(ctx, frozen, middle)
	if err != nil {
		return nil, err
	}
	w.from = a.half
	a.Frozen = a.catalog.measure(alone, w, a.Form.Left)
	a.Replayed = a.catalog.measure(plan.between(w.from, w.to), w, a.Form.Left)
	return crawls, nil
}

// follow runs a policy that learns no more, and sees nothing but its own crawls,
// for some epochs from one on.
func (a *Answer) follow(ctx context.Context, policy env.Agent, epoch, epochs int) ([]crawl, error) {
	view := &env.Observed{}
	view.Epoch, view.Last = epoch, make([]int, len(a.Log.Names))
	for i := range view.Last {
		view.Last[i] = epoch - 1 // as if all had just been crawled
	}
	var all []crawl
	var now []int
	for n := range epochs {
		if n%16 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		now = policy.Select(now[:0], view)
		for _, i := range now {
			all = append(all, crawl{i, a.whole.end(view.Epoch)})
			view.Last[i] = view.Epoch
		}
		view.Epoch++
	}
	return all, nil
}

// timetable lets a policy that learns no more run for two weeks from an epoch
// on, and returns the crawls of the second.
func (a *Answer) timetable(ctx context.Context, policy env.Agent, epoch int) (t timetable, err error) {
	w := a.whole
	crawls, err := a.follow(ctx, policy, epoch, int(math.Ceil(2*week/w.length)))
	from := w.begin + float64(epoch)*w.length + week
	for _, c := range crawls {
		if c.At > from && c.At <= from+week {
			t = append(t, c)
		}
	}
	return t, err
}

// wrong measures what it costs to schedule by a form that is not the true one:
// by the index of the form, with rates from the first half, in the second.
func (a *Answer) wrong(ctx context.Context) error {
	w := window{a.half, a.half, a.whole.to, a.whole.length}
	rate := make([]float64, len(a.Log.Names))
	for i := range rate {
		_, rate[i] = a.catalog.published(i, float64(a.Log.First), a.half)
	}
	a.Wrong = make([][]float64, len(a.Fits))
	for _, assumed := range a.Fits {
		index := assumed.index(w.length / 3600)
		entry := &experiments.Entry{Name: assumed.Name, New: func(known experiments.Known, _ any) (env.Agent, error) {
			return env.NewAgent(baselines.NewByAge(known.Terms, func(i, age int) float64 { return rate[i] * index[min(age, ages-1)] })), nil
		}}
		crawls, err := a.play(ctx, w, a.Form, entry, env.LevelModel, nil)
		if err != nil {
			return err
		}
		for k, truth := range a.Fits {
			a.Wrong[k] = append(a.Wrong[k], a.catalog.measure(crawls, w, truth.Left).Interest)
		}
	}
	for k, earned := range a.Wrong {
		right := earned[k]
		for j := range earned {
			earned[j] /= right
		}
	}
	return nil
}
