package learner

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/env/stream"
)

// TestFarDates: a source that may not be crawled before a date is not, however far
// ahead the date lies.
func TestFarDates(t *testing.T) {
	for _, epoch := range []time.Duration{time.Second, time.Minute, time.Hour} {
		for _, years := range []int{1, 100, 291, 293, 3000, 100_000} {
			t.Run(fmt.Sprint(epoch, " epochs, ", years, " years"), func(t *testing.T) {
				c, err := NewCrawler(began, CrawlerOptions{Budget: 1, Epoch: epoch})
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"far", "near"} {
					if err := c.Add(name, Source{}); err != nil {
						t.Fatal(err)
					}
				}
				date := began.AddDate(years, 0, 0)
				if err := c.Update(Crawl{Source: "far", At: began, NotBefore: date}); err != nil {
					t.Fatal(err)
				}
				near := 0
				now := began
				for k := 0; k < 500; k++ {
					if k%100 == 99 {
						c = restarted(t, c)
					}
					now = now.Add(time.Duration(k) * epoch)
					for _, name := range c.Select(now, 2) {
						if name == "far" && now.Before(date) {
							t.Fatalf("crawled at %v; allowed is from %v on", now, date)
						}
						near++
						if err := c.Update(Crawl{Source: name, At: now}); err != nil {
							t.Fatal(err)
						}
					}
				}
				b, err := c.Belief("far")
				if err != nil || !b.Due.IsZero() && b.Due.Before(date.Add(-time.Hour)) && years < 68 {
					t.Errorf("due at %v: %v", b.Due, err)
				}
				if free := b.Free.AddDate(0, 0, 1); free.Before(date) && years < 68 || free.Before(now) {
					t.Errorf("it may be crawled at %v, it says; allowed is from %v on", b.Free, date)
				}
				if near < 100 {
					t.Errorf("the other source is crawled %d times", near)
				}
			})
		}
	}
}

// TestNoDate: a crawler that has found an item without a date, or one of a time long ago, can be loaded.
func TestNoDate(t *testing.T) {
	for _, epoch := range []time.Duration{time.Minute, 7 * time.Minute, time.Hour, 24 * time.Hour} {
		for _, date := range []time.Time{{}, time.Unix(0, 0), began.AddDate(-292, 0, 0), began.AddDate(-50_000, 0, 0)} {
			c := newTestCrawler(t, CrawlerOptions{Budget: 1, Epoch: epoch, Objective: env.Delay})
			err := c.Add("a", Source{})
			if err == nil {
				err = c.Update(Crawl{Source: "a", At: began, Items: []Item{{Published: date}}})
			}
			if err != nil {
				t.Fatal(err)
			}
			restarted(t, c)
		}
	}
}

// TestWorth: an item whose worth cannot be added up with others is refused, and
// nothing is learned of that crawl.
func TestWorth(t *testing.T) {
	for _, worth := range []float64{-1, 1.01e100, 1e308, math.Inf(1)} {
		c := newTestCrawler(t, CrawlerOptions{Budget: 1})
		if err := c.Add("a", Source{}); err != nil {
			t.Fatal(err)
		}
		items := []Item{{Published: began}, {Published: began, Worth: &worth}}
		err := c.Update(Crawl{Source: "a", At: began, Items: items})
		if err == nil || !strings.Contains(err.Error(), "allowed is 0 to 1e+100") || len(c.done) > 0 {
			t.Errorf("an item worth %v: %v", worth, err)
		}
		err = c.Report("a", began, items...)
		if err == nil || !strings.Contains(err.Error(), "allowed is 0 to 1e+100") {
			t.Errorf("an item that is reported to be worth %v: %v", worth, err)
		}
	}
}

// TestExtremes: whatever crawls bring that is allowed, the state can be saved and
// taken up.
func TestExtremes(t *testing.T) {
	worths := []float64{5e-324, 1e-300, 1e-100, 1, 1e99, 1e100}
	ages := []time.Duration{0, 1, time.Minute, 30 * 24 * time.Hour, math.MaxInt64}
	for seed := range uint64(20) {
		r := stream.New(seed, stream.Test)
		c := newTestCrawler(t, CrawlerOptions{Budget: 10})
		for k := range 60 {
			if err := c.Add(fmt.Sprint(k), Source{}); err != nil {
				t.Fatal(err)
			}
		}
		now := began
		for range 300 {
			now = now.Add(time.Hour)
			for _, name := range c.Select(now, 10) {
				crawl := Crawl{Source: name, At: now}
				for range r.Intn(30) {
					it := Item{Published: now.Add(-time.Duration(r.Intn(1000)) * time.Second)}
					if name < "1" { // the others are as sources are
						it.Worth = new(worths[r.Intn(len(worths))])
						it.Published = now.Add(-ages[r.Intn(len(ages))])
					}
					crawl.Items = append(crawl.Items, it)
				}
				if err := c.Update(crawl); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := c.Save(io.Discard); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		restarted(t, c)
		b, err := c.Belief("5")
		if err != nil || math.IsNaN(b.Price) || !(b.Items > 0) {
			t.Errorf("seed %d: %+v, %v", seed, b, err)
		}
	}
}

// TestLostAfterFailures: a crawl that is handed out and never reported is handed out again after an
// epoch, also of a source that has failed often and said when to try again.
func TestLostAfterFailures(t *testing.T) {
	c := newTestCrawler(t, CrawlerOptions{Budget: 1})
	if err := c.Add("a", Source{Longest: 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	now, asked := began, 0
	for asked < 12 {
		for _, name := range c.Select(now, 1) {
			asked++
			failed := Crawl{Source: name, At: now, Outcome: Failed, NotBefore: now.Add(2 * time.Hour)}
			if err := c.Update(failed); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Hour)
	}
	var lost time.Time
	for lost.IsZero() {
		if now = now.Add(time.Hour); len(c.Select(now, 1)) > 0 {
			lost = now
		}
	}
	for now = now.Add(time.Hour); len(c.Select(now, 1)) == 0; {
		now = now.Add(time.Hour)
	}
	if wait := now.Sub(lost); wait > 2*time.Hour {
		t.Errorf("handed out again after %v", wait)
	}
}

// TestLostOfLongest: a crawl that is handed out because the longest interval has ended, and is lost, is
// handed out again as soon as the waits of one, two and four epochs end, though other sources are
// worth more at each epoch.
func TestLostOfLongest(t *testing.T) {
	c := newTestCrawler(t, CrawlerOptions{Budget: 1})
	for _, name := range []string{"a", "b", "c", "dead"} {
		if err := c.Add(name, Source{Longest: 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	var lost []time.Duration // when the crawls of the dead source were handed out that were lost
	for now := began; len(lost) < 4 && now.Before(began.Add(400*time.Hour)); now = now.Add(time.Hour) {
		for _, name := range c.Select(now, 1) {
			crawl := Crawl{Source: name, At: now, Outcome: Found}
			switch since := now.Sub(began); {
			case name != "dead":
				crawl.Items = []Item{{Published: now.Add(-10 * time.Minute)}, {Published: now.Add(-30 * time.Minute)}}
			case since < 100*time.Hour:
			case since < 200*time.Hour:
				crawl.Outcome, crawl.NotBefore = Failed, now.Add(2*time.Hour)
			default:
				lost = append(lost, since)
				continue
			}
			if err := c.Update(crawl); err != nil {
				t.Fatal(err)
			}
		}
	}
	for k := range lost[1:] {
		wait := lost[k+1] - lost[k]
		if most := time.Hour<<k + 2*time.Hour; wait > most {
			t.Errorf("after the loss number %d it was handed out again after %v; want %v at most", k+1, wait, most)
		}
	}
	if len(lost) < 4 {
		t.Errorf("handed out after %v", lost)
	}
}

// TestLongestFirst: where the budget lets fewer be crawled than are overdue, the one comes first that has been
// overdue for the longest time, wherever it stands.
func TestLongestFirst(t *testing.T) {
	c := newTestCrawler(t, CrawlerOptions{Budget: 1})
	for k, name := range []string{"a", "b", "c"} {
		if err := c.Add(name, Source{Longest: time.Duration(4-k) * time.Hour}); err != nil {
			t.Fatal(err)
		}
		if err := c.Update(Crawl{Source: name, At: began}); err != nil {
			t.Fatal(err)
		}
	}
	for k, want := range []string{"c", "b", "a"} {
		now := began.Add(time.Duration(8+k) * time.Hour)
		if names := c.Select(now, 1); !slices.Equal(names, []string{want}) {
			t.Fatalf("%v is crawled after %v; want %s", names, now.Sub(began), want)
		}
		if err := c.Update(Crawl{Source: want, At: now}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLongestOfOthers: overdue sources of which the budget, or the limit of their group, lets no more be crawled
// keep others that are overdue waiting for nothing.
func TestLongestOfOthers(t *testing.T) {
	const longest = 12 * time.Hour
	for _, before := range []struct {
		name  string
		n     int
		rules Source
	}{
		{"of a cost above the budget", 1, Source{Cost: 5, Longest: time.Hour}},
		{"of one group", 100, Source{Group: "host", Longest: time.Hour}},
	} {
		c, now := newTestCrawler(t, CrawlerOptions{Budget: 4, PerGroup: 1}), began
		add := func(name string, rules Source) {
			if err := c.Add(name, rules); err != nil {
				t.Fatal(err)
			}
		}
		for k := range before.n {
			add(fmt.Sprint("before ", k), before.rules)
		}
		for k := range 20 {
			add(fmt.Sprint("busy ", k), Source{})
		}
		add("quiet", Source{Longest: longest})
		last := map[string]time.Time{}
		for range 200 {
			for _, name := range c.Select(now, 10) {
				crawl := Crawl{Source: name, At: now}
				if strings.HasPrefix(name, "busy") {
					crawl.Items = publish(0, now.Add(-4*time.Hour), now)
				}
				if err := c.Update(crawl); err != nil {
					t.Fatal(err)
				}
				last[name] = now
			}
			if at := last["quiet"]; !at.IsZero() && now.Sub(at) > longest {
				t.Errorf("behind sources %s one waits for %v; its longest interval is %v",
					before.name, now.Sub(at), longest)
				break
			}
			now = now.Add(time.Hour)
		}
		if last["quiet"].IsZero() {
			t.Errorf("behind sources %s one is never crawled", before.name)
		}
	}
}

// crawlAll makes the crawls that are due, which find what sources published since the last ones, and returns how
// many they are.
func crawlAll(t *testing.T, c *Crawler, now time.Time, last map[string]time.Time) (crawls int) {
	t.Helper()
	for _, name := range c.Select(now, 10) {
		crawl := Crawl{Source: name, At: now}
		if at := last[name]; !at.IsZero() {
			crawl.Items = publish(1, at, now)
		}
		if err := c.Update(crawl); err != nil {
			t.Fatal(err)
		}
		last[name] = now
		crawls++
	}
	return crawls
}

// TestLargeGroup: a group with many more sources than it may have crawls leaves the others all of the budget that it
// cannot spend, from the beginning on.
func TestLargeGroup(t *testing.T) {
	c, now := newTestCrawler(t, CrawlerOptions{Budget: 4, PerGroup: 1}), began
	for k := range 330 {
		rules := Source{Group: "host"}
		if k >= 300 {
			rules.Group = ""
		}
		if err := c.Add(fmt.Sprint(k), rules); err != nil {
			t.Fatal(err)
		}
	}
	last, crawls := map[string]time.Time{}, 0
	for hour := range 400 {
		crawls += crawlAll(t, c, now, last)
		if now = now.Add(time.Hour); hour == 40 {
			for k := 300; k < 330; k++ {
				if last[fmt.Sprint(k)].IsZero() {
					t.Errorf("source %d is not crawled in %d hours, in which there were %d crawls", k, hour, crawls)
				}
			}
		}
	}
	if crawls < 1590 {
		t.Errorf("%d crawls, of 1600", crawls)
	}
}

// TestRemoveOfPlanned: what is left of an epoch's plan says nothing of a source that takes the place of one that was
// removed: it has another cost and group.
func TestRemoveOfPlanned(t *testing.T) {
	c := newTestCrawler(t, CrawlerOptions{Budget: 2, PerGroup: 1})
	add := func(name string, rules Source) {
		if err := c.Add(name, rules); err != nil {
			t.Fatal(err)
		}
	}
	add("a", Source{Group: "x"})
	add("b", Source{Group: "y"})
	c.Select(began, 0)
	if err := c.Remove("b"); err != nil {
		t.Fatal(err)
	}
	add("c", Source{Group: "x", Cost: 2})
	c = restarted(t, c)
	if names := c.Select(began, 5); !slices.Equal(names, []string{"a"}) {
		t.Errorf("%v are crawled, in an epoch with a budget of 2 and one crawl of a group", names)
	}
}

// TestGroupsGo: groups whose sources are all removed leave nothing behind, and those that come later have the limit.
func TestGroupsGo(t *testing.T) {
	c := newTestCrawler(t, CrawlerOptions{Budget: 10, PerGroup: 2})
	for k := range 100 {
		for _, name := range []string{"a", "b", "c"} {
			if err := c.Add(name, Source{Group: fmt.Sprint(k)}); err != nil {
				t.Fatal(err)
			}
		}
		if k == 50 {
			c = restarted(t, c)
		}
		if names := c.Select(began.Add(time.Duration(k)*time.Hour), 10); len(names) != 2 {
			t.Errorf("%v are crawled in epoch %d; allowed are 2 of a group", names, k)
		}
		for _, name := range []string{"c", "a", "b"} {
			if err := c.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(c.groups) > 1 || len(c.members) > 2 {
		t.Errorf("%d groups are left, and numbers of %d", len(c.groups), len(c.members))
	}
}

// TestNewOfGroup: each source of a group gets its first crawl though others of it, which are due more often than the
// group may be crawled, never sleep.
func TestNewOfGroup(t *testing.T) {
	c, now := newTestCrawler(t, CrawlerOptions{Budget: 2, PerGroup: 1}), began
	last := map[string]time.Time{}
	for k := range 12 {
		name := fmt.Sprint(k)
		last[name] = time.Time{}
		if err := c.Add(name, Source{Group: "host"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		crawlAll(t, c, now, last)
		now = now.Add(time.Hour)
	}
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if last[name].IsZero() {
			t.Errorf("source %s is not crawled in 100 hours, of which each has a crawl of its group", name)
		}
	}
}

// TestSent: a source that sends its items is crawled when its longest interval ends, all the same.
func TestSent(t *testing.T) {
	c := newTestCrawler(t, CrawlerOptions{Budget: 1})
	for _, name := range []string{"a", "b", "c", "sends"} {
		if err := c.Add(name, Source{Longest: 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	last := began
	for now := began; now.Before(began.Add(400 * time.Hour)); now = now.Add(time.Hour) {
		for _, name := range c.Select(now, 1) {
			crawl := Crawl{Source: name, At: now}
			if name == "sends" {
				if wait := now.Sub(last); wait > 25*time.Hour {
					t.Errorf("it was crawled after %v", wait)
				}
				last = now
			} else {
				crawl.Items = []Item{{Published: now.Add(-10 * time.Minute)}, {Published: now.Add(-30 * time.Minute)}}
			}
			if err := c.Update(crawl); err != nil {
				t.Fatal(err)
			}
		}
		sent := Crawl{Source: "sends", At: now, Sent: true, Items: []Item{{Published: now}}}
		if err := c.Update(sent); err != nil {
			t.Fatal(err)
		}
	}
	if since := began.Add(400 * time.Hour).Sub(last); since > 25*time.Hour {
		t.Errorf("it was crawled %v ago", since)
	}
}

// TestDefer: a source that is handed out because its longest interval has ended, and waits instead, comes
// first when that wait ends, though others are worth more. Where its crawl failed it has another longest interval.
func TestDefer(t *testing.T) {
	for _, tt := range []struct {
		name string
		put  func(c *Crawler, now time.Time) error
		want time.Duration
	}{
		{"deferred", func(c *Crawler, now time.Time) error { return c.Defer("dead", now, now.Add(5*time.Hour)) },
			5 * time.Hour},
		{"failed", func(c *Crawler, now time.Time) error {
			return c.Update(Crawl{Source: "dead", At: now, Outcome: Failed, NotBefore: now.Add(5 * time.Hour)})
		}, 24 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newTestCrawler(t, CrawlerOptions{Budget: 1})
			for _, name := range []string{"a", "b", "c", "dead"} {
				if err := c.Add(name, Source{Longest: 24 * time.Hour}); err != nil {
					t.Fatal(err)
				}
			}
			var at []time.Time // when the dead source was handed out
			for now := began; len(at) < 12 && now.Before(began.Add(400*time.Hour)); now = now.Add(time.Hour) {
				for _, name := range c.Select(now, 1) {
					crawl := Crawl{Source: name, At: now, Outcome: Found}
					if name != "dead" {
						crawl.Items = []Item{{Published: now.Add(-time.Minute)}, {Published: now.Add(-time.Hour)}}
					} else if at = append(at, now); len(at) > 10 {
						if err := tt.put(c, now); err != nil {
							t.Fatal(err)
						}
						continue
					}
					if err := c.Update(crawl); err != nil {
						t.Fatal(err)
					}
				}
			}
			if len(at) < 12 || at[11].Sub(at[10]) != tt.want {
				t.Errorf("handed out at %v; want the last %v after the one before", at, tt.want)
			}
		})
	}
	if err := newTestCrawler(t, CrawlerOptions{Budget: 1}).Defer("nobody", began, began); err == nil {
		t.Error("a source that nobody knows is deferred")
	}
}

// TestSetIntervals: other intervals hold for a source that others leave no request to, the longest one from its last
// crawl on, and the shortest one from its next crawl on.
func TestSetIntervals(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct{ shortest, longest, first, then time.Duration }{
		{time.Hour, 2 * day, 2 * day, 2 * day},
		{time.Hour, 20 * day, 20 * day, 20 * day},
		{time.Hour, 12 * time.Hour, day + time.Hour, 12 * time.Hour}, // which nobody knew of before
	} {
		c := newTestCrawler(t, CrawlerOptions{Budget: 1})
		for _, name := range []string{"quiet", "busy"} {
			if err := c.Add(name, Source{Longest: 10 * day}); err != nil {
				t.Fatal(err)
			}
		}
		begin := began.Add(40 * day)
		var at []time.Duration // the first crawl of the quiet source after that, and the next ones
		for now := began; now.Before(began.Add(140 * day)); now = now.Add(time.Hour) {
			if len(at) == 1 && now.Sub(begin) == at[0]+day {
				c.SetIntervals(tt.shortest, tt.longest)
			}
			for _, name := range c.Select(now, 1) {
				crawl := Crawl{Source: name, At: now, Outcome: Unchanged}
				if name == "busy" {
					crawl.Outcome = Found
					crawl.Items = []Item{{Published: now.Add(-time.Minute)}, {Published: now.Add(-30 * time.Minute)}}
				} else if now.After(begin) {
					at = append(at, now.Sub(begin))
				}
				if err := c.Update(crawl); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(at) < 3 || (at[1]-at[0]-tt.first).Abs() > time.Hour || (at[2]-at[1]-tt.then).Abs() > time.Hour {
			t.Errorf("%+v: crawled after %v", tt, at)
		}
	}
}

// TestShift: when the clock was set, each source is crawled when it would have been, and is
// thought to publish as often.
func TestShift(t *testing.T) {
	const day = 24 * time.Hour
	for _, by := range []time.Duration{30 * day, -30 * day, 31 * 365 * day, -5 * time.Hour} {
		var log [2][]time.Duration
		for k := range log {
			c := newTestCrawler(t, CrawlerOptions{Budget: 1})
			if err := c.Add("a", Source{Shortest: 5 * time.Hour, Longest: 24 * time.Hour}); err != nil {
				t.Fatal(err)
			}
			ahead := time.Duration(0)
			for passed := time.Duration(0); passed < 200*time.Hour; passed += time.Hour {
				if k > 0 && passed == 100*time.Hour {
					c.Shift(by)
					ahead, c = by, restarted(t, c)
				}
				now := began.Add(passed + ahead)
				for _, name := range c.Select(now, 1) {
					log[k] = append(log[k], passed)
					item := Item{Published: now.Add(-time.Hour)}
					if err := c.Update(Crawl{Source: name, At: now, Items: []Item{item}}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if len(log[0]) < 8 || len(log[1]) != len(log[0]) {
			t.Errorf("by %v: crawled at %v, else at %v", by, log[1], log[0])
		}
	}
}

// TestShiftOfHours: a learner goes on with the hours of the clock that was set, as one does that is
// loaded after that.
func TestShiftOfHours(t *testing.T) {
	c := newTestCrawler(t, CrawlerOptions{Budget: 1})
	for _, name := range []string{"a", "b", "c"} {
		if err := c.Add(name, Source{}); err != nil {
			t.Fatal(err)
		}
	}
	// play has the sources publish at three hours of the day, and returns what is crawled when.
	play := func(c *Crawler, from, to time.Time) (log []string) {
		for now := from; now.Before(to); now = now.Add(time.Hour) {
			for _, name := range c.Select(now, 1) {
				noon := now.Truncate(24 * time.Hour).Add(time.Duration(5+6*(name[0]-'a')) * time.Hour)
				crawl := Crawl{Source: name, At: now}
				if noon.Before(now) {
					crawl.Items = []Item{{Published: noon}, {Published: noon.Add(time.Minute)}}
				}
				if err := c.Update(crawl); err != nil {
					t.Fatal(err)
				}
				log = append(log, fmt.Sprint(now.Sub(began), name))
			}
		}
		return log
	}
	change := began.Add(1000 * time.Hour)
	play(c, began, change)
	c.Shift(-7 * time.Hour)
	loaded := restarted(t, c)
	change = change.Add(-7 * time.Hour)
	want := play(loaded, change, change.Add(500*time.Hour))
	if got := play(c, change, change.Add(500*time.Hour)); !slices.Equal(got, want) {
		t.Errorf("crawled at %v; one that is loaded crawls at %v", got, want)
	}
}

// TestCarry: of a budget that is no whole number of crawls an epoch all is spent, if what is left
// is carried on, also where the crawler is saved and loaded.
func TestCarry(t *testing.T) {
	for _, tt := range []struct {
		name            string
		carry, restarts bool
		crawls          int
	}{{"left unspent", false, false, 80}, {"carried on", true, false, 100}, {"carried on, saved", true, true, 100}} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := NewCrawler(began, CrawlerOptions{Budget: 2.5, Epoch: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			if tt.carry {
				c.Carry()
			}
			for i := range 20 {
				if err := c.Add(fmt.Sprint(i), Source{}); err != nil {
					t.Fatal(err)
				}
			}
			crawls, now := 0, began
			for range 40 {
				if now = now.Add(time.Hour); tt.restarts {
					c = restarted(t, c)
					c.Carry() // which changes nothing
				}
				for _, name := range c.Select(now, 20) {
					crawls++
					if err := c.Update(Crawl{Source: name, At: now}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if math.Abs(float64(crawls-tt.crawls)) > 1 {
				t.Errorf("%d crawls in 40 epochs; want %d", crawls, tt.crawls)
			}
		})
	}
}
