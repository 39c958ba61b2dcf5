package baselines

import (
	"math"

	"ephemera/baselines/index"
	"ephemera/env"
)

// Certainty are the settings of [NewCertainty]. The zero value is the default.
type Certainty struct {
	EstimatorSettings
	// Optimism is how many standard errors are added to the inflow of a source
	// before it enters the index. Nil means 1.
	Optimism *float64
}

// CertaintyWhittle is certainty-equivalent Whittle: an [Estimator] learns decay
// and inflow from what crawls bring back, and Theorem 1 is evaluated as if the
// estimates were true. A source whose inflow is uncertain counts as somewhat
// richer than it seems, so that cold starts are explored and no source is given
// up for a poor first crawl.
type CertaintyWhittle struct {
	est      *Estimator
	sel      *Selector
	costs    []float64
	optimism float64
	key      []float64
}

var _ env.Learner[env.Online] = (*CertaintyWhittle)(nil)

// NewCertainty returns certainty-equivalent Whittle for crawlers that know the
// terms and nothing else.
func NewCertainty(t env.Terms, s Certainty) *CertaintyWhittle {
	n := len(t.Costs)
	p := &CertaintyWhittle{
		est:      NewEstimator(n, s.EstimatorSettings),
		sel:      NewSelector(t.Costs, t.Budget),
		costs:    t.Costs,
		optimism: 1,
		key:      make([]float64, n),
	}
	if s.Optimism != nil {
		p.optimism = *s.Optimism
	}
	return p
}

// Estimator returns what has been learned of the sources.
func (p *CertaintyWhittle) Estimator() *Estimator { return p.est }

// Select implements env.Policy.
func (p *CertaintyWhittle) Select(dst []int, o *env.Online) []int {
	for i := range p.key {
		age := float64(o.Age(i))
		if !p.est.Known() {
			p.key[i] = age / p.costs[i]
			continue
		}
		if p.est.Blind(i, o.Age(i)) {
			p.key[i] = -math.MaxFloat64 // another age will tell more
			continue
		}
		b, se := p.est.Inflow(i)
		c := p.est.Decay(i)
		// u* = B/c
		p.key[i] = index.AtAge((b+p.optimism*se)/c, c, -math.Expm1(-c), age) / p.costs[i]
	}
	return p.sel.Top(dst, p.key)
}

// Update implements env.Learner.
func (p *CertaintyWhittle) Update(crawls []env.Crawled, _ *env.Online) {
	for _, c := range crawls {
		p.est.Add(c)
	}
	p.est.Fit()
}
