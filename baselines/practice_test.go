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

func TestEntryFrequencyByExample(t *testing.T) {
	for _, c := range []struct {
		name  string
		hours float64 // in an epoch
		ages  []float64
		want  float64
	}{
		{"nothing found", 1, nil, 24},
		{"one item a week is capped at a day", 1, []float64{10}, 24},
		{"14 items a week are one in 12 hours", 1, seq(14), 12},
		{"items older than a week do not count", 1, append([]float64{400, 168}, seq(14)...), 12},
		{"epochs of two hours", 2, append([]float64{84}, seq(14)...), 12},
		{"five minutes at least", 1, seq(5000), 5. / 60},
	} {
		p := NewEntryFrequency(hourly(1, 1, c.hours), Practice{}).(*practice)
		p.Update([]env.Crawled{crawlOf(0, c.ages...)}, after(1, 1000))
		if got := p.interval[0]; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: interval is %v hours, want %v", c.name, got, c.want)
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
	} {
		p := c.new(terms, Practice{}).(*practice)
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
	p := NewStormCrawler(hourly(4, 2, .5), Practice{}).(*practice)
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
