package experiments

import (
	"fmt"
	"math"
	"strconv"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments/result"
)

// Priced is a trainee that learns a price λ of the budget and a threshold for
// every source.
type Priced interface {
	Price() float64             // λ, interest per budget unit
	InverseIndex(i int) float64 // γ̂⁻¹(λ), the state from which source i is crawled, interest
}

// Thresholds shows, source by source, the learned inverse index at the learned
// price beside the exact one, or returns nil if the trainee has none.
func Thresholds(t Trainee, in env.Instance) *result.Table {
	p, ok := t.(Priced)
	if !ok {
		return nil
	}
	tab := &result.Table{Header: []string{"source", "learned inverse index", "exact inverse index", "gain u", "ceiling u*"}}
	for i, s := range in.Sources {
		name := s.Name
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		tab.Add(name, result.Figure(p.InverseIndex(i)), result.Figure(InverseWhittle(s, p.Price())), result.Figure(s.Gain()), result.Figure(s.Ceiling()))
	}
	return tab
}

// InverseWhittle returns γ⁻¹(λ), the state at which the exact Whittle index of
// a source reaches the price. The index rises with the state, from 0 at x = 0,
// and is x/C above the ceiling.
func InverseWhittle(s env.Source, price float64) float64 {
	lo, hi := 0.0, math.Max(s.Ceiling(), price*s.Cost)
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid == lo || mid == hi {
			break
		}
		if baselines.WhittleIndex(s, mid) < price {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// PriceNote says the learned price beside the optimal one of the relaxed
// problem.
func PriceNote(t Trainee, s Scene, level env.Level) string {
	p, ok := t.(Priced)
	if !ok {
		return ""
	}
	note := fmt.Sprintf("Learned price of a budget unit: %s interest", result.Figure(p.Price()))
	if s.Bounded(level) {
		_, price := baselines.RelaxedBound(s.Instance)
		note += fmt.Sprintf("; optimal with the budget kept on average: %s", result.Figure(price))
	}
	return note + "."
}
