package lspe

// degree is the greatest degree of the polynomials.
const degree = 3

// Source is what is learned of one source. A state is an age s, held as
// z = s/τ, so that the powers of z are of one size at any length of the
// cycle.
type Source struct {
	// Averages over the source's own cycles of age S and harvest X, with z of S.
	Powers   [2 * degree]float64 // of z, z², …, z⁶
	Harvests [1 + degree]float64 // of X, Xz, Xz², Xz³

	// r, the weights of Q: of the harvest if it is crawled at z, and of what
	// harvest and cost are still to come in this cycle if it is not.
	Crawl [1 + degree]float64 // of 1, z, z², z³
	Wait  [degree]float64     // of z, z², z³; V is 0 right after a crawl
	Toll  [degree]float64     // the same for the cost

	Theta      float64 // θ, the threshold, an age from 1 on
	Unit       float64 // τ, within a factor of two of θ
	LastTheta  float64 // θ when it was crawled last
	PooledMean float64 // average of the pooled curve H̄(S)

	Dispersion         float64 // of harvests around what was expected, squared over mean
	Noise              float32 // L of the present cycle, logistic
	CusumUp, CusumDown float32 // sums of surprises, above and below
	Cycles             int32   // k; 0 before the first crawl
	Last               int32   // epoch of the last crawl
	Queued             bool    // it stands in the queue for its first crawl
}

// take mixes a cycle into the averages with weight b:
//
//	Z_m ← Z_m + b(zᵐ − Z_m),  X_m ← X_m + b(X zᵐ − X_m)
func (s *Source) take(age, harvest, b float64) {
	z := age / s.Unit
	v := 1.0
	for m := range s.Harvests {
		s.Harvests[m] += b * (harvest*v - s.Harvests[m])
		v *= z
	}
	v = z
	for m := range s.Powers {
		s.Powers[m] += b * (v - s.Powers[m])
		v *= z
	}
}

// span returns the mean length of a cycle, τZ₁ epochs.
func (s *Source) span() float64 { return s.Unit * s.Powers[0] }

// eta returns η, the harvest per epoch.
func (s *Source) eta() float64 { return s.Harvests[0] / s.span() }

// z returns the place of an age among the features.
func (s *Source) z(age float64) float64 { return age / s.Unit }

// expected returns the harvest of a crawl at z by the crawl block.
func (s *Source) expected(z float64) float64 {
	return s.Crawl[0] + z*(s.Crawl[1]+z*(s.Crawl[2]+z*s.Crawl[3]))
}

// cubic returns w₁z + w₂z² + w₃z³.
func cubic(w *[degree]float64, z float64) float64 { return z * (w[0] + z*(w[1]+z*w[2])) }

// measure keeps τ within a factor of two of θ. It doubles or halves, and all
// that is held of powers of z is rescaled: the functions remain, bit for bit.
func (s *Source) measure() {
	for s.Theta > 2*s.Unit {
		s.rescale(2)
	}
	for s.Theta < s.Unit/2 {
		s.rescale(.5)
	}
}

func (s *Source) rescale(by float64) {
	s.Unit *= by
	v := by // by^m
	for m := range s.Powers {
		s.Powers[m] /= v
		if m < degree {
			s.Harvests[m+1] /= v
			s.Crawl[m+1] *= v
			s.Wait[m] *= v
			s.Toll[m] *= v
		}
		v *= by
	}
}

// forget clears what was learned of the source but for its last crawl.
func (s *Source) forget() {
	*s = Source{Noise: s.Noise, Theta: s.Theta, Last: s.Last, Queued: s.Queued}
}
