package forecast

import (
	"cmp"
	"math"
	"slices"

	"ephemera/env"
)

// source is a source as it is foretold.
type source struct {
	inflow float64 // λξ̄ in the time to come, interest per epoch
	decay  float64 // c, 1/epoch
	window float64 // M, epochs; +Inf for none
}

// ceiling returns λξ̄/c and what the window leaves of it.
func (s *source) ceiling() (endless, ceiling float64) {
	b := s.inflow / s.decay
	return b, b * -math.Expm1(-s.decay*s.window)
}

// whittle returns Whittle's index of a state x, times the cost. A source with the
// inflow to come would have this state at the age η; what is there is held
// against what η epochs would bring at the rate of the next one:
//
//	Cγ(x) = x − η(x⁺ − x),   η = log_α(1 − x/b),   b = λξ̄/c
//
// It is the form of the Remark below Theorem 1 of TCNS, with what the window
// leaves of the growth x⁺ − x = (1 − α)(b − x), and x where nothing is added. The
// inflow is that of the time to come: one that is about to rise is worth waiting
// for; where one falls, what waits only decays.
func whittle(s *source, x float64) float64 {
	b, top := s.ceiling()
	if x >= top*(1-1e-12) {
		return x
	}
	return x + math.Log1p(-x/b)/s.decay*min(-math.Expm1(-s.decay)*(b-x), top-x)
}

// optimistic returns a source as it is foretold. What is not known is taken for better
// than it is thought, so that it is tried: a source whose decay is thought too fast is
// crawled too often for old items to show it; thought too slow, it waits, and they do.
func (l *Learner) optimistic(i int) source {
	b, doubt := l.est.Inflow(i)
	b *= math.Exp(l.set.Optimism * doubt)
	c, doubt := l.est.Decay(i)
	c *= math.Exp(-l.set.Optimism * doubt)
	return source{inflow: b, decay: c, window: l.est.Window(i)}
}

// foretell returns the index of a source, times its cost. Hours that are the same at
// all sources raise the price of a crawl with what it brings: what waits and what is to
// come are counted over those of all.
func (l *Learner) foretell(w *awake, o *env.Online) float64 {
	i := int(w.ID)
	s := l.optimistic(i)
	b, c := s.inflow, s.decay
	age, wave := o.Age(i), 1.
	if l.est.Even() {
		w.Waiting = env.Decayed(c, min(float64(age), s.window))
	} else {
		l.gather(w, s.window, c, o)
		share, overAll := l.est.Ahead(i, o.Epoch+1, math.Exp(-c))
		s.inflow, s.window = s.inflow*overAll, s.window/share
		wave = l.est.Wave(o.Epoch)
	}
	return whittle(&s, b*w.Waiting/wave)
}

// gather finds what waits at a source for an inflow of 1 that has hours and days: with
// gₙ the share of the mean that epoch n has,
//
//	w(n+1) = αw(n) + gₙ(1 − α)/c
//
// as far back as Σgₙ stays within its window. It is a function of the view alone; where
// the source was awake in the epoch before and has no window, it goes on from there.
func (l *Learner) gather(w *awake, window, c float64, o *env.Online) {
	i, alpha, gain := int(w.ID), math.Exp(-c), env.Decayed(c, 1)
	age := o.Age(i)
	if age > 1 && math.IsInf(window, 1) && l.Epoch == o.Epoch-1 && w.Waiting >= 0 {
		w.Waiting = alpha*w.Waiting + gain*l.est.Share(i, o.Epoch)
		return
	}
	w.Waiting = 0
	for k, f := 0, 1.0; k < age && f > 1e-9 && window > 0; k++ {
		g := l.est.Share(i, o.Epoch-k)
		w.Waiting += f * gain * min(g, window)
		window -= g
		f *= alpha
	}
}

const (
	overdueShare = .25 // of the budget, at most, for overdue sources
	leastRounds  = 40  // that a source may wait by default, at least
)

// raiseOverdue puts sources first that were not crawled yet or have waited for too
// long, the longest first, as far as their share of the budget goes. The index
// alone may never come to a source while the best that are known take all of the
// budget.
func (l *Learner) raiseOverdue(o *env.Online, longest float64) {
	if l.frozen {
		return
	}
	l.order = l.order[:0]
	for k, i := range l.ids {
		if i := int(i); (o.Last[i] < 0 || float64(o.Age(i)) >= longest) && l.terms.Affordable(i) && o.Allowed(i) {
			l.order = append(l.order, k)
		}
	}
	if len(l.order) == 0 {
		return
	}
	slices.SortFunc(l.order, func(j, k int) int {
		return cmp.Or(cmp.Compare(o.Last[l.ids[j]], o.Last[l.ids[k]]), cmp.Compare(l.ids[j], l.ids[k]))
	})
	l.Credit = min(l.Credit+overdueShare*l.terms.Budget, l.terms.Budget)
	for _, k := range l.order {
		cost := l.terms.Costs[l.ids[k]]
		if l.Credit < cost {
			return
		}
		l.Credit -= cost
		l.key[k] = math.Inf(1)
	}
}

// explore returns how long a source may wait by default. Crawls of each source
// after a time that doubles are enough to learn a world that does not change (Lai
// and Robbins, 1985, ask for a number that grows with the logarithm of time); one
// that changes is looked at again when what was seen of it is forgotten. No more
// than a fortieth of the budget goes there.
func (l *Learner) explore(epoch int) float64 {
	longest := float64(epoch) / 2
	if l.set.Horizon > 0 {
		longest = min(longest, l.set.Horizon)
	}
	return max(longest, leastRounds*l.round)
}
