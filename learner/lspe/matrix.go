package lspe

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"ephemera/learner/internal/check"
)

// InverseSettings say when a running inverse is trusted and what is done when
// it is not.
type InverseSettings struct {
	// Epsilon is ε of B(−1) = εI, and the ridge, relative to the mean of B's
	// diagonal, with which a fresh factorisation begins; above 0.
	Epsilon float64
	// Delta is δ of the Tikhonov form (BᵀB + δI)⁻¹Bᵀ; above 0.
	Delta float64
	// Tolerance is the residual ‖B y − v‖/‖v‖ (greatest entries) up to which
	// a solution y = B⁻¹v is trusted; above 0.
	Tolerance float64
	// Condition is the condition number ‖B‖₁‖B⁻¹‖₁ up to which B is inverted
	// as it is; above 1. Beyond it B counts as rank-deficient.
	Condition float64
	// Every is the greatest number of updates between two checks; 1 to 256. A
	// check comes earlier once the old content of B has lost a factor e of its
	// weight since the last one.
	Every int
	// Always solves by the Tikhonov form at every step, as the paper ran it,
	// and keeps no incremental inverse.
	Always bool
}

// DefaultInverseSettings returns ε = 10⁻³, δ = 10⁻¹⁰, tolerance 10⁻⁶, condition
// 10⁸, a check at least every 64 updates, and the Tikhonov form as a fallback
// only. The paper gives no figures for ε and δ.
func DefaultInverseSettings() InverseSettings {
	return InverseSettings{Epsilon: 1e-3, Delta: 1e-10, Tolerance: 1e-6, Condition: 1e8, Every: 64}
}

// Validate reports the first field that is out of its range.
func (s InverseSettings) Validate() error {
	switch {
	case !(s.Epsilon > 0) || math.IsInf(s.Epsilon, 0):
		return fmt.Errorf("epsilon is %v; allowed is a finite number above 0", s.Epsilon)
	case !(s.Delta > 0) || math.IsInf(s.Delta, 0):
		return fmt.Errorf("delta is %v; allowed is a finite number above 0", s.Delta)
	case !(s.Tolerance > 0) || s.Tolerance >= 1:
		return fmt.Errorf("tolerance is %v; allowed is above 0 and below 1", s.Tolerance)
	case !(s.Condition > 1) || math.IsInf(s.Condition, 0):
		return fmt.Errorf("condition is %v; allowed is a finite number above 1", s.Condition)
	case s.Every < 1 || s.Every > 256:
		return fmt.Errorf("every is %d; allowed is 1 to 256", s.Every)
	}
	return nil
}

// inverse keeps the inverse of a running average of rank-one matrices,
//
//	B(n) = (1 − b) B(n−1) + b φφᵀ,   B(−1) = εI,
//
// by the formula of Sherman and Morrison. It holds B = s B̂ with a scalar s, so
// that a step neither scales B nor its inverse:
//
//	s ← (1 − b)s,   w = b/s,   B̂ ← B̂ + w φφᵀ,
//	B̂⁻¹ ← B̂⁻¹ − k uuᵀ,   u = B̂⁻¹φ,   k = w/(1 + w φᵀu).
//
// The update of B̂⁻¹ waits until the next step, whose pass over the matrix
// applies it and multiplies in one go. B̂ itself is needed only for checks and
// fallbacks: its updates are gathered and applied together.
type inverse struct {
	set InverseSettings
	n   int

	s    float64   // B = s B̂
	b    []float64 // B̂ without the gathered updates, n×n, upper triangle
	p    []float64 // P, n×n, symmetric in full: B̂⁻¹ = P − zzᵀ
	z    []float64 // √k u of the last update
	u    []float64 // B̂⁻¹φ
	cols []float64 // gathered √w φ, n×Every, one per column
	held int       // how many are gathered

	since float64 // s at the last check
	count Counts

	dense dense     // B̂ and P as gonum's matrices, and what is solved with them
	y     []float64 // scratch of the residual
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

// newInverse returns the running inverse of an n×n matrix.
func newInverse(n int, set InverseSettings) (*inverse, error) {
	if n < 1 {
		panic(fmt.Sprintf("learner: inverse of a matrix of %d rows", n))
	}
	if err := set.Validate(); err != nil {
		return nil, err
	}
	inv := &inverse{
		set: set, n: n, s: 1, since: 1,
		b: make([]float64, n*n), p: make([]float64, n*n),
		z: make([]float64, n), u: make([]float64, n),
		cols: make([]float64, n*set.Every),
		y:    make([]float64, n),
	}
	for i := range n {
		inv.b[i*n+i], inv.p[i*n+i] = set.Epsilon, 1/set.Epsilon
	}
	inv.dense.init(inv.b, inv.p, n)
	return inv, nil
}

// Counts returns what the inverse went through so far.
func (inv *inverse) Counts() Counts { return inv.count }

// rescale is the power of two by which B̂ is brought back when s has become
// small. It rounds nothing.
const rescale = 1 << 64

// decay folds the step b, 0 < b < 1, into s and returns w = b/s. If it reports
// true, everything that is held as a multiple of s has to be divided by rescale.
func (inv *inverse) decay(b float64) (w float64, rescaled bool) {
	if !(b > 0 && b < 1) {
		panic(fmt.Sprintf("learner: step of the inverse is %v; allowed is above 0 and below 1", b))
	}
	inv.s *= 1 - b
	if inv.s < 1.0/rescale {
		inv.flush()
		blas64.Scal(1.0/rescale, blas64.Vector{N: len(inv.b), Inc: 1, Data: inv.b})
		if !inv.set.Always { // else P is not kept
			blas64.Scal(rescale, blas64.Vector{N: len(inv.p), Inc: 1, Data: inv.p})
			blas64.Scal(1<<32, vector(inv.z))
		}
		inv.s *= rescale
		inv.since *= rescale
		rescaled = true
	}
	return b / inv.s, rescaled
}

// updateSolve takes B̂ ← B̂ + w φφᵀ and writes y = B̂⁻¹v for the new B̂ into dst,
// in one pass over P. It reports whether the incremental inverse was trusted;
// if not, y is the Tikhonov form's, (B̂² + δI)⁻¹B̂ v. With Always it is that and
// the report is true.
func (inv *inverse) updateSolve(dst, phi, v []float64, w float64) bool {
	inv.count.Updates++
	gather(inv.cols[inv.held:], phi, math.Sqrt(w), inv.set.Every)
	inv.held++
	if inv.set.Always {
		inv.flush()
		inv.since = inv.s
		inv.tikhonov(dst, v)
		return true
	}
	u := inv.u
	symmPass(inv.p, inv.z, u, dst, phi, v)
	phiU, vU := dots(u, phi, v)
	// k = w/(1 + w φᵀB̂⁻¹φ); B̂⁻¹ is positive definite, or rounding won.
	lev := w * phiU
	if !(lev >= 0) || math.IsInf(lev, 0) {
		inv.fallback(dst, v)
		return false
	}
	k := w / (1 + lev)
	root, c := math.Sqrt(k), k*vU
	z := inv.z[:len(u)]
	for i, ui := range u {
		z[i] = root * ui
		dst[i] -= c * ui // y = B̂⁻¹v − k u (uᵀv)
	}
	if inv.held < inv.set.Every && inv.s*math.E > inv.since {
		return true
	}
	inv.flush()
	inv.settle()
	inv.since = inv.s
	inv.count.Checks++
	rho := inv.residual(dst, v)
	if rho <= inv.set.Tolerance && inv.dense.condition() <= inv.set.Condition {
		inv.count.Worst = math.Max(inv.count.Worst, rho)
		return true
	}
	if rho <= inv.set.Tolerance {
		inv.count.Deficient++
	}
	inv.fallback(dst, v)
	return false
}

// gather writes c φ into a column of a matrix with that stride.
func gather(dst, phi []float64, c float64, stride int) {
	j := 0
	for _, f := range phi {
		dst[j] = c * f
		j += stride
	}
}

// flush applies the gathered updates to B̂.
func (inv *inverse) flush() {
	if inv.held == 0 {
		return
	}
	blas64.Syrk(blas.NoTrans, 1,
		blas64.General{Rows: inv.n, Cols: inv.held, Stride: inv.set.Every, Data: inv.cols},
		1, inv.upper(inv.b))
	inv.held = 0
}

func (inv *inverse) upper(a []float64) blas64.Symmetric {
	return blas64.Symmetric{Uplo: blas.Upper, N: inv.n, Stride: inv.n, Data: a}
}

func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Inc: 1, Data: v} }

// residual returns ‖B̂y − v‖∞/‖v‖∞: 0 for v = 0, +Inf if it is not a number.
func (inv *inverse) residual(y, v []float64) float64 {
	copy(inv.y, v)
	blas64.Symv(1, inv.upper(inv.b), vector(y), -1, vector(inv.y))
	var num, den float64
	for i, r := range inv.y {
		if math.IsNaN(r) {
			return math.Inf(1)
		}
		num = max(num, math.Abs(r))
		den = max(den, math.Abs(v[i]))
	}
	if num == 0 {
		return 0
	}
	return num / den
}

// settle applies the waiting update to P.
func (inv *inverse) settle() {
	n := inv.n
	for i, zi := range inv.z {
		for j, zj := range inv.z {
			inv.p[i*n+j] -= zi * zj
		}
	}
	clear(inv.z)
}

// fallback solves by Tikhonov and starts the incremental inverse again.
func (inv *inverse) fallback(dst, v []float64) {
	inv.count.Fallbacks++
	inv.flush()
	inv.tikhonov(dst, v)
	inv.refresh()
	inv.since = inv.s
}

// tikhonov writes (B̂ᵀB̂ + δI)⁻¹B̂ᵀ v into dst (Allerton, section V). With B = sB̂
// the δ of B̂ is δ/s². Rounding lifts it anyway where it is far below B̂².
func (inv *inverse) tikhonov(dst, v []float64) {
	inv.count.Tikhonov++
	const least = 1e-20
	unit := inv.s * inv.dense.mean()
	inv.dense.tikhonov(dst, v, math.Max(inv.set.Delta/(unit*unit), least))
}

// refresh adds the ridge ε to B̂ and factorises it afresh.
func (inv *inverse) refresh() {
	inv.dense.refresh(inv.set.Epsilon)
	clear(inv.z)
}

// B returns a copy of B.
func (inv *inverse) B() *mat.SymDense {
	inv.flush()
	var m mat.SymDense
	m.ScaleSym(inv.s, &inv.dense.b)
	return &m
}

// InverseState is the whole state of a running inverse as data.
type InverseState struct {
	Scale  float64     `json:"scale"`          // s
	Since  float64     `json:"since"`          // s at the last check
	Matrix []float64   `json:"matrix"`         // B̂, ℓ×ℓ, upper triangle
	P      []float64   `json:"p"`              // P, ℓ×ℓ
	Z      []float64   `json:"z"`              // z, ℓ; B̂⁻¹ = P − zzᵀ
	Held   [][]float64 `json:"held,omitempty"` // gathered √w φ, oldest first
	Counts Counts      `json:"counts"`
}

// State returns a copy of the state.
func (inv *inverse) State() InverseState {
	st := InverseState{Scale: inv.s, Since: inv.since, Matrix: slices.Clone(inv.b), P: slices.Clone(inv.p), Z: slices.Clone(inv.z), Counts: inv.count}
	for k := range inv.held {
		col := make([]float64, inv.n)
		for i := range col {
			col[i] = inv.cols[i*inv.set.Every+k]
		}
		st.Held = append(st.Held, col)
	}
	return st
}

// SetState takes up a state that State returned.
func (inv *inverse) SetState(st InverseState) error {
	n := inv.n
	if !(st.Scale > 0) || math.IsInf(st.Scale, 0) || !(st.Since > 0) || math.IsInf(st.Since, 0) {
		return fmt.Errorf("scale and since are %v and %v; allowed are finite numbers above 0", st.Scale, st.Since)
	}
	if err := check.First(check.Finite("matrix", st.Matrix, n*n), check.Finite("p", st.P, n*n), check.Finite("z", st.Z, n)); err != nil {
		return err
	}
	if len(st.Held) >= inv.set.Every {
		return fmt.Errorf("held has %d columns; allowed are fewer than every, %d", len(st.Held), inv.set.Every)
	}
	for _, c := range st.Held {
		if err := check.Finite("held", c, n); err != nil {
			return err
		}
	}
	inv.s, inv.since, inv.count, inv.held = st.Scale, st.Since, st.Counts, len(st.Held)
	copy(inv.b, st.Matrix)
	copy(inv.p, st.P)
	copy(inv.z, st.Z)
	for k, c := range st.Held {
		gather(inv.cols[k:], c, 1, inv.set.Every)
	}
	return nil
}

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
