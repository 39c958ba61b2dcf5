package critic

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"ephemera/learner/internal/check"
)

// Critic is LSPE(0) for one problem, one transition at a time, with the steps
// b(n), n = 1, 2, …, and the average reward
//
//	η(n+1) = η(n) + b(n) [reward − η(n)].
//
// A step is one pass over Â, which takes in φ(φ′ − φ)ᵀ and multiplies by r, and
// one over B̂⁻¹, which takes in −k uuᵀ of the step before and multiplies by φ and
// Âr + b̂. B̂ is needed only for checks and fallbacks: what enters it is gathered
// and taken in together.
type Critic struct {
	problem
	step Stepper

	n        int       // steps taken
	eta      float64   // η
	restarts int       // how often r diverged and began again
	z        []float64 // √k u of the last step, which waits: B̂⁻¹ = P − zzᵀ with P = p
	cols     []float64 // gathered √w φ, ℓ×Every, one per column
	held     int       // how many are gathered
	since    float64   // s at the last check
	d        []float64 // scratch: φ′ − φ
}

// New returns the critic for ℓ features, at r = 0, η = 0, A = 0, b̄ = 0.
func New(l int, set Settings) (*Critic, error) {
	if l < 1 {
		panic(fmt.Sprintf("learner: critic of %d features", l))
	}
	if err := set.Validate(); err != nil {
		return nil, err
	}
	c := &Critic{
		problem: newProblem(l, set.Gamma, set.Inverse), step: Stepper{Steps: set.Step},
		z: make([]float64, l), cols: make([]float64, l*set.Inverse.Every), since: 1, d: make([]float64, l),
	}
	c.b, c.p, c.a = make([]float64, l*l), make([]float64, l*l), make([]float64, l*l)
	c.bbar, c.r = make([]float64, l), make([]float64, l)
	for i := range l {
		c.begin(i, set.Inverse.Epsilon)
	}
	return c, nil
}

// Steps returns n, the steps taken.
func (c *Critic) Steps() int { return c.n }

// Weights returns r. It is the critic's own and changes with the next Step.
func (c *Critic) Weights() []float64 { return c.r }

// R returns a copy of r.
func (c *Critic) R() *mat.VecDense { return mat.NewVecDense(c.l, slices.Clone(c.r)) }

// A returns a copy of A.
func (c *Critic) A() *mat.Dense {
	m := mat.NewDense(c.l, c.l, slices.Clone(c.a))
	m.Scale(c.s, m)
	return m
}

// B returns a copy of B.
func (c *Critic) B() *mat.SymDense {
	c.flush()
	m := mat.NewSymDense(c.l, slices.Clone(c.b))
	m.ScaleSym(c.s, m)
	return m
}

// Average returns η, the estimate of the average reward per epoch.
func (c *Critic) Average() float64 { return c.eta }

// Counts returns what the running inverse went through.
func (c *Critic) Counts() Counts { return c.count }

// Value returns V = Σ r(m) φ_m.
func (c *Critic) Value(phi []float64) float64 { return dot(phi, c.r) }

// Step takes in one transition: φ(X(n)), φ(X(n+1)) and the reward of epoch n.
// It allocates nothing and panics if a vector has not ℓ entries.
func (c *Critic) Step(phi, next []float64, reward float64) {
	if len(phi) != c.l || len(next) != c.l {
		panic(fmt.Sprintf("learner: features of %d and %d entries; want %d", len(phi), len(next), c.l))
	}
	c.n++
	step := c.step.Value(c.n)
	w, rho := c.weight(step), reward-c.eta
	// b̂ ← b̂ + w ρφ
	floats.AddScaled(c.bbar, w*rho, phi)
	// Â ← Â + w φ(φ′ − φ)ᵀ,  v = Â r + b̂
	floats.SubTo(c.d, next, phi)
	copy(c.v, c.bbar)
	matrixPass(c.a, c.v, phi, c.d, c.r, w)
	// B̂ ← B̂ + w φφᵀ,  r ← r + γB̂⁻¹v
	c.solve(phi, w)
	floats.AddScaled(c.r, c.gamma, c.y)
	c.eta += step * rho
	if !(floats.Norm(c.r, 1) < overflow) {
		clear(c.r)
		c.restarts++
	}
}

// overflow is the size of the weights at which the critic has diverged. It
// begins again at r = 0 before infinities reach the thresholds.
const overflow = 1e60

// rescale is the power of two by which B̂ is brought back when s has become
// small. It rounds nothing.
const rescale = 1 << 64

// weight is decay, with s kept from vanishing.
func (c *Critic) weight(b float64) (w float64) {
	w = c.decay(b)
	if c.s < 1.0/rescale {
		c.flush()
		c.settle()
		c.scale(1.0 / rescale)
		c.since *= rescale
		w /= rescale
	}
	return w
}

// gather keeps a column times that, for flush to take in.
func (c *Critic) gather(column []float64, by float64) {
	j, every := c.held, c.set.Every
	for _, v := range column {
		c.cols[j] = by * v
		j += every
	}
	c.held++
}

// flush takes in B̂ ← B̂ + w φφᵀ for all that was gathered.
func (c *Critic) flush() {
	if c.held > 0 {
		held := blas64.General{Rows: c.l, Cols: c.held, Stride: c.set.Every, Data: c.cols}
		blas64.Syrk(blas.NoTrans, 1, held, 1, c.symmetric(c.b))
		c.held = 0
	}
}

// solve takes in B̂ ← B̂ + w φφᵀ and writes y = B̂⁻¹v for the new B̂. It reports
// whether the incremental inverse was trusted; if not, or with Always, y is the
// Tikhonov form's.
func (c *Critic) solve(phi []float64, w float64) bool {
	c.count.Updates++
	c.gather(phi, math.Sqrt(w))
	if c.set.Always {
		c.flush()
		c.since = c.s
		c.tikhonov(c.y, c.v)
		return true
	}
	right := c.invert(phi, w)
	if right && c.held < c.set.Every && c.s*math.E > c.since {
		return true
	}
	c.flush()
	c.since = c.s
	if right && c.trusted() {
		return true
	}
	c.count.Fallbacks++
	c.tikhonov(c.y, c.v)
	c.refresh()
	clear(c.z)
	return false
}

// invert takes w φφᵀ into B̂⁻¹, as add does, and writes y = B̂⁻¹v with the new one.
// −k uuᵀ waits, as z. It reports whether B̂⁻¹ is still positive definite.
func (c *Critic) invert(phi []float64, w float64) bool {
	// P ← P − zzᵀ,  u = Pφ,  y = Pv
	symmPass(c.p, c.z, c.u, c.y, phi, c.v)
	// z = √k u,  y = (P − k uuᵀ)v
	k, ok := c.gain(phi, w)
	floats.ScaleTo(c.z, math.Sqrt(k), c.u)
	floats.AddScaled(c.y, -k*dot(c.u, c.v), c.u)
	return ok
}

// settle takes in the z that waits.
func (c *Critic) settle() {
	outer(c.p, c.z, c.z, -1)
	clear(c.z)
}

// trusted reports whether y solves B̂y = v and B̂ is far enough from
// rank-deficient.
func (c *Critic) trusted() bool {
	c.settle()
	c.count.Checks++
	rho := c.residual(c.y, c.v)
	if !(rho <= c.set.Tolerance) {
		return false
	}
	if !(c.condition() <= c.set.Condition) {
		c.count.Deficient++
		return false
	}
	c.count.Worst = max(c.count.Worst, rho)
	return true
}

// State is the whole state of a Critic as data.
type State struct {
	Steps    int          `json:"steps"`    // n
	Average  float64      `json:"average"`  // η
	Weights  []float64    `json:"weights"`  // r, ℓ
	A        []float64    `json:"a"`        // Â = A/s, ℓ×ℓ row by row
	B        []float64    `json:"b"`        // b̂ = b̄/s, ℓ
	Restarts int          `json:"restarts"` // how often r diverged and began again
	Inverse  InverseState `json:"inverse"`
}

// InverseState is the state of the running inverse as data.
type InverseState struct {
	Scale  float64     `json:"scale"`          // s
	Since  float64     `json:"since"`          // s at the last check
	Matrix []float64   `json:"matrix"`         // B̂, ℓ×ℓ, upper triangle
	P      []float64   `json:"p"`              // P, ℓ×ℓ; B̂⁻¹ = P − zzᵀ
	Z      []float64   `json:"z"`              // z, ℓ
	Held   [][]float64 `json:"held,omitempty"` // gathered √w φ, oldest first
	Counts Counts      `json:"counts"`
}

// State returns a copy of the state.
func (c *Critic) State() State {
	st := State{
		Steps: c.n, Average: c.eta, Weights: slices.Clone(c.r), A: slices.Clone(c.a), B: slices.Clone(c.bbar), Restarts: c.restarts,
		Inverse: InverseState{Scale: c.s, Since: c.since, Matrix: slices.Clone(c.b), P: slices.Clone(c.p), Z: slices.Clone(c.z), Counts: c.count},
	}
	for k := range c.held {
		column := make([]float64, c.l)
		for i := range column {
			column[i] = c.cols[i*c.set.Every+k]
		}
		st.Inverse.Held = append(st.Inverse.Held, column)
	}
	return st
}

// SetState takes up a state that State returned. It changes nothing if it
// returns an error.
func (c *Critic) SetState(st State) error {
	l, in := c.l, &st.Inverse
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
	switch {
	case st.Steps < 0:
		return fmt.Errorf("steps is %d; allowed is 0 or more", st.Steps)
	case math.IsNaN(st.Average) || math.IsInf(st.Average, 0):
		return fmt.Errorf("average is %v; allowed is a finite number", st.Average)
	case !positive(in.Scale) || !positive(in.Since):
		return fmt.Errorf("inverse: scale and since are %v and %v; allowed are finite numbers above 0", in.Scale, in.Since)
	case len(in.Held) >= c.set.Every:
		return fmt.Errorf("inverse: held has %d columns; allowed are fewer than every, %d", len(in.Held), c.set.Every)
	}
	err := check.First(
		check.Finite("weights", st.Weights, l), check.Finite("a", st.A, l*l), check.Finite("b", st.B, l),
		check.Finite("inverse: matrix", in.Matrix, l*l), check.Finite("inverse: p", in.P, l*l), check.Finite("inverse: z", in.Z, l),
	)
	for _, column := range in.Held {
		err = check.First(err, check.Finite("inverse: held", column, l))
	}
	if err != nil {
		return err
	}
	c.n, c.eta, c.restarts = st.Steps, st.Average, st.Restarts
	c.step = Stepper{Steps: c.step.Steps}
	copy(c.r, st.Weights)
	copy(c.a, st.A)
	copy(c.bbar, st.B)
	c.s, c.since, c.count, c.held = in.Scale, in.Since, in.Counts, 0
	copy(c.b, in.Matrix)
	copy(c.p, in.P)
	copy(c.z, in.Z)
	for _, column := range in.Held {
		c.gather(column, 1)
	}
	return nil
}
