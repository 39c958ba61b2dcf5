package baselines

import (
	"cmp"
	"fmt"
	"math"

	"ephemera/baselines/index"
	"ephemera/env"
)

// relaxedControl is the online algorithm of TCNS, section VII: it crawls every
// source whose state is at its threshold, and learns the price by dual descent.
// It keeps the budget on average only, so it needs a world that lets crawls
// over the budget pass. Sources of which one crawl is above the budget it
// leaves alone, as [index.Relax] does.
type relaxedControl struct {
	sources []env.Source
	budget  float64
	price   float64
	exact   bool
	// b(k) = first/(1 + k/hold)^power
	first, hold, power float64
	epoch              float64
}

var _ env.Policy[env.Model] = (*relaxedControl)(nil)

// RelaxedOptions are the settings of [NewRelaxedControl]; 0 stands for the
// default.
type RelaxedOptions struct {
	// Price is λ(0), in interest per budget unit. It is taken as it is, and 0
	// is where one starts who knows nothing.
	Price float64
	// First is b(0), in interest per budget unit squared. Default: a tenth of
	// the greatest u/C, over the budget.
	First float64
	// Hold is the number of epochs after which the step has fallen to
	// 2^(−Power) of First. Default 10.
	Hold float64
	// Power is the exponent of the fall, above ½ and at most 1, so that the
	// steps sum to infinity and their squares do not. Default 1.
	Power float64
	// Exact crawls from the least age whose Whittle index reaches the price,
	// which is the optimal threshold in whole epochs; (21) solves for a real
	// number of epochs and is rounded up by the dynamics.
	Exact bool
}

// NewRelaxedControl returns the relaxed control of an instance. It panics if
// a setting is out of its range.
func NewRelaxedControl(in env.Instance, opt RelaxedOptions) env.Policy[env.Model] {
	p := &relaxedControl{
		sources: in.Sources, budget: in.Budget, price: opt.Price, exact: opt.Exact,
		first: opt.First, hold: cmp.Or(opt.Hold, 10), power: cmp.Or(opt.Power, 1),
	}
	if p.first == 0 {
		for _, s := range in.Sources {
			if env.Fits(s.Cost, in.Budget) {
				p.first = math.Max(p.first, s.Gain()/s.Cost)
			}
		}
		p.first *= 0.1 / in.Budget
	}
	if !(p.price >= 0) || !(p.first >= 0) || !(p.hold > 0) || !(p.power > 0.5 && p.power <= 1) {
		panic(fmt.Sprintf("baselines: relaxed control with price %v, first %v, hold %v, power %v; allowed are prices and steps of 0 or more, a hold above 0 and a power above 0.5 and at most 1",
			p.price, p.first, p.hold, p.power))
	}
	return p
}

// Price returns λ(k), the price at which the next epoch is decided.
func (p *relaxedControl) Price() float64 { return p.price }

// Select implements env.Policy, but for the budget.
func (p *relaxedControl) Select(dst []int, o *env.Model) []int {
	var cost float64
	for i, x := range o.Mean {
		s := &p.sources[i]
		if env.Fits(s.Cost, p.budget) && p.crawls(s, x, o.Age(i)) {
			dst = append(dst, i)
			cost += s.Cost
		}
	}
	// (22), with the sign that raises the price when too much is crawled and
	// both terms in budget units: λ ← [λ + b(k)(Σ C v − M)]⁺
	step := p.first / math.Pow(1+p.epoch/p.hold, p.power)
	p.price = math.Max(0, p.price+step*(cost-p.budget))
	p.epoch++
	return dst
}

func (p *relaxedControl) crawls(s *env.Source, x float64, age int) bool {
	if p.exact {
		return index.WhittleAtAge(*s, age) >= p.price
	}
	// A source without gain has its state at its threshold, 0, for ever.
	return x > 0 && x >= index.RelaxedThreshold(*s, p.price)
}
