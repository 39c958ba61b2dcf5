package calendar

import "math"

// wheels is the number of levels, and of timing wheels, of a class. One level
// would have every source of the class sorted anew whenever the floor falls;
// each further level costs one more wake per crawl.
const wheels = 2

// reach[j] is how many sources, in crawls per epoch, are to lie between the
// floor and level j.
var reach = [wheels]float64{0, 16}

// nap is a sleep, in epochs, that is not worth the wheel of a lower level.
// Sources that nap add at most 2 nap crawls to the first wheel.
const nap = 8

// bottom is the level that every finite index reaches.
const bottom = -math.MaxFloat64

// class is the set of sources that share a cost, or nearly so, in calendars
// with many costs.
type class struct {
	lo, hi float64 // costs, lo ≤ C ≤ hi
	least  float64 // no present source of the class costs less

	// pool holds the candidates: every present source of the class whose index
	// is at or above the floor, level[0], and possibly others.
	pool   []candidate
	passed []candidate // taken from the pool in this epoch, but did not fit

	// The index of the sources in wheel[j] is below level[j] until the epoch
	// that their mark names.
	level [wheels]float64
	wheel [wheels]wheel
	limit [wheels]int // entries of a wheel at which its levels are chosen anew

	members int
	rate    float64 // crawls per epoch, smoothed
	picks   int     // crawls of this epoch
	want    int     // candidates to gain when the floor is lowered next
	base    int     // size of the pool after the floor was raised
}

// floor returns the level at or above which every source is in the pool.
func (k *class) floor() float64 { return k.level[0] }

// surplus is the number of candidates kept beyond those that are crawled.
func (c *Calendar) surplus(k *class) int { return max(c.grain.surplus, int(k.rate/2)) }

// place finds the place of a source that is in no pool and no wheel.
func (c *Calendar) place(k *class, id int32) { c.climb(k, id, wheels) }

// climb finds the place of a source whose index may have reached the levels
// from j on.
func (c *Calendar) climb(k *class, id int32, j int) {
	age := int(c.now - c.marks[id].last)
	for j--; j >= 0; j-- {
		if k.level[j] == bottom {
			continue // reached by everything but the never crawled
		}
		if a := c.firstAge(id, k.level[j]); a > age {
			if j > 0 && a-age <= nap {
				// Soon awake: it may as well wait for the floor at once.
				if b := c.firstAge(id, k.floor()); b > age && b-age <= 2*nap {
					j, a = 0, b
				}
			}
			c.sleep(k, id, j, a-age)
			return
		}
	}
	c.arrive(k, id, age)
}

// arrive puts a source into the pool if it has reached the floor, and else
// back into the first wheel.
func (c *Calendar) arrive(k *class, id int32, age int) {
	key := c.index(id, age)
	if key >= k.floor() || k.floor() == bottom {
		c.marks[id].wake = awake
		k.pool = append(k.pool, candidate{key, id})
		return
	}
	c.sleep(k, id, 0, max(1, c.firstAge(id, k.floor())-age))
}

// placeKeyed is place for a source whose index is known.
func (c *Calendar) placeKeyed(k *class, id int32, key float64) {
	for j := wheels - 1; j >= 0; j-- {
		if k.level[j] != bottom && !(key >= k.level[j]) {
			age := int(c.now - c.marks[id].last)
			c.sleep(k, id, j, max(1, c.firstAge(id, k.level[j])-age))
			return
		}
	}
	c.marks[id].wake = awake
	k.pool = append(k.pool, candidate{key, id})
}

// sleep puts a source into wheel j for the given number of epochs.
func (c *Calendar) sleep(k *class, id int32, j, epochs int) {
	w := &k.wheel[j]
	w.n++
	if epochs >= maxSleep {
		c.marks[id].wake = never
		c.slab.push(&w.never, id)
		return
	}
	e := id
	if last := len(w.buckets) - 1; epochs > last {
		e, epochs = ^id, last
	}
	wake := c.now + int32(epochs)
	c.marks[id].wake = wake
	c.slab.push(w.at(wake), e)
}

// maxSleep is a sleep that is not worth an end. The levels move before.
const maxSleep = 1 << 28

// wake empties the buckets of this epoch.
func (c *Calendar) wake(k *class) {
	for j := range k.wheel {
		w := &k.wheel[j]
		c.woken = c.slab.drain(w.at(c.now), c.woken[:0])
		w.n -= len(c.woken)
		for part := c.woken; len(part) > 0; {
			// The sources lie anywhere in memory. Reading a block of marks
			// before any is worked on lets the reads overlap.
			block := part[:min(len(part), blockLen)]
			part = part[len(block):]
			valid := block[:0]
			for _, e := range block {
				if c.marks[source(e)].wake == c.now { // else the entry is void
					valid = append(valid, e)
				}
			}
			for _, e := range valid {
				id := source(e)
				m := &c.marks[id]
				switch {
				case m.wake != c.now: // entered twice
				case heldBack(e):
					c.climb(k, id, j+1)
				case j > 0:
					c.climb(k, id, j)
				default:
					c.arrive(k, id, int(c.now-m.last))
				}
			}
		}
	}
}

// blockLen is how many sources are read before they are worked on.
const blockLen = 64

// refresh computes the keys of the pool anew and drops the sources that left.
func (c *Calendar) refresh(k *class) {
	keep := k.pool[:0]
	for _, p := range k.pool {
		m := &c.marks[p.id]
		if m.wake == leaving {
			m.wake = absent
			continue
		}
		keep = append(keep, candidate{c.index(p.id, int(c.now-m.last)), p.id})
	}
	k.pool = keep
}

// detach takes all sources out of wheel j and returns the chain of their
// entries, put before the given one. Their marks say held; void entries become
// none.
func (c *Calendar) detach(k *class, j int, chain int32) int32 {
	w := &k.wheel[j]
	take := func(b *bucket, wake int32) {
		head, n := b.head, int(b.n)
		*b = bucket{head: none}
		for head != none {
			ch := c.slab.chunk(head)
			for x := 1; x <= chunkRoom; x++ {
				if x > n {
					ch[x] = none
					continue
				}
				id := source(ch[x])
				if m := &c.marks[id]; m.wake == wake {
					m.wake = held
					ch[x] = id
				} else {
					ch[x] = none
				}
			}
			c.slab.used -= n
			next := ch[0]
			ch[0] = chain
			chain, head, n = head, next, chunkRoom
		}
	}
	for d := 1; d < len(w.buckets); d++ {
		wake := c.now + int32(d)
		take(w.at(wake), wake)
	}
	take(&w.never, never)
	w.n = 0
	return chain
}

// survey computes the keys of at most grain.survey sources of a chain, evenly
// taken, and returns them with the number of sources that each stands for.
func (c *Calendar) survey(chain int32) ([]candidate, int) {
	n := 0
	for h := chain; h != none; {
		ch := c.slab.chunk(h)
		for _, id := range ch[1:] {
			if id != none {
				n++
			}
		}
		h = ch[0]
	}
	stride := (n + c.grain.survey - 1) / c.grain.survey
	s, skip := c.sample[:0], 0
	for h := chain; h != none; {
		ch := c.slab.chunk(h)
		for _, id := range ch[1:] {
			if id == none {
				continue
			}
			if skip > 0 {
				skip--
				continue
			}
			skip = stride - 1
			s = append(s, candidate{c.index(id, int(c.now-c.marks[id].last)), id})
		}
		h = ch[0]
	}
	c.sample = s
	return s, max(1, stride)
}

// lower lowers the floor until at least one more source is a candidate, or no
// source sleeps any more. It aims at the number of sources that the class
// wants, and doubles that for the next time in this epoch.
func (c *Calendar) lower(k *class) {
	c.Counts.Lowered++
	want := k.want
	k.want *= 2
	chain := int32(none)
	for j := range wheels {
		chain = c.detach(k, j, chain)
		under := bottom // the other sources that sleep are below
		if j+1 < wheels {
			under = k.level[j+1]
		}
		if under == bottom {
			// All that sleep are taken, and with them void entries.
			for j++; j < wheels; j++ {
				chain = c.detach(k, j, chain)
			}
			j = wheels - 1
			c.Counts.Swept++
			c.cheapest(k, chain)
		}
		s, stride := c.survey(chain)
		above := countAbove(s, under)
		if j+1 < wheels && above*stride < want {
			continue
		}
		k.level[0] = min(k.level[0], rank(s, want/stride, above, under))
		for x := 1; x <= j; x++ {
			k.level[x] = min(k.level[x-1], rank(s, int(reach[x]*k.rate)/stride, above, under))
		}
		c.settleChain(k, chain)
		return
	}
}

// spread chooses the levels below wheel j anew, because too many sources lie in
// it. The floor stays.
func (c *Calendar) spread(k *class, j int) {
	c.Counts.Spread++
	chain := int32(none)
	for x := 0; x <= j; x++ {
		chain = c.detach(k, x, chain)
	}
	s, stride := c.survey(chain)
	under := k.level[j+1]
	above := countAbove(s, under)
	for x := 1; x <= j+1; x++ {
		k.level[x] = min(k.level[x-1], rank(s, int(reach[x]*k.rate)/stride, above, under))
	}
	c.settleChain(k, chain)
	for x := 0; x <= j; x++ {
		k.limit[x] = max(c.fill(k, x), 2*k.wheel[x].n)
	}
}

// fill is the number of entries that wheel j is meant to hold at most.
func (c *Calendar) fill(k *class, j int) int { return c.grain.fill + int(3*reach[j+1]*k.rate) }

// settleChain finds the places of the sources of a chain.
func (c *Calendar) settleChain(k *class, chain int32) {
	for chain != none {
		ch := *c.slab.chunk(chain)
		c.slab.release(chain)
		for _, id := range ch[1:] {
			if id == none || c.marks[id].wake != held {
				continue
			}
			c.placeKeyed(k, id, c.index(id, int(c.now-c.marks[id].last)))
		}
		chain = ch[0]
	}
}

// cheapest finds the cheapest source of the class anew when all that sleep are in
// the chain.
func (c *Calendar) cheapest(k *class, chain int32) {
	if c.costs == nil {
		return
	}
	least := math.Inf(1)
	for h := chain; h != none; {
		ch := c.slab.chunk(h)
		for _, id := range ch[1:] {
			if id != none {
				least = min(least, c.costs[id])
			}
		}
		h = ch[0]
	}
	for _, list := range [][]candidate{k.pool, k.passed} {
		for _, p := range list {
			least = min(least, c.costs[p.id])
		}
	}
	for _, i := range c.waiting {
		if v := c.costs[i]; v >= k.lo && v <= k.hi {
			least = min(least, v)
		}
	}
	k.least = least
}

// raise raises the floor when too many candidates are left over, so that the
// surplus remains.
func (c *Calendar) raise(k *class) {
	s := c.surplus(k)
	k.base = min(k.base, max(s, len(k.pool)))
	if len(k.pool) <= 2*max(s, k.base) {
		return
	}
	c.Counts.Raised++
	first(k.pool, s)
	floor := math.Inf(1)
	for _, p := range k.pool[:s] {
		floor = min(floor, p.key)
	}
	if floor > k.floor() {
		k.level[0] = floor
		keep := k.pool[:0]
		for _, p := range k.pool {
			if p.key >= floor {
				keep = append(keep, p)
				continue
			}
			age := int(c.now - c.marks[p.id].last)
			// A source that is back in the next epoch may as well stay.
			if a := c.firstAge(p.id, floor); a > age+1 {
				c.sleep(k, p.id, 0, a-age)
			} else {
				keep = append(keep, p)
			}
		}
		k.pool = keep
	}
	k.base = max(s, len(k.pool))
}

// countAbove returns how many keys are at or above the level.
func countAbove(s []candidate, level float64) (n int) {
	for _, p := range s {
		if p.key >= level {
			n++
		}
	}
	return n
}

// rank returns the n-th highest key, at least the first, or under if no more
// than above are there.
func rank(s []candidate, n, above int, under float64) float64 {
	n = max(1, n)
	if n > above {
		return under
	}
	first(s, n)
	key := math.Inf(1)
	for _, p := range s[:n] {
		key = min(key, p.key)
	}
	return key
}
