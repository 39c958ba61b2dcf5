package priced

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/stream"
)

// TestSmallAgainstSlow holds the small critics of several sources, each with a
// clock of its own, against the recursion with dense matrices and a direct
// solve at each step. A cost of twice the harvest has twice its weights.
func TestSmallAgainstSlow(t *testing.T) {
	for l := 1; l <= maxFeatures; l++ {
		const n, epsilon, gamma = 3, .3, .4
		first := make([]float64, l)
		for j := range first {
			first[j] = epsilon
		}
		c := newSmall(n, first, gamma)
		slow := make([]*slowLSPE, n)
		for i := range slow {
			slow[i] = newSlowLSPE(l, gamma, epsilon)
		}
		r := stream.New(uint64(l), stream.Test)
		phi, next, change := make([]float64, l), make([]float64, l), make([]float64, l)
		for e := range 3000 {
			i := r.Intn(n)
			for j := range phi {
				phi[j], next[j] = r.Float64()-.3, r.Float64()-.3
				change[j] = next[j] - phi[j]
			}
			reward, b := r.Float64(), .01*float64(i+1)
			rho := reward - slow[i].eta
			if err := slow[i].step(phi, next, reward, b); err != nil {
				t.Fatal(err)
			}
			c.add(i, phi, change, rho, 2*rho, b)
			if !c.trust(i) {
				t.Fatalf("ℓ = %d, step %d: B⁻¹ was not trusted", l, e)
			}
			c.solve(i, 1)
			rx, rc := c.weights(i)
			for j := range l {
				if want := slow[i].r.AtVec(j); !near(rx[j], want, 1e-9) || !near(rc[j], 2*want, 1e-9) {
					t.Fatalf("ℓ = %d, step %d, source %d: r(%d) = %v and %v; direct solve gives %v", l, e, i, j, rx[j], rc[j], want)
				}
			}
		}
	}
}

func near(got, want, tol float64) bool { return math.Abs(got-want) <= tol*(1+math.Abs(want)) }

// TestSmallTrust: a B⁻¹ that is off is noticed, and B + δ diag B and its
// inverse take the place of both. A feature that is seen no more does not make
// B singular, and its weight stays.
func TestSmallTrust(t *testing.T) {
	for l := 1; l <= maxFeatures; l++ {
		first := make([]float64, l)
		for j := range first {
			first[j] = .1
		}
		c := newSmall(1, first, .5)
		r := stream.New(uint64(l), stream.Test)
		phi, change := make([]float64, l), make([]float64, l)
		step := func(features int) {
			for j := range features {
				phi[j] = r.Float64()
				change[j] = -phi[j]
			}
			c.add(0, phi, change, 1, 1, .05)
		}
		for range 200 {
			step(l)
		}
		c.solve(0, 50)
		d := c.of(0)
		before := append([]float64(nil), d[:c.tri]...)
		d[2*c.tri-1] *= 1.01
		if c.trust(0) {
			t.Fatalf("ℓ = %d: an inverse that is off by 1 %% was trusted", l)
		}
		var b, inv mat.Dense
		b.CloneFrom(unpack(l, d[:c.tri]))
		for j := range l {
			if want := before[packed(j, j)] * (1 + smallDelta); !near(b.At(j, j), want, 1e-6) {
				t.Errorf("ℓ = %d: B(%d, %d) = %v after the fallback; want %v", l, j, j, b.At(j, j), want)
			}
		}
		if err := inv.Inverse(&b); err != nil {
			t.Fatal(err)
		}
		if !mat.EqualApprox(&inv, unpack(l, d[c.tri:2*c.tri]), 1e-8*mat.Norm(&inv, 1)) {
			t.Errorf("ℓ = %d: B⁻¹ after the fallback is not the inverse", l)
		}

		clear(phi)
		clear(change)
		rx, _ := c.weights(0)
		trusted := true
		fade := func(steps int) {
			for range steps {
				step(l - 1)
				trusted = c.trust(0) && trusted
				c.solve(0, 1)
			}
		}
		fade(1500) // e⁻⁷⁵ is left of the last feature
		if trusted {
			t.Errorf("ℓ = %d: no fallback when the last feature had faded", l)
		}
		last := rx[l-1]
		fade(1500)
		if !near(rx[l-1], last, 1e-3) || math.Abs(last) > 10 {
			t.Errorf("ℓ = %d: the weight of a feature that is not seen went from %v to %v", l, last, rx[l-1])
		}
	}
}

func unpack(l int, v []float64) *mat.Dense {
	m := mat.NewDense(l, l, nil)
	for j := range l {
		for k := range l {
			m.Set(j, k, v[packed(j, k)])
		}
	}
	return m
}

// oneSource returns the core of a learner for one source.
func oneSource(s env.Source, period float64, seed uint64) *core {
	in := env.Instance{Sources: []env.Source{s}, Budget: s.Cost}
	p := newCore(in.Terms(), nil, stream.New(seed, stream.Test))
	p.period = period
	p.lspe[0] = newPair(p.first())
	p.turn[0] = float32(period)
	p.know(0, s.Decay, s.Ceiling())
	p.begin(0)
	p.clocks.set(0)
	return p
}

// TestPairAgainstSmall holds the critic by sums over cycles, in single
// precision, against the one that takes in the same cycles transition by
// transition, in double precision.
func TestPairAgainstSmall(t *testing.T) {
	r := stream.New(1, stream.Test)
	for k := range 40 {
		s := env.NewSource("", math.Exp(4*r.Float64()), .02+r.Float64(), 1)
		s.Cost = .5 + r.Float64()
		p := oneSource(s, float64(2+r.Intn(30)), uint64(k))
		first := p.first()
		c := newSmall(1, []float64{float64(first[0]), float64(first[1])}, p.set.Gamma)
		rx, rc := c.weights(0)
		rx[0], rx[1], rc[0] = float64(p.slope[0]), s.Ceiling(), float64(p.toll[0])
		phi := func(age int) [2]float64 {
			low := min(float64(age), float64(p.turn[0]))
			return [2]float64{low - 1, (s.MeanState(age) - s.MeanState(int(low))) / s.Ceiling()}
		}
		for range 60 {
			p.turn[0] = float32(max(1, int(p.turn[0])+r.Intn(3)-1))
			p.peak[0] = float32(p.mean(0, float64(p.turn[0])))
			ages := max(1, int(p.turn[0])+r.Intn(12)-6)
			harvest, w := s.MeanState(ages), .02+.3*r.Float64()
			p.age[0] = float32(ages)
			p.eta[0] *= float32(.9 + .2*r.Float64())
			p.evaluate(0, float32(harvest), float32(s.Cost), float32(w))
			for e := 1; e <= ages; e++ {
				f := phi(e)
				var g [2]float64
				x, cost := -float64(p.eta[0]), -float64(p.work[0])
				if e < ages {
					g = phi(e + 1)
				} else {
					x, cost = x+harvest, cost+s.Cost
				}
				c.add(0, f[:], []float64{g[0] - f[0], g[1] - f[1]}, x, cost, w/((1-w)*float64(ages)+float64(e)*w))
			}
			if !c.trust(0) {
				t.Fatal("B⁻¹ was not trusted")
			}
			c.solve(0, ages)
			rx[0] = min(max(0, rx[0]), s.Gain())
			rc[0] = min(max(0, rc[0]), s.Cost)
		}
		got, want := p.lspe[0].append(nil), c.of(0)
		for j, v := range got {
			// Off the diagonal, entries are measured by the diagonal.
			scale := math.Abs(want[j])
			switch j {
			case 1, 4:
				scale = math.Sqrt(want[j-1] * want[j+1])
			case 7, 8:
				scale = math.Sqrt(want[6] * want[9])
			case 11, 13:
				scale = math.Sqrt(want[2]) * (s.Ceiling() + s.Cost)
			case 15, 17:
				continue // of a direction that is hardly seen
			}
			if math.Abs(v-want[j]) > 2e-3*scale+1e-6 {
				t.Errorf("source %d: number %d is %v; by transitions %v", k, j, v, want[j])
			}
		}
	}
}

// TestPairTrust: as TestSmallTrust, for pairs.
func TestPairTrust(t *testing.T) {
	first := [2]float32{1, 1}
	make := func() pair {
		d := newPair(first)
		d.keep(.2)
		d.add(.5, .3, .4)
		return d
	}
	d := make()
	if !d.trust(first) {
		t.Error("an inverse that is right was not trusted")
	}
	for j := range d.inv {
		d = make()
		before := d.b
		d.inv[j] *= 1.01
		if d.trust(first) {
			t.Errorf("an entry %d that is off by 1 %% was trusted", j)
		}
		if want := before[0] * (1 + smallDelta); !near(float64(d.b[0]), float64(want), 1e-5) || d.b[1] != before[1] {
			t.Errorf("B = %v after the fallback from %v", d.b, before)
		}
		if !d.trust(first) {
			t.Errorf("B⁻¹ = %v after the fallback is not the inverse of %v", d.inv, d.b)
		}
	}
	d = make()
	for range 100 {
		d.keep(.5)
		d.add(.3, 0, 0)
		d.trust(first)
	}
	if !(d.b[2] > 0 && d.inv[2] < 1e15) {
		t.Errorf("B = %v, B⁻¹ = %v of a feature that is not seen", d.b, d.inv)
	}
}

// TestPricedBlend: the slope is the mean of r₁ and η where A and B are those of
// cycles up to the threshold, and η where they are not.
func TestPricedBlend(t *testing.T) {
	p := oneSource(env.NewSource("", 100, .1, 1), 12, 1)
	const turn = 7
	p.turn[0] = turn
	for _, c := range []struct{ a, b, share float32 }{
		{1, 1, .5}, {.8, 1, .3}, {1, 1.2, .3}, {1, .8, .3}, {.4, 1, 0}, {3, 1, 0}, {1, .4, 0}, {1, 3, 0},
	} {
		d := &p.lspe[0]
		d.a[0], d.b[0] = -c.a*(turn-1)/2, c.b*(turn-1)*(2*turn-1)/6
		d.rx[0], d.rc[0] = 20, .2
		p.slope[0], p.toll[0] = 10, .1
		p.blend(0)
		if want := 10 + 10*c.share; !near(float64(p.slope[0]), float64(want), 1e-4) || !near(float64(p.toll[0]), float64(want/100), 1e-4) {
			t.Errorf("A and B at %v and %v of what they should be: slope %v and %v; want %v and %v", c.a, c.b, p.slope[0], p.toll[0], want, want/100)
		}
	}
}

// TestCycleStable: over a closed cycle φ(1) = 0 → φ(2) → … → φ(1) the symmetric
// part of Σφ(φ′ − φ)ᵀ is −½Σ(φ′ − φ)(φ′ − φ)ᵀ, so A never has a positive
// direction.
func TestCycleStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := env.NewSource("", 10, rapid.Float64Range(.01, 1).Draw(t, "decay"), 1)
		p := oneSource(s, 20, 1)
		for range 20 {
			p.turn[0] = float32(rapid.IntRange(1, 40).Draw(t, "threshold"))
			p.peak[0] = float32(p.mean(0, float64(p.turn[0])))
			p.age[0] = float32(rapid.IntRange(1, 80).Draw(t, "age"))
			p.evaluate(0, float32(p.mean(0, float64(p.age[0]))), 1, .1)
			a := &p.lspe[0].a
			off := float64(a[1]+a[2]) / 2
			if a[0] > 0 || a[3] > 0 || off*off > float64(a[0])*float64(a[3])*(1+1e-4)+1e-12 {
				t.Fatalf("A = %v is not negative semidefinite", *a)
			}
		}
	})
}

// TestPricedSlope: with V(s) − V(1) = η(s − 1) below the threshold, LSPE(0)
// finds r₁ = η from equal cycles; from cycles of S₁ and S₂ in turn,
// 2Σ(S − 1)X/Σ(S − 1)S − η, and its mean with η is the rate of harvest with the
// weights (S − 1)S.
func TestPricedSlope(t *testing.T) {
	s := env.NewSource("", 100, .1, 1)
	s.Cost = 2
	for _, c := range []struct{ one, two int }{{12, 12}, {10, 14}, {12, 6}, {20, 20}} {
		p := oneSource(s, 12, 1)
		p.turn[0] = 14
		p.know(0, s.Decay, s.Ceiling())
		x1, x2 := s.MeanState(c.one), s.MeanState(c.two)
		m1, m2 := float64(min(c.one, 14)), float64(min(c.two, 14))
		p.eta[0] = float32((x1 + x2) / float64(c.one+c.two))
		p.work[0] = float32(2 * s.Cost / float64(c.one+c.two))
		for range 3000 {
			for _, age := range []int{c.one, c.two} {
				p.age[0] = float32(age)
				w := .002 * float64(age) // weights by epochs
				p.evaluate(0, float32(s.MeanState(age)), float32(s.Cost), float32(w))
			}
		}
		eta := float64(p.eta[0])
		// Above the threshold V goes on at the average rate.
		top := (m1-1)*(x1-eta*(float64(c.one)-m1)) + (m2-1)*(x2-eta*(float64(c.two)-m2))
		want := 2*top/((m1-1)*m1+(m2-1)*m2) - eta
		if got := float64(p.lspe[0].rx[0]); math.Abs(got/want-1) > .01 {
			t.Errorf("cycles of %d and %d: r₁ = %v; want %v", c.one, c.two, got, want)
		}
		if c.one == c.two && math.Abs(want/eta-1) > 1e-6 {
			t.Errorf("cycles of %d: %v is not η = %v", c.one, want, eta)
		}
	}
}

func TestLogistic(t *testing.T) {
	r := stream.New(1, stream.Test)
	const n = 400_000
	counts := map[float64]int{-6: 0, -3: 0, -1: 0, 0: 0, .5: 0, 2: 0, 4: 0, 8: 0}
	for range n {
		x := logistic(r)
		for at := range counts {
			if x <= at {
				counts[at]++
			}
		}
	}
	for at, k := range counts {
		f := 1 / (1 + math.Exp(-at))
		if got := float64(k) / n; math.Abs(got-f) > 5*math.Sqrt(f*(1-f)/n) {
			t.Errorf("P(L ≤ %v) = %v of %d draws; want %v", at, got, n, f)
		}
	}
	// Between its points the table is off by less than the page says.
	for k := quantileParts / 16; k < quantileParts; k++ {
		v := (float64(k) + .5) / (2 * quantileParts)
		q := (quantiles[k] + quantiles[k+1]) / 2
		if off := math.Abs(1/(1+math.Exp(-q)) - v); off > 4e-6 {
			t.Fatalf("the quantile of %v is off by %v in probability", v, off)
		}
	}
}

// slowLSPE is the recursion of Allerton, section IV, word for word with dense
// matrices, and a direct solve at each step.
type slowLSPE struct {
	gamma, eta float64
	a, b       *mat.Dense
	bb, r      *mat.VecDense
}

func newSlowLSPE(l int, gamma, epsilon float64) *slowLSPE {
	s := &slowLSPE{gamma: gamma, a: mat.NewDense(l, l, nil), b: mat.NewDense(l, l, nil), bb: mat.NewVecDense(l, nil), r: mat.NewVecDense(l, nil)}
	for i := range l {
		s.b.Set(i, i, epsilon)
	}
	return s
}

func (s *slowLSPE) step(phi, next []float64, reward, b float64) error {
	l := len(phi)
	f, g := mat.NewVecDense(l, phi), mat.NewVecDense(l, next)
	var d mat.VecDense
	d.SubVec(g, f)
	average := func(m *mat.Dense, x, y mat.Vector) {
		var o mat.Dense
		o.Outer(1, x, y)
		o.Sub(&o, m)
		o.Scale(b, &o)
		m.Add(m, &o)
	}
	average(s.b, f, f)
	average(s.a, f, &d)
	var e mat.VecDense
	e.ScaleVec(reward-s.eta, f)
	e.SubVec(&e, s.bb)
	s.bb.AddScaledVec(s.bb, b, &e)
	var v, y mat.VecDense
	v.MulVec(s.a, s.r)
	v.AddVec(&v, s.bb)
	if err := y.SolveVec(s.b, &v); err != nil {
		return err
	}
	s.r.AddScaledVec(s.r, s.gamma, &y)
	s.eta += b * (reward - s.eta)
	return nil
}
