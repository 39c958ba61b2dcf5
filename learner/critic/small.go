package critic

import "math"

// Most is the greatest number of features of a [Small].
const Most = 4

// Small is the running inverse P of a matrix B of at most four features, for learners
// that have one in each of a million sources: the formula of Sherman and Morrison, the
// measures by which it is trusted, and a Tikhonov form for where it is not, on arrays of
// their sizes. It holds the lower triangle of P by rows, entry i, j ≤ i at i(i+1)/2 + j.
// B itself the caller holds, as averages.
type Small []float64

// Begin sets P to I/ε for B(−1) = εI of l features. Features from l on remain out of P.
func (p Small) Begin(l int, epsilon float64) {
	clear(p)
	for i := range l {
		p[i*(i+1)/2+i] = 1 / epsilon
	}
}

// Scale is for B ← B/v.
func (p Small) Scale(v float64) {
	for k := range p {
		p[k] *= v
	}
}

// Rescale is for φ_i ← φ_i/vⁱ, i counting from first on: B_ij ← B_ij/vⁱ⁺ʲ.
func (p Small) Rescale(first int, v float64) {
	begin := 1. // v^(first + first), of entry 0, 0
	for range 2 * first {
		begin *= v
	}
	for i, k := 0, 0; k < len(p); i++ {
		entry := begin
		for range i + 1 {
			p[k] *= entry
			entry *= v
			k++
		}
		begin *= v
	}
}

// Add is for B ← B + w φφᵀ, by the formula of Sherman and Morrison:
//
//	P ← P − k uuᵀ,   u = Pφ,   k = w/(1 + w φᵀu)
func (p Small) Add(phi []float64, w float64) {
	var u [Most]float64
	var lev float64
	k := 0
	for i, v := range phi {
		var sum float64
		for j := range i {
			sum += p[k+j] * phi[j]
			u[j] += p[k+j] * v
		}
		u[i] = sum + p[k+i]*v
		k += i + 1
	}
	for i, v := range phi {
		lev += u[i] * v
	}
	by := w / (1 + w*lev)
	k = 0
	for i := range phi {
		v := by * u[i]
		for j := range i + 1 {
			p[k] -= v * u[j]
			k++
		}
	}
}

// Mul writes y = Pv.
func (p Small) Mul(y, v *[Most]float64) {
	*y = [Most]float64{}
	for i, k := 0, 0; k < len(p); i++ {
		for j := range i {
			y[i] += p[k+j] * v[j]
			y[j] += p[k+j] * v[i]
		}
		y[i] += p[k+i] * v[i]
		k += i + 1
	}
}

// at returns entry i, j.
func (p Small) at(i, j int) float64 {
	if j > i {
		i, j = j, i
	}
	return p[i*(i+1)/2+j]
}

const (
	smallCondition = 1e12 // up to which B is inverted as it is
	smallResidual  = 1e-3 // up to which P is trusted
	smallDelta     = 1e-9 // δ
)

// Trusted reports whether P is the inverse of B, l×l, of which the lower triangle is
// looked at: whether in units of U = diag(B)^½ the condition number is below 10¹² and
// PB differs from I by less than 10⁻³.
func (p Small) Trusted(l int, b *[Most][Most]float64) bool {
	unit := units(l, b)
	var size, inverse, wrong float64
	for i := range l {
		var sum, inverseSum float64
		for j := range l {
			scaled, scaledInverse := b[max(i, j)][min(i, j)]*unit[i]*unit[j], 0.
			if unit[i]*unit[j] > 0 {
				scaledInverse = p.at(i, j) / unit[i] / unit[j]
			}
			sum += math.Abs(scaled)
			inverseSum += math.Abs(scaledInverse)
			var one float64
			for k := range l {
				one += p.at(i, k) * b[max(k, j)][min(k, j)]
			}
			if i == j {
				one--
			}
			if unit[i] > 0 {
				wrong = max(wrong, math.Abs(one*unit[j]/unit[i]))
			}
		}
		size, inverse = max(size, sum), max(inverse, inverseSum)
	}
	return wrong < smallResidual && size*inverse < smallCondition
}

// units returns U⁻¹; 0 for a feature that is always 0.
func units(l int, b *[Most][Most]float64) (unit [Most]float64) {
	for i := range l {
		if v := b[i][i]; v > 0 {
			unit[i] = 1 / math.Sqrt(v)
		}
	}
	return unit
}

// Tikhonov sets P to a Tikhonov form of B⁻¹, of which the lower triangle is looked at:
//
//	P = (B + δ diag B)⁻¹ = U⁻¹(B̃ + δI)⁻¹U⁻¹,   B̃ = U⁻¹BU⁻¹,   B̃ + δI = LDLᵀ
//
// The printed learner's, (BᵀB + δI)⁻¹Bᵀ, is for one solution: it is next to 0 in
// directions of which B knows nothing, and as a P that runs on it would stay so, and
// learn nothing there.
func (p Small) Tikhonov(l int, b *[Most][Most]float64) {
	unit := units(l, b)
	var lower [Most][Most]float64
	var pivot [Most]float64
	for i := range l {
		for j := range i + 1 {
			v := b[i][j] * unit[i] * unit[j]
			if i == j {
				v += smallDelta
			}
			for k := range j {
				v -= lower[i][k] * pivot[k] * lower[j][k]
			}
			if i == j {
				pivot[i] = max(v, smallDelta) // rounding apart no pivot is below δ
			} else {
				lower[i][j] = v / pivot[j]
			}
		}
	}
	for j := range l {
		var y [Most]float64
		y[j] = 1
		for i := range l {
			for k := range i {
				y[i] -= lower[i][k] * y[k]
			}
		}
		for i := l - 1; i >= 0; i-- {
			y[i] /= pivot[i]
			for k := i + 1; k < l; k++ {
				y[i] -= lower[k][i] * y[k]
			}
		}
		for i := j; i < l; i++ {
			p[i*(i+1)/2+j] = y[i] * unit[i] * unit[j]
		}
	}
}
