package forecast

import (
	"cmp"
	"math"
	"slices"

	"ephemera/baselines/index"
	"ephemera/env"
)

// optimistic returns a source as it is foretold. What is not known is taken for better
// than it is thought, so that it is tried: a source whose decay is thought too fast is
// crawled too often for old items to show it; thought too slow, it waits, and they do.
func (l *Learner) optimistic(i int) env.Source {
	if l.fixed != nil && l.fixed[i].Rate > 0 {
		return l.fixed[i]
	}
	if l.pages != nil {
		return l.page(i)
	}
	s, ofInflow, ofDecay := l.est.Source(i)
	s.Decay *= math.Exp(-l.set.Optimism * ofDecay)
	s.Interest *= math.Exp(l.set.Optimism * ofInflow)
	s.Cost = l.terms.Costs[i]
	if l.fixed != nil {
		l.fixed[i] = s
	}
	return s
}

// foretell returns the index of source i, thought to be s, times its cost.
func (l *Learner) foretell(i int, s env.Source, o *env.Online) float64 {
	switch age := float64(o.Age(i)); s.Law {
	case env.LawDelay:
		return l.foretellDelay(i, s, o.Epoch, age)
	case env.LawDeadline:
		return l.foretellDeadline(i, s, o.Epoch, age)
	case env.LawFreshness:
		return index.Page(s.Decay, s.Interest, age+l.ahead(i))
	}
	return l.foretellInterest(i, s, o)
}

// foretellDelay is the index of the delay, whose kth power an item costs. In the last a
// epochs the source has published at a rate of behind times its mean, and in the next a it
// will at one of ahead. At that rate what has waited so far would cost as much per epoch
// after
//
//	η = a(behind/ahead)^(1/k)
//
// epochs, and of these it has the index: Λ·ahead·k/(k + 1)·η^(k+1) where they are many, and
//
//	Cγ(η) = (η + 1)H(η) − ηH(η + 1),   H(η) = −Λ·ahead·η^(k+1)/(k + 1)
//
// of whole epochs.
func (l *Learner) foretellDelay(i int, s env.Source, epoch int, age float64) float64 {
	behind, ahead := l.est.Between(i, epoch, -age), l.est.Between(i, epoch, age)
	rate := s.Rate
	s.Rate *= ahead
	eta := age * math.Pow(behind/ahead, 1/cmp.Or(s.Shape, 1))
	return (eta+1)*s.Harvest(eta) - eta*s.Harvest(eta+1) + l.lost(i, rate*behind*age)
}

// lost is what the index of the delay has besides where a source shows n items at most, and
// x are expected to wait there: what it no longer shows is lost, and a lost item costs as much
// as one that is found after D, a day or, if that is longer, two rounds of all sources. As
// many as wait are about normal, with the variance v = φx of a source that publishes in
// bursts, and a whole number. With z = (x − n + ½)/√v and C(t) = DΛ P(N(t) ≥ n)
//
//	aC(a) − ∫₀ᵃ C(t) dt = D(x P(N ≥ n) − E(N − n)⁺) = D(nΦ(z) − √v φ(z))
func (l *Learner) lost(i int, x float64) float64 {
	n := l.est.Shows(i)
	if n == 0 || x <= 0 {
		return 0
	}
	v := l.est.Bursts(i) * x
	z := (x - (n - .5)) / math.Sqrt(v)
	items := n*math.Erfc(-z/math.Sqrt2)/2 - math.Sqrt(v/(2*math.Pi))*math.Exp(-z*z/2)
	return math.Pow(max(l.day(), 2*l.round), l.terms.Objective.Exponent) * max(0, items)
}

// day returns how many epochs a day has; one without a length is an hour.
func (l *Learner) day() float64 { return 86400 / cmp.Or(l.terms.Length, 3600) }

// foretellDeadline is the index of what is found in time, with what waits as the hours
// behind have brought it.
func (l *Learner) foretellDeadline(i int, s env.Source, epoch int, age float64) float64 {
	behind := l.est.Between(i, epoch, -min(age, s.Lifetime()))
	return behind * ((age+1)*s.Harvest(age) - age*s.Harvest(age+1))
}

// foretellInterest is the index of interest that decays: what waits
// there and what is to come follow from the hours and days behind and ahead. Both are counted over those
// of all sources: sources sleep until they reach a price, which is to be much the same
// at all hours.
func (l *Learner) foretellInterest(i int, s env.Source, o *env.Online) float64 {
	age, alpha := float64(o.Age(i)), s.Factor()
	behind, ofAll := l.est.Share(i, o.Epoch, -1, min(age, s.Window), alpha)
	x := s.Harvest(age) * behind / ofAll
	ahead, ofAll := l.est.Share(i, o.Epoch, 1, math.Inf(1), alpha)
	s.Rate, s.Window = s.Rate*ahead/ofAll, s.Window/ahead
	return whittle(s, x)
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
func whittle(s env.Source, x float64) float64 {
	b, top := s.Rate*s.Interest/s.Decay, s.Harvest(math.Inf(1))
	if x >= top*(1-1e-12) {
		return x
	}
	return x + math.Log1p(-x/b)/s.Decay*min((1-s.Factor())*(b-x), top-x)
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
	for k, i := range l.Awake {
		if i := int(i); (o.Last[i] < 0 || float64(o.Age(i)) >= longest) && l.terms.Affordable(i) && o.Allowed(i) {
			l.order = append(l.order, k)
		}
	}
	slices.SortFunc(l.order, func(j, k int) int {
		return cmp.Or(cmp.Compare(o.Last[l.Awake[j]], o.Last[l.Awake[k]]), cmp.Compare(l.Awake[j], l.Awake[k]))
	})
	l.Credit = min(l.Credit+overdueShare*l.terms.Budget, l.terms.Budget)
	for _, k := range l.order {
		cost := l.terms.Costs[l.Awake[k]]
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
	return max(leastRounds*l.round, min(float64(epoch)/2, cmp.Or(l.set.Horizon, never)))
}
