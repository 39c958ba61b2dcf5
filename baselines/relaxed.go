package baselines

import (
	"fmt"
	"math"

	"ephemera/baselines/index"
	"ephemera/env"
)

// relaxedControl is the online algorithm of TCNS, section VII: it crawls every
// source whose age is at its threshold, and learns the price by dual descent.
// It keeps the budget on average only, so it needs a world that lets crawls
// over the budget pass. Sources of which one crawl is above the budget it
// leaves alone, as [index.Relax] does.
type relaxedControl struct {
	RelaxedOptions
	sources []env.Source
	budget  float64
	epoch   float64
}

// RelaxedOptions are the settings of [NewRelaxedControl].
type RelaxedOptions struct {
	// Price is λ(0), in interest per budget unit; 0 is the start without any knowledge.
	Price float64 `toml:"price"`
	// The step is b(k) = First/(1 + k/10), interest per budget unit squared: the
	// steps sum to infinity, and their squares do not. First 0 stands for a tenth of
	// the greatest |H(1)|/C, over the budget.
	First float64 `toml:"first"`
	// Exact crawls from the least age whose Whittle index reaches the price,
	// which is the optimal threshold in whole epochs; (21) solves for a real
	// number of epochs and is rounded up by the dynamics.
	Exact bool `toml:"exact"`
}

// Validate reports the first setting that is out of its range.
func (s *RelaxedOptions) Validate() error {
	if !(s.Price >= 0 && s.First >= 0) || math.IsInf(s.Price+s.First, 1) {
		return fmt.Errorf("price and first are %v and %v; allowed are finite numbers of 0 or more", s.Price, s.First)
	}
	return nil
}

// NewRelaxedControl returns the relaxed control of an instance.
func NewRelaxedControl(in env.Instance, s RelaxedOptions) (env.Policy[env.Model], error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.First == 0 {
		for _, x := range in.Sources {
			if env.Fits(x.Cost, in.Budget) {
				s.First = math.Max(s.First, math.Abs(x.Harvest(1))/x.Cost)
			}
		}
		s.First *= 0.1 / in.Budget
	}
	return &relaxedControl{RelaxedOptions: s, sources: in.Sources, budget: in.Budget}, nil
}

// Select implements env.Policy, but for the budget.
func (p *relaxedControl) Select(dst []int, o *env.Model) []int {
	var cost float64
	for i := range p.sources {
		s := &p.sources[i]
		if env.Fits(s.Cost, p.budget) && p.crawls(s, o.Age(i)) {
			dst = append(dst, i)
			cost += s.Cost
		}
	}
	// (22), with the sign that raises the price when too much is crawled and
	// both terms in budget units: λ ← [λ + b(k)(Σ C v − M)]⁺
	step := p.First / (1 + p.epoch/10)
	p.Price = math.Max(0, p.Price+step*(cost-p.budget))
	p.epoch++
	return dst
}

// crawls reports whether a source is at its threshold. (21) is the harvest at the
// age t at which a cycle earns the most per epoch, (H(t) − Cλ)/t, where t may be
// any real number:
//
//	H(t) − tH′(t) = Cλ
//
// For the exponential law that is α^t(1 − t ln α) = 1 − Cλ/u*, and the harvest
//
//	x̄(λ) = u*(1 − exp(1 + W(e⁻¹(Cλ/u* − 1)))),   on the branch W₋₁
func (p *relaxedControl) crawls(s *env.Source, age int) bool {
	if p.Exact {
		return index.WhittleAtAge(*s, age) >= p.Price
	}
	t := float64(age) // the left side rises with it where it is above 0
	return s.Harvest(t)-t*s.HarvestRate(t) > p.Price*s.Cost
}
