package index

import (
	"math"

	"ephemera/env"
)

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

// NewLagrange solves the problem of a source at a price λ ≥ 0.
func NewLagrange(s env.Source, price float64) Lagrange {
	c := NewCurve(s)
	l := Lagrange{curve: c, charge: price * s.Cost}
	l.age = c.Age(l.charge, 1, Never)
	l.beta = math.Max(0, c.Yield(l.age, l.charge))
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
