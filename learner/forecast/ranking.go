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
	window float64 // M, epochs; 0 for none
}

// ceiling returns λξ̄/c and what the window leaves of it.
func (s *source) ceiling() (endless, ceiling float64) {
	b := s.inflow / s.decay
	if s.window == 0 {
		return b, b
	}
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

// foretell returns the index of source i, times its cost. What is not known is
// taken for better than it is thought, so that it is tried: a source whose decay
// is thought too fast is crawled too often for old items to show it; thought too
// slow, it waits, and they do.
func (l *Learner) foretell(i int, o *env.Online) float64 {
	b, doubt := l.est.Inflow(i)
	b *= math.Exp(l.set.Optimism * doubt)
	c, doubt := l.est.Decay(i)
	c *= math.Exp(-l.set.Optimism * doubt)
	s := source{inflow: b, decay: c, window: l.est.Window(i)}
	age := o.Age(i)
	if l.est.Even() {
		l.Waiting[i] = env.Decayed(c, min(float64(age), cmp.Or(s.window, math.Inf(1))))
	} else {
		l.Waiting[i] = l.gather(i, age, c, o)
		s.inflow *= l.est.Ahead(i, o.Epoch+1, math.Exp(-c))
	}
	l.Last[i] = o.Last[i]
	return whittle(&s, b*l.Waiting[i])
}

// gather returns what waits at source i for an inflow of 1 that has hours and
// days: with gₙ the share of the mean that epoch n has,
//
//	w(n+1) = αw(n) + gₙ(1 − α)/c
//
// It is a function of the view alone; where the last view was that of the epoch
// before, it goes on from there.
func (l *Learner) gather(i, age int, c float64, o *env.Online) (w float64) {
	alpha, gain := math.Exp(-c), env.Decayed(c, 1)
	if age > 1 && l.Epoch == o.Epoch-1 && l.Last[i] == o.Last[i] {
		return alpha*l.Waiting[i] + gain*l.est.Share(i, o.Epoch)
	}
	for k, f := 0, 1.0; k < age && f > 1e-9; k++ {
		w += f * gain * l.est.Share(i, o.Epoch-k)
		f *= alpha
	}
	return w
}

const (
	overdueShare = .25 // of the budget, at most, for overdue sources
	leastRounds  = 40  // that a source may wait by default, at least
)

// raiseOverdue puts sources first that were not crawled yet or have waited for too
// long, the longest first, as far as their share of the budget goes. The index
// alone may never come to a source while the best that are known take all of the
// budget.
func (l *Learner) raiseOverdue(o *env.Online) {
	if l.frozen {
		return
	}
	longest := cmp.Or(l.set.Longest, l.explore(o.Epoch))
	l.overdue = l.overdue[:0]
	for i, last := range o.Last {
		if (last < 0 || float64(o.Age(i)) >= longest) && l.terms.Affordable(i) && o.Allowed(i) {
			l.overdue = append(l.overdue, i)
		}
	}
	if len(l.overdue) == 0 {
		return
	}
	slices.SortStableFunc(l.overdue, func(i, j int) int { return cmp.Compare(o.Last[i], o.Last[j]) })
	l.Credit = min(l.Credit+overdueShare*l.terms.Budget, l.terms.Budget)
	for _, i := range l.overdue {
		if l.Credit < l.terms.Costs[i] {
			return
		}
		l.Credit -= l.terms.Costs[i]
		l.key[i] = math.Inf(1)
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
