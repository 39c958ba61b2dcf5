package critic

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// matrix is a running average of rank-one matrices and its inverse,
//
//	B(n) = (1 − b) B(n−1) + b φφᵀ,
//
// by the formula of Sherman and Morrison. It holds B = s B̂ with a scalar s, so
// that a step need not scale B or its inverse:
//
//	s ← (1 − b)s,   w = b/s,   B̂ ← B̂ + w φφᵀ,
//	B̂⁻¹ ← B̂⁻¹ − k uuᵀ,   u = B̂⁻¹φ,   k = w/(1 + w φᵀu).
type matrix struct {
	set InverseSettings
	l   int

	s float64   // B = s B̂
	b []float64 // B̂, ℓ×ℓ, of which the upper triangle is read
	p []float64 // B̂⁻¹, ℓ×ℓ in full
	u []float64 // of the last update

	// Diagonal of D. Residuals and the Tikhonov form are those of DB̂D: a feature
	// may be large at one problem and small at another.
	unit  []float64
	count Counts

	rest     []float64     // scratch: a residual
	full     *mat.Dense    // DB̂D, made when it is first needed
	upper    *mat.SymDense // the same numbers
	gram     *mat.SymDense // (DB̂D)²
	x, image mat.VecDense
}

// Counts is what a running inverse went through.
type Counts struct {
	Updates   int     `json:"updates"`   // rank-one updates taken in
	Checks    int     `json:"checks"`    // residuals measured
	Fallbacks int     `json:"fallbacks"` // solutions by Tikhonov because the inverse was not trusted
	Deficient int     `json:"deficient"` // fallbacks whose residual was small but B near rank-deficient
	Tikhonov  int     `json:"tikhonov"`  // solutions by Tikhonov in all
	Worst     float64 `json:"worst"`     // greatest residual of a trusted solution that was checked
}

// newMatrix returns a matrix without its numbers b and p, with D = I.
func newMatrix(l int, set InverseSettings) matrix {
	m := matrix{
		set: set, l: l, s: 1,
		u: make([]float64, l), unit: make([]float64, l), rest: make([]float64, l),
	}
	for i := range m.unit {
		m.unit[i] = 1
	}
	return m
}

// begin begins entry i of B's diagonal at v.
func (m *matrix) begin(i int, v float64) {
	m.b[i*m.l+i], m.p[i*m.l+i] = v, 1/v
}

// add takes in w φφᵀ.
func (m *matrix) add(phi []float64, w float64) {
	outer(m.b, phi, phi, w)
	u := m.u[:len(phi)]
	for i := range u {
		var sum float64
		for j, p := range m.p[i*m.l:][:len(phi)] {
			sum += p * phi[j]
		}
		u[i] = sum
	}
	k, _ := m.gain(phi, w)
	// Both halves see the same number: what is not symmetric in B̂⁻¹ would grow.
	for i, x := range u {
		kx := k * x
		for j, y := range u[:i+1] {
			v := m.p[i*m.l+j] - kx*y
			m.p[i*m.l+j], m.p[j*m.l+i] = v, v
		}
	}
}

// gain returns k of u. It reports whether B̂⁻¹ is positive definite as far as φ
// tells; if not, rounding won, and k is 0.
func (m *matrix) gain(phi []float64, w float64) (k float64, ok bool) {
	lev := w * dot(phi, m.u)
	if !(lev >= 0) || math.IsInf(lev, 0) {
		return 0, false
	}
	return w / (1 + lev), true
}

// outer takes M ← M + w xyᵀ.
func outer(m, x, y []float64, w float64) {
	for i, x := range x {
		row, wx := m[i*len(y):][:len(y)], w*x
		for j, y := range y {
			row[j] += wx * y
		}
	}
}

// residual returns ‖D(B̂y − v)‖∞/‖Dv‖∞: 0 for v = 0.
func (m *matrix) residual(y, v []float64) float64 {
	rest := m.rest[:len(y)]
	for i, x := range v {
		rest[i] = -x
	}
	for i, x := range y {
		row := m.b[i*m.l:][:len(y)]
		sum := x * row[i]
		for j := i + 1; j < len(y); j++ {
			sum += y[j] * row[j]
			rest[j] += x * row[j]
		}
		rest[i] += sum
	}
	var num, den float64
	for i, d := range m.unit {
		num = max(num, math.Abs(rest[i])*d) // NaN remains
		den = max(den, math.Abs(v[i])*d)
	}
	if num == 0 {
		return 0
	}
	return num / den
}

// condition returns ‖B̂‖₁‖B̂⁻¹‖₁. Both matrices are at hand, so that it is not an
// estimate as long as the incremental inverse is right, which the residual says.
func (m *matrix) condition() float64 {
	return lapack64.Lansy(lapack.MaxColumnSum, m.symmetric(m.b), m.rest) *
		lapack64.Lansy(lapack.MaxColumnSum, m.symmetric(m.p), m.rest)
}

// vanished is the mean diagonal below which B̂ counts as 0: nothing but zero
// features came for so long that B(−1) has faded.
const vanished = 1e-100

// mostTries is how often δ or the ridge may grow by 100.
const mostTries = 12

// mean returns tr(DB̂D)/ℓ.
func (m *matrix) mean() float64 {
	var sum float64
	for i, d := range m.unit {
		sum += m.b[i*m.l+i] * d * d
	}
	return sum / float64(m.l)
}

// tikhonov writes y = D(B̃ᵀB̃ + δI)⁻¹B̃ᵀ Dv, B̃ = DB̂D (Allerton, section V, where D is
// I). With B = sB̂ the δ of B̂ is δ/s². Rounding lifts it anyway where it is far
// below B̃².
func (m *matrix) tikhonov(y, v []float64) {
	m.count.Tikhonov++
	l, mean := m.l, m.mean()
	if mean < vanished {
		clear(y) // the limit B → 0 for any δ > 0
		return
	}
	if m.full == nil {
		m.full, m.gram = mat.NewDense(l, l, nil), mat.NewSymDense(l, nil)
		m.upper = mat.NewSymDense(l, m.full.RawMatrix().Data)
	}
	full := m.full.RawMatrix().Data
	for i, d := range m.unit {
		m.rest[i] = d * v[i]
		for j := i; j < l; j++ {
			b := m.b[i*l+j] * d * m.unit[j]
			full[i*l+j], full[j*l+i] = b, b
		}
	}
	m.x.SetRawVector(vector(m.rest))
	m.image.MulVec(m.upper, &m.x)
	const least = 1e-20
	size := m.s * mean
	delta := max(m.set.Delta/(size*size), least)
	// Rounding in B² is of the order 10⁻¹⁶ of its greatest entry; where δ is
	// below it, δ grows until the factorisation succeeds.
	for range mostTries {
		m.gram.SymOuterK(1, m.full)
		for i := range l {
			m.gram.SetSym(i, i, m.gram.At(i, i)+delta*mean*mean)
		}
		// mat.Cholesky estimates a condition number each time, which at ℓ = 14
		// is more than half of its work.
		if t, ok := lapack64.Potrf(m.gram.RawSymmetric()); ok {
			copy(y, m.image.RawVector().Data)
			lapack64.Potrs(t, blas64.General{Rows: l, Cols: 1, Stride: 1, Data: y})
			for i, d := range m.unit {
				y[i] *= d
			}
			return
		}
		delta *= 100
	}
	panic("learner: the matrix of the critic is not finite")
}

// refresh adds the ridge ε to DB̂D, in units of the mean of its diagonal, and
// inverts it afresh.
func (m *matrix) refresh() {
	l, mean, ridge := m.l, m.mean(), m.set.Epsilon
	if mean < vanished {
		mean = 1 // as at the beginning
	}
	p := m.symmetric(m.p)
	for range mostTries {
		for i, d := range m.unit {
			m.b[i*l+i] += ridge * mean / (d * d)
			for j := i; j < l; j++ {
				m.p[i*l+j] = m.b[i*l+j] * d * m.unit[j]
			}
		}
		if t, ok := lapack64.Potrf(p); ok {
			lapack64.Potri(t)
			for i, d := range m.unit {
				for j := i; j < l; j++ {
					v := m.p[i*l+j] * d * m.unit[j]
					m.p[i*l+j], m.p[j*l+i] = v, v
				}
			}
			return
		}
		ridge *= 100
	}
	panic("learner: the matrix of the critic is not finite")
}

func (m *matrix) symmetric(a []float64) blas64.Symmetric {
	return blas64.Symmetric{Uplo: blas.Upper, N: m.l, Stride: m.l, Data: a}
}

func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Inc: 1, Data: v} }
