package env

import (
	"fmt"
	"math"
	"strings"
)

// Law names how the interest of an item depends on its age a.
type Law string

// The laws of interest, for items whose initial interest is 1.
const (
	LawExponential Law = "exponential" // f(a) = e^(−ca), the law of the papers
	LawPower       Law = "power"       // f(a) = (1 + ca)^(−k)
	LawHump        Law = "hump"        // f(a) = ca·e^(1−ca): rises to 1 at age 1/c, then falls

	// The laws of the objectives that are not of interest, see [Objective].
	LawDelay     Law = "delay"     // f(a) = −(ca)^k: an item costs what it has waited
	LawDeadline  Law = "deadline"  // f(a) = 1 until age 1/c, then 0
	LawFreshness Law = "freshness" // f(a) = e^(−ca) of a page that changes at the rate c: the chance that it has not
)

// Laws returns the names of all laws of interest; the first is the default.
func Laws() (names []Law) {
	for i := range laws {
		names = append(names, laws[i].name)
	}
	return names
}

// law is a law of interest as a function of y = ca, the age of an item in units of
// 1/c. All that the toolkit knows of a law stands here: a new one is a row of this
// table, a name above, and a row in docs/model.md. TestTableOfLaws and TestHorizon hold a
// row to what its fields say of each other.
type law struct {
	name     Law
	value    func(y, k float64) float64 // f
	integral func(y, k float64) float64 // ∫₀^y f(v) dv, at y = +Inf too; H without units
	horizon  func(k float64) float64    // y from which on f is less than negligible
	bend     float64                    // y up to which f rises, so that H is convex; from there on f falls
	ends     float64                    // y at which f falls to 0 for good; 0 for never
	decays   bool                       // f is e^(−y), for which there are closed forms
	initial  bool                       // crawled items show their initial interest, not f(a) of it
	shape    shape                      // what k may be
}

// shape is the range of a law's second parameter k.
type shape struct {
	usual float64 // k of a source that names none; 0 for a law without k
	above float64 // k is greater
}

// negligible is the share of its initial interest below which what is left of
// an item is no longer counted.
const negligible = 0x1p-60

// laws is the table. The first row is the default.
var laws = [...]law{
	{
		name:  LawExponential,
		value: func(y, _ float64) float64 { return math.Exp(-y) },
		integral: func(y, _ float64) float64 {
			return -math.Expm1(-y)
		},
		horizon: func(float64) float64 { return -math.Log(negligible) },
		decays:  true,
	},
	{
		name:  LawPower,
		value: func(y, k float64) float64 { return math.Exp(-k * math.Log1p(y)) },
		integral: func(y, k float64) float64 {
			// ∫₀^y (1 + v)^(−k) dv = (1 − (1 + y)^(1−k))/(k − 1)
			return -math.Expm1((1-k)*math.Log1p(y)) / (k - 1)
		},
		horizon: func(k float64) float64 { return math.Expm1(-math.Log(negligible) / k) },
		shape:   shape{usual: 1.5, above: 1},
	},
	{
		name:  LawHump,
		value: func(y, _ float64) float64 { return y * math.Exp(1-y) },
		integral: func(y, _ float64) float64 {
			// ∫₀^y v e^(1−v) dv = e(1 − (1 + y)e^(−y))
			switch {
			case y < 1e-2: // by its series, where the difference would lose digits
				return math.E * y * y * (1./2 - y*(1./3-y*(1./8-y*(1./30-y/144))))
			case y > 50:
				return math.E
			}
			return math.E * (-math.Expm1(-y) - y*math.Exp(-y))
		},
		horizon: func(float64) float64 { return 6 - math.Log(negligible) }, // where y is below e⁵
		bend:    1,
	},
	{
		name:  LawDelay,
		value: func(y, k float64) float64 { return -math.Pow(y, k) },
		integral: func(y, k float64) float64 {
			if k == 1 {
				return -y * y / 2
			}
			return -math.Pow(y, k+1) / (k + 1)
		},
		horizon: func(float64) float64 { return math.Inf(1) },
		shape:   shape{usual: 1, above: 0},
		initial: true,
	},
	{
		name: LawDeadline,
		value: func(y, _ float64) float64 {
			if y < 1 {
				return 1
			}
			return 0
		},
		integral: func(y, _ float64) float64 { return math.Min(y, 1) },
		horizon:  func(float64) float64 { return 1 },
		ends:     1,
		initial:  true,
	},
	{
		name:     LawFreshness,
		value:    func(y, _ float64) float64 { return math.Exp(-y) },
		integral: func(y, _ float64) float64 { return -math.Expm1(-y) },
		horizon:  func(float64) float64 { return -math.Log(negligible) },
		decays:   true,
	},
}

// shaped returns the names of the laws that have a shape.
func shaped() (names []Law) {
	for i := range laws {
		if laws[i].shape.usual != 0 {
			names = append(names, laws[i].name)
		}
	}
	return names
}

// lookUpLaw returns the row of a name, the first for "", and nil where there is none.
func lookUpLaw(name Law) *law {
	if name == "" {
		return &laws[0]
	}
	for i := range laws {
		if laws[i].name == name {
			return &laws[i]
		}
	}
	return nil
}

// law returns the law of interest. It panics if there is none of that name, which
// [Source.Validate] finds.
func (s *Source) law() *law {
	l := lookUpLaw(s.Law)
	if l == nil {
		panic("env: " + s.unknownLaw().Error())
	}
	return l
}

func (s *Source) unknownLaw() error {
	return fmt.Errorf("law is %.60q; allowed are %s", s.Law, enumerate(Laws(), "and"))
}

// LawsAllowed lists the names that [Instance.WithLaw] takes, with "and" or "or" before
// the last.
func LawsAllowed(last string) string {
	return enumerate(append(Laws(), "window", "batches", "mixture"), last)
}

// enumerate returns names with commas, and a word before the last.
func enumerate(names []Law, last string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(" " + last + " ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}

// k returns the shape of a source of the law.
func (l *law) k(s *Source) float64 {
	if s.Shape == 0 {
		return l.shape.usual
	}
	return s.Shape
}

// Exponential reports whether f is e^(−ca), as under the law of the papers.
func (s Source) Exponential() bool { return s.law().decays }

// Unbounded reports whether an item costs ever more as it waits, without end, so that
// Harvest falls to −∞ and no source is ever left alone for good.
func (s Source) Unbounded() bool {
	l := s.law()
	return s.scale() > 0 && math.IsInf(l.integral(math.Inf(1), l.k(&s)), -1)
}

// Lifetime returns the age from which on an item is worth nothing because it was dropped
// or its law ends; +Inf for never.
func (s Source) Lifetime() float64 {
	if l := s.law(); l.ends > 0 {
		return math.Min(s.Window, l.ends/s.Decay)
	}
	return s.Window
}

// Bend returns the age up to which Harvest is convex and from which on it is
// concave; 0 for the laws whose f never rises.
func (s Source) Bend() float64 { return s.law().bend / s.Decay }

// interestAt returns f(age), the interest of an item of that age whose initial
// interest is 1, without regard to the window.
func (s *Source) interestAt(age float64) float64 {
	l := s.law()
	return l.value(s.Decay*age, l.k(s))
}

// integral returns c·∫₀^age f(a) da, which has no unit.
func (s *Source) integral(age float64) float64 {
	l := s.law()
	return l.integral(s.Decay*age, l.k(s))
}

// horizon returns the age from which on what is left of an item is negligible.
func (s *Source) horizon() float64 {
	l := s.law()
	return l.horizon(l.k(s)) / s.Decay
}

// validShape reports what is wrong with the law and the shape.
func (s *Source) validShape() error {
	l := lookUpLaw(s.Law)
	switch {
	case l == nil:
		return s.unknownLaw()
	case s.Unbounded() && !math.IsInf(s.Window, 1):
		return fmt.Errorf("window is %v; under the law %s no item is dropped, so allowed is inf", s.Window, l.name)
	case s.Shape != 0 && l.shape.usual == 0:
		return fmt.Errorf("shape is %v; it belongs to law %s, and the law is %s",
			s.Shape, enumerate(shaped(), "or"), l.name)
	case l.shape.usual != 0 && (!(l.k(s) > l.shape.above) || math.IsInf(s.Shape, 0)):
		return fmt.Errorf("shape is %v; allowed is a finite number above %v", s.Shape, l.shape.above)
	}
	return nil
}
