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

	// B̂ and B̂⁻¹, ℓ×ℓ. Both are symmetric to the last bit. They are Dense because gonum's
	// kernels for general matrices take less than half of the time of its symmetric ones
	// (BenchmarkAddOuter).
	b, p     *mat.Dense
	s        float64 // B = s B̂
	definite bool    // no update showed that B̂⁻¹ has lost its sign, or most of its digits
	since    float64 // s at the last check
	held     int     // solutions since then

	// Diagonal of D: I, or diag(B)^−½ with Scaled. Residuals, condition and the
	// Tikhonov form are those of DB̂D.
	unit *mat.VecDense

	u, rest   *mat.VecDense // scratch
	fallbacks int           // solutions by Tikhonov because the inverse was not trusted

	// Scratch of the Tikhonov form and of a fresh inverse, made when it is first needed.
	scaled *mat.Dense    // B̃ = DB̂D
	gram   *mat.SymDense // B̃ᵀB̃ + δI, or its factor
}

// newInverse returns the inverse at B = εI.
func newInverse(l int, set Settings) inverse {
	m := inverse{
		set: set, l: l, s: 1, since: 1, definite: true,
		b: mat.NewDense(l, l, nil), p: mat.NewDense(l, l, nil),
		unit: mat.NewVecDense(l, nil), u: mat.NewVecDense(l, nil), rest: mat.NewVecDense(l, nil),
	}
	for i := range l {
		m.b.Set(i, i, set.Epsilon)
		m.p.Set(i, i, 1/set.Epsilon)
		m.unit.SetVec(i, 1)
	}
	return m
}

// add takes in w φφᵀ.
func (m *inverse) add(phi *mat.VecDense, w float64) {
	// Each outer product is that of a vector with itself, so that both halves of a
	// matrix get the same numbers: what is not symmetric in B̂⁻¹ would grow.
	floats.ScaleTo(data(m.rest), math.Sqrt(w), data(phi))
	addOuter(m.b, 1, m.rest, m.rest)
	if m.set.Always { // no inverse is kept
		return
	}
	m.u.MulVec(m.p, phi)
	lev := w * floats.Dot(data(phi), data(m.u))
	if !(lev >= 0 && lev < mostLeverage) { // rounding won
		m.definite = false
		return
	}
	floats.Scale(math.Sqrt(w/(1+lev)), data(m.u))
	addOuter(m.p, -1, m.u, m.u)
}

// addOuter is a.RankOne(a, by, x, y), which takes more than twice as long for the few features
// that there are (BenchmarkAddOuter), as it looks at what may overlap and be transposed.
func addOuter(a *mat.Dense, by float64, x, y *mat.VecDense) {
	blas64.Ger(by, x.RawVector(), y.RawVector(), a.RawMatrix())
}

// data returns the numbers of a vector, for the sums and products of floats: those of
// mat.VecDense are the same bits, and a seventh of a step slower.
func data(v *mat.VecDense) []float64 { return v.RawVector().Data }

// every is the greatest number of solutions between two checks of the inverse. One
// comes earlier once the old content of B has lost a factor e of its weight.
const every = 64

// mostLeverage is wφᵀu up to which an update of B̂⁻¹ leaves six digits of it.
const mostLeverage = 1e10

// solve writes y = B̂⁻¹v. It reports whether the running inverse was trusted; if
// not, or with Always, y is the Tikhonov form's.
func (m *inverse) solve(y, v *mat.VecDense) bool {
	if m.set.Always {
		m.tikhonov(y, v)
		return true
	}
	y.MulVec(m.p, v)
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
		for i := range m.l {
			m.unit.SetVec(i, 1/math.Sqrt(max(m.s*m.b.At(i, i), vanished)))
		}
	}
}

// residual returns ‖D(B̂y − v)‖∞/‖Dv‖∞: 0 for v = 0.
func (m *inverse) residual(y, v *mat.VecDense) float64 {
	m.rest.MulVec(m.b, y)
	m.rest.SubVec(m.rest, v)
	num := most(m.rest, m.unit)
	if num == 0 {
		return 0
	}
	return num / most(v, m.unit)
}

// most returns ‖Dv‖∞, NaN where v has one.
func most(v, d *mat.VecDense) (norm float64) {
	for i := range v.Len() {
		norm = max(norm, math.Abs(v.AtVec(i))*d.AtVec(i))
	}
	return norm
}

// condition returns ‖DB̂D‖₁‖(DB̂D)⁻¹‖₁. Both matrices are at hand, so that it is not
// an estimate as long as the running inverse is right, which the residual says.
func (m *inverse) condition() float64 {
	var most, mostInverse float64
	for i := range m.l {
		d := m.unit.AtVec(i)
		var sum, inverse float64
		for j := range m.l {
			e := m.unit.AtVec(j)
			sum += math.Abs(m.b.At(i, j)) * e
			inverse += math.Abs(m.p.At(i, j)) / e
		}
		most, mostInverse = max(most, d*sum), max(mostInverse, inverse/d)
	}
	return most * mostInverse
}

// vanished is the mean diagonal below which B̂ counts as 0: nothing but zero
// features came for so long that B(−1) has faded.
const vanished = 1e-100

// mostTries is how often δ or the ridge may grow by 100.
const mostTries = 12

// mean returns tr(DB̂D)/ℓ.
func (m *inverse) mean() (sum float64) {
	for i := range m.l {
		d := m.unit.AtVec(i)
		sum += m.b.At(i, i) * d * d
	}
	return sum / float64(m.l)
}

// tikhonov writes y = D(B̃ᵀB̃ + δI)⁻¹B̃ᵀ Dv, B̃ = DB̂D (Allerton, section V, where D is
// I). With B = sB̂ the δ of B̂ is δ/s². Rounding lifts it anyway where it is far
// below B̃².
func (m *inverse) tikhonov(y, v *mat.VecDense) {
	mean := m.mean()
	if mean < vanished {
		y.Zero() // the limit B → 0 for any δ > 0
		return
	}
	scaled := m.inUnits()
	m.rest.MulElemVec(m.unit, v)
	const least = 1e-20
	size := m.s * mean
	delta := max(m.set.Delta/(size*size), least)
	// Rounding in B² is of the order 10⁻¹⁶ of its greatest entry; where δ is
	// below it, δ grows until the factorisation succeeds.
	for range mostTries {
		m.gram.SymOuterK(1, scaled) // B̃B̃ᵀ = B̃ᵀB̃
		for i := range m.l {
			m.gram.SetSym(i, i, m.gram.At(i, i)+delta*mean*mean)
		}
		// mat.Cholesky estimates a condition number each time, which takes several
		// times as long as all the rest (BenchmarkTikhonov).
		if u, ok := lapack64.Potrf(m.gram.RawSymmetric()); ok {
			y.MulVec(scaled, m.rest)
			blas64.Trsv(blas.Trans, u, y.RawVector())
			blas64.Trsv(blas.NoTrans, u, y.RawVector())
			y.MulElemVec(y, m.unit)
			return
		}
		delta *= 100
	}
	panic("critic: the matrix is not finite")
}

// inUnits returns DB̂D, which is B̂ itself where D is I, and makes the scratch.
func (m *inverse) inUnits() *mat.Dense {
	if m.gram == nil {
		m.gram = mat.NewSymDense(m.l, nil)
	}
	if !m.set.Scaled {
		return m.b
	}
	if m.scaled == nil {
		m.scaled = mat.NewDense(m.l, m.l, nil)
	}
	m.scaled.Apply(m.scale, m.b)
	return m.scaled
}

// scale returns entry i, j of DAD, with a that of A.
func (m *inverse) scale(i, j int, a float64) float64 { return a * m.unit.AtVec(i) * m.unit.AtVec(j) }

// ridge is what refresh adds, relative to the mean of the diagonal.
const ridge = 1e-3

// refresh adds a ridge to DB̂D and inverts it afresh.
func (m *inverse) refresh() {
	m.fallbacks++
	m.definite = true
	mean, ridge := m.mean(), ridge
	if mean < vanished {
		mean = 1 // as at the beginning
	}
	for range mostTries {
		for i := range m.l {
			d := m.unit.AtVec(i)
			m.b.Set(i, i, m.b.At(i, i)+ridge*mean/(d*d))
		}
		var chol mat.Cholesky
		var fresh mat.SymDense // (DB̂D)⁻¹
		b := m.inUnits().RawMatrix()
		if chol.Factorize(mat.NewSymDense(m.l, b.Data)) && chol.InverseTo(&fresh) == nil {
			m.p.Apply(m.scale, &fresh) // B̂⁻¹ = D(DB̂D)⁻¹D
			return
		}
		ridge *= 100
	}
	panic("critic: the matrix is not finite")
}
