package baselines

import (
	"cmp"
	"math"

	"ephemera/env"
	"ephemera/env/stream"
)

// QWhittle are the settings of [NewQWhittle].
type QWhittle struct {
	// Ages is the number of ages that are told apart; older counts as that old.
	// 0 stands for four rounds of round robin, from 8 to 64.
	Ages int     `toml:"ages"`
	Fast float64 `toml:"fast"` // C of the step sizes
	Slow float64 `toml:"slow"` // C′
	// Explore is ε: epoch n crawls at random with probability ε/⌈n/500⌉^½.
	Explore float64 `toml:"explore"`
}

// DefaultQWhittle returns the settings that nil stands for.
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
	q      []float64 // [source][age s][action][reference age k]
	sum    []float64 // [source][k], sum of Qᵏ over s and actions
	seen   []int     // [source], pairs (s,a) visited
	most   []float64 // [source], greatest interest of a crawl
	count  []int     // visits: [source][s][action]
	lambda []float64 // [source][k]
	took   []int     // scratch: number of each source's crawl, or −1
}

// NewQWhittle returns Whittle-index Q-learning for crawlers that know the terms
// and nothing else.
func NewQWhittle(t env.Terms, set *QWhittle, rnd *stream.Rand) (env.Learner[env.Online], error) {
	s, err := given(set, DefaultQWhittle())
	if err != nil {
		return nil, err
	}
	n := len(t.Costs)
	s.Ages = cmp.Or(s.Ages, int(clamp(math.Ceil(4*t.Round()), 8, 64)))
	return &qWhittle{
		s: s, sel: NewSelector(t.Costs, t.Budget), costs: t.Costs, rnd: rnd,
		key:    make([]float64, n),
		q:      make([]float64, n*s.Ages*2*s.Ages),
		sum:    make([]float64, n*s.Ages),
		seen:   make([]int, n),
		most:   make([]float64, n),
		count:  make([]int, n*s.Ages*2),
		lambda: make([]float64, n*s.Ages),
		took:   make([]int, n),
	}, nil
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
	return l.sel.Top(dst, l.key)
}

// ranked returns the index at an age or, if a crawl at that age has not been
// tried yet, at the nearest younger age at which it has: the index does not
// decrease with the age. Where there is none the source comes first.
func (l *qWhittle) ranked(i, age int) float64 {
	n := l.s.Ages
	for s := min(age, n) - 1; s >= 0; s-- {
		if l.count[(i*n+s)*2+1] > 0 {
			return l.lambda[i*n+s]
		}
	}
	return math.Inf(1)
}

// Update implements env.Learner. The age of every source is known, so every
// source has a transition at every epoch, crawled or not.
func (l *qWhittle) Update(crawls []env.Crawled, next *env.Online) {
	l.epoch++
	// b(n) = C′/(1 + ⌈n log n/500⌉)
	n := float64(l.epoch)
	slow := l.s.Slow / (1 + math.Ceil(n*math.Log(n)/500))
	for i, k := range number(l.took, crawls) {
		to := min(next.Age(i), l.s.Ages)
		if k >= 0 {
			l.learn(i, min(crawls[k].Age, l.s.Ages), 1, crawls[k].Interest, to)
		} else {
			l.learn(i, min(next.Age(i)-1, l.s.Ages), 0, 0, to)
		}
		l.price(i, slow)
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
func (l *qWhittle) learn(i, s, a int, reward float64, to int) {
	n := l.s.Ages
	visits := &l.count[(i*n+s-1)*2+a]
	if *visits++; *visits == 1 {
		l.seen[i]++
	}
	l.most[i] = max(l.most[i], reward)
	step := l.s.Fast / math.Ceil(float64(*visits)/500)
	q := l.row(i, s, a)
	rest, crawl := l.row(i, to, 0), l.row(i, to, 1)
	sum, lambda := l.sum[i*n:(i+1)*n], l.lambda[i*n:(i+1)*n]
	share := 1 / float64(l.seen[i])
	var paid float64
	if a == 0 {
		paid = l.costs[i]
	}
	for k := range q {
		d := step * (reward + paid*lambda[k] + max(rest[k], crawl[k]) - share*sum[k] - q[k])
		q[k] += d
		sum[k] += d
	}
}

// price is the slow time scale:
//
//	λ(k) ← Π[λ(k) + b(n)[Qᵏ(k,1) − Qᵏ(k,0)]/C]
//
// where both actions have been tried. Π is the projection on what an index can
// be: at least 0, at most what the source ever yielded per budget unit.
func (l *qWhittle) price(i int, step float64) {
	n := l.s.Ages
	lambda := l.lambda[i*n : (i+1)*n]
	top := l.most[i] / l.costs[i]
	for k := range lambda {
		if tried := l.count[(i*n+k)*2 : (i*n+k)*2+2]; tried[0] > 0 && tried[1] > 0 {
			lambda[k] = clamp(lambda[k]+step*(l.row(i, k+1, 1)[k]-l.row(i, k+1, 0)[k])/l.costs[i], 0, top)
		}
	}
}

// number writes the number of each source's crawl into took, −1 where there is
// none, and returns it.
func number(took []int, crawls []env.Crawled) []int {
	for i := range took {
		took[i] = -1
	}
	for k, c := range crawls {
		took[c.Source] = k
	}
	return took
}

// row returns Q(s,a) of source i for all reference ages.
func (l *qWhittle) row(i, s, a int) []float64 {
	n := l.s.Ages
	from := ((i*n+s-1)*2 + a) * n
	return l.q[from : from+n]
}
