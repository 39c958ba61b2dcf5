package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ephemera/baselines/index"
	"ephemera/baselines/ring"
	"ephemera/env"
)

// schedule finds the sources that may be worth a crawl without looking at all. Those
// that are far from their threshold sleep in a ring, and those of which nothing is
// known wait in line; a decision is among those that are awake, which are not many
// more than crawls.
type schedule struct {
	// Epoch at which each source wakes, or gone, unseen or awake; nil before the first decision.
	Wake  []int32 `json:"wake"`
	Line  []int32 `json:"line"`  // sources that are unseen, the next one first, and some that left
	Awake []int32 `json:"awake"` // sources among which is chosen, and some that were
	Next  int     `json:"next"`  // first epoch whose sources have not woken

	Epoch  int     `json:"epoch"`  // of the last Select; −1 before
	Credit float64 `json:"credit"` // budget units saved up for overdue sources
	Mean   float64 `json:"price"`  // mean clearing price, interest per budget unit
	Low    float64 `json:"low"`    // the least clearing price lately
	Prices float64 `json:"prices"` // epochs behind the mean

	ring *ring.Ring // those that sleep
}

const (
	gone   = -1 - iota // it was removed
	unseen             // nothing is known of it, and it waits in line
	woken
	left // it was removed while it waited in line: the next source in its place has its turn

	sleepRounds = 2    // for how long a source sleeps at most
	margin      = 24   // epochs before its threshold in which a source does not sleep: a day of hours,
	marginRound = .25  // and that part of a round at most where sources are
	many        = 2000 // or more, and a look at each takes long
	enough      = 2    // budgets that those that are awake cost at least,
)

// wakeAll puts all sources of which something is known among those that are awake.
func (l *Learner) wakeAll(epoch int) {
	l.Wake, l.Line, l.Awake, l.Next = make([]int32, len(l.terms.Costs)), nil, nil, epoch
	l.fillRing()
	for i, cost := range l.terms.Costs {
		switch {
		case math.IsInf(cost, 1):
			l.Wake[i] = gone
		case l.frozen || l.crawled(i):
			l.wake(int32(i))
		default:
			l.line(i)
		}
	}
}

// fillRing puts those into the ring that sleep.
func (l *Learner) fillRing() {
	s := &l.schedule
	s.ring = ring.New(len(s.Wake), int(max(1024, min(1<<20, sleepRounds*l.round))))
	s.ring.Due(nil, s.Next-1)
	for i, epoch := range s.Wake {
		if epoch > 0 {
			s.ring.Add(i, int(epoch))
		}
	}
}

func (s *schedule) wake(i int32) {
	s.Wake[i] = woken
	s.Awake = append(s.Awake, i)
}

// line has source i wait in line.
func (s *schedule) line(i int) {
	if s.Wake[i] != left {
		s.Line = append(s.Line, int32(i))
	}
	s.Wake[i] = unseen
}

// leaveLine has source i leave the line. Those that came last are found first.
func (s *schedule) leaveLine(i int32) {
	for k := len(s.Line) - 1; k >= 0; k-- {
		if s.Line[k] == i {
			s.Line = slices.Delete(s.Line, k, k+1)
			return
		}
	}
}

// present drops from the list of awake sources those that are awake no longer.
func (s *schedule) present() {
	s.Awake = slices.DeleteFunc(s.Awake, func(i int32) bool { return s.Wake[i] != woken })
}

// rouse wakes the sources whose time has come and new ones, and, as long as all that
// are awake and allowed cost too little, those that come next. It returns what they
// cost.
func (l *Learner) rouse(o *env.Online) (cost float64) {
	s := &l.schedule
	if s.Wake == nil || o.Epoch <= l.Epoch {
		l.wakeAll(o.Epoch)
	}
	s.present()
	clear(l.awakeIn)
	clear(l.newIn)
	var unknown float64
	count := func(i int32) {
		if l.terms.Affordable(int(i)) && o.Allowed(int(i)) {
			cost += l.enter(&l.awakeIn, int(i), o)
			if o.Last[i] < 0 {
				unknown += l.enter(&l.newIn, int(i), o)
			}
		}
	}
	for _, i := range s.Awake {
		count(i)
	}
	due := func(epoch int) {
		for _, i := range s.ring.Due(nil, epoch) {
			s.wake(i)
			count(i)
		}
	}
	due(o.Epoch)
	want := enough * l.terms.Budget
	for n := len(s.Line); unknown < want && n > 0; n-- {
		i := s.Line[0]
		s.Line = s.Line[1:]
		switch g, most := l.group(&l.newIn, int(i), o); {
		case s.Wake[i] == left:
			s.Wake[i] = gone
		case s.Wake[i] != unseen: // it is there twice, in a state of an older version
		case g != nil && *g >= most:
			s.Line = append(s.Line, i) // behind those whose groups may have room
		default:
			s.wake(i)
			count(i)
		}
	}
	var next []int32
	last := o.Epoch + int(sleepRounds*l.round) + margin
	for epoch := s.ring.Next(); cost < want && epoch <= last; epoch++ {
		if o.Limits == nil || o.Limits.PerGroup == 0 {
			due(epoch)
			continue
		}
		next = s.ring.At(next[:0], epoch)
		for _, i := range next {
			if n, most := l.group(&l.awakeIn, int(i), o); n == nil || *n < most { // others of its group are enough
				s.ring.Remove(int(i))
				s.wake(i)
				count(i)
			}
		}
	}
	return cost
}

// group returns of some sources how many are in the group of source i, and how many of them
// count; nil where the crawls of its group have no limit.
func (l *Learner) group(in *[]int, i int, o *env.Online) (n *int, most int) {
	if o.Limits == nil || o.Limits.PerGroup == 0 || o.Limits.Group[i] == 0 {
		return nil, 0
	}
	g := int(o.Limits.Group[i])
	if more := g + 1 - len(*in); more > 0 {
		*in = append(*in, make([]int, more)...)
	}
	return &(*in)[g], enough * o.Limits.PerGroup
}

// enter adds source i to some sources, and returns what that adds to their cost: nothing where
// its group has more than it may have crawls.
func (l *Learner) enter(in *[]int, i int, o *env.Online) float64 {
	if n, most := l.group(in, i, o); n != nil {
		if *n++; *n > most {
			return 0
		}
	}
	return l.terms.Costs[i]
}

// leave is the converse of enter.
func (l *Learner) leave(in *[]int, i int, o *env.Online) float64 {
	if n, most := l.group(in, i, o); n != nil {
		if *n--; *n >= most {
			return 0
		}
	}
	return l.terms.Costs[i]
}

// putToSleep puts to sleep the sources that may not be crawled yet and, of the others, which
// together cost so much, those with the least index that are far from their threshold. These
// sleep for half of the way to it, since the estimates of them and of the price may change.
// As many stay awake as the budget needs, or, of groups, as their limits let be crawled.
func (l *Learner) putToSleep(o *env.Online, cost, longest float64) {
	s := &l.schedule
	sleep := func(i int, wait float64) {
		if until := o.Epoch + int(wait); until > o.Epoch && until >= s.ring.Next() {
			s.Wake[i] = int32(until)
			s.ring.Add(i, until)
		}
	}
	margin := float64(l.margin())
	most := sleepRounds*l.round + margin
	l.order, l.waits = l.order[:0], slices.Grow(l.waits[:0], len(s.Awake))[:len(s.Awake)]
	var dearest, far float64 // cost of one that may sleep, and of all that do unless too few stay awake
	for k, id := range s.Awake {
		switch i := int(id); {
		case !o.Allowed(i):
			sleep(i, float64(o.Limits.NotBefore[i]-o.Epoch))
		case !l.terms.Affordable(i):
			sleep(i, most)
		case l.key[k] < l.Low && l.known[k]:
			l.order = append(l.order, k)
			l.waits[k] = l.wait(k, o, longest, margin, most)
			c := l.terms.Costs[i]
			if dearest = max(dearest, c); l.waits[k] > margin {
				far += c
			}
		}
	}
	if cost-far-dearest < enough*l.terms.Budget {
		slices.SortFunc(l.order, func(j, k int) int { return cmp.Compare(l.key[j], l.key[k]) })
	}
	needed := false // all that count, from here on
	for _, k := range l.order {
		i := int(s.Awake[k])
		c := l.leave(&l.awakeIn, i, o)
		needed = needed || cost-c < enough*l.terms.Budget
		if c > 0 && needed || l.waits[k] <= margin {
			l.enter(&l.awakeIn, i, o)
			continue
		}
		cost -= c
		sleep(i, l.waits[k])
	}
	s.present()
	s.Next = s.ring.Next()
}

// wait returns for how many epochs the k-th of those that are awake may sleep; where that is
// within the margin, it stays awake, and the number says no more.
func (l *Learner) wait(k int, o *env.Online, longest, margin, most float64) float64 {
	i, s := int(l.Awake[k]), &l.thought[k]
	age := o.Age(i)
	wait := min(longest-float64(age), most)
	if wait <= margin {
		return wait
	}
	age += int(l.ahead(i))
	// Its threshold is looked for where it lets the source sleep at all.
	c := index.NewCurve(*s)
	near, far := age+int(2*margin), age+2*int(math.Ceil(wait))
	wait = min(wait, float64(c.Age(l.Low*c.Cost, near, far)-age)/2)
	if wait > margin && s.Law == env.LawDelay { // far from where items are lost
		if n := l.est.Shows(i); n > 0 {
			wait = min(wait, n/4/s.Rate-float64(age))
		}
	}
	return wait
}

// margin returns how many epochs before its threshold a source does not sleep.
func (l *Learner) margin() int {
	if len(l.terms.Costs) < many {
		return margin
	}
	return int(max(1, min(margin, marginRound*l.round)))
}

func (s schedule) clone() schedule {
	s.Wake, s.Line, s.Awake, s.ring = slices.Clone(s.Wake), slices.Clone(s.Line), slices.Clone(s.Awake), nil
	return s
}

// restore takes up where sources were.
func (l *Learner) restore(s *schedule) error {
	n := len(l.terms.Costs)
	if s.Wake != nil && len(s.Wake) != n {
		return fmt.Errorf("wake has %d entries; allowed are %d", len(s.Wake), n)
	}
	listed := make([]bool, n)
	for k, i := range slices.Concat(s.Awake, s.Line) {
		if i < 0 || int(i) >= n || k < len(s.Awake) && listed[i] {
			return fmt.Errorf("source %d of %d is awake twice or is none", i, n)
		}
		listed[i] = true
	}
	l.schedule = s.clone()
	if s.Wake != nil {
		l.fillRing()
	}
	return nil
}
