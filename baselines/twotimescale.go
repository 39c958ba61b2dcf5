package baselines

import (
	"cmp"
	"fmt"

	"ephemera/env"
	"ephemera/env/stream"
)

// LearnOptions are the settings of [NewLearnedStochasticWhittle]; 0 stands for
// the default.
type LearnOptions struct {
	StochasticOptions     // here Nodes is 120 by default
	Thresholds        int // states x̌ at which the index is learned; default 24
	Steps             int // n for each threshold; default 8000
}

func (o LearnOptions) defaults() LearnOptions {
	o.Nodes, o.Thresholds, o.Steps = cmp.Or(o.Nodes, 120), cmp.Or(o.Thresholds, 24), cmp.Or(o.Steps, 8000)
	o.StochasticOptions = o.StochasticOptions.defaults()
	if o.Thresholds < 2 || o.Steps < 1 {
		panic(fmt.Sprintf("baselines: %d thresholds and %d steps; allowed are at least 2 and 1", o.Thresholds, o.Steps))
	}
	return o
}

// learnStochasticIndex learns the Whittle index of the stochastic model by the
// scheme (33)-(35) of TCNS on two time scales: relative value iteration for a
// fixed threshold x̌ at the present γ, and a slower stochastic approximation
// that moves γ until crawling at x̌ and waiting are worth the same,
//
//	γ ← γ − a(n)(Cγ + V(αx̌ + Ũ) − f(V) − x̌)
//	V(x) ← Cγ − f(V) + ∫V(αx + u)φ(du)   for x < x̌
//	V(x) ← x                              for x ≥ x̌
//
// with Ũ drawn from φ and a(n) = 1/(2C(1 + n/4)). Thresholds are spread evenly up to three standard
// deviations above the ceiling, and the index is interpolated.
//
// Three readings. f(V) = ∫V(u)φ(du) stands for V(u): after a crawl the state is
// U, not its mean u. (35) prints x − V(u), but the value after the crawl, which
// is f(V), belongs to it; both cancel, and without it active and passive states
// are off by β against each other. And V goes half the way at each step, since
// plain relative value iteration need not converge on a chain that is close to
// periodic, which is what a source becomes as its noise vanishes.
func learnStochasticIndex(s env.Source, law gainLaw, opt LearnOptions, r *stream.Rand) indexTable {
	opt = opt.defaults()
	c := newChain(s, law, opt.Nodes)
	alpha := s.Factor()
	t := indexTable{Step: (s.Ceiling() + 3*law.spread(s)) / float64(opt.Thresholds-1), Index: make([]float64, opt.Thresholds), Cost: s.Cost}
	if t.Step == 0 {
		t.Step = 1
	}
	v, w := make([]float64, opt.Nodes), make([]float64, opt.Nodes)
	for j := range v {
		v[j] = float64(j) * c.step
	}
	rows := make([][]float64, opt.Nodes) // the part of each row that holds mass
	for j, row := range c.next {
		end := len(row)
		for end > c.from[j]+1 && row[end-1] < 1e-15 {
			end--
		}
		rows[j] = row[c.from[j]:end]
	}
	var gamma float64
	for k := 1; k < opt.Thresholds; k++ { // γ(0) = 0; each threshold starts where the last one ended
		at := float64(k) * t.Step
		for n := range opt.Steps {
			f := dot(rows[0], v[c.from[0]:])
			for j := range v {
				x := float64(j) * c.step
				if x < at {
					w[j] = (v[j] + s.Cost*gamma - f + dot(rows[j], v[c.from[j]:])) / 2
				} else {
					w[j] = (v[j] + x) / 2
				}
			}
			// Beyond the last node every state is crawled and V rises as x.
			value := indexTable{Step: c.step, Index: v, Cost: 1}
			a := 0.5 / (s.Cost * (1 + float64(n)/4))
			gamma -= a * (s.Cost*gamma + value.At(alpha*at+law.Draw(r)) - f - at)
			v, w = w, v
		}
		t.Index[k] = gamma
	}
	return t
}

// dot returns Σ p[m] v[m] over the length of p.
func dot(p, v []float64) (sum float64) {
	v = v[:len(p)]
	for m, q := range p {
		sum += q * v[m]
	}
	return sum
}

// NewLearnedStochasticWhittle is [NewStochasticWhittle] with indices that were
// learned before the first epoch; each source draws from a stream of its own,
// seeded by r.
func NewLearnedStochasticWhittle(in env.Instance, opt LearnOptions, r *stream.Rand) (env.Policy[env.Observed], error) {
	opt = opt.defaults()
	seed := r.Uint64()
	return tablePolicy(in, opt.StochasticOptions, func(i int, s env.Source, law gainLaw) indexTable {
		return learnStochasticIndex(s, law, opt, stream.New(seed, stream.Policy, uint64(i)))
	})
}
