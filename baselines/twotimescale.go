package baselines

import (
	"ephemera/env"
	"ephemera/env/stream"
)

// schooling is how finely and how long an index is learned.
type schooling struct {
	nodes      int // states of the grid
	thresholds int // states x̌ at which the index is learned
	steps      int // n for each threshold
}

var usualSchooling = schooling{nodes: 120, thresholds: 24, steps: 8000}

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
func learnStochasticIndex(s env.Source, law gainLaw, opt schooling, r *stream.Rand) indexTable {
	c := newChain(s, law, opt.nodes)
	alpha := s.Factor()
	t := indexTable{Step: (s.Ceiling() + 3*law.spread(s)) / float64(opt.thresholds-1), Index: make([]float64, opt.thresholds), Cost: s.Cost}
	if t.Step == 0 {
		t.Step = 1
	}
	v, w := make([]float64, opt.nodes), make([]float64, opt.nodes)
	for j := range v {
		v[j] = float64(j) * c.step
	}
	var gamma float64
	for k := 1; k < opt.thresholds; k++ { // γ(0) = 0; each threshold starts where the last one ended
		at := float64(k) * t.Step
		for n := range opt.steps {
			f := dot(c.next[0], v)
			for j := range v {
				x := float64(j) * c.step
				if x < at {
					w[j] = (v[j] + s.Cost*gamma - f + dot(c.next[j][c.from[j]:], v[c.from[j]:])) / 2
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
func NewLearnedStochasticWhittle(in env.Instance, m env.Marks, r *stream.Rand) env.Policy[env.Observed] {
	return learnedPolicy(in, m, usualSchooling, r)
}

func learnedPolicy(in env.Instance, m env.Marks, how schooling, r *stream.Rand) env.Policy[env.Observed] {
	seed := r.Uint64()
	return tablePolicy(in, m, func(i int, s env.Source, law gainLaw) indexTable {
		return learnStochasticIndex(s, law, how, stream.New(seed, stream.Policy, uint64(i)))
	})
}
