package lspe

import (
	"math"

	"ephemera/baselines"
	"ephemera/env"
)

// plugin is given what no learner is: law, shape, window, batch, cost and mean interest of each source.
// It estimates rate λ and decay c alone, from what its crawls bring, and follows Whittle's index of
// these. So it says how much there is to learn from the harvests of a world.
//
// With h the harvest curve of rate 1 and φ = batch · ξ̄ the most that an arrival brings, crawls that brought X
// at ages s have the quasi-likelihood
//
//	Σ (X ln λh(s; c) − λh(s; c))/φ,  which is greatest at λ(c) = (ΣX + φ/2)/Σ h(s; c),
//
// half an arrival being the prior of λ. c is the mean of ln c on the grid, by the likelihood at λ(c).
type plugin struct {
	in     env.Instance // as estimated
	given  env.Instance
	seen   []map[int]crawls // of each source, by age
	policy env.Policy[env.Online]
}

// crawls are those of a source at an age.
type crawls struct{ n, sum float64 }

func newPlugin(in env.Instance) *plugin {
	p := &plugin{given: in, in: in, seen: make([]map[int]crawls, len(in.Sources))}
	p.in.Sources = append([]env.Source(nil), in.Sources...)
	for i := range p.seen {
		p.seen[i] = map[int]crawls{}
	}
	return p
}

// add takes in a crawl. Ages are kept to a twentieth.
func (p *plugin) add(c env.Crawled) {
	age := c.Age
	if age > 20 {
		age = int(math.Round(math.Exp(math.Round(20*math.Log(float64(age))) / 20)))
	}
	s := p.seen[c.Source][age]
	p.seen[c.Source][age] = crawls{s.n + 1, s.sum + c.Interest}
}

// estimate sets the parameters of a source.
func (p *plugin) estimate(i int) {
	const points = 51 // c from 10⁻⁴ to 10
	s := p.given.Sources[i]
	phi := s.Interest * float64(max(1, s.Batch))
	var like, rate, decay [points]float64
	best := math.Inf(-1)
	for k := range like {
		s.Decay = 1e-4 * math.Pow(1e5, float64(k)/(points-1))
		s.Rate = 1
		decay[k] = math.Log(s.Decay)
		var sum, expected float64
		for age, c := range p.seen[i] {
			h := s.Harvest(float64(age))
			sum += c.sum
			expected += c.n * h
			like[k] += c.sum * math.Log(max(h, 1e-300)) / phi
		}
		rate[k] = (sum + phi/2) / expected
		like[k] += (sum*math.Log(rate[k]) - rate[k]*expected) / phi
		best = max(best, like[k])
	}
	var weight, lnDecay, lnRate float64
	for k := range like {
		w := math.Exp(like[k] - best)
		weight += w
		lnDecay += w * decay[k]
		lnRate += w * math.Log(rate[k])
	}
	p.in.Sources[i].Decay = math.Exp(lnDecay / weight)
	p.in.Sources[i].Rate = math.Exp(lnRate / weight)
}

// plan takes the policy of the present estimates.
func (p *plugin) plan() {
	for i, seen := range p.seen {
		if len(seen) > 0 {
			p.estimate(i)
		}
	}
	p.policy = byAges{baselines.NewWhittle(p.in)}
}

// learn plays a world: each source is crawled once, in turn, and then by a plan that is made anew when a tenth
// of the epochs so far have passed.
func (p *plugin) learn(w *harvests, epochs int) {
	var crawl []int
	unseen, next := 0, 0
	for epoch := range epochs {
		crawl = crawl[:0]
		if unseen < len(p.seen) {
			left := w.in.Budget
			for ; unseen < len(p.seen); unseen++ {
				cost := w.in.Sources[unseen].Cost
				if !env.Fits(cost, w.in.Budget) { // no policy crawls it
					continue
				}
				if !env.Fits(cost, left) {
					break
				}
				left -= cost
				crawl = append(crawl, unseen)
			}
			next = epoch + 1
		} else {
			if epoch >= next {
				p.plan()
				next = epoch + 1 + epoch/10
			}
			crawl = p.policy.Select(crawl, &w.view)
		}
		for _, c := range w.step(crawl) {
			p.add(c)
		}
	}
	p.plan()
}
