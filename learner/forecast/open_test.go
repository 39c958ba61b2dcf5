package forecast

import (
	"slices"
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
)

// TestOpen: limits hold while sources come and go.
func TestOpen(t *testing.T) {
	envtest.Open(t, func(terms env.Terms) env.DynamicLearner { return newLearner(terms, nil) })
}

// TestLineIsBounded: sources that come and go before it is their turn leave nothing behind in the line of new ones.
func TestLineIsBounded(t *testing.T) {
	const n = 20
	l := newLearner(env.Terms{Names: make([]string, n), Costs: slices.Repeat([]float64{1}, n), Budget: 1}, nil)
	o := &env.Online{Last: slices.Repeat([]int{-1}, n)}
	for range 1000 {
		l.Select(nil, o)
		o.Epoch++
		for i := 10; i < n; i++ {
			l.Remove(i)
			l.Add(i, 1)
		}
	}
	if line := len(l.Line); line > n {
		t.Errorf("%d sources wait in line, of %d", line, n)
	}
	for crawled := map[int]bool{}; len(crawled) < n; o.Epoch++ {
		for _, i := range l.Select(nil, o) {
			o.Last[i], crawled[i] = o.Epoch, true
			l.Update([]env.Crawled{{Source: i, Age: 1}}, &env.Online{Epoch: o.Epoch + 1})
		}
		if o.Epoch > 1000+5*n {
			t.Fatalf("%d of %d sources were crawled in %d epochs", len(crawled), n, 5*n)
		}
	}
}

// TestGroupsSleep: where groups have far more sources than their limits let be crawled, and these leave some of the
// budget, most sources sleep, so that an epoch does not look at all.
func TestGroupsSleep(t *testing.T) {
	const n = 2000
	l := newLearner(env.Terms{Names: make([]string, n), Costs: slices.Repeat([]float64{1}, n), Budget: 10}, nil)
	groups := slices.Repeat([]int32{1, 2, 3}, n)[:n]
	limits := &env.Limits{Budget: 10, PerGroup: 2, Group: groups, NotBefore: make([]int, n)}
	o := &env.Online{Epoch: 1000, Last: make([]int, n), Limits: limits}
	crawl := func(i, age int) env.Crawled {
		c := env.Crawled{Source: i, Age: age}
		for a := age - 1; a > 0; a -= 20 + i/10 {
			c.Items = append(c.Items, env.Item{Age: float64(a), Interest: 1})
		}
		return c
	}
	var crawls []env.Crawled
	for i := range n {
		o.Last[i] = 500 + i%500
		crawls = append(crawls, crawl(i, o.Last[i]))
	}
	l.Update(crawls, o)
	for range 50 {
		crawls = crawls[:0]
		selected := l.Select(nil, o)
		if len(selected) != 6 {
			t.Fatalf("%d crawls of three groups; want 2 of each", len(selected))
		}
		for _, i := range selected {
			crawls = append(crawls, crawl(i, o.Age(i)))
			o.Last[i] = o.Epoch
		}
		o.Epoch++
		l.Update(crawls, o)
	}
	if awake := len(l.Awake); awake > n/4 {
		t.Errorf("%d of %d sources are awake", awake, n)
	}
	if looked := len(l.waits); looked > n/4 {
		t.Errorf("%d of %d sources were looked at in the last epoch", looked, n)
	}
}
