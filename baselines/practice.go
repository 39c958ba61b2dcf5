package baselines

import (
	"cmp"
	"fmt"
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

// Intervals bounds the intervals, in hours.
type Intervals struct {
	Min float64 `toml:"min"`
	Max float64 `toml:"max"`
	Due bool    // crawl only sources that are due, whatever of the budget is left
}

func (s *Intervals) check() error {
	if !(s.Min > 0 && s.Min <= s.Max) || math.IsInf(s.Max, 1) {
		return fmt.Errorf("min and max are %v and %v hours; allowed is 0 < min ≤ max", s.Min, s.Max)
	}
	return nil
}

// EntryFrequency are the settings of [NewEntryFrequency].
type EntryFrequency struct {
	Factor float64 `toml:"factor"`
	Intervals
}

// Adaptive are the settings of [NewNutch] and [NewStormCrawler].
type Adaptive struct {
	Shrink float64 `toml:"shrink"` // rate at which a find shortens the interval
	Grow   float64 `toml:"grow"`   // rate at which a crawl without one lengthens it
	Intervals
}

// DefaultEntryFrequency returns the settings of Miniflux, for which nil stands.
func DefaultEntryFrequency() EntryFrequency {
	return EntryFrequency{1, Intervals{Min: 5. / 60, Max: day}}
}

// DefaultNutch returns the settings of [NewNutch] that nil stands for.
func DefaultNutch() Adaptive { return Adaptive{.2, .4, Intervals{Min: 1. / 60, Max: 365 * day}} }

// DefaultStormCrawler returns those of [NewStormCrawler].
func DefaultStormCrawler() Adaptive { return Adaptive{.5, .5, Intervals{Min: 1, Max: 2 * week}} }

// Validate reports the first setting that is out of its range.
func (s *EntryFrequency) Validate() error {
	return cmp.Or(within(0, math.Inf(1), []string{"factor"}, s.Factor), s.check())
}

// Validate reports the first setting that is out of its range.
func (s *Adaptive) Validate() error {
	return cmp.Or(
		within(0, 1, []string{"shrink"}, s.Shrink),
		within(0, math.Inf(1), []string{"grow"}, s.Grow),
		s.check())
}

const (
	day  = 24.0
	week = 7 * day
)

// practice crawls the most overdue source first.
type practice struct {
	Intervals
	sel      *Selector
	key      []float64
	interval []float64 // I, hours
	hours    float64   // in an epoch
	relative bool
	// next returns the interval after a crawl at that epoch, before it is cut.
	next func(c env.Crawled, epoch int) float64
}

func newPractice(t env.Terms, start float64, s Intervals, relative bool) *practice {
	n := len(t.Costs)
	p := &practice{
		Intervals: s, sel: NewSelector(t.Costs, t.Budget), key: make([]float64, n),
		interval: make([]float64, n), hours: hoursPerEpoch(t), relative: relative,
	}
	for i := range p.interval {
		p.interval[i] = clamp(start, s.Min, s.Max)
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
		age := float64(o.Age(i)) * p.hours
		switch {
		case p.Due && age < interval*(1-1e-9):
			p.key[i] = negInf
		case p.relative:
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
		p.interval[c.Source] = clamp(p.next(c, next.Epoch-1), p.Min, p.Max)
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
func NewEntryFrequency(t env.Terms, set *EntryFrequency, relative bool) (env.Learner[env.Online], error) {
	s, err := given(set, DefaultEntryFrequency())
	if err != nil {
		return nil, err
	}
	p := newPractice(t, 0, s.Intervals, relative)
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
		return week / (float64(len(all)) * s.Factor) // without an item +Inf
	}
	return p, nil
}

// NewNutch returns the adaptive fetch schedule of Apache Nutch without its
// shift towards the time of change:
//
//	found new: I ← I (1 − shrink)    found nothing: I ← I (1 + grow)
//
// clamped to [min, max]. Nutch starts at 30 days, a value for pages rather than
// for sources of news: the few sources whose interval shrinks first would then
// take the whole budget for a month. Here it starts at the interval at which
// round robin spends the budget.
func NewNutch(t env.Terms, set *Adaptive, relative bool) (env.Learner[env.Online], error) {
	return adaptive(t, set, relative, DefaultNutch(), t.Round()*hoursPerEpoch(t), 0)
}

// NewStormCrawler returns the adaptive scheduler of Apache StormCrawler:
//
//	found new: I ← (1 − shrink) I + shrink · min    found nothing: I ← (1 + grow) I
//
// clamped to [min, max], from a day.
func NewStormCrawler(t env.Terms, set *Adaptive, relative bool) (env.Learner[env.Online], error) {
	return adaptive(t, set, relative, DefaultStormCrawler(), day, 1)
}

// adaptive moves the interval, at a find, towards a multiple of the shortest.
func adaptive(t env.Terms, set *Adaptive, relative bool, usual Adaptive, start, multiple float64) (env.Learner[env.Online], error) {
	s, err := given(set, usual)
	if err != nil {
		return nil, err
	}
	p := newPractice(t, start, s.Intervals, relative)
	p.next = func(c env.Crawled, _ int) float64 {
		i := p.interval[c.Source]
		if found(c) {
			return (1-s.Shrink)*i + s.Shrink*multiple*s.Min
		}
		return (1 + s.Grow) * i
	}
	return p, nil
}

func clamp(v, lo, hi float64) float64 { return min(max(v, lo), hi) }
