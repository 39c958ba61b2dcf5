package learner

import "math"

// Part is a part of the sources, with a learner of its own.
type Part struct {
	Sources int
	Budget  float64 // what its crawls of an epoch may cost; 0 where it has had none yet
	Price   float64 // λ, what a budget unit is worth there
}

// pace is by how much the price of a part changes its budget: the exponent of its ratio to the
// mean, and the most by which the budget changes at once.
const (
	paceOfBudget = .5
	mostAtOnce   = 2
)

// Shares divides a budget among learners of parts of the sources, by the number of sources. By
// price, what each has follows what a budget unit is worth there:
//
//	M_k ← M_k·clip((λ_k/λ̄)^½, ½, 2), scaled to the whole budget
//
// where λ̄ is the mean over budget units. Each part with a source gets least at least, if there is
// enough for that. The rule is for every ten epochs or so, after which prices have followed.
func Shares(parts []Part, budget, least float64, byPrice bool) []float64 {
	shares := make([]float64, len(parts))
	var sources, had, worth float64
	for _, p := range parts {
		if sources += float64(p.Sources); p.Sources > 0 {
			had += p.Budget
			worth += p.Budget * p.Price
		}
	}
	for k, p := range parts {
		if shares[k] = float64(p.Sources); byPrice && p.Sources > 0 && p.Budget > 0 && worth > 0 {
			shares[k] = p.Budget / had * sources *
				min(mostAtOnce, max(1./mostAtOnce, math.Pow(p.Price*had/worth, paceOfBudget)))
		}
	}
	return scale(shares, budget, least)
}

// scale has shares add up to a budget, with least at least for each that is above 0.
func scale(shares []float64, budget, least float64) []float64 {
	n := 0.
	for _, m := range shares {
		if m > 0 {
			n++
		}
	}
	least = min(least, budget/max(1, n))
	raised := make([]bool, len(shares))
	for {
		var sum float64
		left := budget
		for k, m := range shares {
			if raised[k] {
				left -= least
			} else {
				sum += m
			}
		}
		done := true
		for k, m := range shares {
			if !raised[k] && m > 0 && m*left/sum < least {
				raised[k], done = true, false
			}
		}
		if !done {
			continue
		}
		for k := range shares {
			if raised[k] {
				shares[k] = least
			} else if sum > 0 {
				shares[k] *= left / sum
			}
		}
		return shares
	}
}
