package baselines

import (
	"fmt"
	"math"

	"ephemera/env"
)

// Estimator estimates the decay and the inflow (rate × mean interest) of every
// source from what crawls bring back, and nothing else. What a source's own
// crawls leave open is filled in from the other sources by empirical Bayes: the
// common law of the sources is estimated along with them, and a source departs
// from it as far as its own crawls bear out.
//
// An item of age a has the present interest y = ξ e^(−c a), with its mark ξ
// independent of its age. Hence
//
//   - log y = log ξ − c a: the slope of log y over a within a source estimates
//     −c, whatever the law of the marks, heavy tails included;
//   - the interest of a crawl at age s has the mean B (1 − e^(−cs))/c with
//     B = λ ξ̄, and a variance that the sum of squared interests estimates.
//
// In worlds whose crawls name no items, c is fitted to the harvests at
// different ages.
type Estimator struct {
	given  []float64 // known decay of each source; nil to estimate
	memory float64
	src    []estimate

	// The common law: ln c ~ N(m, τ²); B has mean m and variance τ².
	decayMean, decayVar   float64
	inflowMean, inflowVar float64
	crawled               int // sources with a crawl
}

// estimate is what is known of one source. Sums are over all crawls, each
// weighted by the memory.
type estimate struct {
	crawls, items float64
	elapsed       float64 // Σ age of the crawls, epochs

	// Regression of log y on a: weight, means, centred sums.
	w, a, l, aa, al, ll float64

	bins  []bin   // crawls and items by age
	t, t2 float64 // T, weighted interest, with mean B·E and variance near T2
	e     float64 // E, exposure, epochs
	slope float64 // ∂ ln B/∂ ln c with B = T/E
	used  float64 // ln c of the above

	stale           bool    // T and E lack crawls
	theta, thetaVar float64 // ln c and its variance given everything
	inflow, spread  float64 // B and its variance given everything

	// In worlds whose crawls name no items.
	lumps        bool
	dispersion   float64 // Var X/E X
	fit, fitInfo float64 // ln c from harvests, and its precision
}

// bin sums the crawls of a source at about one age, and the items found at that
// age.
type bin struct {
	n, age, x, x2 float64 // crawls: number, Σ age, Σ interest and its square if they name no items
	y, y2         float64 // items: Σ interest and its square
}

// EstimatorSettings are the settings of an [Estimator].
type EstimatorSettings struct {
	// Decay holds the decay rate of each source, 1/epoch, or one for all. Nil
	// means that it is not known.
	Decay []float64
	// Memory is the age, in epochs, at which a crawl has lost all but 1/e of
	// its weight. 0 means that nothing is forgotten.
	Memory float64
}

// NewEstimator returns an estimator for n sources.
func NewEstimator(n int, s EstimatorSettings) *Estimator {
	if s.Memory < 0 || math.IsNaN(s.Memory) {
		panic(fmt.Sprintf("baselines: memory is %v epochs; allowed is 0 or more", s.Memory))
	}
	e := &Estimator{memory: s.Memory, src: make([]estimate, n)}
	switch len(s.Decay) {
	case 0:
	case 1, n:
		e.given = make([]float64, n)
		for i := range e.given {
			c := s.Decay[i%len(s.Decay)]
			if !(c > 0) || math.IsInf(c, 0) {
				panic(fmt.Sprintf("baselines: decay of source %d is %v; allowed is finite and above 0", i, c))
			}
			e.given[i] = c
		}
	default:
		panic(fmt.Sprintf("baselines: %d decay rates for %d sources; allowed are 0, 1 or %d", len(s.Decay), n, n))
	}
	// Until anything is known: a decay of 1/epoch give or take a factor of ten.
	e.decayMean, e.decayVar = 0, math.Ln10*math.Ln10
	for i := range e.src {
		s := &e.src[i]
		s.theta, s.thetaVar = e.decayMean, e.decayVar
		if e.given != nil {
			s.theta, s.thetaVar = math.Log(e.given[i]), 0
		}
	}
	return e
}

// Known reports whether any crawl has brought back anything.
func (e *Estimator) Known() bool { return e.inflowMean > 0 }

// Crawls returns how many crawls of source i count, by their weights.
func (e *Estimator) Crawls(i int) float64 { return e.src[i].crawls }

// Decay returns the estimate of c, 1/epoch.
func (e *Estimator) Decay(i int) float64 {
	if e.given != nil {
		return e.given[i]
	}
	return math.Exp(e.src[i].theta)
}

// DecayError returns the standard error of ln c; 0 if c is given.
func (e *Estimator) DecayError(i int) float64 { return math.Sqrt(e.src[i].thetaVar) }

// Blind reports whether the crawls of source i, at least two, named no items and
// were all at this age: from them, decay and inflow cannot be told apart.
func (e *Estimator) Blind(i, age int) bool {
	s := &e.src[i]
	return s.lumps && e.given == nil && s.fitInfo == 0 && s.crawls >= 2 && s.at(float64(age)).n >= s.crawls
}

// Inflow returns the estimate of B = λ ξ̄, interest per epoch, and its standard
// error.
func (e *Estimator) Inflow(i int) (b, se float64) {
	s := &e.src[i]
	return s.inflow, math.Sqrt(s.spread)
}

// Source returns the estimates as a source without a window whose crawls cost
// 1. Rate is the number of items found per epoch elapsed, or 1 in worlds without
// items.
func (e *Estimator) Source(i int) env.Source {
	s := &e.src[i]
	rate := 1.0
	if s.items > 0 {
		rate = s.items / s.elapsed
	}
	return env.NewSource("", rate, e.Decay(i), s.inflow/rate)
}

// Add takes in one crawl. The estimates change with the next Fit.
func (e *Estimator) Add(c env.Crawled) {
	s := &e.src[c.Source]
	age := float64(c.Age)
	if s.crawls == 0 {
		e.crawled++
	} else if e.memory > 0 {
		s.forget(math.Exp(-age / e.memory))
	}
	s.crawls++
	s.elapsed += age
	s.stale = true
	b := s.at(age)
	b.n++
	b.age += age
	for _, it := range c.Items {
		s.items++
		b := s.at(it.Age)
		b.y += it.Interest
		b.y2 += it.Interest * it.Interest
		if it.Interest > 0 {
			s.regress(it.Age, math.Log(it.Interest))
		}
	}
	if len(c.Items) == 0 && c.Interest > 0 {
		b.x += c.Interest
		b.x2 += c.Interest * c.Interest
		s.lumps = true
		s.fitHarvests(e.given == nil)
	}
}

func (s *estimate) forget(f float64) {
	for _, v := range []*float64{&s.crawls, &s.items, &s.elapsed, &s.w, &s.aa, &s.al, &s.ll} {
		*v *= f
	}
	for k := range s.bins {
		b := &s.bins[k]
		*b = bin{f * b.n, f * b.age, f * b.x, f * b.x2, f * b.y, f * b.y2}
	}
}

// regress adds a point to the centred sums (Welford, 1962).
func (s *estimate) regress(a, l float64) {
	s.w++
	da, dl := a-s.a, l-s.l
	s.a += da / s.w
	s.l += dl / s.w
	s.aa += da * (a - s.a)
	s.al += da * (l - s.l)
	s.ll += dl * (l - s.l)
}

// edges are the upper ends of the bins, whole epochs: one bin for each age up to
// 16, eight for each doubling above.
var edges = func() []float64 {
	var v []float64
	for k := 1; k <= 16; k++ {
		v = append(v, float64(k))
	}
	for k := 1; k <= 8*48; k++ {
		v = append(v, math.Round(16*math.Exp2(float64(k)/8)))
	}
	return v
}()

// binOf returns the number of the bin of an age, which is above the edge before
// and up to its own.
func binOf(age float64) int {
	k := max(0, int(math.Ceil(age))-1)
	if k >= 16 {
		k = min(15+int(8*math.Log2(age/16)), len(edges)-1)
		for k < len(edges)-1 && age > edges[k] {
			k++
		}
	}
	return k
}

func (s *estimate) at(age float64) *bin {
	k := binOf(age)
	for len(s.bins) <= k {
		s.bins = append(s.bins, bin{})
	}
	return &s.bins[k]
}

// faded is the number of decay times 1/c after which next to nothing, e^(−30), of
// an item is left.
const faded = 30

// decayed returns ∫₀ˢ e^(−ca) da = (1 − e^(−cs))/c.
func decayed(c, s float64) float64 { return -math.Expm1(-c*s) / c }

// Fit brings the estimates and the common law up to date: one sweep of
// expectation-maximisation, which goes on from where the last one stopped.
func (e *Estimator) Fit() {
	if e.crawled == 0 {
		return
	}
	if e.given == nil {
		e.fitDecay()
	}
	for i := range e.src {
		if s := &e.src[i]; s.crawls > 0 && (s.stale || math.Abs(s.theta-s.used) > 1e-3) {
			s.expose()
		}
	}
	e.fitInflow()
}

// fitDecay estimates ln c. With σ² the variance of log ξ,
//
//	ĉ ~ N(c, σ²/Σ(a − ā)²),    ln c ~ N(m, τ²)
//
// and each sweep takes one Gauss–Newton step towards the mode of ln c given
// both. The variance σ² of a source is shrunk to the common one with the weight
// of one item.
func (e *Estimator) fitDecay() {
	var rss, df float64
	for i := range e.src {
		if s := &e.src[i]; s.w > 2 && s.aa > 0 {
			rss += math.Max(0, s.ll-s.al*s.al/s.aa)
			df += s.w - 2
		}
	}
	common := 1.0
	if df > 0 {
		common = rss / df
	}
	var n, sum, sum2 float64
	for i := range e.src {
		s := &e.src[i]
		info, target := s.fitInfo, s.fit
		if s.aa > 0 {
			sigma2 := common
			if s.w > 2 {
				sigma2 = (math.Max(0, s.ll-s.al*s.al/s.aa) + common) / (s.w - 1)
			}
			c := math.Exp(s.theta)
			info = s.aa * c * c / math.Max(sigma2, 1e-12) // of ln c, at c
			target = s.theta + clamp((-s.al/s.aa-c)/c, -1, 1)
		}
		precision := info + 1/e.decayVar
		s.theta = (info*target + e.decayMean/e.decayVar) / precision
		s.thetaVar = 1 / precision
		if s.crawls > 0 && info > 0 {
			n++
			sum += s.theta
			sum2 += s.theta*s.theta + s.thetaVar
		}
	}
	if n > 1 { // one source says nothing of how sources differ
		e.decayMean = sum / n
		e.decayVar = math.Max(sum2/n-e.decayMean*e.decayMean, 1e-6)
	}
}

// expose computes T and E at the present estimate of c. Any weight g(a) of the
// items gives an unbiased B = T/E,
//
//	T = Σ g(a) y,    E = Σ over crawls ∫₀ˢ g(a) e^(−ca) da
//
// and g = e^(ca), under which all marks count alike, the one with the least
// variance. An error of c grows with the age under it, so g stops growing where
// the standard error of ca reaches .3, or where hardly anything is left of an
// item. Within a bin g is constant.
func (s *estimate) expose() {
	s.used, s.stale = s.theta, false
	c := math.Exp(s.theta)
	limit := math.Min(faded, .3/math.Sqrt(s.thetaVar))
	s.t, s.t2, s.e, s.slope = 0, 0, 0, 0
	if s.lumps {
		for _, b := range s.bins {
			if b.n > 0 {
				age := b.age / b.n
				e := b.n * decayed(c, age)
				s.t += b.x
				s.e += e
				s.slope -= e * slope(c*age)
			}
		}
		s.slope /= s.e
		return
	}
	beyond := s.crawls
	lo := 0.0
	for k, b := range s.bins {
		hi := edges[k]
		beyond -= b.n
		g := math.Min(c*lo, limit)
		grow := math.Exp(g)
		s.t += grow * b.y
		s.t2 += grow * grow * b.y2
		left := math.Exp(g - c*lo) // g(a) e^(−ca) at the bin's begin
		add := func(n, d float64) {
			e := n * left * decayed(c, d)
			s.e += e
			s.slope += e * (c*lo - slope(c*d))
		}
		add(math.Max(0, beyond), hi-lo)
		if b.n > 0 {
			add(b.n, math.Max(0, b.age/b.n-lo))
		}
		lo = hi
	}
	s.slope /= s.e
}

// fitInflow estimates B. A sum of marks behaves like κ times a Poisson count,
// κ = E ξ²/E ξ, so with a gamma law of the sources
//
//	B | T = (T + w m)/(E + w),    Var = κ B/(E + w) + (B ∂ ln B/∂ ln c)² Var ln c,    w = κ m/τ²
//
// that is, shrinkage to the common mean with a weight of w epochs. κ of a
// source is shrunk to the common one with the weight of one item.
func (e *Estimator) fitInflow() {
	var t, t2, items, exposure float64
	for i := range e.src {
		s := &e.src[i]
		exposure += s.e
		t += s.t
		if s.items > 0 {
			t2 += s.t2
			items += s.items
		}
	}
	if t == 0 {
		return
	}
	if e.inflowMean == 0 {
		// An exponential law of the sources, until they have been compared.
		e.inflowMean = t / exposure
		e.inflowVar = e.inflowMean * e.inflowMean
	}
	var kappa, one float64
	if items > 0 {
		kappa, one = t2/t, t/items
	}
	var n, sum, sum2 float64
	m, v := e.inflowMean, e.inflowVar
	for i := range e.src {
		s := &e.src[i]
		k := s.dispersion
		if items > 0 {
			k = (s.t2 + kappa*one) / (s.t + one)
		}
		w := k * m / v
		s.inflow = (s.t + w*m) / (s.e + w)
		s.spread = k*s.inflow/(s.e+w) + math.Pow(s.inflow*s.slope, 2)*s.thetaVar
		if s.crawls == 0 {
			s.inflow, s.spread = m, v
			continue
		}
		n++
		sum += s.inflow
		sum2 += s.inflow*s.inflow + s.spread
	}
	e.inflowMean = sum / n
	if n > 1 {
		e.inflowVar = math.Max(sum2/n-e.inflowMean*e.inflowMean, 1e-9*e.inflowMean*e.inflowMean)
	}
}

// fitHarvests fits ln c, if it is free, and the dispersion of a source whose
// crawls name no items. With μ = B(1 − e^(−cs))/c and Var X = φ μ, the weighted
// least squares that profile B out have the score and information
//
//	Σ (X − μ)(J − J̄)/φ,    Σ μ (J − J̄)²/φ,    J = ∂ ln μ/∂ ln c
//
// A few scoring steps follow each crawl. The dispersion starts from one crawl's
// worth of the mean harvest, so that nothing is certain after two crawls.
func (s *estimate) fitHarvests(free bool) {
	ages := 0
	for _, h := range s.bins {
		if h.n > 0 {
			ages++
		}
	}
	if s.fitInfo == 0 {
		s.fit = s.theta
	}
	if !free {
		s.fit = s.theta
	}
	var q, info float64
	for step := 0; step < 4; step++ {
		c := math.Exp(s.fit)
		var x, e, n, jBar float64
		for _, h := range s.bins {
			if h.n > 0 {
				age := h.age / h.n
				ek := decayed(c, age)
				x, e, n = x+h.x, e+h.n*ek, n+h.n
				jBar += h.n * ek * slope(c*age)
			}
		}
		b := x / e
		jBar /= e
		var score float64
		q, info = 0, 0
		for _, h := range s.bins {
			if h.n > 0 {
				age := h.age / h.n
				mu := b * decayed(c, age)
				j := slope(c*age) - jBar
				score += (h.x - h.n*mu) * j
				info += h.n * mu * j * j
				q += (h.x2 - 2*h.x*mu + h.n*mu*mu) / mu
			}
		}
		s.dispersion = (math.Max(0, q) + x/n) / n
		if ages < 2 || !free || !(info > 0) {
			break
		}
		s.fit = clamp(s.fit+clamp(score/info, -1, 1), -12, 5)
	}
	s.fitInfo = 0
	if free && ages > 1 && s.dispersion > 0 {
		s.fitInfo = info / s.dispersion
	}
}

// slope returns ∂ ln((1 − e^(−cs))/c)/∂ ln c at cs.
func slope(cs float64) float64 {
	if cs < 1e-8 {
		return -cs / 2
	}
	return cs/math.Expm1(cs) - 1
}
