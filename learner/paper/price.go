package paper

import "math"

// price is the multiplier of the budget, found on the slowest scale.
type price struct {
	lambda  float64 // λ, interest per budget unit
	harvest float64 // h, running mean of the least harvest per unit that was crawled
	n       int     // harvests taken in
}

// window is how many harvests h looks back over.
const window = 100

// follow takes in what an epoch's crawls would cost on average, Σ C f, and the
// least harvest per unit among its crawls, +Inf for none:
//
//	λ ← max(0, λ + d(n) h clip((Σ C f − M)/M, ±1))
//
// h gives the step the unit of a price.
func (p *price) follow(cost, budget, least, d float64) {
	if !math.IsInf(least, 1) {
		p.n++
		p.harvest += (least - p.harvest) / float64(min(p.n, window))
	}
	p.lambda = max(0, p.lambda+d*p.harvest*max(-1, min((cost-budget)/budget, 1)))
}
