// Package baselines holds what a learned policy is compared with.
//
//  1. A [Selector] crawls by decreasing index until the budget is used. Every
//     index policy, and the learners, share it.
//  2. Index policies differ in their index only: exact Whittle ([NewWhittle]),
//     Lagrangian ([NewLagrangian]), greedy by age ([NewGreedy]), myopic
//     ([NewMyopic]), round robin ([NewRoundRobin]) and the best sources only
//     ([NewBestSource]).
//  3. With the state observed, the index also knows what may still arrive: a
//     gainLaw is what a source gains in an epoch, [NewStochasticWhittle] the
//     policy of the true index, [NewLearnedStochasticWhittle] of the learned one.
//  4. A static schedule fixes the frequencies beforehand: [NewEvenSchedule].
//  5. Bounds say what no policy can exceed: [index.Bound] and [index.Relax], with
//     [NewRelaxedControl] as the control that keeps the budget on average,
//     [index.Foresight], and the exact optimum of small instances, [SolveOptimum].
//  6. What readers and crawlers do today ([NewEntryFrequency], [NewFixedInterval],
//     [NewCommaFeed], [NewNutch], [NewStormCrawler]) knows its own crawls only.
//  7. So do the learners: Q-learning of the index ([NewQWhittle]) and learned
//     thresholds ([NewSalmut]).
package baselines

import (
	"fmt"
	"math"
	"slices"

	"ephemera/env"
)

var negInf = math.Inf(-1)

// Selector picks the sources to crawl by decreasing key until the budget is
// used. A source that no longer fits is passed over and cheaper ones after it
// are still tried. Equal keys go to the lower number. It holds scratch space
// and is not safe for concurrent use.
type Selector struct {
	costs   []float64
	budget  float64
	equal   bool    // all costs are the same
	least   float64 // cheapest crawl
	scratch []candidate
	end     ending

	view *env.Online // whose limits hold
	used []int       // crawls of each group, 0 between choices
}

// candidate is a source that may be crawled, with its key.
type candidate struct {
	key float64
	id  int32
}

// before is the order of the selection: the higher key first, and of equal keys
// the lower number.
func before(a, b candidate) bool { return a.key > b.key || a.key == b.key && a.id < b.id }

// NewSelector returns the selector for costs C, in budget units, and a budget.
// It panics if a cost is not above 0 or the budget is negative or NaN.
func NewSelector(costs []float64, budget float64) *Selector {
	if !(budget >= 0) {
		panic(fmt.Sprintf("baselines: budget is %v; allowed is 0 or more", budget))
	}
	s := &Selector{costs: costs, budget: budget, least: math.Inf(1), view: new(env.Online)}
	for i, c := range costs {
		if !(c > 0) {
			panic(fmt.Sprintf("baselines: cost of source %d is %v; allowed is above 0", i, c))
		}
		s.least = min(s.least, c)
	}
	s.equal = !slices.ContainsFunc(costs, func(c float64) bool { return c != s.least && !math.IsInf(c, 1) })
	return s
}

// SetCost takes up costs of which that of source i is another than before, or is
// new; +Inf stands for a source that was removed.
func (s *Selector) SetCost(costs []float64, i int) {
	s.costs = costs
	if c := costs[i]; !math.IsInf(c, 1) {
		s.equal = math.IsInf(s.least, 1) || s.equal && c == s.least
		s.least = min(s.least, c)
	}
}

// Within has the choices that follow keep the limits of the view. A source that has
// to come first does so whatever its key.
func (s *Selector) Within(o *env.Online) *Selector {
	s.view = o
	if o.Limits != nil {
		s.budget = o.Limits.Budget
	}
	return s
}

// startList starts a list of candidates with those that have to come first.
func (s *Selector) startList() {
	s.scratch = s.scratch[:0]
	if l := s.view.Limits; l != nil {
		for _, i := range l.First {
			s.scratch = append(s.scratch, candidate{math.Inf(1), int32(i)})
		}
	}
}

// add adds a source to the candidates if it may be chosen.
func (s *Selector) add(key float64, id int32) {
	if !(key > negInf) {
		return
	}
	if l := s.view.Limits; l != nil {
		if _, first := slices.BinarySearch(l.First, int(id)); first || !s.view.Allowed(int(id)) {
			return
		}
		key = min(key, math.MaxFloat64) // behind those
	}
	s.scratch = append(s.scratch, candidate{key, id})
}

// Top appends the chosen sources to dst. A source whose key is NaN or −Inf is
// never chosen. It panics if there is not one key per source.
func (s *Selector) Top(dst []int, key []float64) []int { return s.top(dst, s.candidates(key)) }

// Among appends the chosen of some sources to dst; key[k] is that of source ids[k].
// Where costs differ, the last crawls of the budget are those that bring the most.
func (s *Selector) Among(dst []int, ids []int32, key []float64) []int {
	s.startList()
	for k, i := range ids {
		s.add(key[k], i)
	}
	return s.pack(dst, s.scratch)
}

// candidates returns the sources that may be chosen.
func (s *Selector) candidates(key []float64) []candidate {
	if len(key) != len(s.costs) {
		panic(fmt.Sprintf("baselines: %d keys for %d sources", len(key), len(s.costs)))
	}
	s.startList()
	s.scratch = slices.Grow(s.scratch, len(key))
	for i, k := range key {
		s.add(k, int32(i))
	}
	return s.scratch
}

// top appends the first of the candidates that fit, and changes their order.
func (s *Selector) top(dst []int, v []candidate) []int {
	heapify(v)
	return s.fill(dst, v, s.budget)
}

// fill appends what fits of a heap, in order.
func (s *Selector) fill(dst []int, heap []candidate, left float64) []int {
	from := len(dst)
	for len(heap) > 0 && env.Fits(s.least, left) {
		if i := int(heap[0].id); env.Fits(s.costs[i], left) && s.enter(i) {
			dst = append(dst, i)
			left -= s.costs[i]
		}
		heap = pop(heap)
	}
	if s.grouped() {
		for _, i := range dst[from:] {
			s.used[s.view.Limits.Group[i]] = 0
		}
	}
	return dst
}

// grouped reports whether the crawls of a group are limited.
func (s *Selector) grouped() bool { l := s.view.Limits; return l != nil && l.PerGroup > 0 }

// enter counts a crawl in the group of source i, and reports false where its group
// has no room for one.
func (s *Selector) enter(i int) bool {
	if !s.grouped() {
		return true
	}
	l := s.view.Limits
	g := int(l.Group[i])
	if g >= len(s.used) {
		s.used = append(s.used, make([]int, g+1-len(s.used))...)
	}
	if g != 0 && s.used[g] == l.PerGroup {
		return false
	}
	s.used[g]++
	return true
}

// heapify makes v a heap with the first in the order at its root.
func heapify(v []candidate) {
	for i := len(v)/2 - 1; i >= 0; i-- {
		sift(v, i)
	}
}

// pop takes the root out of a heap.
func pop(v []candidate) []candidate {
	n := len(v) - 1
	v[0], v[n] = v[n], v[0]
	sift(v[:n], 0)
	return v[:n]
}

func sift(v []candidate, i int) {
	for {
		c := 2*i + 1
		if c >= len(v) {
			return
		}
		if c+1 < len(v) && before(v[c+1], v[c]) {
			c++
		}
		if !before(v[c], v[i]) {
			return
		}
		v[i], v[c] = v[c], v[i]
		i = c
	}
}
