package experiments

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// Account adds up what a run earns, epoch by epoch. All figures of runs are of one: of
// those in the loop here, and of those that somebody else plays.
type Account struct {
	world env.World
	terms env.Terms
	owed  float64 // what waiting items had cost when the sums were settled last

	// What the run brought so far.
	sums  result.Outcome // not yet means
	curve []CurvePoint
	days  []float64 // interest per epoch of each

	ends  []int          // epochs at which points of the curve end
	day   float64        // epochs; 0 where they have no dates
	last  result.Outcome // the sums at the last point of the curve
	today float64        // interest of the day that is not over, per epoch of a whole one
}

// NewAccount opens the account of a run of so many epochs in a world, which changes
// while it lasts.
func NewAccount(world env.World, epochs int, changes []env.Change) *Account {
	a := &Account{world: world, terms: world.Terms(), owed: world.Owed(), ends: curveEnds(epochs, changes)}
	if day := 86400 / a.terms.Length; a.terms.Length > 0 && day == math.Trunc(day) {
		a.day = day
	}
	return a
}

// ErrNotFinite is the error of a run whose figures a number cannot hold.
var ErrNotFinite = errors.New("not a finite number")

// Add adds the crawls of an epoch and returns what they earned. Own, if not nil, returns
// the learner's own figures after the epoch.
func (a *Account) Add(crawls []env.Crawled, own func() []learner.Metric) (reward float64, err error) {
	sum := &a.sums
	of := result.Epoch{Crawls: len(crawls)}
	for _, c := range crawls {
		of.Interest += c.Interest
		of.Cost += a.terms.Costs[c.Source]
	}
	if !env.Fits(of.Cost, a.terms.Budget) {
		of.Excess = of.Cost - a.terms.Budget
	}
	reward = of.Interest
	epoch := sum.Epochs
	sum.Epochs++
	for _, m := range result.Measures {
		*m.Of(sum) += m.Add(of)
	}
	if math.IsNaN(sum.Reward) || math.IsInf(sum.Reward, 0) {
		return reward, fmt.Errorf("epoch %d: the interest earned so far is %v, %w", epoch, sum.Reward, ErrNotFinite)
	}
	if a.day > 0 {
		a.today += reward / a.day
		if sum.Epochs%int(a.day) == 0 {
			a.days, a.today = append(a.days, a.today), 0
		}
	}
	if k := len(a.curve); k == len(a.ends) || a.ends[k] != sum.Epochs {
		return reward, nil
	}
	a.settle()
	span := float64(sum.Epochs - a.last.Epochs)
	now := CurvePoint{
		Epoch:  sum.Epochs,
		Reward: (sum.Reward - a.last.Reward) / span,
		Crawls: (sum.Crawls - a.last.Crawls) / span,
	}
	if own != nil {
		for _, m := range own() {
			if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
				return reward, fmt.Errorf("epoch %d: the learner's %s is %v, %w", epoch, m.Name, m.Value, ErrNotFinite)
			}
			now.Own = append(now.Own, m.Value)
		}
	}
	a.curve, a.last = append(a.curve, now), *sum
	return reward, nil
}

// settle charges what the items that wait have cost since it was charged last. Crawls bring
// what items cost when they are found: those that nobody finds would cost nothing.
func (a *Account) settle() {
	owed := a.world.Owed()
	a.sums.Reward += owed - a.owed
	a.owed = owed
}

// outcome returns the means.
func (a *Account) outcome() (result.Outcome, error) {
	a.settle()
	out := a.sums
	if out.Epochs == 0 {
		return out, errors.New("the world has no epoch to run")
	}
	for _, m := range result.Measures {
		*m.Of(&out) /= float64(out.Epochs)
	}
	return out, nil
}

// figures returns what the run earned, with its share of the bound, if there is one.
func (a *Account) figures(bound result.Ratio) (f Figures, err error) {
	f.Outcome, err = a.outcome()
	f.OfBound = result.RatioOf(result.Share(f.Reward, bound.Value()))
	f.Days = a.days
	return f, err
}

// Milestones returns the epochs of a curve, over a run of so many: eight in
// each factor of ten, and the last.
func Milestones(epochs int) []int {
	var at []int
	for k := 0; ; k++ {
		n := int(math.Round(math.Pow(10, float64(k)/8)))
		if n >= epochs {
			return append(at, epochs)
		}
		if len(at) == 0 || n > at[len(at)-1] {
			at = append(at, n)
		}
	}
}

// curveEnds returns the epochs at which points of a curve end: the Milestones of
// the run, each change of the world, and from ten epochs after it on the
// Milestones counted from there.
func curveEnds(epochs int, changes []env.Change) []int {
	ends := Milestones(epochs)
	for _, c := range changes {
		if c.At >= epochs {
			break
		}
		ends = append(ends, c.At)
		for _, n := range Milestones(epochs - c.At) {
			if n >= 10 {
				ends = append(ends, c.At+n)
			}
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}
