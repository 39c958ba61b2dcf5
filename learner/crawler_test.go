package learner

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/lspe"
)

var began = time.Unix(1_700_000_000, 0)

func newTestCrawler(t testing.TB, o CrawlerOptions) *Crawler {
	t.Helper()
	o.Epoch = cmp.Or(o.Epoch, time.Hour)
	if o.Objective.Law == "" {
		o.Objective = env.Objective{Law: env.LawExponential, Time: 4 * time.Hour}
	}
	c, err := NewCrawler(began, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// restarted returns what was saved of a crawler.
func restarted(t testing.TB, c *Crawler) *Crawler {
	t.Helper()
	var state bytes.Buffer
	if err := c.Save(&state); err != nil {
		t.Fatal(err)
	}
	return read(t, state.Bytes())
}

func read(t testing.TB, state []byte) *Crawler {
	t.Helper()
	s, err := Decode(state)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Crawler()
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// program is a program that crawls, for 30 days, with sources of all kinds. It checks
// each crawl against the rules, and says what was crawled.
func program(t *testing.T, o CrawlerOptions, restarts bool) (log []string) {
	r := stream.New(5, stream.Test)
	o.Budget, o.PerGroup = 4, 2
	c := newTestCrawler(t, o)
	rules := map[string]Source{}
	add := func(k int) {
		name := fmt.Sprint("s", k)
		s := Source{Group: []string{"", "a", "b"}[k%3]}
		if k%4 == 0 {
			s.Shortest = 5 * time.Hour
		}
		if k%4 == 1 {
			s.Longest = 20 * time.Hour
		}
		if err := c.Add(name, s); err != nil {
			t.Fatal(err)
		}
		rules[name] = s
	}
	for k := range 20 {
		add(k)
	}
	next := 20
	tried, free, since := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	dead := 0
	var inEpoch int
	groups := map[string]int{}
	epoch := -1
	for now := began; now.Before(began.AddDate(0, 0, 30)); now = now.Add(time.Duration(1+r.Intn(40)) * time.Minute) {
		if e := int(now.Sub(began) / time.Hour); e != epoch {
			epoch, inEpoch = e, 0
			clear(groups)
		}
		if restarts && r.Intn(10) == 0 {
			c = restarted(t, c)
		} else if !restarts {
			r.Intn(10)
		}
		if r.Intn(20) == 0 {
			add(next)
			next++
			gone := fmt.Sprint("s", next-21)
			if err := c.Remove(gone); err != nil {
				t.Fatal(err)
			}
			delete(rules, gone)
		}
		room := r.Intn(4)
		names := c.Select(now, room)
		if len(names) > room {
			t.Fatalf("%d sources for %d", len(names), room)
		}
		for _, name := range names {
			s, ok := rules[name]
			inEpoch++
			groups[s.Group]++
			switch last, tried1 := tried[name]; {
			case !ok:
				t.Fatalf("%v: %s was removed", now, name)
			case tried1 && now.Sub(last) < s.Shortest:
				t.Fatalf("%v: %s is crawled again after %v; allowed is %v", now, name, now.Sub(last), s.Shortest)
			case now.Before(free[name]):
				t.Fatalf("%v: %s is crawled before %v", now, name, free[name])
			case inEpoch > 4 || s.Group != "" && groups[s.Group] > 2:
				t.Fatalf("%v: %d crawls in an epoch, %v by group", now, inEpoch, groups)
			}
			tried[name] = now
			crawl := Crawl{Source: name, At: now}
			switch k := r.Intn(10); {
			case name[len(name)-1] == '7': // dead
				crawl.Outcome = Failed
				dead++
				if k < 5 {
					continue // and nobody says so
				}
			case k == 0:
				crawl.Outcome, crawl.NotBefore = Failed, now.Add(7*time.Hour)
				free[name] = crawl.NotBefore
			case k == 1:
				crawl.Outcome = Unchanged
			default:
				if s.Longest > 0 && !since[name].IsZero() && now.Sub(since[name]) > s.Longest+15*time.Hour {
					t.Fatalf("%v: %s has waited for %v; its longest interval is %v",
						now, name, now.Sub(since[name]), s.Longest)
				}
				for k := range r.Intn(4) {
					published := now.Add(-time.Duration(k) * time.Hour)
					crawl.Items = append(crawl.Items, Item{Published: published, Worth: new(float64(k))})
				}
				if k == 9 && len(crawl.Items) > 0 {
					crawl.Items[0].Worth = new(math.NaN())
				}
			}
			if crawl.Outcome != Failed {
				since[name] = now
			}
			if err := c.Update(crawl); err != nil {
				t.Fatal(err)
			}
			log = append(log, fmt.Sprint(now.Sub(began), name))
		}
	}
	if dead > 150 || len(log) < 500 {
		t.Errorf("dead sources took %d crawls, others %d", dead, len(log))
	}
	return log
}

// TestCrawlerRules: the rules of the sources, groups and the budget hold at every
// call, and a restart changes nothing.
func TestCrawlerRules(t *testing.T) {
	log := program(t, CrawlerOptions{}, false)
	if again := program(t, CrawlerOptions{}, true); !slices.Equal(log, again) {
		t.Errorf("%d crawls, and %d otherwise where it is restarted", len(log), len(again))
	}
}

// TestClock: whatever the clock is set to, in one process or while nothing ran, each
// source is crawled again within its longest interval, by the budget, and not before the
// time that its publisher asked for. What was learned by then stays.
func TestClock(t *testing.T) {
	const year = 365 * 24 * time.Hour
	steps := [][]time.Duration{{-50 * time.Hour}} // to where it has been
	for _, d := range []time.Duration{time.Second, time.Hour, year, 30 * year} {
		steps = append(steps,
			[]time.Duration{d}, []time.Duration{-d},
			[]time.Duration{d, -d}, []time.Duration{-d, d}, []time.Duration{-d, -d})
	}
	for _, name := range []string{"forecast", "lspe"} {
		for _, step := range steps {
			for _, restarts := range []bool{false, true} {
				o := CrawlerOptions{Learner: name, Budget: 4}
				c := newTestCrawler(t, o)
				const n = 12
				for k := range n {
					if err := c.Add(fmt.Sprint("s", k), Source{Longest: 10 * time.Hour}); err != nil {
						t.Fatal(err)
					}
				}
				now, true := began, 0 // hours that have passed
				last := map[string]int{}
				asked := 1000 // hour until which the publisher of s0 asks to wait
				pass := func(hours int) {
					for end := true + hours; true < end; true++ {
						names := c.Select(now, math.MaxInt)
						if len(names) > 4 {
							t.Fatalf("%v: %d crawls in an hour", step, len(names))
						}
						for _, name := range names {
							published := now.Add(-30 * time.Minute)
							crawl := Crawl{Source: name, At: now, Items: []Item{{Published: published}}}
							if name == "s0" && true < asked {
								if asked != 1000 {
									t.Errorf("%v %v: s0 is crawled %d hours before it may be",
										step, restarts, asked-true)
								}
								if true >= 100 {
									asked = true + 8
									crawl.NotBefore = now.Add(8 * time.Hour)
								}
							}
							if err := c.Update(crawl); err != nil {
								t.Fatal(err)
							}
							last[name] = true
						}
						now = now.Add(time.Hour)
					}
				}
				pass(100)
				for asked == 1000 {
					pass(1)
				}
				before, _ := c.Belief("s5")
				for _, d := range step {
					now = now.Add(d)
					if d > 0 {
						asked = 0 // as far as anybody can know, the time has passed
					}
					if restarts {
						c = restarted(t, c)
					}
					pass(1)
				}
				begin := true
				for range 40 {
					pass(1)
					for k := range n {
						if since := true - max(begin, last[fmt.Sprint("s", k)]); since > 12 {
							t.Fatalf("%s %v %v: s%d was not crawled for %d hours, nor others, %v",
								name, step, restarts, k, since, last)
						}
					}
				}
				if after, _ := c.Belief("s5"); !(math.Abs(after.Items-before.Items) <= .3*before.Items) {
					t.Errorf("%s %v %v: %v items an hour are thought to be %v",
						name, step, restarts, before.Items, after.Items)
				}
				if due, _ := c.Belief("s1"); due.Due.Sub(now) > 10*time.Hour || due.Last.After(now) {
					t.Errorf("%s %v %v: at %v the last crawl was at %v, the next one is due at %v",
						name, step, restarts, now, due.Last, due.Due)
				}
			}
		}
	}
}

// TestClockByCenturies: a crawler whose first time was none, which is that of the year 1, goes on by the clock.
func TestClockByCenturies(t *testing.T) {
	c, err := NewCrawler(time.Time{}, CrawlerOptions{Epoch: time.Hour, Budget: 1})
	if err == nil {
		err = c.Add("a", Source{})
	}
	if err != nil {
		t.Fatal(err)
	}
	crawls := 0
	for hour := range 10 {
		now := began.Add(time.Duration(hour) * time.Hour)
		for _, name := range c.Select(now, 1) {
			crawls++
			if err := c.Update(Crawl{Source: name, At: now}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if crawls != 10 {
		t.Errorf("%d crawls in 10 hours; want 10", crawls)
	}
}

// TestClockWithinEpoch: however often the clock is set back within an epoch, its budget is spent once.
func TestClockWithinEpoch(t *testing.T) {
	c := newTestCrawler(t, CrawlerOptions{Budget: 4})
	for k := range 40 {
		if err := c.Add(fmt.Sprint("s", k), Source{}); err != nil {
			t.Fatal(err)
		}
	}
	crawls, now := 0, began.Add(10*time.Hour+50*time.Minute)
	for k := range 5 {
		for _, name := range c.Select(now, 3) {
			crawls++
			if err := c.Update(Crawl{Source: name, At: now}); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(-5 * time.Minute)
		if k == 2 {
			c = restarted(t, c)
		}
	}
	if crawls != 4 {
		t.Errorf("%d crawls in an epoch; allowed are 4", crawls)
	}
}

// TestUnknownWorth: an item whose worth is not known yet is an item.
func TestUnknownWorth(t *testing.T) {
	items := map[bool]float64{} // per hour, by whether their worth is known
	for _, known := range []bool{true, false} {
		worth := 1.
		if !known {
			worth = math.NaN()
		}
		c := newTestCrawler(t, CrawlerOptions{Budget: 1})
		err := c.Add("a", Source{})
		for n := 1; n < 100 && err == nil; n++ {
			at := began.Add(time.Duration(n) * time.Hour)
			err = c.Update(Crawl{Source: "a", At: at, Items: []Item{{at.Add(-time.Minute), &worth}}})
		}
		b, err2 := c.Belief("a")
		if items[known] = b.Items; err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
	}
	if items[true] < .5 || items[false] < .9*items[true] {
		t.Errorf("items per hour are %v", items)
	}
}

// TestNoWorth: an item worth 0 is worth nothing, and one of which no worth is said is worth 1, also for a crawler
// that begins from items.
func TestNoWorth(t *testing.T) {
	for _, tt := range []struct {
		name  string
		worth *float64
		want  bool
	}{{"0", new(0.), false}, {"unsaid", nil, true}} {
		c, again := newTestCrawler(t, CrawlerOptions{Budget: 1}), newTestCrawler(t, CrawlerOptions{Budget: 1})
		if err := c.Add("a", Source{}); err != nil {
			t.Fatal(err)
		}
		var items []Item
		for n := 1; n < 100; n++ {
			at := began.Add(time.Duration(n) * time.Hour)
			items = append(items, Item{at.Add(-time.Minute), tt.worth})
			if err := c.Update(Crawl{Source: "a", At: at, Items: items[n-1:]}); err != nil {
				t.Fatal(err)
			}
		}
		past := Recalled{Name: "a", Last: began.Add(99 * time.Hour), Since: began, Items: items}
		if _, err := again.Recall(past.Last.Add(24*time.Hour), slices.Values([]Recalled{past})); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]*Crawler{"observed": c, "recalled": again} {
			if b, err := c.Belief("a"); err != nil || b.Interest > .5 != tt.want {
				t.Errorf("worth %s, %s: %v an hour is published (%v)", tt.name, name, b.Interest, err)
			}
		}
	}
}

// BenchmarkAdd adds 20 000 sources, one by one.
func BenchmarkAdd(b *testing.B) {
	for b.Loop() {
		many(b, 20_000)
	}
}

// BenchmarkSave saves and restores a crawler of a million sources, of which each has
// been crawled.
func BenchmarkSave(b *testing.B) {
	c := many(b, 1_000_000)
	if err := c.SetBudget(1e6); err != nil {
		b.Fatal(err)
	}
	for _, name := range c.Select(began, 1_000_000) {
		crawl := Crawl{Source: name, At: began, Items: []Item{{Published: began.Add(-time.Hour)}}}
		if err := c.Update(crawl); err != nil {
			b.Fatal(err)
		}
	}
	c.Select(began.Add(time.Hour), 0)
	state := bytes.NewBuffer(make([]byte, 0, 1<<30))
	if err := c.Save(state); err != nil {
		b.Fatal(err)
	}
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			state.Reset()
			if err := c.Save(state); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(state.Len())/1e6, "bytes/source")
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			read(b, state.Bytes())
		}
	})
}

func many(b *testing.B, n int) *Crawler {
	c := newTestCrawler(b, CrawlerOptions{Budget: 10})
	for k := range n {
		if err := c.Add(fmt.Sprint("source ", k), Source{Longest: 24 * time.Hour}); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// TestPagesNeedEstimates: pages are for learners that estimate how often they change.
func TestPagesNeedEstimates(t *testing.T) {
	kind := Kinds[0] // lspe
	kind.Name, kind.FromItems = "harvests", true
	Kinds = append(Kinds, kind)
	t.Cleanup(func() { Kinds = Kinds[:len(Kinds)-1] })
	_, err := NewCrawler(began, CrawlerOptions{
		Learner: "harvests", Epoch: time.Minute, Budget: 1, Objective: env.Objective{Law: env.LawFreshness},
	})
	want := `objective is freshness, and the learner "harvests" does not estimate how often pages change`
	if err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// TestLateOutcomes: a crawl that is reported in a later epoch, or that the program never makes,
// is no failure to a learner that counts them.
func TestLateOutcomes(t *testing.T) {
	c := newTestCrawler(t, CrawlerOptions{Learner: "lspe", Budget: 2})
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := c.Add(name, Source{}); err != nil {
			t.Fatal(err)
		}
	}
	var late []string
	for h := range 200 {
		now := began.Add(time.Duration(h)*time.Hour + time.Minute)
		chosen := c.Select(now, 1) // of two
		for _, name := range late {
			items := []Item{{Published: now.Add(-30 * time.Minute)}}
			if err := c.Update(Crawl{Source: name, At: now, Outcome: Found, Items: items}); err != nil {
				t.Fatal(err)
			}
		}
		late = chosen
	}
	for i, s := range c.learner.State().(lspe.State).Sources {
		if s.Cycles == 0 || s.Failed > 0 || s.FailedNow > 0 {
			t.Errorf("source %d: %d crawls, of which %v and %d failed; want none", i, s.Cycles, s.Failed, s.FailedNow)
		}
	}
}
