package baselines

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// iterate applies a map of values to itself until all of them grow alike, and
// returns the last values and that growth.
func iterate(n int, step func(v []float64, j int) float64) (v []float64, growth float64) {
	v, w := make([]float64, n), make([]float64, n)
	for {
		lo, hi := math.Inf(1), math.Inf(-1)
		for j := range v {
			w[j] = step(v, j)
			lo, hi = math.Min(lo, w[j]-v[j]), math.Max(hi, w[j]-v[j])
		}
		v, w = w, v
		if hi-lo < 1e-9*(1+math.Abs(hi)) {
			return v, (lo + hi) / 2
		}
	}
}

// average solves (25) on a chain by value iteration, maximising at every state.
// It returns V with ∫V(u)φ(du) = 0, and β.
func average(c chain, subsidy float64) (v []float64, beta float64) {
	v, growth := iterate(len(c.from), func(v []float64, j int) float64 {
		passive := subsidy + floats.Dot(c.next.RawRowView(j), v)
		active := float64(j)*c.step + floats.Dot(c.next.RawRowView(0), v)
		t := math.Max(passive, active)
		return (t + v[j]) / 2 // half a step: the chain has no period
	})
	base := floats.Dot(c.next.RawRowView(0), v)
	for j := range v {
		v[j] -= base
	}
	return v, 2 * growth
}

// discounted solves (24) on a chain by value iteration. What all states still
// gain alike comes to growth·δ/(1−δ).
func discounted(c chain, subsidy, delta float64) []float64 {
	v, growth := iterate(len(c.from), func(v []float64, j int) float64 {
		passive := subsidy + delta*floats.Dot(c.next.RawRowView(j), v)
		active := float64(j)*c.step + delta*floats.Dot(c.next.RawRowView(0), v)
		return math.Max(passive, active)
	})
	for j := range v {
		v[j] += growth * delta / (1 - delta)
	}
	return v
}

// advantage returns what crawling at node k is worth more than waiting.
func advantage(c chain, subsidy float64, k int) float64 {
	v, _ := average(c, subsidy)
	return float64(k)*c.step - subsidy - floats.Dot(c.next.RawRowView(k), v)
}

// TCNS, (24) and Lemma 6, "the conclusions of Lemma 1 continue to hold": V_δ is
// increasing, convex and Lipschitz with the constant E[(1 − (αδ)^τ)/(1 − αδ)],
// which is at most 1/(1 − αδ). And "the 'vanishing discount' argument of Section
// IV can now be used to establish" (25): as δ goes to 1, V_δ(x) − ∫V_δ(u)φ(du)
// goes to V(x) and (1 − δ)∫V_δ(u)φ(du) to β. At λ = γ(x) the state x is in the
// end indifferent: both terms of (24) are equal.
func TestStochasticVanishingDiscount(t *testing.T) {
	const nodes = 64
	for _, m := range []env.Marks{env.MarksConstant, env.MarksPerEpoch} {
		s := envtest.Source(.7, 10, 2.5)
		s.Rate, s.Interest = 6, s.Rate*s.Interest/6
		law := newGainLaw(s, m)
		table, c := stochasticIndex(s, law, nodes), newChain(s, law, nodes)
		for _, x := range []float64{.3, .8, 1.2} { // in ceilings
			k := int(x * s.Ceiling() / c.step)
			subsidy := s.Cost * table.Index[k]
			limit, beta := average(c, subsidy)
			last, indifferent := math.Inf(1), math.Inf(1)
			for _, delta := range []float64{.9, .99, .999, .9999} {
				v := discounted(c, subsidy, delta)
				fresh := floats.Dot(c.next.RawRowView(0), v)
				off, slope := math.Abs((1-delta)*fresh-beta), 0.0
				for j := range len(v) * 3 / 4 { // the cut of the grid is far above
					off = math.Max(off, math.Abs(v[j]-fresh-limit[j]))
					next := (v[j+1] - v[j]) / c.step
					if next < slope-1e-6 || next > 1/(1-delta*s.Factor())+1e-6 {
						t.Fatalf("%s, λ = γ(%v), δ = %v: the slope of V at node %d is %v after %v; "+
							"want it to rise within 0 and 1/(1−αδ)",
							m, x, delta, j, next, slope)
					}
					slope = next
				}
				left := math.Abs(subsidy + delta*floats.Dot(c.next.RawRowView(k), v) - float64(k)*c.step - delta*fresh)
				if !(off < last/5 && left < max(indifferent/5, 1e-6*s.Ceiling())) {
					t.Errorf("%s, λ = γ(%v): at δ = %v V and β are off by %v, after %v, "+
						"and the terms of (24) differ by %v, after %v",
						m, x, delta, off, last, left, indifferent)
				}
				last, indifferent = off, left
			}
			if last > 1e-3*s.Ceiling() {
				t.Errorf("%s, λ = γ(%v): at δ = .9999 V and β are still off by %v", m, x, last)
			}
		}
	}
}

// The elimination against value iteration with the maximum in it: at prices just
// below γ(x) crawling at x is better, just above it is not. It also shows that
// thresholds are optimal and the source indexable, neither of which value
// iteration knows.
func TestStochasticIndexAgainstValueIteration(t *testing.T) {
	envtest.Alone(t)
	const nodes = 48
	for _, m := range allMarks {
		for _, s := range []env.Source{envtest.Source(0.5, 10, 1), envtest.Source(0.8, 3, 2.5)} {
			s.Rate, s.Interest = 6, s.Rate*s.Interest/6
			law := newGainLaw(s, m)
			table := stochasticIndex(s, law, nodes)
			c := newChain(s, law, nodes)
			for k := 1; k < len(table.Index) && float64(k)*c.step < 1.5*s.Ceiling(); k++ {
				charge := table.Index[k] * s.Cost
				if a := advantage(c, charge*(1-1e-4), k); !(a > 0) {
					t.Errorf("%s: below γ(%.4g) = %.6g crawling is worth %g", m, float64(k)*c.step, table.Index[k], a)
				}
				if a := advantage(c, charge*(1+1e-4), k); !(a < 0) {
					t.Errorf("%s: above γ(%.4g) = %.6g crawling is worth %g", m, float64(k)*c.step, table.Index[k], a)
				}
			}
		}
	}
}

// indexError returns the greatest difference of two indices on [0, top], over
// the ceiling.
func indexError(s env.Source, a, b func(x float64) float64, top float64) (worst float64) {
	for x := 0.0; x < top; x += top / 500 {
		worst = math.Max(worst, math.Abs(a(x)-b(x)))
	}
	return worst * s.Cost / s.Ceiling()
}

func learnedTable(t testing.TB, s env.Source, law gainLaw) indexTable {
	t.Helper()
	table := learnStochasticIndex(s, law, usualSchooling, stream.New(1, stream.Test))
	return table
}

// The stochastic index equals the deterministic one as the noise vanishes: the
// difference falls with the relative standard deviation of the gain.
func TestStochasticIndexWithoutNoise(t *testing.T) {
	envtest.Alone(t)
	for _, s := range env.Paper(1).Sources {
		last := math.Inf(1)
		for _, more := range []float64{1, 8, 64, 250} {
			quiet := s
			quiet.Rate, quiet.Interest = s.Rate*more, s.Interest/more
			law := newGainLaw(quiet, env.MarksConstant)
			table := stochasticIndex(quiet, law, 1000)
			e := indexError(s, table.At, func(x float64) float64 { return index.Whittle(s, x) }, 1.5*s.Ceiling())
			noise := law.Deviation() / law.Mean()
			t.Logf("source %s, noise %.2g of the gain: the indices differ by %.2g of the ceiling", s.Name, noise, e)
			if e > math.Max(last, 1e-3) || e > 1.5*noise+1e-3 {
				t.Errorf("source %s: with noise %g of the gain the indices differ by %g of the ceiling, after %g",
					s.Name, noise, e, last)
			}
			last = e
		}
		if last > 4e-3 {
			t.Errorf("source %s: the indices still differ by %g of the ceiling", s.Name, last)
		}
	}
}

// The learned index against the computed one.
func TestLearnedIndex(t *testing.T) {
	envtest.Alone(t)
	for _, m := range []env.Marks{env.MarksConstant, env.MarksPerEpoch} {
		s := env.Paper(1).Sources[0]
		s.Cost = 2
		law := newGainLaw(s, m)
		exact := stochasticIndex(s, law, 500)
		learned := learnedTable(t, s, law)
		e := indexError(s, learned.At, exact.At, s.Ceiling())
		t.Logf("%s: the learned index is off by %.2g of the ceiling", m, e)
		if e > 0.04 {
			t.Errorf("%s: the learned index is off by %g of the ceiling", m, e)
		}
		again := learnedTable(t, s, law)
		if !slices.Equal(again.Index, learned.Index) {
			t.Errorf("%s: the same stream learns another index", m)
		}
	}
}

// TCNS, section VIII, in the model with one exponential draw per source and
// epoch: the policy of the true stochastic index against the deterministic index,
// extended above the ceiling, and myopic, on the same content. Two seeds of
// 20 000 epochs, in blocks of 1000 whose paired differences give the intervals.
func TestStochasticIndexEarnsMore(t *testing.T) {
	envtest.Alone(t)
	const seeds, epochs, blocks = 2, 20_000, 20
	in := env.Paper(1)
	exact := NewStochasticWhittle(in, env.MarksPerEpoch)
	learned := NewLearnedStochasticWhittle(in, env.MarksPerEpoch, stream.New(1, stream.Test))
	var a, b, c, l []float64
	for seed := range uint64(seeds) {
		// earn returns the mean reward of each block.
		earn := func(p env.Policy[env.Observed]) (means []float64) {
			agent := env.NewAgent(p)
			w := envtest.Poisson(t, in, seed+1, env.PoissonOptions{Marks: env.MarksPerEpoch}, agent)
			for block := range slices.Chunk(envtest.Play(t, w, agent, epochs), epochs/blocks) {
				means = append(means, stat.Mean(block, nil))
			}
			return means
		}
		a, b = append(a, earn(exact)...), append(b, earn(NewWhittleObserved(in, false))...)
		c, l = append(c, earn(NewMyopicObserved(in))...), append(l, earn(learned)...)
	}
	// paired returns the mean of x − y and half the width of its 95 % interval.
	paired := func(x, y []float64) (mean, half float64) {
		mean, sd := stat.MeanStdDev(floats.SubTo(make([]float64, len(x)), x, y), nil)
		return mean, 2.023 * sd / math.Sqrt(float64(len(x)))
	}
	zero := make([]float64, len(a))
	for _, row := range []struct {
		name string
		x    []float64
	}{{"stochastic", a}, {"learned", l}, {"deterministic", b}, {"myopic", c}} {
		m, h := paired(row.x, zero)
		d, e := paired(row.x, b)
		t.Logf("%-13s %.2f ± %.2f interest per epoch; less the deterministic index %+.2f ± %.2f",
			row.name, m, h, d, e)
	}
	if d, h := paired(a, b); !(d-h > 0) {
		t.Errorf("the stochastic index earns %.3f ± %.3f more than the deterministic one; want an interval above 0",
			d, h)
	}
	if d, h := paired(b, c); !(d-h > 0) {
		t.Errorf("the deterministic index earns %.3f ± %.3f more than myopic; want an interval above 0", d, h)
	}
	if d, _ := paired(l, b); !(d > 0) {
		t.Errorf("the learned index earns %.3f less than the deterministic one", -d)
	}
	if m, _ := paired(a, zero); math.Abs(m-295.3) > 2 {
		t.Errorf("the stochastic index earns %.2f, want about 295.3", m)
	}
}

// What was published under law delay before a change costs more than nothing for as long as it
// waits, so that the state of a source that is exponential by now is below 0.
func TestStochasticAfterAChangeOfLaw(t *testing.T) {
	rich, delay := env.NewSource("rich", 10, .2, 30), env.NewSource("delay", 10, 1, 1)
	after := delay
	delay.Law, after.Decay = env.LawDelay, .2
	in := env.Instance{
		Sources: []env.Source{rich, delay}, Budget: 1,
		Changes: []env.Change{{At: 20, Sources: []env.Source{after}}},
	}
	w := must(env.NewPoisson(in, 2, env.PoissonOptions{State: true}))
	p := NewStochasticWhittle(in.Phases()[1].Instance, env.MarksConstant)
	for w.View().Epoch < 20 {
		must(w.Step([]int{0}))
	}
	if x := w.View().State[1]; x >= 0 {
		t.Fatalf("the state is %v; want one below 0", x)
	}
	if got := p.Select(nil, w.View()); !slices.Equal(got, []int{0}) {
		t.Errorf("crawled are %v; want the source of which a crawl earns something", got)
	}
}
