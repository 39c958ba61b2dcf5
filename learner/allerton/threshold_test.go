package allerton

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"pgregory.net/rapid"
)

// TestThresholdParametrisation: "T_i(x_{−i}) = q_0 + q_1 Σ x_k + q_2 (Σ x_k)²"
// (Allerton, section V, with the index of the square put right).
func TestThresholdParametrisation(t *testing.T) {
	th := Thresholds{Kappa: 2, Shift: .5, Lo: []float64{-1e9}, Hi: []float64{1e9}, Q: [][3]float64{{3, 5, 7}}}
	if got, binds := th.At(0, 11); got != 3+5*11+7*121 || binds {
		t.Errorf("threshold %v, binds %v", got, binds)
	}
	// f = e^{κ(x − T − 0.5)}/(1 + e^{κ(x − T − 0.5)}) (section III)
	if l, _ := th.Exponent(0, 906, 11); l != 2*(906-905-.5) {
		t.Errorf("exponent %v", l)
	}
}

// TestProjection: "we project the value of the thresholds on the intervals
// [u_i, u_i/(1 − α_i)]" (section V).
func TestProjection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Float64Range(-10, 10).Draw(t, "lo")
		hi := lo + rapid.Float64Range(0, 10).Draw(t, "width")
		wild := rapid.OneOf(rapid.Float64Range(-20, 20), rapid.Float64())
		q := [3]float64{wild.Draw(t, "q0"), wild.Draw(t, "q1"), wild.Draw(t, "q2")}
		s := rapid.Float64Range(0, 100).Draw(t, "sum")
		th := Thresholds{Kappa: 1, Lo: []float64{lo}, Hi: []float64{hi}, Q: [][3]float64{q}}
		got, binds := th.At(0, s)
		if !(got >= lo && got <= hi) {
			t.Fatalf("threshold %v is outside [%v, %v]", got, lo, hi)
		}
		raw := q[0] + (q[1]+q[2]*s)*s
		if inside := raw >= lo && raw <= hi; inside == binds || inside && got != raw {
			t.Fatalf("threshold %v, binds %v, for %v in [%v, %v]", got, binds, raw, lo, hi)
		}
		if raw < lo && got != lo || raw > hi && got != hi {
			t.Fatalf("threshold %v for %v in [%v, %v]", got, raw, lo, hi)
		}
	})
}

func TestLogit(t *testing.T) {
	for l := -800.0; l <= 800; l += .37 {
		f, g := Logit(l)
		// The reference takes the exponent that cannot overflow.
		wantF, wantG := math.Exp(-math.Log1p(math.Exp(-l))), math.Exp(-math.Log1p(math.Exp(l)))
		if math.Abs(f-wantF) > 1e-14*wantF+1e-17 || math.Abs(g-wantG) > 1e-14*wantG+1e-17 || f < 0 || g < 0 || f > 1 || g > 1 {
			t.Fatalf("at %v: %v and %v; want %v and %v", l, f, g, wantF, wantG)
		}
		if math.Abs(f+g-1) > 1e-15 {
			t.Fatalf("at %v: %v + %v is not 1", l, f, g)
		}
	}
	for _, l := range []float64{math.Inf(1), math.MaxFloat64} {
		if f, g := Logit(l); f != 1 || g != 0 {
			t.Errorf("at %v: %v, %v", l, f, g)
		}
		if f, g := Logit(-l); f != 0 || g != 1 {
			t.Errorf("at %v: %v, %v", -l, f, g)
		}
	}
}

// TestScore holds (8) against finite differences of log p, where
// log p = −log(1 + e^{∓l}) for a source that is crawled or not.
func TestScore(t *testing.T) {
	logP := func(l float64, crawled bool) float64 {
		if crawled {
			l = -l
		}
		if l > 0 {
			return -l - math.Log1p(math.Exp(-l))
		}
		return -math.Log1p(math.Exp(l))
	}
	const s = 1.7 // Σ of the others
	psi := [3]float64{1, s, s * s}
	for _, kappa := range []float64{.3, 2, 11} {
		for _, l := range []float64{-700, -60, -39, -12, -3, -.5, 0, .5, 3, 12, 39, 60, 700} {
			for _, crawled := range []bool{false, true} {
				th := Thresholds{Kappa: kappa, Shift: .5, Lo: []float64{-1e6}, Hi: []float64{1e6}, Q: [][3]float64{{.3, -.2, .1}}}
				threshold, _ := th.At(0, s)
				x := threshold + .5 + l/kappa
				got, _ := th.Exponent(0, x, s)
				f, g := Logit(got)
				score := th.Score(f, g, crawled)
				want := fd.Gradient(nil, func(q []float64) float64 {
					th.Q[0] = [3]float64(q)
					l, _ := th.Exponent(0, x, s)
					return logP(l, crawled)
				}, []float64{.3, -.2, .1}, &fd.Settings{Formula: fd.Central})
				for j := range psi {
					if math.Abs(score*psi[j]-want[j]) > 2e-6*kappa*(1+math.Abs(l)) {
						t.Errorf("κ = %v, l = %v, crawled %v: ∂/∂q_%d is %v; finite differences give %v", kappa, l, crawled, j, score*psi[j], want[j])
					}
				}
			}
		}
	}
}
