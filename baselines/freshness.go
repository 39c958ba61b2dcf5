package baselines

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mathext"

	"ephemera/baselines/index"
	"ephemera/env"
)

// Rivals for pages, of which a crawl shows whether they have changed (world pages).
//
//  1. [NewLambdaCrawl], [NewGreedyNCIS] know the parameters.
//  2. [ChangeRates] are estimators of the rate of change from bits.
//  3. [NewEstimatedWhittle], [NewLearnedLambdaCrawl] and [NewExploreThenCommit] plug one of them
//     in.

// rateRule returns how often each page is crawled per epoch, where that is worth its cost at a
// price λ of a budget unit.
type rateRule func(change, importance, cost, price float64) float64

// lambdaCrawl is the rule of Kolobov, Peres, Lu and Horvitz, "Staying up to date with online
// content changes using reinforcement learning for scheduling", NeurIPS 2019, for pages of which
// only crawls tell: they minimise the harmonic staleness −Σ μ ln(ρ/(ρ + Δ)) (Equation 4), so
// that (Proposition 2)
//
//	μΔ/(ρ(ρ + Δ)) = λC,   ρ = ½(−Δ + √(Δ² + 4μΔ/(λC)))
//
// No page is left alone.
func lambdaCrawl(change, importance, cost, price float64) float64 {
	x := 4 * importance / (price * cost * change)
	return change / 2 * x / (1 + math.Sqrt(1+x)) // without a difference of numbers that are alike
}

// azar is the rule of Azar, Horvitz, Lubetzky, Peres and Shahaf, "Tractable near-optimal
// policies for crawling", PNAS 115(32), 2018, for crawls at random times: they maximise
// Σ μρ/(ρ + Δ), so that
//
//	μΔ/(ρ + Δ)² = λC,   ρ = √(μΔ/(λC)) − Δ where that is above 0
func azar(change, importance, cost, price float64) float64 {
	return max(0, math.Sqrt(importance*change/(price*cost))-change)
}

// solveRates returns the rates of a rule, at the price at which they cost the budget.
func solveRates(rule rateRule, change []float64, t env.Terms) []float64 {
	rate := make([]float64, len(change))
	spent := func(price float64) (cost float64) {
		for i, delta := range change {
			if rate[i] = 0; t.Affordable(i) {
				rate[i] = rule(delta, importanceOf(t, i), t.Costs[i], price)
			}
			cost += t.Costs[i] * rate[i]
		}
		return cost
	}
	lo, hi := -200., 200. // of ln λ
	for range 60 {
		if mid := (lo + hi) / 2; spent(math.Exp(mid)) > t.Budget {
			lo = mid
		} else {
			hi = mid
		}
	}
	spent(math.Exp(hi))
	return rate
}

func importanceOf(t env.Terms, i int) float64 {
	if t.Importance == nil {
		return 1
	}
	return t.Importance[i]
}

// evenly ranks the pages that are to be crawled at rates, evenly spaced: by the share of their
// interval that has passed.
func evenly(key, rate []float64, o *env.Online) {
	for i, r := range rate {
		if key[i] = negInf; r > 0 {
			key[i] = r * float64(o.Age(i))
		}
	}
}

// NewLambdaCrawl crawls at the rates of LambdaCrawl, with known rates of change. The paper's
// crawls are at random times; here they are spaced evenly, which keeps pages fresher.
func NewLambdaCrawl(in env.Instance) env.Policy[env.Model] {
	t := in.Pages().Terms()
	rate := solveRates(lambdaCrawl, changesOf(in), t)
	return NewByIndex(t, func(key []float64, o *env.Model) { evenly(key, rate, &o.Online) })
}

func changesOf(in env.Instance) (change []float64) {
	for _, s := range in.Sources {
		change = append(change, s.Decay)
	}
	return change
}

// NewGreedyNCIS crawls by the value of a crawl of Busa-Fekete et al., "A scalable crawling
// algorithm utilizing noisy change-indicating signals", WWW 2025: with α = (1 − r)Δ changes
// without a ping, γ = rΔ + f pings per epoch, and β = ln(γ/f)/α epochs by which a ping makes the
// copy older, a page is crawled when its age and pings make ι epochs. Until then its copy is
// fresh for w(ι) epochs in the mean, of ψ(ι):
//
//	V(ι) = μ(w(ι) − e^(−αι)ψ(ι))
//	ψ(ι) = Σₖ P(k + 1, γ(ι − kβ))/γ
//	w(ι) = Σₖ fᵏ/(α + γ)^(k+1)·P(k + 1, (α + γ)(ι − kβ))
//
// over k ≥ 0 with kβ < ι, where P is the regularised lower incomplete gamma function. It knows
// all parameters. Without pings V is Whittle's index in continuous time,
//
//	V(ι) = μ/Δ·(1 − e^(−αι)(1 + αι)),
//
// to which it tends where ever more pings are false. It stands for V where more than 100 are for each
// change, as the sum has a term for each ping: there both differ by .4 % of the greatest V at most.
func NewGreedyNCIS(in env.Instance) env.Policy[env.Model] {
	values := make([]crawlValue, len(in.Sources))
	for i, s := range in.Sources {
		values[i] = newCrawlValue(s)
	}
	pings := make([]int, len(in.Sources))
	last := slices.Repeat([]int{-1}, len(in.Sources))
	return NewByIndex(in.Terms(), func(key []float64, o *env.Model) {
		for i := range key {
			if o.Last[i] != last[i] {
				pings[i], last[i] = 0, o.Last[i]
			}
		}
		for _, i := range o.Pings {
			pings[i]++
		}
		for i := range key {
			v := &values[i]
			age := float64(o.Age(i))
			if pings[i] > 0 {
				age += v.ping * float64(pings[i])
			}
			key[i] = v.at(age) / in.Sources[i].Cost
		}
	})
}

// crawlValue is V of a page, in a table over the cube root of ι.
type crawlValue struct {
	ping  float64 // β, epochs
	far   float64 // ι at the end of the table
	value [257]float64
}

const (
	leastUnseen = 1e-6 // of the changes, that α is above 0
	farthest    = 30   // αι at the end of the table
	mostFalse   = 100  // false pings to a change, from which on one tells next to nothing
)

func newCrawlValue(s env.Source) (v crawlValue) {
	alpha := max(1-s.Recall, leastUnseen) * s.Decay
	gamma := s.Recall*s.Decay + s.False
	v.ping, v.far = math.Log(gamma/s.False)/alpha, farthest/alpha
	if gamma > 0 && s.False <= mostFalse*s.Decay { // pings come sooner; of many false ones it takes more
		v.far = min(v.far, (farthest/gamma+farthest*min(v.ping, 1/alpha))*max(1, s.False/s.Decay))
	}
	for k := range v.value {
		x := float64(k) / float64(len(v.value)-1)
		v.value[k] = v.exact(s, alpha, gamma, x*x*x*v.far)
	}
	return v
}

// exact returns V(ι).
func (v *crawlValue) exact(s env.Source, alpha, gamma, iota float64) float64 {
	mu := s.HarvestRate(0)
	if gamma == 0 || s.False > mostFalse*s.Decay {
		return mu / s.Decay * (1 - math.Exp(-alpha*iota)*(1+alpha*iota))
	}
	var w, psi float64
	share := 1 / (alpha + gamma)
	for k := 0; ; k++ {
		left := iota - float64(k)*v.ping
		if k > 0 && !(left > 0) || iota == 0 {
			break
		}
		if k == 0 {
			left = iota
		}
		wait := mathext.GammaIncReg(float64(k+1), gamma*left) / gamma
		psi += wait
		w += share * mathext.GammaIncReg(float64(k+1), (alpha+gamma)*left)
		if share *= s.False / (alpha + gamma); wait < 1e-9*psi {
			break
		}
	}
	return mu * (w - math.Exp(-alpha*iota)*psi)
}

// at returns V(ι) by the table.
func (v *crawlValue) at(iota float64) float64 {
	last := len(v.value) - 1
	x := math.Cbrt(iota/v.far) * float64(last)
	if !(x < float64(last)) {
		return v.value[last]
	}
	k := int(x)
	// In ι the table is linear between its points.
	a, b := math.Pow(float64(k), 3), math.Pow(float64(k+1), 3)
	return v.value[k] + (x*x*x-a)/(b-a)*(v.value[k+1]-v.value[k])
}

// ChangeRates are the settings of rivals that estimate rates of change.
type ChangeRates struct {
	// Estimator is one of naive, cho, lln, sa and mle, see [ChangeRates.Validate].
	Estimator string `toml:"estimator"`
}

// changeRates are the estimators, of n cycles in T epochs of which X ended with a change, at p =
// n/T crawls per epoch.
var changeRates = map[string]func(p *pageBits) float64{
	// X/T: changes that were seen, per epoch.
	"naive": func(p *pageBits) float64 { return p.changed / p.epochs },
	// Cho and Garcia-Molina, "Estimating frequency of change", ACM TOIT 3(3), 2003, section 4.2:
	// −p ln((n − X + ½)/(n + ½)), for cycles of one length.
	"cho": func(p *pageBits) float64 {
		return -p.n / p.epochs * math.Log((p.n-p.changed+.5)/(p.n+.5))
	},
	// Avrachenkov, Patil and Thoppe, "Online algorithms for estimating change rates of web
	// pages", Performance Evaluation 153, 2022, the law of large numbers: pX/(n + 1 − X), for
	// crawls at random times.
	"lln": func(p *pageBits) float64 { return p.n / p.epochs * p.changed / (p.n + 1 - p.changed) },
	// The same, stochastic approximation: y ← y + η(I(y + p) − y), with the bit I of each crawl and
	// η = (k + 1)^(−3/4).
	"sa": func(p *pageBits) float64 { return p.y },
	// The maximum of the likelihood, Σ s/(e^(Δs) − 1) over the cycles with a change = the epochs
	// of the others (Cho and Garcia-Molina, section 4.3; LambdaCrawl, Equation 10, and "Learning
	// to crawl" use it), with half a cycle of each kind, of the mean length, besides.
	"mle": (*pageBits).likely,
}

// ChangeEstimators returns a setting for each estimator.
func ChangeEstimators() (all []ChangeRates) {
	for _, name := range slices.Sorted(maps.Keys(changeRates)) {
		all = append(all, ChangeRates{name})
	}
	return all
}

// Validate reports an estimator that is not one.
func (c *ChangeRates) Validate() error {
	if changeRates[c.Estimator] == nil {
		return fmt.Errorf("estimator is %.40q; allowed are %s", c.Estimator,
			strings.Join(slices.Sorted(maps.Keys(changeRates)), ", "))
	}
	return nil
}

// pageBits is what the crawls of one page have shown.
type pageBits struct {
	n, changed, epochs float64
	same               float64     // epochs of the cycles without a change
	y                  float64     // of the stochastic approximation
	count, sum         [12]float64 // cycles with a change by the binary logarithm of s, and Σs
}

func (p *pageBits) add(c env.Crawled) {
	s := float64(c.Age)
	p.n++
	p.epochs += s
	bit := 0.
	if c.Changed {
		bit = 1
		p.changed++
		k := min(bits.Len(uint(c.Age))-1, len(p.count)-1)
		p.count[k]++
		p.sum[k] += s
	} else {
		p.same += s
	}
	rate := p.n / p.epochs
	if p.n == 1 {
		p.y = rate // a change for every crawl, at first
	}
	p.y += math.Pow(p.n+1, -.75) * (bit*(p.y+rate) - p.y)
}

func (p *pageBits) likely() float64 {
	mean := p.epochs / p.n
	excess := func(delta float64) float64 {
		e := .5*mean/math.Expm1(delta*mean) - p.same - .5*mean
		for k, n := range p.count {
			if n > 0 {
				s := p.sum[k] / n
				e += n * s / math.Expm1(delta*s)
			}
		}
		return e
	}
	lo, hi := math.Log(1e-9/mean), math.Log(50/mean)
	for range 40 {
		if mid := (lo + hi) / 2; excess(math.Exp(mid)) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp(hi)
}

// ratesLearner estimates rates of change.
type ratesLearner struct {
	byIndex[env.Online]
	terms    env.Terms
	estimate func(p *pageBits) float64
	pages    []pageBits
	change   []float64
}

func newRatesLearner(t env.Terms, c ChangeRates) (*ratesLearner, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := len(t.Costs)
	return &ratesLearner{
		byIndex: byIndex[env.Online]{sel: NewSelector(t.Costs, t.Budget), key: make([]float64, n)},
		terms:   t, estimate: changeRates[c.Estimator], pages: make([]pageBits, n),
		change: slices.Repeat([]float64{1 / t.Round()}, n),
	}, nil
}

// Update implements env.Learner. A page is taken to change half a time in all of the epochs
// that were seen of it, at least: it would never be crawled again.
func (l *ratesLearner) Update(crawls []env.Crawled, _ *env.Online) {
	for _, c := range crawls {
		p := &l.pages[c.Source]
		p.add(c)
		l.change[c.Source] = max(l.estimate(p), .5/p.epochs)
	}
}

// NewEstimatedWhittle crawls by Whittle's index with a rate of change that an estimator plugs
// in, and pages that were not crawled yet first.
func NewEstimatedWhittle(t env.Terms, c ChangeRates) (env.Policy[env.Online], error) {
	l, err := newRatesLearner(t, c)
	if err != nil {
		return nil, err
	}
	l.fill = func(key []float64, o *env.Online) {
		for i := range key {
			if key[i] = math.Inf(1); o.Last[i] >= 0 {
				key[i] = index.Page(l.change[i], importanceOf(t, i), float64(o.Age(i))) / t.Costs[i]
			}
		}
	}
	return l, nil
}

// resolved is how many epochs pass between two solutions of learned rates.
const resolved = 25

// NewLearnedLambdaCrawl crawls at the rates of LambdaCrawl for estimated rates of change, solved
// anew every 25 epochs (LambdaLearnAndCrawl of the paper). Its rates are above 0, so that it
// learns of each page.
func NewLearnedLambdaCrawl(t env.Terms, c ChangeRates) (env.Policy[env.Online], error) {
	l, err := newRatesLearner(t, c)
	if err != nil {
		return nil, err
	}
	var rate []float64
	l.fill = func(key []float64, o *env.Online) {
		if o.Epoch%resolved == 0 || rate == nil {
			rate = solveRates(lambdaCrawl, l.change, t)
		}
		evenly(key, rate, o)
	}
	return l, nil
}

// ExploreThenCommit are the settings of [NewExploreThenCommit].
type ExploreThenCommit struct {
	ChangeRates
	Rounds float64 `toml:"rounds"` // in which all pages are crawled in turn
}

// Validate reports the first setting that is out of its range.
func (e *ExploreThenCommit) Validate() error {
	if !(e.Rounds >= 1) || math.IsInf(e.Rounds, 1) {
		return fmt.Errorf("rounds is %v; allowed is a finite number of 1 or more", e.Rounds)
	}
	return e.ChangeRates.Validate()
}

// NewExploreThenCommit is explore-and-commit of Upadhyay, Busa-Fekete, Kotłowski, Pál and
// Szörényi, "Learning to crawl", AAAI 2020: all pages are crawled equally often for some time,
// and from then on at the rates of Azar et al. that are optimal for what was estimated. The
// paper's crawls are at random times; here they are spaced evenly, which keeps pages fresher.
func NewExploreThenCommit(t env.Terms, e ExploreThenCommit) (env.Policy[env.Online], error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	l, err := newRatesLearner(t, e.ChangeRates)
	if err != nil {
		return nil, err
	}
	var rate []float64
	l.fill = func(key []float64, o *env.Online) {
		switch {
		case float64(o.Epoch) < e.Rounds*t.Round():
			for i := range key {
				key[i] = float64(o.Age(i))
			}
			return
		case rate == nil:
			rate = solveRates(azar, l.change, t)
		}
		evenly(key, rate, o)
	}
	return l, nil
}
