package critic

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ephemera/learner/internal/check"
)

// Critic is LSPE(0) for the average reward (Yu and Bertsekas, 2009), as Allerton,
// section IV, prints it, for ℓ features. With step b and ρ = reward − η:
//
//	B ← B + b [φφᵀ − B],          φ = φ(X(n)),
//	A ← A + b [φ(φ′ − φ)ᵀ − A],   φ′ = φ(X(n+1)),
//	b̄ ← b̄ + b [φρ − b̄],
//	r ← r + γB⁻¹(A r + b̄),
//	η ← η + b [reward − η].
//
// A = sÂ and b̄ = sb̂ share the scalar s of B = sB̂; it cancels in the update of r:
//
//	B⁻¹(A r + b̄) = B̂⁻¹(Â r + b̂).
//
// [Critic.Step] is the whole recursion. Where there are several rewards, each with
// its own b̄ and r, or several transitions in a step, it is taken apart: Begin,
// Transition and Reward as often as there are any, Solve.
type Critic struct {
	inverse
	a    []float64 // Â, ℓ×ℓ
	bbar []float64 // b̂, ℓ for each reward
	r    []float64 // r, likewise
	eta  float64   // η

	w       float64   // weight of the present step in B̂, Â and b̂
	d, v, y []float64 // scratch: φ′ − φ, Âr + b̂, and B̂⁻¹ of it
}

// New returns the critic for ℓ features and that many rewards, at B = εI, A = 0,
// b̄ = 0, r = 0 and η = 0. It panics unless there are some, and the settings valid.
func New(l, rewards int, set Settings) *Critic {
	if err := set.Validate(); err != nil || l < 1 || rewards < 1 {
		panic(fmt.Sprintf("critic: %d features and %d rewards, %v; allowed are 1 or more and valid settings", l, rewards, err))
	}
	data := make([]float64, 3*l*l+(2*rewards+6)*l)
	cut := func(n int) []float64 {
		part := data[:n:n]
		data = data[n:]
		return part
	}
	c := &Critic{
		inverse: inverse{set: set, l: l, b: cut(l * l), p: cut(l * l), unit: cut(l), u: cut(l), rest: cut(l)},
		a:       cut(l * l), bbar: cut(rewards * l), r: cut(rewards * l),
		d: cut(l), v: cut(l), y: cut(l),
	}
	c.Restart()
	return c
}

// Restart begins again where New does. Fallbacks are counted on.
func (c *Critic) Restart() {
	for _, v := range [][]float64{c.b, c.p, c.a, c.bbar, c.r} {
		clear(v)
	}
	for i := range c.l {
		c.b[i*c.l+i], c.p[i*c.l+i], c.unit[i] = c.set.Epsilon, 1/c.set.Epsilon, 1
	}
	c.s, c.since, c.held, c.definite, c.eta = 1, 1, 0, true, 0
}

// Weights returns r of a reward. It is the critic's own and may be written to.
func (c *Critic) Weights(reward int) []float64 { return c.r[reward*c.l:][:c.l:c.l] }

// Average returns η, the estimate of the average reward per epoch.
func (c *Critic) Average() float64 { return c.eta }

// Value returns V = Σ r(m) φ_m of the first reward.
func (c *Critic) Value(phi []float64) float64 { return floats.Dot(phi, c.r[:c.l]) }

// Fallbacks counts the steps at which the inverse was not trusted.
func (c *Critic) Fallbacks() int { return c.fallbacks }

// Step takes in one transition with the step b: φ(X(n)), φ(X(n+1)) and the reward
// of epoch n.
func (c *Critic) Step(phi, next []float64, reward, b float64) {
	rho := reward - c.eta
	c.Begin(b)
	c.Transition(phi, next)
	c.Reward(0, rho, phi)
	c.Solve()
	c.eta += b * rho
}

// rescale is the power of two by which B̂ is brought back when s has become
// small. It rounds nothing.
const rescale = 1 << 64

// Begin begins a step that counts with the weight b, 0 < b < 1.
func (c *Critic) Begin(b float64) {
	if !(b > 0 && b < 1) {
		panic(fmt.Sprintf("critic: step is %v; allowed is above 0 and below 1", b))
	}
	if c.s *= 1 - b; c.s < 1.0/rescale {
		c.s *= rescale
		for _, v := range [][]float64{c.b, c.a, c.bbar} {
			floats.Scale(1.0/rescale, v)
		}
		if !c.set.Always { // else B̂⁻¹ is neither kept nor checked
			c.since *= rescale
			floats.Scale(rescale, c.p)
		}
	}
	c.w = b / c.s
}

// Transition takes in φ and φ′, both of ℓ numbers.
func (c *Critic) Transition(phi, next []float64) {
	if len(phi) != c.l || len(next) != c.l {
		panic(fmt.Sprintf("critic: features of %d and %d entries; want %d", len(phi), len(next), c.l))
	}
	floats.SubTo(c.d, next, phi)
	c.addOuter(c.a, c.w, phi, c.d)
	c.add(phi, c.w)
}

// Reward takes in ρ, at φ, of one of the rewards.
func (c *Critic) Reward(reward int, rho float64, phi []float64) {
	floats.AddScaled(c.bbar[reward*c.l:][:c.l], c.w*rho, phi)
}

// Solve ends a step with the update of r for each reward. It reports whether the
// running inverse was trusted.
func (c *Critic) Solve() bool {
	trusted := true
	for at := 0; at < len(c.r); at += c.l {
		r := c.r[at:][:c.l]
		copy(c.v, c.bbar[at:])
		c.times(c.v, 1, c.a, r)
		trusted = c.solve(c.y, c.v) && trusted
		floats.AddScaled(r, c.set.Gamma, c.y)
	}
	if !(floats.Dot(c.r, c.r) < c.set.Overflow*c.set.Overflow) {
		clear(c.r)
	}
	if !trusted {
		c.refresh()
	}
	return trusted
}

// State is the whole state of a Critic as data.
type State struct {
	Scale     float64   `json:"scale"`   // s
	Since     float64   `json:"since"`   // s at the last check of the inverse
	Held      int       `json:"held"`    // solutions since then
	B         []float64 `json:"b"`       // B̂ = B/s, ℓ×ℓ row by row
	Inverse   []float64 `json:"inverse"` // B̂⁻¹, ℓ×ℓ
	A         []float64 `json:"a"`       // Â = A/s, ℓ×ℓ
	Rewards   []float64 `json:"rewards"` // b̂ = b̄/s, ℓ for each reward
	Weights   []float64 `json:"weights"` // r, ℓ for each reward
	Average   float64   `json:"average"` // η
	Fallbacks int       `json:"fallbacks"`
}

// State returns a copy of the state, between two steps.
func (c *Critic) State() State {
	return State{
		c.s, c.since, c.held, slices.Clone(c.b), slices.Clone(c.p), slices.Clone(c.a), slices.Clone(c.bbar), slices.Clone(c.r), c.eta, c.fallbacks,
	}
}

// SetState takes up a state that State returned. It changes nothing if it
// returns an error.
func (c *Critic) SetState(s State) error {
	if !(s.Scale > 0 && s.Since > 0) || math.IsInf(s.Scale+s.Since, 1) {
		return fmt.Errorf("scale and since are %v and %v; allowed are finite numbers above 0", s.Scale, s.Since)
	}
	if s.Fallbacks < 0 || s.Held < 0 {
		return fmt.Errorf("fallbacks and held are %d and %d; allowed are 0 or more", s.Fallbacks, s.Held)
	}
	if err := cmp.Or(
		check.Finite("b", s.B, len(c.b)), check.Finite("inverse", s.Inverse, len(c.p)), check.Finite("a", s.A, len(c.a)),
		check.Finite("rewards", s.Rewards, len(c.bbar)), check.Finite("weights", s.Weights, len(c.r)),
		check.Finite("average", []float64{s.Average}, 1),
	); err != nil {
		return err
	}
	// B is an average of φφᵀ: B_ij² ≤ B_ii·B_jj.
	for k, b := range s.B {
		if i, j := k/c.l, k%c.l; !(math.Abs(b) <= math.Sqrt(s.B[i*c.l+i])*math.Sqrt(s.B[j*c.l+j])*(1+1e-6)) {
			return fmt.Errorf("b has %v at place %d, %d; it is no average of products of features", b, i, j)
		}
	}
	c.s, c.since, c.held, c.eta, c.fallbacks = s.Scale, s.Since, s.Held, s.Average, s.Fallbacks
	copy(c.b, s.B)
	copy(c.p, s.Inverse)
	copy(c.a, s.A)
	copy(c.bbar, s.Rewards)
	copy(c.r, s.Weights)
	return nil
}
