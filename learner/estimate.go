package learner

import (
	"fmt"
	"math"

	"ephemera/env"
)

// estimates are what crawled items tell about their sources: the interest that
// is published per epoch, λξ̄, and the decay rate c. Sources about which little
// is known lean on what is common to all.
type estimates struct {
	given   float64 // decay rate, if known
	horizon float64 // epochs; 0 for no limit

	crawls []int
	sums   []itemSums

	// Common to all sources.
	rate   float64 // mean of λξ̄, interest per epoch
	decay  float64 // mean of c
	spread float64 // variance of c between sources
	noise  float64 // variance of ln ξ within a source
	pooled int     // epoch
	any    bool
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
	leastDecay  = 1e-4 // 1/epoch
	mostDecay   = 20
	priorEpochs = 0.2 // weight of the common rate, in epochs
	poolEvery   = 32  // epochs
)

func (e *estimates) init(n int, given, horizon float64) {
	*e = estimates{given: given, horizon: horizon, crawls: make([]int, n), sums: make([]itemSums, n), rate: 1, decay: firstDecay, spread: firstDecay * firstDecay / 4, noise: 1}
	if given > 0 {
		e.decay = given
	}
}

// add takes in a crawl.
func (e *estimates) add(c env.Crawled) {
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
		y := math.Log(it.Interest)
		s.N++
		s.A += it.Age
		s.Y += y
		s.AA += it.Age * it.Age
		s.AY += it.Age * y
		s.YY += y * y
	}
	e.crawls[c.Source]++
	_, decay := e.source(c.Source)
	s.Harvest += c.Interest
	s.Epochs += -math.Expm1(-decay*age) / decay
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

// source returns λξ̄ and c of source i.
func (e *estimates) source(i int) (rate, decay float64) {
	s := &e.sums[i]
	decay = e.given
	if decay == 0 {
		// The mean of the source's own slope and the common one, weighted by
		// their inverse variances: σ²/Σ(a − ā)² and the spread.
		own, weight := s.slope()
		prior := e.noise / max(e.spread, 1e-12)
		decay = (own*weight + e.decay*prior) / (weight + prior)
		decay = positive(decay, math.Sqrt(e.noise/(weight+prior)))
		decay = min(max(decay, leastDecay), mostDecay)
	}
	rate = (s.Harvest + priorEpochs*e.rate) / (s.Epochs + priorEpochs)
	return rate, decay
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
func (e *estimates) pool(epoch int) bool {
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
	if e.given > 0 || slopes == 0 || dof <= 0 {
		return true
	}
	e.noise = max(rss/dof, 1e-12)
	// Paule and Mandel: the spread τ² at which the slopes, each with variance
	// τ² + σ²/Σ(a − ā)², differ by as much as they should, Q(τ²) = k − 1.
	for range 8 {
		var w, mean, q float64
		for i := range e.sums {
			if own, weight := e.sums[i].slope(); weight > 0 && e.sums[i].N > 2 {
				v := 1 / (e.spread + e.noise/weight)
				w += v
				mean += v * own
			}
		}
		mean /= w
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

// EstimateState are the estimates of all sources as data.
type EstimateState struct {
	Crawls []int        `json:"crawls"`
	Sums   [][8]float64 `json:"sums"`
	Common [5]float64   `json:"common"` // rate, decay, spread, noise, epoch of the last pooling
}

func (e *estimates) state() EstimateState {
	s := EstimateState{Crawls: append([]int(nil), e.crawls...), Common: [5]float64{e.rate, e.decay, e.spread, e.noise, float64(e.pooled)}}
	for _, v := range e.sums {
		s.Sums = append(s.Sums, [8]float64{v.N, v.A, v.Y, v.AA, v.AY, v.YY, v.Harvest, v.Epochs})
	}
	return s
}

func (e *estimates) setState(s EstimateState) error {
	if len(s.Crawls) != len(e.crawls) || len(s.Sums) != len(e.sums) {
		return fmt.Errorf("estimates of %d and %d sources; the learner has %d", len(s.Crawls), len(s.Sums), len(e.sums))
	}
	copy(e.crawls, s.Crawls)
	for i, v := range s.Sums {
		e.sums[i] = itemSums{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]}
		e.any = e.any || v[7] > 0
	}
	e.rate, e.decay, e.spread, e.noise, e.pooled = s.Common[0], s.Common[1], s.Common[2], s.Common[3], int(s.Common[4])
	return nil
}
