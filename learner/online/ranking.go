package online

import (
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
)

// ranking is Whittle's index of the state that is foretold, and now and then a
// revisit of the source that was left alone for longest.
type ranking struct {
	costs  []float64
	budget float64
	most   float64 // greatest share of the revisits
	sel    *baselines.Selector
	src    []Source
	key    []float64
	Revisits
}

// Revisits is the state of the revisits as data.
type Revisits struct {
	Share  float64 `json:"share"`  // of the budget
	Credit float64 `json:"credit"` // budget units saved up
	Price  float64 `json:"price"`  // mean clearing price, units of interest per budget unit
	Epochs float64 `json:"epochs"` // behind that mean
	Who    int     `json:"who"`    // the source that the last Select revisited; −1 for none
}

const (
	priceMemory = 72 // epochs
	cheap       = .7 // of the mean price, at which a revisit costs little
	patience    = 8  // crawls of credit that do not wait for a low price
	leftAlone   = 24 // epochs
	leastShare  = .02
	missed      = .9 // what a revisit in vain leaves of the share
)

func newRanking(t env.Terms, most float64) *ranking {
	n := len(t.Costs)
	return &ranking{
		costs: t.Costs, budget: t.Budget, most: most, sel: baselines.NewSelector(t.Costs, t.Budget),
		src: make([]Source, n), key: make([]float64, n), Revisits: Revisits{Share: most, Who: -1},
	}
}

func (r *ranking) can(i int) bool { return env.Fits(r.costs[i], r.budget) }

// Know implements Follower.
func (r *ranking) Know(i int, s Source) { r.src[i] = s }

// Select implements env.Policy.
func (r *ranking) Select(dst []int, o *env.Model) []int {
	for i, x := range o.Mean {
		r.key[i] = whittle(&r.src[i], x) / r.costs[i]
	}
	had := len(dst)
	dst = r.sel.Top(dst, r.key)
	r.Who = -1
	if len(dst) == had {
		return dst
	}
	price := math.Inf(1)
	for _, i := range dst[had:] {
		price = min(price, r.key[i])
	}
	r.Epochs = min(r.Epochs+1, priceMemory)
	r.Price += (price - r.Price) / r.Epochs
	if r.due(price, &o.Online) {
		r.Credit -= r.costs[r.Who]
		r.key[r.Who] = math.Inf(1)
		dst = r.sel.Top(dst[:had], r.key)
	}
	return dst
}

// due finds the source to revisit. A share of the budget is saved up, and spent
// where the price is low.
func (r *ranking) due(price float64, o *env.Online) bool {
	if r.most == 0 {
		return false
	}
	r.Credit = min(r.Credit+r.Share*r.budget, 2*patience)
	if r.Credit < 1 || price >= cheap*r.Price && r.Credit < patience {
		return false
	}
	age := leftAlone - 1
	for i := range r.costs {
		if a := o.Age(i); a > age && r.costs[i] <= r.Credit && r.can(i) {
			r.Who, age = i, a
		}
	}
	return r.Who >= 0
}

// Update implements env.Learner. A revisit that was worth its price doubles the
// share, one in vain takes a tenth of it.
func (r *ranking) Update(crawls []env.Crawled, _ *env.Model) {
	for _, c := range crawls {
		if c.Source != r.Who {
			continue
		}
		if c.Interest >= r.Price*r.costs[r.Who] {
			r.Share = min(r.most, 2*r.Share)
		} else {
			r.Share = max(leastShare*r.most, missed*r.Share)
		}
	}
}

func (r *Revisits) validate(n int) error {
	for _, v := range []float64{r.Share, r.Credit, r.Price, r.Epochs} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return fmt.Errorf("revisits hold %v; allowed are finite numbers of 0 or more", v)
		}
	}
	if r.Who < -1 || r.Who >= n {
		return fmt.Errorf("revisited is source %d; there are %d", r.Who, n)
	}
	return nil
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
