package critic

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ephemera/env/stream"
)

// slowLSPE is the recursion of Allerton, section IV, word for word with dense
// matrices, and a direct solve at each step.
type slowLSPE struct {
	gamma, eta float64
	a, b       *mat.Dense
	bb, r      *mat.VecDense
}

func newSlowLSPE(l int, gamma, epsilon float64) *slowLSPE {
	s := &slowLSPE{
		gamma: gamma,
		a:     mat.NewDense(l, l, nil), b: mat.NewDense(l, l, nil),
		bb: mat.NewVecDense(l, nil), r: mat.NewVecDense(l, nil),
	}
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

// TestAgainstSlow: a critic, plain and scaled, with one reward and with twice it as
// a second one, follows the recursion.
func TestAgainstSlow(t *testing.T) {
	for _, step := range []Steps{Harmonic(), Constant(.01), {Scale: .03, Block: 40, Power: 2. / 3}} {
		for _, l := range []int{1, 2, 5, 14, 25, 70} {
			set := DefaultSettings()
			set.Gamma, set.Condition = .3, 1e12
			one := New(l, 1, set)
			set.Scaled = true
			two := New(l, 2, set)
			s := newSlowLSPE(l, set.Gamma, set.Epsilon)
			r := stream.New(7, stream.Test, uint64(l))
			phi, next := make([]float64, l), make([]float64, l)
			for n := 1; n <= 10000/(25+l); n++ {
				phi, next = next, phi
				for i := range next {
					next[i] = r.NormFloat64()
				}
				reward, b := r.Float64()+phi[0], step.At(n)
				one.Step(phi, next, reward, b)
				two.Begin(b)
				two.Transition(phi, next)
				two.Reward(0, reward-s.eta, phi)
				two.Reward(1, 2*(reward-s.eta), phi)
				two.Solve()
				if err := s.step(phi, next, reward, b); err != nil {
					t.Fatal(err)
				}
				size := 1 + mat.Norm(s.r, math.Inf(1))
				for i, got := range one.Weights(0) {
					want := s.r.AtVec(i)
					x, y, off := two.Weights(0)[i], two.Weights(1)[i], 1e-5*size
					if math.Abs(got-want) > off || math.Abs(x-want) > off || math.Abs(y-2*want) > off {
						t.Fatalf("%v, l = %d, step %d: r[%d] is %v, %v and %v; want %v and twice as much",
							step, l, n, i, got, x, y, want)
					}
				}
				if math.Abs(one.Average()-s.eta) > 1e-12 {
					t.Fatalf("%v, l = %d, step %d: η is %v; want %v", step, l, n, one.Average(), s.eta)
				}
			}
			if n := one.Fallbacks() + two.Fallbacks(); n != 0 {
				t.Errorf("%v, l = %d: %d fallbacks", step, l, n)
			}
		}
	}
}

// TestTransitions: two transitions in a step with the weight b are averaged with
// that weight each.
func TestTransitions(t *testing.T) {
	set := DefaultSettings()
	set.Gamma, set.Epsilon = .2, 1
	c, b := New(2, 1, set), .25
	c.Begin(b)
	c.Transition([]float64{1, .5}, []float64{.8, .6})
	c.Transition([]float64{0, 1}, []float64{1, 0})
	c.Reward(0, 3, []float64{1, .5})
	c.Solve()
	// B = (1 − b)I + b(φ₁φ₁ᵀ + φ₂φ₂ᵀ), b̄ = 3bφ₁, r = γB⁻¹b̄
	direct := mat.NewDense(2, 2, []float64{1 - b + b, .5 * b, .5 * b, 1 - b + 1.25*b})
	var want mat.VecDense
	if err := want.SolveVec(direct, mat.NewVecDense(2, []float64{3 * b, 1.5 * b})); err != nil {
		t.Fatal(err)
	}
	for i, r := range c.Weights(0) {
		if math.Abs(r-.2*want.AtVec(i)) > 1e-14 {
			t.Errorf("r[%d] is %v; want %v", i, r, .2*want.AtVec(i))
		}
	}
}

// TestFixedPoint: LSPE(0) converges to the r at which A r + b̄ = 0 (Yu and
// Bertsekas, 2009). It is held against the batch least-squares solution over
// the same trajectory, and against the exact one from the chain's stationary
// distribution π: Φᵀ D (P − I) Φ r + Φᵀ D (R − β) = 0 with D = diag(π).
func TestFixedPoint(t *testing.T) {
	const states, l, steps = 5, 3, 200_000
	p := [states][states]float64{
		{.1, .6, .1, .1, .1},
		{.2, .1, .5, .1, .1},
		{.3, .1, .1, .4, .1},
		{.1, .2, .1, .1, .5},
		{.6, .1, .1, .1, .1},
	}
	reward := [states]float64{5, -1, 2, 0, 7}
	phi := [states][]float64{{1, 0, .5}, {.2, 1, 0}, {0, .3, 1}, {.5, .5, 0}, {0, 1, 1}}

	set := DefaultSettings()
	set.Gamma = 1
	c := New(l, 1, set)
	rnd := stream.New(8, stream.Test)
	a, b := mat.NewDense(l, l, nil), mat.NewVecDense(l, nil)
	x := 0
	for n := range steps {
		u, y := rnd.Float64(), 0
		for ; y < states-1 && u >= p[x][y]; y++ {
			u -= p[x][y]
		}
		f := mat.NewVecDense(l, phi[x])
		var d mat.VecDense
		d.SubVec(mat.NewVecDense(l, phi[y]), f)
		a.RankOne(a, 1./(steps+1), f, &d)
		b.AddScaledVec(b, (reward[x]-c.Average())/(steps+1), f)
		c.Step(phi[x], phi[y], reward[x], Harmonic().At(n+1))
		x = y
	}
	off := mat.NewDense(l, l, c.State().A)
	off.Scale(c.State().Scale, off)
	off.Sub(off, a)
	if size := mat.Norm(off, 1); size > 1e-6 {
		t.Errorf("A is off by %v", size)
	}
	var batch mat.VecDense
	b.ScaleVec(-1, b)
	if err := batch.SolveVec(a, b); err != nil {
		t.Fatal(err)
	}
	for i, r := range c.Weights(0) {
		if math.Abs(r-batch.AtVec(i)) > 2e-3 {
			t.Errorf("r[%d] is %v; batch least squares give %v", i, r, batch.AtVec(i))
		}
	}

	// π by powers of P.
	pi := [states]float64{1}
	for range 500 {
		var q [states]float64
		for i, w := range pi {
			for j := range q {
				q[j] += w * p[i][j]
			}
		}
		pi = q
	}
	var beta float64
	for i, w := range pi {
		beta += w * reward[i]
	}
	exactA, exactB := mat.NewDense(l, l, nil), mat.NewVecDense(l, nil)
	for i, w := range pi {
		f := mat.NewVecDense(l, phi[i])
		mean := mat.NewVecDense(l, nil)
		for j := range pi {
			mean.AddScaledVec(mean, p[i][j], mat.NewVecDense(l, phi[j]))
		}
		mean.SubVec(mean, f)
		exactA.RankOne(exactA, w, f, mean)
		exactB.AddScaledVec(exactB, -w*(reward[i]-beta), f)
	}
	var exact mat.VecDense
	if err := exact.SolveVec(exactA, exactB); err != nil {
		t.Fatal(err)
	}
	size := mat.Norm(&exact, math.Inf(1))
	for i, r := range c.Weights(0) {
		if math.Abs(r-exact.AtVec(i)) > .05*size {
			t.Errorf("r[%d] is %v; the chain's fixed point is %v", i, r, exact.AtVec(i))
		}
	}
	if math.Abs(c.Average()-beta) > .05 {
		t.Errorf("η is %v; the chain's average reward is %v", c.Average(), beta)
	}
}

// TestRestart: weights that diverge begin again instead of becoming infinite.
func TestRestart(t *testing.T) {
	set := DefaultSettings()
	set.Gamma = 1.9
	c, most := New(1, 1, set), 0.
	for range 4000 { // φ′ = 3φ on every transition: off any trajectory, and unstable
		c.Step([]float64{1}, []float64{3}, 1, .5)
		v := math.Abs(c.Weights(0)[0])
		if !(v < set.Overflow) {
			t.Fatalf("weight is %v", v)
		}
		most = max(most, v)
	}
	if most < 1e50 {
		t.Errorf("the greatest weight was %v", most)
	}
}

// TestState: a critic that takes up a state goes on bit for bit; a state that is
// refused changes nothing.
func TestState(t *testing.T) {
	const l = 3
	r := stream.New(13, stream.Test)
	x := make([]float64, 200*l)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	work := func(c *Critic, from, to int) {
		for i := from; i < to; i++ {
			c.Step(x[i*l:][:l], x[(i+1)*l:][:l], x[i*l], .02)
		}
	}
	fresh := func() *Critic { return New(l, 1, DefaultSettings()) }
	for _, at := range []int{0, 1, 101} {
		c, again := fresh(), fresh()
		work(c, 0, at)
		work(again, 100, 160) // what it did before is forgotten
		if err := again.SetState(c.State()); err != nil {
			t.Fatal(err)
		}
		work(c, at, 199)
		work(again, at, 199)
		if got, want := again.State(), c.State(); !reflect.DeepEqual(got, want) {
			t.Errorf("saved at %d: the state is %+v; want %+v", at, got, want)
		}
	}
	c := fresh()
	work(c, 0, 40)
	before := c.State()
	expect(t, c.SetState(New(l+1, 1, DefaultSettings()).State()), "b has 16 entries; allowed are 9")
	expect(t, c.SetState(New(l, 2, DefaultSettings()).State()), "rewards has 6 entries")
	if !reflect.DeepEqual(c.State(), before) {
		t.Error("a refused state changed the critic")
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		want   string
		change func(*Settings)
	}{
		{"gamma is NaN", func(s *Settings) { s.Gamma = math.NaN() }},
		{"epsilon is 0", func(s *Settings) { s.Epsilon = 0 }},
	} {
		s := DefaultSettings()
		tt.change(&s)
		expect(t, s.Validate(), tt.want)
	}
	c, two := New(2, 1, DefaultSettings()), []float64{1, 2}
	for _, tt := range []struct {
		name string
		call func()
	}{
		{"NaN step", func() { c.Begin(math.NaN()) }},
		{"shape", func() { c.Transition(two[:1], two) }},
		{"no settings", func() { New(1, 1, Settings{}) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if s := fmt.Sprint(recover()); !strings.HasPrefix(s, "critic: ") {
					t.Errorf("panic %q; want one that begins with critic:", s)
				}
			}()
			tt.call()
		})
	}
}

// expect fails unless err is one line that begins with want.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v; want one line that begins with %q", err, want)
	}
}

// BenchmarkCritic is a step with two rewards.
func BenchmarkCritic(b *testing.B) {
	for _, l := range []int{2, 3, 4, 8} {
		b.Run(fmt.Sprintf("l=%d", l), func(b *testing.B) {
			set := DefaultSettings()
			set.Scaled = true
			c := New(l, 2, set)
			const m = 64
			x := make([]float64, (m+1)*l)
			for i := range x {
				x[i] = float64((i*7919)%101) / 101
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				at := n % m * l
				c.Begin(.05)
				c.Transition(x[at:][:l], x[at+l:][:l])
				c.Reward(0, 1, x[at:][:l])
				c.Reward(1, -1, x[at:][:l])
				c.Solve()
			}
		})
	}
}
