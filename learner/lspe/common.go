package lspe

import (
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// common is what the levels of knowledge have in common: keys that mix margin
// and index, the draw, the choice within the budget, and the price.
type common struct {
	set    Settings
	clocks clocks
	costs  []float64 // C
	budget float64   // M
	period float64   // ΣC/M over what can be afforded: the cycle, in epochs, if all sources were equal
	most   float64   // greatest threshold, as an age
	unit   float64   // greatest ceiling of what can be afforded, interest
	rand   *stream.Rand
	sel    *baselines.Selector

	n     int     // epochs so far
	price float64 // λ, interest per budget unit
	scale float64 // h, running geometric mean of the least harvest per budget unit that was crawled

	// Of the present epoch.
	key    []float64
	push   []float64 // what the actor will subtract from ln θ
	demand float64   // Σ C f
	spent  float64   // cost of what was chosen
}

const (
	leastShare  = 0.1 // least unit of the excess, in harvests
	scaleMemory = 100 // epochs that h looks back
)

func newCommon(in env.Instance, s Settings, r *stream.Rand) common {
	if r == nil {
		panic("lspe: no random stream")
	}
	terms, n := in.Terms(), len(in.Sources)
	period := max(1, terms.Round())
	c := common{
		set: s, clocks: newClocks(&s, period), costs: terms.Costs, budget: terms.Budget, period: period, rand: r,
		sel: baselines.NewSelector(terms.Costs, terms.Budget),
		key: make([]float64, n), push: make([]float64, n),
	}
	c.most = math.Ceil(maxCycles * c.period)
	for i, s := range in.Sources {
		if c.can(i) {
			c.unit = max(c.unit, s.Ceiling())
		}
	}
	if c.unit == 0 {
		c.unit = 1
	}
	return c
}

// can reports whether a crawl of source i fits into the budget at all.
func (c *common) can(i int) bool { return env.Fits(c.costs[i], c.budget) }

// measure returns what the excess is measured in, the price; at first, while there
// is none, a tenth of a crawl's harvest; before the first harvest, the greatest
// ceiling.
func (c *common) measure() float64 {
	if v := max(c.price, leastShare*c.scale); v > 0 {
		return v
	}
	return c.unit
}

// mix returns the key without noise, a share of the actor's margin and the rest
// of the critic's index, each within bounds, so that neither can be far wrong
// alone.
func (c *common) mix(margin, e float64) float64 {
	s := &c.set
	return s.MarginShare*clip(margin, s.MarginCap) + (1-s.MarginShare)*bend(e, s.IndexCap)
}

// bend returns v within [−c, c] and c(1 + ln v/c) above: what is far above the
// price keeps its order, for where prices are still low, or few crawls fit, the
// order among such sources is all that counts.
func bend(v, c float64) float64 {
	if v > c {
		return c * (1 + math.Log(v/c))
	}
	return max(-c, v)
}

// begin begins the plan of an epoch.
func (c *common) begin() {
	c.clocks.at(c.n)
	c.demand = 0
}

// plan writes key, demand and the actor's step of a source with that margin and
// that excess of its index over the price, in prices.
func (c *common) plan(i int, margin, e, cycle float64) {
	k := c.clocks.kappa * c.mix(margin, e)
	c.demand += c.costs[i] * logit(k)
	v := c.rand.Float64()
	c.key[i] = k + math.Log(v/(1-v)) // −Inf for v = 0: not chosen before others
	c.push[i] = c.clocks.push(margin, e, cycle)
}

// never rules a source out for this epoch.
func (c *common) never(i int) { c.key[i], c.push[i] = math.Inf(-1), 0 }

// look returns the state x of source i, its margin, and the excess of its index.
type look func(i int) (x, margin, excess float64)

// worth returns the learned index of source i, in interest per budget unit,
// within [0, x/C], which the index never leaves.
func (c *common) worth(i int, x, excess float64) float64 {
	return max(0, min(x/c.costs[i], c.price+excess))
}

// choose appends the sources to crawl. To the worth by which they are packed
// comes the noise that is in their keys.
func (c *common) choose(dst []int, at look) []int {
	had := len(dst)
	if c.set.Act == "budget" {
		unit := c.measure()
		dst = c.sel.Pack(dst, c.key, func(i int) float64 {
			x, margin, excess := at(i)
			noise := c.key[i]/c.clocks.kappa - c.mix(margin, excess/unit)
			return c.worth(i, x, excess) + unit*noise
		})
	} else {
		for i, k := range c.key {
			if k > 0 {
				dst = append(dst, i)
			}
		}
	}
	c.spent = 0
	for _, i := range dst[had:] {
		c.spent += c.costs[i]
	}
	return dst
}

// pick appends the sources with the greatest keys, without noise.
func (c *common) pick(dst []int, at look) []int {
	return c.sel.Pack(dst, c.key, func(i int) float64 {
		x, _, excess := at(i)
		return c.worth(i, x, excess)
	})
}

// settle ends an epoch on the slowest time scale. key holds the states.
//
//	ln h ← ln h + (ln min X/C − ln h)/min(n, 100)
//	λ ← max(0, λ + d(n) max(λ, h) clip((Σ C f − S)/M, 1))
//
// S is what the selector can spend: where crawls do not divide the budget, less
// than M.
func (c *common) settle(crawls []env.Crawled) {
	least := math.Inf(1)
	for _, cr := range crawls {
		least = min(least, c.key[cr.Source]/c.costs[cr.Source])
	}
	switch {
	case !(least > 0) || math.IsInf(least, 1):
	case c.scale == 0:
		c.scale = least
	default:
		c.scale *= math.Pow(least/c.scale, max(1/float64(c.n+1), 1./scaleMemory))
	}
	if c.set.Price == "learned" {
		can := c.budget
		if c.set.Act == "budget" {
			can = c.spent
		}
		unit := max(c.price, c.scale)
		c.price = max(0, c.price+c.clocks.price*unit*clip((c.demand-can)/c.budget, 1))
	}
	c.n++
}

// Price returns the learned price λ of a budget unit, in interest.
func (c *common) Price() float64 { return c.price }

// restore takes up the part of a state that all levels have. It refuses what no
// learner has counted up to.
func (c *common) restore(epochs int, price, scale float64, rand []byte) error {
	for _, v := range []struct {
		name string
		is   float64
	}{{"epochs", float64(epochs)}, {"price", price}, {"scale", scale}} {
		if !(v.is >= 0) || math.IsInf(v.is, 1) {
			return fmt.Errorf("%s is %v; allowed is a finite number of 0 or more", v.name, v.is)
		}
	}
	if float64(epochs) > 1<<53 {
		return fmt.Errorf("epochs is %d; allowed are up to 2^53", epochs)
	}
	if err := c.rand.SetState(rand); err != nil {
		return fmt.Errorf("random stream: %w", err)
	}
	c.n, c.price, c.scale, c.clocks = epochs, price, scale, newClocks(c.clocks.set, c.period)
	return nil
}
