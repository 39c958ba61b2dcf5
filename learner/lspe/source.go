package lspe

import "ephemera/learner/critic"

// degree is the greatest degree of the polynomials.
const degree = 3

// Source is what is learned of one source. A state is an age s, held as
// z = s/τ, so that the powers of z are of one size at any length of the
// cycle.
type Source struct {
	// Averages over cycles of age S and harvest X, with z of S: the source's own and
	// those of the prior.
	Ones     float64             // share of cycles of one epoch
	Powers   [2 * degree]float64 // of z, z², …, z⁶
	Harvests [1 + degree]float64 // of X, Xz, Xz², Xz³, without the prior's
	Prior    [1 + degree]float64 // the same of the prior's, whose X are those of the pooled curve

	// B⁻¹ of both blocks, running along: see critic.Small.
	CrawlInverse [(1 + degree) * (2 + degree) / 2]float64
	WaitInverse  [degree * (1 + degree) / 2]float64

	// r, the weights of Q: of the harvest if it is crawled at z, and of what
	// harvest and cost are still to come in this cycle if it is not.
	Crawl [1 + degree]float64 // of 1, z, z², z³
	Wait  [degree]float64     // of z, z², z³; V is 0 right after a crawl
	Toll  [degree]float64     // the same for the cost

	Theta     float64 // θ, the threshold, an age from 1 on
	LastTheta float32 // θ when it was crawled last
	Unit      float32 // τ, within a factor of two of θ

	// Averages over its own cycles alone.
	Mean float64               // X̄, of X
	Span float32               // S̄, of S, epochs
	Phi  [poolFeatures]float32 // ψ, the pooled curve's features

	Score, Square      float32 // of its slope: see between
	Dispersion         float64 // of harvests around what was expected, squared over mean
	Noise              float32 // L of the present cycle, logistic
	CusumUp, CusumDown float32 // sums of surprises, above and below
	Cycles             int32   // k; 0 before the first crawl
	Last               int32   // epoch of the last crawl
	Queued             bool    // it stands in the queue for its first crawl

	Failed    float32 // m, crawls that fail until one succeeds, in the mean
	FailedNow int32   // of the present cycle
}

// begin begins the averages, and B at B(−1) = 10⁻⁶I for polynomials of that degree.
func (s *Source) begin(features int) {
	s.Ones = 0
	s.Powers, s.Harvests, s.Prior = [2 * degree]float64{}, [1 + degree]float64{}, [1 + degree]float64{}
	critic.Small(s.CrawlInverse[:]).Begin(features+1, firstB)
	critic.Small(s.WaitInverse[:]).Begin(features, firstB)
}

// firstB is ε of B(−1) = εI.
const firstB = 1e-6

// fade multiplies all averages by 1 − b, and so B, whose inverse grows.
func (s *Source) fade(b float64) {
	for m := range s.Harvests {
		s.Harvests[m] *= 1 - b
		s.Prior[m] *= 1 - b
	}
	s.Ones *= 1 - b
	for m := range s.Powers {
		s.Powers[m] *= 1 - b
	}
	critic.Small(s.CrawlInverse[:]).Scale(1 / (1 - b))
	critic.Small(s.WaitInverse[:]).Scale(1 / (1 - b))
}

// take adds a cycle to the averages with weight b,
//
//	Z_m ← Z_m + b zᵐ,  X_m ← X_m + b X zᵐ,  B ← B + b Σφφᵀ
//
// X being its harvest, or pooled that of a cycle of the prior; and to the inverses by Sherman
// and Morrison: the crawl is a transition from φ = (1, z, z², z³), and the waiting's come to
// three, see waits.
func (s *Source) take(features int, age, harvest, pooled, b float64) {
	z := s.z(age)
	v := 1.0
	var phi [1 + degree]float64
	for m := range s.Harvests {
		phi[m] = v
		s.Harvests[m] += b * harvest * v
		s.Prior[m] += b * pooled * v
		v *= z
	}
	if age == 1 {
		s.Ones += b
	}
	v = z
	for m := range s.Powers {
		s.Powers[m] += b * v
		v *= z
	}
	critic.Small(s.CrawlInverse[:]).Add(phi[:features+1], b)
	if age == 1 {
		return
	}
	for m := range features {
		var wait [degree]float64
		for i := m; i < features; i++ {
			wait[i] = waits[i][m] * phi[i+1]
		}
		critic.Small(s.WaitInverse[:]).Add(wait[:features], b)
	}
}

// waited returns Z_m without the cycles of one epoch.
func (s *Source) waited(m int) float64 {
	z, v := 1., s.Ones
	if m > 0 {
		z = s.Powers[m-1]
	}
	for range m {
		v /= float64(s.Unit)
	}
	return max(0, z-v)
}

// z returns the place of an age among the features.
func (s *Source) z(age float64) float64 { return age / float64(s.Unit) }

// expected returns the harvest of a crawl at z by the crawl block.
func (s *Source) expected(z float64) float64 {
	return s.Crawl[0] + z*(s.Crawl[1]+z*(s.Crawl[2]+z*s.Crawl[3]))
}

// cubic returns w₁z + w₂z² + w₃z³.
func cubic(w *[degree]float64, z float64) float64 { return z * (w[0] + z*(w[1]+z*w[2])) }

// measure keeps τ within a factor of two of θ. It doubles or halves, and all
// that is held of powers of z is rescaled: the functions remain, bit for bit.
func (s *Source) measure() {
	for s.Theta > 2*float64(s.Unit) {
		s.rescale(2)
	}
	for s.Theta < float64(s.Unit)/2 {
		s.rescale(.5)
	}
}

func (s *Source) rescale(by float64) {
	s.Unit *= float32(by)
	v := by // by^m
	for m := range s.Powers {
		s.Powers[m] /= v
		if m < degree {
			s.Harvests[m+1] /= v
			s.Prior[m+1] /= v
			s.Crawl[m+1] *= v
			s.Wait[m] *= v
			s.Toll[m] *= v
		}
		v *= by
	}
	critic.Small(s.CrawlInverse[:]).Rescale(0, by)
	critic.Small(s.WaitInverse[:]).Rescale(1, by)
}

// forget clears what was learned of the source but for its last crawl.
func (s *Source) forget() {
	*s = Source{
		Noise: s.Noise, Theta: s.Theta, Last: s.Last, Queued: s.Queued,
		Failed: s.Failed, FailedNow: s.FailedNow,
	}
}
