package critic

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// inverse is a running average of rank-one matrices and its inverse,
//
//	B(n) = (1 − b) B(n−1) + b φφᵀ,
//
// by the formula of Sherman and Morrison. It holds B = s B̂ with a scalar s, so
// that a step need not scale B or its inverse:
//
//	s ← (1 − b)s,   w = b/s,   B̂ ← B̂ + w φφᵀ,
//	B̂⁻¹ ← B̂⁻¹ − k uuᵀ,   u = B̂⁻¹φ,   k = w/(1 + w φᵀu).
type inverse struct {
	set Settings
	l   int

	s        float64   // B = s B̂
	b, p     []float64 // B̂ and B̂⁻¹, ℓ×ℓ
	definite bool      // no update told that B̂⁻¹ is not positive definite any more, or few digits of it
	since    float64   // s at the last check
	held     int       // solutions since then

	// Diagonal of D: I, or diag(B)^−½ with Scaled. Residuals, condition and the
	// Tikhonov form are those of DB̂D.
	unit []float64

	u, rest   []float64 // scratch
	fallbacks int       // solutions by Tikhonov because the inverse was not trusted
	dense     *dense    // made when the Tikhonov form is first needed
}

// dense is scratch of the Tikhonov form.
type dense struct {
	full     *mat.Dense    // DB̂D; B̂ itself where D is I
	upper    *mat.SymDense // the same numbers
	gram     *mat.SymDense // (DB̂D)²
	x, image mat.VecDense
}

// add takes in w φφᵀ.
func (m *inverse) add(phi []float64, w float64) {
	// Both halves of a matrix see the same products: what is not symmetric in
	// B̂⁻¹ would grow.
	floats.ScaleTo(m.rest, math.Sqrt(w), phi)
	blas64.Ger(1, vector(m.rest), vector(m.rest), m.square(m.b))
	if m.set.Always { // no inverse is kept
		return
	}
	u := vector(m.u)
	blas64.Gemv(blas.NoTrans, 1, m.square(m.p), vector(phi), 0, u)
	lev := w * floats.Dot(phi, m.u)
	if !(lev >= 0 && lev < mostLeverage) { // rounding won
		m.definite = false
		return
	}
	floats.Scale(math.Sqrt(w/(1+lev)), m.u)
	blas64.Ger(-1, u, u, m.square(m.p))
}

// every is the greatest number of solutions between two checks of the inverse. One
// comes earlier once the old content of B has lost a factor e of its weight.
const every = 64

// mostLeverage is wφᵀu up to which an update of B̂⁻¹ leaves six digits of it.
const mostLeverage = 1e10

// solve writes y = B̂⁻¹v. It reports whether the running inverse was trusted; if
// not, or with Always, y is the Tikhonov form's.
func (m *inverse) solve(y, v []float64) bool {
	if m.set.Always {
		m.tikhonov(y, v)
		return true
	}
	blas64.Gemv(blas.NoTrans, 1, m.square(m.p), vector(v), 0, vector(y))
	m.held++
	if m.definite && m.held < every && m.s*math.E > m.since {
		return true
	}
	m.held, m.since = 0, m.s
	m.measure()
	if m.definite && m.residual(y, v) <= m.set.Tolerance && m.condition() <= m.set.Condition {
		return true
	}
	m.tikhonov(y, v)
	return false
}

// measure takes diag(B)^−½ as the units.
func (m *inverse) measure() {
	if m.set.Scaled {
		for i := range m.unit {
			m.unit[i] = 1 / math.Sqrt(max(m.s*m.b[i*m.l+i], vanished))
		}
	}
}

// residual returns ‖D(B̂y − v)‖∞/‖Dv‖∞: 0 for v = 0.
func (m *inverse) residual(y, v []float64) float64 {
	copy(m.rest, v)
	blas64.Gemv(blas.NoTrans, 1, m.square(m.b), vector(y), -1, vector(m.rest))
	var num, den float64
	for i, d := range m.unit {
		num = max(num, math.Abs(m.rest[i])*d) // NaN remains
		den = max(den, math.Abs(v[i])*d)
	}
	if num == 0 {
		return 0
	}
	return num / den
}

// condition returns ‖DB̂D‖₁‖(DB̂D)⁻¹‖₁. Both matrices are at hand, so that it is not
// an estimate as long as the running inverse is right, which the residual says.
func (m *inverse) condition() float64 {
	per := m.rest
	for i, d := range m.unit {
		per[i] = 1 / d
	}
	var most, mostInverse float64
	for i, d := range m.unit {
		b, p := m.b[i*m.l:][:m.l], m.p[i*m.l:][:m.l]
		var sum, inverse float64
		for j, e := range m.unit {
			sum += math.Abs(b[j]) * e
			inverse += math.Abs(p[j]) * per[j]
		}
		most, mostInverse = max(most, d*sum), max(mostInverse, per[i]*inverse)
	}
	return most * mostInverse
}

// vanished is the mean diagonal below which B̂ counts as 0: nothing but zero
// features came for so long that B(−1) has faded.
const vanished = 1e-100

// mostTries is how often δ or the ridge may grow by 100.
const mostTries = 12

// mean returns tr(DB̂D)/ℓ.
func (m *inverse) mean() float64 {
	var sum float64
	for i, d := range m.unit {
		sum += m.b[i*m.l+i] * d * d
	}
	return sum / float64(m.l)
}

// tikhonov writes y = D(B̃ᵀB̃ + δI)⁻¹B̃ᵀ Dv, B̃ = DB̂D (Allerton, section V, where D is
// I). With B = sB̂ the δ of B̂ is δ/s². Rounding lifts it anyway where it is far
// below B̃².
func (m *inverse) tikhonov(y, v []float64) {
	l, mean := m.l, m.mean()
	if mean < vanished {
		clear(y) // the limit B → 0 for any δ > 0
		return
	}
	if m.dense == nil {
		full := m.b
		if m.set.Scaled {
			full = make([]float64, l*l)
		}
		m.dense = &dense{full: mat.NewDense(l, l, full), upper: mat.NewSymDense(l, full), gram: mat.NewSymDense(l, nil)}
	}
	t, full := m.dense, m.dense.full.RawMatrix().Data
	floats.MulTo(m.rest, m.unit, v)
	for i, d := range m.unit {
		for j := 0; m.set.Scaled && j < l; j++ {
			full[i*l+j] = m.b[i*l+j] * d * m.unit[j]
		}
	}
	t.x.SetRawVector(vector(m.rest))
	t.image.MulVec(t.upper, &t.x)
	const least = 1e-20
	size := m.s * mean
	delta := max(m.set.Delta/(size*size), least)
	// Rounding in B² is of the order 10⁻¹⁶ of its greatest entry; where δ is
	// below it, δ grows until the factorisation succeeds.
	for range mostTries {
		t.gram.SymOuterK(1, t.full)
		for i := range l {
			t.gram.SetSym(i, i, t.gram.At(i, i)+delta*mean*mean)
		}
		// mat.Cholesky estimates a condition number each time, which at ℓ = 14
		// is more than half of its work.
		if f, ok := lapack64.Potrf(t.gram.RawSymmetric()); ok {
			copy(y, t.image.RawVector().Data)
			solveTriangular(f.Data, y)
			floats.Mul(y, m.unit)
			return
		}
		delta *= 100
	}
	panic("critic: the matrix is not finite")
}

// solveTriangular replaces y by (UᵀU)⁻¹y, U the upper triangle of f. For one vector
// at ℓ = 14 it takes a fourth of the time of lapack64.Potrs.
func solveTriangular(f, y []float64) {
	l := len(y)
	for k := range y {
		row := f[k*l+k : k*l+l]
		x := y[k] * (1 / row[0])
		rest := y[k:][:len(row)]
		rest[0] = x
		for j := 1; j < len(row); j++ {
			rest[j] -= row[j] * x
		}
	}
	for i := l - 1; i >= 0; i-- {
		row := f[i*l+i : i*l+l]
		rest := y[i:][:len(row)]
		x := rest[0]
		for j := 1; j < len(row); j++ {
			x -= row[j] * rest[j]
		}
		rest[0] = x * (1 / row[0])
	}
}

// ridge is what refresh adds, relative to the mean of the diagonal.
const ridge = 1e-3

// refresh adds a ridge to DB̂D and inverts it afresh.
func (m *inverse) refresh() {
	m.fallbacks++
	m.definite = true
	l, mean, ridge := m.l, m.mean(), ridge
	if mean < vanished {
		mean = 1 // as at the beginning
	}
	p := blas64.Symmetric{Uplo: blas.Upper, N: l, Stride: l, Data: m.p}
	for range mostTries {
		for i, d := range m.unit {
			m.b[i*l+i] += ridge * mean / (d * d)
			for j := i; j < l; j++ {
				m.p[i*l+j] = m.b[i*l+j] * d * m.unit[j]
			}
		}
		if f, ok := lapack64.Potrf(p); ok {
			lapack64.Potri(f)
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
	panic("critic: the matrix is not finite")
}

func (m *inverse) square(a []float64) blas64.General {
	return blas64.General{Rows: m.l, Cols: m.l, Stride: m.l, Data: a}
}

func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Inc: 1, Data: v} }
