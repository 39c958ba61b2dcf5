package critic

import (
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"ephemera/env/stream"
)

// TestShermanMorrison holds the running inverse against the direct inverse of
// a matrix that is averaged next to it, over 10⁵ steps.
// "The last iterate is simply the Sherman–Morrison formula to update the
// inverse" (Allerton, section IV, with the indices put right).
func TestShermanMorrison(t *testing.T) {
	const l, steps = 6, 100_000
	for _, of := range []struct {
		name    string
		step    Steps
		noise   float64 // of a feature that is otherwise the sum of two others
		bound   float64 // of max |B B⁻¹ − I|
		trusted bool
	}{
		{"average", Harmonic(), 1, 1e-10, true},
		{"tracking", Constant(.02), 1, 1e-11, true},
		{"paper", Steps{Scale: .5, Block: 1000, Power: 2. / 3}, 1, 1e-5, false},
		{"near-collinear average", Harmonic(), 1e-2, 1e-6, true},
		{"near-collinear tracking", Constant(.02), 1e-2, 1e-6, true},
		{"nearer average", Harmonic(), 1e-3, 1e-4, false},
		{"nearer tracking", Constant(.02), 1e-3, 1e-4, false},
		{"collinear average", Harmonic(), 1e-5, 1e-2, false},
		{"collinear tracking", Constant(.02), 1e-5, 1e-2, false},
	} {
		t.Run(of.name, func(t *testing.T) {
			set := DefaultSettings()
			set.Condition = 1e12
			c := New(l, 1, set)
			r := stream.New(3, stream.Test)
			phi, v, y := make([]float64, l), make([]float64, l), make([]float64, l)
			slow, _ := c.matrices()
			for n := 1; n <= steps; n++ {
				for i := range phi {
					phi[i], v[i] = r.NormFloat64(), r.NormFloat64()
				}
				phi[l-1] = phi[0] + phi[1] + of.noise*phi[l-1]
				b := of.step.At(n)
				if c.step(y, phi, v, b) {
					slow.ScaleSym(1-b, slow)
					slow.SymRankOne(slow, b, mat.NewVecDense(l, phi))
				} else { // a fallback adds a ridge
					slow, _ = c.matrices()
				}
				if n%997 != 0 && n > 50 {
					continue
				}
				_, got := c.matrices()
				if off := worst(slow, got); !(off <= of.bound) {
					t.Fatalf("step %d: |B B⁻¹ − I| is %.3g; bound is %v", n, off, of.bound)
				}
				if of.noise == 1 && of.trusted {
					var direct mat.Dense
					if err := direct.Inverse(slow); err != nil {
						t.Fatal(err)
					}
					size := mat.Norm(&direct, math.Inf(1))
					direct.Sub(&direct, got)
					if off := mat.Norm(&direct, math.Inf(1)); off > of.bound*size {
						t.Fatalf("step %d: inverse differs by %.3g of %.3g", n, off, size)
					}
				}
			}
			if n := c.Fallbacks(); of.trusted && n != 0 {
				t.Errorf("%d fallbacks", n)
			}
		})
	}
}

// TestRankDeficient: "the matrix B̄ becomes close to rank-deficient" (Allerton,
// section V). Features that stay in a plane make it so. The fallback must be
// taken, say so, and leave an inverse that is right again.
func TestRankDeficient(t *testing.T) {
	const l = 5
	for _, condition := range []float64{1e8, 1e300} { // by the condition, and by the residual alone
		set := DefaultSettings()
		if set.Condition = condition; condition > 1e8 {
			set.Tolerance = 1e-9
		}
		c := New(l, 1, set)
		r := stream.New(4, stream.Test)
		phi, v, y := make([]float64, l), make([]float64, l), make([]float64, l)
		for n := 1; n <= 5000; n++ {
			a, k := r.NormFloat64(), r.NormFloat64()
			for i := range phi {
				phi[i] = a + k*float64(i) // rank two
				v[i] = r.NormFloat64()
			}
			fell := c.Fallbacks()
			trusted := c.step(y, phi, v, .1)
			if !finite(y) || trusted != (fell == c.Fallbacks()) {
				t.Fatalf("step %d: trusted is %v, with %d fallbacks after %d; %v", n, trusted, c.Fallbacks(), fell, y)
			}
			if !trusted {
				if off := worst(c.matrices()); off > 1e-9 {
					t.Fatalf("step %d: |B B⁻¹ − I| is %.3g after a fresh factorisation", n, off)
				}
			}
		}
		if c.Fallbacks() < 50 {
			t.Errorf("condition %v: %d fallbacks", condition, c.Fallbacks())
		}
	}
}

// TestTikhonov: "(B̄ᵀB̄ + δI)⁻¹B̄ᵀ for a small δ > 0" (Allerton, section V),
// against its form by eigenvectors, U diag(λ/(λ² + δ)) Uᵀ.
func TestTikhonov(t *testing.T) {
	for _, l := range []int{1, 2, 7, 30} {
		set := DefaultSettings()
		set.Always = true
		set.Delta = 1e-4
		c := New(l, 1, set)
		r := stream.New(5, stream.Test)
		phi, v, y := make([]float64, l), make([]float64, l), make([]float64, l)
		for n := 1; n <= 40; n++ {
			for i := range phi {
				phi[i], v[i] = r.NormFloat64(), r.NormFloat64()
			}
			c.step(y, phi, v, .05)
			b, _ := c.matrices()
			var eig mat.EigenSym
			if !eig.Factorize(b, true) {
				t.Fatal("no eigenvectors")
			}
			var u mat.Dense
			eig.VectorsTo(&u)
			var coord, want mat.VecDense
			coord.MulVec(u.T(), mat.NewVecDense(l, v))
			for i, lambda := range eig.Values(nil) {
				coord.SetVec(i, coord.AtVec(i)*lambda/(lambda*lambda+set.Delta))
			}
			want.MulVec(&u, &coord)
			size := mat.Norm(&want, math.Inf(1))
			for i, x := range y {
				if math.Abs(x-want.AtVec(i)) > 1e-8*size {
					t.Fatalf("l = %d, step %d: entry %d is %v; want %v", l, n, i, x, want.AtVec(i))
				}
			}
		}
		if c.Fallbacks() != 0 {
			t.Errorf("%d fallbacks", c.Fallbacks())
		}
	}
}

// TestUnits: features in other units, powers of two apart, change the residual, the
// Tikhonov form and the fresh inverse by these units and by nothing else.
func TestUnits(t *testing.T) {
	const l = 4
	units := [l]float64{1, 1 << 20, 1. / (1 << 12), 4}
	set := DefaultSettings()
	set.Delta = .1 // so that it matters
	rnd := stream.New(10, stream.Test)
	plain := New(l, 1, set)
	set.Scaled = true
	scaled := New(l, 1, set)
	v, y, sv, sy := mat.NewVecDense(l, nil), mat.NewVecDense(l, nil), mat.NewVecDense(l, nil), mat.NewVecDense(l, nil)
	for i, u := range units {
		v.SetVec(i, rnd.NormFloat64())
		y.SetVec(i, rnd.NormFloat64())
		sv.SetVec(i, v.AtVec(i)*u)
		sy.SetVec(i, y.AtVec(i)/u)
		scaled.unit.SetVec(i, 1/u)
		for j := range i + 1 {
			b := rnd.NormFloat64()
			if i == j {
				b = 5 + rnd.Float64()
			}
			plain.b.Set(i, j, b)
			plain.b.Set(j, i, b)
			scaled.b.Set(i, j, b*u*units[j])
			scaled.b.Set(j, i, b*u*units[j])
		}
	}
	if a, b := plain.residual(y, v), scaled.residual(sy, sv); a != b || !(a > 0) {
		t.Errorf("the residual is %v, in other units %v", a, b)
	}
	plain.tikhonov(y, v)
	scaled.tikhonov(sy, sv)
	plain.refresh()
	scaled.refresh()
	for i, u := range units {
		if got, want := sy.AtVec(i)*u, y.AtVec(i); got != want {
			t.Errorf("the Tikhonov form has %v at place %d, in other units %v", want, i, got)
		}
		for j, w := range units {
			if got, want := scaled.p.At(i, j)*u*w, plain.p.At(i, j); got != want {
				t.Errorf("B⁻¹ is %v at place %d, %d, in other units %v", want, i, j, got)
			}
			if got, want := scaled.b.At(i, j)/u/w, plain.b.At(i, j); got != want {
				t.Errorf("B is %v at place %d, %d, in other units %v", want, i, j, got)
			}
		}
	}
}

// TestSingular: where δ or the ridge is lost in rounding it grows until the
// factorisation succeeds, and B = 0 has the solution 0.
func TestSingular(t *testing.T) {
	const l = 6
	set := DefaultSettings()
	set.Delta = 1e-30
	rnd := stream.New(12, stream.Test)
	phi, v, y := mat.NewVecDense(l, nil), mat.NewVecDense(l, nil), mat.NewVecDense(l, nil)
	for range 100 {
		q := New(l, 1, set)
		q.b.Zero()
		for i := range l {
			phi.SetVec(i, rnd.NormFloat64())
			v.SetVec(i, rnd.NormFloat64())
			y.SetVec(i, 1)
		}
		q.tikhonov(y, v)
		if mat.Norm(y, 1) != 0 {
			t.Fatalf("B = 0 has the solution %v", y)
		}
		q.add(phi, 1)
		q.tikhonov(y, v)
		q.refresh()
		if !finite(rows(y)) || !finite(rows(q.p)) {
			t.Fatal(y, q.p)
		}
	}
}

// TestIndefinite: where rounding has made B⁻¹ indefinite, that very step takes the
// Tikhonov form, and the next one is right again.
func TestIndefinite(t *testing.T) {
	for _, wrong := range []float64{-1e6, math.NaN(), math.Inf(1)} {
		c := New(2, 1, DefaultSettings())
		one, v, y := []float64{1, .5}, []float64{1, 2}, make([]float64, 2)
		c.p.Set(0, 0, wrong)
		if c.step(y, one, v, .1) || !finite(y) {
			t.Errorf("B⁻¹ with %v: trusted, or the solution is %v", wrong, y)
		}
		if !c.step(y, one, v, .1) {
			t.Errorf("B⁻¹ with %v: not trusted after a fallback", wrong)
		}
	}
}

// TestFading: features of 0 let B vanish, and one that comes no more its part of
// B. The state stays finite, the other feature notices nothing, and what comes
// again is learned again.
func TestFading(t *testing.T) {
	for _, set := range []Settings{{Always: true}, {}, {Scaled: true}} {
		of := DefaultSettings()
		of.Always, of.Scaled = set.Always, set.Scaled
		for _, phi := range [][]float64{{0, 0}, {1, 0}} {
			c, y := New(2, 1, of), make([]float64, 2)
			for n := range 3000 {
				c.step(y, phi, []float64{1, 2}, .5)
				s := c.State()
				if !finite(s.B) || !finite(s.Inverse) || !(s.Scale > 0) {
					t.Fatalf("%+v, features %v, step %d: scale %v, %v", set, phi, n, s.Scale, s.B)
				}
				if want := phi[0]; n > 100 && want > 0 && math.Abs(y[0]-1) > 1e-3 {
					t.Fatalf("%+v, features %v, step %d: the solution is %v", set, phi, n, y)
				}
			}
			c.step(y, []float64{1, 0}, []float64{1, 2}, .5)
			c.step(y, []float64{0, 1}, []float64{1, 2}, .5)
			if !(y[0] > 0 && y[1] > 0) {
				t.Errorf("%+v, features %v: after features of 0 the solution is %v", set, phi, y)
			}
		}
	}
}

// step takes in B ← (1 − b)B + b φφᵀ and writes B⁻¹v for the new B. It reports
// whether the running inverse was trusted.
func (c *Critic) step(y, phi, v []float64, b float64) bool {
	c.Begin(b)
	c.add(mat.NewVecDense(c.l, phi), c.w)
	out := mat.NewVecDense(c.l, y)
	trusted := c.solve(out, mat.NewVecDense(c.l, v))
	if !trusted {
		c.refresh()
	}
	out.ScaleVec(1/c.s, out)
	return trusted
}

// matrices returns copies of B and B⁻¹.
func (c *Critic) matrices() (b, inverse *mat.SymDense) {
	b, inverse = mat.NewSymDense(c.l, rows(c.b)), mat.NewSymDense(c.l, rows(c.p))
	b.ScaleSym(c.s, b)
	inverse.ScaleSym(1/c.s, inverse)
	return b, inverse
}

// worst returns max |B B⁻¹ − I|.
func worst(b, inverse mat.Matrix) float64 {
	var product mat.Dense
	product.Mul(b, inverse)
	product.Apply(func(i, j int, v float64) float64 {
		if i == j {
			v--
		}
		return math.Abs(v)
	}, &product)
	return mat.Max(&product)
}

func finite(v []float64) bool { return floats.Norm(v, 1) < math.Inf(1) }

// BenchmarkTikhonov is the Tikhonov form as it is here, next to the same with
// mat.Cholesky, in turns, at ℓ = 14 of four sources.
func BenchmarkTikhonov(b *testing.B) {
	const l = 14
	set := DefaultSettings()
	set.Always, set.Delta = true, 1e-4
	c := New(l, 1, set)
	r := stream.New(5, stream.Test)
	v, y := mat.NewVecDense(l, nil), mat.NewVecDense(l, nil)
	for range 100 {
		for i := range l {
			v.SetVec(i, r.NormFloat64())
		}
		c.add(v, 1)
	}
	var chol mat.Cholesky
	var gram mat.SymDense
	byCholesky := func() {
		gram.SymOuterK(1, c.b)
		for i := range l {
			gram.SetSym(i, i, gram.At(i, i)+set.Delta)
		}
		if !chol.Factorize(&gram) {
			b.Fatal("not definite")
		}
		y.MulVec(c.b, v)
		if err := chol.SolveVecTo(y, y); err != nil {
			b.Fatal(err)
		}
	}
	inTurns(b, 200, "mat.Cholesky", func() { c.tikhonov(y, v) }, byCholesky)
}

// BenchmarkAddOuter is B + wφφᵀ as it is here, next to mat.Dense.RankOne and to the symmetric
// mat.SymDense.SymRankOne, in turns, at ℓ = 14.
func BenchmarkAddOuter(b *testing.B) {
	const l = 14
	r := stream.New(5, stream.Test)
	x := mat.NewVecDense(l, nil)
	for i := range l {
		x.SetVec(i, r.NormFloat64())
	}
	a, again, symmetric := mat.NewDense(l, l, nil), mat.NewDense(l, l, nil), mat.NewSymDense(l, nil)
	inTurns(b, 500, "RankOne", func() { addOuter(a, 1e-9, x, x) }, func() { again.RankOne(again, 1e-9, x, x) })
	inTurns(b, 500, "SymRankOne", func() { addOuter(a, 1e-9, x, x) }, func() {
		symmetric.SymRankOne(symmetric, 1e-9, x)
	})
}

// inTurns reports the least times of two functions over turns of so many calls, and their ratio.
func inTurns(b *testing.B, turn int, name string, here, there func()) {
	b.Run(name, func(b *testing.B) {
		least := func(old time.Duration, f func()) time.Duration {
			began := time.Now()
			for range turn {
				f()
			}
			return min(old, time.Since(began))
		}
		one, other := time.Hour, time.Hour
		for b.Loop() {
			one, other = least(one, here), least(other, there)
		}
		b.ReportMetric(float64(one.Nanoseconds())/float64(turn), "ns/here")
		b.ReportMetric(float64(other.Nanoseconds())/float64(turn), "ns/there")
		b.ReportMetric(float64(other)/float64(one), "ratio")
		b.ReportMetric(0, "ns/op") // of both together: left out
	})
}
