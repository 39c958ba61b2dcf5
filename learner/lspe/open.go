package lspe

import (
	"math"
	"slices"

	"ephemera/env"
)

var _ env.DynamicLearner = (*Learner)(nil)

// Add implements env.DynamicLearner. The source stands in line for its first crawl.
func (l *Learner) Add(i int, cost float64) {
	if i == len(l.src) {
		l.src, l.costs = append(l.src, Source{}), append(l.costs, math.Inf(1))
	}
	l.src[i].Last = -1
	l.setCost(i, cost)
	if !l.src[i].Queued {
		l.src[i].Queued = true
		l.unseen = append(l.unseen, int32(i))
	}
}

// Remove implements env.DynamicLearner. It takes as long as there are sources that wait, which
// are not more than an epoch's crawls.
func (l *Learner) Remove(i int) {
	s := &l.src[i]
	if s.Theta > 0 {
		l.planned(i, s.Theta, -1)
	}
	if _, asleep := l.ring.Wake(i); asleep {
		l.ring.Remove(i)
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(w Waiting) bool { return int(w.ID) == i })
	*s = Source{Last: -1, Queued: s.Queued}
	l.setCost(i, math.Inf(1))
}

// setCost changes the cost of source i, +Inf for a place that is free.
func (s *schedule) setCost(i int, cost float64) {
	if s.affordable(i) {
		s.total -= s.costs[i]
	}
	s.costs[i] = cost
	if s.affordable(i) {
		s.total += cost
	}
	s.round = max(1, s.total/s.budget)
	s.sel.SetCost(s.costs, i)
}

// setBudget takes up another budget.
func (s *schedule) setBudget(budget float64) {
	s.capacity *= budget / s.budget
	s.budget = budget
	s.total = budget * env.Terms{Costs: s.costs, Budget: budget}.Round()
	s.round = max(1, s.total/budget)
}

// firstCrawls takes sources from the front of the line, as many as the budget
// reaches, to be crawled before all others.
func (l *Learner) firstCrawls(o *env.Online) {
	l.ids, l.key = l.ids[:0], l.key[:0]
	left := l.budget
	for _, i := range l.unseen {
		if l.src[i].Cycles > 0 || !l.affordable(int(i)) || !o.Allowed(int(i)) {
			continue
		}
		if !env.Fits(l.costs[i], left) {
			break
		}
		left -= l.costs[i]
		l.ids, l.key = append(l.ids, i), append(l.key, newSourcePriority/float64(1+len(l.ids)))
	}
}

// newSourcePriority is far above every (s + ½)/reach.
const newSourcePriority = 1e100
