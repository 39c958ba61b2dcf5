package paper_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"ephemera/env"
	"ephemera/learner/critic"
	"ephemera/learner/paper"
)

// printed is section IV of Allerton with dense matrices, slow and word for word:
// features of section V, T, f of section III, the score (8), the ascent (9) and
// LSPE(0). It observes what was crawled.
type printed struct {
	u, ceiling          []float64
	q                   [][3]float64
	kappa, shift, gamma float64
	a, b                func(n int) float64
	scale               []float64 // of the features; 1 as printed
	delta               float64   // of the Tikhonov form; 0 for an exact solution
	r, bBar             *mat.VecDense
	aBar                *mat.Dense
	bMatrix             *mat.SymDense
	eta                 float64
	n                   int
	crawledReward       bool
}

func newPrinted(in env.Instance, set paper.Settings) *printed {
	const l = 14 // ℓ = N + N(N+1)/2
	p := &printed{
		kappa: set.Kappa, shift: set.Shift, gamma: set.Gamma, a: set.A.At, b: set.B.At,
		r: mat.NewVecDense(l, nil), bBar: mat.NewVecDense(l, nil),
		aBar: mat.NewDense(l, l, nil), bMatrix: mat.NewSymDense(l, nil),
		crawledReward: set.Reward == "crawled",
	}
	for _, s := range in.Sources {
		u := s.Rate * s.Interest / s.Decay * (1 - math.Exp(-s.Decay))
		top := u / (1 - math.Exp(-s.Decay))
		p.u, p.ceiling = append(p.u, u), append(p.ceiling, top)
		p.q = append(p.q, [3]float64{u + set.Start*(top-u)})
		if set.Features == "unit" {
			p.scale = append(p.scale, top)
		} else {
			p.scale = append(p.scale, 1)
		}
	}
	if set.Tikhonov == "always" {
		p.delta = set.Delta
	}
	for i := range l {
		p.bMatrix.SetSym(i, i, set.Epsilon)
	}
	return p
}

// features are φ = [x₁ … x_N x₁² x₁x₂ … x_{N−1}x_N x_N²].
func (p *printed) features(x []float64) *mat.VecDense {
	var z []float64
	for i, v := range x {
		z = append(z, v/p.scale[i])
	}
	phi := z
	for i := range x {
		for j := i; j < len(x); j++ {
			phi = append(phi, z[i]*z[j])
		}
	}
	return mat.NewVecDense(len(phi), phi)
}

// step takes in X(n), what was crawled, and X(n+1).
func (p *printed) step(x []float64, crawled []bool, next []float64) {
	p.n++
	var reward, all float64
	for i, v := range x {
		all += v
		if crawled[i] || !p.crawledReward {
			reward += v
		}
	}
	phi, phiNext := p.features(x), p.features(next)

	// (9) with r(n)
	v := mat.Dot(p.r, phiNext)
	for i := range x {
		s := all - x[i]
		psi := [3]float64{1, s, s * s}
		raw := p.q[i][0]*psi[0] + p.q[i][1]*psi[1] + p.q[i][2]*psi[2]
		t := math.Max(p.u[i], math.Min(raw, p.ceiling[i]))
		f := 1 / (1 + math.Exp(-p.kappa*(x[i]-t-p.shift)))
		for j := range psi {
			grad := p.kappa * psi[j] * f // (8), passive
			if crawled[i] {
				grad = -p.kappa * psi[j] * (1 - f)
			}
			p.q[i][j] += p.a(p.n) * grad * v
		}
	}

	// LSPE(0)
	b := p.b(p.n)
	var d, e, y mat.VecDense
	d.SubVec(phiNext, phi)
	p.bMatrix.ScaleSym(1-b, p.bMatrix)
	p.bMatrix.SymRankOne(p.bMatrix, b, phi)
	p.aBar.Scale(1-b, p.aBar)
	p.aBar.RankOne(p.aBar, b, phi, &d)
	p.bBar.ScaleVec(1-b, p.bBar)
	p.bBar.AddScaledVec(p.bBar, b*(reward-p.eta), phi)
	p.eta += b * (reward - p.eta)
	e.MulVec(p.aBar, p.r)
	e.AddVec(&e, p.bBar)
	p.solve(&y, &e)
	p.r.AddScaledVec(p.r, p.gamma, &y)
}

// solve writes B⁻¹v, or (BᵀB + δI)⁻¹Bᵀv, which is the least-squares solution of
// [B; √δ I] y = [v; 0].
func (p *printed) solve(y, v *mat.VecDense) {
	l := v.Len()
	if p.delta == 0 {
		if err := y.SolveVec(p.bMatrix, v); err != nil {
			if _, illConditioned := err.(mat.Condition); !illConditioned {
				panic(err)
			}
		}
		return
	}
	tall, right := mat.NewDense(2*l, l, nil), mat.NewVecDense(2*l, nil)
	for i := range l {
		for j := range l {
			tall.Set(i, j, p.bMatrix.At(i, j))
		}
		tall.Set(l+i, i, math.Sqrt(p.delta))
		right.SetVec(i, v.AtVec(i))
	}
	if err := y.SolveVec(tall, right); err != nil {
		panic(err)
	}
}

// TestAgainstPrinted follows section IV next to the learner, past blocks of 500
// and 1000 epochs, for both step rules and both inverses. Thresholds move slowly
// and few logits saturate, so that rounding is not amplified.
func TestAgainstPrinted(t *testing.T) {
	blocks := critic.Steps{Scale: .02, Block: 1000, Power: 2. / 3}
	for _, c := range []struct {
		name  string
		set   func(*paper.Settings)
		steps int
	}{
		{"Tikhonov, average", func(s *paper.Settings) { s.Delta = 1e12 }, 3000},
		{"Tikhonov, blocks", func(s *paper.Settings) { s.Delta = 1e12; s.B = blocks }, 3000},
		{"inverse, average", func(s *paper.Settings) { s.Tikhonov, s.Features = "fallback", "unit" }, 3000},
		{"inverse, blocks", func(s *paper.Settings) { s.Tikhonov, s.Features, s.B = "fallback", "unit", blocks }, 3000},
		{"crawled", func(s *paper.Settings) { s.Delta, s.Reward = 1e12, "crawled" }, 1200},
		{"budget", func(s *paper.Settings) {
			s.Tikhonov, s.Features, s.Act, s.B = "fallback", "unit", "budget", blocks
		}, 300},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := env.Paper(1)
			set := paper.DefaultSettings()
			set.A.Scale, set.Kappa, set.Shift = 1e-4, .02, 3
			c.set(&set)
			p, slow := newPaper(t, in, set, 1), newPrinted(in, set)
			w := newMean(t, in, true)
			for step := 1; step <= c.steps; step++ {
				x := append([]float64(nil), w.View().Mean...)
				crawled := make([]bool, len(x))
				crawl := p.Select(nil, &w.View().Model)
				for _, i := range crawl {
					crawled[i] = true
				}
				got, err := w.Step(crawl)
				if err != nil {
					t.Fatal(err)
				}
				p.Update(got, &w.View().Model)
				slow.step(x, crawled, w.View().Mean)
				if step%50 != 0 && step > 20 {
					continue
				}
				st := p.State()
				size := mat.Norm(slow.r, math.Inf(1))
				for m, got := range st.Critic.Weights {
					if want := slow.r.AtVec(m); math.Abs(got-want) > 1e-5*size {
						t.Fatalf("step %d: r[%d] is %v; want %v", step, m, got, want)
					}
				}
				for i, row := range st.Q {
					for j, got := range row {
						if want := slow.q[i][j]; math.Abs(got-want) > 1e-5*(math.Abs(want)+1e-3) {
							t.Fatalf("step %d: q%d of source %d is %v; want %v", step, j, i+1, got, want)
						}
					}
				}
				if math.Abs(st.Critic.Average-slow.eta) > 1e-9*slow.eta {
					t.Fatalf("step %d: η is %v; want %v", step, st.Critic.Average, slow.eta)
				}
			}
			if n := p.Critic().Fallbacks(); n != 0 {
				t.Errorf("%d fallbacks; the printed recursion has none", n)
			}
		})
	}
}

// TestPrinted: the default is what is printed. Over 20 seeds an independent
// program earns 105 ± 10 per epoch on Table I.
func TestPrinted(t *testing.T) {
	var rewards []float64
	for seed := uint64(1); seed <= 20; seed++ {
		out, _ := runPaper(t, env.Paper(1), paper.DefaultSettings(), seed, 10000)
		rewards = append(rewards, out.Reward)
	}
	mean, sd := stat.MeanStdDev(rewards, nil)
	t.Logf("mean %.1f, s.d. of a single run %.1f", mean, sd)
	if mean < 89 || mean > 125 {
		t.Errorf("20 seeds earn %.1f per epoch; want 89 to 125", mean)
	}
}
