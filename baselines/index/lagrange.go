package index

import (
	"math"

	"ephemera/env"
)

// Lagrange is the solution of the single source's problem at a price λ, in the
// form in which a crawl is charged: with V(u) = 0,
//
//	V(x) = max(−β + V(αx + u), x − λC − β)
type Lagrange struct {
	curve  Curve
	charge float64 // λC, interest per crawl
	beta   float64 // β, interest per epoch
	age    int     // the least age at which a crawl is optimal
}

// NewLagrange solves the problem of a source at a price λ ≥ 0.
func NewLagrange(s env.Source, price float64) Lagrange {
	c := NewCurve(s, MeanDynamics)
	l := Lagrange{curve: c, charge: price * s.Cost}
	l.age = c.Age(l.charge, 1, Never)
	l.beta = math.Max(0, c.Yield(l.age, l.charge))
	return l
}

// value returns V(x), the most that can be had from x up to and with the next
// crawl, β having been paid for every epoch:
//
//	V(x) = maxₖ [u* − αᵏ(u* − x) − λC − (k+1)β]
//
// Below the ceiling the bracket is concave in the number k of epochs that are
// waited, and rises from k to k+1 while αᵏ(1 − α)(u* − x) > β.
func (l *Lagrange) value(s env.Source, x float64) float64 {
	ceil := s.Ceiling()
	if x >= ceil {
		return math.Max(x-l.charge-l.beta, l.never())
	}
	gap := ceil - x
	if l.beta == 0 { // nothing is ever earned, so nothing is ever crawled
		return math.Max(0, x-l.charge)
	}
	k := math.Max(0, math.Ceil(math.Log(-math.Expm1(-s.Decay)*gap/l.beta)/s.Decay))
	return ceil - gap*math.Exp(-s.Decay*k) - l.charge - (k+1)*l.beta
}

// never returns what not crawling again is worth.
func (l *Lagrange) never() float64 {
	if l.beta > 0 {
		return math.Inf(-1)
	}
	return 0
}

// Lagrangian returns the Lagrangian index of Avrachenkov, Borkar and Shah
// (arXiv 2412.12641) at any state x ≥ 0 and a price λ, in interest per budget
// unit:
//
//	(1/C) [x + V(u) − Cλ − V(αx + u)]
//
// This is what a crawl now is worth against a crawl later, when every crawl is
// charged λ per budget unit; at the price λ = γ(x) it is 0. The division by C
// puts sources of unequal cost in the order of Theorem 1.
func Lagrangian(s env.Source, price, x float64) float64 {
	l := NewLagrange(s, price)
	return (x - l.charge - l.value(s, s.Factor()*x+s.Gain())) / s.Cost
}

// AtAge returns the Lagrangian index at the states that the mean dynamics
// reach. There V is linear in the age below the threshold, V(x(s)) = (s−1)β, and
// linear in x from there on, V(x) = x − λC − β.
func (l *Lagrange) AtAge(age int) float64 {
	if age < l.age {
		return (l.curve.At(age) - l.charge - float64(age)*l.beta) / l.curve.Cost
	}
	return (l.beta - l.curve.rise(age)) / l.curve.Cost
}
