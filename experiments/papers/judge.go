package papers

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// Verdict says what came of a printed figure.
type Verdict string

// The verdicts.
const (
	// Reproduced: a reading gives the figure in which nothing was tuned to it.
	Reproduced Verdict = "reproduced"
	// Differs: the document says all that is needed, and another figure comes
	// out.
	Differs Verdict = "differs"
	// NotReproducible: the document leaves open what is needed, and no reading
	// gives the figure, or only such as may not stand for it: with a setting
	// that was tuned to it, or with runs that scatter too far to tell.
	NotReproducible Verdict = "not reproducible"
)

// Relation is how a measured figure has to stand to the printed one.
type Relation string

// The relations.
const (
	Equal Relation = "="
	Below Relation = "<"
	Above Relation = ">"
)

// Sample is what a reading gave: one value for each seed, or one in all where
// nothing is drawn.
type Sample struct {
	Values []float64
	Random bool
}

// Attempt is the outcome of one reading.
type Attempt struct {
	Reading  string   `json:"reading"`
	Measured float64  `json:"measured"`
	Lo       *float64 `json:"lo"`     // 95 % interval of the mean over seeds; nil where nothing is drawn or for too few seeds
	Hi       *float64 `json:"hi"`     //
	RunLo    *float64 `json:"run_lo"` // where a single run falls 19 times of 20; nil where nothing is drawn
	RunHi    *float64 `json:"run_hi"` //
	// Deviation is how far the printed figure is from the mean, in standard
	// deviations of a single run; nil where nothing is drawn or only words are
	// printed.
	Deviation *float64 `json:"deviation"`
	Agrees    bool     `json:"agrees"` // with the printed figure
	Barred    string   `json:"barred"` // why the reading may not stand for the figure though it agrees; empty if it may
}

// level is the share of single runs that fall into [RunLo, RunHi]. There are
// about fifteen random figures, so that with other seeds one of them may be
// turned down though it is right.
const level = 0.95

// widest is half the range of single runs, as a share of the published figure,
// beyond which a range says nothing.
const widest = 0.25

// Reasons why a reading that agrees may not stand for a figure.
const (
	sought  = "a setting in it was sought for this figure"
	scatter = "single runs scatter too far to tell"
)

// assess sets a reading beside the printed figure. The papers' random figures
// are single runs, so what has to agree is where a single run falls: with s the
// standard deviation over n seeds, and t Student's quantile for n − 1 degrees
// of freedom, it is mean ± t s √(1 + 1/n).
func (f *figure) assess(r reading, s Sample, boot *stats.Bootstrap) Attempt {
	a := Attempt{Reading: r.text, Measured: stats.Mean(s.Values), Barred: r.barred}
	lo, hi := a.Measured, a.Measured
	if n := float64(len(s.Values)); s.Random && n > 1 {
		var sum float64
		for _, v := range s.Values {
			sum += (v - a.Measured) * (v - a.Measured)
		}
		t := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(1 - (1-level)/2)
		s1 := math.Sqrt(sum / (n - 1) * (1 + 1/n))
		half := t * s1
		lo, hi = math.Max(0, lo-half), hi+half
		if f.relation == Equal {
			a.Deviation = result.Ptr((f.published - a.Measured) / s1)
		}
		if half > widest*math.Abs(f.published) {
			a.Barred = fmt.Sprintf("%s (%s to %s over %d seeds)", scatter, number(slices.Min(s.Values)), number(slices.Max(s.Values)), len(s.Values))
		}
		a.RunLo, a.RunHi = result.Ptr(lo), result.Ptr(hi)
		if boot != nil {
			e := boot.Mean(s.Values)
			a.Lo, a.Hi = result.Ptr(e.Lo), result.Ptr(e.Hi)
		}
	}
	switch f.relation {
	case Below:
		a.Agrees = hi < f.published
	case Above:
		a.Agrees = lo > f.published
	default:
		tol := f.tolerance * (1 + 1e-9)
		a.Agrees = lo <= f.published+tol && hi >= f.published-tol
	}
	return a
}

// judge returns the verdict on the attempts, the number of the one that stands
// for the row, and the reason. It looks at nothing but the attempts and at what
// the document leaves open.
func judge(attempts []Attempt, open string) (v Verdict, chosen int, reason string) {
	first := attempts[0]
	for i, a := range attempts {
		if !a.Agrees || a.Barred != "" {
			continue
		}
		reason = "as printed: " + a.Reading
		if i > 0 {
			reason = fmt.Sprintf("by the reading: %s; the first reading (%s) gives %s", a.Reading, first.Reading, number(first.Measured))
		}
		if d := a.Deviation; d != nil {
			reason += fmt.Sprintf("; what is printed is %s the mean", deviations(*d))
			if c := closest(attempts); math.Abs(*d) > 1+math.Abs(*c.Deviation) {
				reason += fmt.Sprintf("; closest is %s, with %s (%s)", c.Reading, number(c.Measured), deviations(*c.Deviation))
			}
		}
		return Reproduced, i, reason
	}
	if open == "" {
		return Differs, 0, "the document leaves nothing open; measured is: " + first.Reading
	}
	reason = fmt.Sprintf("the document does not say %s; measured is: %s", open, first.Reading)
	if first.Agrees {
		return NotReproducible, 0, reason + "; " + first.Barred
	}
	for _, a := range attempts {
		if a.Agrees {
			return NotReproducible, 0, fmt.Sprintf("%s; of %d readings the first that gives it is: %s, and %s", reason, len(attempts), a.Reading, a.Barred)
		}
	}
	return NotReproducible, 0, fmt.Sprintf("%s; none of %d readings gives it", reason, len(attempts))
}

// closest returns the attempt that may stand for the figure and is nearest to it
// in standard deviations. There has to be one.
func closest(attempts []Attempt) (best Attempt) {
	for _, a := range attempts {
		if a.Agrees && a.Barred == "" && a.Deviation != nil && (best.Deviation == nil || math.Abs(*a.Deviation) < math.Abs(*best.Deviation)) {
			best = a
		}
	}
	return best
}

func deviations(d float64) string {
	side := "above"
	if d < 0 {
		side = "below"
	}
	return fmt.Sprintf("%.1f standard deviations of a single run %s", math.Abs(d), side)
}

// half returns half a unit of the last digit of a printed number.
func half(printed string) float64 {
	_, frac, _ := strings.Cut(printed, ".")
	return 0.5 * math.Pow10(-len(frac))
}

func number(v float64) string { return result.Figure(v) }

func mustNumber(printed string) float64 {
	v, err := strconv.ParseFloat(printed, 64)
	if err != nil {
		panic("papers: " + err.Error())
	}
	return v
}
