package lspe

import (
	"math"

	"ephemera/env"
)

// Policy is what a [Learner] has learned, as a policy that learns no more and
// draws nothing: it crawls those that are furthest beyond their thresholds.
type Policy struct {
	schedule
	reach   []float64 // θ; +Inf for a source that is never crawled
	last    []int32
	epoch   int
	onlyDue bool // at price 0
}

var _ env.Policy[env.Online] = (*Policy)(nil)

// Frozen returns the policy that would be deployed now.
func (l *Learner) Frozen() *Policy {
	p := &Policy{epoch: -1, reach: make([]float64, len(l.src)), last: make([]int32, len(l.src)), onlyDue: l.price == 0 && !l.cold}
	p.schedule = newSchedule(env.Terms{Costs: l.costs, Budget: l.budget})
	for i := range l.src {
		p.reach[i] = l.Threshold(i)
		if l.src[i].cycles > 0 && !l.cold {
			p.reach[i] = l.reach(i, 0)
		}
	}
	return p
}

// Select implements env.Policy.
func (p *Policy) Select(dst []int, o *env.Online) []int {
	if o.Epoch == p.epoch {
		p.release(func(i int32) bool {
			if o.Last[i] != o.Epoch-1 {
				return false
			}
			p.last[i] = int32(o.Last[i])
			p.sleep(p.standing(i))
			return true
		})
	} else {
		p.clear(o.Epoch)
		for i := range p.reach {
			p.last[i] = int32(o.Last[i])
			if !math.IsInf(p.reach[i], 1) {
				p.sleep(p.standing(int32(i)))
			}
		}
	}
	p.epoch = o.Epoch + 1
	p.gather(o, func(i int32, _ int) waiting { return p.standing(i) })
	p.ids, p.key = p.ids[:0], p.key[:0]
	return p.choose(dst, o, p.onlyDue)
}

func (p *Policy) standing(i int32) waiting {
	return waiting{reach: p.reach[i], last: p.last[i], id: i}
}
