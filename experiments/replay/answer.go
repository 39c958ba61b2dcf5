// Package replay tells what a better schedule would bring on a recording of
// what sources published: the learner, which knows nothing at first, against
// what is done now, at the same number of crawls.
//
//  1. A [Question] is asked of a recording; it settles epoch and budget.
//  2. Every schedule is a list of crawls with their times: from a file, from a
//     rule, or from a policy that is run in the replayed world.
//  3. All are measured by one function, publication by publication.
//  4. The [Answer] holds the figures.
package replay

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/stats"
)

// Question is what is asked of a recording.
type Question struct {
	Log      *env.Recording
	HalfLife float64   // hours, in which an item loses half of its interest
	Feedback *Feedback // from which the half-life comes if it is not nil
	Rate     float64   // crawls per hour; 0 is what Now makes
	Now      Now       // zero: each source in turn
	Warm     bool      // measure the second half only, after learning on the first
	Seed     uint64
	Workers  int
	Progress func(done, total int) // may be nil
}

// Answer is what a better schedule brings.
type Answer struct {
	Name    string   // of the log
	Names   []string // of the sources
	Log     seen
	Form    form    // how interest is lost
	Rate    float64 // crawls per hour
	Epoch   time.Duration
	Budget  int // crawls per epoch
	Epochs  int // measured
	From    time.Time
	To      time.Time
	Warm    bool
	Learner string // its name

	Rows []schedule // now, learning, and what they are compared with
	// Gain is what the learner earns over what is earned now, less 1; its
	// interval is over weeks.
	Gain stats.Estimate

	// The rest is measured on Days days at the end, fewer than all where there
	// are many sources.
	Days      float64
	Budgets   []part  // what the learner earns with fewer crawls
	Fewer     float64 // share of the crawls it could leave out and still earn what is earned now; NaN if none
	HalfLives []otherLife

	Fits  []fit       // of the feedback, nil without
	Wrong [][]float64 // share earned if [true][assumed] forms of Fits differ

	Timetable timetable // of what the learner has learned in the end
	// What was learned by the middle of the recording, in its second half: by
	// the frozen learner, and by its timetable replayed as told.
	Frozen, Replayed measures

	seed     uint64
	nowAtEnd float64 // interest per hour that is earned now in those Days
}

// schedule is one schedule.
type schedule struct {
	Policy, About string
	measures
	Interval stats.Estimate // of Interest, over weeks; not finite under five of them
}

// part is what the learner earns with a share of the crawls, over what is
// earned now with all.
type part struct{ Crawls, Interest float64 }

// otherLife is the answer for another half-life: interest per hour.
type otherLife struct {
	Hours    float64 `json:"hours"`
	Now      float64 `json:"now"`
	Learning float64 `json:"learning"`
}

var (
	halfLives = []float64{1, 4, 12, 24, 72} // hours
	fewer     = []float64{.1, .2, .35, .5, .65, .8}
)

const (
	usual    = 4 * time.Hour // how often all sources are visited where nothing is said of it
	decision = 1.0           // hours; the longest epoch, unless there is no crawl in it
	shortest = 1. / 60       // hours; the shortest epoch
	portion  = 4             // at most one source in so many is crawled at a decision
	mostWork = 8e5           // sources × epochs of the runs of the tables beside the main figures
	day      = 86400         // seconds
	week     = 7 * day
)

// pace returns how long an epoch is, in seconds, and how many crawls it has, so
// that they make just that many crawls an hour.
func pace(n int, rate float64) (length float64, budget int) {
	hours := max(shortest, min(decision, float64(n)/rate/portion))
	budget = max(1, int(min(rate*hours, float64(n))))
	return math.Round(3600 * float64(budget) / rate), budget
}

// window is a part of the recording: policies run from begin on, and count
// from from to to.
type window struct{ begin, from, to float64 }

// runner runs policies in the replayed world and measures schedules.
type runner struct {
	q       Question
	cat     *catalog
	learner *experiments.Entry
	length  float64 // of an epoch, seconds
}

// Ask answers the question.
func (q Question) Ask(ctx context.Context) (*Answer, error) {
	first, last := float64(q.Log.First), float64(q.Log.Last)
	n := len(q.Log.Names)
	rate := q.Rate
	if rate == 0 {
		rate = q.Now.perHour(n, first, last)
	}
	if rate == 0 && q.Now.Crawls != nil {
		return nil, fmt.Errorf("none of the crawls that are made now lies from %v to %v, the time of %s", unix(first), unix(last), q.Log.Path)
	}
	if rate == 0 {
		rate = float64(n) / usual.Hours()
	}
	if q.Now.Name == "" {
		q.Now = Now{Every: time.Duration(float64(n) / rate * float64(time.Hour)), Name: "in turn"}
	}
	a := &Answer{Name: Name(q.Log.Path), Names: q.Log.Names, Log: look(q.Log), Form: exponential(q.HalfLife), Rate: rate, Warm: q.Warm, seed: q.Seed}
	if q.Feedback != nil {
		var err error
		if a.Fits, err = q.Feedback.fit(); err != nil {
			return nil, err
		}
		a.Form = a.Fits[0].form
	}
	learner, err := experiments.FindLearner("", env.LevelOnline)
	if err != nil {
		return nil, err
	}
	r := &runner{q: q, cat: newCatalog(q.Log), learner: learner}
	r.length, a.Budget = pace(n, rate)
	a.Epoch = time.Duration(r.length) * time.Second
	if a.Budget >= n {
		return nil, fmt.Errorf("%.4g crawls per hour crawl all %d sources at every decision, %v apart; there is nothing to schedule", rate, n, a.Epoch)
	}
	epochs := math.Floor((last - first) / r.length)
	if epochs < 8 {
		return nil, fmt.Errorf("%s lasts %v, %v decisions at %.4g crawls per hour; needed are 8 or more", q.Log.Path, time.Duration(last-first)*time.Second, epochs, rate)
	}
	all := window{first, first, first + epochs*r.length}
	half := first + math.Floor(epochs/2)*r.length
	if q.Warm {
		all.from = half
	}
	tail := all
	if most := math.Max(48, math.Floor(mostWork/float64(n))); (all.to-all.from)/r.length > most {
		tail.from = all.to - most*r.length
		tail.begin = tail.from
		if q.Warm {
			tail.begin = math.Max(all.begin, tail.from-most*r.length)
		}
	}
	a.Epochs = int((all.to - all.from) / r.length)
	a.From, a.To, a.Days = unix(all.from), unix(all.to), (tail.to-tail.from)/day

	jobs := r.jobs(a, all, tail, half)
	if err := experiments.Each(ctx, len(jobs), max(1, q.Workers), q.Progress, nil, func(ctx context.Context, i int) error { return jobs[i](ctx) }); err != nil {
		return nil, err
	}
	a.conclude()
	return a, nil
}

// Name is that of a log without what its file ends in.
func Name(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
}

func unix(t float64) time.Time { return time.Unix(int64(t), 0).UTC() }

// jobs lists what has to be run, the longest first; each fills its part of a.
func (r *runner) jobs(a *Answer, all, tail window, half float64) []func(context.Context) error {
	var jobs []func(context.Context) error
	a.Learner = r.learner.Name
	budget := float64(a.Budget)
	middle := int(math.Round((half - all.begin) / r.length))

	rows := []struct{ name, about string }{
		{r.q.Now.Name, r.q.Now.about()},
		{"learning", "the learner, which knows nothing at first"},
		{"whittle", "the exact index, told every source's mean rate of the whole time beforehand"},
	}
	for _, name := range append([]string{"round-robin"}, rules...) {
		if name != r.q.Now.Rule {
			rows = append(rows, struct{ name, about string }{name, about(name)})
		}
	}
	a.Rows = make([]schedule, len(rows))
	for k, row := range rows {
		a.Rows[k] = schedule{Policy: row.name, About: row.about}
		jobs = append(jobs, func(ctx context.Context) (err error) {
			var crawls []crawl
			switch k {
			case 0:
				crawls, err = r.now(ctx, all, budget)
			case 1:
				crawls, err = r.learn(ctx, all, middle, budget, a)
			default:
				crawls, err = r.policy(ctx, row.name, all, budget, a.Form)
			}
			a.Rows[k].measures = r.measure(crawls, all, a.Form)
			return err
		})
	}

	reduced := func(share float64, f form, put func(interest float64)) func(context.Context) error {
		return func(ctx context.Context) error {
			// Fewer crawls: longer epochs, so that each has as many.
			s := *r
			s.length = math.Round(r.length / share)
			w := tail
			w.to = w.begin + math.Floor((tail.to-w.begin)/s.length)*s.length
			crawls, err := s.play(ctx, w, budget, f, r.learner, env.LevelOnline, nil)
			put(r.measure(crawls, window{w.begin, tail.from, w.to}, f).Interest)
			return err
		}
	}
	a.Budgets = make([]part, len(fewer))
	for k, share := range fewer {
		jobs = append(jobs, reduced(share, a.Form, func(v float64) { a.Budgets[k] = part{share, v} }))
	}
	a.Budgets = append(a.Budgets, part{Crawls: 1})
	full := len(fewer)
	jobs = append(jobs, reduced(1, a.Form, func(v float64) { a.Budgets[full].Interest = v }))
	a.HalfLives = make([]otherLife, len(halfLives))
	for k, h := range halfLives {
		jobs = append(jobs, reduced(1, exponential(h), func(v float64) { a.HalfLives[k].Learning = v }))
	}
	jobs = append(jobs, func(ctx context.Context) error {
		crawls, err := r.now(ctx, tail, budget)
		if err != nil {
			return err
		}
		a.nowAtEnd = r.measure(crawls, tail, a.Form).Interest
		for k, h := range halfLives {
			a.HalfLives[k].Hours = h
			a.HalfLives[k].Now = r.measure(crawls, tail, exponential(h)).Interest
		}
		return nil
	})
	if a.Fits != nil {
		jobs = append(jobs, func(ctx context.Context) error { return r.wrong(ctx, a, half, all.to) })
	}
	return jobs
}

// measure measures a schedule in a window.
func (r *runner) measure(crawls []crawl, w window, f form) measures {
	return r.cat.measure(crawls, w.from, w.to, f.Left)
}

// now returns the crawls that are made now.
func (r *runner) now(ctx context.Context, w window, budget float64) ([]crawl, error) {
	switch {
	case r.q.Now.Every > 0:
		return every(len(r.q.Log.Names), r.q.Now.Every.Seconds(), w.from, w.to), nil
	case r.q.Now.Rule != "":
		return r.policy(ctx, r.q.Now.Rule, w, budget, exponential(r.q.HalfLife))
	}
	return r.q.Now.Crawls, nil
}

// policy returns the crawls of a policy of the catalogue.
func (r *runner) policy(ctx context.Context, name string, w window, budget float64, f form) ([]crawl, error) {
	e, err := experiments.Find(name)
	if err != nil {
		return nil, err
	}
	return r.play(ctx, w, budget, f, e, e.FirstLevel(), nil)
}

func about(policy string) string {
	e, err := experiments.Find(policy)
	if err != nil {
		panic("replay: " + err.Error()) // names of the catalogue
	}
	return e.About
}
