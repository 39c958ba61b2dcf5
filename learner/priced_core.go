package learner

import (
	"fmt"
	"math"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// priced is the actor-critic behind [Priced] and [PricedOnline]: it is handed
// the mean state x and the age s of every source and the parameters by which x
// grows. Given the price λ the sources decouple, so all of it is per source and
// an epoch costs O(N).
type priced struct {
	set    PricedSettings
	costs  []float64 // C
	budget float64   // M
	rand   *stream.Rand
	sel    *baselines.Selector
	period float64 // ΣC/M: the cycle, in epochs, if all sources were equal

	// What is known or estimated of each source; its owner writes it.
	ceil, decay []float64 // u*, c
	factor      []float64 // α
	gain        []float64 // u

	// expect has the critic average what the estimates foretold of a harvest
	// in place of the harvest itself, which is noisier.
	expect bool

	// What is learned.
	n     int       // epochs so far
	price float64   // λ, interest per budget unit
	scale float64   // h, running mean of the least harvest per budget unit that was crawled
	theta []float64 // ln θ, threshold as an age
	eta   []float64 // mean harvest, interest per epoch
	work  []float64 // mean cost, budget units per epoch

	// Θ = ⌈θ⌉ and x(Θ), which follow from θ.
	turn, peak []float64

	// Of the present epoch.
	x, age  []float64
	excess  []float64 // (γ̂ − λ)/λ, clipped
	wrong   []float64 // distance of the logit from the better action
	key     []float64
	demand  float64 // Σ C f
	crawled []bool

	poly []*LSPE // critics of the ablation "polynomial", otherwise nil
}

const (
	minTheta    = 0.5 // below 1, so that crawling at every epoch has a clear margin
	maxCycles   = 50  // greatest threshold, in periods
	leastShare  = 0.1 // least unit of the excess, in harvests
	scaleMemory = 100 // epochs that h looks back
	maxActor    = 0.5 // greatest step of ln θ
	maxDegree   = 4
)

func newPriced(terms env.Terms, set *PricedSettings, r *stream.Rand) *priced {
	s := DefaultPricedSettings()
	if set != nil {
		s = *set
	}
	if err := s.Validate(); err != nil {
		panic("learner: priced: " + err.Error())
	}
	if r == nil {
		panic("learner: priced: no random stream")
	}
	n := len(terms.Costs)
	p := &priced{
		set: s, costs: terms.Costs, budget: terms.Budget, rand: r,
		sel:     baselines.NewSelector(terms.Costs, terms.Budget),
		crawled: make([]bool, n),
	}
	for _, v := range []*[]float64{
		&p.ceil, &p.decay, &p.factor, &p.gain, &p.theta, &p.eta, &p.work, &p.turn, &p.peak,
		&p.x, &p.age, &p.excess, &p.wrong, &p.key,
	} {
		*v = make([]float64, n)
	}
	var total float64
	for _, c := range terms.Costs {
		total += c
	}
	p.period = max(1, total/terms.Budget)
	for i := range p.theta {
		p.theta[i] = math.Log(p.period)
		p.turn[i] = math.Ceil(p.period)
	}
	if s.Critic == "polynomial" {
		for range p.theta {
			c, err := NewLSPE(s.Degree, LSPESettings{Gamma: .2, Step: Steps{Scale: .5, Block: 200, Power: 2. / 3}, Inverse: DefaultInverseSettings()})
			if err != nil {
				panic("learner: priced: " + err.Error())
			}
			p.poly = append(p.poly, c)
		}
	}
	return p
}

// know sets what is known of source i. Where more is known than before, the
// mean harvest is carried over to it in proportion to x(Θ); it would take many
// cycles to follow.
func (p *priced) know(i int, gain, decay, ceil float64) {
	p.gain[i], p.decay[i], p.ceil[i] = gain, decay, ceil
	p.factor[i] = math.Exp(-decay)
	old := p.peak[i]
	p.peak[i] = p.mean(i, p.turn[i])
	if old > 0 {
		p.eta[i] *= p.peak[i] / old
	}
}

// begin sets the critic of source i to what its first threshold would earn, so
// that before the first crawl rich sources do not pass for poor ones.
func (p *priced) begin(i int) {
	p.eta[i], p.work[i] = p.peak[i]/p.turn[i], p.costs[i]/p.turn[i]
}

// mean returns x(s) = u*(1 − α^s).
func (p *priced) mean(i int, s float64) float64 {
	return -p.ceil[i] * math.Expm1(-p.decay[i]*s)
}

// advantage returns what crawling source i now is worth over waiting, per
// budget unit, and the same as the distance of the index from the price.
//
// With η − λκ̄ the mean profit per epoch, waiting means crawling at the
// threshold's age Θ, or at the next epoch if Θ has passed:
//
//	s′ = max(Θ, s + 1)
//	L(s) = [x(s) − (η − λκ̄)s] − [x(s′) − (η − λκ̄)s′]
//
// which is x − λC + V(0) − V(αx + u) with V the exact solution of the Poisson
// equation below Θ (slope η in the age) and above it (slope 1 in x), anchored
// at the crawl. A source without profit is compared with never crawling it.
// The derivative of L by the price, −C max(Θ − s, 1)/Θ, takes L to the scale
// of the index.
func (p *priced) advantage(i int, x, age float64) (perCost, index float64) {
	turn, peak, cost := p.turn[i], p.peak[i], p.costs[i]
	profit := p.eta[i] - p.price*p.work[i]
	if age >= turn {
		turn = age + 1
		peak = p.factor[i]*x + p.gain[i]
	}
	var l float64
	switch {
	case p.poly != nil:
		var f [maxDegree]float64
		next := p.poly[i].Value(p.powers(i, p.factor[i]*x+p.gain[i], &f))
		l = x - p.price*cost + p.harvest(i)*(p.poly[i].Value(p.powers(i, p.gain[i], &f))-next)
	case profit <= 0:
		l = x - p.price*cost - max(0, peak-p.price*cost)
	case p.set.Critic == "behaviour":
		l = x - p.price*cost - profit*(p.turn[i]-1)
		if age < p.turn[i] {
			l = x - p.price*cost - profit*age
		} else {
			l -= peak - p.peak[i]
		}
	default:
		l = x - peak + profit*(turn-age)
	}
	perCost = l / cost
	return perCost, perCost * p.turn[i] / max(p.turn[i]-age, 1)
}

// powers returns the features z, z², … of state x.
func (p *priced) powers(i int, x float64, dst *[maxDegree]float64) []float64 {
	// Not 0 at x = u, where a source may always be.
	z := (x - p.gain[i] + 1e-2*p.ceil[i]) / (p.ceil[i] - p.gain[i])
	f := dst[:p.set.Degree]
	v := z
	for k := range f {
		f[k] = v
		v *= z
	}
	return f
}

// harvest is the unit of the rewards of a polynomial critic, what a crawl
// brings in when all sources are crawled alike.
func (p *priced) harvest(i int) float64 { return p.mean(i, p.period) }

// evaluate is a step of the polynomial critics.
func (p *priced) evaluate() {
	var a, b [maxDegree]float64
	for i, x := range p.x {
		next, reward := p.factor[i]*x+p.gain[i], 0.0
		if p.crawled[i] {
			next, reward = p.gain[i], (x-p.price*p.costs[i])/p.harvest(i)
		}
		p.poly[i].Step(p.powers(i, x, &a), p.powers(i, next, &b), reward)
	}
}

// unit returns the unit of the excess, the price; at first, while there is
// none, a tenth of a crawl's harvest.
func (p *priced) unit() float64 { return max(p.price, leastShare*p.scale) }

// rank writes the keys of the frozen policy.
func (p *priced) rank(key, x, age []float64) {
	unit := p.unit()
	for i := range key {
		key[i] = p.mixed(i, x[i], age[i], unit)
	}
}

func (p *priced) mixed(i int, x, age, unit float64) float64 {
	_, index := p.advantage(i, x, age)
	return p.set.mix(logAge(age)-p.theta[i], ratio(index, unit))
}

// mix returns the key of the frozen policy: half the actor's margin and half
// the critic's index, each within bounds, so that neither can be far wrong
// alone.
func (s *PricedSettings) mix(margin, excess float64) float64 {
	switch s.RankBy {
	case "margin":
		return margin
	case "index":
		return excess
	}
	return s.MarginShare*clip(margin, s.MarginCap) + (1-s.MarginShare)*clip(excess, s.IndexCap)
}

// ratio returns the index over the unit, or, before anything has been
// harvested, itself.
func ratio(index, unit float64) float64 {
	if unit > 0 {
		return index / unit
	}
	return index
}

// clip returns v cut to [−c, c].
func clip(v, c float64) float64 {
	switch {
	case v > c:
		return c
	case v < -c:
		return -c
	}
	return v
}

// plan writes the perturbed keys of this epoch, κk + L with L standard
// logistic, so that P(κk + L > 0) is the logit f = 1/(1 + e^(−κk)).
func (p *priced) plan() {
	s := &p.set
	kappa, unit := s.sharpness(p.n), p.unit()
	p.demand = 0
	for i, x := range p.x {
		_, index := p.advantage(i, x, p.age[i])
		e := ratio(index, unit)
		margin := logAge(p.age[i]) - p.theta[i]
		k := s.MarginShare*clip(margin, s.MarginCap) + (1-s.MarginShare)*clip(e, s.IndexCap)
		p.demand += p.costs[i] * logit(kappa*k)
		p.key[i] = kappa*k + logistic(p.rand)

		// Expected policy gradient: both actions are weighed, none is
		// sampled. The weight is the distance of the actor's own logit from
		// the better action, which, unlike f(1−f), does not vanish where the
		// actor is sure and wrong.
		e = clip(e, 1)
		f := logit(kappa * margin)
		switch {
		case s.Saturating:
			f = 4 * f * (1 - f)
		case e > 0:
			f = 1 - f
		}
		p.excess[i], p.wrong[i] = e, f
	}
}

// logit returns 1/(1 + e^(−m)) from a table, linear in between; it is right to
// 2·10⁻⁶.
func logit(m float64) float64 {
	t := (m + logitEnd) * logitSteps
	switch {
	case !(t > 0):
		return 0
	case t >= float64(len(logits)-1):
		return 1
	}
	k := int(t)
	return logits[k] + (t-float64(k))*(logits[k+1]-logits[k])
}

const (
	logitEnd   = 16 // beyond, 1 − f is below 2·10⁻⁷
	logitSteps = 128
)

var logits = func() (t [2*logitEnd*logitSteps + 1]float64) {
	for k := range t {
		t[k] = 1 / (1 + math.Exp(logitEnd-float64(k)/logitSteps))
	}
	return
}()

// logistic draws from the standard logistic distribution.
func logistic(r *stream.Rand) float64 {
	u := r.Float64()
	for u == 0 {
		u = r.Float64()
	}
	return math.Log(u / (1 - u))
}

// learn takes in what the crawls brought: critic, actor and price, from the
// fastest to the slowest.
func (p *priced) learn(crawls []env.Crawled) {
	s := &p.set
	a := s.actor(p.n) * s.sharpness(p.n)
	least := math.Inf(1)
	for _, c := range crawls {
		p.crawled[c.Source] = true
		least = min(least, p.x[c.Source]/p.costs[c.Source])
	}

	if p.poly != nil {
		p.evaluate()
	}

	// η ← η + bᵢ(n)(ν X − η), and the same for the cost ν C, so that the
	// profit η − λκ̄ follows the price at once.
	top := math.Log(maxCycles * p.period)
	low := math.Log(minTheta)
	for i, turn := range p.turn {
		b := s.critic(p.n, turn)
		p.eta[i] -= b * p.eta[i]
		p.work[i] -= b * p.work[i]
		if p.crawled[i] {
			p.work[i] += b * p.costs[i]
		}
		// ln θ ← Π[ln θ − a(n) κ |f − f*| clip((γ̂ − λ)/λ, 1)/s], a step per
		// cycle whatever the length of the cycle.
		if w := p.wrong[i] * p.excess[i]; math.Abs(w) > 1e-9 {
			step := min(a/min(turn, max(p.age[i], 1)), maxActor)
			p.theta[i] = max(low, min(top, p.theta[i]-step*w))
			if t := max(1, math.Ceil(math.Exp(p.theta[i]))); t != turn {
				p.turn[i], p.peak[i] = t, p.mean(i, t)
			}
		}
	}
	for _, c := range crawls {
		i := c.Source
		p.crawled[i] = false
		harvest := c.Interest
		if p.expect {
			harvest = p.x[i]
		}
		p.eta[i] += s.critic(p.n, p.turn[i]) * harvest
	}

	// h ← h + (1/min(n, 100))(min X/C − h)
	if !math.IsInf(least, 1) {
		p.scale += max(1/float64(p.n+1), 1./scaleMemory) * (least - p.scale)
	}
	// λ ← max(0, λ + d(n) h (Σ C f − M)/M)
	if !s.NoPrice {
		p.price = max(0, p.price+s.price(p.n)*p.scale*clip((p.demand-p.budget)/p.budget, 1))
	}
	p.n++
}

// logAges holds ln s for small ages.
var logAges = func() (t [1024]float64) {
	for i := range t {
		t[i] = math.Log(float64(i))
	}
	return
}()

func logAge(age float64) float64 {
	if age < float64(len(logAges)) {
		return logAges[int(age)]
	}
	return math.Log(age)
}

// PricedState is the whole state of a priced actor-critic as data. It goes
// with the settings, the terms and the parameters with which the learner was
// made, which it does not hold. A learner with polynomial critics, which are
// for ablations, does not take up a state.
type PricedState struct {
	Epochs    int       `json:"epochs"`
	Price     float64   `json:"price"`     // λ, interest per budget unit
	Scale     float64   `json:"scale"`     // h, interest per budget unit
	Threshold []float64 `json:"threshold"` // ln θ, θ in epochs
	Harvest   []float64 `json:"harvest"`   // η, interest per epoch
	Work      []float64 `json:"work"`      // κ̄, budget units per epoch
	Rand      []byte    `json:"rand"`      // of the stream of exploration
}

func (p *priced) state() PricedState {
	return PricedState{
		Epochs: p.n, Price: p.price, Scale: p.scale,
		Threshold: append([]float64(nil), p.theta...),
		Harvest:   append([]float64(nil), p.eta...),
		Work:      append([]float64(nil), p.work...),
		Rand:      p.rand.State(),
	}
}

func (p *priced) setState(s PricedState) error {
	n := len(p.costs)
	if len(s.Threshold) != n || len(s.Harvest) != n || len(s.Work) != n {
		return fmt.Errorf("state of %d, %d and %d sources (threshold, harvest, work); the learner has %d", len(s.Threshold), len(s.Harvest), len(s.Work), n)
	}
	if p.poly != nil {
		return fmt.Errorf("a state does not hold polynomial critics")
	}
	if err := p.rand.SetState(s.Rand); err != nil {
		return fmt.Errorf("state of the random stream: %w", err)
	}
	p.n, p.price, p.scale = s.Epochs, s.Price, s.Scale
	copy(p.theta, s.Threshold)
	copy(p.eta, s.Harvest)
	copy(p.work, s.Work)
	for i := range p.turn {
		p.turn[i] = max(1, math.Ceil(math.Exp(p.theta[i])))
		p.peak[i] = p.mean(i, p.turn[i])
	}
	return nil
}
