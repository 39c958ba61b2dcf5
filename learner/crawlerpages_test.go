package learner

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/env/stream"
)

// site is 30 pages that change so often per hour, and when they did last.
type site struct {
	r       *stream.Rand
	rate    map[string]float64
	at      map[string]time.Time // next change
	crawled map[string]time.Time
	changes map[string]time.Time // last change
}

func newSite(seed uint64) *site {
	s := &site{
		r: stream.New(seed, stream.Test), rate: map[string]float64{}, at: map[string]time.Time{},
		crawled: map[string]time.Time{}, changes: map[string]time.Time{},
	}
	for i := range 30 {
		name := fmt.Sprint("p", i)
		s.rate[name] = .004 * math.Pow(1.22, float64(i)) // to 1.3
		s.at[name] = began.Add(s.gap(name))
	}
	return s
}

func (s *site) gap(name string) time.Duration {
	return time.Duration(s.r.ExpFloat64() / s.rate[name] * float64(time.Hour))
}

// crawl returns what a crawl finds.
func (s *site) crawl(name string, now time.Time) Crawl {
	for !s.at[name].After(now) {
		s.changes[name] = s.at[name]
		s.at[name] = s.at[name].Add(s.gap(name))
	}
	last, seen := s.crawled[name]
	s.crawled[name] = now
	return Crawl{Source: name, At: now, Changed: seen && s.changes[name].After(last)}
}

func newPageCrawler(t *testing.T, budget float64) *Crawler {
	t.Helper()
	return newTestCrawler(t, CrawlerOptions{Budget: budget, Objective: env.Objective{Law: env.LawFreshness}})
}

// crawlSite crawls the pages for so many days.
func crawlSite(t *testing.T, s *site, c *Crawler, days int, each func(now time.Time)) (crawls map[string]int) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.rate)) {
		if err := c.Add(name, Source{}); err != nil {
			t.Fatal(err)
		}
	}
	crawls = map[string]int{}
	for now := began.Add(time.Minute); now.Before(began.AddDate(0, 0, days)); now = now.Add(time.Hour) {
		for _, name := range c.Select(now, 30) {
			crawls[name]++
			if err := c.Update(s.crawl(name, now)); err != nil {
				t.Fatal(err)
			}
		}
		if each != nil {
			each(now)
		}
	}
	return crawls
}

// TestCrawlerOfPages: from one bit of each crawl the crawler learns how often pages change,
// and crawls neither those most that change most, which cannot be kept fresh, nor all alike.
func TestCrawlerOfPages(t *testing.T) {
	s, c := newSite(1), newPageCrawler(t, 2)
	crawls := crawlSite(t, s, c, 200, nil)
	var off, n float64
	for name, rate := range s.rate {
		b, err := c.Belief(name)
		if err != nil || b.Items != 0 || !(b.Fresh > 0 && b.Fresh <= 1) {
			t.Errorf("%s: %+v, error %v", name, b, err)
		}
		switch {
		case rate < .3:
			off += math.Pow(math.Log(b.Changes/rate), 2)
			n++
		case b.Changes < .3: // whoever changes at nearly every crawl shows no more
			t.Errorf("%s changes %.2f times an hour, and is thought to %.2f times", name, rate, b.Changes)
		}
	}
	if off > .2*.2*n {
		t.Errorf("rates of change are off by %.2g in the mean square of their logarithms", math.Sqrt(off/n))
	}
	// The best is to crawl most often those in the middle.
	if crawls["p0"]*3 > crawls["p18"] || crawls["p29"]*3 > crawls["p18"]*2 {
		t.Errorf("crawls of the slowest, a middling and the fastest page: %d, %d, %d",
			crawls["p0"], crawls["p18"], crawls["p29"])
	}
}

// TestImportance: of two pages alike the more important one is crawled more often.
func TestImportance(t *testing.T) {
	c := newPageCrawler(t, 1)
	s := newSite(1)
	s.rate = map[string]float64{}
	for i := range 10 {
		name := fmt.Sprint("p", i)
		s.rate[name] = .2
		if err := c.Add(name, Source{Importance: float64(1 + 3*(i%2))}); err != nil {
			t.Fatal(err)
		}
	}
	crawls := map[string]int{}
	for now := began.Add(time.Minute); now.Before(began.AddDate(0, 0, 60)); now = now.Add(time.Hour) {
		if now.Sub(began) > 700*time.Hour && now.Sub(began) <= 701*time.Hour {
			c = restarted(t, c)
		}
		for _, name := range c.Select(now, 30) {
			crawls[name]++
			if err := c.Update(s.crawl(name, now)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if crawls["p1"] < 2*crawls["p0"] {
		t.Errorf("crawls are %v; want those with odd numbers at least twice as often", crawls)
	}
}

// TestPagesRestarted: a crawler of pages that is saved and read again goes on as if it were not.
func TestPagesRestarted(t *testing.T) {
	var logs [2][]string
	for k := range logs {
		s, c := newSite(2), newPageCrawler(t, 2)
		r := stream.New(7, stream.Test)
		for _, name := range slices.Sorted(maps.Keys(s.rate)) {
			if err := c.Add(name, Source{Importance: 1 + s.rate[name]}); err != nil {
				t.Fatal(err)
			}
		}
		for now := began; now.Before(began.AddDate(0, 0, 40)); now = now.Add(20 * time.Minute) {
			if k == 1 && now.Minute() < 20 {
				c = restarted(t, c)
			}
			if r.Intn(3) == 0 {
				if err := c.Ping(fmt.Sprint("p", r.Intn(30)), now); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range c.Select(now, 1) {
				if err := c.Update(s.crawl(name, now)); err != nil {
					t.Fatal(err)
				}
				b, _ := c.Belief(name)
				logs[k] = append(logs[k], fmt.Sprint(now, name, b.Changes))
			}
		}
	}
	if !slices.Equal(logs[0], logs[1]) || len(logs[0]) < 500 {
		t.Errorf("%d crawls with restarts, %d without, or others", len(logs[1]), len(logs[0]))
	}
}

// TestRecallPages: what was learned of pages is known after a kill, and where it is of another
// version, the last crawls that the program has kept stand in.
func TestRecallPages(t *testing.T) {
	for _, anew := range []bool{false, true} {
		t.Run(fmt.Sprint("anew ", anew), func(t *testing.T) {
			s, c := newSite(3), newPageCrawler(t, 2)
			checks := map[string][]Check{}
			crawlSite(t, s, c, 100, nil)
			before := map[string]Belief{}
			now := began.AddDate(0, 0, 100)
			for range 20 {
				for _, name := range slices.Sorted(maps.Keys(s.rate)) {
					x := s.crawl(name, now)
					if err := c.Update(x); err != nil {
						t.Fatal(err)
					}
					checks[name] = append(checks[name], Check{now, x.Changed})
				}
				now = now.Add(5 * time.Hour)
			}
			c.Select(now, 0)
			for name := range s.rate {
				before[name], _ = c.Belief(name)
			}
			var kept iter.Seq[Recalled] = func(yield func(Recalled) bool) {
				for name := range s.rate {
					state, err := c.SourceState(name)
					if err != nil {
						t.Fatal(err)
					}
					if anew {
						state = []byte(`{"of":"another"}`)
					}
					if !yield(Recalled{Name: name, State: state, Checks: checks[name]}) {
						return
					}
				}
			}
			var pooled strings.Builder
			if err := c.SavePooled(&pooled); err != nil {
				t.Fatal(err)
			}
			again := newPageCrawler(t, 2)
			if !anew {
				again = read(t, []byte(pooled.String()))
			}
			begun, err := again.Recall(now, kept)
			if err != nil || (begun == len(s.rate)) != anew {
				t.Fatalf("%d of %d begin anew, error %v", begun, len(s.rate), err)
			}
			again.Select(now, 0)
			var off, n float64
			for name, rate := range s.rate {
				b, _ := again.Belief(name)
				if was := before[name]; !anew && (!near(was.Changes, b.Changes, 1e-9) || !was.Last.Equal(b.Last)) {
					t.Errorf("%s: before the kill %+v, after it %+v", name, was, b)
				}
				if !b.Last.Equal(before[name].Last) {
					t.Errorf("%s was crawled at %v; the crawler knows of %v", name, before[name].Last, b.Last)
				}
				if rate > .02 && rate < .2 { // of those 20 crawls tell, once in five hours
					off += math.Pow(math.Log(b.Changes/rate), 2)
					n++
				}
			}
			if off > .8*.8*n {
				t.Errorf("rates of change are off by %.2g in the mean square of their logarithms", math.Sqrt(off/n))
			}
		})
	}
}

// TestRecallPings: pings after a crawl of the same epoch are known after a kill, and of a page that was removed.
func TestRecallPings(t *testing.T) {
	c := newPageCrawler(t, 2)
	if err := c.Add("a", Source{}); err != nil {
		t.Fatal(err)
	}
	now := began
	for hour := range 200 { // half of the pings are right
		if err := c.Update(Crawl{Source: "a", At: now, Changed: hour%2 == 0}); err != nil {
			t.Fatal(err)
		}
		if err := c.Ping("a", now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
	}
	now = now.Add(-time.Hour)
	state, err := c.SourceState("a")
	if err != nil {
		t.Fatal(err)
	}
	var pooled strings.Builder
	if err := c.SavePooled(&pooled); err != nil {
		t.Fatal(err)
	}
	fresh := func(c *Crawler) float64 {
		c.Select(now.Add(2*time.Hour), 0)
		b, err := c.Belief("a")
		if err != nil {
			t.Fatal(err)
		}
		return b.Fresh
	}
	killed := read(t, []byte(pooled.String()))
	_, err = killed.Recall(now, func(yield func(Recalled) bool) { yield(Recalled{Name: "a", State: state}) })
	if err != nil {
		t.Fatal(err)
	}
	again := restarted(t, c)
	if err := again.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if anew, err := again.AddAgain("a", Source{}, state); anew || err != nil {
		t.Fatal(anew, err)
	}
	want := fresh(c)
	if got := fresh(killed); !near(got, want, 1e-9) {
		t.Errorf("after a kill the copy is fresh with the probability %v; without it with %v", got, want)
	}
	if got := fresh(again); !near(got, want, .05) {
		t.Errorf("of a page that was removed the copy is fresh with the probability %v; of one that was not with %v",
			got, want)
	}
}

// TestPagesRefused: what belongs to freshness is refused elsewhere, with what is allowed.
func TestPagesRefused(t *testing.T) {
	delay := newTestCrawler(t, CrawlerOptions{Budget: 1, Objective: env.Delay})
	pages := newPageCrawler(t, 1)
	for _, c := range []*Crawler{delay, pages} {
		if err := c.Add("a", Source{}); err != nil {
			t.Fatal(err)
		}
	}
	_, learnsHarvests := NewCrawler(began, CrawlerOptions{
		Learner: "lspe", Epoch: time.Hour, Budget: 1, Objective: env.Objective{Law: env.LawFreshness},
	})
	for _, tt := range []struct {
		name, want string
		err        error
	}{
		{"a change that failed", "allowed is that with the outcome Found",
			pages.Update(Crawl{Source: "a", At: began, Outcome: Failed, Changed: true})},
		{"a change under delay", "under the objective freshness",
			delay.Update(Crawl{Source: "a", At: began, Changed: true})},
		{"a ping of nobody", `there is no source "b"`, pages.Ping("b", began)},
		{"a ping under delay", "the objective is delay; allowed is freshness", delay.Ping("a", began)},
		{"importance below 0", "importance is -1; allowed is 0 to 1e+100", pages.Add("b", Source{Importance: -1})},
		{"importance under delay", "it belongs to the objective freshness", delay.Add("b", Source{Importance: 2})},
		{"lspe", "allowed for the learner lspe are interest and deadline", learnsHarvests},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
				t.Errorf("error %v; want one with %q", tt.err, tt.want)
			}
		})
	}
}

// TestItemsOfPages: under freshness new items say that a page has changed.
func TestItemsOfPages(t *testing.T) {
	with, without := newPageCrawler(t, 1), newPageCrawler(t, 1)
	for k, c := range []*Crawler{with, without} {
		if err := c.Add("a", Source{}); err != nil {
			t.Fatal(err)
		}
		for now := began; now.Before(began.AddDate(0, 0, 5)); now = now.Add(4 * time.Hour) {
			crawl := Crawl{Source: "a", At: now, Changed: k == 0}
			if k == 1 {
				crawl.Items = []Item{{Published: now}}
			}
			if err := c.Update(crawl); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, _ := with.Belief("a")
	b, _ := without.Belief("a")
	if a != b || a.Changes < .2 {
		t.Errorf("of pages that change every time it thinks %+v and %+v", a, b)
	}
}

// TestLongRounds: where a budget takes long for all pages, none waits for much longer than that for
// its second crawl, from which on there is something to learn of it.
func TestLongRounds(t *testing.T) {
	const pages, perEpoch, round = 300, 4, 75
	c, err := NewCrawler(began, CrawlerOptions{
		Epoch: time.Minute, Budget: perEpoch, Objective: env.Objective{Law: env.LawFreshness},
	})
	if err != nil {
		t.Fatal(err)
	}
	crawls, last, rng := map[string]int{}, [pages]int{}, stream.New(1, stream.World)
	for i := range pages {
		name := fmt.Sprint(i)
		if err := c.Add(name, Source{}); err != nil {
			t.Fatal(err)
		}
		if err := c.Update(Crawl{Source: name, At: began, Outcome: Unchanged}); err != nil {
			t.Fatal(err)
		}
		crawls[name]++
	}
	for epoch := 1; epoch <= 2*round; epoch++ {
		now := began.Add(time.Duration(epoch) * time.Minute)
		for _, name := range c.Select(now, pages) {
			crawls[name]++
			var i int
			fmt.Sscan(name, &i)
			crawl := Crawl{Source: name, At: now, Outcome: Unchanged}
			period := 10 * math.Pow(300, float64(i)/pages) // from 10 epochs to 3000
			if rng.Float64() > math.Exp(-float64(epoch-last[i])/period) {
				crawl.Outcome, crawl.Changed = Found, true
			}
			last[i] = epoch
			if err := c.Update(crawl); err != nil {
				t.Fatal(err)
			}
		}
	}
	waiting := 0
	for _, n := range crawls {
		if n < 2 {
			waiting++
		}
	}
	if waiting > pages/20 {
		t.Errorf("after twice the time in which all can be crawled %d of %d pages still wait for their second crawl",
			waiting, pages)
	}
}
