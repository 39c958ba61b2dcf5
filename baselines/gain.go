package baselines

import (
	"fmt"
	"math"
	"math/cmplx"
	"sort"

	"gonum.org/v1/gonum/floats"

	"ephemera/env"
	"ephemera/env/stream"
)

// gainLaw is φ, the law of the interest U that a source gains in an epoch
// (TCNS, section VIII), on a grid: it is held as its stop-loss function
//
//	π(t) = E(U − t)⁺
//
// at t = 0, d, 2d, …, from which expectations of piecewise linear functions
// follow by differences. Between the points π is taken to be linear, which puts
// U on the grid and keeps its mean.
type gainLaw struct {
	step float64
	loss []float64 // π(k·step), falling to 0
}

// newGainLaw computes φ for items that arrive at Poisson times with initial
// interests of the given law. An item of
// interest ξ has D = ξe^(−cV) left at the end of its epoch, V uniform, so that
//
//	E e^(iθU) = exp(λ(E e^(iθD) − 1))
//
// The law of D is put on the grid, its mean kept, and the transform inverted
// numerically. With one exponential draw for all items of an epoch, U is that
// draw times the sum for constant marks. A finite window scales U by 1 − α^M, as it scales the
// gain u: with a window the state is no longer a Markov chain. Less than an item
// in 10⁸ epochs counts as none.
func newGainLaw(s env.Source, m env.Marks) gainLaw {
	if s.Gain() == 0 || s.Rate < 1e-8 {
		return gainLaw{step: 1, loss: []float64{0, 0}}
	}
	one := s // in units of the mean mark, and without the window
	one.Interest, one.Window = 1, math.Inf(1)
	item := m
	if m == env.MarksPerEpoch {
		item = env.MarksConstant
	}
	law := itemLaw(one, item)
	if m == env.MarksPerEpoch {
		law = law.timesExponential()
	}
	unit := s.Gain() / one.Gain()
	law.step *= unit
	floats.Scale(unit, law.loss)
	return law
}

// itemLaw is the law of U for marks that are drawn for each item. It panics where no
// grid tells single items apart, from some 10⁵ items per epoch on.
func itemLaw(s env.Source, m env.Marks) gainLaw {
	var k [4]float64
	for j := 1; j <= 3; j++ {
		k[j] = s.Cumulant(j, 1, m)
	}
	reach := k[1] + 12*math.Sqrt(k[2]) + 10*k[3]/k[2]
	// The grid adds at most step²/4 to the variance of each item's D.
	points := 1 << 16
	for ; math.Pow(reach/float64(points), 2)/4 > 1e-3*k[2]/s.Rate; points *= 4 {
		if points >= 1<<20 {
			panic(fmt.Sprintf("baselines: a grid of %d points does not resolve single items, "+
				"of which %v come in an epoch",
				points, s.Rate))
		}
	}
	return compound(s, m, reach/float64(points), points)
}

// compound inverts the transform of the compound Poisson law.
func compound(s env.Source, m env.Marks, step float64, points int) gainLaw {
	loss := itemLoss(s, m)
	mass := make([]complex128, points)
	// P(D = k·step) = [π(k−1) − 2π(k) + π(k+1)]/step on the grid.
	before, here := loss(0)+step, loss(0)
	for k := range mass {
		after := 0.0
		if here > 0 {
			after = loss(float64(k+1) * step)
		}
		mass[k] = complex(math.Max(0, (before-2*here+after)/step), 0)
		before, here = here, after
	}
	transform(mass)
	for k, c := range mass {
		// exp(λ(φ_D − 1)), whose conjugate transforms back.
		mass[k] = cmplx.Conj(cmplx.Exp(complex(s.Rate, 0) * (c - 1)))
	}
	transform(mass)
	// π(k) = π(k+1) + step·P(U > k·step), from the far end.
	law := gainLaw{step: step, loss: make([]float64, points)}
	var tail, sum float64
	for k := points - 1; k >= 0; k-- {
		sum += step * tail
		law.loss[k] = sum
		tail += math.Max(0, real(mass[k])/float64(points))
	}
	return law
}

// transform is the Fourier transform Σ aₖ e^(−2πijk/n) in place, for a length n
// that is a power of two.
func transform(a []complex128) {
	n := len(a)
	for i, j := 1, 0; i < n; i++ { // j is i with its bits in the other order
		bit := n >> 1
		for ; j&bit != 0; bit >>= 1 {
			j ^= bit
		}
		if j ^= bit; i < j {
			a[i], a[j] = a[j], a[i]
		}
	}
	for size := 2; size <= n; size *= 2 {
		for k := range size / 2 {
			w := cmplx.Rect(1, -2*math.Pi*float64(k)/float64(size))
			for i := k; i < n; i += size {
				u, v := a[i], a[i+size/2]*w
				a[i], a[i+size/2] = u+v, u-v
			}
		}
	}
}

// itemLoss returns t ↦ E(D − t)⁺ for D = ξe^(−cV).
func itemLoss(s env.Source, m env.Marks) func(t float64) float64 {
	c, x := s.Decay, s.Interest
	total := x * -math.Expm1(-c) / c
	if m == env.MarksConstant {
		low := x * math.Exp(-c)
		return func(t float64) float64 {
			switch {
			case t <= low:
				return total - t
			case t >= x:
				return 0
			}
			// D has the density 1/(cD) between ξe^(−c) and ξ.
			return ((x - t) - t*math.Log(x/t)) / c
		}
	}
	// The mean over V by Simpson's rule. From cV = 45 on nothing is left of an item.
	until := min(1, 45/c)
	cells := 64 * int(math.Ceil(max(1, c*until/4)))
	mean, weight := make([]float64, cells+1), make([]float64, cells+1)
	for k := range mean {
		mean[k] = x * math.Exp(-c*until*float64(k)/float64(cells))
		weight[k] = until * float64(2+2*(k%2)) / float64(3*cells)
	}
	weight[0], weight[cells] = until/float64(3*cells), until/float64(3*cells)
	return func(t float64) float64 {
		if t == 0 {
			return total
		}
		var sum float64
		for k, m := range mean {
			sum += weight[k] * m * math.Exp(-t/m)
		}
		return sum
	}
}

// timesExponential returns the law of U = E·S with S of law l and E exponential
// of mean 1, independent of S: E(U − t)⁺ = E[S e^(−t/S)].
func (l gainLaw) timesExponential() gainLaw {
	// The integrand is smooth in S, so that some hundred cells do.
	const cells, points = 1600, 1 << 13
	mass, at := make([]float64, 0, cells), make([]float64, 0, cells)
	width := (len(l.loss) + cells - 1) / cells
	for k := 0; k < len(l.loss)-1; k += width {
		end := min(k+width, len(l.loss)-1)
		// Mass and first moment of S in (k·step, end·step].
		p := l.above(k) - l.above(end)
		if p < 1e-14 {
			continue
		}
		moment := l.loss[k] + float64(k)*l.step*l.above(k) - l.loss[end] - float64(end)*l.step*l.above(end)
		mass, at = append(mass, p), append(at, moment/p)
	}
	loss := func(t float64) (sum float64) {
		for j, s := range at {
			sum += mass[j] * s * math.Exp(-t/s)
		}
		return sum
	}
	reach := 20 * l.Mean()
	for loss(reach) > 1e-11*l.Mean() {
		reach *= 1.2
	}
	out := gainLaw{step: reach / points, loss: make([]float64, points)}
	whole := l.Mean() / loss(0) // the cells that were left out
	// e^(−t/S) falls by one factor from point to point. It is computed anew at each 64th, so that
	// rounding does not add up.
	for j, s := range at {
		fall, left := math.Exp(-out.step/s), 0.
		for k := range out.loss {
			if k%64 == 0 {
				left = whole * mass[j] * s * math.Exp(-float64(k)*out.step/s)
			}
			out.loss[k] += left
			left *= fall
		}
	}
	return out
}

// above returns P(U > k·step).
func (l gainLaw) above(k int) float64 {
	if k+1 >= len(l.loss) {
		return 0
	}
	return (l.loss[k] - l.loss[k+1]) / l.step
}

// Mean returns E U, interest.
func (l gainLaw) Mean() float64 { return l.loss[0] }

// Deviation returns the standard deviation of U, interest:
//
//	E U² = d(2 Σ π(kd) − E U)
func (l gainLaw) Deviation() float64 {
	mean := l.Mean()
	var sum float64
	for _, p := range l.loss {
		sum += p
	}
	return math.Sqrt(math.Max(0, l.step*(2*sum-mean)-mean*mean))
}

// spread returns the standard deviation of the state of a source with that gain
// which is never crawled.
func (l gainLaw) spread(s env.Source) float64 {
	return l.Deviation() / math.Sqrt(-math.Expm1(-2*s.Decay))
}

// Loss returns π(t) = E(U − t)⁺.
func (l gainLaw) Loss(t float64) float64 {
	if t <= 0 {
		return l.loss[0] - t
	}
	k, part := math.Modf(t / l.step)
	if int(k)+1 >= len(l.loss) {
		return 0
	}
	return l.loss[int(k)] + part*(l.loss[int(k)+1]-l.loss[int(k)])
}

// Draw draws U.
func (l gainLaw) Draw(r *stream.Rand) float64 {
	p := r.Float64()
	// The least k with P(U > k·step) ≤ p.
	return l.step * float64(sort.Search(len(l.loss)-1, func(k int) bool { return l.above(k) <= p }))
}
