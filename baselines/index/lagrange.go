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

// AtAge returns the Lagrangian index of Avrachenkov, Borkar and Shah (arXiv
// 2412.12641) at the states that the mean dynamics reach, interest per budget
// unit: what a crawl now is worth against a crawl later, when every crawl is
// charged λ per budget unit,
//
//	(1/C) [x − Cλ − β − V(αx + u)]   with V(u) = 0
//
// Where λ = γ(x) it is 0. The division by C puts sources of unequal cost in the
// order of Theorem 1. V is linear in the age below the threshold, V(x(s)) =
// (s−1)β, and linear in x from there on, V(x) = x − λC − β.
func (l *Lagrange) AtAge(age int) float64 {
	if age < l.age {
		return (l.curve.At(age) - l.charge - float64(age)*l.beta) / l.curve.Cost
	}
	return (l.beta - l.curve.rise(age)) / l.curve.Cost
}
