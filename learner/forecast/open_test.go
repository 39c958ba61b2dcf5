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
