package index

import (
	"math"

	"ephemera/env"
)

// Whittle returns the exact Whittle index γ(x) of Theorem 1 (TCNS; (4)-(5) of
// Allerton) at any state x ≥ 0, in interest per budget unit,
//
//	γ = (1/C) [η((1−α)x − u) + u(1 − α^η)/(1−α)],   η = ⌈log_α⁺((u − (1−α)x)/u)⌉
//
// For other laws the state does not say all, and the index is that of the least
// age at which the mean state is x or more, or, under delay, where states are costs
// and below 0, x or less.
//
// Crawls that fail are left out.
//
// At x ≥ u* the printed log⁺ makes η = 0 and the index 0. The dynamic
// programming equation gives γ = x/C there, which is also the limit η → ∞, and
// that is what is returned. See [WhittleLiteral] for the printed form.
func Whittle(s env.Source, x float64) float64 {
	s.Fails = 0
	if s.Unbounded() {
		c := NewCurve(s)
		return c.Index(FirstAge(0, Never, func(age int) bool { return c.At(age) <= x })) / s.Cost
	}
	if x < s.Ceiling() && !s.Exponential() {
		c := NewCurve(s.MeanDynamics())
		return c.Index(FirstAge(0, Never, func(age int) bool { return c.At(age) >= x })) / s.Cost
	}
	// The logarithm is log_α(1 − x/u*), the age at which the mean state is x.
	eta := math.Ceil(-math.Log1p(-x/s.Ceiling()) / s.Decay)
	if x >= s.Ceiling() || math.IsInf(eta, 1) {
		return x / s.Cost
	}
	loss := -math.Expm1(-s.Decay)
	return (eta*(loss*x-s.Gain()) - s.Ceiling()*math.Expm1(-s.Decay*eta)) / s.Cost
}

// WhittleLiteral is Theorem 1 as printed: 0 at x ≥ u*. It is there to
// reproduce published figures.
func WhittleLiteral(s env.Source, x float64) float64 {
	if x >= s.Ceiling() {
		return 0
	}
	return Whittle(s, x)
}

// WhittleAtAge returns the index at an age, for any law of interest; see
// [Curve.Index].
func WhittleAtAge(s env.Source, age int) float64 {
	c := NewCurve(s)
	return c.Index(age) / c.Cost
}

// atAge returns Cγ on the state x = u*(1 − α^s) of age s, where η = s, with
// loss = 1 − α; in interest:
//
//	Cγ = s((1−α)x − u) + x = u*[1 − α^s − s(1−α)α^s]
func atAge(ceil, decay, loss, age float64) float64 {
	y := decay * age
	if y > 0.5 {
		return ceil * (1 - math.Exp(-y)*(1+age*loss))
	}
	m := math.Expm1(-y) // α^s − 1, exact where α^s is near 1
	return ceil * (-m - age*loss*(1+m))
}

// Inverse returns γ⁻¹(λ), the state at which the index reaches a price λ ≥ 0: the
// mean state of the least age whose index does. Where there is none, γ⁻¹(λ) is
// λC, at or above the ceiling. For the exponential law the index is linear
// between the states of ages s − 1 and s,
//
//	Cγ(x) = s((1−α)x − u) + u*(1 − α^s)
//
// and so is its inverse. Crawls that fail are left out.
func Inverse(s env.Source, price float64) float64 {
	s.Fails = 0
	charge, ceil := price*s.Cost, s.Ceiling()
	if price <= 0 {
		return 0
	}
	if charge >= ceil {
		return charge
	}
	c := NewCurve(s.MeanDynamics())
	age := c.Age(charge, 1, Never)
	switch {
	case age == Never:
		return charge
	case !c.plain:
		return c.At(age)
	}
	// u = (1−α)u*
	return math.Max(0, ceil-(c.At(age)-charge)/(float64(age)*c.loss))
}

// Lagrange is the solution of the single source's problem at a price λ, in the
// form in which a crawl is charged: with V(1) = 0,
//
//	V(s) = max(−β + V(s+1), H(s) − λC − β)
type Lagrange struct {
	curve  Curve
	charge float64 // λC, interest per crawl
	beta   float64 // β, interest per epoch
	age    int     // the least age at which a crawl is optimal
}

// NewLagrange solves the problem of a source at a price λ ≥ 0, as if no crawl failed.
func NewLagrange(s env.Source, price float64) Lagrange {
	s.Fails = 0
	c := NewCurve(s)
	l := Lagrange{curve: c, charge: price * s.Cost}
	l.age = c.Age(l.charge, 1, Never)
	l.beta = math.Max(c.Yield(Never, 0), c.Yield(l.age, l.charge))
	return l
}

// AtAge returns the Lagrangian index of Avrachenkov, Borkar and Shah (arXiv
// 2412.12641) at an age, interest per budget unit: what a crawl now is worth
// against a crawl later, when every crawl is charged λ per budget unit,
//
//	(1/C) [H(s) − Cλ − V(s+1)]   with V(1) = 0
//
// Where λ = γ(s) it is 0. The division by C puts sources of unequal cost in the
// order of Theorem 1. V is linear in the age up to the threshold, V(s) = (s−1)β,
// and V(s) = H(s) − λC − β from there on.
func (l *Lagrange) AtAge(age int) float64 {
	c := &l.curve
	if age < l.age {
		return (c.At(age) - l.charge - float64(age)*l.beta) / c.Cost
	}
	return (l.beta - c.rise(age)) / c.Cost
}
