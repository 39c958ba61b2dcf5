package lspe

import (
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// dense is what is done with a critic's matrix in full, outside the hot passes.
type dense struct {
	b    mat.SymDense // B, on the data of its owner
	p    mat.SymDense // its inverse, likewise; the lower triangle is the owner's
	raw  []float64    // of p
	full *mat.Dense   // scratch, made when it is first needed
	gram *mat.SymDense
	x, y mat.VecDense
	work []float64 // of the norms: mat.Norm takes its own from a pool that may be empty
}

// init works on B and B⁻¹, n×n, whose upper triangles it reads. It writes all
// of B⁻¹.
func (d *dense) init(b, p []float64, n int) {
	d.b = *mat.NewSymDense(n, b)
	d.p, d.raw = *mat.NewSymDense(n, p), p
	d.work = make([]float64, n)
}

// vanished is the mean diagonal below which B counts as 0: nothing but zero
// features came for so long that B(−1) has faded.
const vanished = 1e-100

// mostTries is how often δ or the ridge may grow by 100.
const mostTries = 12

// mean returns tr(B)/ℓ.
func (d *dense) mean() float64 { return mat.Trace(&d.b) / float64(d.b.SymmetricDim()) }

// condition returns ‖B‖₁‖B⁻¹‖₁. Both matrices are at hand, so that it is not an
// estimate as long as the incremental inverse is right, which the residual says.
func (d *dense) condition() float64 {
	return lapack64.Lansy(lapack.MaxColumnSum, d.b.RawSymmetric(), d.work) *
		lapack64.Lansy(lapack.MaxColumnSum, d.p.RawSymmetric(), d.work)
}

// tikhonov writes (BᵀB + δI)⁻¹Bᵀ v into dst, δ in units of the squared mean of
// B's diagonal.
func (d *dense) tikhonov(dst, v []float64, delta float64) {
	n, m := d.b.SymmetricDim(), d.mean()
	if m < vanished {
		clear(dst) // the limit B → 0 for any δ > 0
		return
	}
	if d.full == nil {
		d.full, d.gram = mat.NewDense(n, n, nil), mat.NewSymDense(n, nil)
	}
	d.x.SetRawVector(vector(v))
	d.y.MulVec(&d.b, &d.x)
	full, b := d.full.RawMatrix().Data, d.b.RawSymmetric().Data
	for i := range n {
		for j := i; j < n; j++ {
			full[i*n+j], full[j*n+i] = b[i*n+j], b[i*n+j]
		}
	}
	// Rounding in B² is of the order 10⁻¹⁶ of its greatest entry; where δ is
	// below it, δ grows until the factorisation succeeds.
	for range mostTries {
		d.gram.SymOuterK(1, d.full)
		for i := range n {
			d.gram.SetSym(i, i, d.gram.At(i, i)+delta*m*m)
		}
		// mat.Cholesky estimates a condition number each time, which at ℓ = 14
		// is more than half of its work.
		if t, ok := lapack64.Potrf(d.gram.RawSymmetric()); ok {
			copy(dst, d.y.RawVector().Data)
			lapack64.Potrs(t, blas64.General{Rows: n, Cols: 1, Stride: 1, Data: dst})
			return
		}
		delta *= 100
	}
	panic("learner: the matrix of the critic is not finite")
}

// refresh adds a ridge to B, in units of the mean of its diagonal, and inverts
// it afresh.
func (d *dense) refresh(ridge float64) {
	n, m := d.b.SymmetricDim(), d.mean()
	if m < vanished {
		m = 1 // as at the beginning
	}
	for range mostTries {
		for i := range n {
			d.b.SetSym(i, i, d.b.At(i, i)+ridge*m)
		}
		d.p.CopySym(&d.b)
		if t, ok := lapack64.Potrf(d.p.RawSymmetric()); ok {
			lapack64.Potri(t)
			for i := range n {
				for j := range i {
					d.raw[i*n+j] = d.raw[j*n+i]
				}
			}
			return
		}
		ridge *= 100
	}
	panic("learner: the matrix of the critic is not finite")
}
