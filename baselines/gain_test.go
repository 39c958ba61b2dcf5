package baselines

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

var allMarks = []env.Marks{env.MarksConstant, env.MarksPerItem, env.MarksPerEpoch}

// Mean and variance by Campbell's theorem, from less than one item per epoch to
// rates at which the grid becomes finer. A window scales the gain as it scales u.
func TestGainLawMoments(t *testing.T) {
	envtest.Alone(t)
	for _, m := range allMarks {
		for _, rate := range []float64{0.3, 5, 250, 1e4} {
			free := env.NewSource("", rate, 0.7, 2)
			s := free
			s.Window = 2
			share := s.Gain() / free.Gain()
			name := fmt.Sprintf("%s, %v items per epoch", m, rate)
			law := newGainLaw(s, m)
			envtest.Near(t, name+": mean", law.Mean(), s.Gain(), 1e-9)
			variance := law.Deviation() * law.Deviation()
			envtest.Near(t, name+": variance", variance, share*share*envtest.GainVariance(free, m), 2e-3)
			for k := 1; k < len(law.loss); k++ { // falling and convex
				if law.above(k-1) < law.above(k)-1e-9 || law.above(k) < -1e-9 || law.above(k) > 1+1e-9 {
					t.Fatalf("%s: P(U > %v) is %v after %v", name, float64(k)*law.step, law.above(k), law.above(k-1))
				}
			}
		}
	}
}

// TestGainLawOfFastDecay: moments hold, too, where next to nothing of an item is left at the end of
// its epoch.
func TestGainLawOfFastDecay(t *testing.T) {
	for _, decay := range []float64{20, 1000} {
		for _, m := range allMarks {
			s := env.NewSource("", 30, decay, 2)
			law, name := newGainLaw(s, m), fmt.Sprintf("%s, decay %v", m, decay)
			envtest.Near(t, name+": mean", law.Mean(), s.Gain(), 1e-6)
			envtest.Near(t, name+": variance", law.Deviation()*law.Deviation(), envtest.GainVariance(s, m), 2e-3)
		}
	}
}

// Exponential marks have an exact law: U ~ Gamma(J, αξ̄) with J negative
// binomial, since E e^(θU) = ((1 − αξ̄θ)/(1 − ξ̄θ))^(λ/c).
func TestGainLawExponentialMarks(t *testing.T) {
	s := env.NewSource("", 30, 0.7, 2)
	law := newGainLaw(s, env.MarksPerItem)
	alpha := s.Factor()
	r, scale := s.Rate/s.Decay, alpha*s.Interest
	for _, at := range []float64{0, 10, 30, 43, 60, 90} {
		var want float64
		w := math.Pow(alpha, r) // P(J = 0)
		for j := 0.0; j < 400; j++ {
			if j > 0 {
				z := at / scale
				want += w * scale * (j*mathext.GammaIncRegComp(j+1, z) - z*mathext.GammaIncRegComp(j, z))
			}
			w *= (r + j) / (j + 1) * (1 - alpha)
		}
		if got := law.Loss(at); math.Abs(got-want) > 1e-6*s.Gain() {
			t.Errorf("E(U − %v)⁺ is %.9g, want %.9g", at, got, want)
		}
	}
}

// Draws of the world against the law, and draws from the law: the distance of
// Kolmogorov and Smirnov at the level 1e-4.
func TestGainLawAgainstWorld(t *testing.T) {
	const epochs = 4000
	s := env.NewSource("", 12, 0.9, 1.5)
	in := env.Instance{ID: "one", Sources: []env.Source{s}, Budget: 1}
	for _, m := range allMarks {
		law := newGainLaw(s, m)
		w := must(env.NewPoisson(in, 5, env.PoissonOptions{Marks: m, State: true}))
		world, drawn := make([]float64, epochs), make([]float64, epochs)
		r := stream.New(6, stream.Test)
		for n := range world {
			world[n] = w.View().State[0]
			if _, err := w.Step([]int{0}); err != nil {
				t.Fatal(err)
			}
			drawn[n] = law.Draw(r)
		}
		for _, sample := range []struct {
			name string
			x    []float64
		}{{"world", world}, {"Draw", drawn}} {
			slices.Sort(sample.x)
			var worst float64
			for n, v := range sample.x {
				below := 1 - law.above(int(v/law.step))
				worst = max(worst, math.Abs(below-float64(n)/epochs), math.Abs(below-float64(n+1)/epochs))
			}
			if limit := 2.23/math.Sqrt(epochs) + 1e-3; worst > limit {
				t.Errorf("%s: draws of %s are %.4f from the law, more than %.4f", m, sample.name, worst, limit)
			}
		}
	}
}

func TestGainLawOfNothing(t *testing.T) {
	for _, rate := range []float64{0, 1e-9} {
		if law := newGainLaw(env.NewSource("", rate, 0.5, 1), env.MarksPerItem); law.Mean() != 0 || law.Loss(3) != 0 {
			t.Errorf("a source of %v items per epoch gains something", rate)
		}
	}
}
