package replay

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"ephemera/baselines"
	"ephemera/baselines/ring"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/learner"
	"ephemera/learner/forecast"
)

// Crawl is one crawl of a schedule.
type Crawl struct {
	Source int
	At     float64 // Unix time
}

// window is a part of the recording: policies run from begin on, in epochs of
// that length, each with so many crawls, and what lies from from to to is measured.
// Times are in seconds.
type window struct {
	begin, from, to, length float64
	budget                  int
}

// epochs returns how many decisions there are in a window.
func (w window) epochs() int { return int(math.Round((w.to - w.begin) / w.length)) }

// within returns how many whole epochs last so many hours at most.
func (w window) within(hours float64) int { return int(hours * 3600 / w.length) }

// end returns the Unix time at the end of an epoch, which is when its crawls are
// made.
func (w window) end(epoch int) float64 { return w.begin + float64(epoch+1)*w.length }

// ReadCrawls takes what is done now from a CSV file with the columns source and
// crawled_unix, or crawled. Sources in it that published nothing become sources of the
// log: crawls went there too.
func (q *Question) ReadCrawls(ctx context.Context, path string) error {
	made, err := env.Columns{Source: "source", Time: "crawled_unix or crawled"}.Read(ctx, path)
	if err != nil {
		return err
	}
	q.Log, q.CrawledTwice = q.Log.With(made.Names), made.Repeated
	q.Crawls = make([]Crawl, 0, made.Rows)
	made.Each(func(i int, at int64, _ float64) {
		source, _ := slices.BinarySearch(q.Log.Names, made.Names[i])
		q.Crawls = append(q.Crawls, Crawl{source, float64(at)})
	})
	return nil
}

// inTurn crawls each of n sources once per period of that many seconds, spread
// evenly over the period.
func inTurn(n int, period, from, to float64) (all []Crawl) {
	for start := from; ; start += period {
		for i := range n {
			at := start + period*float64(i+1)/float64(n)
			if at > to {
				return all
			}
			all = append(all, Crawl{i, at})
		}
	}
}

// play runs a learner or policy of the catalogue in the replayed window from its
// beginning, and returns its crawls. A rule that may crawl all sources at once crawls
// those that are due. watch, if not nil, is given after each epoch how many have been
// played, the learner, and the world.
func (a *Answer) play(
	ctx context.Context, w window, name string, watch func(epochs int, l learner.Learner, played env.World) error,
) ([]Crawl, error) {
	return a.playFor(ctx, w, name, env.Objective{}, watch)
}

// playFor is play of a learner that is given an objective. Under delay all items are alike.
func (a *Answer) playFor(ctx context.Context, w window, name string, objective env.Objective,
	watch func(epochs int, l learner.Learner, played env.World) error) ([]Crawl, error) {
	e, err := experiments.Find(name)
	if err != nil {
		return nil, err
	}
	var settings any // the defaults
	switch {
	case name == theLearner:
		settings = w.settings()
	case w.budget == len(a.Log.Names):
		settings = e.Settings(e.FirstLevel())
		settings.(*baselines.Practice).Due = true
	}
	in, log, late := a.hindsight(w), a.Log.Between(int64(w.begin), int64(w.to)), a.Late
	if in.Objective = objective; objective.Law == env.LawDelay {
		log, late = log.Even(), 0
	}
	var played env.World
	scene := experiments.Scene{
		Instance: in, Epochs: w.epochs(), Late: late * 3600 / w.length,
		Open: func(_ uint64, level env.Level, _ bool) (env.World, error) {
			world, err := env.NewReplay(log, in, env.ReplayOptions{
				Epoch: seconds(w.length), Decay: math.Ln2 / a.HalfLife, Budget: in.Budget,
				Items: level == env.LevelOnline, Part: env.PartWhole,
				Shows: cmp.Or(a.Shows, shownFirst), Scrolls: a.Shows > 0,
			})
			if played = world; err == nil && !slices.Contains(Rules, name) {
				played = &bounded{Replay: world, waits: a.newWaits(w), taken: make([]int, len(a.Log.Names))}
			}
			return played, err
		},
	}
	var crawls []Crawl
	_, err = scene.Play(ctx, experiments.Play{
		Entry: e, Settings: settings, Level: e.FirstLevel(), Seed: a.Seed, Evaluation: -1,
		Watch: func(trainee learner.Learner) experiments.Watcher {
			return func(n int, _ float64, got []env.Crawled) error {
				a.decide()
				for _, c := range got {
					crawls = append(crawls, Crawl{c.Source, w.end(n)})
				}
				if watch != nil {
					return watch(n+1, trainee, played)
				}
				return nil
			}
		},
	})
	return crawls, err
}

// settings returns those of the learner: it forgets by the hour, whatever an epoch is.
func (w window) settings() *forecast.Settings {
	set := forecast.DefaultSettings()
	set.Horizon = memory * 3600 / w.length
	return &set
}

// waits has each source crawled before it has waited too long. An epoch costs what is
// near that, and not what exists.
type waits struct {
	longest, budget int // epochs, and crawls in each
	round           int // epochs in which all sources can be crawled once, rounded up
	limits          env.Limits
	epoch           int        // of the limits
	far             *ring.Ring // sources until they may wait for less than a round more
	near            []int      // sources that may wait for less than a round more
	due             []int32    // scratch
}

func (a *Answer) newWaits(w window) *waits {
	n := len(a.Log.Names)
	s := &waits{longest: w.within(a.longest(w)), budget: w.budget, round: (n + w.budget - 1) / w.budget, epoch: -1}
	s.limits = env.Limits{Budget: float64(w.budget), NotBefore: make([]int, n)}
	return s
}

// longest returns for how many hours a source waits at most.
func (a *Answer) longest(w window) float64 {
	round := float64(len(a.Log.Names)) / float64(w.budget) * w.length // in which all sources could be crawled once
	return cmp.Or(a.Longest, max(week, 8*round)/3600)
}

// limit names the sources that are crawled first. If d_r is for how many epochs more
// the r-th source may wait, r = 1, 2, … and those with less time first, then
//
//	k = max_r (r − d_r·budget)
//
// have to be crawled now, that all can be crawled in time. Of sources that may wait for
// a round more, none has.
func (w *waits) limit(o *env.Online) {
	o.Limits = &w.limits
	if o.Epoch == w.epoch {
		return
	}
	w.epoch = o.Epoch
	w.near = slices.DeleteFunc(w.near, func(i int) bool { return !w.place(i, o) })
	if w.far == nil {
		w.far = ring.New(len(o.Last), min(max(1, w.longest), 1<<16))
		for i := range o.Last {
			if w.place(i, o) {
				w.near = append(w.near, i)
			}
		}
	}
	w.due = w.far.Due(w.due[:0], o.Epoch)
	for _, i := range w.due {
		if w.place(int(i), o) {
			w.near = append(w.near, int(i))
		}
	}
	slices.SortFunc(w.near, func(i, j int) int { return cmp.Or(cmp.Compare(o.Last[i], o.Last[j]), cmp.Compare(i, j)) })
	now := 0
	for r, i := range w.near {
		now = max(now, r+1-(w.longest-o.Age(i))*w.budget)
	}
	w.limits.First = append(w.limits.First[:0], w.near[:min(now, w.budget)]...)
	slices.Sort(w.limits.First)
}

// place reports whether source i is near its longest wait; if not, it is far until it
// is.
func (w *waits) place(i int, o *env.Online) bool {
	near := o.Last[i] + w.longest - w.round + 1
	if near <= o.Epoch {
		return true
	}
	w.far.Add(i, near)
	return false
}

// bounded is a recording in which no source waits too long, whoever plays it.
type bounded struct {
	*env.Replay
	waits *waits
	made  []int
	taken []int // the last epoch in which a source was crawled, plus 1
}

// View implements env.World.
func (b *bounded) View() *env.Observed {
	v := b.Replay.View()
	b.waits.limit(&v.Online)
	return v
}

// Step implements env.World. A policy that does not look at limits has the last of what
// it chose give way.
func (b *bounded) Step(crawl []int) ([]env.Crawled, error) {
	b.made = b.made[:0]
	now := b.Replay.View().Epoch + 1
	for _, i := range slices.Concat(b.waits.limits.First, crawl) {
		if len(b.made) < b.waits.budget && b.taken[i] != now {
			b.made, b.taken[i] = append(b.made, i), now
		}
	}
	return b.Replay.Step(b.made)
}

// hindsight returns the sources with their mean rate and interest over the
// measured part, which no scheduler knows beforehand.
func (a *Answer) hindsight(w window) env.Instance {
	in := env.Instance{ID: "recording", Budget: float64(w.budget), Sources: make([]env.Source, len(a.Log.Names))}
	for i, name := range a.Log.Names {
		published := between(a.Log, i, w.from, w.to)
		var utility float64
		for _, p := range published {
			utility += p.Utility
		}
		n := float64(len(published))
		rate, decay := n*w.length/(w.to-w.from), w.length/3600*math.Ln2/a.HalfLife
		in.Sources[i] = env.NewSource(name, rate, decay, utility/max(1, n))
	}
	return in
}

// withShare returns the window in which as many crawls an epoch are that share of all.
func (w window) withShare(share float64) window {
	w.length = math.Round(w.length / share)
	w.to = w.begin + math.Floor((w.to-w.begin)/w.length)*w.length
	return w
}

// withFewer measures the learner of interest with a share of the crawls. Epochs are longer,
// so that each has as many crawls.
func (a *Answer) withFewer(ctx context.Context, k int) error {
	w := a.window.withShare(shares[k])
	crawls, err := a.playFor(ctx, w, theLearner, a.interest(), nil)
	earned := measure(a.Log, crawls, w, a.HalfLife, a.Shows).Interest
	a.Budgets[k] = part{shares[k], shares[k] * a.Rate, earned / a.Rows[0].Interest}
	return err
}

// learn runs the learner in the whole recording and makes a timetable of what it
// has learned in the end. Another is made of what it has learned in the middle, and
// replayed from there to the end next to the learner, which goes on learning.
func (a *Answer) learn(ctx context.Context) error {
	w := a.window
	var half, learned env.Agent
	var lastHalf, last []int // crawls of each source before
	watch := func(epochs int, l learner.Learner, played env.World) (err error) {
		switch epochs {
		case a.middle:
			half, lastHalf = l.Frozen(), slices.Clone(played.View().Last)
		case w.epochs():
			learned, last = l.Frozen(), slices.Clone(played.View().Last)
			a.State, err = a.state(l, played)
		}
		return err
	}
	crawls, err := a.playFor(ctx, w, theLearner, a.Objective, watch)
	if err != nil {
		return err
	}
	a.Rows[1] = a.row("learning", crawls, w)
	if a.Timetable, err = a.timetable(ctx, learned, last, w.epochs(), week); err != nil {
		return err
	}
	w.from = w.end(a.middle - 1)
	made, err := a.timetable(ctx, half, lastHalf, a.middle, min(week, w.to-w.from))
	a.SecondHalf = []schedule{
		a.row("now", a.Crawls, w), a.row("learning", crawls, w), a.row("timetable", repeatWeek(made, w.from, w.to), w),
	}
	return err
}

// state returns the learner as it ends, as a program that crawls takes it up.
func (a *Answer) state(l learner.Learner, played env.World) ([]byte, error) {
	o := learner.CrawlerOptions{Learner: theLearner, Settings: a.window.settings(), Objective: a.Objective}
	c, err := learner.Continue(o, played.Terms(), l, &played.View().Online)
	if err != nil {
		return nil, err
	}
	var state bytes.Buffer
	err = c.Save(&state)
	return state.Bytes(), err
}

// timetable returns the crawls, for so many seconds, of a policy that learns no more and
// sees nothing but its own crawls, from an epoch on before which the sources had those
// last crawls.
func (a *Answer) timetable(
	ctx context.Context, policy env.Agent, last []int, epoch int, lasts float64,
) (all []Crawl, err error) {
	view := &env.Observed{}
	view.Epoch, view.Last = epoch, last
	from := a.window.end(epoch - 1)
	waits := a.newWaits(a.window)
	var selected []int
	for a.window.end(view.Epoch) <= from+lasts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		waits.limit(&view.Online)
		selected = policy.Select(selected[:0], view)
		for _, i := range selected {
			all = append(all, Crawl{i, a.window.end(view.Epoch)})
			view.Last[i] = view.Epoch
		}
		view.Epoch++
		a.decide()
	}
	return all, nil
}

// repeatWeek repeats the crawls of a week after one time and up to another.
func repeatWeek(timetable []Crawl, from, to float64) (all []Crawl) {
	for _, c := range timetable {
		weeks := math.Floor((from-c.At)/week) + 1 // to the first time after from
		for at := c.At + week*weeks; at <= to; at += week {
			all = append(all, Crawl{c.Source, at})
		}
	}
	slices.SortStableFunc(all, func(a, b Crawl) int { return cmp.Compare(a.At, b.At) })
	return all
}
