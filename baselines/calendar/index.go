package calendar

import (
	"fmt"
	"math"

	"ephemera/env"
)

// Never is the age at which an index reaches a level that it does not reach.
const Never = math.MaxInt32

// Indexer is an index that depends on the age alone. Its methods are called
// from several goroutines while a calendar is built.
type Indexer interface {
	// Index returns the index of source i when age epochs of content wait
	// there, age ≥ 1. It does not fall as the age grows, except by rounding. A
	// source is not crawled while its index is NaN or −Inf.
	Index(i, age int) float64
	// FirstAge returns the first age at which the index of source i is at or
	// above level, or an earlier one, at least 1; [Never] if there is none.
	// Earlier costs time and nothing else; later would lose the source.
	FirstAge(i int, level float64) int
}

// Toucher is an Indexer that can read ahead. Touch reads the parameters of the
// sources, so that they are at hand when the index is asked for, and returns
// some number that depends on all of them.
type Toucher interface{ Touch(ids []int32) float64 }

// curve is what an index needs of one source: 24 bytes.
type curve struct {
	top   float64 // A = u*/C, the index in the limit of infinite age
	decay float64 // c
	loss  float64 // 1 − α
}

func newCurve(s env.Source) curve {
	return curve{top: s.Ceiling() / s.Cost, decay: s.Decay, loss: -math.Expm1(-s.Decay)}
}

// Whittle is the exact Whittle index under the mean dynamics, in interest per
// budget unit.
type Whittle struct{ curves []curve }

// NewWhittle returns the Whittle index of the sources.
func NewWhittle(src []env.Source) *Whittle {
	t := &Whittle{curves: make([]curve, len(src))}
	for i, s := range src {
		t.curves[i] = newCurve(s)
	}
	return t
}

// Set gives source i the parameters of s; i may be the number of sources so
// far, which adds one. A calendar must be told of it by Change or Add.
func (t *Whittle) Set(i int, s env.Source) { t.curves = set(t.curves, i, newCurve(s)) }

func set(c []curve, i int, v curve) []curve {
	if i < 0 || i > len(c) {
		panic(fmt.Sprintf("calendar: source %d; allowed are 0 to %d", i, len(c)))
	}
	if i == len(c) {
		return append(c, v)
	}
	c[i] = v
	return c
}

// Index implements Indexer by the Remark below Theorem 1 of TCNS, with
// A = u*/C and s the age:
//
//	γ = (1/C) [s((1−α)x − u) + x] = A [1 − α^s − s(1−α)α^s]
func (t *Whittle) Index(i, age int) float64 {
	p := &t.curves[i]
	s := float64(age)
	y := p.decay * s
	if y > 0.5 {
		return p.top * (1 - math.Exp(-y)*(1+s*p.loss))
	}
	m := math.Expm1(-y) // α^s − 1, exact where α^s is near 1
	return p.top * (-m - s*p.loss*(1+m))
}

// Touch implements Toucher.
func (t *Whittle) Touch(ids []int32) float64 { return touch(t.curves, ids) }

func touch(c []curve, ids []int32) (sum float64) {
	for _, id := range ids {
		sum += c[id].loss
	}
	return sum
}

// FirstAge implements Indexer. With κ = (1−α)/c and y = cs, the index reaches
// the level where
//
//	(1 + κy) e^(−y) = r,   r = 1 − level/A,
//
// and z = y + 1/κ solves z − log z = 1 + w − log r with w = 1/κ − 1 + log κ:
// the branch W₋₁ of Lambert's function, which depends on q = √(2(w − log r))
// alone and is tabulated.
func (t *Whittle) FirstAge(i int, level float64) int {
	p := &t.curves[i]
	if level <= 0 {
		return 1
	}
	ratio := level / p.top
	if !(ratio < nearOne) {
		return firstAgeNearTop(p, ratio)
	}
	w, shift := branch(p)
	z := lambert(math.Sqrt(2 * (w - logLess(ratio)))) // z − 1
	err := lambertErr * (1 + z)
	if ratio > 0.99 {
		err += 2e-15 / (1 - ratio) // how far rounding of the index moves log r
	}
	perDecay := 1 / p.decay
	return early((z-shift)*perDecay, err*perDecay)
}

// nearOne bounds the part of the range in which rounding leaves 1 − level/A
// enough figures.
const nearOne = 1 - 1e-12

// firstAgeNearTop serves levels that the index reaches, if at all, where it is
// level but for rounding. κ ≤ 1 makes the index reach 1 − 1e−12 of its limit no
// earlier than 1 − e^(−y) does.
func firstAgeNearTop(p *curve, ratio float64) int {
	if !(ratio <= 1+1e-12) {
		return Never
	}
	return early(27/p.decay, 0)
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
func branch(p *curve) (w, shift float64) {
	c := p.decay
	if c < 0.25 {
		q := c * c
		return q * (1./8 - q*(1./576-q*(1./25920))), c * (0.5 + c*(1./12-q*(1./720-q*(1./30240))))
	}
	shift = c/p.loss - 1
	return shift + math.Log(p.loss/c), shift
}

// Mean is the mean interest that waits under the mean dynamics, per budget
// unit: the myopic index.
type Mean struct{ curves []curve }

// NewMean returns the myopic index of the sources.
func NewMean(src []env.Source) *Mean { return &Mean{curves: NewWhittle(src).curves} }

// Set is as for [Whittle.Set].
func (m *Mean) Set(i int, s env.Source) { m.curves = set(m.curves, i, newCurve(s)) }

// Index implements Indexer: A(1 − α^s).
func (m *Mean) Index(i, age int) float64 {
	p := &m.curves[i]
	return p.top * -math.Expm1(-p.decay*float64(age))
}

// Touch implements Toucher.
func (m *Mean) Touch(ids []int32) float64 { return touch(m.curves, ids) }

// FirstAge implements Indexer: s = −log(1 − level/A)/c.
func (m *Mean) FirstAge(i int, level float64) int {
	p := &m.curves[i]
	if level <= 0 {
		return 1
	}
	ratio := level / p.top
	if !(ratio < nearOne) {
		return firstAgeNearTop(p, ratio)
	}
	s := -math.Log1p(-ratio) / p.decay
	// 2e−15/(1−ratio) is how far rounding of the index moves the logarithm.
	return early(s, 1e-12*s+2e-15/((1-ratio)*p.decay))
}

// Func is any index that does not fall as the age grows. FirstAge is found by
// doubling and bisection.
type Func func(i, age int) float64

// Index implements Indexer.
func (f Func) Index(i, age int) float64 { return f(i, age) }

// FirstAge implements Indexer. It allows for a fall by rounding of 1e−12 of
// the level.
func (f Func) FirstAge(i int, level float64) int {
	level -= 1e-12 * math.Abs(level)
	lo, hi := 0, 1 // the index is below the level at lo, and not at hi
	for !(f(i, hi) >= level) {
		if hi >= Never/2 {
			return Never
		}
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; f(i, mid) >= level {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

var (
	_ Indexer = (*Whittle)(nil)
	_ Indexer = (*Mean)(nil)
	_ Indexer = Func(nil)
	_ Toucher = (*Whittle)(nil)
	_ Toucher = (*Mean)(nil)
)
