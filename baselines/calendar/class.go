package calendar

import (
	"math"
	"slices"

	"ephemera/baselines/order"
)

// reach is how many sources, in crawls per epoch, are to lie between the
// horizon and the floor. With one wheel, and no horizon, every fall of the floor
// would rank all sources of the class.
const reach = 16

// nap is a sleep, in epochs, that is not worth the far wheel.
const nap = 8

// bottom is the level that every finite index reaches.
const bottom = -math.MaxFloat64

// class is the set of sources whose costs agree within a quarter of an octave.
type class struct {
	lo, hi  float64 // least and greatest cost
	members int

	// pool holds the candidates: every source of the class whose index is at
	// or above the floor, and possibly others.
	pool   []order.Item
	passed []order.Item // taken from the pool at this epoch, but did not fit

	// Until they wake, sources in near are below the floor, sources in far
	// below the horizon ≤ floor.
	floor, horizon float64
	near, far      wheel

	rate  float64 // crawls per epoch, smoothed
	picks int     // crawls of this epoch
	more  int     // candidates that the next fall of the floor in this epoch is to gain
	base  int     // size of the pool after the floor was raised
	limit int     // sources in near at which the horizon is raised
}

// makeClasses sorts the sources into classes and sizes their wheels.
func (c *Calendar) makeClasses() {
	// The exponent and the first two bits of the fraction.
	quarter := func(v float64) int { return int(math.Float64bits(v) >> 50) }
	number := make(map[int]int)
	for _, v := range c.costs {
		number[quarter(v)]++
	}
	keys := make([]int, 0, len(number))
	for q := range number {
		keys = append(keys, q)
	}
	slices.Sort(keys)
	// Where there are very many classes the dearest share the last one.
	const most = math.MaxUint8 + 1
	c.classes = make([]class, min(len(keys), most))
	at := make(map[int]uint8, len(keys))
	for x, q := range keys {
		at[q] = uint8(min(x, most-1))
	}
	if len(c.classes) > 1 {
		c.classOf = make([]uint8, len(c.costs))
	}
	var total float64
	for i, v := range c.costs {
		x := at[quarter(v)]
		if c.classOf != nil {
			c.classOf[i] = x
		}
		k := &c.classes[x]
		if k.members == 0 {
			k.lo = v
		}
		k.lo, k.hi = min(k.lo, v), max(k.hi, v)
		k.members++
		total += v
	}
	share := min(1, c.budget/total) // of the sources, crawled at an epoch
	for x := range c.classes {
		k := &c.classes[x]
		k.rate = share * float64(k.members)
		// The wheel turns more slowly than most sources are crawled.
		turn := min(4/share, float64(k.members)/32)
		span := c.grain.span
		for float64(span) < turn {
			span *= 2
		}
		k.near.buckets, k.far.buckets = make([]bucket, span+1), make([]bucket, span+1)
	}
}

// clear empties the class.
func (k *class) clear() {
	k.near.clear()
	k.far.clear()
	k.pool = k.pool[:0]
	k.floor, k.horizon = math.Inf(1), math.Inf(1)
	k.base, k.limit = 0, 0
}

// surplus is the number of candidates kept beyond those that are crawled.
func (k *class) surplus(c *Calendar) int { return max(c.grain.surplus, int(k.rate/2)) }

// refresh computes the keys of the pool anew.
func (k *class) refresh(c *Calendar) {
	for x := range k.pool {
		k.pool[x].Key = c.see(k.pool[x].ID)
	}
	k.more = 0
}

// wake empties the buckets of this epoch.
func (k *class) wake(c *Calendar) {
	c.ids = k.far.due(c, c.ids[:0])
	for _, id := range c.ids {
		k.climb(c, id, false)
	}
	c.ids = k.near.due(c, c.ids[:0])
	for _, id := range c.ids {
		k.arrive(c, id)
	}
}

// climb finds the place of a source that lies nowhere; far says whether it may
// be below the horizon.
func (k *class) climb(c *Calendar, id int32, far bool) {
	if far && k.horizon != bottom {
		if w := c.wait(id, k.horizon); w > 0 {
			if w <= nap {
				// Soon awake: it may as well wait for the floor at once.
				if v := c.wait(id, k.floor); v > 0 && v <= 2*nap {
					k.near.push(c, id, v)
					return
				}
			}
			k.far.push(c, id, w)
			return
		}
	}
	if k.floor != bottom {
		if w := c.wait(id, k.floor); w > 0 {
			k.near.push(c, id, w)
			return
		}
	}
	k.arrive(c, id)
}

// arrive puts a source into the pool if it has reached the floor, and else
// back into the near wheel.
func (k *class) arrive(c *Calendar, id int32) {
	key := c.see(id)
	if key >= k.floor || k.floor == bottom {
		k.pool = append(k.pool, order.Item{Key: key, ID: id})
		return
	}
	k.near.push(c, id, max(1, c.wait(id, k.floor)))
}

// lower lowers the floor until at least one more source is a candidate, or no
// source sleeps any more. It aims at want and a surplus, and at twice as many
// the next time in this epoch.
func (k *class) lower(c *Calendar, want int) {
	want = max(k.more, want+k.surplus(c))
	k.more = 2 * want
	ids := k.near.empty(c, c.ids[:0])
	s, stride := c.survey(ids)
	if above := countAbove(s, k.horizon); above*stride >= want {
		k.floor = min(k.floor, rank(s, want/stride, above, k.horizon))
	} else {
		ids = k.far.empty(c, ids)
		s, stride = c.survey(ids)
		above = countAbove(s, bottom)
		k.floor = min(k.floor, rank(s, want/stride, above, bottom))
		k.horizon = min(k.floor, rank(s, int(reach*k.rate)/stride, above, bottom))
	}
	k.scatter(c, ids)
}

// scatter puts sources that were taken out of a wheel where they belong.
func (k *class) scatter(c *Calendar, ids []int32) {
	for _, id := range ids {
		k.climb(c, id, true)
	}
	c.ids = ids
}

// adapt moves the levels to what this epoch showed.
func (k *class) adapt(c *Calendar) {
	k.rate += (float64(k.picks) - k.rate) / 8
	k.raise(c)
	if fill := c.grain.fill + int(3*reach*k.rate); k.near.n > max(k.limit, fill) {
		// Too many sources wait for the floor: the horizon is raised.
		ids := k.near.empty(c, c.ids[:0])
		s, stride := c.survey(ids)
		k.horizon = min(k.floor, rank(s, int(reach*k.rate)/stride, countAbove(s, k.horizon), k.horizon))
		k.scatter(c, ids)
		k.limit = max(fill, 2*k.near.n)
	}
}

// raise raises the floor when too many candidates are left over, so that the
// surplus remains.
func (k *class) raise(c *Calendar) {
	s := k.surplus(c)
	k.base = min(k.base, max(s, len(k.pool)))
	if len(k.pool) <= 2*max(s, k.base) {
		return
	}
	if floor := rank(k.pool, s, len(k.pool), k.floor); floor > k.floor {
		k.floor = floor
		keep := k.pool[:0]
		for _, p := range k.pool {
			// A source that is back in the next epoch may as well stay.
			if p.Key < floor {
				if w := c.wait(p.ID, floor); w > 1 {
					k.near.push(c, p.ID, w)
					continue
				}
			}
			keep = append(keep, p)
		}
		k.pool = keep
	}
	k.base = max(s, len(k.pool))
}

// survey computes the keys of a sample, evenly taken, and returns it with the
// number of sources that each stands for.
func (c *Calendar) survey(ids []int32) ([]order.Item, int) {
	stride := max(1, (len(ids)+c.grain.survey-1)/c.grain.survey)
	s := c.sample[:0]
	for x := 0; x < len(ids); x += stride {
		s = append(s, order.Item{Key: c.index(ids[x]), ID: ids[x]})
	}
	c.sample = s
	return s, stride
}

// countAbove returns how many keys are at or above the level.
func countAbove(s []order.Item, level float64) (n int) {
	for _, p := range s {
		if p.Key >= level {
			n++
		}
	}
	return n
}

// rank returns the n-th highest key, at least the first, or under if no more
// than above are there.
func rank(s []order.Item, n, above int, under float64) float64 {
	n = max(1, n)
	if n > above {
		return under
	}
	order.First(s, n)
	key := math.Inf(1)
	for _, p := range s[:n] {
		key = min(key, p.Key)
	}
	return key
}
