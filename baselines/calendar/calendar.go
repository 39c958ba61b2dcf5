package calendar

import (
	"fmt"
	"math"
	"sort"

	"ephemera/env"
)

// Calendar picks at each epoch the sources with the highest index until the
// budget is used, and takes them as crawled. A source that no longer fits is
// passed over and cheaper ones after it are still tried. Equal indices go to
// the lower number. It is not safe for concurrent use.
//
// It holds 32 bytes per source for its mark, about 4.5 for its entry in a wheel,
// and, where costs differ, 8 for its cost.
type Calendar struct {
	Counts Counts

	ix     Index
	budget float64
	cost   float64   // of every source, while costs is nil
	costs  []float64 // nil as long as all costs are the same
	now    int32     // epoch of the next decision

	marks   []mark
	slab    slab
	classes []*class // by rising cost
	present int
	waiting []int32 // sources to be placed at the next decision
	stale   bool    // build everything anew at the next decision
	grain   grain

	sample []candidate // scratch
	woken  []int32     // scratch
	block  [blockLen]int32
}

// Counts says what work a calendar has done since it was made. The first build
// counts.
type Counts struct {
	Index    int // evaluations of the index
	FirstAge int // evaluations of FirstAge
	Lowered  int // times that a floor was lowered
	Swept    int // of these, times that every source of a class was touched
	Raised   int // times that a floor was raised
	Spread   int // times that the levels below the floor were chosen anew
	Built    int // times that everything was built anew
}

// grain holds the sizes below which work is not divided further. Tests make
// them small.
type grain struct {
	surplus int // candidates kept beyond those that are crawled, at least
	survey  int // sources of a sample, at most
	span    int // epochs of a wheel, at least; a power of two
	fill    int // entries of a wheel before levels are chosen anew, at least
	exact   int // classes of one cost each, at most
}

var usualGrain = grain{surplus: 16, survey: 1 << 16, span: 64, fill: 64, exact: 64}

// mark is what a calendar knows of one source.
type mark struct {
	last int32 // epoch of the last crawl
	wake int32 // epoch of the bucket where it sleeps, or one of the following
	p    Params
}

const (
	never   = math.MaxInt32 // asleep without an end
	awake   = -1            // in the pool
	absent  = -2            // removed
	waiting = -3            // in the list of those to be placed
	held    = -4            // taken out of a wheel, to be placed at once
	leaving = -5            // removed, but still in the pool
)

// New returns the calendar of len(costs) sources at epoch 0, each crawled one
// epoch before, as worlds begin. Costs and budget are in budget units. It
// panics if a cost is not above 0 or the budget is negative or NaN. The
// function of returns the parameters of each source.
func New(costs []float64, budget float64, ix Index, of func(i int) Params) *Calendar {
	c := empty(costs, budget, ix, of)
	c.build()
	return c
}

func empty(costs []float64, budget float64, ix Index, of func(i int) Params) *Calendar {
	if len(costs) >= 1<<28 {
		panic(fmt.Sprintf("calendar: %d sources; allowed are less than %d", len(costs), 1<<28))
	}
	c := &Calendar{ix: ix, marks: make([]mark, len(costs)), present: len(costs), stale: true, grain: usualGrain}
	c.SetBudget(budget)
	for i, v := range costs {
		checkCost(i, v)
		c.marks[i] = mark{last: -1, wake: waiting, p: of(i)}
		if v != costs[0] && c.costs == nil {
			c.costs = append([]float64(nil), costs...)
		}
	}
	if len(costs) > 0 {
		c.cost = costs[0]
	}
	return c
}

func checkCost(i int, v float64) {
	if !(v > 0) || math.IsInf(v, 1) {
		panic(fmt.Sprintf("calendar: cost of source %d is %v; allowed is a finite number above 0", i, v))
	}
}

// Len returns the number of sources, removed ones included.
func (c *Calendar) Len() int { return len(c.marks) }

// Epoch returns the number of the next decision.
func (c *Calendar) Epoch() int { return int(c.now) }

// SetBudget changes the budget from the next decision on.
func (c *Calendar) SetBudget(budget float64) {
	if !(budget >= 0) {
		panic(fmt.Sprintf("calendar: budget is %v; allowed is 0 or more", budget))
	}
	c.budget = budget
}

// Change gives source i other parameters.
func (c *Calendar) Change(i int, p Params) {
	m := c.at(i)
	switch m.wake {
	case absent, leaving:
		panic(fmt.Sprintf("calendar: change of source %d, which was removed", i))
	case awake, waiting: // it will be looked at in any case
	default:
		m.wake = waiting
		c.waiting = append(c.waiting, int32(i))
	}
	m.p = p
}

// Remove takes source i out.
func (c *Calendar) Remove(i int) {
	m := c.at(i)
	switch m.wake {
	case absent, leaving:
		panic(fmt.Sprintf("calendar: source %d was removed before", i))
	case awake:
		m.wake = leaving
	default:
		m.wake = absent
	}
	c.present--
}

// Add puts in source i, which was removed before or is the next number, as if
// it had been crawled one epoch before the next decision.
func (c *Calendar) Add(i int, cost float64, p Params) {
	checkCost(i, cost)
	if i == len(c.marks) {
		c.marks = append(c.marks, mark{wake: absent})
		if c.costs != nil {
			c.costs = append(c.costs, cost)
		}
	}
	m := c.at(i)
	switch m.wake {
	case leaving:
		k := c.class(int32(i))
		for x, p := range k.pool {
			if int(p.id) == i {
				k.pool[x] = k.pool[len(k.pool)-1]
				k.pool = k.pool[:len(k.pool)-1]
				break
			}
		}
	case absent:
	default:
		panic(fmt.Sprintf("calendar: source %d is there already", i))
	}
	c.setCost(i, cost)
	*m = mark{last: c.now - 1, wake: waiting, p: p}
	c.waiting = append(c.waiting, int32(i))
	c.present++
}

func (c *Calendar) at(i int) *mark {
	if i < 0 || i >= len(c.marks) {
		panic(fmt.Sprintf("calendar: source %d; allowed are 0 to %d", i, len(c.marks)-1))
	}
	return &c.marks[i]
}

// setCost books the cost of a source that is in no class.
func (c *Calendar) setCost(i int, cost float64) {
	if c.costs == nil {
		if len(c.marks) == 1 {
			c.cost, c.stale = cost, true
		}
		if cost == c.cost {
			return
		}
		c.costs = make([]float64, len(c.marks))
		for x := range c.costs {
			c.costs[x] = c.cost
		}
	}
	c.costs[i] = cost
	if k := c.find(cost); k == nil {
		c.stale = true // a class of its own
	} else {
		k.least = min(k.least, cost)
	}
}

// Reset takes up the calendar at an epoch, with the epoch of each source's
// last crawl.
func (c *Calendar) Reset(epoch int, last []int) {
	if len(last) != len(c.marks) {
		panic(fmt.Sprintf("calendar: %d last crawls for %d sources", len(last), len(c.marks)))
	}
	if epoch < 0 || epoch >= lastEpoch {
		panic(fmt.Sprintf("calendar: epoch %d; allowed are 0 to %d", epoch, lastEpoch-1))
	}
	for i, l := range last {
		if l >= epoch || l < -lastEpoch {
			panic(fmt.Sprintf("calendar: source %d was crawled at epoch %d; allowed is before the decision, %d", i, l, epoch))
		}
		c.marks[i].last = int32(l)
	}
	c.now = int32(epoch)
	c.stale = true
}

// lastEpoch keeps ages and wakes within 32 bits.
const lastEpoch = 1 << 29

// Next appends the sources to crawl to dst and goes on to the next epoch.
func (c *Calendar) Next(dst []int) []int {
	if c.now >= lastEpoch {
		panic("calendar: too many epochs")
	}
	if c.stale || c.slab.used > 2*len(c.marks)+1024 {
		c.build()
	}
	for _, k := range c.classes {
		c.refresh(k)
		c.wake(k)
		k.picks, k.want = 0, c.surplus(k)
	}
	for part := c.waiting; len(part) > 0; {
		block := part[:min(len(part), blockLen)]
		part = part[len(block):]
		ids := c.block[:0]
		for _, id := range block {
			if c.marks[id].wake == waiting {
				ids = append(ids, id)
			}
		}
		for _, id := range ids {
			if c.marks[id].wake == waiting { // not listed twice
				c.place(c.class(id), id)
			}
		}
	}
	c.waiting = c.waiting[:0]

	if c.costs == nil {
		dst = c.best(dst)
	} else {
		dst = c.descend(dst)
	}

	for _, k := range c.classes {
		k.rate += (float64(k.picks) - k.rate) / 8
		c.raise(k)
		for j := range wheels - 1 {
			if k.wheel[j].n > max(k.limit[j], c.fill(k, j)) {
				c.spread(k, j)
			}
		}
	}
	c.now++
	return dst
}

// take books a crawl.
func (c *Calendar) take(k *class, id int32) {
	m := &c.marks[id]
	m.last, m.wake = c.now, waiting
	c.waiting = append(c.waiting, id)
	k.picks++
}

// best chooses where all crawls cost the same: the number that fits is known,
// and their order does not matter.
func (c *Calendar) best(dst []int) []int {
	n := c.count()
	for _, k := range c.classes {
		have := countAbove(k.pool, k.floor())
		for have < n && k.floor() != bottom {
			k.want = max(k.want, n-have+c.surplus(k))
			c.lower(k)
			have = countAbove(k.pool, k.floor())
		}
		n = min(n, have)
		first(k.pool, n)
		for _, p := range k.pool[:n] {
			dst = append(dst, int(p.id))
			c.take(k, p.id)
		}
		k.pool = k.pool[:copy(k.pool, k.pool[n:])]
	}
	return dst
}

// count returns how many crawls of equal cost fit into the budget.
func (c *Calendar) count() int {
	n := c.budget / c.cost
	if !(n < float64(c.present)) {
		return c.present
	}
	k := int(n)
	if env.Fits(float64(k+1)*c.cost, c.budget) { // the quotient was rounded down
		k++
	}
	return k
}

// descend chooses where costs differ. It goes down the indices of all classes
// together, and leaves out a class as soon as none of its sources fits.
func (c *Calendar) descend(dst []int) []int {
	for _, k := range c.classes {
		heapify(k.pool)
		k.passed = k.passed[:0]
	}
	left := c.budget
	for {
		var head, deep *class
		for _, k := range c.classes {
			switch {
			case !env.Fits(k.least, left):
			case len(k.pool) > 0 && k.pool[0].key >= k.floor():
				if head == nil || before(k.pool[0], head.pool[0]) {
					head = k
				}
			case k.floor() != bottom:
				// What sleeps is below the floor.
				if deep == nil || k.floor() > deep.floor() {
					deep = k
				}
			}
		}
		if deep != nil && (head == nil || !(head.pool[0].key >= deep.floor())) {
			c.lower(deep)
			heapify(deep.pool)
			continue
		}
		if head == nil {
			break
		}
		p := head.pool[0]
		head.pool = pop(head.pool)
		if v := c.costs[p.id]; env.Fits(v, left) {
			left -= v
			dst = append(dst, int(p.id))
			c.take(head, p.id)
		} else {
			head.passed = append(head.passed, p)
		}
	}
	for _, k := range c.classes {
		k.pool = append(k.pool, k.passed...)
	}
	return dst
}

// index is the key of a source: its index, −Inf where that is NaN.
func (c *Calendar) index(id int32, age int) float64 {
	c.Counts.Index++
	key := c.ix.At(&c.marks[id].p, age)
	if key != key {
		return math.Inf(-1)
	}
	return key
}

func (c *Calendar) firstAge(id int32, level float64) int {
	c.Counts.FirstAge++
	return c.ix.FirstAge(&c.marks[id].p, level)
}

// class returns the class of a source.
func (c *Calendar) class(id int32) *class {
	if c.costs == nil {
		return c.classes[0]
	}
	return c.find(c.costs[id])
}

// find returns the class of a cost, nil if there is none.
func (c *Calendar) find(cost float64) *class {
	x := sort.Search(len(c.classes), func(x int) bool { return c.classes[x].hi >= cost })
	if x == len(c.classes) || c.classes[x].lo > cost {
		return nil
	}
	return c.classes[x]
}
