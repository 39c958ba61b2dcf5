package crawl

import (
	"flag"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"ephemera/baselines"
	"ephemera/env"
)

// outcome is what a schedule brought.
type outcome struct {
	delays         []float64 // minutes from publication to look, without end for items that are missed
	missed         int       // items
	missedOn       []float64 // likewise, by the day of their publication
	looks, empty   int
	median, ninety float64
	mean           float64 // of the items that were found
}

// playFeeds has a scheduler look at feeds that show 20 items each.
func playFeeds(rec *env.Recording, w *env.Replay, s scheduler) *outcome {
	o := &outcome{missed: rec.Rows, missedOn: make([]float64, (rec.Last-rec.First)/86400+1)}
	rec.Each(func(_ int, at int64, _ float64) { o.missedOn[(at-rec.First)/86400]++ })
	budget := w.Terms().Budget
	limits := &env.Limits{Budget: budget, NotBefore: make([]int, len(rec.Names))}
	view := func() *env.Online {
		v := w.View().Online
		v.Limits = limits
		return &v
	}
	step := func(look []int) {
		carry(limits, budget, len(look))
		crawls := must(w.Step(look))
		epochs := float64(w.View().Epoch) // since the recording began
		for _, c := range crawls {
			o.looks++
			if len(c.Items) == 0 {
				o.empty++
			}
			for _, it := range c.Items {
				if it.Age < epochs {
					o.delays = append(o.delays, it.Age*w.Terms().Length/60)
					o.missedOn[int((epochs-it.Age)*w.Terms().Length/86400+1e-9)]--
				}
			}
		}
		s.Update(crawls, view())
	}
	for range w.Epochs() - 1 {
		step(s.Select(nil, view()))
	}
	var all []int // at last: what a feed still shows is not missed
	for i := range rec.Names {
		all = append(all, i)
	}
	step(all)
	o.missed -= len(o.delays)
	o.mean = stat.Mean(o.delays, nil)
	o.delays = append(o.delays, slices.Repeat([]float64{math.Inf(1)}, o.missed)...)
	slices.Sort(o.delays)
	o.median, o.ninety = o.delays[len(o.delays)/2], o.delays[len(o.delays)*9/10]
	return o
}

// missesMore returns how many items more are missed than by another schedule at least, with 97.5 %, if the days of
// a recording are independent: items are missed in a few bursts.
func (o *outcome) missesMore(than *outcome) float64 {
	var more []float64
	for day, n := range o.missedOn {
		more = append(more, n-than.missedOn[day])
	}
	n := float64(len(more))
	mean, of := stat.MeanStdDev(more, nil)
	return n*mean - distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(.975)*math.Sqrt(n)*of
}

// givenRates crawls by the index of the mean delay, Λa²/2, and is given the mean rate Λ of each
// source. Where rates are constant, hardly any schedule has a mean delay that is less.
type givenRates struct{ env.Policy[env.Online] }

func (givenRates) Update([]env.Crawled, *env.Online) {}

func newGivenRates(in env.Instance, t env.Terms) givenRates {
	return givenRates{baselines.NewByIndex(t, func(key []float64, o *env.Online) {
		for i := range key {
			a := float64(o.Age(i))
			key[i] = in.Sources[i].Rate * a * a / 2
		}
	})}
}

var (
	objectives = flag.String("objectives", "delay,interest:2h",
		"what the learner is to bring about in the comparison with rules")
	firstHalf = flag.Bool("first-half", false,
		"compare with rules on the first halves of the recordings and on other seeds, where something may be chosen")
	traces = flag.String("traces", "hn,fbmedia2016",
		"recordings of the comparison with rules; poisson, bursts, hours and mixed are made up")
	perHours  = flag.String("rates", "20,60", "requests an hour in the comparison with rules")
	withRules = flag.Bool("rules", true, "play the rules; without, only the learner")
	scrolls   = flag.Bool("scrolls", true, "feeds show 20 items, and not all that is new")
	seeds     = flag.Int("worlds", 1, "recordings that are made up of each kind; beginnings with the referee")
)

// rulesOfReaders are those with which the learner is compared, by hours and relative.
var rulesOfReaders = map[string]func(env.Terms, baselines.Practice) env.Learner[env.Online]{
	"miniflux": baselines.NewEntryFrequency, "commafeed": baselines.NewCommaFeed,
	"freshrss": baselines.NewFixedInterval, "nutch": baselines.NewNutch,
	"stormcrawler": baselines.NewStormCrawler,
}

// TestAgainstRules plays the second halves of recordings, up to 200 days of each, as feeds
// that show 20 items, against the rules of readers and crawlers, with as many requests. The
// learner finds items sooner in the mean than each rule, and misses no more of them than
// any, but for one in 10 000, as far as so few days tell.
func TestAgainstRules(t *testing.T) {
	if !*full {
		t.Skip("it takes minutes; -full runs it")
	}
	for name := range strings.SplitSeq(*traces, ",") {
		for seed := range *seeds {
			rec := openRecording(t, name, *firstHalf, uint64(seed+1))
			for text := range strings.SplitSeq(*perHours, ",") {
				againstRules(t, name, rec, must(strconv.ParseFloat(text, 64)))
			}
			if kindsMade[name] == nil {
				break
			}
		}
	}
}

// againstRules compares the learner with the rules on one recording.
func againstRules(t *testing.T, name string, rec *env.Recording, perHour float64) {
	round := time.Duration(float64(len(rec.Names)) / perHour * float64(time.Hour))
	opt := Options{PerHour: perHour, Shortest: 5 * time.Minute, Longest: max(24*time.Hour, 8*round)}
	length, budget := opt.epoch()
	o := env.ReplayOptions{
		Epoch: length, Budget: budget, Decay: 1e-6, Part: env.PartWhole,
		Items: true, Shows: 20, Scrolls: *scrolls, Overrun: true,
	}
	play := func(who string, begin func(env.Terms) scheduler) *outcome {
		w := must(env.NewReplay(rec, must(rec.Fit(o)), o))
		o := playFeeds(rec, w, begin(w.Terms()))
		t.Logf("%-12s %3.0f/h %-22s median %6.1f min, 90 %% %7.1f, mean %6.1f, "+
			"missed %d, empty %.1f %%, %d looks", name, perHour, who, o.median, o.ninety, o.mean,
			o.missed, 100*float64(o.empty)/float64(o.looks), o.looks)
		return o
	}
	var others []*outcome
	for _, rule := range slices.Sorted(maps.Keys(rulesOfReaders)) {
		for _, suffix := range []string{"", "-relative"} {
			how := baselines.Practice{Relative: suffix != ""}
			if !*withRules || rule == "freshrss" && how.Relative { // which is the same
				continue
			}
			begin := rulesOfReaders[rule]
			others = append(others, play(rule+suffix, func(t env.Terms) scheduler { return begin(t, how) }))
		}
	}
	best := outcome{median: math.Inf(1), ninety: math.Inf(1), mean: math.Inf(1), missed: math.MaxInt}
	for _, r := range others {
		best.median, best.ninety = min(best.median, r.median), min(best.ninety, r.ninety)
		best.mean, best.missed = min(best.mean, r.mean), min(best.missed, r.missed)
	}
	in := must(rec.Fit(o))
	known := play("rates given", func(t env.Terms) scheduler { return newGivenRates(in, t) })
	t.Logf("%-12s %3.0f/h delay, rates given, over the best rule of each figure: median %.3f, 90 %% %.3f, mean %.3f",
		name, perHour, known.median/best.median, known.ninety/best.ninety, known.mean/best.mean)
	for text := range strings.SplitSeq(*objectives, ",") {
		opt.Objective = must(env.ParseObjective(text))
		mine := play(text, func(terms env.Terms) scheduler { return newLearned(opt, terms) })
		ahead := 0 // of how many rules in two figures of three
		for _, r := range others {
			n := 0
			for _, better := range []bool{mine.median < r.median, mine.ninety < r.ninety, mine.mean < r.mean} {
				if better {
					n++
				}
			}
			if n >= 2 {
				ahead++
			}
		}
		t.Logf("%-12s %3.0f/h %s over the best rule of each figure: median %.3f, 90 %% %.3f, mean %.3f; "+
			"missed %+d; two figures better than %d rules of %d", name, perHour, text, mine.median/best.median,
			mine.ninety/best.ninety, mine.mean/best.mean, mine.missed-best.missed, ahead, len(others))
		more := math.Inf(-1)
		for _, r := range others {
			least := mine.missesMore(r)
			more = max(more, least)
			if mine.missed > r.missed {
				t.Logf("%-12s %3.0f/h %s misses %d more than a rule that misses %d, at least %.1f",
					name, perHour, text, mine.missed-r.missed, r.missed, least)
			}
		}
		if text == "delay" && (mine.mean > best.mean || more > 1e-4*float64(len(mine.delays))) {
			t.Errorf("%s, %v per hour: mean %.1f min, best rule %.1f; %d missed, %d; at least %.1f more than a rule",
				name, perHour, mine.mean, best.mean, mine.missed, best.missed, more)
		}
	}
}

// TestLearnedIsAsFree: where the learner is played, it may look at a feed as soon again as the crawler.
func TestLearnedIsAsFree(t *testing.T) {
	opt := Options{PerHour: 120, Longest: 24 * time.Hour}
	length, budget := opt.epoch()
	for _, tt := range []struct {
		shortest time.Duration
		gap      int // epochs
	}{{0, 1}, {5 * time.Minute, 1}, {14 * time.Minute, 3}, {15 * time.Minute, 3}, {16 * time.Minute, 4}} {
		opt.Shortest = tt.shortest
		begin := time.Date(2026, 3, 2, 0, 3, 20, 0, time.UTC) // no full five minutes
		terms := env.Terms{Costs: []float64{1, 1}, Budget: budget, Start: begin.Unix(), Length: length.Seconds()}
		for _, waits := range [][]time.Duration{nil, {tt.shortest, tt.shortest}} {
			l := newLearned(opt, terms)
			l.waits = waits
			looks := []int{0, 0}
			for epoch := range 120 {
				var crawls []env.Crawled
				for _, i := range l.Select(nil, &env.Online{Epoch: epoch}) {
					crawls = append(crawls, env.Crawled{Source: i, Age: 1, Items: []env.Item{{Age: .5, Interest: 1}}})
					looks[i]++
				}
				l.Update(crawls, &env.Online{Epoch: epoch + 1})
			}
			if check(l.err); looks[0] != 120/tt.gap || looks[1] != 120/tt.gap {
				t.Errorf("shortest %v: %d looks in 120 epochs; want one each %d", tt.shortest, looks, tt.gap)
			}
		}
	}
}

// TestEpoch: epochs divide the hour or the day, and over time they have as many requests as are wanted.
func TestEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ln := rapid.Float64Range(math.Log(.002), math.Log(400)).Draw(t, "ln requests an hour")
		opt := Options{PerHour: math.Exp(ln)}
		length, budget := opt.epoch()
		if hour := time.Hour; hour%length != 0 && (length%hour != 0 || 24*hour%length != 0) && length%(24*hour) != 0 {
			t.Errorf("%v requests an hour: an epoch is %v", opt.PerHour, length)
		}
		if length < 5*time.Minute || !env.Fits(1, budget) {
			t.Errorf("%v requests an hour: %v in an epoch of %v", opt.PerHour, budget, length)
		}
		const epochs = 50
		n := 2 + 2*int(budget)
		terms := env.Terms{Costs: slices.Repeat([]float64{1}, n), Budget: budget, Length: length.Seconds()}
		l, looks := newLearned(opt, terms), 0
		for epoch := range epochs {
			chosen := l.Select(nil, &env.Online{Epoch: epoch})
			looks += len(chosen)
			var crawls []env.Crawled
			for _, i := range chosen {
				crawls = append(crawls, env.Crawled{Source: i, Age: 1})
			}
			l.Update(crawls, &env.Online{Epoch: epoch + 1})
		}
		if want := opt.PerHour * length.Hours() * epochs; l.err != nil || math.Abs(float64(looks)-want) > 1 {
			t.Errorf("%v requests an hour: %d looks in %d epochs of %v; want %.1f (%v)",
				opt.PerHour, looks, epochs, length, want, l.err)
		}
	})
}

// TestFailedBefore: a failure that was over when the time began that is known counts for nothing.
func TestFailedBefore(t *testing.T) {
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	for _, tt := range []struct {
		name   string
		failed []gap
		left   string
	}{
		{"before", []gap{{hour(-40), hour(-10)}}, ""},
		{"before, and for more than a quarter", []gap{{hour(-40), hour(-10)}, {hour(20), hour(46)}}, ofFailing},
		{"a quarter, of which most was before", []gap{{hour(-40), hour(10)}}, ""},
		{"still", []gap{{hour(99), time.Time{}}}, ofFailing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := comparison{Made: hour(100), To: hour(100)}
			f := &observed{since: begin, last: hour(100), failed: tt.failed}
			if c.choose(map[string]*observed{"f": f}, begin); f.left != tt.left {
				t.Errorf("it is left out for %q; want %q", f.left, tt.left)
			}
		})
	}
}

// TestSetBack: nothing that was found while the clock was ahead is dated later than the first look after that. Where
// the clock was right all is as it was.
func TestSetBack(t *testing.T) {
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	found := func(since, look, later time.Time) *observed {
		return &observed{
			since: since, looks: []time.Time{hour(1), look, later},
			items:  []found{{hour(1), hour(1), false}, {look, later, false}},
			failed: []gap{{hour(1), look}, {from: later}}, unseen: []gap{{hour(1), look}, {look, later}},
		}
	}
	for _, tt := range []struct {
		name      string
		got, want *observed
		now       time.Time
	}{
		{"ahead", found(hour(0), hour(700), hour(701)), found(hour(0), hour(5), hour(5)), hour(5)},
		{"ahead from the first on", found(hour(700), hour(701), hour(702)), found(hour(5), hour(5), hour(5)), hour(5)},
		{"right", found(hour(0), hour(2), hour(3)), found(hour(0), hour(2), hour(3)), hour(3)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got.setBack(tt.now); !reflect.DeepEqual(tt.got, tt.want) {
				t.Errorf("%+v; want %+v", tt.got, tt.want)
			}
		})
	}
}

// TestSeenOfManyFeeds: the time in which feeds were seen has no end at 292 years of all of them.
func TestSeenOfManyFeeds(t *testing.T) {
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	c, all := comparison{From: begin, To: begin.Add(7 * 24 * time.Hour)}, map[string]*observed{}
	for k := range 20_000 {
		all[strconv.Itoa(k)] = &observed{}
	}
	if kept, err := c.collect(all, begin); err != nil || math.Abs(kept.seen-7*24) > 1e-6 {
		t.Errorf("20 000 feeds were seen for %v hours in the mean (%v); want 168", kept.seen, err)
	}
}
