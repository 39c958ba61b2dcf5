package critic

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/floats"
	lapack "gonum.org/v1/gonum/lapack/gonum"
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

	// Scratch of the Tikhonov form, made when it is first needed: DB̂D, which is
	// B̂ itself where D is I, and its square.
	full, gram []float64
}

// add takes in w φφᵀ.
func (m *inverse) add(phi []float64, w float64) {
	// Both halves of a matrix see the same products: what is not symmetric in
	// B̂⁻¹ would grow.
	floats.ScaleTo(m.rest, math.Sqrt(w), phi)
	m.addOuter(m.b, 1, m.rest, m.rest)
	if m.set.Always { // no inverse is kept
		return
	}
	m.times(m.u, 0, m.p, phi)
	lev := w * floats.Dot(phi, m.u)
	if !(lev >= 0 && lev < mostLeverage) { // rounding won
		m.definite = false
		return
	}
	floats.Scale(math.Sqrt(w/(1+lev)), m.u)
	m.addOuter(m.p, -1, m.u, m.u)
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
	m.times(y, 0, m.p, v)
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
	m.times(m.rest, -1, m.b, y)
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
	if m.gram == nil {
		m.full, m.gram = m.b, make([]float64, l*l)
		if m.set.Scaled {
			m.full = make([]float64, l*l)
		}
	}
	floats.MulTo(m.rest, m.unit, v)
	for i, d := range m.unit {
		for j := 0; m.set.Scaled && j < l; j++ {
			m.full[i*l+j] = m.b[i*l+j] * d * m.unit[j]
		}
	}
	const least = 1e-20
	size := m.s * mean
	delta := max(m.set.Delta/(size*size), least)
	// Rounding in B² is of the order 10⁻¹⁶ of its greatest entry; where δ is
	// below it, δ grows until the factorisation succeeds.
	for range mostTries {
		gonum.Implementation{}.Dsyrk(blas.Upper, blas.NoTrans, l, l, 1, m.full, l, 0, m.gram, l)
		for i := range l {
			m.gram[i*l+i] += delta * mean * mean
		}
		// mat.Cholesky estimates a condition number each time, which at ℓ = 14
		// is more than half of its work.
		if (lapack.Implementation{}).Dpotrf(blas.Upper, l, m.gram, l) {
			gonum.Implementation{}.Dsymv(blas.Upper, l, 1, m.full, l, m.rest, 1, 0, y, 1)
			solveTriangular(m.gram, y)
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
	for range mostTries {
		for i, d := range m.unit {
			m.b[i*l+i] += ridge * mean / (d * d)
			for j := i; j < l; j++ {
				m.p[i*l+j] = m.b[i*l+j] * d * m.unit[j]
			}
		}
		if (lapack.Implementation{}).Dpotrf(blas.Upper, l, m.p, l) {
			lapack.Implementation{}.Dpotri(blas.Upper, l, m.p, l)
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

// addOuter takes M ← M + kxyᵀ for a matrix M of ℓ×ℓ. It and times leave blas64 out,
// whose arguments are structures: at ℓ = 14 to copy them takes half as long as the
// products.
func (m *inverse) addOuter(rows []float64, k float64, x, y []float64) {
	gonum.Implementation{}.Dger(m.l, m.l, k, x, 1, y, 1, rows, m.l)
}

// times takes y ← βy + Mx.
func (m *inverse) times(y []float64, beta float64, rows, x []float64) {
	gonum.Implementation{}.Dgemv(blas.NoTrans, m.l, m.l, 1, rows, m.l, x, 1, beta, y, 1)
}
