package papers

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/experiments/result"
	"ephemera/experiments/stats"
	"ephemera/internal/plain"
)

// Verdict says what came of a printed figure.
type Verdict string

// The verdicts.
const (
	reproduced Verdict = "reproduced"              // by what is printed
	byReading  Verdict = "reproduced by a reading" // by one way to fill what the document leaves open
	// 1 to 5 of 100 single runs of the closest reading lie as far off.
	borderline Verdict = "borderline"
	// The document says all that is needed, and no reading gives the figure.
	differs Verdict = "differs"
	// The document leaves open what is needed, and no reading gives it.
	notReproducible Verdict = "not reproducible"
	// Runs of a reading that may be meant scatter so far that they hold it, and almost
	// anything else.
	uninformative Verdict = "uninformative"
)

// A figure is accepted that the reading's single runs give at least once in 20
// times, and is in doubt down to once in 100 times. There are fifteen random
// figures, so that one of them may be in doubt though it is right.
const (
	accepted = 0.05
	doubted  = 0.01
)

// widest is half the interval of one more run, as a share of the published figure,
// beyond which agreement says nothing.
const widest = 0.25

// Reasons why a reading may not stand for a figure.
const (
	sought  = "a setting in it was sought for this figure"
	scatter = "single runs scatter too far to tell"
	untied  = "the policy does not give the 253.1 of Poisson arrivals"
)

// assess compares a reading with the printed figure. The papers' random figures
// are single runs. One more run than the n that were measured, with mean m and
// standard deviation s, is m + s√(1 + 1/n) t, with t of Student's distribution
// with n − 1 degrees of freedom.
func (f *figure) assess(r reading, s []float64) attempt {
	lo, hi := f.Accepted[0], f.Accepted[1]
	a := attempt{Reading: r.Key, Text: r.Text, Excluded: r.outside}
	a.Measured = stats.Mean(s)
	if n := float64(len(s)); n > 1 {
		a.nu, a.scale = n-1, stat.StdDev(s, nil)*math.Sqrt(1+1/n)
		half := a.scale * distuv.StudentsT{Sigma: 1, Nu: a.nu}.Quantile(1-accepted/2)
		a.RunLo, a.RunHi = result.RatioOf(slices.Min(s)), result.RatioOf(slices.Max(s))
		if half > widest*math.Abs(lo+hi)/2 {
			a.Excluded = scatter
		}
		e := stats.EstimateMean(s)
		a.Lo, a.Hi = result.RatioOf(e.Lo), result.RatioOf(e.Hi)
	}
	if d := math.Max(lo-a.Measured, a.Measured-hi); d > 0 {
		a.off = d / a.scale // infinite where nothing is drawn
	}
	a.P = f.chance([]attempt{a}, a)
	return a
}

// chance returns how often a single run of reading a lies at least as far from
// the closest of all readings as what is printed does from a. The more readings
// there are, the closer some reading is to any run, and the less chance is left:
// this is the p-value of the closest reading, corrected for those tried.
func (f *figure) chance(all []attempt, a attempt) float64 {
	switch {
	case a.off == 0:
		return 1
	case a.scale == 0:
		return 0
	}
	rounding := (f.Accepted[1] - f.Accepted[0]) / 2
	var near [][2]float64 // the runs that are closer than what is printed
	for _, b := range all {
		half := rounding
		if b.scale > 0 {
			half += a.off * b.scale
		}
		near = append(near, [2]float64{b.Measured - half, b.Measured + half})
	}
	slices.SortFunc(near, func(p, q [2]float64) int { return cmp.Compare(p[0], q[0]) })
	run := distuv.StudentsT{Mu: a.Measured, Sigma: a.scale, Nu: a.nu}
	p, end := 1.0, math.Inf(-1)
	for _, n := range near {
		if n[1] > end {
			p -= run.CDF(n[1]) - run.CDF(math.Max(n[0], end))
			end = n[1]
		}
	}
	return math.Max(0, p)
}

// judge returns the verdict on the attempts, the one as printed first, the
// number of the one that stands for the row, its p-value corrected for the
// readings tried, and the reason.
func (f *figure) judge(attempts []attempt) (v Verdict, chosen int, p float64, reason string) {
	first := attempts[0]
	if first.Excluded == "" && first.P >= accepted {
		return reproduced, 0, first.P, "as printed: " + first.Text + f.deviation(first)
	}
	var free []attempt
	chosen = -1
	for i, a := range attempts {
		if a.Excluded != "" {
			continue
		}
		free = append(free, a)
		if chosen < 0 || a.off < attempts[chosen].off ||
			a.off == attempts[chosen].off && f.miss(a) < f.miss(attempts[chosen]) {
			chosen = i
		}
	}
	if chosen >= 0 {
		a := attempts[chosen]
		p = f.chance(free, a)
		reason = fmt.Sprintf("closest of %s: %s%s; as printed (%s) it is %s",
			plain.Count(len(free), "reading"), a.Text, f.deviation(a), first.Text, figureIn(f.Unit, first.Measured))
		switch {
		case p >= accepted && chosen > 0:
			return byReading, chosen, p, reason
		case p >= doubted:
			return borderline, chosen, p, fmt.Sprintf("%s; %.2g %% of its single runs lie as far off", reason, 100*p)
		}
	}
	if f.Open == "" {
		return differs, 0, p, "the document leaves nothing open; measured is: " + first.Text
	}
	reason = fmt.Sprintf("the document does not say %s; measured is: %s", f.Open, first.Text)
	var within []attempt // of the readings whose runs scatter, those that hold the figure
	for _, a := range attempts {
		if a.Excluded == scatter && a.RunLo.Value() <= f.Accepted[1] && a.RunHi.Value() >= f.Accepted[0] {
			within = append(within, a)
		}
	}
	if len(within) > 0 {
		return uninformative, 0, p, fmt.Sprintf("%s; single runs of %d of %d readings hold the figure, and "+
			"almost anything else: %s, from %s",
			reason, len(within), len(attempts), within[0].Text, between(f.Unit, within[0].RunLo, within[0].RunHi))
	}
	if i := slices.IndexFunc(attempts, func(a attempt) bool { return a.Excluded != "" && a.P >= accepted }); i >= 0 {
		return notReproducible, 0, p, fmt.Sprintf("%s; of %d readings the first that gives it is: %s, and %s",
			reason, len(attempts), attempts[i].Text, attempts[i].Excluded)
	}
	return notReproducible, 0, p, fmt.Sprintf("%s; none of %d readings gives it", reason, len(attempts))
}

// miss is how far the mean is from the middle of what is printed.
func (f *figure) miss(a attempt) float64 {
	return math.Abs(a.Measured - (f.Accepted[0]+f.Accepted[1])/2)
}

// deviation says how far a printed number lies from the mean of a reading.
func (f *figure) deviation(a attempt) string {
	switch {
	case a.scale == 0 || !f.numeric:
		return ""
	case a.off == 0:
		return ", whose mean is what is printed, to its last digit"
	}
	return fmt.Sprintf(", %.1f standard deviations of a single run from its mean", a.off)
}
