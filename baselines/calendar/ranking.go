package calendar

import (
	"math"

	"ephemera/baselines/index"
	"ephemera/env"
)

// Never is the age at which an index reaches a level that it does not reach.
const Never = math.MaxInt32

// Params is what a ranking needs to know of one source. The calendar keeps it
// beside its own mark of the source, so that one read of memory brings both.
type Params [3]float64

// Ranking is an index that depends on the age alone.
type Ranking interface {
	// At returns the index of a source when age epochs of content wait there,
	// age ≥ 1. It does not fall as the age grows, except by rounding. A source
	// is not crawled while its index is NaN or −Inf.
	At(p *Params, age int) float64
	// FirstAge returns the first age at which At is at or above level, or an
	// earlier one, at least 1; [Never] if there is none. Earlier costs time and
	// nothing else; later would lose the source.
	FirstAge(p *Params, level float64) int
}

// Whittle is the exact Whittle index on the mean state, which follows from the
// age, in interest per budget unit.
type Whittle struct{}

// The parameters of Whittle.
const (
	top   = iota // u*/C, the index in the limit
	decay        // c
	loss         // 1 − α
)

// Of returns the parameters of a source.
func (Whittle) Of(s env.Source) Params {
	return Params{top: s.Ceiling() / s.Cost, decay: s.Decay, loss: -math.Expm1(-s.Decay)}
}

// At implements Ranking, by [index.AtAge].
func (Whittle) At(p *Params, age int) float64 {
	return index.AtAge(p[top], p[decay], p[loss], float64(age))
}

// FirstAge implements Ranking, by [index.AgeAt].
func (Whittle) FirstAge(p *Params, level float64) int {
	if level <= 0 {
		return 1
	}
	rest := 1 - level/p[top]
	if !(rest > 1e-12) {
		if !(rest >= -1e-12) {
			return Never
		}
		// The index is level but for rounding; it comes within 1e−12 of its
		// limit no earlier than 1 − e^(−cs) does.
		return early(27 / p[decay])
	}
	// Rounding of the index moves log(1 − level/top) by 2e−15/(1 − level/top).
	s := index.AgeAt(p[top], p[decay], p[loss], level)
	return early(s - 1e-8*s - (1e-8+4e-15/rest)/p[decay])
}

// Func is a ranking by the number of the source, which is its only parameter,
// and the age, without a closed form of the inverse.
type Func struct {
	Index func(i, age int) float64
	// Fall is by how much the index of a source may fall by rounding, where that
	// is more than 1e−12 of the index; nil where it is not.
	Fall func(i int) float64
}

// Of returns the parameters of source i.
func (Func) Of(i int) Params { return Params{float64(i)} }

// At implements Ranking.
func (f Func) At(p *Params, age int) float64 { return f.Index(int(p[0]), age) }

// FirstAge implements Ranking.
func (f Func) FirstAge(p *Params, level float64) int {
	i := int(p[0])
	level -= 1e-12 * math.Abs(level)
	if f.Fall != nil {
		level -= f.Fall(i)
	}
	return index.FirstAge(0, Never, func(age int) bool { return f.Index(i, age) >= level })
}

// early returns the least whole age, from 1 on, that is at or above s.
func early(s float64) int {
	switch {
	case !(s > 1):
		return 1
	case s > Never-1:
		return Never
	}
	return int(math.Ceil(s))
}
