package baselines

import (
	"cmp"
	"fmt"

	"ephemera/env"
)

// The policies of this file are what crawlers do today: each source has an
// interval that its own crawls lengthen or shorten, and a crawl is due when the
// interval has passed. Under a budget the most overdue source comes first, and
// what is left of the budget goes to the sources that are due next, so that all
// policies that are compared spend the same. Intervals are in hours;
// env.Terms.Length gives the hours of an epoch, and where it is 0 an epoch
// counts as one hour.

// EntryFrequency are the settings of [NewEntryFrequency]. Zero values mean
// Miniflux's defaults.
type EntryFrequency struct {
	Factor float64 // default 1
	Min    float64 // shortest interval, hours; default 5 minutes
	Max    float64 // longest interval, hours; default 24

	// Relative ranks by age over interval instead of by the hours overdue.
	Relative bool
}

// Adaptive are the settings of [NewNutch] and [NewStormCrawler]. Zero values
// mean the defaults of the one or the other.
type Adaptive struct {
	Shrink float64 // rate at which a find shortens the interval; default .2 (Nutch), .5 (StormCrawler)
	Grow   float64 // rate at which a crawl without a find lengthens it; default .4, .5
	Min    float64 // shortest interval, hours; default 1 minute, 1 hour
	Max    float64 // longest interval, hours; default 365 days, 2 weeks
	Start  float64 // first interval, hours; default that of round robin (ΣC/M epochs), 24 hours

	// Relative ranks by age over interval instead of by the hours overdue.
	Relative bool
}

const (
	day  = 24.0
	week = 7 * day
)

// practice crawls the most overdue source first.
type practice struct {
	sel      *Selector
	key      []float64
	interval []float64 // I, hours
	min, max float64   // of the interval
	hours    float64   // hours in an epoch
	relative bool
	// next returns the interval after a crawl at that epoch, before it is cut.
	next func(c env.Crawled, epoch int) float64
}

func newPractice(t env.Terms, start, min, max float64, relative bool) *practice {
	if !(min > 0 && min <= max) {
		panic(fmt.Sprintf("baselines: intervals from %v to %v hours; allowed is 0 < min ≤ max", min, max))
	}
	n := len(t.Costs)
	p := &practice{
		sel: NewSelector(t.Costs, t.Budget), key: make([]float64, n), interval: make([]float64, n),
		min: min, max: max, hours: hoursPerEpoch(t), relative: relative,
	}
	for i := range p.interval {
		p.interval[i] = clamp(start, min, max)
	}
	return p
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
		if age := float64(o.Age(i)) * p.hours; p.relative {
			p.key[i] = age / interval
		} else {
			p.key[i] = age - interval // hours overdue
		}
	}
	return p.sel.Top(dst, p.key)
}

// Update implements env.Learner.
func (p *practice) Update(crawls []env.Crawled, next *env.Online) {
	for _, c := range crawls {
		p.interval[c.Source] = clamp(p.next(c, next.Epoch-1), p.min, p.max)
	}
}

// found reports whether a crawl brought back anything new.
func found(c env.Crawled) bool { return len(c.Items) > 0 || c.Interest > 0 }

// NewEntryFrequency returns the entry-frequency scheduler of Miniflux: after a
// crawl
//
//	I = clamp(7 d / (items of the last 7 days · factor), min, max)
//
// with the items counted by their time of publication among all that were
// found. Without an item the interval is the longest. Sources that have not
// been crawled are due at once. In worlds whose crawls name no items, a crawl
// that brings back interest counts as one item.
func NewEntryFrequency(t env.Terms, s EntryFrequency) env.Learner[env.Online] {
	factor := cmp.Or(s.Factor, 1)
	p := newPractice(t, 0, cmp.Or(s.Min, 5./60), cmp.Or(s.Max, day), s.Relative)
	published := make([][]float64, len(t.Costs)) // hours, ascending, of each source
	p.next = func(c env.Crawled, epoch int) float64 {
		now := float64(epoch) * p.hours
		all := published[c.Source]
		first := 0
		for first < len(all) && all[first] <= now-week {
			first++
		}
		all = all[:copy(all, all[first:])]
		for _, it := range c.Items {
			if at := now - it.Age*p.hours; at > now-week {
				all = append(all, at)
			}
		}
		if len(c.Items) == 0 && found(c) {
			all = append(all, now)
		}
		published[c.Source] = all
		return week / (float64(len(all)) * factor) // without an item +Inf
	}
	return p
}

// NewNutch returns the adaptive fetch schedule of Apache Nutch without its
// shift towards the time of change:
//
//	found new: I ← I (1 − shrink)    found nothing: I ← I (1 + grow)
//
// clamped to [min, max]. Nutch starts at 30 days, a value for pages rather than
// for sources of news: the few sources whose interval shrinks first would then
// take the whole budget for a month. It is left to be given; the default is the
// interval at which round robin spends the budget.
func NewNutch(t env.Terms, s Adaptive) env.Learner[env.Online] {
	return adaptive(t, s, Adaptive{Shrink: .2, Grow: .4, Min: 1. / 60, Max: 365 * day, Start: t.Round() * hoursPerEpoch(t)}, 0)
}

// NewStormCrawler returns the adaptive scheduler of Apache StormCrawler:
//
//	found new: I ← (1 − shrink) I + shrink · min    found nothing: I ← (1 + grow) I
//
// clamped to [min, max].
func NewStormCrawler(t env.Terms, s Adaptive) env.Learner[env.Online] {
	return adaptive(t, s, Adaptive{Shrink: .5, Grow: .5, Min: 1, Max: 2 * week, Start: day}, 1)
}

// adaptive takes settings and their defaults. A find moves the interval towards
// a multiple of the shortest.
func adaptive(t env.Terms, s, d Adaptive, multiple float64) env.Learner[env.Online] {
	p := newPractice(t, cmp.Or(s.Start, d.Start), cmp.Or(s.Min, d.Min), cmp.Or(s.Max, d.Max), s.Relative)
	shrink, grow := cmp.Or(s.Shrink, d.Shrink), cmp.Or(s.Grow, d.Grow)
	p.next = func(c env.Crawled, _ int) float64 {
		i := p.interval[c.Source]
		if found(c) {
			return (1-shrink)*i + shrink*multiple*p.min
		}
		return (1 + grow) * i
	}
	return p
}

func clamp(v, lo, hi float64) float64 { return min(max(v, lo), hi) }
