package critic

import (
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

func TestLSPEAgainstSlow(t *testing.T) {
	for _, step := range []Steps{Harmonic(), Constant(.01), {Scale: .03, Block: 40, Power: 2. / 3}} {
		for _, l := range []int{1, 2, 5, 14, 15, 24, 25, 33, 70} {
			set := Settings{Gamma: .3, Step: step, Inverse: DefaultInverseSettings()}
			set.Inverse.Condition = 1e12
			c, err := New(l, set)
			if err != nil {
				t.Fatal(err)
			}
			s := newSlowLSPE(l, set.Gamma, set.Inverse.Epsilon)
			r := stream.New(7, stream.Test, uint64(l))
			phi, next := make([]float64, l), make([]float64, l)
			steps := 400
			if l > 24 {
				steps = 150
			}
			for n := 1; n <= steps; n++ {
				phi, next = next, phi
				for i := range next {
					next[i] = r.NormFloat64()
				}
				reward := r.Float64() + phi[0]
				c.Step(phi, next, reward)
				if err := s.step(phi, next, reward, step.At(n)); err != nil {
					t.Fatal(err)
				}
				size := 1 + mat.Norm(s.r, math.Inf(1))
				for i, got := range c.Weights() {
					if math.Abs(got-s.r.AtVec(i)) > 1e-5*size {
						t.Fatalf("%v, l = %d, step %d: r[%d] is %v; want %v", step, l, n, i, got, s.r.AtVec(i))
					}
				}
				if math.Abs(c.Average()-s.eta) > 1e-12 {
					t.Fatalf("%v, l = %d, step %d: η is %v; want %v", step, l, n, c.Average(), s.eta)
				}
			}
			if n := c.Counts().Fallbacks; n != 0 {
				t.Errorf("%v, l = %d: %d fallbacks", step, l, n)
			}
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

	c, err := New(l, Settings{Gamma: 1, Step: Harmonic(), Inverse: DefaultInverseSettings()})
	if err != nil {
		t.Fatal(err)
	}
	rnd := stream.New(8, stream.Test)
	a, b := mat.NewDense(l, l, nil), mat.NewVecDense(l, nil)
	x := 0
	for range steps {
		u, y := rnd.Float64(), 0
		for ; y < states-1 && u >= p[x][y]; y++ {
			u -= p[x][y]
		}
		f := mat.NewVecDense(l, phi[x])
		var d mat.VecDense
		d.SubVec(mat.NewVecDense(l, phi[y]), f)
		a.RankOne(a, 1./(steps+1), f, &d)
		b.AddScaledVec(b, (reward[x]-c.Average())/(steps+1), f)
		c.Step(phi[x], phi[y], reward[x])
		x = y
	}
	var off mat.Dense
	off.Sub(c.A(), a)
	if size := mat.Norm(&off, 1); size > 1e-6 {
		t.Errorf("A is off by %v", size)
	}
	if x := c.R(); x.AtVec(0) != c.Weights()[0] {
		t.Errorf("R is %v; the weights are %v", x, c.Weights())
	}
	var batch mat.VecDense
	b.ScaleVec(-1, b)
	if err := batch.SolveVec(a, b); err != nil {
		t.Fatal(err)
	}
	for i, r := range c.Weights() {
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
	for i, r := range c.Weights() {
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
	c, err := New(1, Settings{Gamma: 1.9, Step: Constant(.5), Inverse: DefaultInverseSettings()})
	if err != nil {
		t.Fatal(err)
	}
	for range 4000 { // φ′ = 3φ on every transition: off any trajectory, and unstable
		c.Step([]float64{1}, []float64{3}, 1)
		if v := c.Weights()[0]; math.IsNaN(v) || math.Abs(v) > overflow {
			t.Fatalf("weight is %v", v)
		}
	}
	if c.restarts == 0 {
		t.Error("no restart")
	}
}

// TestState: a critic that takes up a state goes on bit for bit, from wherever
// between two checks it was saved; a state that is refused changes nothing.
func TestState(t *testing.T) {
	const l = 3
	fresh := func() *Critic {
		c, err := New(l, Settings{Gamma: .3, Step: Constant(.02), Inverse: DefaultInverseSettings()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	r := stream.New(13, stream.Test)
	x := make([]float64, 200*l)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	work := func(c *Critic, from, to int) {
		for i := from; i < to; i++ {
			c.Step(x[i*l:][:l], x[(i+1)*l:][:l], x[i*l])
		}
	}
	for _, at := range []int{0, 1, 40, 101} {
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
	for want, change := range map[string]func(*State){
		"steps is -1":              func(s *State) { s.Steps = -1 },
		"average is NaN":           func(s *State) { s.Average = math.NaN() },
		"weights has 0 entries":    func(s *State) { s.Weights = nil },
		"a has 8 entries":          func(s *State) { s.A = s.A[1:] },
		"b has +Inf at place 1":    func(s *State) { s.B[1] = math.Inf(1) },
		"inverse: scale and since": func(s *State) { s.Inverse.Scale = 0 },
		"inverse: matrix has NaN":  func(s *State) { s.Inverse.Matrix[2] = math.NaN() },
		"inverse: p has 0 entries": func(s *State) { s.Inverse.P = nil },
		"inverse: z has 4 entries": func(s *State) { s.Inverse.Z = append(s.Inverse.Z, 0) },
		"inverse: held has 64":     func(s *State) { s.Inverse.Held = make([][]float64, 64) },
		"inverse: held has 0":      func(s *State) { s.Inverse.Held[3] = nil },
	} {
		s, before := c.State(), c.State()
		s.Steps, s.Restarts = 7, 7
		change(&s)
		expect(t, c.SetState(s), want)
		if !reflect.DeepEqual(c.State(), before) {
			t.Errorf("%s: the refused state changed the critic", want)
		}
	}
}

func TestLSPESettings(t *testing.T) {
	good := Settings{Gamma: .05, Step: Harmonic(), Inverse: DefaultInverseSettings()}
	for name, change := range map[string]func(*Settings){
		"gamma is 0":         func(s *Settings) { s.Gamma = 0 },
		"gamma is NaN":       func(s *Settings) { s.Gamma = math.NaN() },
		"gamma is 2":         func(s *Settings) { s.Gamma = 2 },
		"b: scale c is 0":    func(s *Settings) { s.Step.Scale = 0 },
		"b: step \"1\" is 1": func(s *Settings) { s.Step = Constant(1) },
		"epsilon is 0":       func(s *Settings) { s.Inverse.Epsilon = 0 },
		"delta is NaN":       func(s *Settings) { s.Inverse.Delta = math.NaN() },
		"tolerance is 1":     func(s *Settings) { s.Inverse.Tolerance = 1 },
		"condition is 1":     func(s *Settings) { s.Inverse.Condition = 1 },
		"every is 0":         func(s *Settings) { s.Inverse.Every = 0 },
	} {
		s := good
		change(&s)
		_, err := New(2, s)
		expect(t, err, name)
	}
}

// expect fails unless err is one line that begins with want.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v; want one line that begins with %q", err, want)
	}
}
