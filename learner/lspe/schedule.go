package lspe

import (
	"math"
	"slices"

	"ephemera/baselines"
	"ephemera/baselines/ring"
	"ephemera/env"
)

// schedule finds the sources to crawl without looking at all of them: sources sleep in a ring
// until they are about to be due, and those that have woken wait in a list, of
// which the ones that are most overdue are crawled.
type schedule struct {
	costs  []float64 // C
	budget float64   // M
	total  float64   // ΣC, of the sources that fit into the budget
	round  float64   // R = ΣC/M
	sel    *baselines.Selector
	// M̂, what the crawls of an epoch cost together where more were due: costs may
	// leave a part of M that nothing fits into.
	capacity float64

	hosts []int32 // of each source, 0 for one of its own; nil where there are none
	slots []slot  // of each host, from 1 on

	ring    *ring.Ring
	waiting []Waiting

	ids []int32 // scratch
	key []float64
}

// slot is what the room for crawls at a host is worth.
type slot struct {
	Price float64 `json:"price"` // μ of a crawl, interest
	Plan  float64 `json:"plan"`  // crawls that the thresholds plan there, per epoch
	room  float64 // crawls for which an epoch has room
}

// Waiting is a source that has woken.
type Waiting struct {
	Reach float64 // θe^(−L/κ), the age + ½ at which it is due
	Slope float64 // by how much more a crawl is worth in twice that age, interest per budget unit
	Last  int32   // epoch of its last crawl
	ID    int32
}

func newSchedule(t env.Terms) schedule {
	s := schedule{costs: slices.Clone(t.Costs), budget: t.Budget, total: t.Budget * t.Round(), round: max(1, t.Round())}
	s.sel = baselines.NewSelector(s.costs, s.budget)
	if t.PerHost > 0 && len(t.Hosts) > 0 {
		s.hosts = slices.Clone(t.Hosts)
		s.slots = slices.Repeat([]slot{{room: float64(t.PerHost)}}, int(slices.Max(t.Hosts))+1)
	}
	s.capacity = s.budget
	s.clear(0)
	return s
}

// clear forgets which sources sleep and which wait, and begins at an epoch.
func (s *schedule) clear(epoch int) {
	s.ring = ring.New(len(s.costs), int(sleepRounds*s.round)+2)
	s.ring.Due(nil, epoch-1)
	s.waiting = s.waiting[:0]
}

// affordable reports whether a crawl of source i fits into the budget at all.
func (s *schedule) affordable(i int) bool { return env.Fits(s.costs[i], s.budget) }

// at returns the slot of source i, nil where its host has room for all.
func (s *schedule) at(i int) *slot {
	if i >= len(s.hosts) || s.hosts[i] == 0 {
		return nil
	}
	return &s.slots[s.hosts[i]]
}

// priced returns what a crawl of source i has to bring per budget unit, λ + μ/C.
func (s *schedule) priced(i int, price float64) float64 {
	if at := s.at(i); at != nil {
		price += at.Price / s.costs[i]
	}
	return price
}

// sleep puts a source to sleep until the first age s with s + ½ ≥ reach. Where those
// that wake then have woken already, it waits with them, and so does a source that is
// due at the epoch after its crawl, however many wait before it.
func (s *schedule) sleep(w Waiting) {
	due := w.due()
	if due < s.ring.Next() || due == int(w.Last)+1 {
		s.waiting = append(s.waiting, w)
		return
	}
	s.ring.Add(int(w.ID), min(due, s.ring.Next()+int(sleepRounds*s.round)+1))
}

// due returns the epoch at which the source is due, the one after its last crawl
// at the earliest.
func (w Waiting) due() int {
	return int(w.Last) + int(max(1, min(math.Ceil(w.Reach-half), 1<<30)))
}

// gather wakes each source that is due, so that those which have waited for long without being
// worth a crawl keep none asleep that is worth more; and then others, the soonest due first, until
// those that wait and are allowed would take twice the budget, looking at most one round ahead.
// wake returns how a source stands when it wakes; it may have moved away and sleeps on.
func (s *schedule) gather(o *env.Online, wake func(i int32, epoch int) Waiting) {
	var cost float64
	for _, w := range s.waiting {
		if o.Allowed(int(w.ID)) {
			cost += s.costs[w.ID]
		}
	}
	for s.ring.Next() <= o.Epoch || cost < 2*s.budget && s.ring.Next() <= o.Epoch+int(s.round) {
		epoch := s.ring.Next()
		s.ids = s.ring.Due(s.ids[:0], epoch)
		for _, i := range s.ids {
			w := wake(i, epoch)
			if w.due() > epoch {
				s.sleep(w)
				continue
			}
			s.waiting = append(s.waiting, w)
			cost += s.costs[i]
		}
	}
}

// choose appends to dst the sources of ids and key, and of those that wait the ones
// with the greatest index, within the budget. For the index stand two lines,
//
//	W(s) ≈ λ + Slope ((s + ½)/reach − 1)             from the threshold on,
//	W(s) ≈ λ + max(λ, Slope/10) ((s + ½)/reach − 1)  below it
//
// Right after a crawl nothing waits, and the index is 0: up to its threshold it rises from there
// to λ. A line as steep as beyond would be far below the index of a source that is due at its
// second epoch, which Whittle now and then crawls twice in a row.
//
// None is crawled for which the steep line is below 0. With budget to
// spare sources so wait until they are nearly due, and their ages vary.
func (s *schedule) choose(dst []int, o *env.Online, price float64) []int {
	var due float64
	for _, w := range s.waiting {
		price := s.priced(int(w.ID), price)
		late := (float64(o.Epoch-int(w.Last))+half)/w.Reach - 1
		if late >= 0 && o.Allowed(int(w.ID)) {
			due += s.costs[w.ID]
		}
		if price+w.Slope*late < 0 {
			continue
		}
		slope := w.Slope
		if late < 0 {
			slope = max(price, priceFloor*slope)
		}
		s.ids, s.key = append(s.ids, w.ID), append(s.key, price+slope*late)
	}
	from := len(dst)
	dst = s.sel.Within(o).Among(dst, s.ids, s.key)
	var spent float64
	for _, i := range dst[from:] {
		spent += s.costs[i]
	}
	if s.hosts == nil && !env.Fits(due, spent) {
		s.capacity += (spent - s.capacity) / capacityMemory
	}
	return dst
}

// release takes the sources that were crawled out of the list.
func (s *schedule) release(crawled func(w Waiting) bool) {
	s.waiting = slices.DeleteFunc(s.waiting, crawled)
}
