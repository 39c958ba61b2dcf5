package calendar

import (
	"math"

	"ephemera/env"
)

// Never is the age at which an index reaches a level that it does not reach.
const Never = math.MaxInt32

// Params is what an index needs to know of one source. The calendar keeps it
// beside its own mark of the source, so that one read brings both.
type Params [3]float64

// Index is an index that depends on the age alone. Its methods are called from
// several goroutines while a calendar is built.
type Index interface {
	// At returns the index of a source when age epochs of content wait there,
	// age ≥ 1. It does not fall as the age grows, except by rounding. A source
	// is not crawled while its index is NaN or −Inf.
	At(p *Params, age int) float64
	// FirstAge returns the first age at which the index is at or above level,
	// or an earlier one, at least 1; [Never] if there is none. Earlier costs
	// time and nothing else; later would lose the source.
	FirstAge(p *Params, level float64) int
}

// The parameters of Whittle and Mean.
const (
	top   = iota // A = u*/C, the index in the limit of infinite age
	decay        // c
	loss         // 1 − α
)

func curve(s env.Source) Params {
	return Params{top: s.Ceiling() / s.Cost, decay: s.Decay, loss: -math.Expm1(-s.Decay)}
}

// Whittle is the exact Whittle index under the mean dynamics, in interest per
// budget unit.
type Whittle struct{}

// Of returns the parameters of a source.
func (Whittle) Of(s env.Source) Params { return curve(s) }

// At implements Index by the Remark below Theorem 1 of TCNS, with
// A = u*/C and s the age:
//
//	γ = (1/C) [s((1−α)x − u) + x] = A [1 − α^s − s(1−α)α^s]
func (Whittle) At(p *Params, age int) float64 {
	s := float64(age)
	y := p[decay] * s
	if y > 0.5 {
		return p[top] * (1 - math.Exp(-y)*(1+s*p[loss]))
	}
	m := math.Expm1(-y) // α^s − 1, exact where α^s is near 1
	return p[top] * (-m - s*p[loss]*(1+m))
}

// FirstAge implements Index. With κ = (1−α)/c and y = cs, the index reaches
// the level where
//
//	(1 + κy) e^(−y) = r,   r = 1 − level/A,
//
// and z = y + 1/κ solves z − log z = 1 + w − log r with w = 1/κ − 1 + log κ:
// the branch W₋₁ of Lambert's function, which depends on q = √(2(w − log r))
// alone and is tabulated.
func (Whittle) FirstAge(p *Params, level float64) int {
	if level <= 0 {
		return 1
	}
	ratio := level / p[top]
	if !(ratio < nearOne) {
		return firstAgeNearTop(p, ratio)
	}
	w, shift := branch(p)
	z := lambert(math.Sqrt(2 * (w - logLess(ratio)))) // z − 1
	err := lambertErr * (1 + z)
	if ratio > 0.99 {
		err += 2e-15 / (1 - ratio) // how far rounding of the index moves log r
	}
	perDecay := 1 / p[decay]
	return early((z-shift)*perDecay, err*perDecay)
}

// nearOne bounds the part of the range in which rounding leaves 1 − level/A
// enough figures.
const nearOne = 1 - 1e-12

// firstAgeNearTop serves levels that the index reaches, if at all, where it is
// level but for rounding. κ ≤ 1 makes the index reach 1 − 1e−12 of its limit no
// earlier than 1 − e^(−y) does.
func firstAgeNearTop(p *Params, ratio float64) int {
	if !(ratio <= 1+1e-12) {
		return Never
	}
	return early(27/p[decay], 0)
}

// early returns the first integer age above 0 at or after s, or the one before
// it where s, known to within err, does not tell.
func early(s, err float64) int {
	a := s - err
	switch {
	case !(a > 0):
		return 1
	case a >= Never-1:
		return Never
	}
	return int(a) + 1
}

// branch returns w = 1/κ − 1 + log κ, which is about c²/8, and 1/κ − 1, about
// c/2.
func branch(p *Params) (w, shift float64) {
	c := p[decay]
	if c < 0.25 {
		q := c * c
		return q * (1./8 - q*(1./576-q*(1./25920))), c * (0.5 + c*(1./12-q*(1./720-q*(1./30240))))
	}
	shift = c/p[loss] - 1
	return shift + math.Log(p[loss]/c), shift
}

// Mean is the mean interest that waits under the mean dynamics, per budget
// unit: the myopic index.
type Mean struct{}

// Of returns the parameters of a source.
func (Mean) Of(s env.Source) Params { return curve(s) }

// At implements Index: A(1 − α^s).
func (Mean) At(p *Params, age int) float64 {
	return p[top] * -math.Expm1(-p[decay]*float64(age))
}

// FirstAge implements Index: s = −log(1 − level/A)/c.
func (Mean) FirstAge(p *Params, level float64) int {
	if level <= 0 {
		return 1
	}
	ratio := level / p[top]
	if !(ratio < nearOne) {
		return firstAgeNearTop(p, ratio)
	}
	s := -math.Log1p(-ratio) / p[decay]
	// 2e−15/(1−ratio) is how far rounding of the index moves the logarithm.
	return early(s, 1e-12*s+2e-15/((1-ratio)*p[decay]))
}

// Func is any index that does not fall as the age grows, as a function of the
// number of the source and its age. FirstAge is found by doubling and bisection.
type Func func(i, age int) float64

// Of returns the parameters of source i: its number.
func (Func) Of(i int) Params { return Params{float64(i)} }

// At implements Index.
func (f Func) At(p *Params, age int) float64 { return f(int(p[0]), age) }

// FirstAge implements Index. It allows for a fall by rounding of 1e−12 of the
// level.
func (f Func) FirstAge(p *Params, level float64) int {
	level -= 1e-12 * math.Abs(level)
	lo, hi := 0, 1 // the index is below the level at lo, and not at hi
	for !(f.At(p, hi) >= level) {
		if hi >= Never/2 {
			return Never
		}
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; f.At(p, mid) >= level {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

var (
	_ Index = Whittle{}
	_ Index = Mean{}
	_ Index = Func(nil)
)
