package baselines

import (
	"fmt"
	"math"

	"ephemera/env"
)

// Selector picks the sources to crawl by decreasing key until the budget is
// used. A source that no longer fits is passed over and cheaper ones after it
// are still tried. Equal keys go to the lower number. It holds scratch space
// and is not safe for concurrent use.
type Selector struct {
	costs   []float64
	budget  float64
	equal   bool    // all costs are the same
	least   float64 // cheapest crawl
	scratch []int
}

// NewSelector returns the selector for costs C, in budget units, and a budget.
// It panics if a cost is not above 0 or the budget is negative or NaN.
func NewSelector(costs []float64, budget float64) *Selector {
	if !(budget >= 0) {
		panic(fmt.Sprintf("baselines: budget is %v; allowed is 0 or more", budget))
	}
	s := &Selector{costs: costs, budget: budget, equal: true, scratch: make([]int, len(costs))}
	for i, c := range costs {
		if !(c > 0) {
			panic(fmt.Sprintf("baselines: cost of source %d is %v; allowed is above 0", i, c))
		}
		if i == 0 || c < s.least {
			s.least = c
		}
		s.equal = s.equal && c == costs[0]
	}
	return s
}

// Top appends the chosen sources to dst. A source whose key is NaN or −Inf is
// never chosen. It panics if there is not one key per source.
func (s *Selector) Top(dst []int, key []float64) []int { return s.TopWithin(dst, key, s.budget) }

// TopWithin is Top with another budget.
func (s *Selector) TopWithin(dst []int, key []float64, budget float64) []int {
	if len(key) != len(s.costs) {
		panic(fmt.Sprintf("baselines: %d keys for %d sources", len(key), len(s.costs)))
	}
	if len(key) == 0 {
		return dst
	}
	count := 0
	if s.equal {
		count = s.count(budget)
		if order := s.within(key, count); len(order) >= count {
			quickselect(order, key, count)
			return append(dst, order[:count]...)
		}
	}
	order := s.scratch[:0]
	for i, k := range key {
		if k > negInf {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return dst
	}
	if s.equal {
		k := min(len(order), count)
		quickselect(order, key, k)
		return append(dst, order[:k]...)
	}
	// A heap orders only as far as the budget reaches.
	for i := len(order)/2 - 1; i >= 0; i-- {
		siftDown(order, key, i)
	}
	left := budget
	for len(order) > 0 && env.Fits(s.least, left) {
		i := order[0]
		if env.Fits(s.costs[i], left) {
			dst = append(dst, i)
			left -= s.costs[i]
		}
		last := len(order) - 1
		order[0] = order[last]
		order = order[:last]
		siftDown(order, key, 0)
	}
	return dst
}

// sampled is how many keys stand for all, where there are many.
const sampled = 1024

// within returns the sources whose keys reach a level that, to judge by a
// sample, a few more than count of them reach. If at least count do, the
// selection is among them. It returns nothing where that would not pay.
func (s *Selector) within(key []float64, count int) []int {
	n := len(key)
	if n < 4*sampled || count > n/8 || count == 0 {
		return nil
	}
	sample := s.scratch[:0]
	for x := range sampled {
		if i := x * (n / sampled); key[i] > negInf {
			sample = append(sample, i)
		}
	}
	// Of the sample, share ± √share are expected among the first count.
	share := float64(count) * sampled / float64(n)
	rank := int(share+3*math.Sqrt(share)) + 4
	if rank > len(sample) {
		return nil
	}
	quickselect(sample, key, rank)
	level := math.Inf(1)
	for _, i := range sample[:rank] {
		level = math.Min(level, key[i])
	}
	order := s.scratch[:0]
	for i, k := range key {
		if k >= level {
			order = append(order, i)
		}
	}
	return order
}

// count returns how many crawls of equal cost fit into the budget.
func (s *Selector) count(budget float64) int {
	k := int(budget / s.least)
	if env.Fits(float64(k+1)*s.least, budget) { // the quotient was rounded down
		k++
	}
	return k
}

// before is the strict order of the selection: higher key first, then lower
// number.
func before(key []float64, i, j int) bool {
	return key[i] > key[j] || key[i] == key[j] && i < j
}

func siftDown(h []int, key []float64, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && before(key, h[c+1], h[c]) {
			c++
		}
		if !before(key, h[c], h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// quickselect moves the first k of the selection order to the front.
func quickselect(v []int, key []float64, k int) {
	lo, hi := 0, len(v)-1
	for lo < hi && k > lo && k <= hi {
		// Median of three, moved to the front as the pivot.
		mid := lo + (hi-lo)/2
		if before(key, v[mid], v[lo]) {
			v[mid], v[lo] = v[lo], v[mid]
		}
		if before(key, v[hi], v[lo]) {
			v[hi], v[lo] = v[lo], v[hi]
		}
		if before(key, v[hi], v[mid]) {
			v[hi], v[mid] = v[mid], v[hi]
		}
		p := v[mid]
		i, j := lo, hi
		for i <= j {
			for before(key, v[i], p) {
				i++
			}
			for before(key, p, v[j]) {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i+1:
			lo = i
		default:
			return
		}
	}
}
