package lspe

import (
	"math"
	"slices"

	"ephemera/learner/critic"
)

// pooled is the harvest curve that all sources have in common: H̄(s), a cubic in
// x = ln(s/R), R the round, by least squares over X/level of all crawls. The
// level of a source is its harvests over what H̄ gives at the same ages. Each
// crawl is an update of rank one, and the inverse is the running one of
// [critic.Critic], with its Tikhonov form. H̄ starts sources, stands for what a
// source has not seen yet, and is part of no source's critic later on.
type pooled struct {
	round  float64
	critic *critic.Critic // r: by how much H̄ differs from the line that it starts from
	mean   float64        // mean harvest of the first pass, where that line is at s = R
	count  int            // crawls taken in
	phi    [4]float64

	// W̄ = H̄ − sH̄′, Whittle's index of a source of level 1 and cost 1, on a grid of
	// ages, made increasing.
	ages, worth [gridSize]float64
}

const gridSize = 100

func newPooled(round float64) pooled {
	set := critic.DefaultSettings()
	set.Gamma, set.Epsilon, set.Scaled = 1, 1, true
	return pooled{round: round, critic: critic.New(4, 1, set)}
}

// features writes 1, x, x², x³ of an age.
func (p *pooled) features(age float64) (x float64) {
	x = math.Log(age / p.round)
	p.phi = [4]float64{1, x, x * x, x * x * x}
	return x
}

// add takes in one crawl, with the step 1/(n + 5): the average of what came, the
// first line counting for five crawls.
func (p *pooled) add(age, harvest float64) {
	x := p.features(age)
	p.count++
	p.critic.Begin(1 / (float64(p.count) + poolRidge))
	p.critic.Transition(p.phi[:], p.phi[:]) // A remains 0
	p.critic.Reward(0, harvest-p.mean*(1+poolSlope*x), p.phi[:])
	clear(p.critic.Weights(0)) // so that r becomes B⁻¹b̄
	p.critic.Solve()
}

// at returns H̄ of an age.
func (p *pooled) at(age float64) float64 {
	r := p.critic.Weights(0)
	x := math.Log(age / p.round)
	return max(p.mean+r[0]+x*(poolSlope*p.mean+r[1]+x*(r[2]+x*r[3])), leastShare*p.mean)
}

// tabulate writes ages and worth.
func (p *pooled) tabulate() {
	least := max(1, p.round/10)
	r := p.critic.Weights(0)
	for j := range p.ages {
		s := least * math.Pow(10*p.round/least, float64(j)/(gridSize-1))
		x := math.Log(s / p.round)
		p.ages[j] = s
		p.worth[j] = p.at(s) - (poolSlope*p.mean + r[1] + x*(2*r[2]+x*3*r[3]))
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
