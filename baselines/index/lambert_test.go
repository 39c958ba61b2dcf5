package index

import (
	"math"
	"math/big"
	"testing"

	"ephemera/env/envtest"
)

const prec = 400 // bits

// bigExp is e^x by its series after halving the argument, for |x| < 2^20.
func bigExp(x *big.Float) *big.Float {
	const halvings = 40
	y := new(big.Float).SetPrec(prec).SetMantExp(x, -halvings)
	sum, term := big.NewFloat(1).SetPrec(prec), big.NewFloat(1).SetPrec(prec)
	for k := 1; k < 40; k++ {
		term.Mul(term, y).Quo(term, big.NewFloat(float64(k)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigSubLog1p is t − log(1+t), the logarithm by Newton's method on bigExp.
func bigSubLog1p(t float64) float64 {
	x := new(big.Float).SetPrec(prec).SetFloat64(t)
	sum := new(big.Float).SetPrec(prec).Add(x, big.NewFloat(1))
	l := new(big.Float).SetPrec(prec).SetFloat64(math.Log1p(t))
	for range 4 {
		// l ← l + (1+t)e^(−l) − 1
		e := bigExp(new(big.Float).SetPrec(prec).Neg(l))
		l.Add(l, e.Mul(e, sum).Sub(e, big.NewFloat(1)))
	}
	v, _ := x.Sub(x, l).Float64()
	return v
}

// t − log(1+t) keeps its digits down to where it is t²/2 to the last bit, and so
// does its inverse.
func TestLambertInBigNumbers(t *testing.T) {
	for x := 1e-9; x < 1e5; x *= 1.7 {
		want := bigSubLog1p(x)
		envtest.Near(t, "t − log(1+t)", subLog1p(x), want, 2e-15)
		envtest.Near(t, "inverse", lambert(want), x, 4e-15)
	}
	if lambert(0) != 0 || !math.IsInf(lambert(math.Inf(1)), 1) {
		t.Errorf("at the ends %v and %v; want 0 and +Inf", lambert(0), lambert(math.Inf(1)))
	}
}

// It is Lambert's function: W₋₁(−2e⁻²) = −2 and W₋₁(−ln 2/2) = −2 ln 2.
func TestLambertKnownValues(t *testing.T) {
	at := func(z float64) float64 { return -1 - lambert(-1-math.Log(-z)) }
	envtest.Near(t, "W₋₁(−2e⁻²)", at(-2*math.Exp(-2)), -2, 1e-14)
	envtest.Near(t, "W₋₁(−ln 2 / 2)", at(-math.Ln2/2), -2*math.Ln2, 1e-14)
}
