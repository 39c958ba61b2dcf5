package lspe

import (
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/critic"
	"ephemera/learner/internal/check"
)

// Observed is the actor-critic for TCNS, section VIII: the true state X is seen
// before the crawl, and the parameters are known. Given the price, each source
// is a problem of optimal stopping: crawl now, or wait for what the noise
// brings. The critic evaluates the waiting by LSPE(0) with polynomial features of
// X, as Yu and Bertsekas, "A least squares Q-learning algorithm for optimal
// stopping problems", LIDS report 2731, 2007, do. So it sees the noise, which the
// formula of the mean dynamics does not.
type Observed struct {
	common
	src  []stopping
	wait *critic.Bank // of G, by how much the state grows while waiting, and of D, how long that lasts

	x, age  []float64 // X and s
	phi, d  []float64
	crawled []float64 // harvest; −1 for no crawl
}

// stopping is what is known and learned of one source besides its critic.
type stopping struct {
	factor, decay, window float64 // α, c, M
	all, gain             float64 // λξ̄/c, and x(1), what comes in during an epoch
	top                   float64 // x at the greatest age of a threshold, what features are measured in

	lnT   float64 // ln T, the threshold
	eta   float64 // η, mean harvest, interest per epoch
	work  float64 // κ̄, mean cost, budget units per epoch
	fixed float64 // Θ₀, the best fixed age at the present price
}

const (
	grows = iota // G
	lasts        // D
)

var _ env.Learner[env.Observed] = (*Observed)(nil)

// leastCeiling is the least ceiling, in units of the greatest, that is told
// from none.
const leastCeiling = 1e-9

// NewObserved returns the learner for an instance; nil settings are
// [DefaultObservedSettings]. It explores with draws from r.
func NewObserved(in env.Instance, set *Settings, r *stream.Rand) (*Observed, error) {
	s := DefaultObservedSettings()
	if set != nil {
		s = *set
	}
	if err := check.First(in.Validate(), s.ValidateObserved()); err != nil {
		return nil, err
	}
	n := len(in.Sources)
	l := &Observed{common: newCommon(in, s, r), src: make([]stopping, n), x: make([]float64, n), age: make([]float64, n), crawled: make([]float64, n)}
	first := make([]float64, 1+max(2, l.set.degree()))
	if d := l.set.degree(); d > 0 {
		first = first[:1+d]
	}
	for j := range first {
		first[j] = 1e-2 // what the mean square of each feature is taken for at first
	}
	l.wait = critic.NewBank(n, bothRewards, first, l.set.Gamma)
	l.phi, l.d = make([]float64, len(first)), make([]float64, len(first))
	start := math.Ceil(l.period)
	for i, s := range in.Sources {
		// A source that never publishes needs a scale as well.
		if s.Ceiling() < leastCeiling*l.unit {
			s.Interest, s.Rate = leastCeiling*l.unit*s.Decay, 1
			s.Window = math.Inf(1)
		}
		v := stopping{factor: s.Factor(), decay: s.Decay, window: s.Window, all: s.Rate * s.Interest / s.Decay, fixed: 1}
		x := v.mean(start)
		v.gain, v.top = v.mean(1), v.mean(l.most)
		v.lnT, v.eta, v.work = math.Log(x), x/start, s.Cost/start
		l.src[i] = v
		l.oneEpoch(i)
	}
	return l, nil
}

// ValidateObserved reports the first setting that is out of its range, or that
// does nothing where the true state is seen.
func (s *Settings) ValidateObserved() error {
	switch {
	case s.Critic != "lspe":
		return fmt.Errorf("critic is %q; where the true state is seen, allowed is lspe", s.Critic)
	case s.Learn != DefaultSettings().Learn:
		return fmt.Errorf("learn is %q; where the true state is seen, transitions are taken as they come and the setting does nothing", s.Learn)
	}
	return s.Validate()
}

// mean returns x(s), what the items are worth on average that are not older than
// the window.
func (s *stopping) mean(age float64) float64 {
	return -s.all * math.Expm1(-s.decay*min(age, s.window))
}

// drift returns by how much the state is expected to change in an epoch without
// a crawl,
//
//	x(s+1) + α(X − x(s)) − X
//
// which without a window is u − (1 − α)X.
func (s *stopping) drift(x, age float64) float64 {
	if math.IsInf(s.window, 1) {
		return s.gain - (1-s.factor)*x
	}
	return s.mean(age+1) + s.factor*(x-s.mean(age)) - x
}

// oneEpoch sets G and D of source i to what waiting for one epoch brings, G =
// u − (1 − α)X, D = 1.
func (l *Observed) oneEpoch(i int) {
	s, g, d := &l.src[i], l.wait.Weights(i, grows), l.wait.Weights(i, lasts)
	clear(g)
	clear(d)
	g[0], g[1], d[0] = s.gain, (s.factor-1)*s.top, 1
}

// features writes 1, z, z², … of X with z = X/x(Θ), cut at 4, where Θ is the
// greatest age of a threshold: a slow source never comes near u*.
func (s *stopping) features(dst []float64, x float64) {
	z, v := min(x/s.top, 4), 1.0
	for j := range dst {
		dst[j] = v
		v *= z
	}
}

// waiting returns G(X) and D(X) as the critic has them, within what is possible:
// D is 1 at least. In D epochs Du comes in, of X at least X(1 − αᴰ) is lost, and
// in no epoch more than (1 − α) max(X, T).
func (l *Observed) waiting(i int, x float64) (g, d float64) {
	s := &l.src[i]
	s.features(l.phi, x)
	wg, wd := l.wait.Weights(i, grows), l.wait.Weights(i, lasts)
	for j, f := range l.phi {
		g += wg[j] * f
		d += wd[j] * f
	}
	d = min(max(1, d), 2*maxCycles*l.period)
	least := (s.factor - 1) * x
	if math.IsInf(s.window, 1) {
		least = d * s.drift(max(x, math.Exp(s.lnT)), 1)
	}
	return min(max(g, least), s.gain*d+x*math.Expm1(-s.decay*d)), d
}

// excess returns the distance of the learned index from the price, in interest
// per budget unit:
//
//	L(X) = (η − λκ̄) D(X) − G(X),  index − λ = L/(κ̄ D)
//
// κ̄D, the mean work that the crawl forgoes, is −∂L/∂λ. The index is X/C at most:
// at that price a crawl earns nothing. Of states that a source has never been in
// the critic knows nothing, and the polynomial may say anything.
func (l *Observed) excess(i int, x float64) float64 {
	g, d := l.waiting(i, x)
	cost := l.costs[i]
	profit, work := l.profit(i)
	if profit <= 0 {
		// Waiting for good is the alternative, and costs nothing.
		return (x - l.price*cost - max(0, x+g-l.price*cost)) / cost
	}
	e := (profit*d - g) / min(max(work*d, cost/(maxCycles*l.period)), cost)
	return min(e, x/cost-l.price)
}

// at looks at sources in these states.
func (l *Observed) at(x []float64) look {
	return func(i int) (state, margin, excess float64) {
		return x[i], l.src[i].margin(x[i]), l.excess(i, x[i])
	}
}

// profit returns P = η − λκ̄ and κ̄. Crawling at a fixed age earns x(Θ) − λC in Θ
// epochs whatever the noise, and the best policy on the true state earns no
// less. So P is at least
//
//	P₀ = max over Θ of (x(Θ) − λC)/Θ
//
// Without it a threshold that is out of reach stays there: P falls to 0 while
// the source waits, and waiting seems to cost nothing.
func (l *Observed) profit(i int) (profit, work float64) {
	s := &l.src[i]
	profit = min(s.eta, s.gain) - l.price*s.work
	if p := l.atAge(i, s.fixed); p > profit {
		return p, l.costs[i] / s.fixed
	}
	return profit, s.work
}

// atAge returns (x(Θ) − λC)/Θ.
func (l *Observed) atAge(i int, age float64) float64 {
	return (l.src[i].mean(age) - l.price*l.costs[i]) / age
}

// follow moves Θ₀ of source i towards the best fixed age. The profit has one
// maximum in Θ.
func (l *Observed) follow(i int) {
	age := l.src[i].fixed
	p := l.atAge(i, age)
	switch {
	case age > 1 && l.atAge(i, age-1) > p:
		l.src[i].fixed--
	case age < l.most && l.atAge(i, age+1) > p:
		l.src[i].fixed++
	}
}

// margin returns ln X − ln T.
func (s *stopping) margin(x float64) float64 { return math.Log(max(x, 1e-12*s.top)) - s.lnT }

// cycle returns how many epochs lie between two crawls of source i.
func (l *Observed) cycle(i int) float64 {
	return min(l.costs[i]/max(l.src[i].work, 1e-12), maxCycles*l.period)
}

// Select implements env.Policy.
func (l *Observed) Select(dst []int, o *env.Observed) []int {
	l.check(o)
	copy(l.x, o.State)
	for i := range l.age {
		l.age[i] = float64(o.Age(i))
	}
	l.begin()
	unit := l.measure()
	for i, x := range l.x {
		if !l.can(i) {
			l.never(i)
			continue
		}
		l.follow(i)
		l.plan(i, l.src[i].margin(x), l.excess(i, x)/unit, l.cycle(i))
	}
	dst = l.choose(dst, l.at(l.x))
	copy(l.key, l.x)
	return dst
}

func (l *Observed) check(o *env.Observed) {
	if len(o.State) != len(l.src) {
		panic("lspe: observed: the view does not show the state of every source")
	}
}

// Update implements env.Learner.
func (l *Observed) Update(crawls []env.Crawled, next *env.Observed) {
	for i := range l.crawled {
		l.crawled[i] = -1
	}
	for _, c := range crawls {
		l.crawled[c.Source] = c.Interest
	}
	for i := range l.src {
		s := &l.src[i]
		b := l.clocks.critic(l.cycle(i))
		var harvest, cost float64
		// What came in is seen whether or not the source was crawled, so the
		// state after waiting is known in both cases.
		wait := next.State[i]
		if l.crawled[i] >= 0 {
			harvest, cost = l.crawled[i], l.costs[i]
			wait += l.x[i] + s.drift(l.x[i], l.age[i]) - s.gain
		}
		l.evaluate(i, wait, b)
		s.eta += b * (harvest - s.eta)
		s.work += b * (cost - s.work)
		s.lnT = min(max(s.lnT-l.push[i], math.Log(.05*s.gain)), math.Log(8*s.top))
	}
	l.settle(crawls)
}

// evaluate is a step of LSPE(0) for stopping at X ≥ T, with φ = φ(X), φ′ =
// φ(X′) where X′ < T and 0 where the waiting ends:
//
//	B ← B + b(φφᵀ − B),   A ← A + b(φ(φ′ − φ)ᵀ − A)
//	b̄ ← b̄ + b(φ·drift − b̄) for G,   b̄ ← b̄ + b(φ − b̄) for D
//	r ← r + γB⁻¹(A r + b̄)
//
// The drift stands for X′ − X: what comes in beyond its mean is a martingale and
// adds nothing to G but noise. Where a source forgets slowly, G is P D but for a
// small part, and that part says when to crawl.
//
// A crawl below T breaks the wait off. With φ′ in A such transitions could give
// it a positive direction; G(X′) and D(X′) go into b̄ instead, which has the
// same fixed point. What diverges all the same begins again.
func (l *Observed) evaluate(i int, wait, b float64) {
	s, k := &l.src[i], l.wait
	growth, last := s.drift(l.x[i], l.age[i]), 1.0
	clear(l.d)
	switch {
	case wait >= math.Exp(s.lnT):
	case l.crawled[i] >= 0:
		g, d := l.waiting(i, wait)
		growth, last = growth+g, last+d
	default:
		s.features(l.d, wait)
	}
	s.features(l.phi, l.x[i])
	for j, f := range l.phi {
		l.d[j] -= f
	}
	k.Begin(i, b)
	k.Square(1, l.phi)
	k.Change(1, l.phi, l.d)
	k.Reward(grows, growth, l.phi)
	k.Reward(lasts, last, l.phi)
	k.Solve(1)
	g, d := k.Weights(i, grows), k.Weights(i, lasts)
	for j := range g {
		if !(math.Abs(d[j]) < diverged && math.Abs(g[j]) < diverged*s.top) {
			l.oneEpoch(i)
			break
		}
	}
}

// diverged is a weight of D that no critic has, and, in units of the features,
// one of G.
const diverged = 1e9

// Threshold returns the learned threshold of source i as a state, in interest:
// the inverse index at the learned price; +Inf where a crawl costs more than
// the budget.
func (l *Observed) Threshold(i int) float64 {
	if !l.can(i) {
		return math.Inf(1)
	}
	return math.Exp(l.src[i].lnT)
}

// Fallbacks counts the times that an inverse was not trusted.
func (l *Observed) Fallbacks() int { return l.wait.Fallbacks() }

// ObservedPolicy is what an [Observed] learner has learned, as a policy.
type ObservedPolicy struct{ l Observed }

var _ env.Policy[env.Observed] = (*ObservedPolicy)(nil)

// Frozen returns the policy that would be deployed now.
func (l *Observed) Frozen() *ObservedPolicy {
	f := &ObservedPolicy{*l}
	f.l.src, f.l.wait = append([]stopping(nil), l.src...), l.wait.Clone()
	f.l.key, f.l.phi = make([]float64, len(l.key)), make([]float64, len(l.phi))
	f.l.sel = baselines.NewSelector(l.costs, l.budget)
	f.l.rand, f.l.x, f.l.age, f.l.push = nil, nil, nil, nil
	return f
}

// Select implements env.Policy.
func (f *ObservedPolicy) Select(dst []int, o *env.Observed) []int {
	l := &f.l
	l.check(o)
	unit := l.measure()
	for i, x := range o.State {
		l.key[i] = math.Inf(-1)
		if l.can(i) {
			l.key[i] = l.mix(l.src[i].margin(x), l.excess(i, x)/unit)
		}
	}
	return l.pick(dst, l.at(o.State))
}

// ObservedState is the whole state of an [Observed] learner as data, as [State]
// is of a [Learner].
type ObservedState struct {
	Epochs    int              `json:"epochs"`
	Price     float64          `json:"price"`     // λ, interest per budget unit
	Scale     float64          `json:"scale"`     // h, interest per budget unit
	Threshold []float64        `json:"threshold"` // ln T, T in interest
	Harvest   []float64        `json:"harvest"`   // η, interest per epoch
	Work      []float64        `json:"work"`      // κ̄, budget units per epoch
	Fixed     []float64        `json:"fixed"`     // Θ₀, epochs
	Critic    critic.BankState `json:"waiting"`   // rewards: G, D
	Rand      []byte           `json:"rand"`      // of the stream of exploration
}

// State returns a copy of the learner's whole state.
func (l *Observed) State() ObservedState {
	s := ObservedState{Epochs: l.n, Price: l.price, Scale: l.scale, Critic: l.wait.State(), Rand: l.rand.State()}
	for i := range l.src {
		v := &l.src[i]
		s.Threshold, s.Harvest = append(s.Threshold, v.lnT), append(s.Harvest, v.eta)
		s.Work, s.Fixed = append(s.Work, v.work), append(s.Fixed, v.fixed)
	}
	return s
}

// maxLog is beyond the logarithm of any state.
const maxLog = 750.

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Observed) SetState(s ObservedState) error {
	n := len(l.src)
	if err := check.First(
		l.restore(s.Epochs, s.Price, s.Scale, s.Rand),
		check.Finite("threshold", s.Threshold, n), check.Finite("harvest", s.Harvest, n),
		check.Finite("work", s.Work, n), check.Finite("fixed", s.Fixed, n),
	); err != nil {
		return err
	}
	for i := range n {
		if age := s.Fixed[i]; !(age >= 1 && age <= l.most) {
			return fmt.Errorf("fixed has %v at place %d; allowed are ages from 1 to %v", age, i, l.most)
		}
		if math.Abs(s.Threshold[i]) > maxLog || s.Work[i] < 0 {
			return fmt.Errorf("source %d has ln T %v and work %v; allowed are up to %v either way, and 0 or more", i+1, s.Threshold[i], s.Work[i], maxLog)
		}
	}
	if err := l.wait.SetState(s.Critic); err != nil {
		return fmt.Errorf("critic: %w", err)
	}
	for i := range l.src {
		v := &l.src[i]
		v.lnT, v.eta, v.work, v.fixed = s.Threshold[i], s.Harvest[i], s.Work[i], s.Fixed[i]
	}
	return nil
}
