package estimate

import "math"

// harvests are the crawls of one source by their age: how many, and, in a
// world whose crawls name no items, what they brought.
type harvests struct {
	Bins []bin

	// Where crawls name no items:
	Theta, Info float64 // ln c from harvests at different ages, and its precision
	Phi         float64 // variance of a harvest over its mean
	Used        float64 // ln c behind the exposure
	Stale       bool    // the exposure lacks crawls
}

// bin holds the crawls at about one age.
type bin struct {
	N, Age       float64 // crawls, Σ age
	Sum, Squares float64 // Σ harvest and its square
}

func (b *bin) age() float64 { return b.Age / b.N }

// binOf returns the number of the bin of an age: one for each age up to 16,
// eight for each doubling above.
func binOf(age float64) int {
	if age <= 16 {
		return max(0, int(math.Ceil(age))-1)
	}
	return 15 + int(math.Ceil(8*math.Log2(age/16)))
}

func (h *harvests) add(age, harvest float64) {
	k := binOf(age)
	for len(h.Bins) <= k {
		h.Bins = append(h.Bins, bin{})
	}
	b := &h.Bins[k]
	b.N++
	b.Age += age
	b.Sum += harvest
	b.Squares += harvest * harvest
	h.Stale = true
}

func (h *harvests) forget(keep float64) {
	for k := range h.Bins {
		b := &h.Bins[k]
		*b = bin{keep * b.N, keep * b.Age, keep * b.Sum, keep * b.Squares}
	}
}

// blind reports whether there were two crawls or more and all at this age: from
// them, decay and inflow cannot be told apart.
func (h *harvests) blind(age int) bool {
	var n float64
	for k := range h.Bins {
		n += h.Bins[k].N
	}
	k := binOf(float64(age))
	return h.Info == 0 && n > 1.5 && k < len(h.Bins) && h.Bins[k].N >= n
}

// fit fits ln c, if it is free, and the dispersion. With the mean
// μ = B(1 − e^(−cs))/c of a harvest X and its variance φμ, the weighted least
// squares that profile B out have the score and information
//
//	Σ (X − μ)(J − J̄)/φ,    Σ μ (J − J̄)²/φ,    J = ∂ ln μ/∂ ln c
//
// A few scoring steps follow each crawl. The dispersion starts from one crawl's
// worth of the mean harvest, so that nothing is certain after two crawls.
func (h *harvests) fit(theta float64, free bool) {
	ages := 0
	for _, b := range h.Bins {
		if b.N > 0 {
			ages++
		}
	}
	if h.Info == 0 || !free {
		h.Theta = theta
	}
	var q, info float64
	for range 4 {
		c := math.Exp(h.Theta)
		sum, exposure, n, mean := h.expose(c)
		if !(sum > 0) {
			return
		}
		inflow := sum / exposure
		var score float64
		q, info = 0, 0
		for _, b := range h.Bins {
			if b.N > 0 {
				mu := inflow * decayed(c, b.age())
				j := sensitivity(c*b.age()) - mean
				score += (b.Sum - b.N*mu) * j
				info += b.N * mu * j * j
				q += (b.Squares - 2*b.Sum*mu + b.N*mu*mu) / mu
			}
		}
		h.Phi = (max(0, q) + sum/n) / n
		if ages < 2 || !free || !(info > 0) {
			break
		}
		h.Theta = max(leastTheta, min(mostTheta, h.Theta+clip(score/info, 1)))
	}
	h.Info = 0
	if free && ages > 1 && h.Phi > 0 {
		h.Info = info / h.Phi
	}
}

// expose returns what was harvested, for how many epochs' worth of new
// interest, Σ(1 − e^(−cs))/c, from how many crawls, and the mean of
// ∂ ln μ/∂ ln c over that exposure.
func (h *harvests) expose(c float64) (sum, exposure, n, mean float64) {
	for _, b := range h.Bins {
		if b.N > 0 {
			e := b.N * decayed(c, b.age())
			sum, exposure, n = sum+b.Sum, exposure+e, n+b.N
			mean += e * sensitivity(c*b.age())
		}
	}
	return sum, exposure, n, mean / exposure
}

// sensitivity returns ∂ ln((1 − e^(−cs))/c)/∂ ln c at cs.
func sensitivity(cs float64) float64 {
	if cs < 1e-8 {
		return -cs / 2
	}
	return cs/math.Expm1(cs) - 1
}
