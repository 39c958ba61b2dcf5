package critic

import "math"

// Most is the greatest number of features that [Small] takes.
const Most = 4

// Small solves By = v for a symmetric B of at most four features that is put
// together afresh each time, because its update is not of low rank: by Cholesky,
// or by the Tikhonov form where B is close to rank-deficient. Both are in units
// of D = diag(B)^−½. It allocates nothing.
type Small struct {
	l     int
	unit  [Most]float64       // diagonal of D; 0 for a feature that is always 0
	b     [Most][Most]float64 // DBD
	lower [Most][Most]float64 // Cholesky factor of DBD, or of (DBD)² + δI
	tikh  bool
}

const (
	leastPivot = 1e-12 // share of a feature that the features before it leave, below which B is not trusted
	smallDelta = 1e-12 // δ of the Tikhonov form
)

// Factor takes up the first l rows and columns of B. It reports whether B is
// trusted; if not, Solve takes the Tikhonov form.
func (s *Small) Factor(l int, b *[Most][Most]float64) bool {
	s.l, s.tikh = l, false
	for i := range l {
		s.unit[i] = 0
		if v := b[i][i]; v > 0 {
			s.unit[i] = 1 / math.Sqrt(v)
		}
	}
	for i := range l {
		for j := range l {
			s.b[i][j] = b[i][j] * s.unit[i] * s.unit[j]
		}
	}
	s.lower = s.b
	if s.cholesky(leastPivot) {
		return true
	}
	s.tikh = true
	for i := range l {
		for j := range l {
			var v float64
			for k := range l {
				v += s.b[i][k] * s.b[k][j]
			}
			s.lower[i][j] = v
		}
		s.lower[i][i] += smallDelta
	}
	if !s.cholesky(0) {
		panic("critic: the matrix of a source is not finite")
	}
	return false
}

// cholesky factorises lower in place and reports whether every pivot is above
// least.
func (s *Small) cholesky(least float64) bool {
	a := &s.lower
	for i := range s.l {
		for j := range i + 1 {
			v := a[i][j]
			for k := range j {
				v -= a[i][k] * a[j][k]
			}
			if j < i {
				a[i][j] = v / a[j][j]
				continue
			}
			if !(v > least) {
				return false
			}
			a[i][i] = math.Sqrt(v)
		}
	}
	return true
}

// Solve replaces v by B⁻¹v = D(DBD)⁻¹Dv, or by D(B̃ᵀB̃ + δI)⁻¹B̃ᵀDv with B̃ = DBD.
func (s *Small) Solve(v *[Most]float64) {
	l := s.l
	for i := range l {
		v[i] *= s.unit[i]
	}
	if s.tikh {
		x := *v
		for i := range l {
			v[i] = 0
			for k := range l {
				v[i] += s.b[i][k] * x[k]
			}
		}
	}
	a := &s.lower
	for i := range l {
		for k := range i {
			v[i] -= a[i][k] * v[k]
		}
		v[i] /= a[i][i]
	}
	for i := l - 1; i >= 0; i-- {
		for k := i + 1; k < l; k++ {
			v[i] -= a[k][i] * v[k]
		}
		v[i] /= a[i][i]
	}
	for i := range l {
		v[i] *= s.unit[i]
	}
}
