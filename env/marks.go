package env

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/env/stream"
)

// Marks names the law of the items' initial interest ξ around its mean ξ̄.
type Marks string

// The laws of marks.
const (
	MarksConstant  Marks = "constant"  // ξ = ξ̄
	MarksPerItem   Marks = "per-item"  // ξ exponential, drawn for each item
	MarksPerEpoch  Marks = "per-epoch" // ξ exponential, one draw for all items of a source and epoch
	MarksLogNormal Marks = "lognormal" // ξ = ξ̄ e^(σZ − σ²/2), drawn for each item
)

// ParseMarks returns the law of that name.
func ParseMarks(name string) (Marks, error) {
	switch m := Marks(name); m {
	case MarksConstant, MarksPerItem, MarksPerEpoch, MarksLogNormal:
		return m, nil
	}
	return "", fmt.Errorf("marks is %q; allowed are %s, %s, %s and %s", name,
		MarksConstant, MarksPerItem, MarksPerEpoch, MarksLogNormal)
}

// moment returns E[ξᵏ]/ξ̄ᵏ of the marks that are drawn for each item, k from 1;
// under MarksPerEpoch these are constant, and the epoch's draw comes on top.
// sigma is the σ of log-normal marks.
func (m Marks) moment(k int, sigma float64) float64 {
	switch m {
	case MarksPerItem:
		return math.Gamma(float64(k + 1)) // k!
	case MarksLogNormal:
		return math.Exp(float64(k*(k-1)) / 2 * sigma * sigma)
	}
	return 1
}

// Cumulant returns κₖ of the interest, at the end of d epochs, of the items that
// a source publishes in them, by Campbell's theorem, for ξ̄ = 1 and without a
// window; κ₁ is the mean and κ₂ the variance. As in moment, one draw for the
// whole epoch is left out:
//
//	κₖ = λ E[ξᵏ] (1 − e^(−kcd)) / (kc)
func (s Source) Cumulant(k int, d float64, m Marks, sigma float64) float64 {
	kc := float64(k) * s.Decay
	return s.Rate * m.moment(k, sigma) * -math.Expm1(-kc*d) / kc
}

// sumMode is how the interest of an epoch's items is drawn.
type sumMode uint8

const (
	byItem      sumMode = iota // items one by one
	byGamma                    // the exact law of exponential marks
	byCumulants                // shifted gamma law with the first three cumulants
)

// maxDistance is the greatest proven distance (Kolmogorov) between the law of
// an epoch's sum and the law it is drawn from under byCumulants.
const maxDistance = 0.005

// law is what the items of a source follow.
type law struct {
	Source
	factor float64 // α

	// The window in whole epochs and a part of one. limit is false where it
	// drops nothing but what is negligible.
	whole int
	part  float64
	limit bool
	ring  [][2]float64 // the sums of the epochs in the window, where states are computed

	bulk        bool // sums are drawn part by part, with these modes
	early, late sumMode
}

func newLaw(s Source, o PoissonOptions) law {
	l := law{Source: s, factor: s.Factor()}
	// The epoch less is for items that are nearly an epoch older than their
	// epoch's end.
	if s.Window < maxWindow && math.Exp(-s.Decay*(s.Window-1)) >= negligible {
		m, f := math.Modf(s.Window)
		l.whole, l.part, l.limit = int(m), f, true
	}
	if s.Rate > o.Bulk && s.Interest > 0 {
		l.early, l.late = l.mode(1-l.part, o), l.mode(l.part, o)
		l.bulk = l.early != byItem || l.late != byItem
	}
	return l
}

// mode returns how the items of d epochs are drawn.
func (l *law) mode(d float64, o PoissonOptions) sumMode {
	switch {
	case d == 0:
		return byItem
	case o.Marks == MarksPerItem:
		return byGamma
	}
	k2, k3 := l.Cumulant(2, d, o.Marks, o.Sigma), l.Cumulant(3, d, o.Marks, o.Sigma)
	if k2 > 0 && cumulantDistance(k2, k3) <= maxDistance {
		return byCumulants
	}
	return byItem
}

// cumulantDistance bounds the Kolmogorov distance between a Poisson sum of
// non-negative terms and the shifted gamma law of the same cumulants. Both are
// within .3041 κ₃/κ₂^(3/2) of the normal law: the sum by the Berry–Esseen
// inequality for Poisson random sums (Korolev and Shevtsova, 2012), the gamma
// law because it is a limit of such sums. What is measured is far smaller, as
// the normal law is not what either is compared with.
func cumulantDistance(k2, k3 float64) float64 { return 2 * 0.3041 * k3 / (k2 * math.Sqrt(k2)) }

// drawCumulants draws the interest, at the end of d epochs, of the items of
// those d epochs from the gamma law with shape 4κ₂³/κ₃² and scale κ₃/(2κ₂),
// moved to the mean κ₁.
func (l *law) drawCumulants(r *stream.Rand, d float64, o PoissonOptions) float64 {
	k1, k2, k3 := l.Cumulant(1, d, o.Marks, o.Sigma), l.Cumulant(2, d, o.Marks, o.Sigma), l.Cumulant(3, d, o.Marks, o.Sigma)
	shape, scale := 4*k2*k2*k2/(k3*k3), k3/(2*k2)
	return l.Interest * math.Max(0, k1+scale*(distuv.Gamma{Alpha: shape, Beta: 1, Src: r}.Rand()-shape))
}

// drawGammaSum draws the interest that Poisson items with exponential marks of
// mean ξ leave at the end of d epochs. With a = e^(−cd) its Laplace transform is
//
//	E e^(−θU) = ((1 + aξθ)/(1 + ξθ))^(λ/c)
//
// the transition of the gamma Ornstein–Uhlenbeck process, and it is drawn as
//
//	G ~ Gamma(λ/c, (1 − a)/a),  J ~ Poisson(G),  U ~ Gamma(J, aξ)
func drawGammaSum(r *stream.Rand, rate, decay, interest, d float64) float64 {
	shape, a := rate/decay, math.Exp(-decay*d)
	if a < 0x1p-50 {
		// 1 + aξθ is 1 wherever the transform can be told from 0.
		return interest * distuv.Gamma{Alpha: shape, Beta: 1, Src: r}.Rand()
	}
	g := math.Expm1(decay*d) * distuv.Gamma{Alpha: shape, Beta: 1, Src: r}.Rand()
	j := g
	if g < 1e15 { // above, J is G to eight digits
		if j = 0; g > 0 {
			j = distuv.Poisson{Lambda: g, Src: r}.Rand()
		}
	}
	if j == 0 {
		return 0
	}
	return a * interest * distuv.Gamma{Alpha: j, Beta: 1, Src: r}.Rand()
}
