package baselines

import (
	"math"
	"slices"

	"ephemera/env"
)

const (
	reopened = 8  // crawls at the end of the budget that are chosen anew
	packed   = 16 // sources among which it chooses

	// By what share a set must be better to be looked for: among sources alike
	// all sets that use the budget are worth about the same.
	enough = 1e-3
)

// ending is the choice among the sources at the end of the budget.
type ending struct {
	n           int
	id          [packed]int
	cost, value [packed]float64
	top         float64 // the first key
	best        uint32  // the best set so far, a bit a source
	most        float64
}

// pack appends a set of the candidates that fits into the budget, as top does, and
// changes their order. Where costs differ, top's leaves budget unused or spends it on
// poor sources. So the crawls at the end of the budget, the last of that order that fit and
// the first that do not, are chosen anew as the set with the greatest, to 1 part
// in 1000,
//
//	Σ C key(i)
//
// within what the crawls before them leave: a knapsack of at most 16 sources. What
// then still fits is added in top's order. Where all crawls cost the same, or groups
// are limited, pack is top.
func (s *Selector) pack(dst []int, all []candidate) []int {
	if s.equal || s.grouped() {
		return s.top(dst, all)
	}
	heapify(all)
	from, left := len(dst), s.budget
	v := all // what is popped of all stays behind it in v, the last one first
	for len(all) > 0 && env.Fits(s.costs[all[0].id], left) {
		i := int(all[0].id)
		dst, left, all = append(dst, i), left-s.costs[i], pop(all)
	}
	e := &s.end
	e.n, e.best, e.most = 0, 0, 0
	last := v[len(all):][:min(reopened, len(dst)-from)]
	for _, c := range slices.Backward(last) {
		if !math.IsInf(c.key, 1) {
			e.add(c, s.costs)
			left += s.costs[c.id]
		}
	}
	dst = dst[:len(dst)-e.n]
	for e.n < packed && len(all) > 0 && env.Fits(s.least, left) {
		if c := all[0]; env.Fits(s.costs[c.id], left) {
			e.add(c, s.costs)
		}
		all = pop(all)
	}
	e.search(0, 0, 0, left)
	for j, i := range e.id[:e.n] {
		if e.best>>j&1 != 0 {
			dst, left = append(dst, i), left-s.costs[i]
		}
	}
	for j, i := range e.id[:e.n] {
		if e.best>>j&1 == 0 && env.Fits(s.costs[i], left) {
			dst, left = append(dst, i), left-s.costs[i]
		}
	}
	return s.fill(dst, all, left)
}

// add adds a source, by decreasing key. Values are over the first key, by which
// they stay finite; where that is not above 0 all are 0.
func (e *ending) add(c candidate, costs []float64) {
	if e.n == 0 {
		e.top = c.key
	}
	j, cost := e.n, costs[c.id]
	e.id[j], e.cost[j], e.value[j] = int(c.id), cost, 0
	if c.key > 0 {
		e.value[j] = cost * (c.key / e.top)
	}
	e.n++
}

// search tries what sources j and after can add to a set of that value which
// leaves so much of the budget.
func (e *ending) search(j int, set uint32, value, left float64) {
	if value > e.most {
		e.best, e.most = set, value
	}
	// No more can be had than by the sources in order, the last of them cut.
	bound, room := value, left
	for k := j; k < e.n && e.value[k] > 0 && room > 0; k++ {
		share := min(1, room/e.cost[k])
		bound += share * e.value[k]
		room -= share * e.cost[k]
	}
	if j == e.n || !(bound > e.most*(1+enough)) {
		return
	}
	if env.Fits(e.cost[j], left) {
		e.search(j+1, set|1<<j, value+e.value[j], left-e.cost[j])
	}
	e.search(j+1, set, value, left)
}
