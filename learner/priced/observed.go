package priced

import (
	"fmt"
	"math"
	"slices"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/internal/check"
)

// Observed is the priced LSPE(0) actor-critic for TCNS, section VIII: the
// true state X is seen before the crawl, and the parameters are known. Given
// the price, each source is a problem of optimal stopping: crawl now, or wait
// for what the noise brings. The critic evaluates the waiting by LSPE(0) with
// polynomial features of X, as Yu and Bertsekas, "A least squares Q-learning
// algorithm for optimal stopping problems", LIDS report 2731, 2007, do. So it
// sees the noise, which the formula of the mean dynamics does not.
type Observed struct {
	set    Settings
	costs  []float64 // C
	budget float64   // M
	rand   *stream.Rand
	sel    *baselines.Selector
	period float64
	clocks clocks

	factor, decay, gain, ceil []float64 // α, c, u, u*
	top                       []float64 // x at the greatest age of a threshold, what features are measured in
	fixed                     []float64 // Θ₀, the best fixed age at the present price

	n     int
	price float64 // λ
	scale float64 // h
	src   []stopping
	wait  *small // critics of R and D

	x      []float64 // X
	key    []float64
	excess []float64
	wrong  []float64
	demand float64
	took   []float64 // harvest; −1 for no crawl

	fallbacks int
}

const (
	stopFeatures = 3
)

// stopping is what is learned of one source besides its critic.
type stopping struct {
	LnT  float64 // ln T, threshold as a state
	Eta  float64 // mean harvest, interest per epoch
	Work float64 // mean cost, budget units per epoch
}

var _ env.Learner[env.Observed] = (*Observed)(nil)

// NewObserved returns the learner for an instance; nil settings are
// [DefaultSettings]. It explores with draws from r. It panics if the
// instance or a setting is out of its range.
func NewObserved(in env.Instance, set *Settings, r *stream.Rand) *Observed {
	if err := in.Validate(); err != nil {
		panic("learner: observed: " + err.Error())
	}
	if set != nil {
		if err := set.ValidateObserved(); err != nil {
			panic("learner: observed: " + err.Error())
		}
	}
	p := newCore(in.Terms(), set, r) // checks the stream
	n := len(in.Sources)
	l := &Observed{set: p.set, costs: p.costs, budget: p.budget, rand: r, sel: p.sel, period: p.period, clocks: p.clocks, src: make([]stopping, n)}
	for _, v := range []*[]float64{&l.factor, &l.decay, &l.gain, &l.ceil, &l.top, &l.fixed, &l.x, &l.key, &l.excess, &l.wrong, &l.took} {
		*v = make([]float64, n)
	}
	var most float64
	for _, s := range in.Sources {
		if env.Fits(s.Cost, in.Budget) {
			most = max(most, s.Ceiling())
		}
	}
	if most == 0 {
		most = 1
	}
	l.wait = newSmall(n, []float64{firstSquare, firstSquare, firstSquare}, p.set.Gamma)
	for i, s := range in.Sources {
		// A source that never publishes needs a scale as well.
		if s.Ceiling() < leastCeiling*most {
			s.Interest, s.Rate = leastCeiling*most*s.Decay, 1
			s.Window = math.Inf(1)
		}
		l.factor[i], l.decay[i], l.gain[i], l.ceil[i] = s.Factor(), s.Decay, s.Gain(), s.Ceiling()
		l.top[i], l.fixed[i] = s.MeanState(int(math.Ceil(maxCycles*l.period))), 1
		st := &l.src[i]
		x := s.MeanState(int(math.Ceil(l.period)))
		st.LnT = math.Log(x)
		st.Eta, st.Work = x/math.Ceil(l.period), s.Cost/math.Ceil(l.period)
		l.oneEpoch(i)
	}
	return l
}

// ValidateObserved reports the first setting that is out of its range, or that
// does nothing where the true state is seen: its critic is another, and what
// its actor does with the logit has no other form.
func (s *Settings) ValidateObserved() error {
	switch {
	case s.Critic != "lspe":
		return fmt.Errorf("critic is %q; where the true state is seen, allowed is lspe", s.Critic)
	case s.Sampled:
		return fmt.Errorf("sampled is true; where the true state is seen, allowed is false")
	case s.Saturating:
		return fmt.Errorf("saturating is true; where the true state is seen, allowed is false")
	}
	return s.Validate()
}

// leastCeiling is the least ceiling, in units of the greatest, that is told
// from none.
const leastCeiling = 1e-9

// firstSquare is what the mean square of each feature is taken for at first.
const firstSquare = 1e-2

// oneEpoch sets R and D of source i to what waiting for one epoch brings, R =
// αX + u, D = 1.
func (l *Observed) oneEpoch(i int) {
	r, d := l.wait.weights(i)
	copy(r, []float64{l.gain[i], l.factor[i] * l.top[i], 0})
	copy(d, []float64{1, 0, 0})
}

// phi returns the features 1, z, z² of X with z = X/x(Θ), cut at 4, where Θ is
// the greatest age that the thresholds of the mean dynamics may take: a slow
// source never comes near u*.
func (l *Observed) phi(i int, x float64) [stopFeatures]float64 {
	z := min(x/l.top[i], 4)
	return [stopFeatures]float64{1, z, z * z}
}

func dot(a []float64, b *[stopFeatures]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

// waiting returns R(X) and D(X) as the critic has them, within what is possible:
// D is 1 at least, and R is not far above the mean state after D epochs, u* +
// (X − u*)αᴰ; four gains are left to the noise.
func (l *Observed) waiting(i int, x float64) (r, d float64) {
	f := l.phi(i, x)
	wr, wd := l.wait.weights(i)
	d = min(max(1, dot(wd, &f)), 2*maxCycles*l.period)
	most := l.ceil[i] + (x-l.ceil[i])*math.Exp(-l.decay[i]*d) + 4*l.gain[i]
	return min(max(dot(wr, &f), l.factor[i]*x), most), d
}

// index returns the distance of the learned index from the price, in interest
// per budget unit:
//
//	L(X) = X − R(X) + (η − λκ̄) D(X),  index − λ = L/(κ̄ D)
//
// κ̄D, the mean work that the crawl forgoes, is −∂L/∂λ.
func (l *Observed) index(i int, x float64) float64 {
	r, d := l.waiting(i, x)
	profit, work := l.profit(i)
	if profit <= 0 {
		// Waiting for good is the alternative, and costs nothing.
		return (x - l.price*l.costs[i] - max(0, r-l.price*l.costs[i])) / l.costs[i]
	}
	return (x - r + profit*d) / min(max(work*d, l.costs[i]/(maxCycles*l.period)), l.costs[i])
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
	s, cost, age := &l.src[i], l.costs[i], l.fixed[i]
	profit = s.Eta - l.price*s.Work
	if p := l.atAge(i, age); p > profit {
		return p, cost / age
	}
	return profit, s.Work
}

// atAge returns (x(Θ) − λC)/Θ.
func (l *Observed) atAge(i int, age float64) float64 {
	return (-l.ceil[i]*math.Expm1(-age*l.decay[i]) - l.price*l.costs[i]) / age
}

// follow moves Θ₀ of source i towards the best fixed age. The profit has one
// maximum in Θ.
func (l *Observed) follow(i int) {
	age := l.fixed[i]
	p := l.atAge(i, age)
	switch {
	case age > 1 && l.atAge(i, age-1) > p:
		l.fixed[i]--
	case age < maxCycles*l.period && l.atAge(i, age+1) > p:
		l.fixed[i]++
	}
}

func (l *Observed) unit() float64 { return max(l.price, leastShare*l.scale) }

func (l *Observed) plan() {
	s := &l.set
	l.clocks.set(l.n)
	kappa, unit := l.clocks.kappa, l.unit()
	l.demand = 0
	for i, x := range l.x {
		if !env.Fits(l.costs[i], l.budget) {
			l.key[i], l.excess[i] = math.Inf(-1), 0
			continue
		}
		l.follow(i)
		e := ratio(l.index(i, x), unit)
		margin := math.Log(max(x, 1e-12*l.top[i])) - l.src[i].LnT
		k := s.MarginShare*clip(margin, s.MarginCap) + (1-s.MarginShare)*clip(e, s.IndexCap)
		l.demand += l.costs[i] * logit(kappa*k)
		l.key[i] = kappa*k + logistic(l.rand)
		e = clip(e, 1)
		f := logit(kappa * margin)
		if e > 0 {
			f = 1 - f
		}
		l.excess[i], l.wrong[i] = e, f
	}
}

// Select implements env.Policy.
func (l *Observed) Select(dst []int, o *env.Observed) []int {
	if len(o.State) != len(l.x) {
		panic("learner: observed: the view does not show the state of every source")
	}
	copy(l.x, o.State)
	l.plan()
	return l.sel.Top(dst, l.key)
}

// Update implements env.Learner.
func (l *Observed) Update(crawls []env.Crawled, next *env.Observed) {
	s := &l.set
	for i := range l.took {
		l.took[i] = -1
	}
	least := math.Inf(1)
	for _, c := range crawls {
		l.took[c.Source] = c.Interest
		least = min(least, l.x[c.Source]/l.costs[c.Source])
	}
	l.clocks.set(l.n)
	a := l.clocks.a * l.clocks.kappa
	for i := range l.src {
		st := &l.src[i]
		x, alpha := l.x[i], l.factor[i]
		turn := min(l.costs[i]/max(st.Work, 1e-12), maxCycles*l.period)
		b := float64(l.clocks.critic(float32(turn)))
		harvest, cost := 0.0, 0.0
		// What came in is seen whether or not the source was crawled, so the
		// state after waiting is known in both cases.
		wait := next.State[i]
		if l.took[i] >= 0 {
			harvest, cost = l.took[i], l.costs[i]
			wait += alpha * x
		}
		l.evaluate(i, st, x, wait, b)
		st.Eta += b * (harvest - st.Eta)
		st.Work += b * (cost - st.Work)
		step := min(a/turn, maxActor)
		st.LnT -= step * l.wrong[i] * l.excess[i]
		st.LnT = min(max(st.LnT, math.Log(.05*l.gain[i])), math.Log(8*l.top[i]))
	}
	if !math.IsInf(least, 1) {
		l.scale += max(1/float64(l.n+1), 1./scaleMemory) * (least - l.scale)
	}
	if !s.NoPrice {
		l.price = max(0, l.price+l.clocks.d*l.scale*clip((l.demand-l.budget)/l.budget, 1))
	}
	l.n++
}

// evaluate is a step of LSPE(0) for stopping at X ≥ T, with φ = φ(X), φ′ =
// φ(X′) where X′ < T and 0 where the waiting ends:
//
//	B ← B + b(φφᵀ − B),   A ← A + b(φ(φ′ − φ)ᵀ − A)
//	b̄ ← b̄ + b(φ·1{X′ ≥ T}X′ − b̄) for R,   b̄ ← b̄ + b(φ − b̄) for D
//	r ← r + γB⁻¹(A r + b̄)
//
// A crawl below T breaks the wait off. With φ′ in A such transitions could give
// it a positive direction; R(X′) and 1 + D(X′) go into b̄ instead, which has the
// same fixed point. What diverges all the same begins again.
func (l *Observed) evaluate(i int, s *stopping, x, wait, b float64) {
	f := l.phi(i, x)
	var g [stopFeatures]float64
	end, lasts := 0.0, 1.0
	switch {
	case wait >= math.Exp(s.LnT):
		end = wait
	case l.took[i] >= 0:
		r, d := l.waiting(i, wait)
		end, lasts = r, 1+d
	default:
		g = l.phi(i, wait)
	}
	for j := range g {
		g[j] -= f[j]
	}
	l.wait.add(i, f[:], g[:], end, lasts, b)
	if !l.wait.trust(i) {
		l.fallbacks++
	}
	l.wait.solve(i, 1)
	r, d := l.wait.weights(i)
	for j := range r {
		if !(math.Abs(d[j]) < diverged && math.Abs(r[j]) < diverged*l.top[i]) {
			l.oneEpoch(i)
			break
		}
	}
}

// diverged is a weight of D that no critic has, and, in units of the features,
// one of R.
const diverged = 1e9

// Price returns the learned price.
func (l *Observed) Price() float64 { return l.price }

// Threshold returns the learned threshold of source i as a state, in interest:
// the inverse index at the learned price; +Inf where a crawl costs more than
// the budget.
func (l *Observed) Threshold(i int) float64 {
	if !env.Fits(l.costs[i], l.budget) {
		return math.Inf(1)
	}
	return math.Exp(l.src[i].LnT)
}

// maxLog is beyond the logarithm of any state.
const maxLog = 750.

// ObservedState is the whole state of a [Observed] learner as data.
type ObservedState struct {
	Epochs    int        `json:"epochs"`
	Price     float64    `json:"price"` // λ, interest per budget unit
	Scale     float64    `json:"scale"` // h, interest per budget unit
	Sources   []stopping `json:"sources"`
	Critic    []float64  `json:"critic"` // B, B⁻¹, A, both b̄, weights of R and D of every source
	Fixed     []float64  `json:"fixed"`  // Θ₀, epochs
	Fallbacks int        `json:"fallbacks"`
	Rand      []byte     `json:"rand"` // of the stream of exploration
}

// State returns the learner's whole state.
func (l *Observed) State() ObservedState {
	return ObservedState{l.n, l.price, l.scale, append([]stopping(nil), l.src...), slices.Clone(l.wait.data), slices.Clone(l.fixed), l.fallbacks, l.rand.State()}
}

// SetState takes up a state that State returned. After an error the learner
// must not be used.
func (l *Observed) SetState(s ObservedState) error {
	if len(s.Sources) != len(l.src) {
		return fmt.Errorf("state of %d sources; the learner has %d", len(s.Sources), len(l.src))
	}
	if err := counters(s.Epochs, s.Price, s.Scale, s.Fallbacks); err != nil {
		return err
	}
	if err := check.Finite("critic", s.Critic, len(l.wait.data)); err != nil {
		return err
	}
	if err := check.Finite("fixed", s.Fixed, len(l.fixed)); err != nil {
		return err
	}
	for i, x := range s.Sources {
		if age := s.Fixed[i]; !(age >= 1 && age <= math.Ceil(maxCycles*l.period)) {
			return fmt.Errorf("fixed has %v at place %d; allowed are ages from 1 to %v", age, i, math.Ceil(maxCycles*l.period))
		}
		if x.Work < 0 || math.Abs(x.LnT) > maxLog {
			return fmt.Errorf("source %d has work %v and ln T %v; allowed are 0 or more, and up to %v either way", i+1, x.Work, x.LnT, maxLog)
		}
		if err := check.Finite(fmt.Sprintf("source %d", i+1), []float64{x.LnT, x.Eta, x.Work}, 3); err != nil {
			return err
		}
	}
	if err := l.rand.SetState(s.Rand); err != nil {
		return fmt.Errorf("state of the random stream: %w", err)
	}
	l.clocks = l.set.clocks()
	l.n, l.price, l.scale, l.fallbacks = s.Epochs, s.Price, s.Scale, s.Fallbacks
	copy(l.src, s.Sources)
	copy(l.wait.data, s.Critic)
	copy(l.fixed, s.Fixed)
	return nil
}

// Fallbacks counts the times that an inverse was not trusted.
func (l *Observed) Fallbacks() int { return l.fallbacks }

// Frozen returns the policy that would be deployed now.
func (l *Observed) Frozen() *ObservedPolicy {
	f := *l
	f.src = append([]stopping(nil), l.src...)
	wait := *l.wait
	wait.data = slices.Clone(l.wait.data)
	f.wait, f.fixed = &wait, slices.Clone(l.fixed)
	f.key = make([]float64, len(l.key))
	f.sel = baselines.NewSelector(l.costs, l.budget)
	f.rand = nil
	return &ObservedPolicy{f}
}

// ObservedPolicy is what a [Observed] learner has learned, as a policy.
type ObservedPolicy struct{ l Observed }

var _ env.Policy[env.Observed] = (*ObservedPolicy)(nil)

// Select implements env.Policy.
func (f *ObservedPolicy) Select(dst []int, o *env.Observed) []int {
	l := &f.l
	if len(o.State) != len(l.key) {
		panic("learner: observed: the view does not show the state of every source")
	}
	s, unit := &l.set, l.unit()
	for i, x := range o.State {
		e := ratio(l.index(i, x), unit)
		margin := math.Log(max(x, 1e-12*l.top[i])) - l.src[i].LnT
		l.key[i] = s.mix(margin, e)
	}
	return l.sel.Top(dst, l.key)
}
