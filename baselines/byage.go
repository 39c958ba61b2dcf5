package baselines

import (
	"cmp"
	"math"
	"slices"

	"ephemera/baselines/index"
	"ephemera/baselines/ring"
	"ephemera/env"
)

// ageIndex returns an index of source i that depends on its age alone, when age
// epochs of content wait there, age ≥ 1. It does not fall as the age grows,
// except by rounding. A source is not crawled while its index is NaN or −Inf.
type ageIndex func(i, age int) float64

// firstAge returns the first age at which the index reaches a level, but for
// rounding; [index.Never] if there is none.
func (f ageIndex) firstAge(i int, level float64) int {
	level -= tolerance(level)
	return index.FirstAge(0, index.Never, func(age int) bool { return f(i, age) >= level })
}

// tolerance is by how much an index may miss a level by rounding.
func tolerance(level float64) float64 { return 1e-10 * math.Abs(level) }

// byAge is a policy that crawls by decreasing index, where the index is a
// function of the age.
//
//  1. Sources whose index has reached the floor, a level below that of the last
//     source that is crawled, are awake: each epoch compares them all.
//  2. The others sleep in a ring until the epoch at which they reach the floor.
//  3. What is crawled is again below the floor, and falls asleep an epoch later.
//  4. Where the sources that are awake do not use up the budget, the floor is lowered
//     until they do, which looks at all sources. Where too many are awake, the
//     floor is raised.
//
// What sleeps is below the floor, so where all crawls cost the same the choice is
// that of a comparison of all sources. Where costs differ, what is left of the
// budget goes to a source that is awake, and not to a cheap one far below.
type byAge struct {
	sel   *Selector
	index ageIndex
	first func(i int, level float64) int // the first age at which the index reaches a level
	pack  bool                           // the crawls of an epoch are chosen by the selector's pack

	awake []candidate
	ring  *ring.Ring // nil where all sources are awake for ever
	floor float64
	want  int     // sources that are to be awake
	due   []int32 // scratch
}

// NewByAge returns the policy that crawls by decreasing index, where the index
// of source i is a function at of its age that does not change and does not fall
// as the age grows. An epoch with many sources of which few are crawled costs
// what its crawls cost. The policy is for one run of one world.
func NewByAge(t env.Terms, at func(i, age int) float64) env.Policy[env.Model] {
	return newByAge(t, at, fewAreCrawled(t))
}

// fewAreCrawled reports whether sleep is faster than a look at all sources, see
// BenchmarkByAge.
func fewAreCrawled(t env.Terms) bool { return len(t.Costs) >= 128 && t.Round() >= 20 }

func newByAge(t env.Terms, x ageIndex, sleep bool) *byAge {
	p := &byAge{sel: NewSelector(t.Costs, t.Budget), index: x, first: x.firstAge}
	if sleep {
		p.ring, p.floor = ring.New(len(t.Costs), int(min(4*t.Round(), 1<<22))), math.Inf(1)
		p.want = int(1.5*float64(len(t.Costs))/t.Round()) + 16
		if !p.sel.equal {
			p.want += 48 // among which to find one that still fits
		}
	}
	return p
}

// Select implements env.Policy.
func (p *byAge) Select(dst []int, o *env.Model) []int {
	p.sel.Within(&o.Online)
	if p.ring == nil || p.sel.grouped() { // however many are awake may be of one group
		p.wakeAll(o)
		p.awake = slices.DeleteFunc(p.awake, func(c candidate) bool { return c.key < bottom })
	} else {
		p.wakeDue(o)
	}
	if p.pack {
		return p.sel.pack(dst, p.awake)
	}
	return p.sel.top(dst, p.awake)
}

// bottom is the level that every finite index reaches.
const bottom = -math.MaxFloat64

// wakeAll wakes all sources but those of which a crawl is above the budget. These are never
// chosen, and if they were awake, suffice would count their costs as spent.
func (p *byAge) wakeAll(o *env.Model) {
	p.awake = p.awake[:0]
	for i := range o.Last {
		if env.Fits(p.sel.costs[i], p.sel.budget) {
			p.awake = append(p.awake, candidate{p.key(i, o), int32(i)})
		}
	}
}

// key returns the index of a source now, −Inf where it is NaN.
func (p *byAge) key(i int, o *env.Model) float64 {
	if key := p.index(i, o.Age(i)); key == key {
		return key
	}
	return negInf
}

// sleep puts the sources below the floor to sleep until they reach it. A source that
// never does is in no chain of the ring.
func (p *byAge) sleep(o *env.Model) {
	stay := p.awake[:0]
	for _, c := range p.awake {
		if c.key >= p.floor {
			stay = append(stay, c)
		} else if age := p.first(int(c.id), p.floor); age != index.Never {
			p.ring.Add(int(c.id), o.Last[c.id]+age)
		}
	}
	p.awake = stay
}

// wakeDue wakes the sources that are due, puts those below the floor to sleep, and moves
// the floor where too few or too many are awake.
func (p *byAge) wakeDue(o *env.Model) {
	p.due = p.ring.Due(p.due[:0], o.Epoch)
	for _, i := range p.due {
		p.awake = append(p.awake, candidate{id: i})
	}
	for k := range p.awake {
		c := &p.awake[k]
		c.key = p.key(int(c.id), o)
	}
	p.sleep(o)
	switch {
	case p.floor > bottom && !p.suffice(p.awake):
		p.ring.Clear()
		p.wakeAll(o)
		p.moveFloor(o)
	case len(p.awake) > p.want+p.want/2:
		p.moveFloor(o)
	}
}

// moveFloor leaves as many sources awake as are wanted, and wants more where
// those do not use up the budget.
func (p *byAge) moveFloor(o *env.Model) {
	slices.SortFunc(p.awake, func(a, b candidate) int { return cmp.Compare(b.key, a.key) })
	for p.want < len(p.awake) && !p.suffice(p.awake[:p.want]) {
		p.want *= 2
	}
	p.floor = bottom
	if p.want < len(p.awake) {
		p.floor = max(bottom, p.awake[p.want-1].key)
	}
	p.sleep(o)
}

// suffice reports whether sources use the budget up.
func (p *byAge) suffice(v []candidate) bool {
	left := p.sel.budget
	for _, c := range v {
		left -= p.sel.costs[c.id]
	}
	return !env.Fits(p.sel.least, left)
}
