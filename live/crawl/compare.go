package crawl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"

	"gonum.org/v1/gonum/stat"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/learner"
	"ephemera/live/feed"
)

// A comparison plays what was found again, as if each item could be found from its date on: by
// the learner and by rules of readers, with as many requests.
const (
	comparedOver  = 14 * 24 * time.Hour // at most, of which the last half is measured
	comparedAnew  = 6 * time.Hour       // after the last one, when somebody looks; where there was too little, an hour
	comparedItems = 50                  // at least
)

// scheduler decides which feeds are looked at, and is given what each look found.
type scheduler = env.Learner[env.Online]

// practices are the rules of readers and crawlers (package baselines), each by hours and relative.
var practices = []struct {
	name  string
	begin func(env.Terms, baselines.Practice) env.Learner[env.Online]
}{
	{"Miniflux, entry frequency", baselines.NewEntryFrequency},
	{"CommaFeed", baselines.NewCommaFeed},
	{"Nutch", baselines.NewNutch},
	{"StormCrawler", baselines.NewStormCrawler},
}

// rival is how long items waited for a schedule.
type rival struct {
	Name               string
	Requests           int
	Half, Ninety, Mean time.Duration
}

func newRival(name string, requests int, minutes []float64) rival {
	slices.Sort(minutes)
	at := func(share float64) time.Duration {
		return time.Duration(stat.Quantile(share, stat.Empirical, minutes, nil) * float64(time.Minute))
	}
	return rival{name, requests, at(.5), at(.9), time.Duration(stat.Mean(minutes, nil) * float64(time.Minute))}
}

// comparison is one of schedules over the same items.
type comparison struct {
	Made, From, To time.Time // Items of From to To are measured
	Items, Feeds   int
	PerHour        float64   // requests
	feeds          []string  // that are measured
	Left           []leftOut // Items that are not measured
	Rivals         []rival
	Rules          []rival // all of which the best is a rival
	Why            string  // there are none
}

// LeftItems returns how many items are not measured.
func (c *comparison) LeftItems() (n int) {
	for _, l := range c.Left {
		n += l.Items
	}
	return n
}

// leftOut are items that were found in the time, and by which no schedule is measured.
type leftOut struct {
	Why   string
	Items int
	Mean  time.Duration // until they were found; 0 if that is not known
}

// Reasons to leave items out.
const (
	whileUnseen = "published while nobody saw what the reader fetched"
	whileFailed = "published while their feeds failed, when nobody knows how other looks would have ended"
	ofFailing   = "of feeds that fail, or failed in more than a quarter of the time"
	ofSkipping  = "of feeds that skip hours, which the others do not know of"
	ofMoved     = "of feeds that moved to where another one is"
	ofNew       = "of feeds that are new"
)

// observed is what was found of a feed.
type observed struct {
	left   string        // why its items are left out; empty if they are not
	since  time.Time     // it has been looked at
	last   time.Time     // look
	wait   time.Duration // between two looks, at least, as its publisher asks
	looks  []time.Time
	items  []found
	failed []gap // the times in which it failed
	unseen []gap // the times in which its reader may have fetched it without being seen
}

// gap is a time between two looks: two that did not fail, with others between them that did, or two of
// a reader, with others between them that nobody saw.
type gap struct{ from, to time.Time }

// within returns how much of a gap lies in a time.
func (g gap) within(from, to time.Time) time.Duration {
	if g.from.After(from) {
		from = g.from
	}
	if g.to.Before(to) {
		to = g.to
	}
	return max(0, to.Sub(from))
}

// hidden reports whether nobody saw what the reader did with the feed at a time. Of the look at the end of
// a gap nobody knows which one it was.
func (o *observed) hidden(at time.Time) bool {
	return slices.ContainsFunc(o.unseen, func(g gap) bool { return at.After(g.from) && !at.After(g.to) })
}

// setBack has what was found later than an entry that came after it be found just then: the clock was ahead, and
// was set right.
func (o *observed) setBack(now time.Time) {
	if n := len(o.looks); n == 0 || !o.looks[n-1].After(now) {
		return
	}
	cut := func(t *time.Time) {
		if t.After(now) {
			*t = now
		}
	}
	for i := range o.looks {
		cut(&o.looks[i])
	}
	for i := range o.items {
		cut(&o.items[i].published)
		cut(&o.items[i].at)
	}
	for _, gaps := range [][]gap{o.failed, o.unseen} {
		for i := range gaps {
			cut(&gaps[i].from)
			cut(&gaps[i].to)
		}
	}
	cut(&o.since)
}

// failing reports whether the feed failed at a time.
func (o *observed) failing(at time.Time) bool {
	return slices.ContainsFunc(o.failed, func(g gap) bool { return at.After(g.from) && at.Before(g.to) })
}

// found is an item: when it was published, or the middle of the time in which it was, and
// when it was found.
type found struct {
	published, at time.Time
	first         bool // with the first look at its feed
}

// recompare begins a comparison, if there is none that is new. It ends with [Crawler.Close].
func (c *Crawler) recompare(now time.Time) {
	if last := c.compared; last != nil {
		wait := comparedAnew
		if last.Why != "" {
			wait = time.Hour
		}
		if now.Sub(last.Made).Abs() < wait {
			return
		}
	}
	if c.comparing {
		return
	}
	c.comparing = true
	wanted := map[string]*observed{}
	for address, r := range c.feeds {
		if !r.listed || r.Last.IsZero() {
			continue
		}
		o := &observed{last: r.Last, wait: c.opt.Shortest}
		if r.Why == published {
			o.wait = max(o.wait, r.NotBefore.Sub(r.Tried))
		}
		switch {
		case r.Failures > 0 || r.Gone:
			o.left = ofFailing
		case r.same != r:
			o.left = ofMoved
		case r.Pace.SkipHours != 0 || r.Pace.SkipDays != 0:
			o.left = ofSkipping
		}
		wanted[address] = o
	}
	opt, seq := c.opt, c.seq
	c.comparisons.Go(func() {
		out, err := c.compareFrom(c.ending, &opt, wanted, seq, now)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.comparing = false; err != nil {
			c.opt.Log.Error("the schedules were not compared", "error", err)
			out = &comparison{Made: now, Why: err.Error()}
		}
		c.compared = out
	})
}

// compareFrom compares schedules over what the journal has of some feeds.
func (c *Crawler) compareFrom(
	ctx context.Context, opt *Options, wanted map[string]*observed, seq uint64, now time.Time,
) (*comparison, error) {
	// The first entry of the time.
	oldest := now.Add(-comparedOver)
	var bad error
	first := sort.Search(int(seq), func(k int) bool {
		at := now
		err := c.journal(uint64(k), func(e *entry) bool {
			at = e.At
			return false
		})
		bad = errors.Join(bad, err)
		return !at.Before(oldest)
	})
	begin := time.Time{}
	err := c.journal(uint64(first), func(e *entry) bool {
		if begin.IsZero() {
			begin = e.At
		}
		o := wanted[e.Feed]
		if o == nil || e.Outcome == imported {
			return ctx.Err() == nil
		}
		first := e.Previous.IsZero()
		if o.since.IsZero() {
			if o.since = e.Previous; first {
				o.since = e.At
			}
		}
		o.setBack(e.At)
		if e.Unseen && !first {
			last := e.Previous
			if n := len(o.looks); n > 0 {
				last = o.looks[n-1]
			}
			o.unseen = append(o.unseen, gap{last, e.At})
		}
		if e.Outcome != pushed {
			o.looks = append(o.looks, e.At)
		}
		open := len(o.failed) > 0 && o.failed[len(o.failed)-1].to.IsZero()
		switch fails := e.Outcome == feed.Failed || e.Outcome == feed.Gone; {
		case fails && !open && !first:
			o.failed = append(o.failed, gap{from: e.Previous})
		case !fails && open:
			o.failed[len(o.failed)-1].to = e.At
		}
		for _, it := range e.Items {
			if it.Published.IsZero() && first {
				continue // it may be of any time
			}
			if it.Published.IsZero() {
				it.Published = e.undated()
			}
			o.items = append(o.items, found{it.Published, e.At, first})
		}
		return ctx.Err() == nil
	})
	if err := errors.Join(err, bad, ctx.Err()); err != nil {
		return nil, err
	}
	return opt.compare(ctx, wanted, begin, now)
}

// compare compares schedules over what was found from a time on.
func (o *Options) compare(
	ctx context.Context, all map[string]*observed, begin, now time.Time,
) (out *comparison, err error) {
	// Schedules decide in epochs, which begin a minute after the hour.
	begin = begin.Add(time.Hour - time.Minute - time.Second).Truncate(time.Hour).Add(time.Minute)
	out = &comparison{Made: now, To: now}
	out.choose(all, begin)
	kept, err := out.collect(all, begin)
	if err != nil || out.Why != "" {
		return out, err
	}
	who := "this crawler"
	if o.Shadow {
		who = readerName(o.Reader) + ", by its own rule"
	}
	out.Rivals = []rival{newRival(who, kept.looks, kept.minutes)}
	rec, err := env.PublishedColumns.Parse(ctx, "what was found", &kept.table)
	if err != nil {
		return nil, err
	}
	opt := Options{
		PerHour: float64(kept.looks) / kept.seen, Objective: o.Objective,
		Shortest: o.Shortest, Longest: o.Longest,
	}
	out.PerHour = opt.PerHour
	length, budget := opt.epoch()
	return out, out.playAll(ctx, &replayed{
		rec: rec.With(out.feeds).Between(begin.Unix(), now.Unix()),
		how: env.ReplayOptions{
			Epoch: length, Budget: budget, Decay: 1e-6, Part: env.PartWhole, Items: true, Overrun: true,
		},
		opt: opt, waits: kept.waits,
		measured: func(i int, at time.Time) bool { return out.measured(at) && !all[out.feeds[i]].hidden(at) },
		counts: func(i int, published time.Time) bool {
			f := all[out.feeds[i]]
			return out.measured(published) && !f.hidden(published) && !f.failing(published)
		},
	}, o.Shadow)
}

// choose says of each feed whether it is left out, and why, and sets the time that is measured: the
// last half of that in which all that is older than the last look at each feed is known.
func (c *comparison) choose(all map[string]*observed, begin time.Time) {
	now := c.Made
	quarter := now.Sub(begin) / 4
	for _, f := range all {
		failed := time.Duration(0)
		for _, g := range f.failed {
			if g.to.IsZero() {
				failed = quarter + 1 // it still fails
				break
			}
			failed += g.within(begin, now)
		}
		switch {
		case f.left != "":
		case failed > quarter:
			f.left = ofFailing
		case f.since.After(begin.Add(quarter)):
			f.left = ofNew
		case f.last.Before(c.To) && now.Sub(f.last) < 24*time.Hour:
			c.To = f.last
		}
	}
	c.From = c.To.Add(-c.To.Sub(begin) / 2)
}

// measured reports whether items and looks of a time are measured.
func (c *comparison) measured(at time.Time) bool { return !at.Before(c.From) && at.Before(c.To) }

// collected is what was found at the feeds that are not left out.
type collected struct {
	table   bytes.Buffer    // a recording of it
	waits   []time.Duration // between two looks at each feed, at least
	minutes []float64       // from publication to look, of the items that are measured
	looks   int             // of the time that is measured
	seen    float64         // of that time, in the mean over the feeds, hours
}

// collect collects what was found, and counts what is left out.
func (c *comparison) collect(all map[string]*observed, begin time.Time) (*collected, error) {
	kept := &collected{}
	table := csv.NewWriter(&kept.table)
	table.Write([]string{"source", "published_unix", "number"})
	left := map[string][]float64{}
	rows := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		for _, it := range f.items {
			why := f.left
			switch {
			case why != "":
			case f.hidden(it.published):
				why = whileUnseen
			case f.failing(it.published):
				why = whileFailed
			}
			if wait := it.at.Sub(it.published).Minutes(); c.measured(it.published) && why != "" {
				left[why] = append(left[why], wait)
			} else if c.measured(it.published) {
				kept.minutes = append(kept.minutes, wait)
			}
			if f.left == "" && !it.first && !it.published.Before(begin) {
				rows++
				table.Write([]string{name, strconv.FormatInt(it.published.Unix(), 10), strconv.Itoa(rows)})
			}
		}
		if f.left != "" {
			continue
		}
		c.feeds, kept.waits = append(c.feeds, name), append(kept.waits, f.wait)
		for _, at := range f.looks {
			if c.measured(at) && !f.hidden(at) {
				kept.looks++
			}
		}
		kept.seen += c.To.Sub(c.From).Hours()
		for _, g := range f.unseen {
			kept.seen -= g.within(c.From, c.To).Hours()
		}
	}
	kept.seen /= float64(max(1, len(c.feeds)))
	for _, why := range slices.Sorted(maps.Keys(left)) {
		mean := time.Duration(stat.Mean(left[why], nil) * float64(time.Minute))
		if why == whileUnseen { // they may have been found sooner
			mean = 0
		}
		c.Left = append(c.Left, leftOut{why, len(left[why]), mean})
	}
	c.Items, c.Feeds = len(kept.minutes), len(c.feeds)
	if c.Items < comparedItems {
		c.Why = fmt.Sprintf("needed are %d items of the last half of the time since the first look; there are %d",
			comparedItems, c.Items)
	}
	table.Flush()
	return kept, table.Error()
}

// playAll plays the schedules with which this crawler, or the reader, is compared: the learner if a
// reader has fetched, a fixed interval, and the best of the rules.
func (c *comparison) playAll(ctx context.Context, r *replayed, withLearner bool) error {
	play := func(to *[]rival, name string, begin func(env.Terms) scheduler) error {
		one, err := r.play(ctx, name, begin)
		*to = append(*to, one)
		return err
	}
	if withLearner {
		err := play(&c.Rivals, "the learner here", func(t env.Terms) scheduler {
			l := newLearned(r.opt, t)
			l.waits = r.waits
			return l
		})
		if err != nil {
			return err
		}
	}
	err := play(&c.Rivals, "a fixed interval", func(t env.Terms) scheduler {
		return baselines.NewFixedInterval(t, baselines.Practice{})
	})
	if err != nil {
		return err
	}
	for _, rule := range practices {
		for _, relative := range []bool{false, true} {
			name := rule.name
			if relative {
				name += ", relative"
			}
			err := play(&c.Rules, name, func(t env.Terms) scheduler {
				return rule.begin(t, baselines.Practice{Relative: relative})
			})
			if err != nil {
				return err
			}
		}
	}
	best := slices.MinFunc(c.Rules, func(a, b rival) int { return cmp.Compare(a.Mean, b.Mean) })
	best.Name = "the best rule: " + best.Name
	c.Rivals = append(c.Rivals, best)
	return nil
}

// replayed is what was found, as a world in which schedules are played. Looks of some times are
// measured, and items of some feeds and times.
type replayed struct {
	rec      *env.Recording
	how      env.ReplayOptions
	opt      Options         // of a crawler with as many requests
	waits    []time.Duration // between two looks at each feed, at least
	measured func(i int, at time.Time) bool
	counts   func(i int, published time.Time) bool
}

// play returns how long items waited for a schedule.
func (r *replayed) play(ctx context.Context, name string, begin func(env.Terms) scheduler) (rival, error) {
	in, err := r.rec.Fit(r.how)
	if err != nil {
		return rival{}, err
	}
	w, err := env.NewReplay(r.rec, in, r.how)
	if err != nil {
		return rival{}, err
	}
	p, err := r.playOut(ctx, w, begin(w.Terms()))
	if err != nil {
		return rival{}, err
	}
	return newRival(name, p.looks, p.minutes), nil
}

// played is what a schedule brought.
type played struct {
	minutes      []float64 // from publication to look, of the items that were measured
	looks, empty int       // of the time that was measured, and of all of it
}

// playOut has a scheduler look at the feeds of a replay, at each no sooner than it may. At the end
// all feeds are looked at, so that each item is found that is still shown.
func (r *replayed) playOut(ctx context.Context, w *env.Replay, s scheduler) (p played, err error) {
	terms := w.Terms()
	limits := &env.Limits{Budget: terms.Budget, NotBefore: make([]int, len(r.waits))}
	view := func() *env.Online {
		v := w.View().Online
		v.Limits = limits
		return &v
	}
	step := func(look []int, last bool) error {
		carry(limits, terms.Budget, len(look))
		crawls, err := w.Step(look)
		if err != nil && err != io.EOF || len(crawls) < len(look) {
			return cmp.Or(err, io.ErrUnexpectedEOF)
		}
		epochs := float64(w.View().Epoch) // since the beginning; that of this look has passed
		now := time.UnixMilli(terms.Start*1000 + int64((epochs-1)*terms.Length*1000))
		for _, c := range crawls {
			wait := int(math.Ceil(r.waits[c.Source].Seconds() / terms.Length))
			limits.NotBefore[c.Source] = w.View().Epoch - 1 + wait
			if r.measured(c.Source, now) && !last {
				p.looks++
				if len(c.Items) == 0 {
					p.empty++
				}
			}
			for _, it := range c.Items {
				age := time.Duration(it.Age * terms.Length * float64(time.Second))
				if it.Age < epochs && r.counts(c.Source, now.Add(-age)) {
					p.minutes = append(p.minutes, age.Minutes())
				}
			}
		}
		s.Update(crawls, view())
		return ctx.Err()
	}
	for range w.Epochs() - 1 {
		if err := step(s.Select(nil, view()), false); err != nil {
			return p, err
		}
	}
	var all []int
	for i := range terms.Costs {
		all = append(all, i)
	}
	return p, step(all, true)
}

// carry sets the requests of the next epoch: what is left after some looks, below one, goes on to it.
func carry(l *env.Limits, perEpoch float64, looks int) {
	_, left := math.Modf(max(0, l.Budget-float64(looks)) + 1e-9)
	l.Budget = perEpoch + left
}

// learned is the crawler's learner, as [Crawler] uses it, in a replay.
type learned struct {
	opt     Options
	learner *learner.Crawler
	env.Terms
	waits []time.Duration // between two looks at each feed, at least; nil for the shortest interval
	err   error
}

func newLearned(opt Options, terms env.Terms) *learned {
	l := &learned{opt: opt, Terms: terms}
	l.learner, l.err = opt.newLearner(l.at(0))
	for i := range terms.Costs {
		if l.err == nil {
			l.err = l.learner.Add(strconv.Itoa(i), opt.limits())
		}
	}
	return l
}

// at returns the time that many epochs after the first decision.
func (l *learned) at(epochs float64) time.Time {
	return time.UnixMilli(l.Start*1000 + int64(epochs*l.Length*1000))
}

// Select implements env.Policy.
func (l *learned) Select(dst []int, o *env.Online) []int {
	if l.err != nil {
		return dst
	}
	for _, name := range l.learner.Select(l.at(float64(o.Epoch)), math.MaxInt) {
		i, _ := strconv.Atoi(name) // they are numbers
		dst = append(dst, i)
	}
	return dst
}

// Update implements env.Learner.
func (l *learned) Update(crawls []env.Crawled, next *env.Online) {
	now := float64(next.Epoch - 1)
	for _, c := range crawls {
		e := entry{
			Feed: strconv.Itoa(c.Source), At: l.at(now), Outcome: feed.Found, Truncated: c.Truncated, Worth: 1,
			NotBefore: l.at(now).Add(l.opt.Shortest),
		}
		if l.waits != nil {
			e.NotBefore = l.at(now).Add(l.waits[c.Source])
		}
		for _, it := range c.Items {
			e.Items = append(e.Items, feed.Item{Published: l.at(now - it.Age)})
		}
		if l.err == nil {
			l.err = l.opt.learn(l.learner, &e)
		}
	}
}
