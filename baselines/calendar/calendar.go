package calendar

import (
	"fmt"
	"math"

	"ephemera/baselines/order"
	"ephemera/env"
)

// Calendar picks at each epoch the sources with the highest index until the
// budget is used. A source that no longer fits is passed over and cheaper ones
// after it are still tried. Equal indices go to the lower number. It is not
// safe for concurrent use.
//
// It holds some 36 bytes per source, and where costs differ one more.
type Calendar struct {
	rank   Ranking
	of     func(i int) Params // until they are taken up
	costs  []float64
	budget float64
	epoch  int32 // of the next decision

	marks   []mark
	last    []int // of the present view
	slab    slab
	classes []class // by rising cost
	classOf []uint8 // nil where there is one class
	chosen  []int32 // at the last epoch
	grain   grain

	sample []order.Item // scratch
	ids    []int32      // scratch
}

// mark is what a calendar knows of one source.
type mark struct {
	last int32 // epoch of the last crawl, or earlier: others may have crawled since
	wake int32 // epoch at which it leaves its wheel
	p    Params
}

// grain holds the sizes below which work is not divided further. Tests make
// them small.
type grain struct {
	surplus int // candidates kept beyond those that are crawled, at least
	survey  int // sources of a sample, at most
	span    int // epochs of a wheel, at least; a power of two
	fill    int // sources in the near wheel before its horizon is raised, at least
}

var usualGrain = grain{surplus: 16, survey: 1 << 16, span: 64, fill: 64}

// New returns the calendar of sources with costs C, in budget units, and a
// budget; of returns the parameters of a source. It panics if a cost is not
// above 0 or the budget is negative or NaN.
func New(costs []float64, budget float64, rank Ranking, of func(i int) Params) *Calendar {
	return newGrained(costs, budget, rank, of, usualGrain)
}

func newGrained(costs []float64, budget float64, rank Ranking, of func(i int) Params, g grain) *Calendar {
	if len(costs) > math.MaxInt32 {
		panic(fmt.Sprintf("calendar: %d sources; allowed are %d", len(costs), math.MaxInt32))
	}
	if !(budget >= 0) {
		panic(fmt.Sprintf("calendar: budget is %v; allowed is 0 or more", budget))
	}
	c := &Calendar{rank: rank, of: of, costs: costs, budget: budget, epoch: math.MinInt32, grain: g, marks: make([]mark, len(costs))}
	for i, v := range costs {
		if !(v > 0) || math.IsInf(v, 1) {
			panic(fmt.Sprintf("calendar: cost of source %d is %v; allowed is a finite number above 0", i, v))
		}
	}
	return c
}

// build takes up the parameters, at the first decision.
func (c *Calendar) build() {
	for i := range c.marks {
		c.marks[i].p = c.of(i)
	}
	c.of = nil
	c.makeClasses()
}

// Select implements env.Policy. Where o does not continue the epoch of the last
// call with the crawls that it chose, the calendar begins anew from o.
func (c *Calendar) Select(dst []int, o *env.Online) []int {
	if len(o.Last) != len(c.marks) {
		panic(fmt.Sprintf("calendar: %d last crawls for %d sources", len(o.Last), len(c.marks)))
	}
	if !c.continues(o) {
		if c.of != nil {
			c.build()
		}
		c.reset(o)
	}
	c.last = o.Last
	for k := range c.classes {
		c.classes[k].refresh(c)
		c.classes[k].wake(c)
	}
	for _, id := range c.chosen {
		c.class(id).climb(c, id, true)
	}
	c.chosen = c.chosen[:0]
	if len(c.classes) == 1 && c.classes[0].lo == c.classes[0].hi {
		c.best(&c.classes[0])
	} else {
		c.descend()
	}
	for _, id := range c.chosen {
		c.marks[id].last = c.epoch
		dst = append(dst, int(id))
	}
	for k := range c.classes {
		c.classes[k].adapt(c)
	}
	c.epoch++
	return dst
}

func (c *Calendar) continues(o *env.Online) bool {
	if o.Epoch != int(c.epoch) {
		return false
	}
	for _, id := range c.chosen {
		if o.Last[id] != o.Epoch-1 {
			return false
		}
	}
	return true
}

// lastEpoch keeps ages and wakes within 32 bits.
const lastEpoch = 1 << 29

// reset has every source sleep below a floor that none reaches. The first
// decision lowers it.
func (c *Calendar) reset(o *env.Online) {
	if o.Epoch < 0 || o.Epoch >= lastEpoch {
		panic(fmt.Sprintf("calendar: epoch %d; allowed are 0 to %d", o.Epoch, lastEpoch-1))
	}
	c.epoch, c.chosen = int32(o.Epoch), c.chosen[:0]
	c.slab.clear()
	for k := range c.classes {
		c.classes[k].clear()
	}
	for i, l := range o.Last {
		if l >= o.Epoch || l < -lastEpoch {
			panic(fmt.Sprintf("calendar: source %d was crawled at epoch %d; allowed is before the decision, %d", i, l, o.Epoch))
		}
		c.marks[i].last = int32(l)
		c.class(int32(i)).far.push(c, int32(i), Never)
	}
}

// best chooses where all crawls cost the same: the number that fits is known,
// and their order does not matter.
func (c *Calendar) best(k *class) {
	n := env.HowMany(k.members, k.lo, c.budget)
	have := countAbove(k.pool, k.floor)
	for have < n && k.floor != bottom {
		k.lower(c, n-have)
		have = countAbove(k.pool, k.floor)
	}
	n = min(n, have)
	order.First(k.pool, n)
	for _, p := range k.pool[:n] {
		c.chosen = append(c.chosen, p.ID)
	}
	k.picks = n
	k.pool = k.pool[:copy(k.pool, k.pool[n:])]
}

// descend chooses where costs differ. It goes down the indices of all classes
// together, and leaves out a class as soon as none of its sources fits.
func (c *Calendar) descend() {
	for x := range c.classes {
		k := &c.classes[x]
		order.Heapify(k.pool)
		k.picks, k.passed = 0, k.passed[:0]
	}
	left := c.budget
	for {
		var head, deep *class // of the highest candidate, of the highest floor
		for x := range c.classes {
			k := &c.classes[x]
			switch {
			case !env.Fits(k.lo, left):
			case len(k.pool) > 0 && k.pool[0].Key >= k.floor:
				if head == nil || order.Before(k.pool[0], head.pool[0]) {
					head = k
				}
			case k.floor != bottom && (deep == nil || k.floor > deep.floor):
				deep = k // what sleeps is below the floor
			}
		}
		if deep != nil && (head == nil || !(head.pool[0].Key >= deep.floor)) {
			deep.lower(c, 1)
			order.Heapify(deep.pool)
			continue
		}
		if head == nil {
			break
		}
		p := head.pool[0]
		head.pool = order.Pop(head.pool)
		if v := c.costs[p.ID]; env.Fits(v, left) {
			left -= v
			c.chosen = append(c.chosen, p.ID)
			head.picks++
		} else {
			head.passed = append(head.passed, p)
		}
	}
	for x := range c.classes {
		k := &c.classes[x]
		k.pool = append(k.pool, k.passed...)
	}
}

// see returns the index of a candidate. What others have crawled wakes too early
// and is found here.
func (c *Calendar) see(id int32) float64 {
	c.marks[id].last = int32(c.last[id])
	return c.index(id)
}

// index returns the index of a source now, −Inf where it is NaN.
func (c *Calendar) index(id int32) float64 {
	m := &c.marks[id]
	key := c.rank.At(&m.p, int(c.epoch-m.last))
	if key != key {
		return math.Inf(-1)
	}
	return key
}

// wait returns the epochs until a source reaches a level, at most 0 if it has.
func (c *Calendar) wait(id int32, level float64) int {
	m := &c.marks[id]
	a := c.rank.FirstAge(&m.p, level)
	if a >= Never {
		return Never
	}
	return a - int(c.epoch-m.last)
}

func (c *Calendar) class(id int32) *class {
	if c.classOf == nil {
		return &c.classes[0]
	}
	return &c.classes[c.classOf[id]]
}
