// Package replay tells what a better schedule would bring on a recording of
// what sources published: the learner, which knows nothing at first, against
// what is done now, at the same number of crawls.
//
//  1. A [Question] is asked of a recording. It fixes how long an epoch is and how
//     many crawls it has.
//  2. Every schedule is a list of crawls with their times: from a file, in turn,
//     or of a policy that plays the recording (schedules.go).
//  3. One function measures all of them, publication by publication (measure.go).
//  4. The [Answer] holds the figures; page.go prints them.
package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// Question is what is asked of a recording.
type Question struct {
	Log *env.Recording
	// First and Last are the Unix times between which the log is played; nil stands for
	// the first and the last item that are not dated far from the rest.
	First, Last *int64
	HalfLife    float64 // hours, in which an item loses half of its interest
	// Objective is that of the learner whose timetable and state are kept.
	Objective env.Objective
	Rate      float64 // crawls per hour; 0 stands for that of Crawls, or for every source every four hours
	// What is done now: the crawls of a file, or one of Rules, with Rate crawls or, if
	// that is 0, as many as it makes of itself, or, with neither, each source in turn.
	Crawls       []Crawl // sorted by time
	CrawledTwice int     // rows of the file of crawls that were there before, and do not count
	Rule         string
	Shows        int // how many items a source shows; older ones are missed. 0 for all that are new
	// Late is how many hours after its publication the utility of an item becomes known
	// to whoever learns; 0 when it is crawled. +Inf is never: all items are worth 1.
	Late float64
	// Longest is how many hours lie between two crawls of a source at most, except by
	// Rules, which set intervals of their own. 0 stands for a week, or for the time of
	// eight rounds if that is longer.
	Longest  float64
	Seed     uint64
	Workers  int
	patience float64               // in place of the constant; 0 stands for it
	Progress func(done, total int) // is given how many decisions are made, of all; may be nil
}

// Answer is what a better schedule brings. The rate and the crawls of its question are
// filled in.
type Answer struct {
	Question
	Name     string   // of the log
	Now      string   // what is done now
	Never    bool     // what items are worth never becomes known
	Uneven   bool     // items differ in utility
	Outliers []string // date and source of the items that are left out, since they are dated far from the rest
	Budget   int      // crawls per epoch
	LeftOut  float64  // days at the beginning of a long log

	Rows []schedule // now, learning, and what they are compared with
	// Gain is what the learner of interest earns over what is earned now, less 1; its
	// interval is over weeks.
	Gain stats.Estimate

	Budgets []part  // what the learner earns with fewer crawls, and in the end with all
	Fewer   float64 // share of the crawls it could leave out and still earn what is earned now; NaN if none

	Timetable []Crawl // a week of what the learner would do with all that it has learned
	// State is a state file of the learner with all that it has learned: learner.Decode
	// and Saved.Crawler go on with it.
	State []byte
	// SecondHalf holds what is done now, the learner and a timetable of what it had
	// learned in the first half, in the second half of the recording.
	SecondHalf []schedule

	window window
	middle int // the epoch at which the second half of the recording begins

	decided sync.Mutex // of those that count their decisions
	made    int        // decisions
	planned int        // those of all schedules; 0 before they begin
}

// decisions returns how many all schedules take.
func (a *Answer) decisions() int {
	w := a.window
	total := (len(a.Rows)-1)*w.epochs() + int(week/w.length) + min(int(week/w.length), w.epochs()-a.middle)
	for _, share := range shares {
		total += w.withShare(share).epochs()
	}
	return total
}

// decide counts a decision.
func (a *Answer) decide() {
	if a.Progress == nil || a.planned == 0 {
		return
	}
	a.decided.Lock()
	defer a.decided.Unlock()
	a.made++
	a.Progress(a.made, a.planned)
}

// schedule is what one schedule brings. The figures of its row are per epoch, with
// an interval over weeks, which is missing under five of them.
type schedule struct {
	result.Row
	OfNow result.Ratio
	measures
}

// MarshalJSON implements json.Marshaler: the figures of the row, and then those of the schedule.
func (s schedule) MarshalJSON() ([]byte, error) {
	row, err := json.Marshal(s.Row)
	own, wrong := json.Marshal(struct {
		OfNow result.Ratio `json:"of_now"`
		measures
	}{s.OfNow, s.measures})
	if err := errors.Join(err, wrong); err != nil {
		return nil, err
	}
	return slices.Concat(row[:len(row)-1], []byte(","), own[1:]), nil
}

// part is what the learner earns with a share of the crawls, over what is
// earned now with all.
type part struct{ Crawls, PerHour, Interest float64 }

// Rules are the schedulers of feed readers and crawlers.
var Rules = append([]string{"freshrss"}, compared...)

// compared are the rules that the learner is always compared with. That of FreshRSS is
// not among them: with as many crawls as others make it is every source in turn.
var compared = []string{
	"miniflux", "miniflux-relative", "commafeed", "commafeed-relative",
	"nutch", "nutch-relative", "stormcrawler", "stormcrawler-relative",
}

// theLearner is the name of the learner.
const theLearner = "forecast"

// learnsFor begins the name of a row of the learner with another objective.
const learnsFor = "learning-"

// interest is the objective by which interest is measured.
func (q *Question) interest() env.Objective {
	return env.Objective{Law: env.LawExponential, Time: time.Duration(q.HalfLife * float64(time.Hour))}
}

// others are the objectives with which the learner is played too: delay and interest, unless the
// objective is one of these, with whatever exponent or half-life.
func (q *Question) others() (others []env.Objective) {
	for _, o := range []env.Objective{env.Delay, q.interest()} {
		if o.Law != q.Objective.Law {
			others = append(others, o)
		}
	}
	return others
}

// OfInterest returns the row of the learner of interest.
func (a *Answer) OfInterest() *schedule {
	if a.Objective.Law == env.LawExponential {
		return &a.Rows[1]
	}
	return a.find(learnsFor + a.interest().String())
}

// find returns the row of a policy.
func (a *Answer) find(policy string) *schedule {
	return &a.Rows[slices.IndexFunc(a.Rows, func(r schedule) bool { return r.Policy == policy })]
}

// BestRule returns the rule, or the order in turn, with which items are found soonest in the
// mean, of those that are not what is done now.
func (a *Answer) BestRule() schedule {
	var best *schedule
	for k := range a.Rows {
		if r := &a.Rows[k]; r.Policy == "round-robin" || slices.Contains(compared, r.Policy) {
			if best == nil || r.Mean < best.Mean {
				best = r
			}
		}
	}
	return *best
}

// Best returns which is to be followed: of what is done now, the learner and the best rule
// that with which items are found soonest in the mean.
func (a *Answer) Best() schedule {
	rows := []schedule{a.Rows[1], a.Rows[0], a.BestRule()}
	return slices.MinFunc(rows, func(x, y schedule) int { return cmp.Compare(x.Mean, y.Mean) })
}

// Worse says in what the learner is worse than another, "" for nothing.
func (a *Answer) Worse(than schedule) string {
	var worse []string
	add := func(what string, own, other hours) {
		if own > other && own.String() != other.String() {
			worse = append(worse, fmt.Sprintf("%s: %v, not %v", what, own, other))
		}
	}
	own := a.Rows[1]
	add("half of the items", own.Median, than.Median)
	add("nine in ten", own.P90, than.P90)
	add("the mean", own.Mean, than.Mean)
	if own.Missed > than.Missed && percent(own.Missed) != percent(than.Missed) {
		worse = append(worse, fmt.Sprintf("never found: %s, not %s", percent(own.Missed), percent(than.Missed)))
	}
	return strings.Join(worse, "; ")
}

var shares = []float64{.1, .2, .35, .5, .65, .8} // of the crawls

const (
	usual      = 4.0     // hours; how often all sources are crawled where nothing is said of it
	precise    = 1. / 12 // hours: five minutes, of an epoch with several crawls, as the crawler of feeds has it
	coarse     = 1.0     // hours of an epoch with several crawls, at most,
	rounds     = 12      // and of the time in which all sources can be crawled a part
	shortest   = 1. / 60 // hours of an epoch
	portion    = 4       // at most one source in so many is crawled in an epoch
	day        = 86400   // seconds
	week       = 7 * day //
	shownFirst = 20      // items that a source shows at its first crawl
	block      = 7       // days that vary together
	memory     = 1000    // hours after which the learner has forgotten all but 1/e
)

// pace returns how long an epoch is, in seconds, and how many crawls it has, so
// that they make just that many crawls an hour: one, or as many as there are in some
// hours. Of few sources no more than a part are crawled at once.
func pace(n int, rate, hours float64) (length float64, budget int) {
	hours = max(shortest, min(hours, float64(n)/rate/portion))
	budget = int(min(math.Ceil(rate*hours*(1-1e-9)), float64(n)))
	return max(1, math.Round(3600*float64(budget)/rate)), budget
}

// patience is how often all that is done with a log may look at a source, unless it is
// said from when on the log is played. A look takes 1 µs, so that this is 40 seconds on
// two cores.
const patience = 8e7

const (
	plays    = 4  // of the learner in the whole log: one, with fewer crawls 2.6 together, and certainty
	deciding = .4 // part of the time of a learner in which it decides and does not learn
)

// looks returns how often an epoch looks at a source, in the time of the learner: at
// those near their threshold, and several times at those that are crawled; rules, which
// take a hundredth, look at all.
func (w window) looks(n int) float64 {
	return min(float64(n), 50*float64(w.budget)) + 10*float64(w.budget) + float64(n)/100
}

// fixWindow finds the epochs of the log and how many crawls each has. Where there are
// so many that the schedules would take long they get longer, and what is still too
// much is left out at the beginning. They begin at the time first, and it reports whether it left out
// what follows that.
func (a *Answer) fixWindow(first float64) (cut bool) {
	last, n := float64(a.Log.Last), len(a.Log.Names)
	w := &a.window
	longest := max(precise, min(coarse, float64(n)/a.Rate/rounds))
	for hours := precise; ; hours = min(2*hours, longest) {
		*w = window{begin: first, from: first}
		w.length, w.budget = pace(n, a.Rate, hours)
		epochs := math.Floor((last - first) / w.length)
		w.to = first + epochs*w.length
		looks := w.looks(n)
		timetable := week / w.length * deciding * looks
		enough := max(8, math.Floor((cmp.Or(a.patience, patience)-timetable)/(plays*looks)))
		if epochs <= enough || a.First != nil {
			return false
		}
		if hours == longest {
			w.begin = w.to - enough*w.length
			w.from = w.begin
			a.LeftOut = (w.begin - float64(a.Log.First)) / day
			return true
		}
	}
}

// Ask answers the question.
func (q Question) Ask(ctx context.Context) (*Answer, error) {
	if q.Objective.Law == "" {
		q.Objective = env.Delay
	}
	outliers := q.cut()
	never := math.IsInf(q.Late, 1)
	if never {
		q.Log = q.Log.Even()
	}
	if q.Log.Rows == 0 {
		return nil, fmt.Errorf("%s: nothing was published from %v to %v",
			q.Log.Path, unix(float64(q.Log.First)), unix(float64(q.Log.Last)))
	}
	a := &Answer{Question: q, Name: Name(q.Log.Path), Never: never, Uneven: q.Log.Uneven(), Outliers: outliers}
	if !a.Uneven {
		a.Late = 0 // there is nothing to become known
	}
	if err := a.fixPace(ctx); err != nil {
		return nil, err
	}
	a.Rows = []schedule{a.row("now", a.Crawls, a.window), {}}
	for _, o := range a.others() {
		a.Rows = append(a.Rows, schedule{Row: result.Row{Policy: learnsFor + o.String()}})
	}
	if a.Rows[0].Interest == 0 {
		return nil, fmt.Errorf("%s: what is done now finds nothing with a utility above 0 from %v to %v, "+
			"so nothing can be compared with it",
			a.Log.Path, unix(a.window.from), unix(a.window.to))
	}
	inTurn := q.Crawls == nil && (q.Rule == "" || q.Rule == "freshrss") // is done now
	for _, name := range slices.Concat([]string{"whittle", "certainty", "round-robin"}, compared) {
		if name != q.Rule && (name != "round-robin" || !inTurn) {
			a.Rows = append(a.Rows, schedule{Row: result.Row{Policy: name}})
		}
	}
	a.Budgets = make([]part, len(shares)+1)

	last := len(a.Rows) - 1
	a.planned = a.decisions()
	err := experiments.Each(ctx, last+len(shares), max(1, q.Workers), nil, func(ctx context.Context, i int) error {
		switch {
		case i == 0:
			return a.learn(ctx)
		case i < last:
			row := &a.Rows[i+1]
			name, objective := row.Policy, env.Objective{}
			if text, ok := strings.CutPrefix(name, learnsFor); ok {
				name = theLearner
				if err := objective.UnmarshalText([]byte(text)); err != nil {
					return err
				}
			}
			crawls, err := a.playFor(ctx, a.window, name, objective, nil)
			*row = a.row(row.Policy, crawls, a.window)
			return err
		}
		return a.withFewer(ctx, i-last)
	})
	if err != nil {
		return nil, err
	}
	a.conclude()
	return a, nil
}

// cut limits the log to the times that the question names, and to items that are
// not dated far from the rest if it names none there. It returns those that are.
func (q *Question) cut() (outliers []string) {
	all, first, last := q.Log, q.First, q.Last
	q.Log = all.Plausible()
	from, to := q.Log.First, q.Log.Last
	all.Each(func(i int, at int64, _ float64) {
		if at < from && first == nil || at > to && last == nil {
			date := unix(float64(at)).Format(time.DateOnly)
			outliers = append(outliers, fmt.Sprintf("%v of %s", date, all.Names[i]))
		}
	})
	if end := to + 1; first != nil || last != nil { // with the last item
		q.Log = q.Log.Between(*cmp.Or(first, &from), *cmp.Or(last, &end))
	}
	return outliers
}

// fixPace finds how many crawls there are, in which epochs, what is measured, and
// which crawls are made now.
func (a *Answer) fixPace(ctx context.Context) (err error) {
	first, last := float64(a.Log.First), float64(a.Log.Last)
	n := len(a.Log.Names)
	switch {
	case a.Crawls != nil:
		a.Now = "the crawls of the file"
	case a.Rule != "" && a.Rate == 0:
		e, err := experiments.Find(a.Rule)
		if err != nil {
			return err
		}
		a.Now = e.About
		look := window{first, first, last, 300, n} // every five minutes for sources that are due
		if a.Crawls, err = a.play(ctx, look, a.Rule, nil); err != nil {
			return err
		}
	case a.Rule != "":
		a.Now = "the order in which " + a.Rule + " finds sources due"
	default:
		a.Now = "every source in turn"
		a.Rate = cmp.Or(a.Rate, float64(n)/usual)
	}
	from := first
	for ofCrawls, cut := a.Rate == 0, true; cut; from = a.window.begin {
		if ofCrawls {
			a.Rate = 0
			for _, c := range a.Crawls {
				if c.At >= from && c.At <= last {
					a.Rate += 3600 / (last - from)
				}
			}
			if a.Rate == 0 {
				return fmt.Errorf("none of the crawls that are made now lies from %v to %v, the time of %s",
					unix(from), unix(last), a.Log.Path)
			}
		}
		cut = a.fixWindow(from) && ofCrawls
	}
	w := &a.window
	a.Budget = w.budget
	if w.budget >= n {
		return fmt.Errorf("%.4g crawls per hour crawl every source at every decision, %v apart; "+
			"there is nothing to schedule", a.Rate, seconds(w.length))
	}
	if least := float64(n) / a.Longest; a.Longest > 0 && n > w.budget*w.within(a.Longest) {
		return fmt.Errorf("crawling %d sources every %v takes %.4g crawls per hour; there are %.4g",
			n, hours(a.Longest), least, a.Rate)
	}
	if w.epochs() < 8 {
		return fmt.Errorf("%s lasts %v, %v decisions at %.4g crawls per hour; needed are 8 or more",
			a.Log.Path, seconds(last-first), w.epochs(), a.Rate)
	}
	a.middle = w.epochs() / 2
	if a.LeftOut > 0 {
		a.Log = a.Log.Between(int64(w.begin), a.Log.Last+1)
	}
	switch {
	case a.Crawls != nil:
	case a.Rule != "":
		a.Crawls, err = a.play(ctx, a.window, a.Rule, nil)
	default:
		a.Crawls = inTurn(n, 3600*float64(n)/a.Rate, a.window.from, a.window.to)
	}
	return err
}

// Name is that of a log without what its file ends in.
func Name(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
}

func unix(t float64) time.Time { return time.Unix(int64(t), 0).UTC() }

func seconds(s float64) time.Duration { return time.Duration(s) * time.Second }

// row measures a schedule in a window.
func (a *Answer) row(policy string, crawls []Crawl, w window) schedule {
	m := measure(a.Log, crawls, w, a.HalfLife, a.Shows)
	epochs := slices.Repeat([]float64{day / w.length}, len(m.days)) // of each day
	epoch := w.length / 3600                                        // hours
	reward := stats.EstimateRatio(m.days, epochs, block).Around(m.Interest * epoch)
	return schedule{measures: m, Row: result.Row{
		Policy: policy, Outcome: result.Outcome{
			Epochs: int(math.Round((w.to - w.from) / w.length)), Reward: reward.Value, Crawls: m.crawls * epoch,
		},
		Lo: result.RatioOf(reward.Lo), Hi: result.RatioOf(reward.Hi),
	}}
}

// telling is how many items tell schedules apart: the share found within a time is then
// known to five in a hundred.
const telling = 100

// Telling reports whether there are items enough for a verdict.
func (a *Answer) Telling() bool { return a.Log.Rows >= telling }

// conclude fills what follows from the runs.
func (a *Answer) conclude() {
	now, learning, whittle := a.Rows[0], *a.OfInterest(), *a.find("whittle")
	for k := range a.Rows {
		r := &a.Rows[k]
		r.OfWhittle, r.OfNow = result.RatioOf(r.Interest/whittle.Interest), result.RatioOf(r.Interest/now.Interest)
	}
	for k := range a.SecondHalf {
		r := &a.SecondHalf[k]
		r.OfNow = result.RatioOf(r.Interest / a.SecondHalf[0].Interest)
	}
	last := len(shares)
	a.Budgets[last] = part{1, a.Rate, learning.Interest / now.Interest}
	a.Fewer = math.NaN()
	if !a.Telling() {
		a.Gain = stats.Estimate{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
		return
	}
	a.Gain = stats.EstimateRatio(learning.days, now.days, block).Around(learning.Interest/now.Interest - 1)

	if a.Budgets[last].Interest < 1 {
		return
	}
	a.Fewer = 1 - shares[0] // at least
	for k := last; k > 0; k-- {
		hi, lo := a.Budgets[k], a.Budgets[k-1]
		if lo.Interest < 1 {
			a.Fewer = 1 - (lo.Crawls + (hi.Crawls-lo.Crawls)*(1-lo.Interest)/(hi.Interest-lo.Interest))
			break
		}
	}
}
