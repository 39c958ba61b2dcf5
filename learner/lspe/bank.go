package lspe

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"ephemera/learner/internal/check"
)

// Bank is LSPE(0) for many problems of a few features each, all in one array:
// for each problem B, B⁻¹, A, and for each of its rewards b̄ and r. It takes in a
// batch of transitions at a time, such as those from one crawl of a source to
// the next,
//
//	B ← B + b (mean φφᵀ − B),  A ← A + b (mean φ(φ′ − φ)ᵀ − A),  b̄ likewise,
//	r ← r + γB⁻¹(A r + b̄), as often as the batch has transitions,
//
// which for one transition is the recursion of [Critic]. B⁻¹ follows by the
// formula of Sherman and Morrison. After each batch it is compared with B; where
// it is not trusted, r takes one step by the Tikhonov form, and B⁻¹ begins again
// from B with a ridge. Both are relative to the diagonal of B, for a feature may
// be large at one problem and small at another.
//
// The problem at hand is chosen by Begin; the other methods act on it.
type Bank struct {
	n, l, k int
	gamma   float64
	first   []float64 // diagonal of B to begin with
	data    []float64 // of each problem: B, B⁻¹, A (ℓ×ℓ), b̄, r (k×ℓ)

	b, p, a, c, r []float64 // of the problem at hand
	w             float64   // b

	fallbacks int
	u, v      []float64 // scratch: ℓ
	m, g      []float64 // two ℓ×ℓ, and ℓ for each reward
	dense     dense
	bb, pp    []float64 // B and B⁻¹ in units of the diagonal, for dense
}

const (
	bankTrust = 1e-6  // of each entry of B⁻¹B − I, in units of the features
	bankDelta = 1e-6  // δ of the Tikhonov form
	bankRidge = 1e-3  // share of its diagonal that is added to B
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
		panic(fmt.Sprintf("lspe: bank of %d problems, %d rewards, %d features and γ = %v; allowed are 1 or more, and above 0 and below 2", n, rewards, l, gamma))
	}
	k := &Bank{
		n: n, l: l, k: rewards, gamma: gamma, first: slices.Clone(first),
		u: make([]float64, l), v: make([]float64, l), bb: make([]float64, l*l), pp: make([]float64, l*l),
		m: make([]float64, 2*l*l), g: make([]float64, rewards*l),
	}
	k.data = make([]float64, n*k.stride())
	k.dense.init(k.bb, k.pp, l)
	for i := range n {
		k.open(i)
		for j, v := range first {
			k.b[j*l+j], k.p[j*l+j] = v, 1/v
		}
	}
	return k
}

func (k *Bank) stride() int { return 3*k.l*k.l + 2*k.k*k.l }

func (k *Bank) open(i int) {
	d, m := k.data[i*k.stride():(i+1)*k.stride()], k.l*k.l
	k.b, k.p, k.a, k.c, k.r = d[:m], d[m:2*m], d[2*m:3*m], d[3*m:3*m+k.k*k.l], d[3*m+k.k*k.l:]
}

// Weights returns r of a problem for one of its rewards. It may be written to.
func (k *Bank) Weights(i, reward int) []float64 {
	d := k.data[i*k.stride() : (i+1)*k.stride()]
	return d[3*k.l*k.l+(k.k+reward)*k.l:][:k.l:k.l]
}

// Rescale multiplies what was learned of a reward of problem i.
func (k *Bank) Rescale(i, reward int, by float64) {
	k.open(i)
	for j := reward * k.l; j < (reward+1)*k.l; j++ {
		k.c[j] *= by
		k.r[j] *= by
	}
}

// Clone returns a copy that shares nothing.
func (k *Bank) Clone() *Bank {
	c := NewBank(k.n, k.k, k.first, k.gamma)
	copy(c.data, k.data)
	c.fallbacks = k.fallbacks
	return c
}

// Begin begins a batch of problem i that counts with the weight b, 0 < b < 1.
func (k *Bank) Begin(i int, b float64) {
	if !(b > 0 && b < 1) {
		panic(fmt.Sprintf("lspe: weight of a batch is %v; allowed is above 0 and below 1", b))
	}
	k.open(i)
	k.w = b
	keep, over := 1-b, 1/(1-b)
	for j := range k.b {
		k.b[j] *= keep
		k.p[j] *= over
		k.a[j] *= keep
	}
	for j := range k.c {
		k.c[j] *= keep
	}
}

// Square adds share·φφᵀ to what B averages, and to B⁻¹ by Sherman and Morrison:
//
//	B⁻¹ ← B⁻¹ − q uuᵀ/(1 + q φᵀu),  u = B⁻¹φ,  q = b·share
func (k *Bank) Square(share float64, phi []float64) {
	q, l, u := k.w*share, k.l, k.u[:len(phi)]
	lev := 1.0
	for i, f := range phi {
		b, p := k.b[i*l:][:len(phi)], k.p[i*l:][:len(phi)]
		s, qf := 0.0, q*f
		for j, g := range phi {
			b[j] += qf * g
			s += p[j] * g
		}
		u[i] = s
		lev += q * f * s
	}
	q /= lev
	// Both halves see the same number: what is not symmetric in B⁻¹ would grow.
	for i, x := range u {
		qx := q * x
		for j, y := range u[:i+1] {
			v := k.p[i*l+j] - qx*y
			k.p[i*l+j], k.p[j*l+i] = v, v
		}
	}
}

// Change adds share·φdᵀ, d = φ′ − φ, to what A averages.
func (k *Bank) Change(share float64, phi, d []float64) {
	for i, f := range phi {
		a, q := k.a[i*k.l:][:len(d)], k.w*share*f
		for j, g := range d {
			a[j] += q * g
		}
	}
}

// Reward adds share·φ to what b̄ of a reward averages.
func (k *Bank) Reward(reward int, share float64, phi []float64) {
	c, q := k.c[reward*k.l:][:len(phi)], k.w*share
	for j, f := range phi {
		c[j] += q * f
	}
}

// Solve ends a batch with so many steps of r. It reports whether B⁻¹ was
// trusted.
func (k *Bank) Solve(steps int) bool {
	if k.trust() {
		k.advance(steps)
		return true
	}
	k.fallbacks++
	k.fallback()
	return false
}

// advance takes so many steps r ← r + γB⁻¹(A r + b̄) = Mr + g for all rewards, by
// doubling: with the bits of the number come M, M², M⁴, … and the g that belongs
// to them.
func (k *Bank) advance(steps int) {
	l := k.l
	m, m2, g := k.m[:l*l], k.m[l*l:], k.g
	k.times(m, k.a, l) // γB⁻¹A
	for i := range l {
		m[i*l+i]++
	}
	for at := 0; at < len(g); at += l {
		k.times(g[at:at+l], k.c[at:at+l], 1) // γB⁻¹b̄
	}
	for ; ; steps >>= 1 {
		if steps&1 != 0 {
			k.affine(k.r, m, g)
		}
		if steps <= 1 {
			return
		}
		k.affine(g, m, g)
		for i := range l {
			for j := range l {
				var s float64
				for h := range l {
					s += m[i*l+h] * m[h*l+j]
				}
				m2[i*l+j] = s
			}
		}
		m, m2 = m2, m
	}
}

// times writes γPX into dst, X ℓ×cols.
func (k *Bank) times(dst, x []float64, cols int) {
	l := k.l
	for i := range l {
		for j := range cols {
			var s float64
			for h := range l {
				s += k.p[i*l+h] * x[h*cols+j]
			}
			dst[i*cols+j] = k.gamma * s
		}
	}
}

// affine takes x ← Mx + g for the vector of each reward. g may be x.
func (k *Bank) affine(x, m, g []float64) {
	l, y := k.l, k.v
	for at := 0; at < len(x); at += l {
		for i := range y {
			s := g[at+i]
			for h, v := range x[at : at+l] {
				s += m[i*l+h] * v
			}
			y[i] = s
		}
		copy(x[at:at+l], y)
	}
}

// trust reports whether B⁻¹B is the identity, each entry in units of its
// features, and no feature has faded.
func (k *Bank) trust() bool {
	l := k.l
	for i := range l {
		if !(k.b[i*l+i] > bankFaded*k.first[i]) {
			return false
		}
		for j := range l {
			e := 0.0
			if i == j {
				e = -1
			}
			for m := range l {
				e += k.p[i*l+m] * k.b[m*l+j]
			}
			if !(e*e*k.b[i*l+i] <= bankTrust*bankTrust*k.b[j*l+j]) {
				return false
			}
		}
	}
	return true
}

// fallback takes a step of r by (B̃ᵀB̃ + δI)⁻¹B̃ᵀ, B̃ = DBD with D = diag(B)^−½, and
// inverts B afresh with a ridge.
func (k *Bank) fallback() {
	l := k.l
	d := make([]float64, l) // a fallback is rare
	for i := range d {
		d[i] = 1 / math.Sqrt(max(k.b[i*l+i], bankFaded*k.first[i]))
	}
	for i := range d {
		for j := range d {
			k.bb[i*l+j] = k.b[i*l+j] * d[i] * d[j]
		}
	}
	y := make([]float64, l)
	for m := range k.k {
		r, v := k.r[m*l:][:l], k.v
		for i := range v {
			s := k.c[m*l+i]
			for j, x := range k.a[i*l:][:l] {
				s += x * r[j]
			}
			v[i] = s * d[i]
		}
		k.dense.tikhonov(y, v, bankDelta)
		for i := range r {
			r[i] += k.gamma * d[i] * y[i]
		}
	}
	for i, f := range k.first {
		k.bb[i*l+i] += bankFloor * f * d[i] * d[i]
	}
	k.dense.refresh(bankRidge)
	for i := range d {
		for j := range d {
			lo, hi := min(i, j), max(i, j)
			k.b[i*l+j] = k.bb[lo*l+hi] / (d[i] * d[j])
			k.p[i*l+j] = k.pp[lo*l+hi] * d[i] * d[j]
		}
	}
}

// Fallbacks counts the batches after which B⁻¹ was not trusted.
func (k *Bank) Fallbacks() int { return k.fallbacks }

// B returns a copy of B of problem i.
func (k *Bank) B(i int) *mat.SymDense {
	k.open(i)
	return mat.NewSymDense(k.l, slices.Clone(k.b))
}

// A returns a copy of A of problem i.
func (k *Bank) A(i int) *mat.Dense {
	k.open(i)
	return mat.NewDense(k.l, k.l, slices.Clone(k.a))
}

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
	s := BankState{Fallbacks: k.fallbacks}
	for i := range k.n {
		k.open(i)
		for j, v := range [...][]float64{k.b, k.p, k.a, k.c, k.r} {
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
	mine := [...]int{len(k.b), len(k.p), len(k.a), len(k.c), len(k.r)}
	for j, name := range []string{"b", "inverse", "a", "rewards", "weights"} {
		if err := check.Finite(name, *s.parts()[j], k.n*mine[j]); err != nil {
			return err
		}
	}
	for i := range k.n {
		k.open(i)
		for j, v := range [...][]float64{k.b, k.p, k.a, k.c, k.r} {
			copy(v, (*s.parts()[j])[i*mine[j]:])
		}
	}
	k.fallbacks = s.Fallbacks
	return nil
}
