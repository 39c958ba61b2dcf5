package critic

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ephemera/learner/internal/check"
)

// Bank is LSPE(0) for many problems of a few features each, all in one array. It
// takes in a batch of transitions at a time, such as those from one crawl of a
// source to the next,
//
//	B ← B + b (mean φφᵀ − B),  A ← A + b (mean φ(φ′ − φ)ᵀ − A),  b̄ likewise,
//	r ← r + γB⁻¹(A r + b̄), as often as the batch has transitions,
//
// which for one transition is the recursion of [Critic]. After each batch B⁻¹ is
// compared with B. Where it is not trusted, r takes one step by the Tikhonov form,
// and B⁻¹ begins again from B with a ridge. Both are in units of D = diag(B)^−½.
//
// The problem at hand is chosen by Begin; the other methods act on it.
type Bank struct {
	problem
	n, k  int       // problems, rewards
	first []float64 // diagonal of B to begin with
	data  []float64 // of each problem: B, B⁻¹, A (ℓ×ℓ), b̄, r (k×ℓ)
	w     float64   // b of the batch
}

// bankSettings are of features that D has brought to one size.
var bankSettings = InverseSettings{Epsilon: 1e-3, Delta: 1e-6, Tolerance: 1e-6}

const (
	bankFaded = 1e-30 // of the first diagonal: below, a feature has faded
	bankFloor = 1e-12 // of the first diagonal, from where it begins again
)

// NewBank returns n problems with len(first) features and that many rewards,
// at r = 0, A = 0, b̄ = 0 and B = diag(first), what the mean squares of the
// features are taken for at first. γ is the step of r. It panics unless all of
// these are above 0 and γ is below 2.
func NewBank(n, rewards int, first []float64, gamma float64) *Bank {
	l := len(first)
	if n < 1 || rewards < 1 || l < 1 || !(gamma > 0 && gamma < 2) {
		panic(fmt.Sprintf("critic: bank of %d problems, %d rewards, %d features and γ = %v; allowed are 1 or more, and above 0 and below 2", n, rewards, l, gamma))
	}
	k := &Bank{
		problem: newProblem(l, gamma, bankSettings),
		n:       n, k: rewards, first: slices.Clone(first),
	}
	k.data = make([]float64, n*k.stride())
	for i := range n {
		k.open(i)
		for j, v := range first {
			k.begin(j, v)
		}
	}
	return k
}

func (k *Bank) stride() int { return 3*k.l*k.l + 2*k.k*k.l }

func (k *Bank) open(i int) {
	d, m := k.data[i*k.stride():(i+1)*k.stride()], k.l*k.l
	k.b, k.p, k.a, k.bbar, k.r = d[:m], d[m:2*m], d[2*m:3*m], d[3*m:3*m+k.k*k.l], d[3*m+k.k*k.l:]
}

// Weights returns r of a problem for one of its rewards. It may be written to.
func (k *Bank) Weights(i, reward int) []float64 {
	d := k.data[i*k.stride() : (i+1)*k.stride()]
	return d[3*k.l*k.l+(k.k+reward)*k.l:][:k.l:k.l]
}

// Rescale multiplies what was learned of a reward of problem i.
func (k *Bank) Rescale(i, reward int, by float64) {
	k.open(i)
	scale(k.bbar[reward*k.l:][:k.l], by)
	scale(k.r[reward*k.l:][:k.l], by)
}

// Stretch measures what the features of problem i are powers of, 1, z, z², …, in
// units that are by times as large: z ← z/by. What was learned stays the same
// function.
func (k *Bank) Stretch(i int, by float64) {
	k.open(i)
	row := 1.0 // by^−m of φ_m
	for m := range k.l {
		f := row
		for j := range k.l {
			k.b[m*k.l+j] *= f
			k.a[m*k.l+j] *= f
			k.p[m*k.l+j] /= f
			f /= by
		}
		for at := m; at < len(k.r); at += k.l {
			k.bbar[at] *= row
			k.r[at] /= row
		}
		row /= by
	}
}

// Clone returns a copy that shares nothing.
func (k *Bank) Clone() *Bank {
	c := NewBank(k.n, k.k, k.first, k.gamma)
	copy(c.data, k.data)
	c.count = k.count
	return c
}

// Begin begins a batch of problem i that counts with the weight b, 0 < b < 1.
func (k *Bank) Begin(i int, b float64) {
	k.open(i)
	k.decay(b)
	k.scale(k.s) // s is 1 between batches: a problem has no number for it
	k.w = b
}

// Square adds share·φφᵀ to what B averages.
func (k *Bank) Square(share float64, phi []float64) {
	k.add(phi, k.w*share)
}

// Change adds share·φdᵀ, d = φ′ − φ, to what A averages.
func (k *Bank) Change(share float64, phi, d []float64) { outer(k.a, phi, d, k.w*share) }

// Reward adds share·φ to what b̄ of a reward averages.
func (k *Bank) Reward(reward int, share float64, phi []float64) {
	floats.AddScaled(k.bbar[reward*k.l:][:k.l], k.w*share, phi)
}

// Solve ends a batch with so many steps of r. It reports whether B⁻¹ was
// trusted.
func (k *Bank) Solve(steps int) bool {
	if !k.trusted() {
		k.fallback()
		return false
	}
	for range steps {
		k.step(k.apply)
	}
	return true
}

// Regress ends a batch with r = B⁻¹b̄, least squares, whose A is −B and γ 1. It
// reports whether B⁻¹ was trusted.
func (k *Bank) Regress() bool {
	trusted := k.trusted()
	solve := k.apply
	if !trusted {
		solve = k.tikhonov
	}
	for at := 0; at < len(k.r); at += k.l {
		copy(k.v, k.bbar[at:at+k.l])
		solve(k.r[at:at+k.l], k.v)
	}
	if !trusted {
		k.renew()
	}
	return trusted
}

// apply writes y = B⁻¹v.
func (k *Bank) apply(y, v []float64) {
	for i := range y {
		y[i] = 0
		for j, x := range v {
			y[i] += k.p[i*k.l+j] * x
		}
	}
}

// step takes r ← r + γB⁻¹(A r + b̄) for all rewards. What B⁻¹ is, solve says.
func (k *Bank) step(solve func(y, v []float64)) {
	for at := 0; at < len(k.r); at += k.l {
		r := k.r[at:][:k.l]
		affine(k.v, k.a, r, k.bbar[at:])
		solve(k.y, k.v)
		for i, y := range k.y {
			r[i] += k.gamma * y
		}
	}
}

// affine writes Mx + g.
func affine(dst, m, x, g []float64) {
	for i := range dst {
		sum := g[i]
		for j, v := range m[i*len(x):][:len(x)] {
			sum += v * x[j]
		}
		dst[i] = sum
	}
}

// trusted reports whether B⁻¹ solves B y = e for every unit vector e, and no
// feature has faded.
func (k *Bank) trusted() bool {
	if k.measure() {
		return false
	}
	for i := range k.l {
		clear(k.v)
		k.v[i] = 1
		if !(k.residual(k.p[i*k.l:][:k.l], k.v) <= k.set.Tolerance) {
			return false
		}
	}
	return true
}

// measure takes D = diag(B)^−½ as the units, and reports whether a feature has
// faded.
func (k *Bank) measure() (faded bool) {
	for i, first := range k.first {
		v := k.b[i*k.l+i]
		if !(v > bankFaded*first) {
			v, faded = bankFaded*first, true
		}
		k.unit[i] = 1 / math.Sqrt(v)
	}
	return faded
}

// fallback takes a step of r by the Tikhonov form.
func (k *Bank) fallback() {
	k.step(k.tikhonov)
	k.renew()
}

// renew inverts B afresh.
func (k *Bank) renew() {
	k.count.Fallbacks++
	for i, first := range k.first {
		k.b[i*k.l+i] = max(k.b[i*k.l+i], bankFloor*first)
	}
	k.measure()
	k.refresh()
}

// Fallbacks counts the batches after which B⁻¹ was not trusted.
func (k *Bank) Fallbacks() int { return k.count.Fallbacks }

// BankState is the whole state of a Bank as data, problem after problem.
type BankState struct {
	B         []float64 `json:"b"`       // ℓ×ℓ
	Inverse   []float64 `json:"inverse"` // B⁻¹, ℓ×ℓ
	A         []float64 `json:"a"`       // ℓ×ℓ
	Rewards   []float64 `json:"rewards"` // b̄, ℓ for each reward
	Weights   []float64 `json:"weights"` // r, ℓ for each reward
	Fallbacks int       `json:"fallbacks"`
}

func (s *BankState) parts() [5]*[]float64 {
	return [...]*[]float64{&s.B, &s.Inverse, &s.A, &s.Rewards, &s.Weights}
}

// State returns a copy of the state.
func (k *Bank) State() BankState {
	s := BankState{Fallbacks: k.count.Fallbacks}
	for i := range k.n {
		k.open(i)
		for j, v := range [...][]float64{k.b, k.p, k.a, k.bbar, k.r} {
			part := s.parts()[j]
			*part = append(*part, v...)
		}
	}
	return s
}

// SetState takes up a state that State returned. It changes nothing if it
// returns an error.
func (k *Bank) SetState(s BankState) error {
	if s.Fallbacks < 0 {
		return fmt.Errorf("fallbacks is %d; allowed is 0 or more", s.Fallbacks)
	}
	k.open(0)
	mine := [...]int{len(k.b), len(k.p), len(k.a), len(k.bbar), len(k.r)}
	for j, name := range []string{"b", "inverse", "a", "rewards", "weights"} {
		if err := check.Finite(name, *s.parts()[j], k.n*mine[j]); err != nil {
			return err
		}
	}
	for i := range k.n {
		k.open(i)
		for j, v := range [...][]float64{k.b, k.p, k.a, k.bbar, k.r} {
			copy(v, (*s.parts()[j])[i*mine[j]:])
		}
	}
	k.count.Fallbacks = s.Fallbacks
	return nil
}
