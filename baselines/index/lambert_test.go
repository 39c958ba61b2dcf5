package index

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"ephemera/env/envtest"
)

// bigExp is e^x by its series after halving the argument, for |x| < 2^20.
func bigExp(x *big.Float) *big.Float {
	const prec, halvings = 400, 40
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

// bisectW is W₋₁(z) by bisection of w e^w in 400 bits, where no cancellation
// near the branch point matters.
func bisectW(z float64) float64 {
	const prec = 400
	target := new(big.Float).SetPrec(prec).SetFloat64(z)
	lo, hi := big.NewFloat(-800).SetPrec(prec), big.NewFloat(-1).SetPrec(prec)
	for range 140 {
		mid := new(big.Float).SetPrec(prec).Add(lo, hi)
		mid.SetMantExp(mid, -1)
		// w e^w falls on (−∞, −1].
		if f := new(big.Float).SetPrec(prec).Mul(mid, bigExp(mid)); f.Cmp(target) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	w, _ := hi.Float64()
	return w
}

func TestLambertAgainstBisection(t *testing.T) {
	var zs []float64
	for e := -0.1; e > -300; e *= 1.5 {
		zs = append(zs, -math.Pow(10, e)/math.E)
	}
	for d := 1e-1; d > 1e-17; d /= 7 {
		zs = append(zs, -(1-d)/math.E)
	}
	z := -1 / math.E
	for range 5 { // the very neighbours of the branch point
		z = math.Nextafter(z, 0)
		zs = append(zs, z)
	}
	for _, z := range zs {
		envtest.Near(t, "W₋₁", lambertWm1(z), bisectW(z), 1e-14)
	}
}

func TestLambertKnownValues(t *testing.T) {
	envtest.Near(t, "W₋₁(−2e⁻²)", lambertWm1(-2*math.Exp(-2)), -2, 1e-14)
	envtest.Near(t, "W₋₁(−ln 2 / 2)", lambertWm1(-math.Ln2/2), -2*math.Ln2, 1e-14)
	if w := lambertWm1(-1 / math.E); math.Abs(w+1) > 2e-8 {
		t.Errorf("W₋₁ at the branch point is %v, want −1", w)
	}
	envtest.Near(t, "W₋₁ next to 0", lambertWm1(-1e-305), bisectW(-1e-305), 1e-14)
	for _, z := range []float64{0, 0.1, -0.4, math.NaN(), math.Inf(-1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("W₋₁(%v) did not panic", z)
				}
			}()
			lambertWm1(z)
		}()
	}
}

// t − log(1+t) keeps its digits down to where it is t²/2 to the last bit.
func TestSubLog1p(t *testing.T) {
	for x := 1e-9; x < 100; x *= 1.7 {
		// e^(x − log(1+x)) (1 + x) = e^x, in 400 bits: compare L with the
		// bisection through W: W₋₁ of −e^(−1−L) is −1 − x.
		bx := new(big.Float).SetPrec(400).SetFloat64(x)
		one := big.NewFloat(1).SetPrec(400)
		// log(1+x) by Newton from the double.
		l := new(big.Float).SetPrec(400).SetFloat64(math.Log1p(x))
		sum := new(big.Float).SetPrec(400).Add(one, bx)
		for range 4 {
			e := bigExp(new(big.Float).SetPrec(400).Neg(l))
			e.Mul(e, sum).Sub(e, one)
			l.Add(l, e)
		}
		want, _ := new(big.Float).SetPrec(400).Sub(bx, l).Float64()
		envtest.Near(t, "t − log(1+t)", subLog1p(x), want, 2e-15)
	}
}

// lambertWm1 returns W₋₁(z), the lower real branch of w e^w = z, for
// −1/e ≤ z < 0; it falls from −1 to −∞. It panics elsewhere.
//
// With w = −1 − t the equation reads t − log(1+t) = L with L = −1 − log(−z),
// which has no flat place at the branch point: L itself holds the distance.
func lambertWm1(z float64) float64 {
	if !(z < 0) {
		panic(fmt.Sprintf("baselines: W₋₁ of %v; allowed is −1/e to 0", z))
	}
	const (
		eHi = math.E
		eLo = 1.4456468917292502e-16 // e − eHi
	)
	// q = 1 + ez, to the last bits although the terms nearly cancel.
	q := math.FMA(z, eHi, 1) + z*eLo
	switch {
	case q < -1e-15:
		panic(fmt.Sprintf("baselines: W₋₁ of %v; allowed is −1/e to 0", z))
	case q <= 0: // −1/e itself, rounded
		return -1
	case q < 0.5:
		return -1 - lambert(-math.Log1p(-q))
	}
	return -1 - lambert(-1-math.Log(-z))
}
