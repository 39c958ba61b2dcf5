package baselines

import (
	"math"
	"slices"

	"ephemera/env"
)

// The policies of this file are what crawlers do today: each source has an
// interval that its own crawls lengthen or shorten, and a crawl is due when the
// interval has passed. Under a budget the most overdue source comes first, and
// what is left of the budget goes to the sources that are due next, so that all
// policies that are compared spend the same. A relative one ranks by age over
// interval instead of by the hours overdue. Intervals are in hours;
// env.Terms.Length gives the hours of an epoch, and where it is 0 an epoch
// counts as one hour.

// Practice says how such a policy chooses.
type Practice struct {
	Relative bool // by age over interval, and not by the hours overdue
	Due      bool // only sources that are due, whatever of the budget is left
}

const (
	minute = 1. / 60 // hours
	day    = 24.0
	week   = 7 * day
)

// practice crawls the most overdue source first.
type practice struct {
	Practice
	sel               *Selector
	key               []float64
	interval          []float64 // I, hours
	shortest, longest float64   // of the intervals, hours
	hours             float64   // in an epoch
	// next returns the interval after a crawl at that epoch, before it is cut.
	next func(c env.Crawled, epoch int) float64
}

func newPractice(t env.Terms, how Practice, start, shortest, longest float64) *practice {
	n := len(t.Costs)
	return &practice{
		Practice: how, sel: NewSelector(t.Costs, t.Budget), key: make([]float64, n), hours: hoursPerEpoch(t),
		interval: slices.Repeat([]float64{clamp(start, shortest, longest)}, n), shortest: shortest, longest: longest,
	}
}

func hoursPerEpoch(t env.Terms) float64 {
	if t.Length == 0 {
		return 1
	}
	return t.Length / 3600
}

// Select implements env.Policy.
func (p *practice) Select(dst []int, o *env.Online) []int {
	for i, interval := range p.interval {
		if o.Last[i] < 0 {
			interval = 0 // what was never crawled is due at once
		}
		age := float64(o.Age(i)) * p.hours
		switch {
		case p.Due && age < interval*(1-1e-9):
			p.key[i] = negInf
		case p.Relative:
			p.key[i] = age / interval
		default:
			p.key[i] = age - interval // hours overdue
		}
	}
	return p.sel.Within(o).Top(dst, p.key)
}

// Update implements env.Learner.
func (p *practice) Update(crawls []env.Crawled, next *env.Online) {
	for _, c := range crawls {
		p.interval[c.Source] = clamp(p.next(c, next.Epoch-1), p.shortest, p.longest)
	}
}

// byHarvest is a practice that asks only whether a crawl brought back anything new.
type byHarvest struct{ *practice }

// HarvestsOnly implements env.HarvestsOnly.
func (byHarvest) HarvestsOnly() {}

// found reports whether a crawl brought back anything new: items, interest, or what items
// have cost for as long as they waited.
func found(c env.Crawled) bool { return len(c.Items) > 0 || c.Interest != 0 }

// NewEntryFrequency returns the entry-frequency scheduler of Miniflux 2.3.3
// (Feed.ScheduleNextCheck and Storage.WeeklyFeedEntryCount), which it follows where
// POLLING_SCHEDULER is entry_frequency:
//
//	I = 7 d / ⌈7 d / ((last − first)/(n − 1))⌉, from five minutes to a day
//
// with n, first and last the number and the times of publication of the items that are
// at most a week old. With fewer than two, or with all of one time, the interval is the
// longest. Miniflux counts before it asks, so what a crawl finds acts from the next one
// on; the crawl that adds a feed is followed by another at once. By default Miniflux asks
// for each feed every 60 minutes, as [NewFixedInterval]. In worlds whose crawls name no
// items, a crawl that brings back interest counts as one item.
func NewEntryFrequency(t env.Terms, how Practice) env.Learner[env.Online] {
	p := newPractice(t, how, 0, 5*minute, day)
	published := make([]lastWeek, len(t.Costs))
	p.next = func(c env.Crawled, epoch int) float64 {
		now := float64(epoch) * p.hours
		seen := &published[c.Source]
		if len(seen.at) == 0 {
			seen.add(c, now, p.hours)
			return seen.interval(now)
		}
		interval := seen.interval(now)
		seen.add(c, now, p.hours)
		return interval
	}
	return p
}

// lastWeek holds when the items of a source were published, in hours. Those before
// first are more than a week old.
type lastWeek struct {
	at    []float64 // ascending
	first int
}

// add takes in what a crawl has found.
func (w *lastWeek) add(c env.Crawled, now, epoch float64) {
	if w.first > len(w.at)/2 {
		w.at, w.first = append(w.at[:0], w.at[w.first:]...), 0
	}
	for _, it := range c.Items {
		w.at = append(w.at, now-it.Age*epoch)
	}
	if len(c.Items) == 0 && found(c) {
		w.at = append(w.at, now)
	}
}

// interval returns Miniflux's interval, +Inf where it is the longest.
func (w *lastWeek) interval(now float64) float64 {
	for w.first < len(w.at) && w.at[w.first] < now-week {
		w.first++
	}
	n := len(w.at) - w.first
	if n < 2 || w.at[len(w.at)-1] <= w.at[w.first] {
		return math.Inf(1)
	}
	gap := (w.at[len(w.at)-1] - w.at[w.first]) / float64(n-1)
	return week / math.Ceil(week/gap)
}

// NewFixedInterval returns the schedule of FreshRSS 1.24.3 (ttl_default,
// FeedDAO.listFeedsOrderUpdate), which is that of Miniflux 2.3.3 too where nothing is
// configured (SCHEDULER_ROUND_ROBIN_MIN_INTERVAL): each source every 60 minutes.
func NewFixedInterval(t env.Terms, how Practice) env.Learner[env.Online] {
	p := newPractice(t, how, 1, 1, 1)
	p.next = func(env.Crawled, int) float64 { return 1 }
	return byHarvest{p}
}

// shown is how many items a feed is thought to show.
const shown = 20

// NewCommaFeed returns the refresh intervals of CommaFeed 7.3.2
// (FeedRefreshIntervalCalculator), with the mean gap g between the items that the feed
// shows, here the last 20, and the time since the last of them:
//
//	under 7 d: g/2, from five minutes to an hour
//	7 to 14 d: 1 h    14 to 30 d: 2 h    from 30 d on, without a gap or an item: 4 h
//
// A crawl that brings back interest in a world without items counts as one item.
func NewCommaFeed(t env.Terms, how Practice) env.Learner[env.Online] {
	const longest = 4 // hours
	p := newPractice(t, how, 0, 5*minute, longest)
	shows := make([][]float64, len(t.Costs)) // hours of publication, ascending, of each source
	p.next = func(c env.Crawled, epoch int) float64 {
		now, all := float64(epoch)*p.hours, shows[c.Source]
		for _, it := range c.Items[max(0, len(c.Items)-shown):] {
			all = append(all, now-it.Age*p.hours)
		}
		if len(c.Items) == 0 && found(c) {
			all = append(all, now)
		}
		if n := len(all); n > shown {
			all = append(all[:0], all[n-shown:]...)
		}
		shows[c.Source] = all
		n := len(all)
		if n == 0 {
			return longest
		}
		switch since := now - all[n-1]; {
		case since >= 30*day:
			return longest
		case since >= 14*day:
			return longest / 2.
		case since >= 7*day:
			return longest / 4.
		case n == 1:
			return longest
		}
		return min((all[n-1]-all[0])/float64(n-1)/2, longest/4.)
	}
	return p
}

// NewNutch returns the adaptive fetch schedule of Apache Nutch without its
// shift towards the time of change:
//
//	found new: I ← .8 I    found nothing: I ← 1.4 I
//
// from a minute to a year. Nutch starts at 30 days, a value for pages rather than
// for sources of news: the few sources whose interval shrinks first would then
// take the whole budget for a month. Here it starts at the interval at which
// round robin spends the budget.
func NewNutch(t env.Terms, how Practice) env.Learner[env.Online] {
	p := newPractice(t, how, t.Round()*hoursPerEpoch(t), minute, 365*day)
	p.next = func(c env.Crawled, _ int) float64 {
		if found(c) {
			return .8 * p.interval[c.Source]
		}
		return 1.4 * p.interval[c.Source]
	}
	return byHarvest{p}
}

// NewStormCrawler returns the adaptive scheduler of Apache StormCrawler:
//
//	found new: I ← ½ I + ½ h    found nothing: I ← 1.5 I
//
// from an hour to two weeks, at first a day.
func NewStormCrawler(t env.Terms, how Practice) env.Learner[env.Online] {
	p := newPractice(t, how, day, 1, 2*week)
	p.next = func(c env.Crawled, _ int) float64 {
		if found(c) {
			return .5*p.interval[c.Source] + .5
		}
		return 1.5 * p.interval[c.Source]
	}
	return byHarvest{p}
}

func clamp(v, lo, hi float64) float64 { return min(max(v, lo), hi) }
