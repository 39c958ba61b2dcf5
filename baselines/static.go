package baselines

import (
	"math"

	"ephemera/env"
	"ephemera/env/stream"
)

// Spread says how a schedule spreads the crawls of one source, which settles
// what a source earns at a frequency f, in crawls per epoch, 0 ≤ f ≤ 1.
type Spread int

const (
	// EvenSpread crawls every 1/f epochs (Lefortier et al., CIKM 2013):
	//
	//	R(f) = f H(1/f)
	//
	// with 1/f any real number from 1 on. Gaps of whole epochs, ⌊1/f⌋ and
	// ⌈1/f⌉ mixed, earn what lies on the chords of R between the points
	// f = 1/s; [index.Relax] finds the best frequencies on those.
	EvenSpread Spread = iota
	// RandomSpread crawls at each epoch with probability f, whatever happened
	// before, as the Poisson crawls of Azar et al., PNAS 2018, do in
	// continuous time. The age is geometric, and
	//
	//	R(f) = f E H(age) = f Σₛ (1 − f)^(s−1) (H(s) − H(s−1)),   s ≥ 1
	RandomSpread
)

// yield is R(f) of one source, interest per epoch.
type yield struct {
	env.Source
	spread Spread
	top    float64 // H(∞)
	closed bool    // RandomSpread has closed forms: R(f) = f u/(1 − α + αf)
	// node are the ages between which H counts as straight under RandomSpread,
	// and rise is its slope between them.
	node, rise []float64
}

// newYield prepares R. Under RandomSpread the ages up to 16 are told apart, and
// 16 in each doubling beyond, which moves R by less than 1 part in 1000.
func newYield(s env.Source, d Spread) yield {
	y := yield{Source: s, spread: d, top: s.Harvest(math.Inf(1))}
	y.closed = d == RandomSpread && s.Exponential() && math.IsInf(s.Window, 1)
	if d == EvenSpread || y.closed {
		return y
	}
	before, h := 0.0, 0.0
	for age := 1.0; h < y.top*(1-1e-12) && age < 1e12; age += math.Max(1, math.Floor(age/16)) {
		now := s.Harvest(age)
		y.node, y.rise = append(y.node, age), append(y.rise, (now-h)/(age-before))
		before, h = age, now
	}
	return y
}

// reward returns R(f).
func (y *yield) reward(f float64) (sum float64) {
	switch {
	case f == 0:
		return 0
	case y.spread == EvenSpread:
		return f * y.Harvest(1/f)
	case y.closed:
		return f * y.Gain() / (-math.Expm1(-y.Decay) + y.Factor()*f)
	}
	// Between nodes a and b the sum is rise·((1−f)^a − (1−f)^b).
	rest, last := 1.0, math.Log1p(-f)
	for k, age := range y.node {
		next := math.Exp(last * age)
		sum += y.rise[k] * (rest - next)
		rest = next
	}
	return sum
}

// slope returns R′(f), for 0 < f < 1. Under EvenSpread that is, with t = 1/f,
//
//	R′(f) = H(t) − tH′(t)
func (y *yield) slope(f float64) (sum float64) {
	if y.spread == EvenSpread {
		return y.Harvest(1/f) - y.HarvestRate(1/f)/f
	}
	rest, last := 0.0, math.Log1p(-f)
	for k, age := range y.node {
		next := age * math.Exp(last*(age-1)) // −d/df (1−f)^age
		sum += y.rise[k] * (next - rest)
		rest = next
	}
	return sum
}

// at returns the f in [0, 1] at which R′(f) is the charge of a crawl, or the
// end at which it comes closest.
func (y *yield) at(charge float64) float64 {
	const most = 1 - 1e-9
	switch {
	case !(charge < y.top):
		return 0
	case y.closed: // 1 − α + αf = (1 − α)/√q
		return math.Min(1, -math.Expm1(-y.Decay)*(1/math.Sqrt(charge/y.top)-1)/y.Factor())
	case y.slope(most) >= charge:
		return 1
	}
	// In f = e^v.
	lo := -1.0
	for y.slope(math.Exp(lo)) < charge && lo > -30 {
		lo -= 2
	}
	return math.Exp(crossing(lo, math.Log(most), func(v float64) float64 { return charge - y.slope(math.Exp(v)) }))
}

// crossing returns where f, which goes from below 0 to above it once between lo
// and hi, crosses 0: by the rule of false position in the form of Illinois.
func crossing(lo, hi float64, f func(float64) float64) float64 {
	a, b := f(lo), f(hi)
	side := 0
	for range 100 {
		x := (lo*b - hi*a) / (b - a)
		if !(x > lo && x < hi) {
			x = lo + (hi-lo)/2
		}
		y := f(x)
		switch {
		case y == 0 || hi-lo <= 4e-16*math.Max(math.Abs(lo), math.Abs(hi)):
			return x
		case y < 0:
			if lo, a = x, y; side < 0 {
				b /= 2
			}
			side = -1
		default:
			if hi, b = x, y; side > 0 {
				a /= 2
			}
			side = 1
		}
	}
	return (lo + hi) / 2
}

// Allocation is the static optimum: how often to crawl each source when the
// crawls are spread in a given way and nothing else is decided.
type Allocation struct {
	Spread    Spread
	Frequency []float64 // f, crawls per epoch
	Price     float64   // λ, interest per budget unit
	Reward    float64   // Σ R(f), interest per epoch
	Cost      float64   // Σ C f, budget units per epoch
}

// Allocate solves the concave allocation
//
//	max Σ Rᵢ(fᵢ)   with   Σ Cᵢfᵢ ≤ M,   0 ≤ fᵢ ≤ 1
//
// by bisection on the multiplier λ: R′(f) = λC, or f is at an end of its range.
// It panics if the instance is not valid.
func Allocate(in env.Instance, d Spread) Allocation {
	if err := in.Validate(); err != nil {
		panic("baselines: " + err.Error())
	}
	n, terms := len(in.Sources), in.Terms()
	a := Allocation{Spread: d, Frequency: make([]float64, n)}
	yields := make([]yield, n)
	var hi float64
	for i, s := range in.Sources {
		yields[i] = newYield(s, d)
		hi = math.Max(hi, yields[i].top/s.Cost)
	}
	low, high, trial := make([]float64, n), make([]float64, n), make([]float64, n)
	fill := func(f []float64, price float64) (cost float64) {
		for i, s := range in.Sources {
			if terms.Affordable(i) {
				f[i] = yields[i].at(price * s.Cost)
				cost += s.Cost * f[i]
			}
		}
		return cost
	}
	// low and high are the frequencies at the ends of the bracket.
	lo, dear, cheap := 0.0, fill(low, 0), fill(high, hi)
	w := 1.0
	if !env.Fits(dear, in.Budget) {
		for {
			mid := lo + (hi-lo)/2
			if mid <= lo || mid >= hi {
				break
			}
			if cost := fill(trial, mid); cost > in.Budget {
				lo, dear = mid, cost
				low, trial = trial, low
			} else {
				hi, cheap = mid, cost
				high, trial = trial, high
			}
		}
		a.Price = hi
		// Between neighbouring prices f may still jump by its rounding where R
		// is all but straight; the mean of both ends uses the budget up.
		w = (in.Budget - cheap) / (dear - cheap)
	}
	for i, s := range in.Sources {
		f := low[i]
		if high[i] != f {
			f = w*f + (1-w)*high[i]
		}
		a.Frequency[i] = f
		a.Reward += yields[i].reward(f)
		a.Cost += s.Cost * f
	}
	return a
}

// NewEvenSchedule returns the deterministic schedule that crawls source i as
// evenly as the budget lets it about f[i] times per epoch: at each epoch those
// sources whose age is the greatest part of their interval 1/f, whether it has
// passed or not. When the frequencies use up the budget that part settles about
// 1. Gaps in whole epochs that do not alternate can move the frequencies.
// A source of frequency 0 is never crawled.
func NewEvenSchedule(t env.Terms, f []float64) env.Policy[env.Model] {
	return NewByIndex(t, func(key []float64, o *env.Model) {
		for i, f := range f {
			key[i] = negInf
			if f > 0 {
				key[i] = f * float64(o.Age(i))
			}
		}
	})
}

// randomSchedule crawls each source with its own probability at each epoch.
type randomSchedule struct {
	terms env.Terms
	f     []float64
	rand  *stream.Rand
	order []int
	drawn []int
}

// NewRandomSchedule returns the randomised schedule that crawls source i at each
// epoch with probability f[i]. Systematic sampling (Madow, 1949) over an order
// that is shuffled anew at each epoch draws as many crawls as the frequencies
// add up to, rounded down or up, each source with its exact probability. Where
// the draw exceeds the budget, which it does not when all costs are equal and
// divide it, sources of the draw are left out by chance.
func NewRandomSchedule(t env.Terms, f []float64, r *stream.Rand) env.Policy[env.Model] {
	p := &randomSchedule{terms: t, f: f, rand: r}
	for i, f := range f {
		if f > 0 {
			p.order = append(p.order, i)
		}
	}
	return p
}

// Select implements env.Policy.
func (p *randomSchedule) Select(dst []int, _ *env.Model) []int {
	p.rand.Shuffle(len(p.order), func(a, b int) { p.order[a], p.order[b] = p.order[b], p.order[a] })
	// The frequencies, laid end to end, are hit by a grid of step 1 with a
	// random origin; none is longer than the step.
	p.drawn = p.drawn[:0]
	next := p.rand.Float64()
	var end float64
	for _, i := range p.order {
		end += p.f[i]
		if next < end*(1-1e-12) {
			p.drawn = append(p.drawn, i)
			next++
		}
	}
	var cost float64
	for _, i := range p.drawn { // in random order already
		if c := p.terms.Costs[i]; env.Fits(cost+c, p.terms.Budget) {
			dst = append(dst, i)
			cost += c
		}
	}
	return dst
}
