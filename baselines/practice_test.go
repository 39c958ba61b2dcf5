package baselines

import (
	"math"
	"slices"
	"testing"

	"ephemera/env"
)

// hourly are terms of n sources whose epochs last so many hours.
func hourly(n int, budget, hours float64) env.Terms {
	t := env.Terms{Names: make([]string, n), Costs: make([]float64, n), Budget: budget, Length: hours * 3600}
	for i := range t.Costs {
		t.Costs[i] = 1
	}
	return t
}

// after returns what is seen at an epoch when all sources were crawled at the
// one before.
func after(n, epoch int) *env.Online {
	o := &env.Online{Epoch: epoch, Last: make([]int, n)}
	for i := range o.Last {
		o.Last[i] = epoch - 1
	}
	return o
}

// crawlOf is a crawl that found items of these ages, in epochs.
func crawlOf(source int, ages ...float64) env.Crawled {
	c := env.Crawled{Source: source, Age: 1}
	for _, a := range ages {
		c.Items = append(c.Items, env.Item{Age: a, Interest: 1})
		c.Interest++
	}
	return c
}

// The examples follow the query of Storage.WeeklyFeedEntryCount: a week over the mean gap
// of the items of the last week, rounded up, and 0 with fewer than two.
func TestEntryFrequencyByExample(t *testing.T) {
	for _, c := range []struct {
		name  string
		hours float64 // in an epoch
		ages  []float64
		want  float64
	}{
		{"nothing found", 1, nil, 24},
		{"one item has no gap", 1, []float64{10}, 24},
		{"two items of one time have none either", 1, []float64{10, 10}, 24},
		{"a gap of 12 hours is 14 items a week", 1, []float64{40, 28, 16}, 12},
		{"a gap of 3.3 hours is 51 items a week", 1, []float64{10, 6.7}, 168. / 51},
		{"the first of a feed that is new are not taken for a week's", 1, []float64{3, 2, 1}, 1},
		{"items older than a week do not count", 1, []float64{400, 168.5, 40, 28}, 12},
		{"those of just a week do", 1, []float64{168, 166}, 2},
		{"a gap of a day and more is a day", 1, []float64{150, 100, 50}, 24},
		{"epochs of two hours", 2, []float64{84.5, 40, 34}, 12},
		{"five minutes at least", 1, seq(5000), 5. / 60},
	} {
		p := NewEntryFrequency(hourly(1, 1, c.hours), Practice{}).(*practice)
		p.Update([]env.Crawled{crawlOf(0, c.ages...)}, after(1, 1000))
		if got := p.interval[0]; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: interval is %v hours, want %v", c.name, got, c.want)
		}
	}
}

// Miniflux counts before it asks, and so what is found acts from the next crawl on; at
// each crawl the interval is that of the items that are a week old or less by then.
func TestEntryFrequencyOverTime(t *testing.T) {
	p := NewEntryFrequency(hourly(1, 1, 1), Practice{}).(*practice)
	var published []float64 // before the crawl
	for epoch := 5; epoch < 2000; epoch += 5 {
		var ages []float64
		for at := epoch - 5; at < epoch; at++ {
			if at%(2+at/100) == 0 { // ever more rarely
				ages = append(ages, float64(epoch-at))
			}
		}
		c := crawlOf(0, ages...)
		p.Update([]env.Crawled{c}, after(1, epoch+1))
		if epoch == 5 {
			for _, a := range ages {
				published = append(published, float64(epoch)-a)
			}
		}
		n, first, last := 0., math.Inf(1), math.Inf(-1)
		for _, at := range published {
			if at >= float64(epoch)-168 {
				n, first, last = n+1, min(first, at), max(last, at)
			}
		}
		want := 24.
		if n > 1 {
			want = min(24, 168/math.Ceil(168/((last-first)/(n-1))))
		}
		if got := p.interval[0]; math.Abs(got-want) > 1e-12 {
			t.Fatalf("epoch %d: interval is %v hours, want %v", epoch, got, want)
		}
		for _, a := range ages {
			if epoch > 5 {
				published = append(published, float64(epoch)-a)
			}
		}
	}
}

// The examples follow FeedRefreshIntervalCalculator with its defaults, five minutes and
// four hours, and FeedParser.averageTimeBetweenEntries.
func TestCommaFeedByExample(t *testing.T) {
	const d = 24
	for _, c := range []struct {
		name string
		ages []float64
		want float64
	}{
		{"no item", nil, 4},
		{"one item has no gap", []float64{2}, 4},
		{"a gap of an hour", []float64{4, 3, 2}, .5},
		{"half of a long gap is an hour at most", []float64{4 * d, 3 * d}, 1},
		{"five minutes at least", []float64{.3, .2, .1}, 5. / 60},
		{"the last is a week old", []float64{8 * d, 7 * d}, 1},
		{"the last is two weeks old", []float64{14*d + 1, 14 * d}, 2},
		{"the last is 30 days old", []float64{30*d + 1, 30 * d}, 4},
		{"one of ten days", []float64{10 * d}, 1},
		{"twenty items are shown", append([]float64{6 * d}, seq(20)...), 5. / 60},
	} {
		p := NewCommaFeed(hourly(1, 1, 1), Practice{}).(*practice)
		p.Update([]env.Crawled{crawlOf(0, c.ages...)}, after(1, 2000))
		if got := p.interval[0]; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: interval is %v hours, want %v", c.name, got, c.want)
		}
	}
	// Crawls that find nothing look at the same items again.
	p := NewCommaFeed(hourly(1, 1, 1), Practice{}).(*practice)
	p.Update([]env.Crawled{crawlOf(0, 4, 3, 2)}, after(1, 100))
	for _, c := range []struct {
		epoch int
		want  float64
	}{{101, .5}, {99 + 7*d - 3, .5}, {99 + 7*d - 2, 1}, {99 + 14*d - 2, 2}, {99 + 30*d - 2, 4}} {
		if p.Update([]env.Crawled{crawlOf(0)}, after(1, c.epoch+1)); p.interval[0] != c.want {
			t.Errorf("epoch %d: interval is %v hours, want %v", c.epoch, p.interval[0], c.want)
		}
	}
}

// FreshRSS asks every 60 minutes, whatever is found, who was asked longest ago first.
func TestFixedInterval(t *testing.T) {
	p := NewFixedInterval(hourly(3, 1, .5), Practice{Due: true}).(byHarvest).practice
	p.Update([]env.Crawled{crawlOf(0, seq(30)...), crawlOf(1)}, after(3, 7))
	if !slices.Equal(p.interval, []float64{1, 1, 1}) {
		t.Errorf("intervals %v; want an hour", p.interval)
	}
	for _, c := range []struct {
		last []int
		want []int
	}{{[]int{9, 9, 9}, nil}, {[]int{8, 9, 9}, []int{0}}, {[]int{7, 5, 6}, []int{1}}, {[]int{7, 5, -1}, []int{2}}} {
		if got := p.Select(nil, &env.Online{Epoch: 10, Last: c.last}); !slices.Equal(got, c.want) {
			t.Errorf("last crawls %v: selects %v; want %v", c.last, got, c.want)
		}
	}
}

// seq returns n ages within the last half hour, oldest first.
func seq(n int) []float64 {
	v := make([]float64, n)
	for k := range v {
		v[k] = .5 * float64(n-k) / float64(n)
	}
	return v
}

func TestAdaptiveByExample(t *testing.T) {
	terms := hourly(2, 1, 1)
	item, none := crawlOf(0, .5), crawlOf(0)
	nutch, storm := NewNutch, NewStormCrawler
	for _, c := range []struct {
		name  string
		new   func(env.Terms, Practice) env.Learner[env.Online]
		start float64 // 0 for its own
		finds []env.Crawled
		want  float64
	}{
		{"Nutch found", nutch, 100, []env.Crawled{item}, 80},
		{"Nutch found nothing", nutch, 100, []env.Crawled{none}, 140},
		{"Nutch both", nutch, 100, []env.Crawled{item, item, none}, 100 * .8 * .8 * 1.4},
		{"Nutch's shortest", nutch, 1. / 60, []env.Crawled{item}, 1. / 60},
		{"Nutch's longest", nutch, 364 * 24, []env.Crawled{none}, 365 * 24},
		{"Nutch's start is round robin", nutch, 0, []env.Crawled{none}, 2 * 1.4},
		{"StormCrawler found", storm, 0, []env.Crawled{item}, 12.5},
		{"StormCrawler found nothing", storm, 0, []env.Crawled{none}, 36},
		{"StormCrawler both", storm, 0, []env.Crawled{item, item, none}, 1.5 * (.5*12.5 + .5)},
		{"StormCrawler's shortest", storm, 1, []env.Crawled{item}, 1},
		{"StormCrawler's longest", storm, 300, []env.Crawled{none}, 336},
		{"interest without items is a find", storm, 0, []env.Crawled{{Age: 1, Interest: 2}}, 12.5},
		{"so is what items have cost", nutch, 100, []env.Crawled{{Age: 1, Interest: -2}}, 80},
	} {
		p := c.new(terms, Practice{}).(byHarvest).practice
		if c.start > 0 {
			p.interval[0] = c.start
		}
		for k, f := range c.finds {
			p.Update([]env.Crawled{f}, after(2, k+1))
		}
		if got := p.interval[0]; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: interval is %v hours, want %v", c.name, got, c.want)
		}
	}
}

func TestPracticeCrawlsTheMostOverdue(t *testing.T) {
	p := NewStormCrawler(hourly(4, 2, .5), Practice{}).(byHarvest).practice
	p.interval = []float64{2, 10, 300, 1}
	// Ages of 8, 20, 700 and 1 epochs are 4, 10, 350 and .5 hours.
	o := &env.Online{Epoch: 1000, Last: []int{992, 980, 300, 999}}
	if got := p.Select(nil, o); !slices.Equal(sorted(got), []int{0, 2}) {
		t.Errorf("2, 0, 50 and −.5 hours overdue: crawled %v, want 0 and 2", got)
	}
	p.Relative = true
	o.Last[2] = 500 // 250 of 300 hours
	if got := p.Select(nil, o); !slices.Equal(sorted(got), []int{0, 1}) {
		t.Errorf("at 2, 1, .83 and .5 of the interval: crawled %v, want 0 and 1", got)
	}
	// A source that was never crawled is due at once, and was not for longest.
	p.Relative = false
	o = &env.Online{Epoch: 5, Last: []int{4, 4, -1, 4}}
	if got := p.Select(nil, o); !slices.Contains(got, 2) {
		t.Errorf("crawled %v, want the source among them that was never crawled", got)
	}
}

func sorted(v []int) []int {
	v = slices.Clone(v)
	slices.Sort(v)
	return v
}
