package estimate

import (
	"fmt"
	"math"

	"ephemera/env"
	"ephemera/learner/internal/check"
)

// Settings of what is estimated.
type Settings struct {
	Horizon float64 // epochs that are looked back; 0 for no limit

	// The rest is for ablations.
	Profile string // of the hours and days: "mixed", "off", "common" or "own"
	Memory  string // "mixed", or "long" for the horizon alone
	Tails   string // "cut" for interest that is cut where it is far above the usual, or "raw"
}

// Estimates are what crawled items tell about their sources: the interest that
// is published per epoch, λξ̄, and the decay rate c. Sources about which little
// is known lean on what is common to all.
type Estimates struct {
	given   float64 // decay rate, if known
	horizon float64 // epochs; 0 for no limit

	crawls []int
	sums   []itemSums
	drift  [][2]float64 // cumulative sums of surprise, upwards and downwards

	// Common to all sources.
	rate   float64 // mean of λξ̄, interest per epoch
	decay  float64 // mean of c
	unsure float64 // variance of that mean
	spread float64 // variance of c between sources
	noise  float64 // variance of ln ξ within a source
	weight float64 // of the common rate, in epochs
	pooled int     // epoch
	any    bool

	// Squares of what crawls brought beyond the estimate, and the estimates:
	// their ratio φ is the variance of a harvest in units of its mean.
	square, mean float64
	// The same of single items: were they to arrive by themselves, as in a
	// Poisson process, Σξ²/Σξ would be φ as well, and it is known sooner.
	itemSquare, itemSum float64
}

// itemSums are the sums of one source over its crawled items and crawls.
type itemSums struct {
	// Regression of y = ln(present interest) on the age a, whose slope is −c.
	N, A, Y, AA, AY, YY float64
	// Interest harvested, and for how many epochs' worth of new interest:
	// Σ(1 − α^s)/c over the crawls at ages s.
	Harvest, Epochs float64
}

const (
	firstDecay  = 0.2  // 1/epoch, before anything has been seen
	firstDoubt  = 0.5  // its standard error
	givenDoubt  = 0.05 // standard error of ln c where it is given: nobody knows it exactly
	leastDecay  = 1e-4 // 1/epoch
	mostDecay   = 20
	firstWeight = 0.2 // epochs; what is pooled replaces it
	mostWeight  = 1e4
	keepAfter   = 0.05 // share of what was known that outlives a change
	poolEvery   = 32   // epochs
	firstNoise  = 20   // items with variance 1 of ln ξ, before anything has been seen
)

// Init begins with nothing known of n sources; given is the decay rate of all,
// 1/epoch, or 0, and horizon how far back to look, in epochs, or 0 for no limit.
func (e *Estimates) Init(n int, given, horizon float64) {
	*e = Estimates{given: given, horizon: horizon, crawls: make([]int, n), sums: make([]itemSums, n), drift: make([][2]float64, n), rate: 1, decay: firstDecay, unsure: firstDoubt * firstDoubt, spread: firstDecay * firstDecay / 4, noise: 1, weight: firstWeight}
	if given > 0 {
		e.decay = given
	}
}

// Crawls returns how often source i was crawled.
func (e *Estimates) Crawls(i int) int { return e.crawls[i] }

// Add takes in a crawl.
func (e *Estimates) Add(c env.Crawled) {
	s := &e.sums[c.Source]
	age := float64(c.Age)
	if e.horizon > 0 {
		f := math.Exp(-age / e.horizon)
		for _, v := range []*float64{&s.N, &s.A, &s.Y, &s.AA, &s.AY, &s.YY, &s.Harvest, &s.Epochs} {
			*v *= f
		}
	}
	for _, it := range c.Items {
		if !(it.Interest > 0) {
			continue
		}
		e.itemSquare += it.Interest * it.Interest
		e.itemSum += it.Interest
		y := math.Log(it.Interest)
		s.N++
		s.A += it.Age
		s.Y += y
		s.AA += it.Age * it.Age
		s.AY += it.Age * y
		s.YY += y * y
	}
	e.crawls[c.Source]++
	rate, decay := e.Source(c.Source)
	epochs := -math.Expm1(-decay*age) / decay
	if e.crawls[c.Source] > 2 && rate*epochs > 0 {
		// The first crawls tell how far the estimate was off, not the noise.
		off := c.Interest - rate*epochs
		e.square += off * off
		e.mean += rate * epochs
		if e.horizon > 0 && e.surprised(c.Source, off/math.Sqrt(e.phi()*rate*epochs)) {
			s.Harvest *= keepAfter
			s.Epochs *= keepAfter
		}
	}
	s.Harvest += c.Interest
	s.Epochs += epochs
}

// surprised reports whether the harvests of source i have left their mean: it
// is Page's cumulative sum test of the standardised deviations z, on both
// sides, with deviations cut so that a single huge item is no alarm.
//
//	S⁺ ← max(0, S⁺ + z − ½),  S⁻ ← max(0, S⁻ − z − ½),  alarm above 10
func (e *Estimates) surprised(i int, z float64) bool {
	z = max(-3, min(3, z))
	d := &e.drift[i]
	d[0] = max(0, d[0]+z-.5)
	d[1] = max(0, d[1]-z-.5)
	if max(d[0], d[1]) <= 10 {
		return false
	}
	*d = [2]float64{}
	return true
}

// phi returns φ, the variance of a harvest in units of its mean.
func (e *Estimates) phi() float64 {
	var phi float64
	if e.mean > 0 {
		phi = e.square / e.mean
	}
	if e.itemSum > 0 {
		phi = max(phi, e.itemSquare/e.itemSum)
	}
	return max(phi, 1e-300)
}

// slope returns the source's own estimate of c and the sum of squared ages
// around their mean, which is its weight.
func (s *itemSums) slope() (decay, weight float64) {
	if s.N < 2 {
		return 0, 0
	}
	weight = s.AA - s.A*s.A/s.N
	if !(weight > 1e-9*s.AA) {
		return 0, 0
	}
	return -(s.AY - s.A*s.Y/s.N) / weight, weight
}

// Source returns λξ̄ and c of source i.
func (e *Estimates) Source(i int) (rate, decay float64) {
	s := &e.sums[i]
	decay = e.given
	if decay == 0 {
		var sigma float64
		decay, sigma, _ = e.leaning(s)
		decay = min(max(positive(decay, sigma), leastDecay), mostDecay)
	}
	rate = (s.Harvest + e.weight*e.rate) / (s.Epochs + e.weight)
	return rate, decay
}

// Doubt returns the standard error of ln c of source i.
func (e *Estimates) Doubt(i int) float64 {
	if e.given > 0 {
		return givenDoubt
	}
	decay, sigma, share := e.leaning(&e.sums[i])
	// What it leans on is not known for certain either.
	return math.Sqrt(sigma*sigma+share*share*e.unsure) / positive(decay, sigma)
}

// leaning returns the mean of a source's own slope and the common one, weighted
// by their inverse variances, σ²/Σ(a − ā)² and the spread; its standard error
// if the common one is right; and the weight of the common one, 0 to 1.
func (e *Estimates) leaning(s *itemSums) (decay, sigma, share float64) {
	own, weight := s.slope()
	prior := e.noise / max(e.spread, 1e-12)
	all := weight + prior
	return (own*weight + e.decay*prior) / all, math.Sqrt(e.noise / all), prior / all
}

// positive returns the mean of a normal variable given that it is above 0:
// m + σ φ(m/σ)/Φ(m/σ). Without it a few items can make a decay rate vanish, and
// a source that is thought not to decay is never worth a crawl.
func positive(m, sigma float64) float64 {
	z := m / sigma
	switch {
	case !(sigma > 0) || z > 8:
		return m
	case z < -8:
		return -sigma / z // φ/Φ = −z − 1/z + …
	}
	return m + sigma*math.Exp(-z*z/2)/(math.SqrtPi/math.Sqrt2*math.Erfc(-z/math.Sqrt2))
}

// pool now and then brings what is common to all sources up to date, and
// reports whether it did.
// Pool gathers what is common to all sources, every so many epochs. It reports
// whether it did.
func (e *Estimates) Pool(epoch int) bool {
	if e.any && epoch-e.pooled < poolEvery && epoch > poolEvery {
		return false
	}
	e.pooled = epoch
	var n, rate, rss, dof, slopes float64
	for i := range e.sums {
		s := &e.sums[i]
		if s.Epochs > 0 {
			n++
			rate += s.Harvest / s.Epochs
		}
		if own, weight := s.slope(); weight > 0 && s.N > 2 {
			rss += max(0, s.YY-s.Y*s.Y/s.N-own*own*weight)
			dof += s.N - 2
			slopes++
		}
	}
	if n == 0 {
		return false
	}
	e.any = true
	e.rate = rate / n
	e.weigh(n)
	if e.given > 0 || slopes == 0 || dof <= 0 {
		return true
	}
	e.noise = max((rss+firstNoise)/(dof+firstNoise), 1e-12)
	// Paule and Mandel: the spread τ² at which the slopes, each with variance
	// τ² + σ²/Σ(a − ā)², differ by as much as they should, Q(τ²) = k − 1.
	for range 8 {
		w := 1 / (e.spread + firstDoubt*firstDoubt)
		mean, q := w*firstDecay, 0.0
		for i := range e.sums {
			if own, weight := e.sums[i].slope(); weight > 0 && e.sums[i].N > 2 {
				v := 1 / (e.spread + e.noise/weight)
				w += v
				mean += v * own
			}
		}
		mean /= w
		e.unsure = 1 / w
		e.decay = min(max(mean, leastDecay), mostDecay)
		if slopes < 2 {
			break
		}
		for i := range e.sums {
			if own, weight := e.sums[i].slope(); weight > 0 && e.sums[i].N > 2 {
				q += (own - mean) * (own - mean) / (e.spread + e.noise/weight)
			}
		}
		e.spread = min(max(e.spread*min(max(q/(slopes-1), .25), 4), 1e-4*e.decay*e.decay), mostDecay*mostDecay)
	}
	return true
}

// weigh finds how much a source leans on the common rate. If a harvest over E
// epochs has the variance φ r E around its mean r E, and the rates themselves
// the variance τ² around r̄, the best linear estimate counts the common rate as
// φ r̄/τ² epochs of harvest.
func (e *Estimates) weigh(n float64) {
	phi := e.phi()
	if n < 2 || e.mean+e.itemSum <= 0 || e.rate <= 0 {
		return
	}
	var q float64
	for i := range e.sums {
		if s := &e.sums[i]; s.Epochs > 0 {
			d := s.Harvest/s.Epochs - e.rate
			q += d*d - phi*e.rate/max(s.Epochs, e.weight)
		}
	}
	tau := max(q/(n-1), leastSpread*e.rate*e.rate)
	e.weight = min(max(phi*e.rate/tau, 1e-3), mostWeight)
}

// leastSpread is the least τ² in units of r̄².
const leastSpread = 0.05

// State are the estimates of all sources as data.
type State struct {
	Crawls []int        `json:"crawls"`
	Sums   [][8]float64 `json:"sums"`
	Drift  [][2]float64 `json:"drift"`
	Common [11]float64  `json:"common"` // rate, decay, spread, noise, weight, the sums of φ, epoch of the last pooling, variance of decay
}

// State returns the whole state.
func (e *Estimates) State() State {
	s := State{Crawls: append([]int(nil), e.crawls...), Drift: append([][2]float64(nil), e.drift...), Common: [11]float64{e.rate, e.decay, e.spread, e.noise, e.weight, e.square, e.mean, e.itemSquare, e.itemSum, float64(e.pooled), e.unsure}}
	for _, v := range e.sums {
		s.Sums = append(s.Sums, [8]float64{v.N, v.A, v.Y, v.AA, v.AY, v.YY, v.Harvest, v.Epochs})
	}
	return s
}

// SetState takes up a state that State returned.
func (e *Estimates) SetState(s State) error {
	if len(s.Crawls) != len(e.crawls) || len(s.Drift) != len(e.drift) || len(s.Sums) != len(e.sums) {
		return fmt.Errorf("estimates of %d and %d sources; the learner has %d", len(s.Crawls), len(s.Sums), len(e.sums))
	}
	for i, v := range s.Sums {
		if err := check.Finite(fmt.Sprintf("estimates of source %d", i+1), v[:], len(v)); err != nil {
			return err
		}
	}
	if err := check.Finite("estimates of all sources", s.Common[:], len(s.Common)); err != nil {
		return err
	}
	for i, n := range s.Crawls {
		if err := check.Finite(fmt.Sprintf("drift of source %d", i+1), s.Drift[i][:], 2); err != nil {
			return err
		}
		if n < 0 {
			return fmt.Errorf("crawls has %d at place %d; allowed are 0 and more", n, i)
		}
	}
	if s.Common[1] < 0 {
		return fmt.Errorf("decay is %v; allowed is 0 or more", s.Common[1])
	}
	copy(e.crawls, s.Crawls)
	copy(e.drift, s.Drift)
	e.any = false
	for i, v := range s.Sums {
		e.sums[i] = itemSums{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]}
		e.any = e.any || v[7] > 0
	}
	c := s.Common
	e.rate, e.decay, e.spread, e.noise, e.weight, e.square, e.mean, e.itemSquare, e.itemSum, e.pooled, e.unsure = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], int(c[9]), c[10]
	return nil
}
