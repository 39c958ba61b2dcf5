package forecast

import (
	"fmt"
	"math"
	"slices"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/learner/internal/check"
)

// ranking is Whittle's index of the state that is foretold, first visits to each
// source, and now and then a revisit of the one that was left alone for longest.
type ranking struct {
	costs   []float64
	budget  float64
	share   float64 // of the budget, for revisits
	first   int     // first visits of a source
	dated   bool    // epochs have hours
	longest float64 // time after which every source is revisited, epochs
	sel     *baselines.Selector
	src     []Source
	key     []float64
	Revisits
}

// Revisits is the state of the visits that the index does not ask for, as data.
type Revisits struct {
	Visits []int     `json:"visits"` // crawls of each source
	Vain   []float64 `json:"vain"`   // 2 to the number of revisits in vain, of each source
	Credit float64   `json:"credit"` // budget units saved up
	Price  float64   `json:"price"`  // mean clearing price, units of interest per budget unit
	Epochs float64   `json:"epochs"` // behind that mean
	Who    int       `json:"who"`    // the source that the last Select revisited; −1 for none
}

const (
	firstShare  = .25 // of the budget, for first visits
	priceMemory = 72  // epochs
	cheap       = .7  // of the mean price, at which a revisit costs little
	patience    = 8   // crawls of credit that do not wait for a low price
	leftAlone   = 24  // epochs
	unknown     = .75 // standard error of ln B
	maxVain     = 1 << 30
)

func newRanking(t env.Terms, set *Settings) *ranking {
	n := len(t.Costs)
	r := &ranking{
		costs: t.Costs, budget: t.Budget, share: set.Revisit, first: 1, dated: t.Length > 0, longest: math.Inf(1),
		sel: baselines.NewSelector(t.Costs, t.Budget),
		src: make([]Source, n), key: make([]float64, n),
		Revisits: Revisits{Visits: make([]int, n), Vain: make([]float64, n), Who: -1},
	}
	if r.dated { // one visit says little where hours differ
		r.first = 2
	}
	if set.Horizon > 0 { // by then what was seen has lost 95 % of its weight
		r.longest = 3 * set.Horizon
	}
	for i := range r.Vain {
		r.Vain[i] = 1
	}
	return r
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
	dst = r.sel.Pack(dst, r.key, nil)
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
	if r.introduce(&o.Online) || r.due(price, &o.Online) {
		dst = r.sel.Pack(dst[:had], r.key, nil)
	}
	return dst
}

// introduce spends a share of the budget on first visits, and reports whether
// sources wait for one. The index alone may never come to a source while the best
// that are known take all of the budget.
func (r *ranking) introduce(o *env.Online) (wait bool) {
	for {
		who, age := -1, 0
		for i, n := range r.Visits {
			if a := o.Age(i); n < r.first && a > age && r.can(i) && !math.IsInf(r.key[i], 1) {
				who, age = i, a
			}
		}
		if who < 0 {
			return wait
		}
		if !wait {
			wait = true
			r.Credit = min(r.Credit+firstShare*r.budget, r.budget)
		}
		if r.Credit < r.costs[who] {
			return wait
		}
		r.Credit -= r.costs[who]
		r.key[who] = math.Inf(1)
	}
}

// due finds the source to revisit. A share of the budget is saved up, and spent
// where the price is low.
func (r *ranking) due(price float64, o *env.Online) bool {
	if r.share == 0 {
		return false
	}
	r.Credit = min(r.Credit+r.share*r.budget, 2*patience)
	if r.Credit < 1 || price >= cheap*r.Price && r.Credit < patience {
		return false
	}
	latest := 0.
	for i, c := range r.costs {
		alone := r.longest
		if r.dated || r.src[i].Doubt > unknown {
			alone = min(alone, leftAlone*r.Vain[i])
		}
		if late := float64(o.Age(i)) / alone; late >= 1 && late > latest && c <= r.Credit && r.can(i) {
			r.Who, latest = i, late
		}
	}
	if r.Who < 0 {
		return false
	}
	r.Credit -= r.costs[r.Who]
	r.key[r.Who] = math.Inf(1)
	return true
}

// Update implements env.Learner. After a revisit in vain a source is left alone
// for twice as long, so that where nothing wakes revisits end, and a source that
// was silent for long is found within about as long again.
func (r *ranking) Update(crawls []env.Crawled, _ *env.Model) {
	for _, c := range crawls {
		r.Visits[c.Source]++
		if c.Source != r.Who {
			continue
		}
		if c.Interest >= r.Price*r.costs[r.Who] {
			r.Vain[r.Who] = 1
		} else {
			r.Vain[r.Who] = min(2*r.Vain[r.Who], maxVain)
		}
	}
}

func (r Revisits) clone() Revisits {
	r.Visits, r.Vain = slices.Clone(r.Visits), slices.Clone(r.Vain)
	return r
}

func (r *Revisits) validate(n int) error {
	if len(r.Visits) != n {
		return fmt.Errorf("visits of %d sources; the learner has %d", len(r.Visits), n)
	}
	if err := check.Finite("vain", r.Vain, n); err != nil {
		return err
	}
	if slices.ContainsFunc(r.Vain, func(v float64) bool { return v < 1 }) {
		return fmt.Errorf("vain holds %v; allowed are 1 and more", slices.Min(r.Vain))
	}
	for _, v := range []float64{r.Credit, r.Price, r.Epochs} {
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
