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
	env.Learner[env.Online]
	o           env.Online
	begin, step float64
	done        []env.Crawled
}

func (r *rule) pick(now float64) []int {
	if r.o.Epoch = int(math.Round((now - r.begin) / r.step)); r.o.Epoch > 0 {
		r.Update(r.done, &r.o)
		r.done = r.done[:0]
	}
	return r.Select(nil, &r.o)
}

func (r *rule) tell(i int, now float64, items []float64, _ bool) {
	c := env.Crawled{Source: i, Age: r.o.Age(i), Interest: float64(len(items))}
	for _, at := range items {
		c.Items = append(c.Items, env.Item{Age: (now - at) / r.step, Interest: 1})
	}
	r.done = append(r.done, c)
	r.o.Last[i] = r.o.Epoch
}

// ranking looks at the feeds with the highest keys.
type ranking struct {
	n, most int
	key     func(i int, now float64) float64
	heard   func(i int, now float64, items []float64)
}

func (r *ranking) pick(now float64) []int {
	all, keys := make([]int, r.n), make([]float64, r.n)
	for i := range all {
		all[i], keys[i] = i, r.key(i, now)
	}
	slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(keys[j], keys[i]) })
	return all[:r.most]
}

func (r *ranking) tell(i int, now float64, items []float64, _ bool) { r.heard(i, now, items) }

// commaFeed is CommaFeed's rule with its default intervals, 5 minutes to 4 hours:
// half of the mean time between the items that are shown, at most an hour; longer
// where the last is a week, two or four old. It asks for the most overdue first.
func commaFeed(n, most int, relative bool) *ranking {
	const longest, day = 4 * 3600.0, 86400.0
	last, seen, interval := make([]float64, n), make([][]float64, n), slices.Repeat([]float64{1}, n)
	key := func(i int, now float64) float64 {
		if relative {
			return (now - last[i]) / interval[i]
		}
		return now - last[i] - interval[i]
	}
	return &ranking{n, most, key, func(i int, now float64, items []float64) {
		all := append(seen[i], items...)
		all = all[max(0, len(all)-shown):]
		seen[i], last[i], interval[i] = all, now, longest
		if n := len(all); n > 0 {
			switch since := now - all[n-1]; {
			case since >= 30*day:
			case since >= 14*day:
				interval[i] = longest / 2
			case since >= 7*day:
				interval[i] = longest / 4
			case n > 1:
				interval[i] = min(max((all[n-1]-all[0])/float64(n-1)/2, 300), longest/4)
			}
		}
	}}
}

// knowing knows the rate of each feed in every hour of the week, and nothing of what
// waits. With rates λ and items that lose interest as e^(−a/h) with their age a, it
// goes where the index ∫ λ a/h e^(−a/h) da, over the time since the last look, is
// greatest: for one rate, that is Whittle's.
func knowing(feeds [][]float64, from, to float64, most int, step float64, halfLife time.Duration) *ranking {
	decay := halfLife.Seconds() / math.Ln2 // h
	fade := math.Exp(-step / decay)
	rate := make([][168]float64, len(feeds))                                 // items per second
	found, index := make([]float64, len(feeds)), make([]float64, len(feeds)) // ∫ λ e^(−a/h) da, and the index
	for i, f := range feeds {
		for _, at := range f {
			if at >= from && at < to {
				rate[i][int(at/3600)%168] += 168 / (to - from)
			}
		}
	}
	key := func(i int, now float64) float64 {
		index[i] = (index[i] + found[i]*step/decay) * fade
		found[i] = found[i]*fade + rate[i][int(now/3600)%168]*step
		return index[i]
	}
	return &ranking{len(feeds), most, key, func(i int, _ float64, _ []float64) { found[i], index[i] = 0, 0 }}
}

// learned is the crawler's learner, as [Crawler] uses it.
type learned struct {
	testing.TB
	*Crawler
}

func newLearned(t testing.TB, opt Options, from float64, n int) learned {
	l, err := opt.newLearner(unix(from))
	for i := 0; i < n && err == nil; i++ {
		err = l.Add(fmt.Sprint(i), learner.Source{Shortest: opt.Shortest, Longest: opt.Longest})
	}
	if err != nil {
		t.Fatal(err)
	}
	return learned{t, &Crawler{opt: opt, learner: l}}
}

func (l learned) pick(now float64) (picked []int) {
	for _, name := range l.learner.Select(unix(now), math.MaxInt) {
		var i int
		fmt.Sscan(name, &i)
		picked = append(picked, i)
	}
	return picked
}

func (l learned) tell(i int, now float64, items []float64, all bool) {
	e := entry{Feed: fmt.Sprint(i), At: unix(now), Outcome: "found", Truncated: all, Worth: 1, NotBefore: unix(now).Add(l.opt.Shortest)}
	if len(items) == 0 {
		e.Outcome = "unchanged"
	}
	for _, at := range items {
		e.Items = append(e.Items, feed.Item{Published: unix(at)})
	}
	if err := l.learn(&e); err != nil {
		l.Fatal(err)
	}
}

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
			terms := env.Terms{Budget: budget, Length: step, Start: int64(from), Names: rec.Names, Costs: slices.Repeat([]float64{1}, len(feeds))}
			schedulers := map[string]scheduler{"learner": newLearned(t, opt, from, len(feeds))}
			for suffix, relative := range map[string]bool{"": false, "-relative": true} {
				miniflux, err1 := baselines.NewEntryFrequency(terms, nil, relative)
				nutch, err2 := baselines.NewNutch(terms, nil, relative)
				if err := cmp.Or(err1, err2); err != nil {
					t.Fatal(err)
				}
				for which, l := range map[string]env.Learner[env.Online]{"miniflux": miniflux, "nutch": nutch} {
					schedulers[which+suffix] = &rule{Learner: l, o: env.Online{Last: slices.Repeat([]int{-1}, len(feeds))}, begin: from, step: step}
				}
				schedulers["commafeed"+suffix] = commaFeed(len(feeds), int(budget), relative)
			}
			for _, halfLife := range []time.Duration{time.Hour / 4, 2 * time.Hour} {
				schedulers["knows rates "+halfLife.String()] = knowing(feeds, from, to, int(budget), step, halfLife)
			}
			best, least := math.Inf(1), math.MaxInt
			var mine *outcome
			for who, s := range schedulers {
				o := playFeeds(feeds, from, to, step, s)
				t.Logf("%-12s %3.0f/h %-20s median %6.1f min, 90 %% %7.1f, found %d, missed %d, empty %.1f %%, %d looks", name, perHour, who, o.median, o.ninety, len(o.delays), o.missed, 100*float64(o.empty)/float64(o.looks), o.looks)
				if who == "learner" {
					mine = o
				} else if !strings.HasPrefix(who, "knows") {
					best, least = min(best, o.median), min(least, o.missed)
				}
			}
			t.Logf("%s, %v per hour: median %.1f min, %.1f %% less than the best rule", name, perHour, mine.median, 100*(1-mine.median/best))
			if mine.median > most*best || float64(mine.missed) > float64(least)+1e-4*float64(len(mine.delays)) {
				t.Errorf("%s, %v per hour: median %.1f min, best rule %.1f; %d missed, %d", name, perHour, mine.median, best, mine.missed, least)
			}
		}
	}
}
