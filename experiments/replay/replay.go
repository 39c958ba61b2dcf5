// Package replay tells what a better schedule would bring on a recording of
// what sources published: the learner, which knows nothing at first, against
// what is done now, at the same number of crawls.
//
//  1. A [Question] is asked of a recording; it settles epoch and budget.
//  2. Every schedule is a list of crawls with their times: from a file, from a
//     rule, or from a policy that is run in the replayed world (run.go).
//  3. All are measured by one function, publication by publication (measure.go).
//  4. The [Answer] holds the figures; page.go prints them.
package replay

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
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

// Answer is what a better schedule brings. Of its question, rate and schedule
// of now are filled in.
type Answer struct {
	Question
	Name   string // of the log
	Seen   seen   // in it
	Form   form   // how interest is lost
	Budget int    // crawls per epoch

	Rows []schedule // now, learning, and what they are compared with
	// Gain is what the learner earns over what is earned now, less 1; its
	// interval is over weeks.
	Gain stats.Estimate

	// Budgets and HalfLives are of the end of the log only where there are many
	// sources.
	Budgets   []part      // what the learner earns with fewer crawls, and in the end with all
	Fewer     float64     // share of the crawls it could leave out and still earn what is earned now; NaN if none
	HalfLives []otherLife // the answer for other half-lives

	Fits  []fit       // of the feedback, nil without
	Wrong [][]float64 // share earned if [true][assumed] forms of Fits differ

	Timetable timetable // of what the learner has learned in the end
	// What was learned by the middle of the recording, in its second half: by
	// the frozen learner, and by its timetable replayed as told.
	Frozen, Replayed measures

	catalog  catalog
	learner  *experiments.Entry
	whole    window  // what Rows are measured in
	tail     window  // what Budgets and HalfLives are
	half     float64 // the middle of the recording
	nowAtEnd float64 // interest per hour that is earned now in the tail
}

// schedule is one schedule.
type schedule struct {
	Policy string
	measures
	Interval stats.Estimate // of Interest, over weeks; not finite under five of them
}

// part is what the learner earns with a share of the crawls, over what is
// earned now with all.
type part struct{ Crawls, PerHour, Interest float64 }

// otherLife is the answer for another half-life: interest per hour.
type otherLife struct {
	Hours    hours   `json:"hours"`
	Now      float64 `json:"now"`
	Learning float64 `json:"learning"`
}

var (
	halfLives = []hours{1, 4, 12, 24, 72}
	shares    = []float64{.1, .2, .35, .5, .65, .8, 1} // of the crawls
)

const (
	usual    = 4 * time.Hour // how often all sources are visited where nothing is said of it
	decision = 1.0           // hours; the longest epoch, unless there is no crawl in it
	shortest = 1. / 60       // hours; the shortest epoch
	portion  = 4             // at most one source in so many is crawled at a decision
	mostWork = 8e5           // sources × epochs of the runs of the tables beside the main figures
	day      = 86400         // seconds
	week     = 7 * day
	block    = 7 // days that are resampled together
)

// pace returns how long an epoch is, in seconds, and how many crawls it has, so
// that they make just that many crawls an hour.
func pace(n int, rate float64) (length float64, budget int) {
	hours := max(shortest, min(decision, float64(n)/rate/portion))
	budget = max(1, int(min(rate*hours, float64(n))))
	return math.Round(3600 * float64(budget) / rate), budget
}

// Ask answers the question.
func (q Question) Ask(ctx context.Context) (*Answer, error) {
	a := &Answer{Question: q, Name: Name(q.Log.Path), Seen: look(q.Log), Form: exponential(q.HalfLife), catalog: newCatalog(q.Log)}
	if err := a.settle(); err != nil {
		return nil, err
	}
	jobs := a.jobs()
	if err := experiments.Each(ctx, len(jobs), max(1, q.Workers), q.Progress, nil, func(ctx context.Context, i int) error { return jobs[i](ctx) }); err != nil {
		return nil, err
	}
	a.conclude()
	return a, nil
}

// settle finds how many crawls there are, how interest is lost, and what is
// measured when.
func (a *Answer) settle() (err error) {
	first, last := float64(a.Log.First), float64(a.Log.Last)
	n := len(a.Log.Names)
	if a.Rate == 0 {
		a.Rate = a.Now.perHour(n, first, last)
	}
	if a.Rate == 0 && a.Now.Crawls != nil {
		return fmt.Errorf("none of the crawls that are made now lies from %v to %v, the time of %s", unix(first), unix(last), a.Log.Path)
	}
	if a.Rate == 0 {
		a.Rate = float64(n) / usual.Hours()
	}
	if a.Now.Name == "" {
		a.Now = Now{Every: time.Duration(float64(n) / a.Rate * float64(time.Hour)), Name: inTurn}
	}
	if a.Feedback != nil {
		if a.Fits, err = a.Feedback.fit(); err != nil {
			return err
		}
		a.Form = a.Fits[0].form
	}
	if a.learner, err = experiments.FindLearner("", env.LevelOnline); err != nil {
		return err
	}
	length, budget := pace(n, a.Rate)
	a.Budget = budget
	if budget >= n {
		return fmt.Errorf("%.4g crawls per hour crawl all %d sources at every decision, %v apart; there is nothing to schedule", a.Rate, n, seconds(length))
	}
	epochs := math.Floor((last - first) / length)
	if epochs < 8 {
		return fmt.Errorf("%s lasts %v, %v decisions at %.4g crawls per hour; needed are 8 or more", a.Log.Path, seconds(last-first), epochs, a.Rate)
	}
	a.whole = window{first, first, first + epochs*length, length}
	a.half = first + math.Floor(epochs/2)*length
	if a.Warm {
		a.whole.from = a.half
	}
	a.tail = a.whole
	if most := length * math.Max(48, math.Floor(mostWork/float64(n))); a.whole.to-a.whole.from > most {
		a.tail.from = a.whole.to - most
		a.tail.begin = a.tail.from
		if a.Warm {
			a.tail.begin = math.Max(a.whole.begin, a.tail.from-most)
		}
	}
	return nil
}

// Name is that of a log without what its file ends in.
func Name(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
}

func unix(t float64) time.Time { return time.Unix(int64(t), 0).UTC() }

func seconds(s float64) time.Duration { return time.Duration(s) * time.Second }

// jobs lists what has to be run; each fills its part of a.
func (a *Answer) jobs() (jobs []func(context.Context) error) {
	a.Rows = []schedule{{Policy: a.Now.Name}}
	for _, name := range slices.Concat([]string{"learning", "whittle", "round-robin"}, rules) {
		if name != a.Now.Rule {
			a.Rows = append(a.Rows, schedule{Policy: name})
		}
	}
	a.Budgets = make([]part, len(shares))
	a.HalfLives = make([]otherLife, len(halfLives))
	each := func(n int, fill func(ctx context.Context, k int) error) {
		for k := range n {
			jobs = append(jobs, func(ctx context.Context) error { return fill(ctx, k) })
		}
	}
	each(len(a.Rows), a.row)
	each(len(shares), func(ctx context.Context, k int) (err error) {
		p := part{Crawls: shares[k], PerHour: shares[k] * a.Rate}
		p.Interest, err = a.learning(ctx, shares[k], a.Form)
		a.Budgets[k] = p
		return err
	})
	each(len(halfLives), func(ctx context.Context, k int) (err error) {
		a.HalfLives[k].Learning, err = a.learning(ctx, 1, exponential(float64(halfLives[k])))
		return err
	})
	jobs = append(jobs, a.now)
	if a.Fits != nil {
		jobs = append(jobs, a.wrong)
	}
	return jobs
}

// row fills a row of the schedules.
func (a *Answer) row(ctx context.Context, k int) (err error) {
	r := &a.Rows[k]
	var crawls []crawl
	switch k {
	case 0:
		crawls, err = a.present(ctx, a.whole)
	case 1:
		crawls, err = a.learn(ctx)
	default:
		crawls, err = a.policy(ctx, r.Policy, a.whole)
	}
	r.measures = a.catalog.measure(crawls, a.whole, a.Form.Left)
	perHour := make([]float64, len(r.days))
	for d, interest := range r.days {
		perHour[d] = interest / 24
	}
	r.Interval = a.overWeeks(perHour, slices.Repeat([]float64{1}, len(perHour)))
	return err
}

// now measures the present schedule in the tail.
func (a *Answer) now(ctx context.Context) error {
	crawls, err := a.present(ctx, a.tail)
	if err != nil {
		return err
	}
	interest := func(f form) float64 { return a.catalog.measure(crawls, a.tail, f.Left).Interest }
	a.nowAtEnd = interest(a.Form)
	for k, h := range halfLives {
		a.HalfLives[k].Hours, a.HalfLives[k].Now = h, interest(exponential(float64(h)))
	}
	return nil
}

// overWeeks returns the ratio of what two schedules earn on the same days, with
// an interval that is not finite where there are too few of them.
func (a *Answer) overWeeks(days, than []float64) stats.Estimate {
	if len(days) < block {
		return stats.Estimate{Lo: math.NaN(), Hi: math.NaN()}
	}
	return stats.New(a.Seed).RatioBlocks(days, than, block)
}

// conclude fills what follows from the runs.
func (a *Answer) conclude() {
	a.Gain = a.overWeeks(a.Rows[1].days, a.Rows[0].days)
	a.Gain.Value = a.Rows[1].Interest/a.Rows[0].Interest - 1
	a.Gain.Lo, a.Gain.Hi = a.Gain.Lo-1, a.Gain.Hi-1

	for k := range a.Budgets {
		a.Budgets[k].Interest /= a.nowAtEnd
	}
	a.Fewer = math.NaN()
	if last := len(a.Budgets) - 1; a.Budgets[last].Interest >= 1 {
		a.Fewer = 1 - a.Budgets[0].Crawls // at least
		for k := last; k > 0; k-- {
			hi, lo := a.Budgets[k], a.Budgets[k-1]
			if lo.Interest < 1 {
				a.Fewer = 1 - (lo.Crawls + (hi.Crawls-lo.Crawls)*(1-lo.Interest)/(hi.Interest-lo.Interest))
				break
			}
		}
	}
}
