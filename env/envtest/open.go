package envtest

import (
	"math"
	"slices"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// Open checks that a learner keeps its limits at every epoch while sources come and
// go, the budget changes, crawls fail, and sources are crawled that it did not
// select. The learner begins with the sources of the terms.
func Open(t *testing.T, newLearner func(env.Terms) env.DynamicLearner) {
	t.Helper()
	r := stream.New(1, stream.Test)
	terms := env.Terms{Budget: 4}
	for range 6 {
		terms.Names, terms.Costs = append(terms.Names, ""), append(terms.Costs, 1)
	}
	l := newLearner(terms)
	costs := slices.Clone(terms.Costs)
	n := len(costs)
	limits := env.Limits{Budget: terms.Budget, NotBefore: make([]int, n), Group: make([]int32, n), PerGroup: 2}
	o := env.Online{Last: slices.Repeat([]int{-1}, n), Limits: &limits}
	for i := range limits.Group {
		limits.Group[i] = int32(i % 3)
	}
	crawled := 0
	for o.Epoch < Epochs {
		for range r.Intn(3) {
			i := r.Intn(len(costs) + 1)
			switch {
			case i == len(costs):
				costs = append(costs, 0)
				o.Last = append(o.Last, -1)
				limits.NotBefore, limits.Group = append(limits.NotBefore, 0), append(limits.Group, int32(i%3))
				fallthrough
			case math.IsInf(costs[i], 1):
				costs[i] = []float64{1, 1, 2, .5}[r.Intn(4)]
				o.Last[i], limits.NotBefore[i] = -1, 0
				l.Add(i, costs[i])
			case len(costs) > 20:
				costs[i] = math.Inf(1)
				l.Remove(i)
			default:
				limits.NotBefore[i] = o.Epoch + r.Intn(30)
			}
		}
		if r.Intn(20) == 0 {
			limits.Budget = 2 + float64(r.Intn(5))
		}
		limits.First = limits.First[:0]
		if i := r.Intn(len(costs)); costs[i] <= limits.Budget && o.Allowed(i) {
			limits.First = append(limits.First, i)
		}
		got := l.Select(nil, &o)
		var sum float64
		group := map[int32]int{}
		for k, i := range got {
			sum += costs[i]
			group[limits.Group[i]]++
			if !o.Allowed(i) || slices.Contains(got[:k], i) {
				t.Fatalf("epoch %d: Select returned %v; source %d is barred until epoch %d",
					o.Epoch, got, i, limits.NotBefore[i])
			}
		}
		if !env.Fits(sum, limits.Budget) || group[1] > limits.PerGroup || group[2] > limits.PerGroup {
			t.Fatalf("epoch %d: Select returned %v, which costs %v of %v, with %v crawls by group; allowed are %d",
				o.Epoch, got, sum, limits.Budget, group, limits.PerGroup)
		}
		for _, i := range limits.First {
			if !slices.Contains(got, i) {
				t.Fatalf("epoch %d: Select returned %v without source %d, which has waited for too long",
					o.Epoch, got, i)
			}
		}
		crawled += len(got)
		if i := r.Intn(len(costs)); !math.IsInf(costs[i], 1) && !slices.Contains(got, i) {
			got = append(got, i) // a push
		}
		var crawls []env.Crawled
		for _, i := range got {
			if i%5 == 0 {
				continue // it fails
			}
			age := o.Age(i)
			items := []env.Item{{Age: float64(age) * r.Float64(), Interest: float64(1 + i)}}
			crawls = append(crawls, env.Crawled{Source: i, Age: age, Interest: float64(1 + i), Items: items})
			o.Last[i] = o.Epoch
		}
		o.Epoch++
		l.Update(crawls, &o)
	}
	if crawled < Epochs {
		t.Fatalf("%d crawls were selected in %d epochs", crawled, Epochs)
	}
}
