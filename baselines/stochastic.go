package baselines

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
)

// indexTable is an index on a grid of states, linear between its points and
// beyond the last one, where it rises by 1/C. A state below 0, of what costs more the longer it
// has waited since before a change of the law, has the index of 0.
type indexTable struct {
	Step  float64   // interest
	Index []float64 // at states 0, Step, 2·Step, …, interest per budget unit
	Cost  float64   // C, budget units
}

// At returns the index at a state.
func (t *indexTable) At(x float64) float64 {
	k, part := math.Modf(max(0, x) / t.Step)
	if j := int(k); j+1 < len(t.Index) {
		return t.Index[j] + part*(t.Index[j+1]-t.Index[j])
	}
	last := len(t.Index) - 1
	return t.Index[last] + (x-float64(last)*t.Step)/t.Cost
}

// reach is how far the grid goes above the ceiling u*, in standard deviations
// of the state of a source that is never crawled.
const reach = 10

// chain is one source's state on a grid, under the law of its gain.
type chain struct {
	step float64
	next *mat.Dense // at j, m it has P(αxⱼ + U ∈ hat m): linear interpolation
	from []int      // the first m at which row j of next is not 0
}

// newChain lays a grid of states up to the reach.
func newChain(s env.Source, law gainLaw, nodes int) chain {
	alpha := s.Factor()
	top := s.Ceiling() + reach*law.spread(s)
	if s.Ceiling() == 0 {
		top = 1
	}
	// An eighth more, which takes up what the cut at the end spoils.
	c := chain{step: top * 8 / 7 / float64(nodes-1), next: mat.NewDense(nodes, nodes, nil), from: make([]int, nodes)}
	for j := range nodes {
		c.from[j] = c.fill(c.next.RawRowView(j), law, alpha*float64(j)*c.step)
	}
	return c
}

// fill writes to p the law of base + U, in which a function that is linear
// between the nodes has its exact expectation, and returns the first node of
// mass. Mass beyond the last node is put there.
func (c *chain) fill(p []float64, law gainLaw, base float64) int {
	h, n := c.step, len(p)
	first := min(int(base/h), n-1)
	// The hat around x has E hat = [π(x−h−b) − 2π(x−b) + π(x+h−b)]/h.
	at := func(m int) float64 { return law.Loss(float64(m)*h - base) }
	before, here := at(first-1), at(first)
	var sum float64
	for m := first; m < n-1; m++ {
		after := at(m + 1)
		p[m] = math.Max(0, (before-2*here+after)/h)
		sum += p[m]
		before, here = here, after
	}
	p[n-1] = math.Max(0, 1-sum)
	return first
}

// stochasticIndex returns the Whittle index γ(x) of the stochastic model, (28)-(31)
// of TCNS, with the law of the gain φ and the state on a grid of n nodes.
//
// With the threshold at x̌ the system (28)-(29) is linear in λ and β and needs no
// iteration. Let T(y) be the epochs until the state, from y, is crawled, and
// G(y) what the crawl brings. With the crawl charged λC and E V(U) = 0, which is
// what (30) has to mean for a state that is U after a crawl,
//
//	V(y) = G(y) − Cλ − β(1 + T(y)),   β = (E G(U) − Cλ)/(1 + E T(U))
//
// and indifference at x̌, (31), gives β and from it γ = λ:
//
//	β = (E G(αx̌+U) − x̌)/(1 + E T(αx̌+U)),   Cγ = E G(U) − β(1 + E T(U))
//
// As x̌ goes up the grid, one state after the other becomes passive. Passive
// states are eliminated from the chain (Grassmann, Taksar and Heyman), so that
// the rows of x̌ and of 0, whose successor is U as after a crawl, always hold G
// and T ready. All nodes together cost at most n³/3 operations.
func stochasticIndex(s env.Source, law gainLaw, n int) indexTable {
	c := newChain(s, law, n)
	fresh, freshTime := mat.Row(nil, 0, c.next), 1.0
	time := make([]float64, n) // 1 + E T(αxⱼ + U)
	for j := range time {
		time[j] = 1
	}
	t := indexTable{Step: c.step, Cost: s.Cost}
	for k := range n * 7 / 8 {
		row := c.next.RawRowView(k)
		var goes, brings, brought float64 // 1 − P(k → k), E G(αx̌+U), E G(U)
		for m := k; m < n; m++ {
			x := float64(m) * c.step
			if m > k {
				goes += row[m]
			}
			brings += row[m] * x
			brought += fresh[m] * x
		}
		beta := (brings - float64(k)*c.step) / time[k]
		t.Index = append(t.Index, (brought-beta*freshTime)/s.Cost)
		if !(goes > 1e-300) {
			break // no state beyond is ever reached
		}
		// Eliminate k: whoever enters it goes on from it.
		for j := k + 1; j < n && c.from[j] <= k; j++ {
			absorb(c.next.RawRowView(j), row, k, goes)
			time[j] += c.next.At(j, k) / goes * time[k]
		}
		absorb(fresh, row, k, goes)
		freshTime += fresh[k] / goes * time[k]
	}
	return t
}

// absorb adds to p what goes through the eliminated node k.
func absorb(p, row []float64, k int, goes float64) {
	if w := p[k] / goes; w != 0 {
		floats.AddScaled(p[k+1:], w, row[k+1:])
	}
}

// NewStochasticWhittle returns the policy of the true Whittle index of the
// stochastic model on the observed state, for items whose initial interests have
// the given law. Sources whose items come in batches or have another law of
// interest than the exponential are crawled by the index at their age.
func NewStochasticWhittle(in env.Instance, m env.Marks) env.Policy[env.Observed] {
	return tablePolicy(in, m, func(_ int, s env.Source, law gainLaw) indexTable { return stochasticIndex(s, law, 500) })
}

// tablePolicy builds the table of each source, once for equal sources.
func tablePolicy(
	in env.Instance, m env.Marks, build func(i int, s env.Source, law gainLaw) indexTable,
) env.Policy[env.Observed] {
	tables := make([]*indexTable, len(in.Sources))
	known := make(map[env.Source]*indexTable)
	for i, s := range in.Sources {
		if s.Batch > 1 || !s.Exponential() {
			continue
		}
		like := s
		like.Name = ""
		if known[like] == nil {
			t := build(i, s, newGainLaw(s, m))
			known[like] = &t
		}
		tables[i] = known[like]
	}
	src := in.Sources
	return NewByIndex(in.Terms(), func(key []float64, o *env.Observed) {
		for i, t := range tables {
			if t == nil {
				key[i] = index.WhittleAtAge(src[i], o.Age(i))
			} else {
				key[i] = t.At(o.State[i])
			}
		}
	})
}

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
	t := indexTable{
		Step:  (s.Ceiling() + 3*law.spread(s)) / float64(opt.thresholds-1),
		Index: make([]float64, opt.thresholds),
		Cost:  s.Cost,
	}
	if t.Step == 0 {
		t.Step = 1
	}
	v, w := make([]float64, opt.nodes), make([]float64, opt.nodes)
	for j := range v {
		v[j] = float64(j) * c.step
	}
	expected := mat.NewVecDense(opt.nodes, nil) // ∫V(αxⱼ + u)φ(du)
	var gamma float64
	for k := 1; k < opt.thresholds; k++ { // γ(0) = 0; each threshold starts where the last one ended
		at := float64(k) * t.Step
		for n := range opt.steps {
			expected.MulVec(c.next, mat.NewVecDense(opt.nodes, v))
			f := expected.AtVec(0)
			for j := range v {
				x := float64(j) * c.step
				if x < at {
					w[j] = (v[j] + s.Cost*gamma - f + expected.AtVec(j)) / 2
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
