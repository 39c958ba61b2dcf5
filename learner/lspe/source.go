package lspe

// degree is the greatest degree of the polynomials.
const degree = 3

// source is what is learned of one source. A state is an age s, held as
// z = (s − 1)/τ, so that the powers of z are of one size at any length of the
// cycle.
type source struct {
	// Averages over the source's own cycles of age S and harvest X, with z of S.
	powers   [2 * degree]float64 // of z, z², …, z⁶
	harvests [1 + degree]float64 // of X, Xz, Xz², Xz³

	// r, the weights of Q: of the harvest if it is crawled at z, and of what
	// harvest and cost are still to come in this cycle if it is not.
	crawl [1 + degree]float64 // of 1, z, z², z³
	wait  [degree]float64     // of z, z², z³; V is 0 right after a crawl
	toll  [degree]float64     // the same for the cost

	theta  float64 // θ, the threshold, an age from 1 on
	unit   float64 // τ, within a factor of two of θ
	from   float64 // θ when it was crawled last
	common float64 // average of the pooled curve H̄(S)

	dispersion float64 // of harvests around what was expected, squared over mean
	noise      float32 // L of the present cycle, logistic
	rise, fall float32 // evidence that the level has jumped
	cycles     int32   // k; 0 before the first crawl
	last       int32   // epoch of the last crawl
	lined      bool    // it stands in line for its first crawl
}

// take mixes a cycle into the averages with weight b:
//
//	Z_m ← Z_m + b(zᵐ − Z_m),  X_m ← X_m + b(X zᵐ − X_m)
func (s *source) take(age, harvest, b float64) {
	z := (age - 1) / s.unit
	v := 1.0
	for m := range s.harvests {
		s.harvests[m] += b * (harvest*v - s.harvests[m])
		v *= z
	}
	v = z
	for m := range s.powers {
		s.powers[m] += b * (v - s.powers[m])
		v *= z
	}
}

// span returns the mean length of a cycle, 1 + τZ₁ epochs.
func (s *source) span() float64 { return 1 + s.unit*s.powers[0] }

// eta returns η, the harvest per epoch.
func (s *source) eta() float64 { return s.harvests[0] / s.span() }

// z returns the place of an age among the features; ages below 1 do not occur.
func (s *source) z(age float64) float64 { return max(0, age-1) / s.unit }

// expected returns the harvest of a crawl at z by the crawl block.
func (s *source) expected(z float64) float64 {
	return s.crawl[0] + z*(s.crawl[1]+z*(s.crawl[2]+z*s.crawl[3]))
}

// cubic returns w₁z + w₂z² + w₃z³.
func cubic(w *[degree]float64, z float64) float64 { return z * (w[0] + z*(w[1]+z*w[2])) }

// measure keeps τ within a factor of two of θ. It doubles or halves, and all
// that is held of powers of z is rescaled: the functions remain, bit for bit.
func (s *source) measure() {
	for s.theta > 2*s.unit {
		s.rescale(2)
	}
	for s.theta < s.unit/2 {
		s.rescale(.5)
	}
}

func (s *source) rescale(by float64) {
	s.unit *= by
	v := by // by^m
	for m := range s.powers {
		s.powers[m] /= v
		if m < degree {
			s.harvests[m+1] /= v
			s.crawl[m+1] *= v
			s.wait[m] *= v
			s.toll[m] *= v
		}
		v *= by
	}
}

// forget clears what was learned of the source but for its last crawl.
func (s *source) forget() {
	*s = source{noise: s.noise, theta: s.theta, last: s.last, lined: s.lined}
}
