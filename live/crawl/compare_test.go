package crawl

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/learner"
	"ephemera/live/feed"
)

// shown is how many items a feed shows in the comparison.
const shown = 20

// scheduler decides who is looked at, and hears what each look found: the times at
// which the new items were published, in seconds.
type scheduler interface {
	pick(now float64) []int
	tell(i int, now float64, items []float64, all bool)
}

// outcome is what a schedule brought.
type outcome struct {
	delays         []float64 // minutes, sorted
	missed         int
	looks, empty   int
	median, ninety float64
}

// playFeeds has a scheduler look at feeds between two times, every so many seconds.
func playFeeds(feeds [][]float64, from, to, step float64, s scheduler) *outcome {
	o := &outcome{}
	next := make([]int, len(feeds)) // first item that was not seen
	looked := make([]bool, len(feeds))
	for now := from; now < to; now += step {
		for _, i := range s.pick(now) {
			end, _ := slices.BinarySearch(feeds[i], now+1e-9)
			begin := max(next[i], end-shown)
			fresh := feeds[i][begin:end]
			o.looks++
			if len(fresh) == 0 {
				o.empty++
			}
			if looked[i] {
				o.missed += begin - next[i]
			}
			for _, at := range fresh {
				if at > from {
					o.delays = append(o.delays, (now-at)/60)
				}
			}
			s.tell(i, now, fresh, looked[i] && len(fresh) == shown)
			next[i], looked[i] = end, true
		}
	}
	slices.Sort(o.delays)
	o.median, o.ninety = o.delays[len(o.delays)/2], o.delays[len(o.delays)*9/10]
	return o
}

// rule is an interval rule that spends all of the budget: the most overdue first.
type rule struct {
	l     env.Learner[env.Online]
	o     env.Online
	begin float64
	step  float64
	done  []env.Crawled
}

func (r *rule) pick(now float64) []int {
	if r.o.Epoch = int(math.Round((now - r.begin) / r.step)); r.o.Epoch > 0 {
		r.l.Update(r.done, &r.o)
		r.done = r.done[:0]
	}
	return r.l.Select(nil, &r.o)
}

func (r *rule) tell(i int, now float64, items []float64, _ bool) {
	c := env.Crawled{Source: i, Age: r.o.Age(i)}
	for _, at := range items {
		c.Items = append(c.Items, env.Item{Age: (now - at) / r.step, Interest: 1})
		c.Interest++
	}
	r.done = append(r.done, c)
	r.o.Last[i] = r.o.Epoch
}

// commaFeed is CommaFeed's rule with its default intervals, 5 minutes to 4 hours:
// half of the mean time between the items that are shown, at most an hour; longer
// where the last is a week, two or four old. It asks for the most overdue first.
type commaFeed struct {
	relative bool
	most     int
	interval []float64 // seconds
	last     []float64
	items    [][]float64
}

func (c *commaFeed) pick(now float64) []int {
	all := make([]int, len(c.last))
	for i := range all {
		all[i] = i
	}
	key := func(i int) float64 {
		if c.relative {
			return (now - c.last[i]) / c.interval[i]
		}
		return now - c.last[i] - c.interval[i]
	}
	slices.SortStableFunc(all, func(i, j int) int {
		if key(i) > key(j) {
			return -1
		} else if key(i) < key(j) {
			return 1
		}
		return 0
	})
	return all[:c.most]
}

func (c *commaFeed) tell(i int, now float64, items []float64, _ bool) {
	const longest, day = 4 * 3600.0, 86400.0
	all := append(c.items[i], items...)
	c.items[i] = all[max(0, len(all)-shown):]
	c.last[i], c.interval[i] = now, longest
	if n := len(c.items[i]); n > 0 {
		first, latest := c.items[i][0], c.items[i][n-1]
		switch since := now - latest; {
		case since >= 30*day:
		case since >= 14*day:
			c.interval[i] = longest / 2
		case since >= 7*day:
			c.interval[i] = longest / 4
		case n > 1:
			c.interval[i] = min(max((latest-first)/float64(n-1)/2, 300), longest/4)
		}
	}
}

// learned is the crawler's learner, as [Crawler] uses it.
type learned struct {
	t testing.TB
	c *Crawler
}

func (l *learned) pick(now float64) (picked []int) {
	for _, name := range l.c.learner.Select(unix(now), math.MaxInt) {
		var i int
		fmt.Sscan(name, &i)
		picked = append(picked, i)
	}
	return picked
}

func (l *learned) tell(i int, now float64, items []float64, all bool) {
	e := entry{Feed: fmt.Sprint(i), At: unix(now), Outcome: "found", Truncated: all, Worth: 1, NotBefore: unix(now).Add(l.c.opt.Shortest)}
	if len(items) == 0 {
		e.Outcome = "unchanged"
	}
	for _, at := range items {
		e.Items = append(e.Items, feed.Item{Published: unix(at)})
	}
	if err := l.c.learn(&e); err != nil {
		l.t.Fatal(err)
	}
}

// knowing knows the rate of each feed in every hour of the week, and nothing of what
// waits. With rates λ and items that lose interest as e^(−a/h) with their age a, it
// goes where the index ∫ λ a/h e^(−a/h) da, over the time since the last look, is
// greatest: for one rate, that is Whittle's.
type knowing struct {
	rate  [][]float64 // of each feed by hour of the week, items per second
	most  int
	step  float64
	decay float64   // h, seconds
	a     []float64 // ∫ λ e^(−a/h) da
	b     []float64 // the index
}

func newKnowing(feeds [][]float64, from, to float64, most int, step float64, halfLife time.Duration) *knowing {
	k := &knowing{most: most, step: step, decay: halfLife.Seconds() / math.Ln2, a: make([]float64, len(feeds)), b: make([]float64, len(feeds))}
	for _, f := range feeds {
		rate := make([]float64, 168)
		for _, at := range f {
			if at >= from && at < to {
				rate[int(at/3600)%168] += 168 / (to - from)
			}
		}
		k.rate = append(k.rate, rate)
	}
	return k
}

func (k *knowing) pick(now float64) []int {
	fade := math.Exp(-k.step / k.decay)
	all := make([]int, len(k.rate))
	for i, rate := range k.rate {
		all[i] = i
		k.b[i] = (k.b[i] + k.a[i]*k.step/k.decay) * fade
		k.a[i] = k.a[i]*fade + rate[int(now/3600)%168]*k.step
	}
	slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(k.b[j], k.b[i]) })
	return all[:k.most]
}

func (k *knowing) tell(i int, _ float64, _ []float64, _ bool) { k.a[i], k.b[i] = 0, 0 }

func unix(s float64) time.Time { return time.UnixMilli(int64(s * 1000)) }

// TestAgainstRules plays recordings as feeds that show 20 items, against the rules of
// readers and crawlers, with as many requests. On hn the learner finds half of the
// items a fifth sooner than the best of them. On fbmedia2016, where nearly every look
// finds something, there is little to gain, even for who knows the rates. It misses no
// more than any, but for one in 10 000.
func TestAgainstRules(t *testing.T) {
	if !*full {
		t.Skip("it takes minutes; -full runs it")
	}
	for name, most := range map[string]float64{"hn": .8, "fbmedia2016": 1.06} {
		path := filepath.Join("../../../shared/data", "trace_"+name+".csv.gz")
		if _, err := os.Stat(path); err != nil {
			t.Skip("no recordings here")
		}
		rec, err := env.ReadRecording(context.Background(), path)
		if err != nil {
			t.Fatal(err)
		}
		feeds := make([][]float64, len(rec.Names))
		rec.Each(func(i int, at int64, _ float64) { feeds[i] = append(feeds[i], float64(at)) })
		from := float64(rec.First) + 20*86400
		to := min(float64(rec.Last), from+200*86400)
		for _, perHour := range []float64{20, 60} {
			opt := Options{PerHour: perHour, HalfLife: 2 * time.Hour, Shortest: 5 * time.Minute, Longest: 24 * time.Hour}
			length, budget := opt.epoch()
			step := length.Seconds()
			terms := env.Terms{Budget: budget, Length: step, Start: int64(from)}
			for _, n := range rec.Names {
				terms.Names, terms.Costs = append(terms.Names, n), append(terms.Costs, 1)
			}
			schedulers := map[string]scheduler{}
			for _, relative := range []bool{false, true} {
				suffix := map[bool]string{true: "-relative"}[relative]
				for rule1, make1 := range map[string]func() (env.Learner[env.Online], error){
					"miniflux": func() (env.Learner[env.Online], error) { return baselines.NewEntryFrequency(terms, nil, relative) },
					"nutch":    func() (env.Learner[env.Online], error) { return baselines.NewNutch(terms, nil, relative) },
				} {
					l, err := make1()
					if err != nil {
						t.Fatal(err)
					}
					schedulers[rule1+suffix] = &rule{l: l, o: env.Online{Last: slices.Repeat([]int{-1}, len(feeds))}, begin: from, step: step}
				}
				c := &commaFeed{relative: relative, most: int(budget), last: make([]float64, len(feeds)), items: make([][]float64, len(feeds)), interval: slices.Repeat([]float64{1}, len(feeds))}
				schedulers["commafeed"+suffix] = c
			}
			c := &Crawler{opt: opt}
			if c.learner, err = opt.newLearner(unix(from)); err != nil {
				t.Fatal(err)
			}
			for i := range feeds {
				if err := c.learner.Add(fmt.Sprint(i), learner.Source{Shortest: opt.Shortest, Longest: opt.Longest}); err != nil {
					t.Fatal(err)
				}
			}
			schedulers["learner"] = &learned{t, c}
			for _, halfLife := range []time.Duration{time.Hour / 4, time.Hour, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour} {
				schedulers["knows rates "+halfLife.String()] = newKnowing(feeds, from, to, int(budget), step, halfLife)
			}
			best, least := math.Inf(1), math.MaxInt
			var mine *outcome
			for who, s := range schedulers {
				o := playFeeds(feeds, from, to, step, s)
				t.Logf("%-12s %3.0f/h %-20s median %6.1f min, 90 %% %7.1f, found %d, missed %d, empty %.1f %%, %d looks", name, perHour, who, o.median, o.ninety, len(o.delays), o.missed, 100*float64(o.empty)/float64(o.looks), o.looks)
				if who == "learner" {
					mine = o
				}
				if who == "learner" || strings.HasPrefix(who, "knows") {
					continue
				}
				best, least = min(best, o.median), min(least, o.missed)
			}
			t.Logf("%s, %v per hour: median %.1f min, %.1f %% less than the best rule", name, perHour, mine.median, 100*(1-mine.median/best))
			if mine.median > most*best || float64(mine.missed) > float64(least)+1e-4*float64(len(mine.delays)) {
				t.Errorf("%s, %v per hour: median %.1f min, best rule %.1f; %d missed, %d", name, perHour, mine.median, best, mine.missed, least)
			}
		}
	}
}
