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
// learned, both are whole epochs, and the inverse index is the mean state at that age, see
// exactThreshold. A source is never crawled at an age at which a crawl does not pay its price.
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
		from, exact := exactThreshold(s, p.Price(), level)
		if aged {
			at := learnedAge(s, p.Price(), p.Threshold(i))
			cells = append(cells, age(at), age(from))
			if at == index.Never {
				learned = math.Inf(1)
			}
		}
		cells = append(cells, state(learned), state(exact), result.Figure(s.Gain()), result.Figure(s.Ceiling()))
		tab.Add(cells...)
	}
	return tab
}

// learnedAge returns the age from which a source is crawled by a learned threshold;
// [index.Never] where a crawl does not pay the price.
func learnedAge(s env.Source, price, threshold float64) int {
	if !(threshold < 1<<52) {
		return index.Never
	}
	c, age := index.NewCurve(s), int(math.Ceil(threshold))
	if !(c.Yield(age, price*c.Cost) > c.Yield(index.Never, 0)) {
		return index.Never
	}
	return age
}

// exactThreshold returns the age from which the index by which exact Whittle ranks reaches a
// price, and the mean state at that age. For the exponential law that is the state, between
// those of two ages, at which the index reaches the price. Where it never does, the age is
// [index.Never] and the state +Inf. With knowledge observed the state is that of the index of
// the state, which leaves out crawls that fail.
func exactThreshold(s env.Source, price float64, level env.Level) (age int, state float64) {
	c := index.NewCurve(s)
	age = c.Age(price*c.Cost, 1, index.Never)
	if level == env.LevelObserved || s.Exponential() && s.Fails == 0 && math.IsInf(s.Window, 1) {
		if state = index.Inverse(s, price); state >= s.Ceiling() {
			state = math.Inf(1)
		}
		return age, state
	}
	if age == index.Never {
		return age, math.Inf(1)
	}
	return age, s.MeanState(age)
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
		_, price := s.Bound()
		note += fmt.Sprintf(". The optimal price, with the budget kept on average: %s", result.Figure(price))
	}
	return note + "."
}

// recordedSources is how many sources a record has what was learned of.
const recordedSources = 8

// thresholdPairs sets learned thresholds, as states in interest, next to the state at
// which the exact index reaches the price, that of the relaxed problem. There is none where hosts
// limit crawls, for each of which a price of its own comes to that one, and where crawls fail and
// the state is seen. Of large instances it keeps few sources, evenly spaced, and none that is
// never crawled.
func thresholdPairs(t learner.Learner, in env.Instance, price float64, level env.Level) []Pair {
	var pairs []Pair
	src := in.Sources
	for k := range min(len(src), recordedSources) {
		i := k * len(src) / min(len(src), recordedSources)
		if l, ok := t.(Thresholded); ok && math.IsInf(l.Threshold(i), 1) {
			continue
		}
		x, ok := learnedThreshold(t, src, i, level)
		_, exact := exactThreshold(src[i], price, level)
		if !src[i].Unbounded() { // where costs have no ceiling no source is left alone
			exact = min(exact, src[i].Ceiling())
		}
		if sum := x + exact; !ok || math.IsNaN(sum) || math.IsInf(sum, 0) {
			continue
		}
		p := Pair{Source: src[i].Name, Learned: x}
		if in.PerHost == 0 && (level != env.LevelObserved || src[i].Fails == 0) {
			p.Exact = result.RatioOf(exact)
		}
		pairs = append(pairs, p)
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
