package critic

import (
	"cmp"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

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
	a    *mat.Dense      // Â, ℓ×ℓ
	bbar []*mat.VecDense // b̂ of each reward
	r    []*mat.VecDense // r of each reward
	eta  float64         // η

	w              float64       // weight of the present step in B̂, Â and b̂
	phi, d, av, by *mat.VecDense // scratch: φ, φ′ − φ, Âr + b̂, and B̂⁻¹ of it
}

// New returns the critic for ℓ features and that many rewards, at B = εI, A = 0,
// b̄ = 0, r = 0 and η = 0. It panics unless there are some, and the settings valid.
func New(l, rewards int, set Settings) *Critic {
	if err := set.Validate(); err != nil || l < 1 || rewards < 1 {
		panic(fmt.Sprintf("critic: %d features and %d rewards, %v; allowed are 1 or more and valid settings",
			l, rewards, err))
	}
	c := &Critic{
		inverse: newInverse(l, set), a: mat.NewDense(l, l, nil),
		phi: mat.NewVecDense(l, nil), d: mat.NewVecDense(l, nil),
		av: mat.NewVecDense(l, nil), by: mat.NewVecDense(l, nil),
	}
	for range rewards {
		c.bbar, c.r = append(c.bbar, mat.NewVecDense(l, nil)), append(c.r, mat.NewVecDense(l, nil))
	}
	return c
}

// Restart begins again where New does. Fallbacks are counted on.
func (c *Critic) Restart() {
	fallbacks := c.fallbacks
	*c = *New(c.l, len(c.r), c.set)
	c.fallbacks = fallbacks
}

// Weights returns r of a reward. It is the critic's own and may be written to.
func (c *Critic) Weights(reward int) []float64 { return data(c.r[reward]) }

// Average returns η, the estimate of the average reward per epoch.
func (c *Critic) Average() float64 { return c.eta }

// Value returns V = Σ r(m) φ_m of the first reward.
func (c *Critic) Value(phi []float64) float64 { return floats.Dot(phi, c.Weights(0)) }

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
		c.b.Scale(1.0/rescale, c.b)
		c.a.Scale(1.0/rescale, c.a)
		for _, bbar := range c.bbar {
			bbar.ScaleVec(1.0/rescale, bbar)
		}
		if !c.set.Always { // else B̂⁻¹ is neither kept nor checked
			c.since *= rescale
			c.p.Scale(rescale, c.p)
		}
	}
	c.w = b / c.s
}

// Transition takes in φ and φ′, both of ℓ numbers.
func (c *Critic) Transition(phi, next []float64) {
	if len(phi) != c.l || len(next) != c.l {
		panic(fmt.Sprintf("critic: features of %d and %d entries; want %d", len(phi), len(next), c.l))
	}
	copy(data(c.phi), phi)
	floats.SubTo(data(c.d), next, phi)
	addOuter(c.a, c.w, c.phi, c.d)
	c.add(c.phi, c.w)
}

// Reward takes in ρ, at φ, of one of the rewards.
func (c *Critic) Reward(reward int, rho float64, phi []float64) {
	floats.AddScaled(data(c.bbar[reward]), c.w*rho, phi)
}

// Solve ends a step with the update of r for each reward. It reports whether the
// running inverse was trusted.
func (c *Critic) Solve() bool {
	trusted, length := true, 0.0
	for k, r := range c.r {
		c.av.MulVec(c.a, r)
		floats.Add(data(c.av), data(c.bbar[k]))
		trusted = c.solve(c.by, c.av) && trusted
		floats.AddScaled(data(r), c.set.Gamma, data(c.by))
		length += floats.Dot(data(r), data(r))
	}
	if !(length < c.set.Overflow*c.set.Overflow) {
		for _, r := range c.r {
			r.Zero()
		}
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
		Scale: c.s, Since: c.since, Held: c.held,
		B: rows(c.b), Inverse: rows(c.p), A: rows(c.a), Rewards: rows(c.bbar...), Weights: rows(c.r...),
		Average: c.eta, Fallbacks: c.fallbacks,
	}
}

// rows returns copies of matrices row by row, of vectors entry by entry.
func rows[M mat.Matrix](matrices ...M) (all []float64) {
	for _, m := range matrices {
		all = append(all, mat.DenseCopyOf(m).RawMatrix().Data...)
	}
	return all
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
	l := c.l
	if err := cmp.Or(
		check.Finite("b", s.B, l*l), check.Finite("inverse", s.Inverse, l*l), check.Finite("a", s.A, l*l),
		check.Finite("rewards", s.Rewards, len(c.bbar)*l), check.Finite("weights", s.Weights, len(c.r)*l),
		check.Finite("average", []float64{s.Average}, 1),
	); err != nil {
		return err
	}
	// B is an average of φφᵀ: B_ij² ≤ B_ii·B_jj.
	for k, b := range s.B {
		if i, j := k/l, k%l; !(math.Abs(b) <= math.Sqrt(s.B[i*l+i])*math.Sqrt(s.B[j*l+j])*(1+1e-6)) {
			return fmt.Errorf("b has %v at place %d, %d; it is no average of products of features", b, i, j)
		}
	}
	c.s, c.since, c.held, c.eta, c.fallbacks = s.Scale, s.Since, s.Held, s.Average, s.Fallbacks
	c.b.Copy(mat.NewDense(l, l, s.B))
	c.p.Copy(mat.NewDense(l, l, s.Inverse))
	c.a.Copy(mat.NewDense(l, l, s.A))
	for k := range c.r {
		copy(c.Weights(k), s.Weights[k*l:])
		copy(c.bbar[k].RawVector().Data, s.Rewards[k*l:])
	}
	return nil
}
