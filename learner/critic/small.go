package critic

import "math"

// Most is the greatest number of features that [Small] takes.
const Most = 4

// Small solves By = v for a symmetric B of at most four features that is put
// together afresh each time, because its update is not of low rank: by B = LDLᵀ, or
// by the Tikhonov form where B is close to rank-deficient. It allocates nothing.
type Small struct {
	l     int
	lower [Most][Most]float64 // L below its diagonal, which is 1
	pivot [Most]float64       // 1/D

	// The Tikhonov form is of B̃ = UBU, U = diag(B)^−½; L and D are those of B̃² + δI.
	tikh bool
	unit [Most]float64 // diagonal of U; 0 for a feature that is always 0
	b    [Most][Most]float64
}

const (
	leastPivot = 1e-12 // share of a feature that the features before it leave, below which B is not trusted
	smallDelta = 1e-12 // δ of the Tikhonov form
)

// Factor takes up the first l rows and columns of B. It reports whether B is
// trusted; if not, Solve takes the Tikhonov form.
func (s *Small) Factor(l int, b *[Most][Most]float64) bool {
	s.l, s.lower = l, *b
	s.tikh = !s.decompose(leastPivot)
	if !s.tikh {
		return true
	}
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
	if !s.decompose(0) { // B̃² overflows: nothing is solved
		s.lower, s.pivot = [Most][Most]float64{}, [Most]float64{}
	}
	return false
}

// decompose replaces lower by L and reports whether every pivot is above that share
// of what it was.
func (s *Small) decompose(least float64) bool {
	a := &s.lower
	for i := range s.l {
		var y [Most]float64 // row i of LD
		d := a[i][i]
		for j := range i {
			v := a[i][j]
			for k := range j {
				v -= y[k] * a[j][k]
			}
			y[j], a[i][j] = v, v*s.pivot[j]
			d -= v * a[i][j]
		}
		if !(d > least*a[i][i]) {
			return false
		}
		s.pivot[i] = 1 / d
	}
	return true
}

// Solve replaces v by B⁻¹v, or by U(B̃ᵀB̃ + δI)⁻¹B̃ᵀUv.
func (s *Small) Solve(v *[Most]float64) {
	l := s.l
	if s.tikh {
		var x [Most]float64
		for i := range l {
			x[i] = s.unit[i] * v[i]
		}
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
	}
	for i := l - 1; i >= 0; i-- {
		v[i] *= s.pivot[i]
		for k := i + 1; k < l; k++ {
			v[i] -= a[k][i] * v[k]
		}
	}
	if s.tikh {
		for i := range l {
			v[i] *= s.unit[i]
		}
	}
}
