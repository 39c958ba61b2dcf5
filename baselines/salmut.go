package baselines

import (
	"cmp"
	"math"

	"ephemera/env"
	"ephemera/env/stream"
)

// Salmut are the settings of [NewSalmut].
type Salmut struct {
	// Ages is the greatest age that is distinguished, and the highest threshold.
	// 0 stands for sixteen rounds of round robin, from 16 to 4096.
	Ages int `toml:"ages"`
	// Kappa is the steepness κ of the randomised threshold in the logarithm of
	// the age at the start. It grows with ⌈n/500⌉^½, to three times that, which
	// leaves the exploration to the beginning.
	Kappa  float64 `toml:"kappa"`
	Critic float64 `toml:"critic"` // scale of a(ν) = Critic/ν^0.6
	// Actor is the scale of b(ν) = Actor/⌈ν/100⌉^0.8, with ν the crawls of the
	// source: each has a clock of its own.
	Actor float64 `toml:"actor"`
	Dual  float64 `toml:"dual"` // scale of d(n) = Dual/⌈n/500⌉^0.9
}

// DefaultSalmut returns the usual settings.
func DefaultSalmut() Salmut { return Salmut{Kappa: 4, Critic: 1, Actor: .5, Dual: .02} }

// Validate reports the first setting that is out of its range.
func (s *Salmut) Validate() error {
	names := []string{"kappa", "critic", "actor", "dual"}
	return cmp.Or(within(0, math.Inf(1), names, s.Kappa, s.Critic, s.Actor, s.Dual), checkAges(s.Ages))
}

// salmut is structure-aware learning of thresholds (SALMUT: Roy, Borkar,
// Karandikar and Chaporkar, 2019) with one threshold per source on its age. A
// table of values on the ages is learned on the fast scale, the thresholds on a
// slower one, the price of a crawl on the slowest. The threshold is randomised
// by a logit, which makes the gradient smooth, and sources are crawled by
// decreasing margin over the threshold until the budget is used.
type salmut struct {
	s      Salmut
	sel    *Selector
	costs  []float64
	budget float64
	rnd    *stream.Rand
	epoch  int
	key    []float64
	table  [][]ageValue // of each source, by age from 1
	yield  [][]harvest  // H of each source, by bin of ages
	theta  []float64    // ln τ
	worth  []float64    // running mean of the interest of a crawl, the source's own scale
	crawls []int        // of each source
	price  float64
	kappa  float64 // κ now
	scale  float64 // running mean of the interest of a crawl per budget unit
	took   []int   // scratch: number of each source's crawl, or −1
	top    float64 // ln of the greatest age
}

// ageValue is what has been learned at one age of one source.
type ageValue struct {
	seen           float64
	interest, left float64 // R, L
}

// harvest is the mean interest of the crawls at about one age.
type harvest struct{ crawls, mean float64 }

// NewSalmut returns SALMUT-style threshold learning for crawlers that know the
// terms and nothing else.
func NewSalmut(t env.Terms, s Salmut, rnd *stream.Rand) (env.Learner[env.Online], error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	n, round := len(t.Costs), t.Round()
	s.Ages = cmp.Or(s.Ages, int(clamp(math.Ceil(16*round), 16, 4096)))
	l := &salmut{
		s: s, sel: NewSelector(t.Costs, t.Budget), costs: t.Costs, budget: t.Budget, rnd: rnd,
		key:    make([]float64, n),
		table:  make([][]ageValue, n),
		yield:  make([][]harvest, n),
		theta:  make([]float64, n),
		worth:  make([]float64, n),
		crawls: make([]int, n),
		kappa:  s.Kappa,
		took:   make([]int, n),
		top:    math.Log(float64(s.Ages)),
	}
	for i := range l.theta {
		l.theta[i] = math.Log(round) // the threshold of round robin
	}
	return l, nil
}

// margin is the logit of the probability to crawl at age s:
//
//	f(s, τ) = 1/(1 + e^(−κ(ln s − ln τ)))
func (l *salmut) margin(i, s int) float64 {
	return l.kappa * (math.Log(float64(s)) - l.theta[i])
}

// Select implements env.Policy. Margins are perturbed by logistic noise, so that
// the sign of the key has the probability f; the budget takes the greatest.
func (l *salmut) Select(dst []int, o *env.Online) []int {
	for i := range l.key {
		switch {
		case !env.Fits(l.costs[i], l.budget):
			l.key[i] = math.Inf(-1)
			continue
		case o.Last[i] < 0:
			l.key[i] = math.Inf(1) // a cold start
			continue
		}
		u := l.rnd.Float64()
		l.key[i] = l.margin(i, o.Age(i)) + math.Log((u+0x1p-60)/(1-u))
	}
	return l.sel.Within(o).Top(dst, l.key)
}

// HarvestsOnly implements env.HarvestsOnly.
func (l *salmut) HarvestsOnly() {}

// Update implements env.Learner.
func (l *salmut) Update(crawls []env.Crawled, next *env.Online) {
	l.epoch++
	l.kappa = l.s.Kappa * math.Min(3, math.Sqrt(math.Ceil(float64(l.epoch+1)/500)))
	dual := l.s.Dual / math.Pow(math.Ceil(float64(l.epoch)/500), .9)
	var cost float64
	for i, k := range crawlOfEach(l.took, crawls) {
		if !env.Fits(l.costs[i], l.budget) {
			continue
		}
		s := min(next.Age(i)-1, l.s.Ages)
		if k >= 0 {
			s = min(crawls[k].Age, l.s.Ages)
		}
		cost += l.costs[i] / (1 + math.Exp(-l.margin(i, s)))
		if k >= 0 {
			// The scales are means over the crawls of a source, and per budget unit over all.
			x := crawls[k].Interest
			l.crawls[i]++
			l.worth[i] += (x - l.worth[i]) / float64(min(l.crawls[i], 100))
			l.scale += (x/l.costs[i] - l.scale) / float64(min(l.epoch, 1000))
			l.learn(i, s, x)
		}
		l.move(i, s, l.s.Actor/math.Pow(math.Ceil(float64(1+l.crawls[i])/100), .8))
	}
	// λ ← max(0, λ + d(n) h (Σ C f − M)/max(M, Σ C f)), in the price's own
	// scale h; relative to the greater, the price falls as fast as it rises.
	l.price = math.Max(0, l.price+dual*l.scale*(cost-l.budget)/math.Max(l.budget, cost))
}

// learn is the fast time scale, at a crawl at age s that brought X. Every age
// r ≤ s of the cycle that ends has seen one more outcome (Monte Carlo, TD(1): a
// cycle may be long, and one-step updates would need as many cycles as it has
// epochs):
//
//	R(r) ← R(r) + a(ν)(X − R(r))              interest of the crawl to come
//	L(r) ← L(r) + a(ν)(s − r + 1 − L(r))      epochs until it is over
//	H(s) ← mean of X over the crawls at age s, or within a tenth of it above 16
//
// With η = (R(1) − λC)/L(1), the reward per epoch at the price, the relative
// value of an age is V(r) = R(r) − λC − η L(r), and V(1) = 0.
func (l *salmut) learn(i, s int, interest float64) {
	t := l.table[i]
	for len(t) < s {
		t = append(t, ageValue{})
	}
	l.table[i] = t
	for r := range t[:s] {
		v := &t[r]
		v.seen++
		step := math.Min(1, l.s.Critic*math.Pow(v.seen, -.6))
		v.interest += step * (interest - v.interest)
		v.left += step * (float64(s-r) - v.left)
	}
	k := binOf(s)
	for len(l.yield[i]) <= k {
		l.yield[i] = append(l.yield[i], harvest{})
	}
	h := &l.yield[i][k]
	h.crawls++
	h.mean += (interest - h.mean) / h.crawls
}

// move is the slow time scale. Both next ages are known, so at an age where a
// crawl has been seen the advantage of one is
//
//	A = H(s) − λC + V(1) − V(s+1) = H(s) − R(s+1) + η L(s+1)
//
// and the threshold follows the gradient f(1 − f) A:
//
//	ln τ ← Π[ln τ − 4 b(ν) f(1−f) clip(4A/h, ±1)]
//
// with h the mean harvest of the source. Π holds ln τ at −5/κ or more, so that
// even a source that is always crawled rests now and then, with probability
// 1/(1 + e⁵), and at the greatest age or less. Where s+1 was never reached, H(s+1) is
// at most H(s)(s+1)/s, since harvests are concave in the age; that bound stands
// in, and the threshold goes up and sees.
func (l *salmut) move(i, s int, step float64) {
	k, t := binOf(s), l.table[i]
	if k >= len(l.yield[i]) || l.yield[i][k].crawls == 0 {
		return
	}
	f := 1 / (1 + math.Exp(-l.margin(i, s)))
	if l.worth[i] <= 0 {
		l.theta[i] = math.Min(l.theta[i]+4*step*f*(1-f), l.top)
		return
	}
	eta := (t[0].interest - l.price*l.costs[i]) / t[0].left
	h := l.yield[i][k].mean
	later, left := h*float64(s+1)/float64(s), 1.0
	if s < len(t) {
		later, left = t[s].interest, t[s].left
	}
	advantage := h - later + eta*left
	l.theta[i] = clamp(l.theta[i]-4*step*f*(1-f)*clamp(4*advantage/l.worth[i], -1, 1), -5/l.kappa, l.top)
}

// binOf returns the number of the bin of an age: one for each age up to 16, eight
// for each doubling above, up to whole ages.
func binOf(age int) int {
	if age <= 16 {
		return age - 1
	}
	return 15 + int(math.Ceil(8*math.Log2((float64(age)-.5)/16)))
}
