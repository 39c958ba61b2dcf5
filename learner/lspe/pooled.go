package lspe

import (
	"math"
	"slices"

	"ephemera/learner/critic"
)

// poolFeatures is the number of features of the pooled curve.
const poolFeatures = 3

// pooled is the harvest curve that all sources have in common but for a level of each,
//
//	ln H̄(s) = ln m + Σ_k β_k (ψ_k(s) − ψ_k(R)),
//	ψ = ln(1 − e^(−s/16R)), ln(1 − e^(−s/2R)), ln(1 − e^(−4s/R)),
//
// R the round. Each ψ rises like ln s up to its time, and then no more: up to R/4 the slope
// of ln H̄ over ln s is β₀ + β₁ + β₂, from there to 2R it is β₀ + β₁, and β₀ up to 16R.
//
// β is estimated by quasi-likelihood (Wedderburn, 1974) with a normal prior of mean ⅓: a
// crawl of source i that brings X at age s moves β along the score
//
//	(ψ(s) − ψ̄) (X/aH̄(s) − 1)/v
//
// a being the level of the source, v the variance σ²/X̄² of its harvests, and ψ̄ the mean of ψ
// over the ages that the noise of its present threshold brings about. That noise is drawn, and
// depends on nothing that was found before: only how the harvests of one source differ with it
// counts, whatever the level is taken for, and not that sources with much to find are crawled
// more often. But crawls do not come as the noise asks: after the first pass many sources are overdue,
// and of a long wait the short draws are seen first. So ψ̄ is corrected by how far ψ was
// from it at thresholds within a factor of two, in the mean. Else an error of a would count
// as a slope: the curve would rise, waits with it, and their harvests would fall further behind
// the curve. Each crawl is an update of rank one, and the inverse is the running one of
// [critic.Critic], with its Tikhonov form. H̄ starts sources and is the prior of their critics.
type pooled struct {
	round  float64
	critic *critic.Critic          // r: by how much β differs from the mean of its prior
	origin [poolFeatures]float64   // ψ(R)
	beta   [poolFeatures]float64   // β
	mean   float64                 // m, H̄(R), so that the mean of the first pass is that of H̄
	count  int                     // crawls taken in
	shifts [octaves]shift          // of thresholds θ/R by factors of two, the middle one from 1 on
	kept   [][poolFeatures]float64 // features of whole ages, from 0 on

	scratch [poolFeatures]float64

	// W̄ = H̄ − sH̄′, Whittle's index of a source of level 1 and cost 1, on a grid of
	// ages, made increasing.
	ages, worth [gridSize]float64
}

const (
	gridSize = 100
	octaves  = 32
)

// shift is the mean of ψ − ψ̄ at crawls, each weighed by 1/v.
type shift struct {
	Weight float64               `json:"weight"`
	Mean   [poolFeatures]float64 `json:"mean"`
}

func newPooled(round float64) pooled {
	set := critic.DefaultSettings()
	set.Gamma, set.Epsilon, set.Scaled = 1, 1, true
	p := pooled{critic: critic.New(poolFeatures, 1, set), kept: make([][poolFeatures]float64, keptAges)}
	p.measure(round)
	p.settle()
	return p
}

// keptAges is how many ages have their features kept. Those beyond are as few as crawls are there.
const keptAges = 1024

// measure sets the round.
func (p *pooled) measure(round float64) {
	p.round, p.origin = round, [poolFeatures]float64{}
	p.origin = p.compute(round)
	for age := range p.kept {
		p.kept[age] = p.compute(float64(age))
	}
}

// features returns ψ(s) − ψ(R) of an age s.
func (p *pooled) features(age float64) [poolFeatures]float64 {
	if k := int(age); age < keptAges && float64(k) == age {
		return p.kept[k]
	}
	return p.compute(age)
}

// compute computes them. With d = 1 − e^(−x), 1 − e^(−2x) = d(2 − d): one exponential does for
// all three.
func (p *pooled) compute(age float64) (psi [poolFeatures]float64) {
	d := -math.Expm1(-age / (16 * p.round))
	for k := range psi {
		psi[k] = math.Log(d) - p.origin[k]
		for range 3 { // eight times as soon
			d *= 2 - d
		}
	}
	return psi
}

// settle sets β by r. Since interest is never negative, harvests do not fall with the age: a slope
// of ln H̄ over ln s that is estimated below 0 counts as 0. (A first pass, in which levels and
// ages are mixed up, may estimate that.)
func (p *pooled) settle() {
	r := p.critic.Weights(0)
	var slope, held float64
	for k := range p.beta {
		slope += poolStart + r[k]
		p.beta[k] = max(0, slope) - held
		held += p.beta[k]
	}
}

// farthest is the most of |ln H̄/m|, so that H̄ is never 0.
const farthest = 30

// of returns H̄ for features, or for averages of them.
func (p *pooled) of(psi *[poolFeatures]float64) float64 { return p.tilted(psi, 0) }

// tilted returns H̄eʰ for features.
func (p *pooled) tilted(psi *[poolFeatures]float64, h float64) float64 {
	for k, f := range psi {
		h += p.beta[k] * f
	}
	return p.mean * math.Exp(max(-farthest, min(farthest, h)))
}

// shifted takes in a crawl at an age of features ψ of a source with the threshold θ, and returns
// ψ̄ with the mean of ψ − ψ̄ at such thresholds.
func (p *pooled) shifted(psi, center *[poolFeatures]float64, theta, v float64) (mean [poolFeatures]float64) {
	o := &p.shifts[max(0, min(octaves-1, octaves/2+int(math.Floor(math.Log2(theta/p.round)))))]
	o.Weight += 1 / v
	for k := range psi {
		o.Mean[k] += (psi[k] - center[k] - o.Mean[k]) / v / (o.Weight + poolRidge)
		mean[k] = center[k] + o.Mean[k]
	}
	return mean
}

// add takes in a crawl of a source of that level at an age of features ψ, with the step
// 1/(n + 16). A harvest that surprises more than any can, such as one that is valued at 1e300, is
// of one source alone, and is not to decide the curve of all.
func (p *pooled) add(psi, center *[poolFeatures]float64, harvest, level, v float64) {
	h := level * p.of(psi)
	root := 1 / math.Sqrt(v)
	u := &p.scratch
	var known float64
	for k := range u {
		u[k] = root * (psi[k] - center[k])
		known += u[k] * (p.beta[k] - poolStart)
	}
	target := known + root*(harvest/h-1)
	if !(math.Abs(target) < absurd) { // or not a number
		return
	}
	p.count++
	p.critic.Begin(1 / (float64(p.count) + poolRidge))
	p.critic.Transition(u[:], u[:]) // A remains 0
	p.critic.Reward(0, target, u[:])
	clear(p.critic.Weights(0)) // so that r becomes B⁻¹b̄
	p.critic.Solve()
	p.settle()
}

// at returns H̄ of an age.
func (p *pooled) at(age float64) float64 {
	psi := p.features(age)
	return p.of(&psi)
}

// tabulate writes ages and worth.
func (p *pooled) tabulate() {
	least := max(1, p.round/10)
	for j := range p.ages {
		s := least * math.Pow(10*p.round/least, float64(j)/(gridSize-1))
		p.ages[j] = s
		const d = .01
		p.worth[j] = p.at(s) - s*(p.at(s+d)-p.at(s-d))/(2*d)
		if j > 0 {
			p.worth[j] = max(p.worth[j], p.worth[j-1])
		}
	}
}

// threshold returns the first age of the grid at which a source of that level has
// come to the price of its crawl: level·W̄ ≥ λC.
func (p *pooled) threshold(price, level float64) float64 {
	j, _ := slices.BinarySearch(p.worth[:], price/level)
	return p.ages[min(j, gridSize-1)]
}
