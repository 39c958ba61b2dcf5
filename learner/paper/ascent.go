package paper

// ascend moves q after a step to next, X(n+1), where the critic's value is v. a is
// a(n).
func (p *Learner) ascend(next []float64, v, a float64) {
	switch p.set.Gradient {
	case "expected":
		p.expected(next, v, a)
	case "relative":
		p.relative(next, v, a)
	default:
		p.sampled(v, a)
	}
}

// sampled is (9),
//
//	q(n+1) = q(n) + a(n) ∇ log p(X(n+1)|X(n)) · V(X(n+1)),   V = Σ r(m) φ_m,
//
// with the score (8), in which the sign of each term is that of the action:
//
//	∂ log p/∂q_j = κ y′(Tᵢ) ψ_j (fᵢ − νᵢ),   ψ = (1, S, S²)
//
// It is the gradient of the average reward only if the reward does not depend on
// the action.
func (p *Learner) sampled(v, a float64) {
	for i, crawled := range p.crawled {
		score := p.f[i] // f − ν
		if crawled {
			score = -p.g[i]
		}
		p.move(i, a*p.kappa*p.y.slope(i, p.threshold[i])*score*v)
	}
}

// expected takes the sum over both next states of each source, and the reward:
//
//	∂β/∂q_j = E[−κ y′(Tᵢ) ψ_j fᵢ(1 − fᵢ) Aᵢ]
//
// with the advantage Aᵢ of a crawl. It is (7) with the term Σ_y ∇p(y|x) r(x, y)
// that (7) leaves out.
func (p *Learner) expected(next []float64, v, a float64) {
	for i := range p.crawled {
		p.move(i, -a*p.kappa*p.y.slope(i, p.threshold[i])*p.f[i]*p.g[i]*p.advantage(i, next, v))
	}
}

// move takes q_j ← q_j + h ψ_j.
func (p *Learner) move(i int, h float64) {
	s := p.sum - p.x[i]
	q := &p.q[i]
	q[0] += h
	q[1] += h * s
	q[2] += h * s * s
}

// relative takes a step in y(T) that has no unit,
//
//	y(Tᵢ) ← y(Tᵢ) − a(n) |f*ᵢ − fᵢ| clip(Aᵢ/(xᵢ + λCᵢ), ±1)
//
// and carries it to q along ψ = (1, S/S*, S²/S*²), S* the sum of the others'
// ceilings. f* is 1 if a crawl pays and 0 if not; unlike f(1 − f) the distance to
// it does not vanish at a saturated logit. Sign and zero are those of expected.
func (p *Learner) relative(next []float64, v, a float64) {
	for i := range p.crawled {
		adv := p.advantage(i, next, v)
		weight := p.g[i] // f* = 1
		if adv < 0 {
			weight = p.f[i]
		}
		unit := p.x[i] + p.price.lambda*p.costs[i]
		if !(unit > 0) {
			continue // no content
		}
		step := a * weight * max(-1, min(adv/unit, 1))
		y := p.y.of(i, p.threshold[i]) - step
		t := min(max(p.y.inverse(i, y), p.lo[i]), p.hi[i])

		s, all := p.sum-p.x[i], p.ceilings-p.hi[i]
		z := 0.0
		if all > 0 {
			z = s / all
		}
		h := (t - p.raw[i]) / (1 + z*z + z*z*z*z)
		q := &p.q[i]
		q[0] += h
		if all > 0 {
			q[1] += h * z / all
			q[2] += h * z * z / (all * all)
		}
	}
}

// advantage returns what a crawl of source i brings beyond none, the other
// sources at what they did:
//
//	Aᵢ = xᵢ − λCᵢ + V(X′ | i crawled) − V(X′ | i not crawled),
//
// without xᵢ − λCᵢ where the reward does not depend on the action. v is V at
// next. Where V is that of the policy, Aᵢ = 0 is the Whittle condition at λ.
func (p *Learner) advantage(i int, next []float64, v float64) float64 {
	was := next[i]
	if p.crawled[i] {
		next[i] = p.factor[i]*p.x[i] + p.lo[i] // αx + u
	} else {
		next[i] = p.lo[i]
	}
	a := p.value(next) - v
	next[i] = was
	if p.crawled[i] {
		a = -a
	}
	if p.set.Reward == "crawled" {
		a += p.x[i] - p.price.lambda*p.costs[i]
	}
	return a
}
