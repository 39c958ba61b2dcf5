package learner

import (
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// PricedObserved is the priced LSPE(0) actor-critic for TCNS, section VIII: the
// true state X is seen before the crawl, and the parameters are known. Given
// the price, each source is a problem of optimal stopping: crawl now, or wait
// for what the noise brings. The critic evaluates the waiting by LSPE(0) with
// polynomial features of X, as Yu and Bertsekas, "A least squares Q-learning
// algorithm for optimal stopping problems", LIDS report 2731, 2007, do. So it
// sees the noise, which the formula of the mean dynamics does not.
type PricedObserved struct {
	set    PricedSettings
	costs  []float64 // C
	budget float64   // M
	rand   *stream.Rand
	sel    *baselines.Selector
	period float64
	clocks pricedClocks

	factor, gain, ceil []float64 // α, u, u*

	n     int
	price float64 // λ
	scale float64 // h
	src   []stopping

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

// stopping is what is learned of one source. Waiting in state X until X ≥ T
// brings in the mean R(X) and lasts D(X) epochs.
type stopping struct {
	LnT     float64               // ln T, threshold as a state
	Eta     float64               // mean harvest, interest per epoch
	Work    float64               // mean cost, budget units per epoch
	R, D    [stopFeatures]float64 // weights of R and D
	A, B    [stopFeatures][stopFeatures]float64
	Inv     [stopFeatures][stopFeatures]float64 // B⁻¹
	Bx, Bd  [stopFeatures]float64               // b̄ of R and D
	Updates int
}

var _ env.Learner[env.Observed] = (*PricedObserved)(nil)

// NewPricedObserved returns the learner for an instance; nil settings are
// [DefaultPricedSettings]. It explores with draws from r. It panics if the
// instance or a setting is out of its range.
func NewPricedObserved(in env.Instance, set *PricedSettings, r *stream.Rand) *PricedObserved {
	if err := in.Validate(); err != nil {
		panic("learner: observed: " + err.Error())
	}
	p := newPriced(in.Terms(), set, r) // checks settings and stream
	n := len(in.Sources)
	l := &PricedObserved{set: p.set, costs: p.costs, budget: p.budget, rand: r, sel: p.sel, period: p.period, clocks: p.clocks, src: make([]stopping, n)}
	for _, v := range []*[]float64{&l.factor, &l.gain, &l.ceil, &l.x, &l.key, &l.excess, &l.wrong, &l.took} {
		*v = make([]float64, n)
	}
	var most float64
	for _, s := range in.Sources {
		most = max(most, s.Ceiling())
	}
	if most == 0 {
		most = 1
	}
	for i, s := range in.Sources {
		// A source that never publishes needs a scale as well.
		if s.Ceiling() < leastCeiling*most {
			s.Interest, s.Rate = leastCeiling*most*s.Decay, 1
			s.Window = math.Inf(1)
		}
		l.factor[i], l.gain[i], l.ceil[i] = s.Factor(), s.Gain(), s.Ceiling()
		st := &l.src[i]
		x := s.MeanState(int(math.Ceil(l.period)))
		st.LnT = math.Log(x)
		st.Eta, st.Work = x/math.Ceil(l.period), s.Cost/math.Ceil(l.period)
		// At first, waiting means one epoch: R = αX + u, D = 1.
		st.R = [stopFeatures]float64{l.gain[i], l.factor[i] * l.ceil[i], 0}
		st.D[0] = 1
		for j := range st.B {
			st.B[j][j] = firstSquare
			st.Inv[j][j] = 1 / firstSquare
		}
	}
	return l
}

// leastCeiling is the least ceiling, in units of the greatest, that is told
// from none.
const leastCeiling = 1e-9

// firstSquare is what the mean square of each feature is taken for at first.
const firstSquare = 1e-2

// phi returns the features 1, z, z² of X with z = X/u*, cut at 4.
func (l *PricedObserved) phi(i int, x float64) [stopFeatures]float64 {
	z := min(x/l.ceil[i], 4)
	return [stopFeatures]float64{1, z, z * z}
}

func dot(a, b *[stopFeatures]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

// index returns the distance of the learned index from the price, in interest
// per budget unit:
//
//	L(X) = X − R(X) + (η − λκ̄) D(X),  index − λ = L/(κ̄ D)
//
// κ̄D, the mean work that the crawl forgoes, is −∂L/∂λ.
func (l *PricedObserved) index(i int, x float64) float64 {
	s := &l.src[i]
	f := l.phi(i, x)
	d := max(1, dot(&s.D, &f))
	r := max(dot(&s.R, &f), l.factor[i]*x)
	profit := s.Eta - l.price*s.Work
	if profit <= 0 {
		// Waiting for good is the alternative, and costs nothing.
		return (x - l.price*l.costs[i] - max(0, r-l.price*l.costs[i])) / l.costs[i]
	}
	return (x - r + profit*d) / min(max(s.Work*d, l.costs[i]/(maxCycles*l.period)), l.costs[i])
}

func (l *PricedObserved) unit() float64 { return max(l.price, leastShare*l.scale) }

func (l *PricedObserved) plan() {
	s := &l.set
	l.clocks.set(l.n)
	kappa, unit := l.clocks.kappa, l.unit()
	l.demand = 0
	for i, x := range l.x {
		e := ratio(l.index(i, x), unit)
		margin := math.Log(max(x, 1e-12*l.ceil[i])) - l.src[i].LnT
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
func (l *PricedObserved) Select(dst []int, o *env.Observed) []int {
	if len(o.State) != len(l.x) {
		panic("learner: observed: the view does not show the state of every source")
	}
	copy(l.x, o.State)
	l.plan()
	return l.sel.Top(dst, l.key)
}

// Update implements env.Learner.
func (l *PricedObserved) Update(crawls []env.Crawled, next *env.Observed) {
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
		st.LnT = min(max(st.LnT, math.Log(.05*l.gain[i])), math.Log(8*l.ceil[i]))
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
func (l *PricedObserved) evaluate(i int, s *stopping, x, wait, b float64) {
	f := l.phi(i, x)
	var g [stopFeatures]float64
	end := 0.0
	if wait >= math.Exp(s.LnT) {
		end = wait
	} else {
		g = l.phi(i, wait)
	}
	var v [stopFeatures]float64 // B⁻¹φ
	for j := range f {
		for k := range f {
			s.A[j][k] += b * (f[j]*(g[k]-f[k]) - s.A[j][k])
			s.B[j][k] += b * (f[j]*f[k] - s.B[j][k])
			v[j] += s.Inv[j][k] * f[k]
		}
		s.Bx[j] += b * (f[j]*end - s.Bx[j])
		s.Bd[j] += b * (f[j] - s.Bd[j])
	}
	// Sherman and Morrison, (11) of Allerton for a general step:
	// B⁻¹ = (1/(1−b)) [B⁻¹ − b B⁻¹φφᵀB⁻¹/(1 − b + b φᵀB⁻¹φ)]
	den := 1 - b + b*dot(&f, &v)
	for j := range f {
		for k := range f {
			s.Inv[j][k] = (s.Inv[j][k] - b*v[j]*v[k]/den) / (1 - b)
		}
	}
	s.Updates++
	if s.Updates%refresh == 0 {
		l.renew(s)
	}
	var wr, wd [stopFeatures]float64
	for j := range f {
		wr[j] = dot(&s.A[j], &s.R) + s.Bx[j]
		wd[j] = dot(&s.A[j], &s.D) + s.Bd[j]
	}
	gamma := l.set.Gamma
	for j := range f {
		s.R[j] += gamma * dot(&s.Inv[j], &wr)
		s.D[j] += gamma * dot(&s.Inv[j], &wd)
	}
}

const refresh = 64 // updates between two checks of B⁻¹

const tikhonov = 1e-4 // δ

// renew checks B⁻¹ against B and, if it is off, takes B + δ diag B for B and
// inverts that.
func (l *PricedObserved) renew(s *stopping) {
	off := 0.0
	for j := range s.B {
		for k := range s.B {
			v := 0.0
			for m := range s.B {
				v += s.B[j][m] * s.Inv[m][k]
			}
			if j == k {
				v--
			}
			off = max(off, math.Abs(v))
		}
	}
	if off < 1e-4 {
		return
	}
	l.fallbacks++
	for j := range s.B {
		s.B[j][j] += tikhonov*s.B[j][j] + 1e-300
	}
	s.Inv = inverse3(s.B)
}

func inverse3(m [3][3]float64) (v [3][3]float64) {
	for j := range 3 {
		for k := range 3 {
			a, b, c, d := (k+1)%3, (k+2)%3, (j+1)%3, (j+2)%3
			v[j][k] = m[a][c]*m[b][d] - m[a][d]*m[b][c]
		}
	}
	det := m[0][0]*v[0][0] + m[0][1]*v[1][0] + m[0][2]*v[2][0]
	for j := range 3 {
		for k := range 3 {
			v[j][k] /= det
		}
	}
	return v
}

// Price returns the learned price.
func (l *PricedObserved) Price() float64 { return l.price }

// Threshold returns the learned threshold of source i as a state, in interest:
// the inverse index at the learned price.
func (l *PricedObserved) Threshold(i int) float64 { return math.Exp(l.src[i].LnT) }

// ObservedState is the whole state of a [PricedObserved] learner as data.
type ObservedState struct {
	Epochs    int        `json:"epochs"`
	Price     float64    `json:"price"` // λ, interest per budget unit
	Scale     float64    `json:"scale"` // h, interest per budget unit
	Sources   []stopping `json:"sources"`
	Fallbacks int        `json:"fallbacks"`
	Rand      []byte     `json:"rand"` // of the stream of exploration
}

// State returns the learner's whole state.
func (l *PricedObserved) State() ObservedState {
	return ObservedState{l.n, l.price, l.scale, append([]stopping(nil), l.src...), l.fallbacks, l.rand.State()}
}

// SetState takes up a state that State returned.
func (l *PricedObserved) SetState(s ObservedState) error {
	if len(s.Sources) != len(l.src) {
		return fmt.Errorf("state of %d sources; the learner has %d", len(s.Sources), len(l.src))
	}
	if err := l.rand.SetState(s.Rand); err != nil {
		return fmt.Errorf("state of the random stream: %w", err)
	}
	l.n, l.price, l.scale, l.fallbacks = s.Epochs, s.Price, s.Scale, s.Fallbacks
	copy(l.src, s.Sources)
	return nil
}

// Fallbacks counts the times that an inverse was not trusted.
func (l *PricedObserved) Fallbacks() int { return l.fallbacks }

// Frozen returns the policy that would be deployed now.
func (l *PricedObserved) Frozen() *ObservedPolicy {
	f := *l
	f.src = append([]stopping(nil), l.src...)
	f.key = make([]float64, len(l.key))
	f.sel = baselines.NewSelector(l.costs, l.budget)
	f.rand = nil
	return &ObservedPolicy{f}
}

// ObservedPolicy is what a [PricedObserved] learner has learned, as a policy.
type ObservedPolicy struct{ l PricedObserved }

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
		margin := math.Log(max(x, 1e-12*l.ceil[i])) - l.src[i].LnT
		l.key[i] = s.mix(margin, e)
	}
	return l.sel.Top(dst, l.key)
}
