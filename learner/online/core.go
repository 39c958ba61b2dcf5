package online

import (
	"fmt"
	"math"
	"slices"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/internal/check"
)

// priced is the actor-critic behind [Learner] and [Online]: it is handed
// the mean state x and the age s of every source and the parameters by which x
// grows. Given the price λ the sources decouple, so all of it is per source and
// an epoch costs O(N).
type core struct {
	set    Settings
	costs  []float64 // C
	budget float64   // M
	sel    *baselines.Selector
	period float64 // ΣC/M over what can be afforded: the cycle, in epochs, if all sources were equal
	clocks clocks
	crew

	// What is known or estimated of each source; its owner writes it.
	decay []float64 // c
	ceil  []float32 // u*, in units
	loss  []float32 // 1 − α

	// unit is a power of two near the greatest ceiling, where that is known.
	// What is kept in single precision is kept in it, and no unit of interest
	// is too large or too small.
	unit float64

	// What is learned.
	n     int       // epochs so far
	price float64   // λ, interest per budget unit
	scale float64   // h, running mean of the least harvest per budget unit that was crawled
	theta []float64 // ln θ, threshold as an age
	eta   []float32 // η, mean harvest, units per epoch
	work  []float32 // κ̄, mean cost, budget units per epoch

	// The slope of V in the age is slope, in units per epoch, less λ·toll.
	slope, toll []float32

	lspe     []pair // critics on the features of the threshold
	anchored bool   // V anchored at V(1) and not at the crawl, for ablations
	poly     *small // critics on polynomials, for ablations

	// Θ = ⌈θ⌉ and x(Θ), which follow from θ.
	turn, peak []float32 // in epochs, in units

	// Of the present epoch.
	seen    *env.Model // during Select, of what shows x; otherwise x and age are set
	x       []float64
	age     []float32
	push    []float32 // what the actor's step is multiplied by
	key     []float64 // once the choice is made, the harvest of those crawled
	demand  float64   // Σ C f
	crawled []bool

	// index, if not nil, is the index of each source in place of the critic's.
	index []float64
}

const (
	minTheta    = 0.5 // below 1, so that crawling at every epoch has a clear margin
	maxCycles   = 50  // greatest threshold, in periods
	leastShare  = 0.1 // least unit of the excess, in harvests
	scaleMemory = 100 // epochs that h looks back
	maxActor    = 0.5 // greatest step of ln θ
)

func newCore(terms env.Terms, set *Settings, r *stream.Rand) *core {
	s := DefaultSettings()
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
	p := &core{
		set: s, unit: 1, costs: terms.Costs, budget: terms.Budget, clocks: s.clocks(),
		sel:     baselines.NewSelector(terms.Costs, terms.Budget),
		crawled: make([]bool, n),
	}
	p.crew.init(n, s.Workers, r)
	for _, v := range []*[]float64{&p.decay, &p.theta, &p.x, &p.key} {
		*v = make([]float64, n)
	}
	for _, v := range []*[]float32{&p.ceil, &p.loss, &p.eta, &p.work, &p.slope, &p.toll, &p.turn, &p.peak, &p.age, &p.push} {
		*v = make([]float32, n)
	}
	p.period = max(1, terms.Round())
	for i := range p.theta {
		p.theta[i] = math.Log(p.period)
		p.turn[i] = float32(math.Ceil(p.period))
	}
	switch s.Critic {
	case "behaviour":
		p.anchored = true
	case "lspe":
		p.lspe = make([]pair, n)
		for i := range p.lspe {
			p.lspe[i] = newPair(p.first())
		}
	case "polynomial", "ages":
		first := make([]float64, s.Degree)
		for j := range first {
			first[j] = 1
		}
		p.anchored = true
		p.poly = newSmall(n, first, s.Gamma)
		p.poly.faded = 1e-30
	}
	return p
}

// know sets what is known of source i. Where more is known than before, what
// was learned of its harvests is carried over to it in proportion to x(Θ); it
// would take many cycles to follow.
func (p *core) know(i int, decay, ceil float64) {
	p.decay[i], p.ceil[i] = decay, float32(ceil/p.unit)
	p.loss[i] = float32(-math.Expm1(-decay))
	old := p.peak[i]
	p.peak[i] = float32(p.mean(i, float64(p.turn[i])) / p.unit)
	if old > 0 {
		c := p.peak[i] / old
		p.eta[i] *= c
		p.slope[i] *= c
		if p.lspe != nil {
			p.lspe[i].rescale(c)
		}
	}
}

// begin sets the critic of source i to what its first threshold would earn, so
// that before the first crawl rich sources do not pass for poor ones. V then
// has the slope η in the age, and 1 in the state above the threshold.
func (p *core) begin(i int) {
	p.eta[i], p.work[i] = p.peak[i]/p.turn[i], float32(p.costs[i])/p.turn[i]
	p.slope[i], p.toll[i] = p.eta[i], p.work[i]
	if p.lspe != nil {
		d := &p.lspe[i]
		d.rx[0], d.rx[1], d.rc[0] = p.eta[i], p.ceil[i], p.work[i]
	}
}

// mean returns x(s) = u*(1 − α^s).
func (p *core) mean(i int, s float64) float64 {
	if d := p.decay[i] * s; d > 1e-6 {
		return p.ceiling(i) * (1 - math.Exp(-d)) // faster than Expm1
	}
	return -p.ceiling(i) * math.Expm1(-p.decay[i]*s)
}

// ceiling returns u*.
func (p *core) ceiling(i int) float64 { return float64(p.ceil[i]) * p.unit }

// gain returns u = u*(1 − α).
func (p *core) gain(i int) float64 { return p.ceiling(i) * float64(p.loss[i]) }

// profit returns P, the slope of V in the age below the threshold, interest
// per epoch.
func (p *core) profit(i int) float64 {
	return float64(p.slope[i])*p.unit - p.price*float64(p.toll[i])
}

// advantage returns what crawling source i now is worth over waiting, in
// interest, and the distance of the index from the price, per budget unit.
//
// With P the slope of V in the age below the threshold, waiting means crawling
// at the threshold's age Θ, or at the next epoch if Θ has passed:
//
//	s′ = max(Θ, s + 1)
//	L(s) = [x(s) − P s] − [x(s′) − P s′]
//
// which is x − λC + V(1) − V(s + 1) with V anchored at the crawl. A source
// without profit is compared with never crawling it. The derivative of L by the
// price, −C max(Θ − s, 1)/Θ, takes L to the scale of the index.
//
// Beyond the greatest age that Θ may take, P is at least (x(s) − λC)/s, what
// crawling at this age would always earn: P comes from the last cycles, which
// for a slow source may be far shorter than the best one.
func (p *core) advantage(i int, x, age float64) (l, index float64) {
	turn, peak, cost := float64(p.turn[i]), p.top(i), p.costs[i]
	rest := turn - age // epochs to wait
	if rest <= 0 {
		peak, rest = p.after(i, x), 1
	}
	if p.anchored {
		l = p.fitted(i, x, age)
	} else {
		profit, once := p.profit(i), x-p.price*cost
		if age > maxCycles*p.period {
			profit = max(profit, once/age)
		}
		if profit > 0 {
			l = x - peak + profit*rest
		} else {
			l = once - max(0, peak-p.price*cost)
		}
	}
	return l, l * turn / (cost * rest)
}

// affordable reports whether a crawl of source i fits into the budget at all.
func (p *core) affordable(i int) bool { return env.Fits(p.costs[i], p.budget) }

// threshold returns θ, +Inf for a source that is never crawled.
func (p *core) threshold(i int) float64 {
	if !p.affordable(i) {
		return math.Inf(1)
	}
	return math.Exp(p.theta[i])
}

// inverse returns x(Θ), +Inf for a source that is never crawled.
func (p *core) inverse(i int) float64 {
	if !p.affordable(i) {
		return math.Inf(1)
	}
	return p.top(i)
}

// top returns x(Θ).
func (p *core) top(i int) float64 { return float64(p.peak[i]) * p.unit }

// after returns the state after an epoch without a crawl, αx + u.
func (p *core) after(i int, x float64) float64 {
	return x + float64(p.loss[i])*(p.ceiling(i)-x)
}

// worth returns what the excess is measured in, the price; at first, while there
// is none, a tenth of a crawl's harvest; before the first harvest, the unit.
func (p *core) worth() float64 {
	if v := max(p.price, leastShare*p.scale); v > 0 {
		return v
	}
	return p.unit
}

// rank writes the keys of the frozen policy.
func (p *core) rank(key, x []float64, age []float32) {
	unit := p.worth()
	for i := range key {
		key[i] = p.mixed(i, x[i], float64(age[i]), unit)
	}
}

// frozen returns a copy for ranking, which needs no critic on the features of the
// threshold: what it says is in the slope.
func (p *core) frozen() *core {
	n := len(p.costs)
	f := &core{
		set: p.set, unit: p.unit, anchored: p.anchored, costs: p.costs, budget: p.budget, period: p.period, price: p.price, scale: p.scale,
		sel:  baselines.NewSelector(p.costs, p.budget),
		ceil: slices.Clone(p.ceil), decay: slices.Clone(p.decay), loss: slices.Clone(p.loss),
		theta: slices.Clone(p.theta), eta: slices.Clone(p.eta), work: slices.Clone(p.work),
		turn: slices.Clone(p.turn), peak: slices.Clone(p.peak), slope: slices.Clone(p.slope), toll: slices.Clone(p.toll),
		key: make([]float64, n), age: make([]float32, n),
	}
	if p.poly != nil {
		c := *p.poly
		c.data = slices.Clone(c.data)
		f.poly = &c
	}
	return f
}

func (p *core) mixed(i int, x, age, unit float64) float64 {
	_, index := p.advantage(i, x, age)
	if p.index != nil {
		index = p.index[i] - p.price
	}
	return p.set.mix(logAge(age)-p.theta[i], ratio(index, unit))
}

// mix returns the key of the frozen policy: half the actor's margin and half
// the critic's index, each within bounds, so that neither can be far wrong
// alone.
func (s *Settings) mix(margin, excess float64) float64 {
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
func (p *core) plan() {
	p.clocks.set(p.n)
	p.run(p, planning)
	p.demand = 0
	for k := range p.blocks {
		p.demand += p.blocks[k].demand
	}
}

func (p *core) planBlock(b *block) {
	s := &p.set
	kappa, scale := p.clocks.kappa, 1/p.worth()
	if p.seen != nil {
		copy(p.x[b.lo:b.hi], p.seen.Mean[b.lo:b.hi])
		for i := b.lo; i < b.hi; i++ {
			p.age[i] = float32(p.seen.Age(i))
		}
	}
	margins, excesses := kappa*s.MarginShare, kappa*(1-s.MarginShare)
	ages, theta, costs := p.age[b.lo:b.hi], p.theta[b.lo:b.hi], p.costs[b.lo:b.hi]
	key, push := p.key[b.lo:b.hi], p.push[b.lo:b.hi]
	var demand float64
	for j, x := range p.x[b.lo:b.hi] {
		if !env.Fits(costs[j], p.budget) {
			key[j], push[j] = math.Inf(-1), 0
			continue
		}
		age := float64(ages[j])
		_, e := p.advantage(b.lo+j, x, age)
		if p.index != nil {
			e = p.index[b.lo+j] - p.price
		}
		e *= scale
		margin := logAge(age) - theta[j]
		k := margins*clip(margin, s.MarginCap) + excesses*clip(e, s.IndexCap)
		demand += costs[j] * logit(k)
		key[j] = k + logistic(b.rand)

		// Expected policy gradient: both actions are weighed, none is
		// sampled. The weight is the distance of the actor's own logit from
		// the better action, which, unlike f(1−f), does not vanish where the
		// actor is sure and wrong.
		f := logit(kappa * margin)
		switch {
		case s.Saturating:
			f = 4 * f * (1 - f)
		case e > 0:
			f = 1 - f
		}
		push[j] = float32(f * clip(e, 1))
	}
	b.demand = demand
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

// choose appends the sources to crawl to dst. Many of them it puts in order,
// so that all that follows goes through memory from its beginning to its end.
func (p *core) choose(dst []int) []int {
	had := len(dst)
	dst = p.sel.Top(dst, p.key)
	if len(p.crawled) < manyFrom {
		return dst
	}
	for _, i := range dst[had:] {
		p.crawled[i] = true
	}
	k := had
	for i, c := range p.crawled {
		if c {
			dst[k] = i
			k++
		}
	}
	clear(p.crawled)
	return dst
}

// learn takes in what the crawls brought: critic, actor and price, from the
// fastest to the slowest.
func (p *core) learn(crawls []env.Crawled) {
	s := &p.set
	p.clocks.set(p.n)
	least := math.Inf(1)
	for _, c := range crawls {
		i := c.Source
		p.crawled[i], p.key[i] = true, c.Interest
		if !s.Sampled {
			p.key[i] = p.x[i]
		}
		least = min(least, p.x[i]/p.costs[i])
	}
	p.run(p, learning)
	for _, c := range crawls {
		p.crawled[c.Source] = false
	}
	// h ← h + (1/min(n, 100))(min X/C − h)
	if !math.IsInf(least, 1) {
		p.scale += max(1/float64(p.n+1), 1./scaleMemory) * (least - p.scale)
	}
	// λ ← max(0, λ + d(n) h clip((Σ C f − M)/M, 1))
	if !s.NoPrice {
		p.price = max(0, p.price+p.clocks.d*p.scale*clip((p.demand-p.budget)/p.budget, 1))
	}
	p.n++
}

func (p *core) learnBlock(b *block) {
	for j, crawled := range p.crawled[b.lo:b.hi] {
		if crawled && !p.close(b.lo+j) {
			b.fallbacks++
		}
	}
	// ln θ ← Π[ln θ − min(a(n) κ/min(Θ, s), ½) |f − f*| clip((γ̂ − λ)/λ, 1)], a step
	// per cycle whatever the length of the cycle.
	a := p.clocks.a * p.clocks.kappa
	top, low := math.Log(maxCycles*p.period), math.Log(minTheta)
	ages, turns, theta := p.age[b.lo:b.hi], p.turn[b.lo:b.hi], p.theta[b.lo:b.hi]
	for j, w := range p.push[b.lo:b.hi] {
		if magnitude(w) <= 1e-9 {
			continue
		}
		step := min(a/float64(min(turns[j], max(ages[j], 1))), maxActor)
		t := max(low, min(top, theta[j]-step*float64(w)))
		theta[j] = t
		// Θ = ⌈θ⌉, x(Θ)
		turn := float64(turns[j])
		switch {
		case t > logAge(turn):
			turn++
			if t > logAge(turn) {
				turn = math.Ceil(math.Exp(t))
			}
		case turn > 1 && t <= logAge(turn-1):
			turn--
			if turn > 1 && t <= logAge(turn-1) {
				turn = max(1, math.Ceil(math.Exp(t)))
			}
		default:
			continue
		}
		turns[j], p.peak[b.lo+j] = float32(turn), float32(p.mean(b.lo+j, turn)/p.unit)
	}
}

// close takes the cycle of source i that a crawl has closed into its critic. It
// reports whether the critic's inverse was trusted.
func (p *core) close(i int) bool {
	// bᵢ(n) is a step per epoch, and a cycle has S = s of them.
	ages := p.age[i]
	w := p.clocks.critic(p.turn[i]) * ages
	w /= 1 + w
	harvest, cost := float32(p.key[i]/p.unit), float32(p.costs[i])
	// η ← η + w(X/S − η), κ̄ ← κ̄ + w(C/S − κ̄)
	p.eta[i] += w * (harvest/ages - p.eta[i])
	p.work[i] += w * (cost/ages - p.work[i])
	p.slope[i], p.toll[i] = p.eta[i], p.work[i]
	switch {
	case p.lspe != nil:
		return p.evaluate(i, harvest, cost, w)
	case p.poly != nil:
		return p.fit(i, float64(harvest), float64(cost), float64(w))
	}
	return true
}

// logAges holds ln s for small ages.
var logAges = func() (t [1024]float64) {
	for k := range t {
		t[k] = math.Log(float64(k))
	}
	return
}()

func logAge(age float64) float64 {
	if age < float64(len(logAges)) {
		return logAges[int(age)]
	}
	return math.Log(age)
}

// State is the whole state of a priced actor-critic as data. It goes
// with the settings, the terms and the parameters with which the learner was
// made, which it does not hold.
type State struct {
	Epochs    int       `json:"epochs"`
	Price     float64   `json:"price"`            // λ, interest per budget unit
	Scale     float64   `json:"scale"`            // h, interest per budget unit
	Threshold []float64 `json:"threshold"`        // ln θ, θ in epochs
	Harvest   []float64 `json:"harvest"`          // η, interest per epoch
	Work      []float64 `json:"work"`             // κ̄, budget units per epoch
	Slope     []float64 `json:"slope"`            // slope of V in the age, before the price
	Toll      []float64 `json:"toll"`             // what the price takes from it
	Critic    []float64 `json:"critic,omitempty"` // B, B⁻¹, A, b̄ₓ, b̄_c, rₓ, r_c of every source, harvests in units of a power of two near the greatest ceiling
	Fallbacks int       `json:"fallbacks"`
	Rand      [][]byte  `json:"rand"` // of the streams of exploration
}

func (p *core) state() State {
	s := State{
		Epochs: p.n, Price: p.price, Scale: p.scale,
		Threshold: slices.Clone(p.theta), Harvest: widen(p.eta, p.unit), Work: widen(p.work, 1), Slope: widen(p.slope, p.unit), Toll: widen(p.toll, 1),
		Fallbacks: p.fallbacks(), Rand: p.streams(),
	}
	if p.lspe != nil {
		s.Critic = make([]float64, 0, pairNumbers*len(p.lspe))
		for i := range p.lspe {
			s.Critic = p.lspe[i].append(s.Critic)
		}
	} else if p.poly != nil {
		s.Critic = slices.Clone(p.poly.data)
	}
	return s
}

// counters refuses what no learner has counted up to.
func counters(epochs int, price, scale float64, fallbacks int) error {
	for _, v := range []struct {
		name string
		is   float64
	}{{"epochs", float64(epochs)}, {"price", price}, {"scale", scale}, {"fallbacks", float64(fallbacks)}} {
		if !(v.is >= 0) || math.IsInf(v.is, 1) {
			return fmt.Errorf("%s is %v; allowed is a finite number of 0 or more", v.name, v.is)
		}
	}
	if float64(epochs) > 1<<53 {
		return fmt.Errorf("epochs is %d; allowed are up to 2^53", epochs)
	}
	return nil
}

func (p *core) setState(s State) error {
	n := len(p.costs)
	if err := counters(s.Epochs, s.Price, s.Scale, s.Fallbacks); err != nil {
		return err
	}
	for _, v := range []struct {
		name string
		is   []float64
	}{{"threshold", s.Threshold}, {"harvest", s.Harvest}, {"work", s.Work}, {"slope", s.Slope}, {"toll", s.Toll}} {
		if err := check.Finite(v.name, v.is, n); err != nil {
			return err
		}
	}
	for i := range n { // kept in single precision
		for _, x := range []float64{s.Harvest[i] / p.unit, s.Slope[i] / p.unit, s.Work[i], s.Toll[i]} {
			if math.Abs(x) > math.MaxFloat32 {
				return fmt.Errorf("harvest, slope, work or toll of source %d is %v units; allowed are up to %v", i+1, x, float32(math.MaxFloat32))
			}
		}
	}
	low, top := math.Log(minTheta)-1e-9, math.Log(maxCycles*p.period)+1e-9
	for i, t := range s.Threshold {
		if t < low || t > top {
			return fmt.Errorf("threshold has %v at place %d; allowed are %v to %v", t, i, low, top)
		}
	}
	numbers := 0
	if p.lspe != nil {
		numbers = pairNumbers * len(p.lspe)
	} else if p.poly != nil {
		numbers = len(p.poly.data)
	}
	if err := check.Finite("critic", s.Critic, numbers); err != nil {
		return err
	}
	if err := p.setStreams(s.Rand); err != nil {
		return err
	}
	p.clocks = p.set.clocks()
	p.n, p.price, p.scale = s.Epochs, s.Price, s.Scale
	p.setFallbacks(s.Fallbacks)
	copy(p.theta, s.Threshold)
	narrow(p.eta, s.Harvest, p.unit)
	narrow(p.work, s.Work, 1)
	narrow(p.slope, s.Slope, p.unit)
	narrow(p.toll, s.Toll, 1)
	if p.lspe != nil {
		for i := range p.lspe {
			p.lspe[i].take(s.Critic[i*pairNumbers:])
		}
	} else if p.poly != nil {
		copy(p.poly.data, s.Critic)
	}
	for i := range p.turn {
		turn := max(1, math.Ceil(math.Exp(p.theta[i])))
		if turn > 1 && p.theta[i] <= logAge(turn-1) {
			turn-- // e^(ln k) may be above k
		}
		p.turn[i], p.peak[i] = float32(turn), float32(p.mean(i, turn)/p.unit)
	}
	return nil
}

func widen(v []float32, unit float64) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x) * unit
	}
	return w
}

func narrow(dst []float32, v []float64, unit float64) {
	for i, x := range v {
		dst[i] = float32(x / unit)
	}
}

func (p *core) check(n int) {
	if n != len(p.costs) {
		panic(fmt.Sprintf("learner: online: view of %d sources; the learner has %d", n, len(p.costs)))
	}
}
