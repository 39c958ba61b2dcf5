package critic

import "math"

// Most is the greatest number of features that [Small] takes.
const Most = 4

// Small solves By = v for a symmetric B of at most four features that is put
// together afresh each time, because its update is not of low rank: with U =
// diag(B)^−½
//
//	y = U(UBU + δI)⁻¹Uv,   UBU + δI = LDLᵀ
//
// The ridge δ is Tikhonov's, for where B is close to rank-deficient. Small allocates
// nothing.
type Small struct {
	l     int
	unit  [Most]float64       // diagonal of U; 0 for a feature that is always 0
	lower [Most][Most]float64 // L below its diagonal, which is 1
	pivot [Most]float64       // 1/D
}

const smallDelta = 1e-12 // δ

// Factor takes up the first l rows and columns of B.
func (s *Small) Factor(l int, b *[Most][Most]float64) {
	s.l = l
	for i := range l {
		s.unit[i] = 0
		if v := b[i][i]; v > 0 {
			s.unit[i] = 1 / math.Sqrt(v)
		}
		var y [Most]float64 // row i of LD
		for j := range i {
			v := b[i][j] * s.unit[i] * s.unit[j]
			for k := range j {
				v -= y[k] * s.lower[j][k]
			}
			y[j], s.lower[i][j] = v, v*s.pivot[j]
		}
		d := b[i][i]*s.unit[i]*s.unit[i] + smallDelta
		for j := range i {
			d -= y[j] * s.lower[i][j]
		}
		s.pivot[i] = 1 / max(d, smallDelta) // rounding apart no pivot is below δ
	}
}

// Solve replaces v by y.
func (s *Small) Solve(v *[Most]float64) {
	for i := range s.l {
		v[i] *= s.unit[i]
		for k := range i {
			v[i] -= s.lower[i][k] * v[k]
		}
	}
	for i := s.l - 1; i >= 0; i-- {
		v[i] *= s.pivot[i]
		for k := i + 1; k < s.l; k++ {
			v[i] -= s.lower[k][i] * v[k]
		}
	}
	for i := range s.l {
		v[i] *= s.unit[i]
	}
}
