package calendar

import (
	"math"
	"runtime"
	"slices"
	"sync"
)

// build makes classes, levels and wheels anew and places every source. What it
// computes of each source alone runs on all cores.
func (c *Calendar) build() {
	c.Counts.Built++
	c.stale = false
	c.waiting = c.waiting[:0]
	for i := range c.marks {
		m := &c.marks[i]
		if m.wake == leaving {
			m.wake = absent
		}
		if m.wake != absent {
			m.wake = waiting
		}
	}
	c.makeClasses()
	c.slab.reset(c.present)
	c.chooseLevels()
	c.parallel(func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if c.marks[i].wake != absent {
				c.marks[i].wake = c.foresee(int32(i))
			}
		}
	})
	c.Counts.FirstAge += c.present
	for i := range c.marks {
		m := &c.marks[i]
		if m.wake == absent {
			continue
		}
		k := c.class(int32(i))
		j, epochs := int(m.wake&3), int(m.wake>>2)
		m.wake = waiting
		if j == wheels {
			c.arrive(k, int32(i), int(c.now-m.last))
		} else {
			c.sleep(k, int32(i), j, epochs)
		}
	}
}

// foresee returns 4 times the epochs that a source will sleep plus the number
// of its wheel, or of no wheel if it does not sleep.
func (c *Calendar) foresee(id int32) int32 {
	k := c.class(id)
	age := int(c.now - c.marks[id].last)
	for j := wheels - 1; j >= 0; j-- {
		if k.level[j] == bottom {
			continue
		}
		if a := c.ix.FirstAge(&c.marks[id].p, k.level[j]); a > age {
			return int32(min(a-age, maxSleep)<<2 | j)
		}
	}
	return wheels
}

// parallel runs f over the sources in parts.
func (c *Calendar) parallel(f func(lo, hi int)) {
	n, parts := len(c.marks), runtime.GOMAXPROCS(0)
	if n < 1<<14 {
		parts = 1
	}
	var wg sync.WaitGroup
	for p := range parts {
		wg.Go(func() { f(n*p/parts, n*(p+1)/parts) })
	}
	wg.Wait()
}

// makeClasses gives each cost a class of its own, so that no source of a class
// fits or all do. Where there are too many costs, a class holds those in a
// quarter of an octave.
func (c *Calendar) makeClasses() {
	c.classes = c.classes[:0]
	if c.costs == nil {
		c.classes = append(c.classes, &class{lo: c.cost, hi: c.cost, least: c.cost, members: c.present})
	} else if !c.costClasses(func(v float64) (lo, hi float64) { return v, v }, c.grain.exact) {
		c.costClasses(quarterOctave, math.MaxInt)
	}
	mean := c.cost
	if c.costs != nil {
		var sum float64
		for i, v := range c.costs {
			if c.marks[i].wake != absent {
				sum += v
			}
		}
		mean = sum / float64(max(1, c.present))
	}
	perEpoch := min(c.budget/mean, float64(c.present))
	for _, k := range c.classes {
		k.rate = perEpoch * float64(k.members) / float64(max(1, c.present))
		// The wheel turns more slowly than most sources are crawled.
		turn := min(4*float64(k.members)/max(1, k.rate), float64(k.members)/32)
		span := c.grain.span
		for float64(span) < turn {
			span *= 2
		}
		for j := range k.wheel {
			k.wheel[j].reset(span)
		}
	}
}

// costClasses makes the classes of the present costs, or reports that there
// are too many.
func (c *Calendar) costClasses(bounds func(float64) (lo, hi float64), most int) bool {
	c.classes = c.classes[:0]
	for i, v := range c.costs {
		if c.marks[i].wake == absent {
			continue
		}
		k := c.find(v)
		if k == nil {
			if len(c.classes) == most {
				return false
			}
			k = &class{least: v}
			k.lo, k.hi = bounds(v)
			c.classes = append(c.classes, k)
			slices.SortFunc(c.classes, func(a, b *class) int {
				if a.lo < b.lo {
					return -1
				}
				return 1
			})
		}
		k.members++
		k.least = min(k.least, v)
	}
	return true
}

// quarterOctave returns the least and the greatest number that agree with v in
// the exponent and the first two bits of the fraction.
func quarterOctave(v float64) (lo, hi float64) {
	const low = 1<<50 - 1
	b := math.Float64bits(v)
	return math.Float64frombits(b &^ low), math.Float64frombits(b | low)
}

// chooseLevels ranks a sample of each class.
func (c *Calendar) chooseLevels() {
	type sampler struct {
		stride, skip int
		s            []candidate
	}
	at := make(map[*class]*sampler, len(c.classes))
	for _, k := range c.classes {
		at[k] = &sampler{stride: max(1, (k.members+c.grain.survey-1)/c.grain.survey)}
	}
	for i := range c.marks {
		m := &c.marks[i]
		if m.wake == absent {
			continue
		}
		q := at[c.class(int32(i))]
		if q.skip > 0 {
			q.skip--
			continue
		}
		q.skip = q.stride - 1
		q.s = append(q.s, candidate{c.index(int32(i), int(c.now-m.last)), int32(i)})
	}
	for k, q := range at {
		above := countAbove(q.s, bottom)
		for j := range k.level {
			n := reach[j]*k.rate + k.rate + float64(c.surplus(k))
			k.level[j] = rank(q.s, int(n)/q.stride, above, bottom)
		}
	}
}
