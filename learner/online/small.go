package online

import (
	"fmt"
	"math"
)

// small is LSPE(0), see [LSPE], for many sources with a few features each. It
// takes in whole cycles, the S transitions from one crawl of a source to the
// next, φ(1) → φ(2) → … → φ(S) → φ(1) with φ(1) = 0, when the crawl closes them:
//
//	B ← B + w(mean φφᵀ − B),  A ← A + w(mean φ(φ′ − φ)ᵀ − A),  b̄ likewise
//	r ← r + γB⁻¹(A r + b̄), S times
//
// Over a closed cycle Σφ(φ′ − φ)ᵀ has the symmetric part −½Σ(φ′ − φ)(φ′ − φ)ᵀ,
// so A never has a positive direction. Within a cycle it is not: while a
// source waits, all transitions lead upwards, and r would grow without end.
// Each source has a clock of its own: each cycle is handed its weight w.
//
// [Observed] takes single transitions in, with features and right-hand
// sides of its own.
//
// Harvest and cost have a right-hand side each and share A and B, so that the
// weights r = rₓ − λ r_c of the profit follow the price λ at once. B⁻¹ follows
// by Sherman and Morrison, the last recursion of Allerton, section IV, for a
// general step,
//
//	B⁻¹ ← (B⁻¹ − b vvᵀ/(1 − b + b φᵀv))/(1 − b),  v = B⁻¹φ
//
// and trust compares it with B. The numbers of a source lie side by side: B and
// B⁻¹ as lower triangles by rows, A, b̄ₓ, b̄_c, rₓ, r_c.
type small struct {
	l, stride, tri int
	gamma          float64
	data           []float64
	faded          float64   // part of its first mean square below which a feature counts as not seen
	first          []float64 // mean square of each feature at the beginning
}

const (
	maxFeatures = 4     // greatest ℓ
	smallDelta  = 1e-3  // δ of the Tikhonov form, relative to diag B
	smallTrust  = 1e-3  // greatest entry of B⁻¹B − I, in units of its features, that is trusted
	smallTrace  = 1e-6  // trace of its first mean square that such a feature gets
	smallFaded  = 1e-12 // part of its first mean square below which a feature counts as not seen
)

// newSmall returns the critics of n sources with ℓ features whose mean squares
// at the beginning are first, at A = 0, b̄ = 0, r = 0.
func newSmall(n int, first []float64, gamma float64) *small {
	l := len(first)
	if l < 1 || l > maxFeatures {
		panic(fmt.Sprintf("learner: small critics of %d features; allowed are 1 to %d", l, maxFeatures))
	}
	c := &small{l: l, tri: l * (l + 1) / 2, gamma: gamma, faded: smallFaded}
	c.stride = 2*c.tri + l*l + 4*l
	c.data = make([]float64, n*c.stride)
	c.first = append(c.first, first...)
	for i := range n {
		d := c.of(i)
		for j, v := range c.first {
			d[j*(j+3)/2], d[c.tri+j*(j+3)/2] = v, 1/v
		}
	}
	return c
}

func (c *small) of(i int) []float64 { return c.data[i*c.stride : (i+1)*c.stride] }

// weights returns rₓ and r_c of source i, the critic's own.
func (c *small) weights(i int) (harvest, cost []float64) {
	d := c.of(i)
	r := d[c.stride-2*c.l:]
	return r[:c.l], r[c.l:]
}

// add takes in one transition of source i with the step b, 0 < b < 1: φ, the
// change φ′ − φ and both rewards less their averages. A cycle of S transitions
// gets the weight w, shared equally, by
//
//	b = w/(S(1 − w) + k w) for the k-th, k = 1, …, S
func (c *small) add(i int, phi, change []float64, harvest, cost, b float64) {
	l, tri := c.l, c.tri
	d := c.of(i)
	bm, inv, a := d[:tri], d[tri:2*tri], d[2*tri:2*tri+l*l]
	rest := d[2*tri+l*l:]
	bx, bc := rest[:l], rest[l:2*l]
	var v [maxFeatures]float64
	var lev float64
	for j := range l {
		for k := range l {
			v[j] += inv[packed(j, k)] * phi[k]
			a[j*l+k] += b * (phi[j]*change[k] - a[j*l+k])
		}
		lev += v[j] * phi[j]
		bx[j] += b * (phi[j]*harvest - bx[j])
		bc[j] += b * (phi[j]*cost - bc[j])
	}
	keep := 1 / (1 - b)
	w := b / (1 - b + b*lev)
	for j := range l {
		for k := range j + 1 {
			m := packed(j, k)
			bm[m] += b * (phi[j]*phi[k] - bm[m])
			inv[m] = keep * (inv[m] - w*v[j]*v[k])
		}
	}
}

// solve moves r of source i on by that many steps of LSPE(0).
func (c *small) solve(i, steps int) {
	l, tri := c.l, c.tri
	d := c.of(i)
	inv, a := d[tri:2*tri], d[2*tri:2*tri+l*l]
	rest := d[2*tri+l*l:]
	for h := range 2 {
		b, r := rest[h*l:(h+1)*l], rest[(2+h)*l:(3+h)*l]
		for range steps {
			var y [maxFeatures]float64
			for j := range l {
				y[j] = b[j]
				for k := range l {
					y[j] += a[j*l+k] * r[k]
				}
			}
			for j := range l {
				for k := range l {
					r[j] += c.gamma * inv[packed(j, k)] * y[k]
				}
			}
		}
	}
}

// packed is the place of entry (j, k) of a symmetric matrix.
func packed(j, k int) int {
	if j < k {
		j, k = k, j
	}
	return j*(j+1)/2 + k
}

// trust measures B⁻¹B − I of source i. Where an entry is above smallTrust, or a
// feature has not been seen for so long that B has faded, the Tikhonov form
// B + δ diag B takes the place of B, B⁻¹ starts afresh from its factorisation,
// and trust reports false. A faded feature gets a trace of its first mean
// square, so that its weight stays where it is.
func (c *small) trust(i int) bool {
	d := c.of(i)
	l := c.l
	b, inv := d[:c.tri], d[c.tri:2*c.tri]
	ok := true
	for j := range l {
		ok = ok && b[packed(j, j)] > c.faded*c.first[j]
		for k := range l {
			var v float64
			if j == k {
				v = -1
			}
			for m := range l {
				v += inv[packed(j, m)] * b[packed(m, k)]
			}
			v *= math.Sqrt(b[packed(j, j)] / b[packed(k, k)])
			ok = ok && v < smallTrust && v > -smallTrust
		}
	}
	if ok {
		return true
	}
	for j := range l {
		m := packed(j, j)
		b[m] += smallDelta * (b[m] + smallTrace*c.first[j])
	}
	c.invert(inv, b)
	rx, rc := c.weights(i)
	for j := range l {
		if v := rx[j] + rc[j]; math.IsNaN(v) || math.IsInf(v, 0) {
			rx[j], rc[j] = 0, 0
		}
	}
	return false
}

// invert writes the inverse of the positive definite b, by Cholesky.
func (c *small) invert(dst, b []float64) {
	l := c.l
	var f, g [maxFeatures][maxFeatures]float64 // b = ffᵀ, g = f⁻¹
	for j := range l {
		for k := range j + 1 {
			v := b[packed(j, k)]
			for m := range k {
				v -= f[j][m] * f[k][m]
			}
			if j == k {
				// Rounding may have won; the ridge is of the order of δ.
				f[j][j] = math.Sqrt(max(v, 1e-9*b[packed(j, j)]))
			} else {
				f[j][k] = v / f[k][k]
			}
		}
	}
	for j := range l {
		g[j][j] = 1 / f[j][j]
		for k := range j {
			var v float64
			for m := k; m < j; m++ {
				v -= f[j][m] * g[m][k]
			}
			g[j][k] = v / f[j][j]
		}
	}
	for j := range l {
		for k := range j + 1 {
			var v float64
			for m := j; m < l; m++ {
				v += g[m][j] * g[m][k]
			}
			dst[packed(j, k)] = v
		}
	}
}
