package experiments

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// Priced is a trainee that learns a price of the budget.
type Priced interface {
	Price() float64 // λ, interest per budget unit
}

// Thresholded is a Priced trainee with a threshold of each source.
type Thresholded interface {
	Priced
	// Threshold is the age from which source i is crawled, epochs, or, where the state is
	// seen, the state γ̂⁻¹(λ), interest; +Inf for never.
	Threshold(i int) float64
}

// JointThreshold is a trainee whose threshold of a source depends on the states
// of the others.
type JointThreshold interface {
	// Threshold is the state from which source i is crawled while the states of
	// the others sum to that, interest.
	Threshold(i int, others float64) float64
}

// Thresholds shows, source by source, the learned threshold at the learned
// price next to the exact one, or returns nil if the trainee has none. Where ages are
// learned, both are whole epochs, and the inverse index is the mean state at that age: for
// the exponential law the state, between those of two ages, at which the index reaches the
// price. A source is never crawled at an age at which a crawl does not pay its price.
func Thresholds(t learner.Learner, in env.Instance, level env.Level) *result.Table {
	p, ok := t.(Thresholded)
	if !ok {
		return nil
	}
	aged := level != env.LevelObserved
	tab := &result.Table{Header: []string{"source"}}
	if aged {
		tab.Header = append(tab.Header, "learned age", "exact age")
	}
	tab.Header = append(tab.Header, "learned inverse index", "exact inverse index", "gain u", "ceiling u*")
	terms := in.Terms()
	for i, s := range in.Sources {
		cells := []any{s.Name}
		if !terms.Affordable(i) {
			cells = append(cells, slices.Repeat([]any{"never"}, len(tab.Header)-3)...)
			tab.Add(append(cells, result.Figure(s.Gain()), result.Figure(s.Ceiling()))...)
			continue
		}
		learned, _ := learnedThreshold(t, in.Sources, i, level)
		exact := index.Inverse(s, p.Price())
		if exact >= s.Ceiling() {
			exact = math.Inf(1)
		}
		if aged {
			at := ages(s, p.Price(), p.Threshold(i))
			cells = append(cells, age(at[0]), age(at[1]))
			if at[0] == index.Never {
				learned = math.Inf(1)
			}
			switch {
			case at[1] == index.Never:
				exact = math.Inf(1)
			case !s.Exponential() || s.Fails > 0:
				exact = s.MeanState(at[1])
			}
		}
		cells = append(cells, state(learned), state(exact), result.Figure(s.Gain()), result.Figure(s.Ceiling()))
		tab.Add(cells...)
	}
	return tab
}

// ages returns the age from which a source is crawled by a learned threshold, and the one
// from which the exact index reaches a price; [index.Never] where a crawl does not pay it.
func ages(s env.Source, price, threshold float64) [2]int {
	c := index.NewCurve(s.MeanDynamics())
	charge := price * c.Cost
	learned := index.Never
	if threshold < 1<<52 {
		learned = int(math.Ceil(threshold))
		if !(c.Yield(learned, charge) > c.Yield(index.Never, 0)) {
			learned = index.Never
		}
	}
	return [2]int{learned, c.Age(charge, 1, index.Never)}
}

func age(epochs int) string {
	if epochs == index.Never {
		return "never"
	}
	return strconv.Itoa(epochs)
}

// state writes a state, interest.
func state(x float64) string {
	if math.IsInf(x, 1) {
		return "never"
	}
	return result.Figure(x)
}

// PriceNote says the learned price next to the optimal one of the relaxed
// problem.
func PriceNote(t learner.Learner, s Scene, level env.Level) string {
	p, ok := t.(Priced)
	if !ok {
		return ""
	}
	note := fmt.Sprintf("Learned price of a budget unit: %s interest", result.Figure(p.Price()))
	if s.Bounded(level) {
		_, price := s.bound()
		note += fmt.Sprintf(". The optimal price, with the budget kept on average: %s", result.Figure(price))
	}
	return note + "."
}

// recordedSources is how many sources a record has what was learned of.
const recordedSources = 8

// thresholdPairs sets learned thresholds, as states in interest, next to the state at
// which the exact index reaches the price, that of the relaxed problem. Of large instances
// it keeps few sources, evenly spaced, and none that is never crawled.
func thresholdPairs(t learner.Learner, src []env.Source, price float64, level env.Level) []Pair {
	var pairs []Pair
	for k := range min(len(src), recordedSources) {
		i := k * len(src) / min(len(src), recordedSources)
		if l, ok := t.(Thresholded); ok && math.IsInf(l.Threshold(i), 1) {
			continue
		}
		x, ok := learnedThreshold(t, src, i, level)
		p := Pair{Source: src[i].Name, Learned: x, Exact: min(index.Inverse(src[i], price), src[i].Ceiling())}
		if sum := p.Learned + p.Exact; ok && !math.IsNaN(sum) && !math.IsInf(sum, 0) {
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// learnedThreshold returns the state from which source i is crawled.
func learnedThreshold(t learner.Learner, src []env.Source, i int, level env.Level) (x float64, ok bool) {
	switch l := t.(type) {
	case JointThreshold: // where all others have just been crawled
		others := 0.0
		for j := range src {
			if j != i {
				others += src[j].Gain()
			}
		}
		return l.Threshold(i, others), true
	case Thresholded:
		if level == env.LevelObserved {
			return l.Threshold(i), true
		}
		return src[i].MeanStateAt(l.Threshold(i)), true
	}
	return 0, false
}
