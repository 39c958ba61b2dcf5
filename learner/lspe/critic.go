package lspe

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"ephemera/learner/internal/check"
)

// Settings are the settings of the critic.
type Settings struct {
	Gamma   float64 // γ, the step of r; above 0 and below 2
	Step    Steps   // b(n) of η, B, A and b; below 1 at n = 1
	Inverse InverseSettings
}

// Validate reports the first field that is out of its range.
func (s Settings) Validate() error {
	if !(s.Gamma > 0 && s.Gamma < 2) {
		return fmt.Errorf("gamma is %v; allowed is above 0 and below 2", s.Gamma)
	}
	if err := s.Step.Validate(); err != nil {
		return fmt.Errorf("b: %w", err)
	}
	if v := s.Step.At(1); v >= 1 {
		return fmt.Errorf("b: step %q is %v at n = 1; allowed is below 1, for a step of 1 wipes out what the recursion began with", s.Step, v)
	}
	return s.Inverse.Validate()
}

// Critic is LSPE(0) for the average reward (Yu and Bertsekas, 2009), as Allerton,
// section IV, prints it. With step b = b(n), n = 1, 2, …, and ρ = reward − η(n):
//
//	B(n) = B(n−1) + b [φφᵀ − B(n−1)],         φ = φ(X(n)),
//	A(n) = A(n−1) + b [φ(φ′ − φ)ᵀ − A(n−1)],  φ′ = φ(X(n+1)),
//	b̄(n) = b̄(n−1) + b [φρ − b̄(n−1)],
//	r(n+1) = r(n) + γ B⁻¹(n)(A(n) r(n) + b̄(n)),
//	η(n+1) = η(n) + b [reward − η(n)].
//
// A = sÂ and b̄ = sb̂ share the scalar s of B = sB̂, see inverse; it cancels in
// the update of r:
//
//	B⁻¹(A r + b̄) = B̂⁻¹(Â r + b̂).
//
// A step is one pass over Â, which takes in φ(φ′ − φ)ᵀ and multiplies by r, and
// one pass over B̂⁻¹.
type Critic struct {
	set  Settings
	step Stepper
	inv  *inverse

	n        int       // steps taken
	r        []float64 // weights of the features
	a        []float64 // Â, ℓ×ℓ row by row
	b        []float64 // b̂
	eta      float64   // η
	restarts int       // how often r diverged and began again
	v, y, d  []float64 // scratch
}

// New returns the critic for ℓ features, at r = 0, η = 0, A = 0, b̄ = 0.
func New(l int, set Settings) (*Critic, error) {
	if err := set.Validate(); err != nil {
		return nil, err
	}
	inv, err := newInverse(l, set.Inverse)
	if err != nil {
		return nil, err
	}
	return &Critic{
		set: set, step: Stepper{Steps: set.Step}, inv: inv,
		r: make([]float64, l), a: make([]float64, l*l), b: make([]float64, l),
		v: make([]float64, l), y: make([]float64, l), d: make([]float64, l),
	}, nil
}

// Len returns ℓ.
func (c *Critic) Len() int { return len(c.r) }

// Steps returns n, the steps taken.
func (c *Critic) Steps() int { return c.n }

// Weights returns r. It is the critic's own and changes with the next Step.
func (c *Critic) Weights() []float64 { return c.r }

// R returns a copy of r.
func (c *Critic) R() *mat.VecDense { return mat.NewVecDense(len(c.r), slices.Clone(c.r)) }

// A returns a copy of A.
func (c *Critic) A() *mat.Dense {
	l := len(c.r)
	m := mat.NewDense(l, l, slices.Clone(c.a))
	m.Scale(c.inv.s, m)
	return m
}

// B returns a copy of B.
func (c *Critic) B() *mat.SymDense { return c.inv.B() }

// Average returns η, the estimate of the average reward per epoch.
func (c *Critic) Average() float64 { return c.eta }

// Counts returns what the running inverse went through.
func (c *Critic) Counts() Counts { return c.inv.Counts() }

// Restarts returns how often the weights diverged and began again at 0.
func (c *Critic) Restarts() int { return c.restarts }

// Value returns V = Σ r(m) φ_m.
func (c *Critic) Value(phi []float64) float64 {
	var s0, s1 float64
	r := c.r[:len(phi)]
	i := 0
	for ; i < len(phi)-1; i += 2 {
		s0 += phi[i] * r[i]
		s1 += phi[i+1] * r[i+1]
	}
	if i < len(phi) {
		s0 += phi[i] * r[i]
	}
	return s0 + s1
}

// Step takes in one transition: φ(X(n)), φ(X(n+1)) and the reward of epoch n.
// It allocates nothing and panics if a vector has not ℓ entries.
func (c *Critic) Step(phi, next []float64, reward float64) {
	l := len(c.r)
	if len(phi) != l || len(next) != l {
		panic(fmt.Sprintf("learner: features of %d and %d entries; want %d", len(phi), len(next), l))
	}
	c.n++
	step := c.step.Value(c.n)
	w, rescaled := c.inv.decay(step)
	if rescaled {
		for i := range c.a {
			c.a[i] *= 1.0 / rescale
		}
		for i := range c.b {
			c.b[i] *= 1.0 / rescale
		}
	}
	d := c.d[:len(phi)]
	for i, f := range phi {
		d[i] = next[i] - f
	}
	rho := reward - c.eta
	// Â ← Â + w φ(φ′ − φ)ᵀ,  b̂ ← b̂ + w ρ φ,  v = Â r + b̂
	pass(c.a, c.v, c.b, phi, d, c.r, w, w*rho)
	// B̂ ← B̂ + w φφᵀ,  y = B̂⁻¹v
	c.inv.updateSolve(c.y, phi, c.v, w)
	// r ← r + γy
	gamma := c.set.Gamma
	r, sum := c.r[:len(c.y)], 0.0
	for i, y := range c.y {
		v := r[i] + gamma*y
		r[i] = v
		sum += math.Abs(v)
	}
	c.eta += step * rho
	if !(sum < overflow) {
		clear(c.r)
		c.restarts++
	}
}

// overflow is the size of the weights at which the critic has diverged. It
// begins again at r = 0 before infinities reach the thresholds.
const overflow = 1e60

// pass takes Â ← Â + w φdᵀ and b̂ ← b̂ + w ρ φ and forms v = Âr + b̂ with the new
// ones.
func pass(a, v, b, phi, d, r []float64, w, wrho float64) {
	v, b = v[:len(phi)], b[:len(phi)]
	for i, f := range phi {
		t := b[i] + wrho*f
		b[i], v[i] = t, t
	}
	matrixPass(a, v, phi, d, r, w)
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

// State returns a copy of the state.
func (c *Critic) State() State {
	return State{Steps: c.n, Average: c.eta, Weights: slices.Clone(c.r), A: slices.Clone(c.a), B: slices.Clone(c.b), Restarts: c.restarts, Inverse: c.inv.State()}
}

// SetState takes up a state that State returned.
func (c *Critic) SetState(st State) error {
	l := len(c.r)
	if st.Steps < 0 {
		return fmt.Errorf("steps is %d; allowed is 0 or more", st.Steps)
	}
	if math.IsNaN(st.Average) || math.IsInf(st.Average, 0) {
		return fmt.Errorf("average is %v; allowed is a finite number", st.Average)
	}
	if err := check.First(check.Finite("weights", st.Weights, l), check.Finite("a", st.A, l*l), check.Finite("b", st.B, l)); err != nil {
		return err
	}
	if err := c.inv.SetState(st.Inverse); err != nil {
		return fmt.Errorf("inverse: %w", err)
	}
	c.n, c.eta, c.restarts = st.Steps, st.Average, st.Restarts
	c.step = Stepper{Steps: c.set.Step}
	copy(c.r, st.Weights)
	copy(c.a, st.A)
	copy(c.b, st.B)
	return nil
}
