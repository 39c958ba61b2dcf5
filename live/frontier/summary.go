package frontier

import (
	"cmp"
	"math"
	"slices"
	"time"

	"ephemera/env"
	"ephemera/learner"
)

// Summary is what a learned crawl shows.
type Summary struct {
	Crawl     string
	Shadow    bool
	Objective env.Objective
	PerHour   float64
	Price     float64
	Sources   int
	Asked     int // fetches that the learner asked for
	Fetched   int // fetches whose finds a client put
	Empty     int // of these, that found nothing new
	Pings     int // that were news
	Beliefs   []Belief

	// Of items.
	Items       int           // that the client found
	ClientDelay time.Duration // mean time from publication until the client found an item
	// In the shadow.
	Found int           // of these, that the learner would have found by now
	Delay time.Duration // and their mean time until the learner would have

	// Of pages.
	Fresh   float64 // share of the copies that are as the page is, as far as the learner knows
	Changes int     // that fetches saw
	Missed  float64 // changes between two fetches that were seen as one, as far as the learner knows

	// What a fixed interval would have brought with as many fetches since the start.
	Interval    time.Duration // 0 where that is not known yet
	FixedFresh  float64
	FixedMissed float64 // share of the changes
}

// MissedShare returns the share of the changes that were missed.
func (s *Summary) MissedShare() float64 {
	return s.Missed / max(1, s.Missed+float64(s.Changes))
}

// FixedDelay returns the mean time until an item is found under a fixed interval: half of it.
func (s *Summary) FixedDelay() time.Duration { return s.Interval / 2 }

// Pages reports whether a fetch tells that the page has changed, or has not.
func (s *Summary) Pages() bool { return s.Objective.Law == env.LawFreshness }

// Belief is what the learner thinks of a URL.
type Belief struct {
	URL string
	learner.Belief
}

// unseen returns how many changes are expected before the last one, where z are expected in all
// and one at least was: E[N | N ≥ 1] − 1 = z/(1 − e⁻ᶻ) − 1.
func unseen(z float64) float64 {
	if z < 1e-9 {
		return z / 2
	}
	return z/-math.Expm1(-z) - 1
}

// looked is of how many URLs a summary looks at what the learner thinks.
const looked = 10_000

// Summaries returns what the crawls show, with so many of the URLs that publish most. It looks at one part of the
// URLs after the other, so that others get at the learners in between.
func (l *Learned) Summaries(most int) (all []Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for crawl, c := range l.crawls {
		all = append(all, l.summary(crawl, c, now, most))
	}
	slices.SortFunc(all, func(a, b Summary) int { return cmp.Compare(a.Crawl, b.Crawl) })
	return all
}

// summary is called with the lock, which it gives up now and then.
func (l *Learned) summary(crawl string, c *learnedCrawl, now time.Time, most int) Summary {
	s := c.sum
	s.Crawl, s.Shadow, s.PerHour, s.Sources = crawl, c.opt.Shadow, c.opt.PerHour, c.crawler.Len()
	s.Objective = c.opt.Objective
	s.ClientDelay, s.Delay = mean(c.client, s.Items), mean(c.learner, s.Found)
	if took := now.Sub(c.began); s.Fetched > s.Sources && took > 0 {
		s.Interval = time.Duration(float64(took) * float64(s.Sources) / float64(s.Fetched)).Round(time.Second)
	}
	var n, expected, seen float64
	for name := range l.names(c) {
		b, err := c.crawler.Belief(name)
		if err != nil {
			continue
		}
		s.Price = b.Price // the same of all
		if most > 0 {
			if s.Beliefs = append(s.Beliefs, Belief{idOf(crawl, name).URL, b}); len(s.Beliefs) >= 2*most {
				s.Beliefs = first(s.Beliefs, most)
			}
		}
		if n++; n <= looked {
			z := b.Changes * s.Interval.Hours() // in a fixed interval
			s.Fresh += b.Fresh
			s.FixedFresh += freshAt(z)
			expected, seen = expected+z, seen-math.Expm1(-z)
		} else if most == 0 {
			break
		}
	}
	if n = min(n, looked); n > 0 {
		s.Fresh, s.FixedFresh = s.Fresh/n, s.FixedFresh/n
	}
	if expected > 0 {
		s.FixedMissed = 1 - seen/expected
	}
	s.Beliefs = first(s.Beliefs, most)
	return s
}

// first returns so many of the URLs that publish most, in that order.
func first(all []Belief, most int) []Belief {
	slices.SortFunc(all, func(a, b Belief) int {
		return cmp.Or(cmp.Compare(b.Items+b.Changes, a.Items+a.Changes), cmp.Compare(a.URL, b.URL))
	})
	return all[:min(most, len(all))]
}

// mean returns the mean of n times of so many hours together, 0 of none.
func mean(hours float64, n int) time.Duration {
	return time.Duration(hours / float64(max(1, n)) * float64(time.Hour)).Round(time.Second)
}

// freshAt returns the share of time for which a copy is fresh of a page that is fetched each time
// when z changes are expected: (1 − e⁻ᶻ)/z.
func freshAt(z float64) float64 {
	if z < 1e-9 {
		return 1
	}
	return -math.Expm1(-z) / z
}
