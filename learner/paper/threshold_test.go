package paper

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"pgregory.net/rapid"

	"ephemera/env"
)

// TestThresholdParametrisation: "T_i(x_{−i}) = q_0 + q_1 Σ x_k + q_2 (Σ x_k)²"
// (Allerton, section V, with the index of the square put right).
func TestThresholdParametrisation(t *testing.T) {
	th := &thresholds{lo: []float64{-1e9}, hi: []float64{1e9}, q: [][3]float64{{3, 5, 7}}}
	if got, raw := th.at(0, 11); got != 3+5*11+7*121 || raw != got {
		t.Errorf("threshold %v of %v", got, raw)
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
		th := &thresholds{lo: []float64{lo}, hi: []float64{hi}, q: [][3]float64{q}}
		got, _ := th.at(0, s)
		if !(got >= lo && got <= hi) {
			t.Fatalf("threshold %v is outside [%v, %v]", got, lo, hi)
		}
		raw := q[0] + (q[1]+q[2]*s)*s
		if raw >= lo && raw <= hi && got != raw || raw < lo && got != lo || raw > hi && got != hi {
			t.Fatalf("threshold %v for %v in [%v, %v]", got, raw, lo, hi)
		}
	})
}

// TestCoordinates: y is inverted by its inverse, its slope is its derivative, and
// it grows from 0 or u by its width. The age of a mean state is the number of
// epochs since the last crawl.
func TestCoordinates(t *testing.T) {
	in := env.Paper(1)
	th := newThresholds(in, .5)
	for _, margin := range []string{"state", "unit", "age"} {
		y := newCoordinate(in, th, margin)
		for i, s := range in.Sources {
			for k := 1; k < 20; k++ {
				x := s.Gain() + float64(k)/20*(s.Ceiling()-s.Gain())
				if got := y.inverse(i, y.of(i, x)); math.Abs(got-x) > 1e-12*x {
					t.Errorf("%s, source %d: %v comes back as %v", margin, i+1, x, got)
				}
				reward := func(x float64) float64 { return y.of(i, x) }
				want := fd.Derivative(reward, x, &fd.Settings{Formula: fd.Central})
				if got := y.slope(i, x); math.Abs(got-want) > 1e-6*want {
					t.Errorf("%s, source %d at %v: slope %v; finite differences give %v", margin, i+1, x, got, want)
				}
			}
			width := map[string]float64{"state": s.Ceiling() - s.Gain(), "unit": 1, "age": math.Log(oldest / s.Decay)}
			if got, want := y.of(i, s.Ceiling())-y.of(i, s.Gain()), width[margin]; math.Abs(got-want) > 1e-12*want {
				t.Errorf("%s, source %d: y grows by %v from u to u*; its width is %v", margin, i+1, got, want)
			}
			for age := 1; margin == "age" && age < 12; age++ {
				if got := y.of(i, s.MeanState(age)); math.Abs(got-math.Log(float64(age))) > 1e-9 {
					t.Errorf("source %d at age %d: y is %v", i+1, age, got)
				}
			}
		}
	}
}

func TestLogit(t *testing.T) {
	for l := -800.0; l <= 800; l += .37 {
		f, g := logit(l)
		// The reference takes the exponent that cannot overflow.
		wantF, wantG := math.Exp(-math.Log1p(math.Exp(-l))), math.Exp(-math.Log1p(math.Exp(l)))
		if math.Abs(f-wantF) > 1e-14*wantF+1e-17 || math.Abs(g-wantG) > 1e-14*wantG+1e-17 ||
			f < 0 || g < 0 || f > 1 || g > 1 {
			t.Fatalf("at %v: %v and %v; want %v and %v", l, f, g, wantF, wantG)
		}
		if math.Abs(f+g-1) > 1e-15 {
			t.Fatalf("at %v: %v + %v is not 1", l, f, g)
		}
	}
	for _, l := range []float64{math.Inf(1), math.MaxFloat64} {
		if f, g := logit(l); f != 1 || g != 0 {
			t.Errorf("at %v: %v, %v", l, f, g)
		}
		if f, g := logit(-l); f != 0 || g != 1 {
			t.Errorf("at %v: %v, %v", -l, f, g)
		}
	}
}
