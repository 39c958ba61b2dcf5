package lspe

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// The actor of a source is its threshold θ, an age from 1 on. Under the mean
// dynamics the state rises with the age, so these are the states in [u, u*], u*
// being out of reach: the projection of Allerton, section III. Where the price or
// the law changes an age remains what it is, a state does not.

const half = .5 // the paper's shift of the logit

// The noise L of a cycle is logistic, so a source that is s old and not crawled yet is
// crawled with a chance of which f(s) = 1/(1 + e^(−κ(ln(s + ½) − ln θ))) is the sum:
// p(s) = (f(s) − f(s − 1))/(1 − f(s − 1)). By the policy gradient theorem the average
// reward β = E[X − λC]/S̄ has the derivative
//
//	∂β/∂ln θ = Σ_s (1 − f(s − 1))/S̄ ∂p(s)/∂ln θ A(s)
//	         = −κ/S̄ Σ_s (1 − f(s)) (f(s) − f(s − 1)) A(s)
//	         ≈ −κ²/S̄ ∫ f (1 − f)² A dln s,
//
// A = Q(s, crawl) − Q(s, wait) being what the critic knows. The integral is taken at
// s + ½ = θe^(m/κ), m = −2 … 2.
var (
	scores    = [...]float64{score(-2), score(-1), score(0), score(1), score(2)}
	allScores = floats.Sum(scores[:])
)

// score returns f(1 − f)² at κ(ln(s + ½) − ln θ) = m.
func score(m float64) float64 {
	f := 1 / (1 + math.Exp(-m))
	return f * (1 - f) * (1 - f)
}

// advantage returns ΣwA_X and ΣwA_C of source i, w = f(1 − f)²:
//
//	A_X(s) = h(z) − w_X(z),  A_C(s) = C − w_C(z),  ∂β/∂ln θ = −κ/S̄ (ΣwA_X − λΣwA_C)
func (l *Learner) advantage(i int) (ax, ac float64) {
	s, cost := &l.src[i], l.cost(i)
	kappa := l.slope(i)
	eta, work := s.Mean/float64(s.Span), cost/float64(s.Span)
	wide := math.Exp(1 / kappa)
	reach := s.Theta / (wide * wide) // θe^(m/κ)
	for _, w := range scores {
		z := s.z(max(1, reach-half))
		reach *= wide
		wait, toll := cubic(&s.Wait, z), cubic(&s.Toll, z)
		switch l.set.Critic {
		case "zero": // V = 0: crawling is worth h − λC and waiting nothing
			wait, toll = 0, 0
		case "average": // as right after a crawl
			wait, toll = eta, work
		case "negative":
			wait, toll = 2*eta-wait, 2*work-toll
		}
		ax += w * (s.expected(z) - wait)
		ac += w * (cost - toll)
	}
	return ax, ac
}

// Index returns the learned index of source i at its threshold, in interest per
// budget unit: the price at which the policy gradient is 0,
//
//	W = ΣwA_X/max(ΣwA_C, ΣwC/κ)
func (l *Learner) Index(i int) float64 {
	ax, ac := l.advantage(i)
	return ax / max(ac, allScores*l.cost(i)/l.slope(i))
}

// act takes a step of the policy gradient, in units of its part that the price has:
//
//	ln θ ← Π[ln θ − a(k) max(1, √(θ/R)) clip((W − λ)/max(λ, X̄/10C), 1)]
//
// X̄ being the source's mean harvest, R a round. share is 1 at a crawl and ½ where a
// source wakes without one.
//
// The root keeps sources from being lost. A step that is noise moves ln θ at random,
// and after one to a longer wait the next comes later: with steps of one size θ
// spends time in proportion to itself, most of it at thresholds far beyond all others.
// With steps that grow with √θ no threshold holds it longer than another, and what W
// says decides.
//
// At a price of 0 a crawl costs nothing but the wait that it begins anew. There a longer
// wait needs evidence, and a long one comes back where there is none: W counts as greater
// by two standard errors,
//
//	W ← W + 2σ√(b(k)/2) min(κ, 2θ)√3/πC
//
// those of the slope of a line through harvests of standard deviation σ over ln s: averages of
// step b have the error of 2/b harvests, and the noise of ln s has the deviation π/√3κ. σ is
// in proportion to the mean that is expected, which many empty crawls in a row do not make 0.
//
// Beyond four rounds a longer wait needs evidence, too: an unlucky source would be crawled
// ever more rarely, and few crawls cannot tell that it is worth more. There its curve is
// about flat, and W a mean of harvests, so it counts as
//
//	W ← min(λ, W + σ√b(k)/C)
//
// A source that is worth less is soon known to be. One that is nearly worth its price stays
// at four rounds for long, where it costs little.
//
// Below 1½ a source is crawled at each epoch, unless the noise brings it to a second. There, at a
// price above 0,
//
//	W ← W + X̄/C ln(θ/1½)
//
// so that θ comes to rest where W exceeds λ by as much, down to 1 where it exceeds it by .4 X̄/C. What is
// surely worth a crawl at each epoch has one, and what is less sure shows more of age 2.
func (l *Learner) act(i int, share, mean float64) {
	if l.set.Actor == "off" {
		return
	}
	s := &l.src[i]
	w, price := l.Index(i), l.priced(i, l.price)
	if price > 0 && s.Theta < second {
		w += mean * math.Log(s.Theta/second)
	}
	if price == 0 {
		sigma := mean * math.Sqrt(l.noise(s)*l.b.at(int(s.Cycles))/2)
		w += evidence * sigma * min(l.slope(i), 2*s.Theta) * math.Sqrt(3) / math.Pi
	}
	if price > 0 && w < price && s.Theta > farRounds*l.round {
		err := mean * math.Sqrt(l.variation(s)*l.b.at(int(s.Cycles)))
		w = min(price, w+farEvidence*err)
	}
	excess := clip((w - price) / max(price, priceFloor*mean))
	step := share * l.a.at(int(s.Cycles)) * max(1, math.Sqrt(s.Theta/l.round))
	l.move(i, s.Theta*math.Exp(-step*excess))
}

// mean returns X̄/C, a source's mean harvest per budget unit.
func (l *Learner) mean(i int) float64 {
	s := &l.src[i]
	level, pooled := l.level(s)
	return level * pooled / l.cost(i)
}

// cost returns C of source i, budget units per crawl that succeeds: one that fails costs as much.
func (l *Learner) cost(i int) float64 { return l.costs[i] * (1 + float64(l.src[i].Failed)) }

// second is the threshold beyond which a source is crawled at age 2.
const second = 1 + half

// spends returns what source i spends per epoch at a threshold, C/(θ + m), m being the crawls
// that fail in a cycle, each of which makes it an epoch longer. Below 1½ cycles have one epoch, or by
// the logit's probability two,
//
//	1 + 1/(1 + (1½/θ)¹⁶)
//
// in place of θ, 16θ being the greatest κ.
func (l *Learner) spends(i int, theta float64) float64 {
	if theta < second {
		theta = 1 + 1/(1+math.Pow(second/theta, mostSlope))
	}
	return l.cost(i) / (theta + float64(l.src[i].Failed))
}

// succeeded takes in how many crawls of source i failed before one that succeeded.
func (l *Learner) succeeded(i int) {
	s := &l.src[i]
	if s.FailedNow == 0 && s.Failed == 0 { // nor is the plan rounded where no crawl ever failed
		return
	}
	planned := s.Cycles > 0 && !l.cold
	if planned {
		l.planned(i, s.Theta, -1)
	}
	s.Failed += (float32(s.FailedNow) - s.Failed) / float32(min(float64(s.Cycles+2), failedMemory))
	s.FailedNow = 0
	if planned {
		l.planned(i, s.Theta, 1)
	}
}

// planned takes what source i spends at a threshold into the plan, or out of it by −1.
func (l *Learner) planned(i int, theta, by float64) {
	spends := l.spends(i, theta)
	l.plan += by * spends
	if at := l.at(i); at != nil {
		at.Plan += by * spends / l.costs[i]
	}
}

// move sets θ within its bounds.
func (l *Learner) move(i int, theta float64) {
	s := &l.src[i]
	if last := float64(s.LastTheta); last > 0 {
		theta = min(max(theta, last/maxThetaStep), last*maxThetaStep)
	}
	theta = min(max(1, theta), l.most())
	if s.Theta > 0 {
		l.planned(i, s.Theta, -1)
	}
	s.Theta = theta
	l.planned(i, theta, 1)
	s.measure()
}

// most returns the greatest threshold, in epochs.
func (l *Learner) most() float64 {
	return max(mostRounds*l.round, mostShare*float64(l.epoch-l.changed))
}

func clip(v float64) float64 { return max(-1, min(1, v)) }

// slope returns κ of source i,
//
//	κ = min(KappaMax, Kappa √(1 + kμ/KappaOver), 16θ),  μ = min(1, .3 max(λC, X̄/10)/σ),
//
// σ being the standard deviation of its harvests: the less a harvest tells of the
// price, the longer the noise varies the ages of crawls, whose harvests show the slope
// of the curve. Where crawls are free, 10θ in place of 16θ: only by the noise is a source seen
// that would be worth more if it were not crawled at each epoch.
func (l *Learner) slope(i int) float64 {
	s, signalToNoise := &l.src[i], 1.
	if mean := s.Mean; s.Cycles > int32(judged) && s.Dispersion*mean > 0 {
		charge := l.priced(i, l.price) * l.cost(i)
		signalToNoise = min(1, signalScale*max(charge, priceFloor*mean)/math.Sqrt(s.Dispersion*mean))
	}
	most := mostSlope
	if l.price == 0 {
		most = freeSlope
	}
	return min(l.set.slope(float64(s.Cycles)*signalToNoise), most*s.Theta)
}

// draw draws the noise L of a source's next cycle, logistic, so that it is
// crawled at age s with the logit's probability,
//
//	P(κ(ln(s + ½) − ln θ) + L > 0) = 1/(1 + e^(−κ(ln(s + ½) − ln θ)))
//
// One draw a cycle leaves as much to learn from as one an epoch.
func (l *Learner) draw(s *Source) {
	u := max(leastQuantile, min(1-leastQuantile, l.rand.Float64()))
	s.Noise = float32(math.Log(u / (1 - u)))
}

// reach returns θe^(−L/κ), the age + ½ at which the source is due.
func (l *Learner) reach(i int, noise float64) float64 {
	return l.src[i].Theta * math.Exp(-noise/l.slope(i))
}

// standing returns how a source stands: beyond its threshold by
//
//	W(s) ≈ λ + max(λ, X̄/C)((s + ½)/reach − 1)
func (l *Learner) standing(i int, noise, mean float64) Waiting {
	return Waiting{l.reach(i, noise), max(l.priced(i, l.price), mean), l.src[i].Last, int32(i)}
}
