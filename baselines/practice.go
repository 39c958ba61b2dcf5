package baselines

import (
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
	return p.sel.Top(dst, p.key)
}

// Update implements env.Learner.
func (p *practice) Update(crawls []env.Crawled, next *env.Online) {
	for _, c := range crawls {
		p.interval[c.Source] = clamp(p.next(c, next.Epoch-1), p.shortest, p.longest)
	}
}

// found reports whether a crawl brought back anything new.
func found(c env.Crawled) bool { return len(c.Items) > 0 || c.Interest > 0 }

// NewEntryFrequency returns the entry-frequency scheduler of Miniflux: after a
// crawl
//
//	I = 7 d / (items of the last 7 days), from five minutes to a day
//
// with the items counted by their time of publication among all that were
// found. Without an item the interval is the longest. Sources that have not
// been crawled are due at once. In worlds whose crawls name no items, a crawl
// that brings back interest counts as one item.
func NewEntryFrequency(t env.Terms, how Practice) env.Learner[env.Online] {
	p := newPractice(t, how, 0, 5*minute, day)
	published := make([][]float64, len(t.Costs)) // hours, ascending, of each source
	p.next = func(c env.Crawled, epoch int) float64 {
		now := float64(epoch) * p.hours
		all := slices.DeleteFunc(published[c.Source], func(at float64) bool { return at <= now-week })
		for _, it := range c.Items {
			if at := now - it.Age*p.hours; at > now-week {
				all = append(all, at)
			}
		}
		if len(c.Items) == 0 && found(c) {
			all = append(all, now)
		}
		published[c.Source] = all
		return week / float64(len(all)) // without an item +Inf
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
	return p
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
	return p
}

func clamp(v, lo, hi float64) float64 { return min(max(v, lo), hi) }
