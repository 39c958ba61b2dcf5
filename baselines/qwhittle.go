package baselines

import (
	"cmp"
	"fmt"
	"math"

	"ephemera/env"
	"ephemera/env/stream"
)

// QWhittle are the settings of [NewQWhittle].
type QWhittle struct {
	// Ages is the number of ages that are distinguished; older counts as that old.
	// 0 stands for four rounds of round robin, from 8 to 64.
	Ages int     `toml:"ages"`
	Fast float64 `toml:"fast"` // C of the step sizes
	Slow float64 `toml:"slow"` // C′
	// Explore is ε: epoch n crawls at random with probability ε/⌈n/500⌉^½.
	Explore float64 `toml:"explore"`
}

// DefaultQWhittle returns the usual settings.
func DefaultQWhittle() QWhittle { return QWhittle{Fast: .5, Slow: .2, Explore: .05} }

// Validate reports the first setting that is out of its range.
func (s *QWhittle) Validate() error {
	return cmp.Or(
		within(0, 1, []string{"fast", "explore"}, s.Fast, s.Explore),
		within(0, math.Inf(1), []string{"slow"}, s.Slow),
		checkAges(s.Ages))
}

// qWhittle is Whittle-index Q-learning (Avrachenkov and Borkar, Automatica
// 2022) on the ages of the sources. For every source and every reference age k
// it learns the relative Q-values of one source that is paid λ(k) per epoch of
// rest, and moves λ(k) until rest and crawl are worth the same at k; this λ(k)
// is the Whittle index of age k.
type qWhittle struct {
	s      QWhittle
	sel    *Selector
	costs  []float64
	rnd    *stream.Rand
	epoch  int // epochs learned from
	key    []float64
	source []qSource
	took   []int // scratch: number of each source's crawl, or −1
}

// qSource is what has been learned of one source. Ages s and reference ages k
// count from 0 here; action 1 is a crawl.
type qSource struct {
	q      [][2][]float64 // Qᵏ(s,a) at [s][a][k]
	count  [][2]int       // visits to (s,a)
	seen   float64        // pairs (s,a) that were visited
	sum    []float64      // of Qᵏ over all pairs
	lambda []float64      // λ(k)
	most   float64        // greatest interest of a crawl
}

// NewQWhittle returns Whittle-index Q-learning for crawlers that know the terms
// and nothing else.
func NewQWhittle(t env.Terms, s QWhittle, rnd *stream.Rand) (env.Learner[env.Online], error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	n := len(t.Costs)
	s.Ages = cmp.Or(s.Ages, int(clamp(math.Ceil(4*t.Round()), 8, 64)))
	l := &qWhittle{
		s: s, sel: NewSelector(t.Costs, t.Budget), costs: t.Costs, rnd: rnd,
		key: make([]float64, n), source: make([]qSource, n), took: make([]int, n),
	}
	numbers := func() []float64 { return make([]float64, s.Ages) }
	for i := range l.source {
		x := qSource{q: make([][2][]float64, s.Ages), count: make([][2]int, s.Ages), sum: numbers(), lambda: numbers()}
		for age := range x.q {
			x.q[age] = [2][]float64{numbers(), numbers()}
		}
		l.source[i] = x
	}
	return l, nil
}

// Select implements env.Policy.
func (l *qWhittle) Select(dst []int, o *env.Online) []int {
	explore := l.rnd.Float64() < l.s.Explore/math.Sqrt(math.Ceil(float64(o.Epoch+1)/500))
	for i := range l.key {
		if explore {
			l.key[i] = l.rnd.Float64()
		} else {
			l.key[i] = l.ranked(i, o.Age(i))
		}
	}
	return l.sel.Within(o).Top(dst, l.key)
}

// ranked returns the index at an age or, if a crawl at that age has not been
// tried yet, at the nearest younger age at which it has: the index does not
// decrease with the age. Where there is none the source comes first.
func (l *qWhittle) ranked(i, age int) float64 {
	x := &l.source[i]
	for s := min(age, l.s.Ages) - 1; s >= 0; s-- {
		if x.count[s][1] > 0 {
			return x.lambda[s]
		}
	}
	return math.Inf(1)
}

// HarvestsOnly implements env.HarvestsOnly.
func (l *qWhittle) HarvestsOnly() {}

// Update implements env.Learner. The age of every source is known, so every
// source has a transition at every epoch, crawled or not.
func (l *qWhittle) Update(crawls []env.Crawled, next *env.Online) {
	l.epoch++
	// b(n) = C′/(1 + ⌈n log n/500⌉)
	n := float64(l.epoch)
	slow := l.s.Slow / (1 + math.Ceil(n*math.Log(n)/500))
	last := l.s.Ages - 1
	for i, k := range crawlOfEach(l.took, crawls) {
		x := &l.source[i]
		to := min(next.Age(i)-1, last)
		if k >= 0 {
			x.most = max(x.most, crawls[k].Interest)
			x.learn(min(crawls[k].Age-1, last), 1, to, l.s.Fast, crawls[k].Interest, 0)
		} else {
			x.learn(min(next.Age(i)-2, last), 0, to, l.s.Fast, 0, l.costs[i])
		}
		x.price(l.costs[i], slow)
	}
}

// learn is the fast time scale: relative Q-learning (RVI) for every reference
// age k at once,
//
//	Qᵏ(s,a) ← Qᵏ(s,a) + a(ν)[r + (1−a)λ(k)C + maxᵥ Qᵏ(s′,v) − f(Qᵏ) − Qᵏ(s,a)]
//
// with ν the number of visits to (s,a), the step a(ν) = C/⌈ν/500⌉, and f the
// mean of the entries that have been visited: the others stay 0 and would let
// the rest grow without bound.
//
// paid is (1−a)C.
func (x *qSource) learn(s, a, to int, fast, reward, paid float64) {
	visits := &x.count[s][a]
	if *visits++; *visits == 1 {
		x.seen++
	}
	step := fast / math.Ceil(float64(*visits)/500)
	q, rest, crawl := x.q[s][a], x.q[to][0], x.q[to][1]
	share := 1 / x.seen
	for k := range q {
		d := step * (reward + paid*x.lambda[k] + max(rest[k], crawl[k]) - share*x.sum[k] - q[k])
		q[k] += d
		x.sum[k] += d
	}
}

// price is the slow time scale:
//
//	λ(k) ← Π[λ(k) + b(n)[Qᵏ(k,1) − Qᵏ(k,0)]/C]
//
// where both actions have been tried. Π is the projection on what an index can
// be: at least 0, at most what the source ever yielded per budget unit.
func (x *qSource) price(cost, step float64) {
	for k, tried := range x.count {
		if tried[0] > 0 && tried[1] > 0 {
			x.lambda[k] = clamp(x.lambda[k]+step*(x.q[k][1][k]-x.q[k][0][k])/cost, 0, x.most/cost)
		}
	}
}

// crawlOfEach writes the number of each source's crawl into took, −1 where there is
// none, and returns it.
func crawlOfEach(took []int, crawls []env.Crawled) []int {
	for i := range took {
		took[i] = -1
	}
	for k, c := range crawls {
		took[c.Source] = k
	}
	return took
}

// The settings of the policies of this package have toml tags, which name the
// keys of commands. Constructors return an error for a setting that is out of its range.

// within reports the first figure that is not above lo and at most hi, or not
// finite.
func within(lo, hi float64, names []string, values ...float64) error {
	most := fmt.Sprintf(" and at most %v", hi)
	if math.IsInf(hi, 1) {
		most = ", and finite"
	}
	for i, v := range values {
		if !(v > lo && v <= hi) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is %v; allowed is above %v%s", names[i], v, lo, most)
		}
	}
	return nil
}

// checkAges refuses a number of ages that is not allowed; 0 is the
// policy's own.
func checkAges(n int) error {
	if n == 0 || n >= 2 && n <= 1<<20 {
		return nil
	}
	return fmt.Errorf("ages is %d; allowed is 2 to %d, or 0 for a number by the length of a round", n, 1<<20)
}
