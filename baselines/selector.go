package baselines

import (
	"fmt"
	"math"
	"slices"

	"ephemera/baselines/order"
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
	scratch []order.Item
	end     ending
}

// NewSelector returns the selector for costs C, in budget units, and a budget.
// It panics if a cost is not above 0 or the budget is negative or NaN.
func NewSelector(costs []float64, budget float64) *Selector {
	if !(budget >= 0) {
		panic(fmt.Sprintf("baselines: budget is %v; allowed is 0 or more", budget))
	}
	s := &Selector{costs: costs, budget: budget, equal: equal(costs), scratch: make([]order.Item, len(costs))}
	for i, c := range costs {
		if !(c > 0) {
			panic(fmt.Sprintf("baselines: cost of source %d is %v; allowed is above 0", i, c))
		}
		if i == 0 || c < s.least {
			s.least = c
		}
	}
	return s
}

// equal reports whether all crawls cost the same.
func equal(costs []float64) bool {
	return !slices.ContainsFunc(costs, func(c float64) bool { return c != costs[0] })
}

// Top appends the chosen sources to dst. A source whose key is NaN or −Inf is
// never chosen. It panics if there is not one key per source.
func (s *Selector) Top(dst []int, key []float64) []int {
	s.check(key)
	if !s.equal {
		return s.fill(dst, s.heap(key), s.budget)
	}
	if len(key) == 0 {
		return dst
	}
	count := env.HowMany(len(key), s.least, s.budget)
	if some := s.within(key, count); len(some) >= count {
		return first(dst, some, count)
	}
	all := s.all(key)
	return first(dst, all, min(len(all), count))
}

func (s *Selector) check(key []float64) {
	if len(key) != len(s.costs) {
		panic(fmt.Sprintf("baselines: %d keys for %d sources", len(key), len(s.costs)))
	}
}

// all returns the sources that may be chosen.
func (s *Selector) all(key []float64) []order.Item {
	v := s.scratch[:0]
	for i, k := range key {
		if k > negInf {
			v = append(v, order.Item{Key: k, ID: int32(i)})
		}
	}
	return v
}

// heap is all as a heap, which orders only as far as the budget reaches.
func (s *Selector) heap(key []float64) []order.Item {
	v := s.all(key)
	order.Heapify(v)
	return v
}

// fill appends what fits of a heap, in order.
func (s *Selector) fill(dst []int, heap []order.Item, left float64) []int {
	for len(heap) > 0 && env.Fits(s.least, left) {
		if i := int(heap[0].ID); env.Fits(s.costs[i], left) {
			dst = append(dst, i)
			left -= s.costs[i]
		}
		heap = order.Pop(heap)
	}
	return dst
}

// first appends the first n in the order to dst.
func first(dst []int, v []order.Item, n int) []int {
	order.First(v, n)
	for _, p := range v[:n] {
		dst = append(dst, int(p.ID))
	}
	return dst
}

// sampled is how many keys stand for all, where there are many.
const sampled = 1024

// within returns the sources whose keys reach a level that, to judge by a
// sample, a few more than count of them reach. If at least count do, the
// selection is among them. It returns nothing where that would not pay.
func (s *Selector) within(key []float64, count int) []order.Item {
	n := len(key)
	if n < 4*sampled || count > n/8 || count == 0 {
		return nil
	}
	sample := s.scratch[:0]
	for x := range sampled {
		if i := x * (n / sampled); key[i] > negInf {
			sample = append(sample, order.Item{Key: key[i], ID: int32(i)})
		}
	}
	// Of the sample, share ± √share are expected among the first count.
	share := float64(count) * sampled / float64(n)
	rank := int(share+3*math.Sqrt(share)) + 4
	if rank > len(sample) {
		return nil
	}
	order.First(sample, rank)
	level := math.Inf(1)
	for _, p := range sample[:rank] {
		level = math.Min(level, p.Key)
	}
	some := s.scratch[:0]
	for i, k := range key {
		if k >= level {
			some = append(some, order.Item{Key: k, ID: int32(i)})
		}
	}
	return some
}
