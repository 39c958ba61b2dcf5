package forecast

import (
	"cmp"
	"math"
	"slices"

	"ephemera/baselines"
	"ephemera/env"
)

// ranking is Whittle's index of the state that is foretold, and crawls of sources
// that are overdue.
type ranking struct {
	terms   env.Terms
	longest float64 // setting
	horizon float64 // setting
	least   float64 // epochs that a source may wait by default, at least
	frozen  bool    // what is overdue by default would only be crawled to learn from it
	sel     *baselines.Selector
	src     []Source
	key     []float64
	overdue []int
	RankingState
}

// RankingState is what a ranking holds, as data.
type RankingState struct {
	Credit float64 `json:"credit"` // budget units saved up for overdue sources
	Price  float64 `json:"price"`  // mean clearing price, interest per budget unit
	Epochs float64 `json:"epochs"` // behind that mean
}

const (
	overdueShare = .25 // of the budget, at most, for overdue sources
	leastRounds  = 40  // that a source waits by default, at least
	never        = 1e18
	priceMemory  = 72 // epochs
)

func newRanking(t env.Terms, set *Settings) *ranking {
	n := len(t.Costs)
	return &ranking{
		terms: t, longest: set.Longest, horizon: set.Horizon, least: leastRounds * t.Round(),
		sel: baselines.NewSelector(t.Costs, t.Budget),
		src: make([]Source, n), key: make([]float64, n),
	}
}

// Know implements Follower.
func (r *ranking) Know(i int, s Source) { r.src[i] = s }

// Select implements env.Policy.
func (r *ranking) Select(dst []int, o *env.Model) []int {
	for i, x := range o.Mean {
		r.key[i] = whittle(&r.src[i], x) / r.terms.Costs[i]
	}
	r.raiseOverdue(&o.Online)
	had := len(dst)
	dst = r.sel.Pack(dst, r.key, nil)
	price := math.Inf(1)
	for _, i := range dst[had:] {
		price = min(price, r.key[i])
	}
	if !math.IsInf(price, 1) {
		r.Epochs = min(r.Epochs+1, priceMemory)
		r.Price += (price - r.Price) / r.Epochs
	}
	return dst
}

// raiseOverdue puts sources first that were not crawled yet or have waited for too
// long, the longest first, as far as their share of the budget goes. The index
// alone may never come to a source while the best that are known take all of the
// budget.
func (r *ranking) raiseOverdue(o *env.Online) {
	if r.frozen {
		return
	}
	longest := r.longest
	if longest == 0 {
		longest = r.explore(o.Epoch)
	}
	r.overdue = r.overdue[:0]
	for i, last := range o.Last {
		if (last < 0 || float64(o.Age(i)) >= longest) && r.terms.Affordable(i) {
			r.overdue = append(r.overdue, i)
		}
	}
	if len(r.overdue) == 0 {
		return
	}
	slices.SortStableFunc(r.overdue, func(i, j int) int { return cmp.Compare(o.Last[i], o.Last[j]) })
	r.Credit = min(r.Credit+overdueShare*r.terms.Budget, r.terms.Budget)
	for _, i := range r.overdue {
		if r.Credit < r.terms.Costs[i] {
			return
		}
		r.Credit -= r.terms.Costs[i]
		r.key[i] = math.Inf(1)
	}
}

// explore returns how long a source may wait by default. Crawls of each source
// after a time that doubles are enough to learn a world that does not change (Lai
// and Robbins, 1985, ask for a number that grows with the logarithm of time); one
// that changes is looked at again when what was seen of it is forgotten. No more
// than a fortieth of the budget goes there.
func (r *ranking) explore(epoch int) float64 {
	longest := float64(epoch) / 2
	if r.horizon > 0 {
		longest = min(longest, r.horizon)
	}
	return max(longest, r.least)
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
func whittle(s *Source, x float64) float64 {
	b, top := s.Ceiling()
	if x >= top*(1-1e-12) {
		return x
	}
	return x + math.Log1p(-x/b)/s.Decay*min(-math.Expm1(-s.Decay)*(b-x), top-x)
}
