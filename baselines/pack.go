package baselines

import (
	"math"

	"ephemera/baselines/order"
	"ephemera/env"
)

const (
	reopened = 8  // crawls at the end of the budget that Pack chooses anew
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
	best        uint32 // the best set so far, a bit a source
	most        float64
}

// Pack appends a set of sources that fits into the budget, as Top does. Where
// costs differ, Top's order leaves budget unused or spends it on poor sources.
// So the crawls at the end of the budget, the last of Top's order that fit and
// the first that do not, are chosen anew as the set with the greatest, to 1 part
// in 1000,
//
//	Σ C worth(i)
//
// within what the crawls before them leave: a knapsack of at most 16 sources. What
// then still fits is added in Top's order. worth is what a budget unit spent on
// the source brings; nil stands for its key. Where all crawls cost the same Pack
// is Top.
func (s *Selector) Pack(dst []int, key []float64, worth func(i int) float64) []int {
	if s.equal {
		return s.Top(dst, key)
	}
	s.check(key)
	all := s.heap(key)
	if len(all) == 0 {
		return dst
	}
	had, left := len(dst), s.budget
	for len(all) > 0 && env.Fits(s.costs[all[0].ID], left) {
		i := int(all[0].ID)
		dst, left, all = append(dst, i), left-s.costs[i], order.Pop(all)
	}
	e := &s.end
	e.n, e.best, e.most = 0, 0, 0
	from := max(had, len(dst)-reopened)
	for from < len(dst) && math.IsInf(key[dst[from]], 1) {
		from++
	}
	for _, i := range dst[from:] {
		e.add(i)
		left += s.costs[i]
	}
	dst = dst[:from]
	for e.n < packed && len(all) > 0 && env.Fits(s.least, left) {
		if i := int(all[0].ID); env.Fits(s.costs[i], left) {
			e.add(i)
		}
		all = order.Pop(all)
	}
	e.weigh(s.costs, key, worth)
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

func (e *ending) add(i int) {
	e.id[e.n] = i
	e.n++
}

// weigh sets costs and values, and puts the sources in the order of their worth.
func (e *ending) weigh(costs, key []float64, worth func(i int) float64) {
	for j, i := range e.id[:e.n] {
		w := key[i]
		if worth != nil {
			w = worth(i)
		}
		for ; j > 0 && e.value[j-1] < w; j-- {
			e.id[j], e.value[j] = e.id[j-1], e.value[j-1]
		}
		e.id[j], e.value[j] = i, w
	}
	top := e.value[0] // by which values stay finite
	for j, i := range e.id[:e.n] {
		e.cost[j] = costs[i]
		e.value[j] = max(0, costs[i]*(e.value[j]/top))
	}
	if !(top > 0) {
		clear(e.value[:])
	}
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
