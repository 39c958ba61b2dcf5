package lspe

import (
	"math"
	"slices"

	"ephemera/env"
)

// Policy is what a [Learner] has learned, as a policy that learns no more and
// draws nothing: it crawls those that are furthest beyond their thresholds.
type Policy struct {
	schedule
	src   []Waiting // Reach is +Inf for a source that is never crawled
	epoch int
	price float64
}

var _ env.Policy[env.Online] = (*Policy)(nil)

// Frozen returns the policy that would be deployed now.
func (l *Learner) Frozen() *Policy {
	p := &Policy{epoch: -1, src: make([]Waiting, len(l.src)), price: l.price}
	if l.cold {
		p.price = 1 // nothing is known: those that wait longest are crawled
	}
	p.schedule = newSchedule(env.Terms{Costs: l.costs, Budget: l.budget})
	p.hosts, p.slots = l.hosts, slices.Clone(l.slots)
	for i := range l.src {
		p.src[i] = Waiting{Reach: l.Threshold(i), Slope: 1, ID: int32(i)}
		if l.src[i].Cycles > 0 && !l.cold {
			p.src[i] = l.standing(i, 0, l.mean(i))
		}
	}
	return p
}

// Select implements env.Policy.
func (p *Policy) Select(dst []int, o *env.Online) []int {
	if o.Epoch == p.epoch {
		p.ids = p.ids[:0]
		p.release(func(w Waiting) bool {
			crawled := o.Last[w.ID] == o.Epoch-1
			if crawled {
				p.ids = append(p.ids, w.ID)
			}
			return crawled
		})
		for _, i := range p.ids {
			p.src[i].Last = int32(o.Last[i])
			p.sleep(p.src[i])
		}
	} else {
		p.clear(o.Epoch)
		for i := range p.src {
			p.src[i].Last = int32(o.Last[i])
			if !math.IsInf(p.src[i].Reach, 1) {
				p.sleep(p.src[i])
			}
		}
	}
	p.epoch = o.Epoch + 1
	p.gather(o, func(i int32, _ int) Waiting { return p.src[i] })
	p.ids, p.key = p.ids[:0], p.key[:0]
	return p.choose(dst, o, p.price)
}
