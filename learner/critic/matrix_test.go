package critic

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ephemera/env/stream"
	"ephemera/learner/internal/check"
)

// TestShermanMorrison holds the running inverse against the direct inverse of
// a matrix that is averaged beside it, over 10⁵ steps.
// "The last iterate is simply the Sherman–Morrison formula to update the
// inverse" (Allerton, section IV, with the indices put right).
func TestShermanMorrison(t *testing.T) {
	const l, steps = 6, 100_000
	for _, c := range []struct {
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
		t.Run(c.name, func(t *testing.T) {
			set := DefaultInverseSettings()
			set.Condition = 1e13
			inv, err := newInverse(l, set)
			if err != nil {
				t.Fatal(err)
			}
			r := stream.New(3, stream.Test)
			phi, v, y := make([]float64, l), make([]float64, l), make([]float64, l)
			slow := mat.NewSymDense(l, nil)
			for i := range l {
				slow.SetSym(i, i, set.Epsilon)
			}
			for n := 1; n <= steps; n++ {
				for i := range phi {
					phi[i], v[i] = r.NormFloat64(), r.NormFloat64()
				}
				phi[l-1] = phi[0] + phi[1] + c.noise*phi[l-1]
				b := c.step.At(n)
				fell := inv.count.Fallbacks
				inv.Update(y, phi, v, b)
				if inv.count.Fallbacks > fell { // a fallback adds a ridge
					slow = inv.B()
				} else {
					slow.ScaleSym(1-b, slow)
					slow.SymRankOne(slow, b, mat.NewVecDense(l, phi))
				}
				if n%997 != 0 && n > 50 {
					continue
				}
				got := inv.Inverse()
				var direct, product mat.Dense
				if err := direct.Inverse(slow); err != nil && c.noise == 1 && c.trusted {
					t.Fatalf("step %d: %v", n, err)
				}
				product.Mul(slow, got)
				for i := range l {
					product.Set(i, i, product.At(i, i)-1)
				}
				if worst := mat.Max(absolute(&product)); !(worst <= c.bound) {
					t.Fatalf("step %d: |B B⁻¹ − I| is %.3g; bound is %v", n, worst, c.bound)
				}
				if c.noise == 1 && c.trusted {
					product.Sub(&direct, got)
					if worst, size := mat.Max(absolute(&product)), mat.Max(absolute(&direct)); worst > c.bound*size {
						t.Fatalf("step %d: inverse differs by %.3g of %.3g", n, worst, size)
					}
				}
			}
			if n := inv.Counts(); c.trusted && n.Fallbacks != 0 || n.Updates != steps || n.Checks < steps/set.Every {
				t.Errorf("counts %+v", n)
			}
		})
	}
}

func absolute(m *mat.Dense) *mat.Dense {
	m.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, m)
	return m
}

// TestRankDeficient: "the matrix B̄ becomes close to rank-deficient" (Allerton,
// section V). Features that stay in a plane make it so. The fallback must be
// taken, say so, and leave an inverse that is right again.
func TestRankDeficient(t *testing.T) {
	const l = 5
	for _, set := range []InverseSettings{
		{Epsilon: 1e-3, Delta: 1e-10, Tolerance: 1e-6, Condition: 1e8, Every: 16},
		{Epsilon: 1e-3, Delta: 1e-10, Tolerance: 1e-9, Condition: 1e300, Every: 16}, // by the residual alone
	} {
		inv, err := newInverse(l, set)
		if err != nil {
			t.Fatal(err)
		}
		r := stream.New(4, stream.Test)
		phi, v, y := make([]float64, l), make([]float64, l), make([]float64, l)
		for n := 1; n <= 5000; n++ {
			a, c := r.NormFloat64(), r.NormFloat64()
			for i := range phi {
				phi[i] = a + c*float64(i) // rank two
				v[i] = r.NormFloat64()
			}
			fell := inv.count.Fallbacks
			trusted := inv.Update(y, phi, v, .1)
			if trusted != (fell == inv.count.Fallbacks) {
				t.Fatalf("step %d: trusted is %v, with %d fallbacks after %d", n, trusted, inv.count.Fallbacks, fell)
			}
			for i, x := range y {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("step %d: solution %d is %v", n, i, x)
				}
			}
			if !trusted {
				var product mat.Dense
				product.Mul(inv.B(), inv.Inverse())
				for i := range l {
					product.Set(i, i, product.At(i, i)-1)
				}
				if worst := mat.Max(absolute(&product)); worst > 1e-9 {
					t.Fatalf("step %d: |B B⁻¹ − I| is %.3g after a fresh factorisation", n, worst)
				}
			}
		}
		c := inv.Counts()
		if c.Fallbacks < 50 || c.Fallbacks != c.Tikhonov || c.Worst > set.Tolerance {
			t.Errorf("counts %+v", c)
		}
		if byCondition := set.Condition < 1e300; byCondition != (c.Deficient > 0) {
			t.Errorf("%d fallbacks for rank deficiency at condition %v", c.Deficient, set.Condition)
		}
	}
}

// TestTikhonov: "(B̄ᵀB̄ + δI)⁻¹B̄ᵀ for a small δ > 0" (Allerton, section V),
// against its form by eigenvectors, U diag(λ/(λ² + δ)) Uᵀ.
func TestTikhonov(t *testing.T) {
	for _, l := range []int{1, 2, 7, 30} {
		set := DefaultInverseSettings()
		set.Always = true
		set.Delta = 1e-4
		inv, err := newInverse(l, set)
		if err != nil {
			t.Fatal(err)
		}
		r := stream.New(5, stream.Test)
		phi, v, y := make([]float64, l), make([]float64, l), make([]float64, l)
		for n := 1; n <= 40; n++ {
			for i := range phi {
				phi[i], v[i] = r.NormFloat64(), r.NormFloat64()
			}
			inv.Update(y, phi, v, .05)
			b := inv.B()
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
		if c := inv.Counts(); c.Tikhonov != 40 || c.Fallbacks != 0 {
			t.Errorf("counts %+v", c)
		}
	}
}

// TestUnits: features in other units, powers of two apart, change the residual, the
// Tikhonov form and the fresh inverse by these units and by nothing else.
func TestUnits(t *testing.T) {
	const l = 4
	units := [l]float64{1, 1 << 20, 1. / (1 << 12), 4}
	set := DefaultInverseSettings()
	set.Delta = .1 // so that it matters
	rnd := stream.New(10, stream.Test)
	plain, scaled := newProblem(l, 1, set), newProblem(l, 1, set)
	for _, q := range []*problem{&plain, &scaled} {
		q.b, q.p = make([]float64, l*l), make([]float64, l*l)
	}
	v, y, sv, sy := make([]float64, l), make([]float64, l), make([]float64, l), make([]float64, l)
	for i, u := range units {
		v[i], y[i] = rnd.NormFloat64(), rnd.NormFloat64()
		sv[i], sy[i] = v[i]*u, y[i]/u
		scaled.unit[i] = 1 / u
		for j := range i + 1 {
			b := rnd.NormFloat64()
			if i == j {
				b = 5 + rnd.Float64()
			}
			plain.b[j*l+i], scaled.b[j*l+i] = b, b*u*units[j]
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
		if y[i] != sy[i]*u {
			t.Errorf("the Tikhonov form has %v at place %d, in other units %v", y[i], i, sy[i]*u)
		}
		for j, w := range units {
			if plain.p[i*l+j] != scaled.p[i*l+j]*u*w || plain.b[i*l+j] != scaled.b[i*l+j]/u/w {
				t.Errorf("place %d, %d: B and B⁻¹ are %v and %v, in other units %v and %v", i, j, plain.b[i*l+j], plain.p[i*l+j], scaled.b[i*l+j]/u/w, scaled.p[i*l+j]*u*w)
			}
		}
	}
}

// TestSingular: where δ or the ridge is lost in rounding it grows until the
// factorisation succeeds, and B = 0 has the solution 0.
func TestSingular(t *testing.T) {
	const l = 6
	set := DefaultInverseSettings()
	set.Delta, set.Epsilon = 1e-30, 1e-20
	rnd := stream.New(12, stream.Test)
	phi, v, y := make([]float64, l), make([]float64, l), make([]float64, l)
	for range 100 {
		q := newProblem(l, 1, set)
		q.b, q.p = make([]float64, l*l), make([]float64, l*l)
		for i := range phi {
			phi[i], v[i], y[i] = rnd.NormFloat64(), rnd.NormFloat64(), 1
		}
		q.tikhonov(y, v)
		if mat.Norm(mat.NewVecDense(l, y), 1) != 0 {
			t.Fatalf("B = 0 has the solution %v", y)
		}
		outer(q.b, phi, phi, 1)
		q.tikhonov(y, v)
		q.refresh()
		if err := check.First(check.Finite("y", y, l), check.Finite("p", q.p, l*l)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRescale crosses the scale at which B̂ is brought back many times.
func TestRescale(t *testing.T) {
	const l = 3
	inv, err := newInverse(l, DefaultInverseSettings())
	if err != nil {
		t.Fatal(err)
	}
	r := stream.New(6, stream.Test)
	phi, v, y := make([]float64, l), make([]float64, l), make([]float64, l)
	rescaled := 0
	for n := 1; n <= 2000; n++ {
		for i := range phi {
			phi[i], v[i] = r.NormFloat64(), r.NormFloat64()
		}
		before := inv.s
		inv.Update(y, phi, v, .3)
		if inv.s > before {
			rescaled++
		}
	}
	var product mat.Dense
	product.Mul(inv.B(), inv.Inverse())
	for i := range l {
		product.Set(i, i, product.At(i, i)-1)
	}
	if worst := mat.Max(absolute(&product)); worst > 1e-10 || rescaled < 10 || inv.count.Fallbacks > 0 {
		t.Errorf("|B B⁻¹ − I| is %.3g after %d rescalings and %d fallbacks", worst, rescaled, inv.count.Fallbacks)
	}
}

// TestFused holds what a step of Critic does in fused and delayed passes against
// the plain updates, on numbers that both begin with.
func TestFused(t *testing.T) {
	for _, l := range []int{1, 2, 5, 14, 65} {
		c, err := newInverse(l, DefaultInverseSettings())
		if err != nil {
			t.Fatal(err)
		}
		plain := newProblem(l, 1, c.set)
		plain.a, plain.b, plain.p = slices.Clone(c.a), slices.Clone(c.b), slices.Clone(c.p)
		rnd := stream.New(9, stream.Test)
		random := func() []float64 {
			v := make([]float64, l)
			for i := range v {
				v[i] = rnd.NormFloat64()
			}
			return v
		}
		for n := range c.set.Every {
			phi, d, r, b, w := random(), random(), random(), random(), .1*rnd.Float64()
			outer(plain.a, phi, d, w)
			plain.add(phi, w)
			copy(c.v, b)
			matrixPass(c.a, c.v, phi, d, r, w)
			c.gather(phi, math.Sqrt(w))
			if !c.invert(phi, w) {
				t.Fatal("not positive definite")
			}
			v, y := make([]float64, l), make([]float64, l)
			affine(v, plain.a, r, b)
			affine(y, plain.p, v, make([]float64, l))
			for i := range l {
				if math.Abs(c.v[i]-v[i]) > 1e-11 || math.Abs(c.y[i]-y[i]) > 1e-8*(1+math.Abs(y[i])) {
					t.Fatalf("l = %d, step %d: Ar + b is %v and B⁻¹ of it %v at place %d; the plain form has %v and %v", l, n, c.v[i], c.y[i], i, v[i], y[i])
				}
			}
		}
		c.flush()
		c.settle()
		for i := range l * l {
			if i%l >= i/l && math.Abs(c.b[i]-plain.b[i]) > 1e-12 || math.Abs(c.p[i]-plain.p[i]) > 1e-8*(1+math.Abs(plain.p[i])) || c.a[i] != plain.a[i] {
				t.Fatalf("l = %d: B, B⁻¹, A have %v, %v, %v at place %d; the plain form has %v, %v, %v", l, c.b[i], c.p[i], c.a[i], i, plain.b[i], plain.p[i], plain.a[i])
			}
			if plain.p[i] != plain.p[i%l*l+i/l] || c.p[i] != c.p[i%l*l+i/l] {
				t.Fatalf("l = %d: B⁻¹ is not symmetric", l)
			}
		}
	}
}

// TestIndefinite: where rounding has made B⁻¹ indefinite, that very step takes the
// Tikhonov form, and the next one is right again.
func TestIndefinite(t *testing.T) {
	for _, wrong := range []float64{-1e6, math.NaN(), math.Inf(1)} {
		c, err := newInverse(2, DefaultInverseSettings())
		if err != nil {
			t.Fatal(err)
		}
		one, v, y := []float64{1, .5}, []float64{1, 2}, make([]float64, 2)
		c.p[0] = wrong
		if c.Update(y, one, v, .1) || check.Finite("y", y, 2) != nil {
			t.Errorf("B⁻¹ with %v: trusted, or the solution is %v", wrong, y)
		}
		if !c.Update(y, one, v, .1) {
			t.Errorf("B⁻¹ with %v: not trusted after a fallback", wrong)
		}
	}
}

func TestInversePanics(t *testing.T) {
	inv, err := newInverse(2, DefaultInverseSettings())
	if err != nil {
		t.Fatal(err)
	}
	two := []float64{1, 2}
	for name, f := range map[string]func(){
		"step of 1": func() { inv.Update(make([]float64, 2), two, two, 1) },
		"step of 0": func() { inv.Update(make([]float64, 2), two, two, 0) },
		"NaN step":  func() { inv.Update(make([]float64, 2), two, two, math.NaN()) },
		"shape":     func() { inv.Step(two[:1], two, 0) },
		"no rows":   func() { _, _ = newInverse(0, DefaultInverseSettings()) },
	} {
		func() {
			defer func() {
				if s := fmt.Sprint(recover()); len(s) < 9 || s[:8] != "learner:" {
					t.Errorf("%s: panic %q", name, s)
				}
			}()
			f()
		}()
	}
}

// TestFading: steps near 1 and features of 0 let B vanish, and the Tikhonov
// form keeps no inverse that could be rescaled along. The state stays finite.
func TestFading(t *testing.T) {
	for _, always := range []bool{false, true} {
		set := DefaultInverseSettings()
		set.Always = always
		inv, err := newInverse(2, set)
		if err != nil {
			t.Fatal(err)
		}
		y := make([]float64, 2)
		for n := range 3000 {
			inv.Update(y, []float64{0, 0}, []float64{1, 2}, .99)
			st := inv.State().Inverse
			if err := check.First(check.Finite("matrix", st.Matrix, 4), check.Finite("p", st.P, 4), check.Finite("z", st.Z, 2), check.Finite("scales", []float64{st.Scale, st.Since}, 2)); err != nil {
				t.Fatalf("always %v, step %d: %v", always, n, err)
			}
		}
		inv.Update(y, []float64{1, 0}, []float64{1, 2}, .5)
		inv.Update(y, []float64{0, 1}, []float64{1, 2}, .5)
		if !(y[0] > 0 && y[1] > 0) {
			t.Errorf("always %v: after features of 0 the solution is %v", always, y)
		}
	}
}

// newInverse returns a critic for its running inverse alone.
func newInverse(l int, set InverseSettings) (*Critic, error) {
	return New(l, Settings{Gamma: 1, Step: Harmonic(), Inverse: set})
}

// Update takes in B ← (1 − b)B + b φφᵀ with 0 < b < 1 and writes B⁻¹v for the
// new B into dst. It reports whether the incremental inverse was trusted; if
// not, dst holds the Tikhonov form's solution. With Always it does so at every
// step, and the report is true.
func (c *Critic) Update(dst, phi, v []float64, b float64) bool {
	w := c.weight(b)
	copy(c.v, v)
	ok := c.solve(phi, w)
	for i, y := range c.y {
		dst[i] = y / c.s
	}
	return ok
}

// Inverse returns a copy of the incremental B⁻¹.
func (c *Critic) Inverse() *mat.SymDense {
	p := mat.NewSymDense(c.l, slices.Clone(c.p))
	p.SymRankOne(p, -1, mat.NewVecDense(c.l, slices.Clone(c.z)))
	p.ScaleSym(1/c.s, p)
	return p
}
